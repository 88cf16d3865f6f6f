//! The known keys of a configuration, in this and other versions of Crow.

pub(crate) use crow_core::nearest_name;

use self::ConfigShape::{
    AnyMap, Count, Flag, Hooks, Map, NamedMaps, Names, Number, OneOf, Text, TextMap, Texts, WholeNumber,
};

/// A key of the configuration.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConfigKey {
    pub(super) name: &'static str,
    pub(super) shape: ConfigShape,
    /// One sentence for editors, without a full stop.
    pub(super) about: &'static str,
}

/// The values that a key takes.
#[derive(Debug, Clone, Copy)]
pub(super) enum ConfigShape {
    Text,
    Number,
    /// A positive whole number.
    Count,
    WholeNumber,
    Flag,
    OneOf(&'static [&'static str]),
    /// A name or a list of names; if some are given, only these.
    Names(&'static [&'static str]),
    /// A list of strings.
    Texts,
    /// A map from names to strings.
    TextMap,
    /// A map with any fields.
    AnyMap,
    Map(&'static [ConfigKey]),
    /// A map from names to maps with these keys, and keys without effect.
    NamedMaps(&'static [ConfigKey], &'static [&'static str]),
    /// A map from events to lists of hooks.
    Hooks,
}

const MODALITY: ConfigShape = Names(&["text", "image", "audio", "video", "file"]);

/// Top-level keys. The upper-case ones are from older versions.
pub(super) const TOP: &[ConfigKey] = &[
    ConfigKey { name: "providers", shape: NamedMaps(PROVIDER, &[]), about: "The providers, by name" },
    ConfigKey {
        name: "models",
        shape: NamedMaps(MODEL, &[]),
        about: "The models, by name; the first is the default",
    },
    ConfigKey {
        name: "mcpServers",
        shape: NamedMaps(SERVER, SERVER_RETIRED),
        about: "MCP servers of every session, by name",
    },
    ConfigKey {
        name: "agent_servers",
        shape: NamedMaps(AGENT, &[]),
        about: "Agents that Crow can drive, by name",
    },
    ConfigKey {
        name: "db_uri",
        shape: Text,
        about: "The database: sqlite:///PATH, a path, or postgres://USER@HOST/NAME (default crow.db)",
    },
    ConfigKey { name: "MAX_COMPACT_TOKENS", shape: Count, about: "The older name of max_compact_tokens" },
    ConfigKey {
        name: "max_compact_tokens",
        shape: Count,
        about: "Tokens in context that trigger compaction (default 180000)",
    },
    ConfigKey { name: "MAX_TOKENS", shape: Count, about: "The older name of max_tokens" },
    ConfigKey {
        name: "max_tokens",
        shape: Count,
        about: "Tokens of one reply, for models that do not set it",
    },
    ConfigKey {
        name: "MAX_RETRIES_PER_STEP",
        shape: WholeNumber,
        about: "The older name of max_retries_per_step",
    },
    ConfigKey {
        name: "max_retries_per_step",
        shape: WholeNumber,
        about: "Retries of each request (default 3)",
    },
    ConfigKey { name: "MAX_TURN_REQUESTS", shape: Count, about: "The older name of max_turn_requests" },
    ConfigKey { name: "max_turn_requests", shape: Count, about: "Model requests in one turn (default 200)" },
    ConfigKey {
        name: "max_tools",
        shape: Count,
        about: "Tools in a request; the model finds the others with tool_search (default 128)",
    },
    ConfigKey {
        name: "use_acp_terminal",
        shape: Flag,
        about: "Run commands in the editor's terminals if it offers them (default true)",
    },
    ConfigKey {
        name: "fallback_to_mcp_terminal",
        shape: Flag,
        about: "Otherwise run commands as processes of Crow (default true)",
    },
    ConfigKey {
        name: "shell",
        shape: Text,
        about: "The shell for commands: bash, sh, dash, or the path of one",
    },
    ConfigKey { name: "session_logs", shape: Flag, about: "One log per session as well (default false)" },
    ConfigKey {
        name: "fullscreen",
        shape: Flag,
        about: "The interactive terminal has the whole screen (default false)",
    },
    ConfigKey {
        name: "vi_keys",
        shape: Flag,
        about: "The composer of the interactive terminal has vi keys (default false)",
    },
    ConfigKey {
        name: "permissions",
        shape: Map(PERMISSIONS),
        about: "What needs a question, and what commands may do",
    },
    ConfigKey { name: "agents", shape: Map(AGENTS), about: "Limits of child agents" },
    ConfigKey { name: "skills_dir", shape: Text, about: "A second directory of skills" },
    ConfigKey { name: "system_prompt_path", shape: Text, about: "A template of the system prompt" },
    ConfigKey { name: "hooks", shape: Hooks, about: "Commands that run at events, by event" },
    ConfigKey { name: "speckit", shape: Map(SPECKIT), about: "Settings of the Spec Kit workflow" },
];
/// Top-level keys of older versions that still work.
pub(super) const TOP_LEGACY: &[ConfigKey] = &[
    ConfigKey { name: "memory_path", shape: Text, about: "The older name of db_uri" },
    ConfigKey { name: "max_steps_per_turn", shape: Count, about: "The older name of max_turn_requests" },
    ConfigKey { name: "TEMPERATURE", shape: Number, about: "Sampling temperature of all models" },
    ConfigKey { name: "reasoning_effort", shape: Text, about: "Reasoning effort of all models" },
    ConfigKey { name: "parallel_tool_calls", shape: Flag, about: "Sent with each request of the chat API" },
];
/// Keys of a provider.
pub(super) const PROVIDER: &[ConfigKey] = &[
    ConfigKey { name: "base_url", shape: Text, about: "Address, up to and including /v1" },
    ConfigKey {
        name: "api",
        shape: OneOf(&["chat", "messages", "responses"]),
        about: "The API to use (default chat)",
    },
    ConfigKey { name: "api_key", shape: Text, about: "Key, preferably as ${VARIABLE}" },
    ConfigKey { name: "headers", shape: TextMap, about: "Headers to add to each request" },
];
/// Keys of a model.
pub(super) const MODEL: &[ConfigKey] = &[
    ConfigKey { name: "provider", shape: Text, about: "One of the providers" },
    ConfigKey {
        name: "model",
        shape: Text,
        about: "The provider's ID of the model; by default its name here",
    },
    ConfigKey {
        name: "context_window",
        shape: Count,
        about: "Tokens that the model can read (default 128000)",
    },
    ConfigKey { name: "modality", shape: MODALITY, about: "What the model reads: text, image" },
    ConfigKey { name: "modalities", shape: MODALITY, about: "The same as modality" },
    ConfigKey { name: "max_tokens", shape: Count, about: "Tokens that it may write in one reply" },
    ConfigKey { name: "temperature", shape: Number, about: "Sampling temperature" },
    ConfigKey {
        name: "reasoning_effort",
        shape: Text,
        about: "How much the model reasons, in the provider's words",
    },
    ConfigKey { name: "top_p", shape: Number, about: "Sampling value, sent unchanged" },
    ConfigKey { name: "top_k", shape: Number, about: "Sampling value, sent unchanged" },
    ConfigKey { name: "min_p", shape: Number, about: "Sampling value, sent unchanged" },
    ConfigKey { name: "presence_penalty", shape: Number, about: "Sampling value, sent unchanged" },
    ConfigKey { name: "repetition_penalty", shape: Number, about: "Sampling value, sent unchanged" },
    ConfigKey { name: "max_compact_tokens", shape: Count, about: "Its own limit for compaction, in tokens" },
    ConfigKey {
        name: "thought_levels",
        shape: AnyMap,
        about: "For each thought level the fields to send instead of reasoning_effort",
    },
    ConfigKey {
        name: "send_reasoning",
        shape: Flag,
        about: "Whether to send the model's reasoning back to it as plain text",
    },
    ConfigKey {
        name: "tool_calls",
        shape: OneOf(&["native", "text", "auto"]),
        about: "How the model writes tool calls (default auto)",
    },
    ConfigKey {
        name: "tools",
        shape: Names(&[]),
        about: "The tools that the model gets: full, core, auto (default) or a list of names",
    },
    ConfigKey {
        name: "exclude_tools",
        shape: Names(&[]),
        about: "Names of tools that it does not get, also of MCP servers",
    },
    ConfigKey {
        name: "edit_tool",
        shape: OneOf(&["edit", "apply_patch", "str_replace_based_edit_tool"]),
        about: "The tool by which it changes files (default: that of its family)",
    },
    ConfigKey {
        name: "fallbacks",
        shape: Names(&[]),
        about: "At most 8 models to use, in this order, when the provider is overloaded",
    },
    ConfigKey { name: "price", shape: Map(PRICE), about: "US dollars per million tokens" },
    ConfigKey {
        name: "extra_body",
        shape: AnyMap,
        about: "Fields to add to each request; they override Crow's own",
    },
];
/// Keys of a model's price.
pub(super) const PRICE: &[ConfigKey] = &[
    ConfigKey { name: "input", shape: Number, about: "Input tokens" },
    ConfigKey { name: "output", shape: Number, about: "Output tokens" },
    ConfigKey { name: "cached", shape: Number, about: "Input tokens from the provider's cache" },
    ConfigKey { name: "cache_written", shape: Number, about: "Input tokens written to the provider's cache" },
];
/// Keys of an MCP server.
pub(super) const SERVER: &[ConfigKey] = &[
    ConfigKey { name: "command", shape: Text, about: "A program that speaks MCP" },
    ConfigKey { name: "args", shape: Texts, about: "Its arguments" },
    ConfigKey { name: "env", shape: TextMap, about: "Its variables" },
    ConfigKey { name: "cwd", shape: Text, about: "Its working directory, relative to the session's" },
    ConfigKey { name: "transport", shape: TRANSPORT, about: "How to reach the server" },
    ConfigKey { name: "type", shape: TRANSPORT, about: "The same as transport" },
    ConfigKey { name: "url", shape: Text, about: "The address of an HTTP server" },
    ConfigKey { name: "headers", shape: TextMap, about: "Headers for it" },
    ConfigKey {
        name: "timeout",
        shape: Number,
        about: "Seconds that a request may take without an answer or progress (default 600)",
    },
    ConfigKey { name: "disabled", shape: Flag, about: "Whether to ignore the server" },
    ConfigKey {
        name: "disabled_tools",
        shape: Texts,
        about: "Tools, by the server's names, to hide and never run",
    },
    ConfigKey { name: "include_tools", shape: Texts, about: "The only tools to show and run" },
    ConfigKey { name: "exclude_tools", shape: Texts, about: "The same as disabled_tools" },
];
const TRANSPORT: ConfigShape =
    OneOf(&["stdio", "http", "streamable-http", "streamable_http", "sse", "builtin"]);
/// Keys of an agent.
pub(super) const AGENT: &[ConfigKey] = &[
    ConfigKey {
        name: "command",
        shape: Names(&[]),
        about: "A program that speaks ACP; a list begins with the program",
    },
    ConfigKey { name: "args", shape: Texts, about: "Its arguments" },
    ConfigKey { name: "env", shape: TextMap, about: "Its variables" },
    ConfigKey { name: "cwd", shape: Text, about: "Its working directory" },
    ConfigKey { name: "type", shape: Text, about: "Ignored; editors write it" },
    ConfigKey { name: "transport", shape: Text, about: "Ignored; editors write it" },
    ConfigKey {
        name: "url",
        shape: Text,
        about: "The address of an agent that speaks ACP over WebSocket or streamable HTTP",
    },
    ConfigKey { name: "headers", shape: TextMap, about: "Headers for it" },
    ConfigKey {
        name: "token",
        shape: Text,
        about: "The token for the address or the NATS server, preferably as ${VARIABLE}",
    },
    ConfigKey { name: "token_file", shape: Text, about: "The file that holds the token" },
    ConfigKey {
        name: "nats",
        shape: Text,
        about: "The NATS servers of a queue whose workers run the tasks, separated by commas",
    },
    ConfigKey { name: "queue", shape: Text, about: "The queue there" },
    ConfigKey {
        name: "parent",
        shape: Text,
        about: "The name of this side in the queue's subjects (default crow)",
    },
    ConfigKey { name: "user", shape: Text, about: "The user at the NATS server" },
    ConfigKey { name: "password", shape: Text, about: "The user's password, preferably as ${VARIABLE}" },
    ConfigKey { name: "password_file", shape: Text, about: "The file that holds the password" },
    ConfigKey { name: "creds_file", shape: Text, about: "The file with a NATS JWT and its key" },
    ConfigKey { name: "nkey_file", shape: Text, about: "The file with the seed of a NATS NKey" },
    ConfigKey {
        name: "ca_file",
        shape: Text,
        about: "The certificate of the authority that signed the NATS server's; requires TLS",
    },
];
/// Keys of `agents`.
pub(super) const AGENTS: &[ConfigKey] = &[
    ConfigKey {
        name: "max_depth",
        shape: WholeNumber,
        about: "Levels of child agents below a session (default 2)",
    },
    ConfigKey {
        name: "max_children",
        shape: Count,
        about: "Child agents that run at the same time (default 8)",
    },
    ConfigKey {
        name: "max_tokens",
        shape: Count,
        about: "Tokens that all children of one session may use together",
    },
    ConfigKey {
        name: "max_minutes",
        shape: Count,
        about: "How long one turn of a child may take (default 60)",
    },
];
/// Keys of `permissions`.
pub(super) const PERMISSIONS: &[ConfigKey] = &[
    ConfigKey {
        name: "mode",
        shape: OneOf(&["ask", "accept-edits", "plan", "auto"]),
        about: "The mode of a new session (default ask)",
    },
    ConfigKey { name: "allow", shape: Texts, about: "Rules for what needs no question" },
    ConfigKey { name: "deny", shape: Texts, about: "Rules for what is rejected in every mode" },
    ConfigKey {
        name: "sandbox",
        shape: OneOf(&["unapproved", "always", "off"]),
        about: "Which commands run in the sandbox (default unapproved)",
    },
    ConfigKey {
        name: "network",
        shape: Flag,
        about: "Whether commands in the sandbox have the network (default true)",
    },
];
/// Keys of `speckit`.
pub(super) const SPECKIT: &[ConfigKey] = &[
    ConfigKey {
        name: "specs_root",
        shape: Text,
        about: "Where new features go: auto, specs, .specify/specs, or another directory",
    },
    ConfigKey {
        name: "specs_link",
        shape: OneOf(&["auto", "off"]),
        about: "Whether to link specs next to .specify/specs (default auto)",
    },
    ConfigKey {
        name: "parallel",
        shape: OneOf(&["ask", "always", "never"]),
        about: "Whether tasks marked [P] go to child agents (default ask)",
    },
];
/// Keys of a hook, and of a group of hooks as other agents define it.
pub(super) const HOOK: &[ConfigKey] = &[
    ConfigKey { name: "matcher", shape: Text, about: "The tools it is about, as a pattern" },
    ConfigKey { name: "hooks", shape: Texts, about: "Hooks that share the matcher" },
    ConfigKey { name: "type", shape: OneOf(&["command"]), about: "The kind of hook" },
    ConfigKey { name: "command", shape: Text, about: "The command to run" },
    ConfigKey { name: "timeout", shape: Number, about: "Seconds that it may take" },
];

/// Top-level keys of earlier versions, or of other programs that read the same file.
pub(super) const TOP_RETIRED: &[&str] =
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
