//! Each step from its command to its report, with a round of repairs where the step has one.

use expect_test::expect;

use super::check;

#[test]
fn constitution_is_repaired() {
    check(
        "
        turn
        turn
        write .specify/memory/constitution.md: $constitution
        > /speckit.constitution keep it simple
        ",
        &expect![[r#"
            > /speckit.constitution keep it simple
            recorded: .specify/memory/constitution.md
            feature:
            turn: speckit/constitution
            turn: speckit/repair
            - constitution.md: line 1: [PROJECT_NAME] is still there; replace it, or remove its section
            - constitution.md: line 9: [PRINCIPLE_1_NAME] is still there; replace it, or remove its section
            - constitution.md: line 11: [PRINCIPLE_1_DESCRIPTION] is still there; replace it, or remove its section
            - constitution.md: line 15: [PRINCIPLE_2_NAME] is still there; replace it, or remove its section
            - constitution.md: line 17: [PRINCIPLE_2_DESCRIPTION] is still there; replace it, or remove its section
            - constitution.md: line 19: [PRINCIPLE_3_NAME] is still there; replace it, or remove its section
            - constitution.md: line 21: [PRINCIPLE_3_DESCRIPTION] is still there; replace it, or remove its section
            - constitution.md: line 23: [PRINCIPLE_4_NAME] is still there; replace it, or remove its section
            - constitution.md: line 25: [PRINCIPLE_4_DESCRIPTION] is still there; replace it, or remove its section
            - constitution.md: line 27: [PRINCIPLE_5_NAME] is still there; replace it, or remove its section
            - constitution.md: line 29: [PRINCIPLE_5_DESCRIPTION] is still there; replace it, or remove its section
            - constitution.md: line 31: [SECTION_2_NAME] is still there; replace it, or remove its section
            - constitution.md: line 35: [SECTION_2_CONTENT] is still there; replace it, or remove its section
            - constitution.md: line 37: [SECTION_3_NAME] is still there; replace it, or remove its section
            - constitution.md: line 41: [SECTION_3_CONTENT] is still there; replace it, or remove its section
            - constitution.md: line 47: [GOVERNANCE_RULES] is still there; replace it, or remove its section
            - constitution.md: line 49: [CONSTITUTION_VERSION] is still there; replace it, or remove its section
            - constitution.md: line 49: [RATIFICATION_DATE] is still there; replace it, or remove its section
            - constitution.md: line 49: [LAST_AMENDED_DATE] is still there; replace it, or remove its section
            - constitution.md: line 49: the version "[CONSTITUTION_VERSION]" is not of the form 1.0.0
            - constitution.md: line 49: Ratified is "[RATIFICATION_DATE]", which is not a date such as 2026-01-31
            - constitution.md: line 49: Last Amended is "[LAST_AMENDED_DATE]", which is not a date such as 2026-01-31
            - Repair the cause: supply what is missing, say what is vague, number what is out of order. Do not delete a requirement, a story or a task to be rid of a message.
            write: completed .specify/memory/constitution.md
            report done:
            **/speckit.constitution**
            - .specify/memory/constitution.md: **Version**: 1.0.0 | **Ratified**: 2026-01-02 | **Last Amended**: 2026-01-02

            Next: `/speckit.specify`
            = Ok(Completed)
        "#]],
    );
}

#[test]
fn specify_creates_a_feature_and_is_repaired() {
    check(
        "
        turn
        write specs/001-photo-albums/spec.md: # Albums
        turn
        write specs/001-photo-albums/spec.md: $spec
        > /speckit.specify photos in albums
        ",
        &expect![[r#"
            > /speckit.specify photos in albums
            side request: You name things in a few words.
            recorded: .specify/memory/constitution.md
            recorded: .specify/specs/001-photo-albums/spec.md
            recorded: .specify/specs/001-photo-albums/checklists/requirements.md
            recorded: .specify/feature.json
            feature: .specify/specs/001-photo-albums
            turn: speckit/specify
            write: completed specs/001-photo-albums/spec.md
            turn: speckit/repair
            - spec.md: the section `## User Scenarios & Testing` is missing; add it and fill it
            - spec.md: the section `## Requirements` is missing; add it and fill it
            - spec.md: the section `## Success Criteria` is missing; add it and fill it
            - spec.md: there is no story; add `### User Story 1 - Title (Priority: P1)` under User Scenarios & Testing
            - spec.md: Functional Requirements has no `- **FR-001**: …`; add at least one
            - spec.md: Measurable Outcomes has no `- **SC-001**: …`; add at least one
            - Repair the cause: supply what is missing, say what is vague, number what is out of order. Do not delete a requirement, a story or a task to be rid of a message.
            write: completed specs/001-photo-albums/spec.md
            report done:
            **/speckit.specify**
            - Feature: .specify/specs/001-photo-albums
            - spec.md: 1 user stories, 1 requirements, 1 success criteria, 0 open points
            - checklists/requirements.md: 0 of 16 checked
            - .specify/memory/constitution.md: not filled in, so no principle was checked (/speckit.constitution fills it in)

            Next: `/speckit.clarify`, `/speckit.plan`
            = Ok(Completed)
        "#]],
    );
}

#[test]
fn clarify_checks_the_spec() {
    check(
        "
        have $F/spec.md: $spec
        turn
        write $F/spec.md: # Albums
        turn
        write $F/spec.md: $spec
        > /speckit.clarify
        ",
        &expect![[r#"
            > /speckit.clarify
            text: No feature is selected, so the only one is used: specs/001-albums.
            feature: specs/001-albums
            turn: speckit/clarify
            write: completed specs/001-albums/spec.md
            turn: speckit/repair
            - spec.md: the section `## User Scenarios & Testing` is missing; add it and fill it
            - spec.md: the section `## Requirements` is missing; add it and fill it
            - spec.md: the section `## Success Criteria` is missing; add it and fill it
            - spec.md: there is no story; add `### User Story 1 - Title (Priority: P1)` under User Scenarios & Testing
            - spec.md: Functional Requirements has no `- **FR-001**: …`; add at least one
            - spec.md: Measurable Outcomes has no `- **SC-001**: …`; add at least one
            - Repair the cause: supply what is missing, say what is vague, number what is out of order. Do not delete a requirement, a story or a task to be rid of a message.
            write: completed specs/001-albums/spec.md
            report done:
            **/speckit.clarify**
            - Feature: specs/001-albums
            - spec.md: 1 user stories, 1 requirements, 1 success criteria, 0 open points
            - Answers recorded today: 0

            Next: `/speckit.plan`
            = Ok(Completed)
        "#]],
    );
}

#[test]
fn plan_is_repaired_twice() {
    check(
        "
        have $F/spec.md: $spec
        turn
        write $F/plan.md: $plan
        turn
        write $F/research.md: $research
        turn
        write $F/quickstart.md: $quickstart
        > /speckit.plan Rust
        ",
        &expect![[r#"
            > /speckit.plan Rust
            text: No feature is selected, so the only one is used: specs/001-albums.
            recorded: specs/001-albums/plan.md
            feature: specs/001-albums
            turn: speckit/plan
            write: completed specs/001-albums/plan.md
            turn: speckit/repair
            - research.md: research.md is missing; write Decision, Rationale and Alternatives of each topic
            - quickstart.md: quickstart.md is missing; write how the feature is run and how one sees that it works
            - Repair the cause: supply what is missing, say what is vague, number what is out of order. Do not delete a requirement, a story or a task to be rid of a message.
            write: completed specs/001-albums/research.md
            turn: speckit/repair
            - quickstart.md: quickstart.md is missing; write how the feature is run and how one sees that it works
            - Repair the cause: supply what is missing, say what is vague, number what is out of order. Do not delete a requirement, a story or a task to be rid of a message.
            write: completed specs/001-albums/quickstart.md
            report done:
            **/speckit.plan**
            - Feature: specs/001-albums
            - plan.md, research.md, quickstart.md

            Next: `/speckit.tasks`, `/speckit.checklist`
            = Ok(Completed)
        "#]],
    );
}

#[test]
fn plan_reports_the_problems_that_remain() {
    check(
        "
        have $F/spec.md: $spec
        turn
        write $F/plan.md: $plan
        > /speckit.plan Rust
        ",
        &expect![[r#"
            > /speckit.plan Rust
            text: No feature is selected, so the only one is used: specs/001-albums.
            recorded: specs/001-albums/plan.md
            feature: specs/001-albums
            turn: speckit/plan
            write: completed specs/001-albums/plan.md
            turn: speckit/repair
            - research.md: research.md is missing; write Decision, Rationale and Alternatives of each topic
            - quickstart.md: quickstart.md is missing; write how the feature is run and how one sees that it works
            - Repair the cause: supply what is missing, say what is vague, number what is out of order. Do not delete a requirement, a story or a task to be rid of a message.
            turn: speckit/repair
            - research.md: research.md is missing; write Decision, Rationale and Alternatives of each topic
            - quickstart.md: quickstart.md is missing; write how the feature is run and how one sees that it works
            - Repair the cause: supply what is missing, say what is vague, number what is out of order. Do not delete a requirement, a story or a task to be rid of a message.
            report left:
            **/speckit.plan**
            - Feature: specs/001-albums
            - plan.md, no other documents

            Remaining problems:
            - research.md: research.md is missing; write Decision, Rationale and Alternatives of each topic
            - quickstart.md: quickstart.md is missing; write how the feature is run and how one sees that it works
            = Ok(Completed)
        "#]],
    );
}

#[test]
fn checklist_is_repaired() {
    check(
        "
        have $F/spec.md: $spec
        have $F/plan.md: $plan
        turn
        write $F/spec.md: # Changed
        write $F/checklists/requirements.md: # Changed
        turn
        write $F/checklists/security.md: $checklist
        > /speckit.checklist security
        ",
        &expect![[r#"
            > /speckit.checklist security
            text: No feature is selected, so the only one is used: specs/001-albums.
            feature: specs/001-albums
            turn: speckit/checklist
            write: failed Deny("/speckit.checklist writes the feature's checklists only, and not requirements.md; specs/001-albums/spec.md stays as it is")
            write: failed Deny("/speckit.checklist writes the feature's checklists only, and not requirements.md; specs/001-albums/checklists/requirements.md stays as it is")
            turn: speckit/repair
            - no checklist was written; write one file in checklists/
            - Repair the cause: supply what is missing, say what is vague, number what is out of order. Do not delete a requirement, a story or a task to be rid of a message.
            write: completed specs/001-albums/checklists/security.md
            report done:
            **/speckit.checklist**
            - Feature: specs/001-albums
            - checklists/security.md: 0 of 1 checked

            Next: `/speckit.tasks`
            = Ok(Completed)
        "#]],
    );
}

#[test]
fn tasks_are_repaired_and_shown() {
    check(
        "
        have $F/spec.md: $spec
        have $F/plan.md: $plan
        turn
        write $F/tasks.md: # Tasks
        turn
        write $F/tasks.md: $tasks
        > /speckit.tasks
        ",
        &expect![[r#"
            > /speckit.tasks
            text: No feature is selected, so the only one is used: specs/001-albums.
            feature: specs/001-albums
            turn: speckit/tasks
            write: completed specs/001-albums/tasks.md
            turn: speckit/repair
            - tasks.md: there is no task; write lines such as `- [ ] T001 [P] [US1] What to do in src/a.rs`
            - tasks.md: story 1 of the spec has no task; add a phase with [US1] tasks
            - Repair the cause: supply what is missing, say what is vague, number what is out of order. Do not delete a requirement, a story or a task to be rid of a message.
            write: completed specs/001-albums/tasks.md
            plan: 0 of 3 done, 0 running
            report done:
            **/speckit.tasks**
            - Feature: specs/001-albums
            - tasks.md: 3 tasks in 2 phases, 0 done, 2 marked [P]

            Next: `/speckit.analyze`, `/speckit.implement`
            = Ok(Completed)
        "#]],
    );
}

#[test]
fn analyze_writes_nothing() {
    check(
        "
        have $F/spec.md: $spec
        have $F/plan.md: $plan
        have $F/tasks.md: $tasks
        turn
        write $F/spec.md: # Changed
        > /speckit.analyze
        ",
        &expect![[r#"
            > /speckit.analyze
            text: No feature is selected, so the only one is used: specs/001-albums.
            feature: specs/001-albums
            turn: speckit/analyze
            write: failed Deny("/speckit.analyze writes no file; specs/001-albums/spec.md stays as it is")
            report done:
            **/speckit.analyze**
            - Feature: specs/001-albums
            - tasks.md: 3 tasks in 2 phases, 0 done, 2 marked [P]

            Next: `/speckit.implement`
            = Ok(Completed)
        "#]],
    );
}
