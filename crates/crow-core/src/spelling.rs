//! Suggestions for mistyped names.

use strsim::levenshtein;

/// Returns the most similar name, with at most a third of its letters different, ignoring case. Among names that
/// differ only in case, the one in the case of the mistyped name is preferred.
pub fn nearest_name<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_lowercase();
    let candidates =
        known.map(|other| (levenshtein(&lower, &other.to_lowercase()), levenshtein(name, other), other));
    let candidates = candidates.filter(|(n_wrong, _, other)| n_wrong * 3 <= other.chars().count().max(3));
    candidates.min().map(|(_, _, other)| other)
}

#[cfg(test)]
mod tests {
    use super::nearest_name;

    #[track_caller]
    fn check_nearest(name: &str, expected: Option<&str>) {
        assert_eq!(nearest_name(name, ["read", "write", "list_issues"].into_iter()), expected, "{name}");
    }

    #[test]
    fn nearest_name_prefers_case_of_mistyped_name() {
        let known = ["MAX_TURN_REQUESTS", "max_turn_requests", "base_url", "EDITOR"];
        let meant = |name: &str| nearest_name(name, known.into_iter());
        for lower in [
            "max_turn_request",
            "max_turn_requestss",
            "Max_Turn_Request",
            "maxTurnRequests",
            "max_turns_request",
        ] {
            assert_eq!(meant(lower), Some("max_turn_requests"), "{lower}");
        }
        for upper in ["MAX_TURN_REQUEST", "MAXTURN_REQUESTS", "MAX_TURN_REQUESTs"] {
            assert_eq!(meant(upper), Some("MAX_TURN_REQUESTS"), "{upper}");
        }
        assert_eq!(meant("BASE_URI"), Some("base_url"));
        assert_eq!(meant("editr"), Some("EDITOR"));
    }

    #[test]
    fn nearest_name_allows_a_third_of_wrong_letters() {
        check_nearest("reader_of_mail", None);
        check_nearest("reed", Some("read"));
        check_nearest("Write", Some("write"));
        check_nearest("list_issue", Some("list_issues"));
        check_nearest("listissues", Some("list_issues"));
        check_nearest("delete", None);
        check_nearest("", None);
    }
}
