use super::*;

const TASKS: &str = "# Tasks: Albums

## Format: `[ID] [P?] [Story] Description`

- **[P]**: side by side

## Phase 1: Setup

- [ ] T001 Make the crate

## Phase 2: User Story 1 - Make (Priority: P1)

- [ ] T002 [P] [US1] Model in src/album.rs
- [ ] T003 [US1] List in src/list.rs

## Phase 3: Polish

- [ ] T004 [P] Documentation
";

const SPEC: &str = "## User Scenarios\n### User Story 1 - Make (Priority: P1)\n";

#[track_caller]
fn check_tasks(from: &str, to: &str, expected: Expect) {
    assert!(TASKS.contains(from));
    check(super::check_tasks(&TASKS.replacen(from, to, 1), SPEC, ""), expected);
}

#[test]
fn task_list_rules() {
    check_tasks("", "", expect![""]);
    check(
        super::check_tasks("", SPEC, ""),
        expect![[r#"
        there is no task; write lines such as `- [ ] T001 [P] [US1] What to do in src/a.rs`
        story 1 of the spec has no task; add a phase with [US1] tasks
    "#]],
    );
    check_tasks(
        "- [ ] T003 [US1]",
        "- [ ] T003",
        expect![[r#"
        line 14: T003 is in the phase of story 1; label it [US1]
    "#]],
    );
    check_tasks(
        "- [ ] T003 [US1]",
        "- [ ] T003 [US2]",
        expect![[r#"
        line 14: T003 is in the phase of story 1; label it [US1]
    "#]],
    );
    check_tasks(
        "T004 [P]",
        "T004 [US1]",
        expect![[r#"
        line 18: T004 is labelled with a story outside of a story's phase; remove the label or move it
    "#]],
    );
}

#[test]
fn ids_are_consecutive() {
    check_tasks(
        "T003",
        "T005",
        expect![[r#"
        line 14: T005 follows T002; number the tasks on without gaps, in their order
    "#]],
    );
    check_tasks(
        "T003",
        "T002",
        expect![[r#"
        line 14: T002 is there twice; every task has its own id
        line 14: T002 follows T002; number the tasks on without gaps, in their order
    "#]],
    );
    check_tasks(
        "T001",
        "T002",
        expect![[r#"
        line 9: the first task has to be T001; number the tasks on from there
        line 13: T002 is there twice; every task has its own id
    "#]],
    );
    check_tasks(
        "T004",
        "TXXX",
        expect![[r#"
        line 18: this box has no task id; begin it with one such as T001
    "#]],
    );
}

#[test]
fn task_format_is_checked() {
    check_tasks(
        " in src/list.rs",
        "",
        expect![[r#"
        line 14: T003 names no file; say the path it is about
    "#]],
    );
    check_tasks(
        " Documentation",
        "",
        expect![[r#"
        line 18: T004 says nothing; say what to do, and in which file
    "#]],
    );
    check_tasks(
        "- [ ] T001",
        "* [ ] **T001**",
        expect![[r#"
        line 9: write the task as `- [ ] T001 …`, without marks and indentation
    "#]],
    );
    check_tasks(
        "Model in src/album.rs",
        "Model of [endpoint] in src/[location]/[file].py",
        expect![[r#"
        line 13: the placeholder [endpoint] is still there; replace it, or remove its line
    "#]],
    );
    check_tasks("## Phase 1: Setup\n", "", expect![""]);
    check(
        super::check_tasks(TASKS, &format!("{SPEC}### User Story 2 - Sort (Priority: P2)\n"), ""),
        expect![[r#"
            story 2 of the spec has no task; add a phase with [US2] tasks
        "#]],
    );
}

#[test]
fn copy_of_the_template_is_rejected() {
    check(
        super::check_tasks(TASKS, SPEC, TASKS),
        expect![[r#"
        4 tasks are the samples of the template; replace them with this feature's own
    "#]],
    );
}
