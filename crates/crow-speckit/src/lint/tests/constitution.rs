use super::*;

const RULES: &str = "<!-- [PROJECT_NAME] was replaced -->
# Albums Constitution

## Core Principles

### I. Simple

Everything is simple.

## Governance

It stands above.

**Version**: 1.2.0 | **Ratified**: 2026-01-31 | **Last Amended**: 2026-02-01
";

#[track_caller]
fn check_rules(from: &str, to: &str, expected: Expect) {
    assert!(RULES.contains(from));
    check(check_constitution(None, &RULES.replacen(from, to, 1)), expected);
}

#[test]
fn constitution_rules() {
    check_rules("", "", expect![""]);
    check_rules(
        "Albums Constitution",
        "[PROJECT_NAME] Constitution",
        expect![[r#"
        line 2: [PROJECT_NAME] is still there; replace it, or remove its section
    "#]],
    );
    check_rules(
        "Everything is simple.",
        "",
        expect![[r#"
        there is no principle; add `### I. Title` with its text under ## Core Principles
    "#]],
    );
    check_rules(
        "1.2.0",
        "v1.2",
        expect![[r#"
        line 14: the version "v1.2" is not of the form 1.0.0
    "#]],
    );
    check_rules(
        "2026-02-01",
        "2026-02-30",
        expect![[r#"
        line 14: Last Amended is "2026-02-30", which is not a date such as 2026-01-31
    "#]],
    );
    check_rules("2026-01-31", "TODO(RATIFICATION_DATE): ask", expect![""]);
    check_rules(
        " | **Last Amended**: 2026-02-01",
        "",
        expect![[r#"
        the last line is missing: **Version**: 1.0.0 | **Ratified**: 2026-01-31 | **Last Amended**: 2026-01-31
    "#]],
    );
}

#[test]
fn amendment_needs_a_new_version() {
    let amended = |version: &str, ratified: &str| {
        RULES.replace("is simple", "is small").replace("1.2.0", version).replace("2026-01-31", ratified)
    };
    check(check_constitution(Some(RULES), RULES), expect![""]);
    check(check_constitution(Some(RULES), &amended("1.10.0", "2026-01-31")), expect![""]);
    check(
        check_constitution(Some(RULES), &amended("1.2.0", "2026-02-02")),
        expect![[r#"
        line 14: the rules changed and the version did not go up from 1.2.0
        line 14: Ratified was 2026-01-31, and stays so
    "#]],
    );
    check(check_constitution(Some("[PROJECT_NAME]"), RULES), expect![""]);
}

#[test]
fn template_is_unfilled() {
    // `printf a | sha256sum`
    let sha = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";
    let record = format!("{{\"sha256\": \"{sha}\", \"source\": \"core\"}}");
    assert!(is_unfilled("a", Some(&record)));
    assert!(!is_unfilled("a b", Some(&record)) && !is_unfilled("a", Some("{")) && !is_unfilled(RULES, None));
    assert!(is_unfilled("# [PROJECT_NAME]", None) && is_unfilled(" \n", None));
}
