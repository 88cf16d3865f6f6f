//! Turns clauses of error messages into sentences for the conversation.

/// Returns a clause with a capital letter and a full stop.
pub(crate) fn to_sentence(clause: &str) -> String {
    let mut chars = clause.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    let stop = if clause.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{stop}", chars.as_str())
}
