use super::*;

const PLAN: &str = "# Implementation Plan: Albums

## Summary

Albums, in a file.

## Technical Context

**Language/Version**: Rust 1.85
**Primary Dependencies**: none
**Storage**: N/A
**Testing**: cargo test
**Target Platform**: Linux
**Project Type**: cli
**Performance Goals**: 10 ms
**Constraints**: offline
**Scale/Scope**: 1000 albums

## Constitution Check

*GATE: before research.*

- I. Simple: PASS

## Project Structure

```text
src/
```

**Structure Decision**: one crate
";

#[track_caller]
fn check_plan(from: &str, to: &str, expected: Expect) {
    assert!(PLAN.contains(from));
    check(super::check_plan(&PLAN.replacen(from, to, 1), ""), expected);
}

#[test]
fn plan_rules() {
    check_plan("", "", expect![""]);
    check_plan(
        "**Storage**: N/A\n",
        "",
        expect![[r#"
        the field **Storage** is missing; add it with its value, or N/A
    "#]],
    );
    check_plan(
        "**Storage**: N/A\n",
        "**Storage**:\n",
        expect![[r#"
        line 11: the field **Storage** is empty; give its value, or N/A
    "#]],
    );
    check_plan(
        "Rust 1.85",
        "NEEDS CLARIFICATION",
        expect![[r#"
        line 9: NEEDS CLARIFICATION is still there; find it out, or decide it in research.md
    "#]],
    );
    check_plan(
        "Rust 1.85",
        "[e.g., Rust 1.75 or NEEDS CLARIFICATION]",
        expect![[r#"
        line 9: the placeholder [e.g., Rust 1.75 or NEEDS CLARIFICATION] is still there; replace it, or remove its line
    "#]],
    );
    check_plan("Albums, in a file.", "Every NEEDS CLARIFICATION is settled in research.md.", expect![""]);
}

#[test]
fn gate_and_layout_rules() {
    check_plan(
        "- I. Simple: PASS\n",
        "",
        expect![[r#"
        line 19: Constitution Check is not filled; say of each ground rule whether the plan keeps it (PASS or FAIL)
    "#]],
    );
    check_plan(
        "PASS",
        "FAIL",
        expect![[r#"
        line 23: a gate failed without a reason; change the plan, or add a row under ## Complexity Tracking
    "#]],
    );
    check_plan("PASS", "tests FAIL first (PASS)", expect![""]);
    check_plan(
        "- I. Simple: PASS",
        "- I. Simple (**FAIL**)",
        expect![[r#"
        line 23: a gate failed without a reason; change the plan, or add a row under ## Complexity Tracking
    "#]],
    );
    check_plan(
        "- I. Simple: PASS",
        "- **FAIL** I. Simple",
        expect![[r#"
        line 23: a gate failed without a reason; change the plan, or add a row under ## Complexity Tracking
    "#]],
    );
    check_plan(
        "- I. Simple: PASS",
        "| Gate | PASS/FAIL |\n|--|--|\n| I | ❌ |",
        expect![[r#"
        line 25: a gate failed without a reason; change the plan, or add a row under ## Complexity Tracking
    "#]],
    );
    check_plan(
        "src/",
        "# [REMOVE IF UNUSED] Option 1: Single project (DEFAULT)\nsrc/",
        expect![[r#"
        line 28: a layout is still called an option; keep the one that was chosen, without the label
    "#]],
    );
    check_plan(
        ": one crate",
        ":",
        expect![[r#"
        line 31: the field **Structure Decision** is empty; give its value, or N/A
    "#]],
    );
}

#[test]
fn failed_gate_may_be_justified() {
    let failed = PLAN.replace("PASS", "FAIL");
    let table = "\n## Complexity Tracking\n\n| Violation | Why Needed | Alternative |\n|---|---|---|\n";
    check(
        super::check_plan(&format!("{failed}{table}"), ""),
        expect![[r#"
        line 23: a gate failed without a reason; change the plan, or add a row under ## Complexity Tracking
    "#]],
    );
    check(super::check_plan(&format!("{failed}{table}| 4 crates | speed | slow |\n"), ""), expect![""]);
}

#[test]
fn research_rules() {
    let whole = "## Storage\n\n- **Decision**: a file\n- **Rationale**: simple\n- **Alternatives considered**: none\n";
    check(check_research(Some(whole)), expect![""]);
    check(
        check_research(Some(
            "# Decisions\n## Decision 1: a\n### Decision\nb\n### Rationale\nc\n### Alternatives\nd\n",
        )),
        expect![""],
    );
    check(
        check_research(None),
        expect![[r#"
        research.md is missing; write Decision, Rationale and Alternatives of each topic
    "#]],
    );
    check(
        check_research(Some("# Research\n")),
        expect![[r#"
        research.md has no decision; write `- Decision: …` for each topic
    "#]],
    );
    check(
        check_research(Some("Decision: a\nRationale: b\nDecision: c\nAlternatives: d\nDecision: e\n")),
        expect![[r#"
            line 1: this decision has no Alternatives considered; add what is missing below it
            line 3: this decision has no Rationale; add what is missing below it
            line 5: this decision has no Rationale and no Alternatives considered; add what is missing below it
        "#]],
    );
    check(
        check_research(Some(&format!("{whole}\nStorage: NEEDS CLARIFICATION\n"))),
        expect![[r#"
        line 7: NEEDS CLARIFICATION is still there; find it out, or decide it in research.md
    "#]],
    );
    check(
        check_quickstart(Some(" \n")),
        expect![[r#"
        quickstart.md is missing; write how the feature is run and how one sees that it works
    "#]],
    );
    check(check_quickstart(Some("Run it.\n")), expect![""]);
}
