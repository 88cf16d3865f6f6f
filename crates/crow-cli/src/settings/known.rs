//! The keys a configuration may have, here and in other versions of Crow.

pub(crate) use crow_core::nearest;

/// Keys at the top. The upper-case ones are the older spelling.
pub(super) const TOP: &[&str] = &[
    "providers",
    "models",
    "mcpServers",
    "agent_servers",
    "db_uri",
    "MAX_COMPACT_TOKENS",
    "max_compact_tokens",
    "MAX_TOKENS",
    "max_tokens",
    "MAX_RETRIES_PER_STEP",
    "max_retries_per_step",
    "MAX_TURN_REQUESTS",
    "max_turn_requests",
    "use_acp_terminal",
    "fallback_to_mcp_terminal",
    "shell",
    "permissions",
    "agents",
    "sandbox",
    "hooks",
    "speckit",
];
/// Keys of a provider.
pub(super) const PROVIDER: &[&str] = &["base_url", "api", "api_key", "headers"];
/// Keys of a model.
pub(super) const MODEL: &[&str] = &[
    "provider",
    "model",
    "context_window",
    "max_tokens",
    "temperature",
    "reasoning_effort",
    "thought_levels",
    "send_reasoning",
    "tool_calls",
    "price",
    "extra_body",
];
/// Keys of a model's price.
pub(super) const PRICE: &[&str] = &["input", "output", "cached", "cache_written"];
/// Keys of an MCP server.
pub(super) const SERVER: &[&str] =
    &["command", "args", "env", "transport", "type", "url", "headers", "disabled", "disabled_tools"];
/// Keys of an agent.
pub(super) const AGENT: &[&str] =
    &["command", "args", "env", "cwd", "type", "transport", "url", "headers", "token", "token_file"];
/// Keys of `agents`.
pub(super) const AGENTS: &[&str] = &["max_depth", "max_children", "max_tokens", "max_minutes"];
/// Keys of `permissions`.
pub(super) const PERMISSIONS: &[&str] = &["mode", "allow", "deny", "sandbox", "network"];
/// Keys of `speckit`.
pub(super) const SPECKIT: &[&str] = &["specs_root", "specs_link", "parallel"];
/// Keys of a hook, and of a group of hooks as other agents write it.
pub(super) const HOOK: &[&str] = &["matcher", "hooks", "type", "command", "timeout"];
