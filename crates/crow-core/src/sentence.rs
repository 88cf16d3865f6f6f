//! Turns clauses of error messages into sentences for people.

/// Returns a clause with a capital letter and a full stop.
pub fn to_sentence(clause: &str) -> String {
    let mut chars = clause.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    let stop = if clause.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{stop}", chars.as_str())
}

#[cfg(test)]
mod tests {
    #[test]
    fn sentence_has_a_capital_and_a_full_stop() {
        assert_eq!(super::to_sentence("not found: a, b"), "Not found: a, b.");
        assert_eq!(super::to_sentence("is it running?"), "Is it running?");
    }
}
