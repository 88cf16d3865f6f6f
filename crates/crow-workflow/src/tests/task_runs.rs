//! Runs of the task list: with the model, with child agents, stopped and interrupted.

use expect_test::{Expect, expect};

use super::check;

#[track_caller]
fn check_run(script: &str, expected: &Expect) {
    let files = "have $F/spec.md: $spec\nhave $F/plan.md: $plan\nhave $F/tasks.md: $tasks";
    check(&format!("{files}\n{script}"), expected);
}

#[test]
fn tasks_are_done_one_after_the_other() {
    check_run(
        r#"
        confirm reject
        turn
        write src/main.rs: fn main() {}
        call speckit_task {"id":"T001","state":"done","note":"made"}
        turn
        call speckit_task {"id":"T002","state":"done","note":"written"}
        confirm reject
        turn
        turn
        call speckit_task {"id":"T003","state":"failed","note":"no list"}
        > /speckit.implement
        "#,
        &expect![[r#"
            > /speckit.implement
            text: No feature is selected, so the only one is used: specs/001-albums.
            feature: specs/001-albums
            plan: 0 of 3 done, 1 running
            turn: speckit/implement
            write: failed Deny("this call would be asked about")
            speckit_task: completed T001 is done
            recorded: specs/001-albums/tasks.md
            text: ✓ T001: made
            confirm: Run T002, T003 in 2 child agents at once -> Rejected { is_lasting: false }
            plan: 1 of 3 done, 1 running
            turn: speckit/task
            speckit_task: completed T002 is done
            recorded: specs/001-albums/tasks.md
            text: ✓ T002: written
            plan: 2 of 3 done, 1 running
            turn: speckit/task
            turn: speckit/task
            speckit_task: completed T003 is noted as failed
            text: ✗ T003: no list
            plan: 2 of 3 done, 0 running
            report left:
            **/speckit.implement**
            - Done in this run: 2
            - tasks.md: 2 of 3 done
            - T003 failed: no list

            Fix that or the task list; the run continues with /speckit.implement at the first open task.

            Next: `/speckit.implement`
            = Ok(Completed)
        "#]],
    );
}

#[test]
fn parallel_tasks_go_to_child_agents() {
    check_run(
        r#"
        config parallel
        turn
        call speckit_task {"id":"T001","state":"done","note":"made"}
        child I did it.\nRESULT: done
        child RESULT: failed: tests are red
        > /speckit.implement
        "#,
        &expect![[r#"
            > /speckit.implement
            text: No feature is selected, so the only one is used: specs/001-albums.
            feature: specs/001-albums
            plan: 0 of 3 done, 1 running
            turn: speckit/implement
            speckit_task: completed T001 is done
            recorded: specs/001-albums/tasks.md
            text: ✓ T001: made
            child: T002 Model in src/album.rs
            child: T003 List in src/list.rs
            plan: 1 of 3 done, 2 running
            recorded: specs/001-albums/tasks.md
            text: ✓ T002: done by a child agent
            plan: 2 of 3 done, 1 running
            text: ✗ T003: tests are red
            plan: 2 of 3 done, 0 running
            part: speckit/children Child agents did these tasks meanwhile, in the same folder. Take what they changed as it is now.⏎⏎T002:⏎I did it.⏎RESULT: done⏎T003:⏎RESULT: failed: tests are red
            plan: 2 of 3 done, 0 running
            report left:
            **/speckit.implement**
            - Done in this run: 2
            - tasks.md: 2 of 3 done
            - T003 failed: tests are red

            Fix that or the task list; the run continues with /speckit.implement at the first open task.

            Next: `/speckit.implement`
            = Ok(Completed)
        "#]],
    );
}

#[test]
fn run_that_is_stopped_continues_at_the_first_open_task() {
    check_run(
        "
        turn
        cancelled
        > /speckit.implement T001
        ",
        &expect![[r#"
            > /speckit.implement T001
            text: No feature is selected, so the only one is used: specs/001-albums.
            feature: specs/001-albums
            plan: 0 of 3 done, 1 running
            turn: speckit/implement
            plan: 0 of 3 done, 0 running
            report left:
            **/speckit.implement**
            - Done in this run: 0
            - tasks.md: 0 of 3 done

            Stopped; the run continues with /speckit.implement at the first open task.

            Next: `/speckit.implement`
            = Ok(Cancelled)
        "#]],
    );
    check_run(
        "
        turn
        ended-by-hook
        > /speckit.implement T001
        ",
        &expect![[r#"
            > /speckit.implement T001
            text: No feature is selected, so the only one is used: specs/001-albums.
            feature: specs/001-albums
            plan: 0 of 3 done, 1 running
            turn: speckit/implement
            plan: 0 of 3 done, 0 running
            report left:
            **/speckit.implement**
            - Done in this run: 0
            - tasks.md: 0 of 3 done

            The run continues with /speckit.implement at the first open task.

            Next: `/speckit.implement`
            = Ok(Completed)
        "#]],
    );
}

#[test]
fn task_without_a_report_fails() {
    check_run(
        "> /speckit.implement T001",
        &expect![[r#"
        > /speckit.implement T001
        text: No feature is selected, so the only one is used: specs/001-albums.
        feature: specs/001-albums
        plan: 0 of 3 done, 1 running
        turn: speckit/implement
        turn: speckit/task
        text: ✗ T001: the model did not report a result
        plan: 0 of 3 done, 0 running
        report left:
        **/speckit.implement**
        - Done in this run: 0
        - tasks.md: 0 of 3 done
        - T001 failed: the model did not report a result

        Fix that or the task list; the run continues with /speckit.implement at the first open task.

        Next: `/speckit.implement`
        = Ok(Completed)
    "#]],
    );
}

/// Returns a script that implements a task although a checklist is open, with the answer to the question.
fn open_checklist_script(answer: &str) -> String {
    format!(
        r#"
        have $F/checklists/ux.md: - [ ] CHK001 Are sizes stated?\n- [x] CHK002 Are colors stated?\n
        confirm {answer}
        turn
        call speckit_task {{"id":"T001","state":"done","note":"made"}}
        > /speckit.implement T001
        "#
    )
}

#[test]
fn open_checklist_items_are_confirmed() {
    check_run(
        &open_checklist_script("once"),
        &expect![[r#"
        > /speckit.implement T001
        text: No feature is selected, so the only one is used: specs/001-albums.
        confirm: Implement although 1 checklist items are open -> Allowed { is_lasting: false }
        feature: specs/001-albums
        plan: 0 of 3 done, 1 running
        turn: speckit/implement
        speckit_task: completed T001 is done
        recorded: specs/001-albums/tasks.md
        text: ✓ T001: made
        plan: 1 of 3 done, 0 running
        report done:
        **/speckit.implement**
        - Done in this run: 1
        - tasks.md: 1 of 3 done

        The run continues with /speckit.implement at the first open task.

        Next: `/speckit.implement`
        = Ok(Completed)
    "#]],
    );
}

#[test]
fn implementation_with_open_checklist_items_needs_an_approval() {
    check_run(
        &open_checklist_script("reject"),
        &expect![[r#"
        > /speckit.implement T001
        text: No feature is selected, so the only one is used: specs/001-albums.
        confirm: Implement although 1 checklist items are open -> Rejected { is_lasting: false }
        refused: | Checklist | Total | Checked | Unchecked | Status |
        |---|--:|--:|--:|---|
        | ux.md | 2 | 1 | 1 | open |

        /speckit.implement did not start: 1 checklist items are open. Tick what is done, then run it again.
        = Ok(Completed)
    "#]],
    );
    check_run(
        &open_checklist_script("cancel"),
        &expect![[r#"
        > /speckit.implement T001
        text: No feature is selected, so the only one is used: specs/001-albums.
        confirm: Implement although 1 checklist items are open -> Cancelled
        = Ok(Cancelled)
    "#]],
    );
    check_run(
        &open_checklist_script("offline"),
        &expect![[r#"
        > /speckit.implement T001
        text: No feature is selected, so the only one is used: specs/001-albums.
        confirm: Implement although 1 checklist items are open -> Unavailable { reason: "offline" }
        refused: | Checklist | Total | Checked | Unchecked | Status |
        |---|--:|--:|--:|---|
        | ux.md | 2 | 1 | 1 | open |

        /speckit.implement did not start: 1 checklist items are open, and the user could not be asked (offline). Tick what is done, or allow it with `--yes`.
        = Ok(Completed)
    "#]],
    );
}
