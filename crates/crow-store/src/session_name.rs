//! Session IDs that people can say: `brave-otter-of-quiet-rivers`.

use crow_core::SessionId;

/// Generates a session ID, one of about 10¹². If two should be equal, storing the second one fails.
pub fn invent_name() -> SessionId {
    let pair = || petname::petname(2, "-").unwrap_or_default();
    SessionId::new(format!("{}-of-{}", pair(), pluralize_noun(&pair())))
}

fn pluralize_noun(noun: &str) -> String {
    let before_last = noun.chars().rev().nth(1).unwrap_or_default();
    match noun.strip_suffix('y') {
        Some(stem) if !"aeiou".contains(before_last) => format!("{stem}ies"),
        _ if ["s", "x", "z", "ch", "sh"].iter().any(|end| noun.ends_with(end)) => format!("{noun}es"),
        _ => format!("{noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::pluralize_noun;

    #[test]
    fn plural_of_nouns() {
        for (one, many) in
            [("river", "rivers"), ("fly", "flies"), ("jay", "jays"), ("fox", "foxes"), ("finch", "finches")]
        {
            assert_eq!(pluralize_noun(one), many);
        }
    }
}
