//! The known keys of a configuration, in this and other versions of Crow.

pub(crate) use crow_core::nearest_name;

/// Top-level keys. The upper-case ones are from older versions.
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
    "max_tools",
    "use_acp_terminal",
    "fallback_to_mcp_terminal",
    "shell",
    "session_logs",
    "fullscreen",
    "vi_keys",
    "permissions",
    "agents",
    "skills_dir",
    "system_prompt_path",
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
    "modality",
    "modalities",
    "max_tokens",
    "temperature",
    "reasoning_effort",
    "top_p",
    "top_k",
    "min_p",
    "presence_penalty",
    "repetition_penalty",
    "max_compact_tokens",
    "thought_levels",
    "send_reasoning",
    "tool_calls",
    "tools",
    "exclude_tools",
    "fallbacks",
    "price",
    "extra_body",
];
/// Keys of a model's price.
pub(super) const PRICE: &[&str] = &["input", "output", "cached", "cache_written"];
/// Keys of an MCP server.
pub(super) const SERVER: &[&str] = &[
    "command",
    "args",
    "env",
    "cwd",
    "transport",
    "type",
    "url",
    "headers",
    "timeout",
    "disabled",
    "disabled_tools",
    "include_tools",
    "exclude_tools",
];
/// Keys of an agent.
pub(super) const AGENT: &[&str] =
    &["command", "args", "env", "cwd", "type", "transport", "url", "headers", "token", "token_file"];
/// Keys of `agents`.
pub(super) const AGENTS: &[&str] = &["max_depth", "max_children", "max_tokens", "max_minutes"];
/// Keys of `permissions`.
pub(super) const PERMISSIONS: &[&str] = &["mode", "allow", "deny", "sandbox", "network"];
/// Keys of `speckit`.
pub(super) const SPECKIT: &[&str] = &["specs_root", "specs_link", "parallel"];
/// Keys of a hook, and of a group of hooks as other agents define it.
pub(super) const HOOK: &[&str] = &["matcher", "hooks", "type", "command", "timeout"];

/// Top-level keys of earlier versions, or of other programs that read the same file.
const TOP_RETIRED: &[&str] =
    &["N_STEPS_BACK_COMPACT", "TERMINAL_TOOL", "image_store", "redis_url", "goal", "chunk_log"];
/// Such keys of an MCP server: FastMCP's keys for display, or for clients that work differently.
const SERVER_RETIRED: &[&str] =
    &["description", "icon", "keep_alive", "authentication", "auth", "sse_read_timeout", "transforms"];

/// Whether a key was used only by earlier versions.
pub(super) fn is_retired(key_path: &str, key: &str) -> bool {
    let retired = match key_path.split('.').next() {
        Some("") => TOP_RETIRED,
        Some("mcpServers") => SERVER_RETIRED,
        Some(_) | None => &[],
    };
    retired.contains(&key)
}
