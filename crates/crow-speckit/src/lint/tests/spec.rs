use super::*;

const SPEC: &str = "# Feature Specification: Albums

**Status**: Draft

## User Scenarios & Testing *(mandatory)*

### User Story 1 - Make an album (Priority: P1)

A person makes an album.

**Why this priority**: nothing works without it

**Independent Test**: make one and see it

**Acceptance Scenarios**:

1. **Given** no album, **When** one is made, **Then** it is listed

---

### Edge Cases

- What if two have a name?

## Requirements *(mandatory)*

### Functional Requirements

- **FR-001**: System MUST list albums
- **FR-002**: System MUST keep them for [NEEDS CLARIFICATION: how long?]

## Success Criteria *(mandatory)*

### Measurable Outcomes

- **SC-001**: An album is made in 5 seconds
";

#[track_caller]
fn check_spec(from: &str, to: &str, expected: Expect) {
    assert!(SPEC.contains(from));
    check(super::check_spec(&SPEC.replacen(from, to, 1), ""), expected);
}

#[test]
fn valid_spec_has_no_problems() {
    check_spec("", "", expect![""]);
    check(super::check_spec(&SPEC.replace('\n', "\r\n"), SPEC), expect![""]);
}

#[test]
fn spec_rules() {
    check(
        super::check_spec("", ""),
        expect![[r#"
        the section `## User Scenarios & Testing` is missing; add it and fill it
        the section `## Requirements` is missing; add it and fill it
        the section `## Success Criteria` is missing; add it and fill it
        there is no story; add `### User Story 1 - Title (Priority: P1)` under User Scenarios & Testing
        Functional Requirements has no `- **FR-001**: …`; add at least one
        Measurable Outcomes has no `- **SC-001**: …`; add at least one
    "#]],
    );
    check_spec(
        "## Requirements *(mandatory)*",
        "## Wishes",
        expect![[r#"
        the section `## Requirements` is missing; add it and fill it
    "#]],
    );
    check_spec(
        "- **SC-001**: An album is made in 5 seconds",
        "",
        expect![[r#"
        Measurable Outcomes has no `- **SC-001**: …`; add at least one
        line 32: the section Success Criteria is empty; fill it
    "#]],
    );
    check_spec(
        "Make an album (Priority: P1)",
        "[Brief Title]",
        expect![[r#"
        line 7: the placeholder [Brief Title] is still there; replace it, or remove its line
        line 7: story 1 has no priority; end its heading with (Priority: P1)
    "#]],
    );
    check_spec(
        ": nothing works without it",
        ":",
        expect![[r#"
        line 7: story 1 does not say **Why this priority**: …; add it
    "#]],
    );
    check_spec(
        "**Independent Test**: make one and see it",
        "",
        expect![[r#"
        line 7: story 1 does not say **Independent Test**: …; add it
    "#]],
    );
    check_spec(
        "**When** one is made",
        "a user makes one",
        expect![[r#"
        line 7: story 1 has no scenario; add `1. **Given** …, **When** …, **Then** …`
    "#]],
    );
}

#[test]
fn ids_and_open_questions_of_a_spec() {
    check_spec(
        "FR-002",
        "FR-001",
        expect![[r#"
        line 30: FR-001 is there twice; number it on
    "#]],
    );
    check_spec(
        "FR-001",
        "FR-003",
        expect![[r#"
        line 30: FR-002 comes after FR-003; ids go up
    "#]],
    );
    check_spec(
        "- What if two have a name?",
        "N/A",
        expect![[r#"
        line 21: the section Edge Cases says nothing; remove it
    "#]],
    );
    check_spec(
        "[NEEDS CLARIFICATION: how long?]",
        "[NEEDS CLARIFICATION]",
        expect![[r#"
        line 30: an open point asks nothing; write [NEEDS CLARIFICATION: the question]
    "#]],
    );
    check_spec(
        "System MUST list albums",
        &"[NEEDS CLARIFICATION: a] ".repeat(3),
        expect![[r#"
        there are 4 open points; keep the 3 that matter most and settle the others with what is usual, under Assumptions
    "#]],
    );
    check_spec(
        "### Edge Cases",
        "### User Story 1 - Again (P2)",
        expect![[r#"
        line 21: there are two stories with the number 1; number them on
        line 21: story 1 does not say **Why this priority**: …; add it
        line 21: story 1 does not say **Independent Test**: …; add it
        line 21: story 1 has no scenario; add `1. **Given** …, **When** …, **Then** …`
    "#]],
    );
}

#[test]
fn scenario_may_span_lines() {
    check_spec(", **When** one is made, **Then**", "\n   **When** one is made\n   **Then**", expect![""]);
}

#[test]
fn template_of_a_team_defines_the_rules() {
    check(
        super::check_spec("# A\n\n## Why\n\nb\n", "# [A]\n\n## Why *(mandatory)*\n\n## How *(mandatory)*\n"),
        expect![[r#"
            the section `## How` is missing; add it and fill it
        "#]],
    );
}
