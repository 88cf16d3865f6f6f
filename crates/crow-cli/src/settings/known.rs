//! The keys a configuration may have, here and in other versions of Crow, and what a mistyped one meant.

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
    "permissions",
    "agents",
    "sandbox",
];
/// Keys of a provider.
pub(super) const PROVIDER: &[&str] = &["base_url", "api_key", "headers"];
/// Keys of a model.
pub(super) const MODEL: &[&str] =
    &["provider", "model", "context_window", "max_tokens", "temperature", "reasoning_effort", "extra_body"];
/// Keys of an MCP server.
pub(super) const SERVER: &[&str] =
    &["command", "args", "env", "transport", "type", "url", "headers", "disabled"];
/// Keys of `permissions`.
pub(super) const PERMISSIONS: &[&str] = &["mode", "allow", "deny", "sandbox", "network"];

/// Finds the name that was probably meant: at most a third of its letters wrong.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_lowercase();
    let near = known.map(|other| (distance(&lower, &other.to_lowercase()), other));
    near.filter(|(n_wrong, other)| n_wrong * 3 <= other.chars().count().max(3)).min().map(|(_, other)| other)
}

/// Counts the letters to insert, delete or replace.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (place, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = place + 1;
        for column in 0..to.len() {
            let replaced = diagonal + usize::from(to[column] != letter);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}
