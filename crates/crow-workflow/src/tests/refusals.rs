//! Steps that are refused before anything is written.

use expect_test::{Expect, expect};

use super::check;

#[track_caller]
fn check_refusal(setup: &str, command: &str, expected: &Expect) {
    check(&format!("{setup}\n> {command}"), expected);
}

const SPEC_AND_PLAN: &str = "have $F/spec.md: $spec\nhave $F/plan.md: $plan";

#[test]
fn step_needs_the_documents_of_its_definition() {
    check_refusal(
        "",
        "/speckit.plan",
        &expect![[r#"
        > /speckit.plan
        refused: the project has no feature yet; run /speckit.specify first
        = Ok(Completed)
    "#]],
    );
    check_refusal(
        "",
        "/speckit.clarify",
        &expect![[r#"
        > /speckit.clarify
        refused: the project has no feature yet; run /speckit.specify first
        = Ok(Completed)
    "#]],
    );
    check_refusal(
        "have $F/spec.md: $spec",
        "/speckit.checklist security",
        &expect![[r#"
        > /speckit.checklist security
        refused: specs/001-albums/plan.md does not exist; run /speckit.plan first
        = Ok(Completed)
    "#]],
    );
    check_refusal(
        "have $F/spec.md: $spec",
        "/speckit.tasks",
        &expect![[r#"
        > /speckit.tasks
        refused: specs/001-albums/plan.md does not exist; run /speckit.plan first
        = Ok(Completed)
    "#]],
    );
}

#[test]
fn step_after_the_task_list_needs_it() {
    check_refusal(
        SPEC_AND_PLAN,
        "/speckit.analyze",
        &expect![[r#"
        > /speckit.analyze
        refused: specs/001-albums/tasks.md does not exist; run /speckit.tasks first
        = Ok(Completed)
    "#]],
    );
    check_refusal(
        "have $F/plan.md: $plan",
        "/speckit.implement",
        &expect![[r#"
        > /speckit.implement
        refused: specs/001-albums/tasks.md does not exist; run /speckit.tasks first
        = Ok(Completed)
    "#]],
    );
    check_refusal(
        SPEC_AND_PLAN,
        "/speckit.converge",
        &expect![[r#"
        > /speckit.converge
        refused: specs/001-albums/tasks.md does not exist; run /speckit.tasks first
        = Ok(Completed)
    "#]],
    );
    check_refusal(
        "have $F/plan.md: $plan",
        "/speckit.taskstoissues",
        &expect![[r#"
        > /speckit.taskstoissues
        refused: specs/001-albums/tasks.md does not exist; run /speckit.tasks first
        = Ok(Completed)
    "#]],
    );
}

#[test]
fn feature_needs_a_description() {
    check_refusal(
        "",
        "/speckit.specify",
        &expect![[r#"
        > /speckit.specify
        refused: there is nothing to specify; describe after /speckit.specify what to build and why
        = Ok(Completed)
    "#]],
    );
}

#[test]
fn step_needs_a_model() {
    check_refusal(
        "config no-model",
        "/speckit.constitution",
        &expect![[r#"
        > /speckit.constitution
        = Err(Failure { kind: Config, message: "no model is configured" })
    "#]],
    );
}

#[test]
fn steps_on_tasks_need_the_right_tasks() {
    let check_tasks = |command: &str, tasks: &str, expected: &Expect| {
        check_refusal(&format!("{SPEC_AND_PLAN}\nhave $F/tasks.md: {tasks}"), command, expected);
    };
    let (open, done) = ("- [ ] T001 Set up src/a.rs\\n", "- [x] T001 Set up src/a.rs\\n");
    check_tasks(
        "/speckit.implement",
        "# Tasks\\n",
        &expect![[r#"
        > /speckit.implement
        refused: there is no task in tasks.md; run /speckit.tasks first
        = Ok(Completed)
    "#]],
    );
    check_tasks(
        "/speckit.implement T009",
        open,
        &expect![[r#"
        > /speckit.implement T009
        refused: no open task is selected; name others, or run /speckit.implement alone for all open tasks
        = Ok(Completed)
    "#]],
    );
    check_tasks(
        "/speckit.implement",
        done,
        &expect![[r#"
        > /speckit.implement
        refused: every task is done; /speckit.converge finds what the code still lacks
        = Ok(Completed)
    "#]],
    );
    check_tasks(
        "/speckit.converge",
        open,
        &expect![[r#"
        > /speckit.converge
        refused: no task is done yet, so there is nothing to compare; run /speckit.implement first
        = Ok(Completed)
    "#]],
    );
    check_tasks(
        "/speckit.taskstoissues",
        done,
        &expect![[r#"
        > /speckit.taskstoissues
        refused: every task is done, so there are no issues to create
        = Ok(Completed)
    "#]],
    );
}

#[test]
fn unknown_commands_are_refused() {
    check_refusal(
        "",
        "/speckit.pln",
        &expect![[r#"
        > /speckit.pln
        refused: There is no command /speckit.pln. The steps are /speckit.constitution, /speckit.specify, /speckit.clarify, /speckit.plan, /speckit.checklist, /speckit.tasks, /speckit.analyze, /speckit.implement, /speckit.converge, /speckit.taskstoissues; /speckit shows their state.
        = Ok(Completed)
    "#]],
    );
}
