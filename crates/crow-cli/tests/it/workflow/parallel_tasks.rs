//! Tasks marked `[P]`, given to child agents.

use expect_test::{Expect, expect};

use super::check;
use super::fixture::{leashed, played};

/// Two tasks that may run in parallel, and one after them.
const LIST: &str = "
    tasks ## Phase 1: Setup
    tasks - [ ] T001 [P] Make a.txt
    tasks - [ ] T002 [P] Make b.txt
    tasks - [ ] T003 Make c.txt
    ";

/// The model does the last one itself.
const LAST: &str = r#"model: call speckit_task {"id":"T003","state":"done","note":"made"}"#;

/// A child is identified by the task at the beginning of its prompt.
const ONE: &str = r#"child id="T001""#;
const TWO: &str = r#"child id="T002""#;

#[test]
fn children_run_concurrently_and_the_plan_shows_both() {
    check(
        &format!(
            r###"
            {LIST}
            {ONE}: text "Made a.txt.\n\nRESULT: done"
            {TWO}: hold | text "Made b.txt.\n**RESULT: done**"
            {LAST}
            > prompt /speckit.implement
            > wait in_progress T002
            > plan
            > wait ✓ T001
            > wait plan completed T001
            > plan
            > release
            > end
            > ticks
            "###
        ),
        &expect![[r#"
            > prompt /speckit.implement
            < call call-1-100002 speckit "Run T001, T002 in 2 child agents at once" pending {} "T001 Make a.txt\nT002 Make b.txt"
            ? Run T001, T002 in 2 child agents at once [allow_once, allow_always, reject_once, reject_always] -> allow_once
            < call call-1-100002 completed
            < call call-2-100003 task "T001 Make a.txt" in_progress {"task":"T001"}
            < call call-2-100004 task "T002 Make b.txt" in_progress {"task":"T002"}
            < plan in_progress T001 Make a.txt, in_progress T002 Make b.txt, pending T003 Make c.txt
            # high in_progress T001 Make a.txt {"id":"T001","phase":"Phase 1: Setup","story":null,"parallel":true,"line":2}
            # high in_progress T002 Make b.txt {"id":"T002","phase":"Phase 1: Setup","story":null,"parallel":true,"line":3}
            # high pending T003 Make c.txt {"id":"T003","phase":"Phase 1: Setup","story":null,"parallel":false,"line":4}
            < call call-2-100003 completed "Task $TASK (T001 Make a.txt) is done.\n\nMade a.txt.\n\nRESULT: done\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
            < text[note-6] ⏎✓ T001: done by a child agent⏎
            < plan completed T001 Make a.txt, in_progress T002 Make b.txt, pending T003 Make c.txt
            # high completed T001 Make a.txt {"id":"T001","phase":"Phase 1: Setup","story":null,"parallel":true,"line":2}
            # high in_progress T002 Make b.txt {"id":"T002","phase":"Phase 1: Setup","story":null,"parallel":true,"line":3}
            # high pending T003 Make c.txt {"id":"T003","phase":"Phase 1: Setup","story":null,"parallel":false,"line":4}
            < call call-2-100004 completed "Task $TASK (T002 Make b.txt) is done.\n\nMade b.txt.\n**RESULT: done**\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
            < text[note-8] ⏎✓ T002: done by a child agent⏎
            < plan completed T001 Make a.txt, completed T002 Make b.txt, pending T003 Make c.txt
            < plan completed T001 Make a.txt, completed T002 Make b.txt, in_progress T003 Make c.txt
            < call call-4-0 speckit_task "T003 done" pending {"id":"T003","state":"done","note":"made"}
            < call call-4-0 in_progress
            < call call-4-0 completed "T003 is done"
            < text[note-10] ⏎✓ T003: made⏎
            < plan completed T001 Make a.txt, completed T002 Make b.txt, completed T003 Make c.txt
            < text[msg-6] ⏎**/speckit.implement**⏎- Done in this run: 3⏎- tasks.md: 3 of 3 done⏎⏎Next: `/speckit.converge`⏎
            = end_turn
            # [X] T001 [X] T002 [X] T003; 3 bytes differ, 0 more or less
            asked user: /speckit.implement⏎<crow:speckit/implement: # Build 001-photo-albums, task by task>⏎<crow:speckit/children: Child agents did these tasks meanwhile, in the same folder. Take what they changed as it is now.>⏎<crow:speckit/task: 2 of 3 tasks of 001-photo-albums are done. The next one: (T003)>
            child asked user: You do one task of a larger piece of work, 001-photo-albums, in `$HOME/project`. Paths here and in the documents begin there.⏎⏎<task id="T001" phase="Phase 1: S… (T001)
            child asked user: You do one task of a larger piece of work, 001-photo-albums, in `$HOME/project`. Paths here and in the documents begin there.⏎⏎<task id="T002" phase="Phase 1: S… (T002)
        "#]],
    );
}

#[test]
fn tasks_run_in_sequence_if_the_user_rejects() {
    check(
        &format!(
            r###"
            {LIST}
            model: call speckit_task {{"id":"T001","state":"done","note":"made"}}
            model: call speckit_task {{"id":"T002","state":"done","note":"made"}}
            {LAST}
            > answer reject_once
            > prompt /speckit.implement
            > end
            > ticks
            "###
        ),
        &expect![[r#"
            > prompt /speckit.implement
            < call call-1-100002 speckit "Run T001, T002 in 2 child agents at once" pending {} "T001 Make a.txt\nT002 Make b.txt"
            ? Run T001, T002 in 2 child agents at once [allow_once, allow_always, reject_once, reject_always] -> reject_once
            < call call-1-100002 failed
            < plan in_progress T001 Make a.txt, pending T002 Make b.txt, pending T003 Make c.txt
            < call call-2-0 speckit_task "T001 done" pending {"id":"T001","state":"done","note":"made"}
            < call call-2-0 in_progress
            < call call-2-0 completed "T001 is done"
            < text[note-4] ⏎✓ T001: made⏎
            < plan completed T001 Make a.txt, in_progress T002 Make b.txt, pending T003 Make c.txt
            < call call-5-0 speckit_task "T002 done" pending {"id":"T002","state":"done","note":"made"}
            < call call-5-0 in_progress
            < call call-5-0 completed "T002 is done"
            < text[note-6] ⏎✓ T002: made⏎
            < plan completed T001 Make a.txt, completed T002 Make b.txt, in_progress T003 Make c.txt
            < call call-8-0 speckit_task "T003 done" pending {"id":"T003","state":"done","note":"made"}
            < call call-8-0 in_progress
            < call call-8-0 completed "T003 is done"
            < text[note-8] ⏎✓ T003: made⏎
            < plan completed T001 Make a.txt, completed T002 Make b.txt, completed T003 Make c.txt
            < text[msg-10] ⏎**/speckit.implement**⏎- Done in this run: 3⏎- tasks.md: 3 of 3 done⏎⏎Next: `/speckit.converge`⏎
            = end_turn
            # [X] T001 [X] T002 [X] T003; 3 bytes differ, 0 more or less
            asked user: /speckit.implement⏎<crow:speckit/implement: # Build 001-photo-albums, task by task (T001)>
            asked tool: T001 is done + user: <crow:speckit/task: 1 of 3 tasks of 001-photo-albums are done. The next one: (T002)>
            asked tool: T002 is done + user: <crow:speckit/task: 2 of 3 tasks of 001-photo-albums are done. The next one: (T003)>
        "#]],
    );
}

#[test]
fn tasks_run_in_sequence_without_a_user() {
    check(
        &format!(
            r###"
            {LIST}
            model: call speckit_task {{"id":"T001","state":"done","note":"made"}}
            model: call speckit_task {{"id":"T002","state":"done","note":"made"}}
            {LAST}
            > answer error
            > prompt /speckit.implement
            > end
            "###
        ),
        &expect![[r#"
            > prompt /speckit.implement
            < call call-1-100002 speckit "Run T001, T002 in 2 child agents at once" pending {} "T001 Make a.txt\nT002 Make b.txt"
            ? Run T001, T002 in 2 child agents at once [allow_once, allow_always, reject_once, reject_always] -> error
            < call call-1-100002 failed
            < plan in_progress T001 Make a.txt, pending T002 Make b.txt, pending T003 Make c.txt
            < call call-2-0 speckit_task "T001 done" pending {"id":"T001","state":"done","note":"made"}
            < call call-2-0 in_progress
            < call call-2-0 completed "T001 is done"
            < text[note-4] ⏎✓ T001: made⏎
            < plan completed T001 Make a.txt, in_progress T002 Make b.txt, pending T003 Make c.txt
            < call call-5-0 speckit_task "T002 done" pending {"id":"T002","state":"done","note":"made"}
            < call call-5-0 in_progress
            < call call-5-0 completed "T002 is done"
            < text[note-6] ⏎✓ T002: made⏎
            < plan completed T001 Make a.txt, completed T002 Make b.txt, in_progress T003 Make c.txt
            < call call-8-0 speckit_task "T003 done" pending {"id":"T003","state":"done","note":"made"}
            < call call-8-0 in_progress
            < call call-8-0 completed "T003 is done"
            < text[note-8] ⏎✓ T003: made⏎
            < plan completed T001 Make a.txt, completed T002 Make b.txt, completed T003 Make c.txt
            < text[msg-10] ⏎**/speckit.implement**⏎- Done in this run: 3⏎- tasks.md: 3 of 3 done⏎⏎Next: `/speckit.converge`⏎
            = end_turn
            asked user: /speckit.implement⏎<crow:speckit/implement: # Build 001-photo-albums, task by task (T001)>
            asked tool: T001 is done + user: <crow:speckit/task: 1 of 3 tasks of 001-photo-albums are done. The next one: (T002)>
            asked tool: T002 is done + user: <crow:speckit/task: 2 of 3 tasks of 001-photo-albums are done. The next one: (T003)>
        "#]],
    );
}

#[test]
fn never_setting_is_not_asked() {
    check(
        r###"
        config: speckit: { parallel: never }
        tasks - [ ] T001 [P] Make a.txt
        tasks - [ ] T002 [P] Make b.txt
        model: call speckit_task {"id":"T001","state":"done","note":"made"}
        model: call speckit_task {"id":"T002","state":"done","note":"made"}
        > prompt /speckit.implement
        > end
        "###,
        &expect![[r#"
            > prompt /speckit.implement
            < plan in_progress T001 Make a.txt, pending T002 Make b.txt
            < call call-2-0 speckit_task "T001 done" pending {"id":"T001","state":"done","note":"made"}
            < call call-2-0 in_progress
            < call call-2-0 completed "T001 is done"
            < text[note-3] ⏎✓ T001: made⏎
            < plan completed T001 Make a.txt, in_progress T002 Make b.txt
            < call call-5-0 speckit_task "T002 done" pending {"id":"T002","state":"done","note":"made"}
            < call call-5-0 in_progress
            < call call-5-0 completed "T002 is done"
            < text[note-5] ⏎✓ T002: made⏎
            < plan completed T001 Make a.txt, completed T002 Make b.txt
            < text[msg-7] ⏎**/speckit.implement**⏎- Done in this run: 2⏎- tasks.md: 2 of 2 done⏎⏎Next: `/speckit.converge`⏎
            = end_turn
            asked user: /speckit.implement⏎<crow:speckit/implement: # Build 001-photo-albums, task by task (T001)>
            asked tool: T001 is done + user: <crow:speckit/task: 1 of 2 tasks of 001-photo-albums are done. The next one: (T002)>
        "#]],
    );
}

#[test]
fn always_option_is_asked_once_in_a_run() {
    check(
        r###"
        tasks ## Phase 1: Setup
        tasks - [ ] T001 [P] Make a.txt
        tasks - [ ] T002 [P] Make b.txt
        tasks ## Phase 2: More
        tasks - [ ] T003 [P] Make c.txt
        tasks - [ ] T004 [P] Make d.txt
        child id="T001": text "RESULT: done"
        child id="T002": hold | text "RESULT: done"
        child id="T003": text "RESULT: done"
        child id="T004": hold | text "RESULT: done"
        > answer allow_always
        > prompt /speckit.implement
        > wait ✓ T001
        > release
        > wait ✓ T003
        > release
        > end
        > ticks
        "###,
        &expect![[r#"
            > prompt /speckit.implement
            < call call-1-100002 speckit "Run T001, T002 in 2 child agents at once" pending {} "T001 Make a.txt\nT002 Make b.txt"
            ? Run T001, T002 in 2 child agents at once [allow_once, allow_always, reject_once, reject_always] -> allow_always
            < call call-1-100002 completed
            < call call-2-100003 task "T001 Make a.txt" in_progress {"task":"T001"}
            < call call-2-100004 task "T002 Make b.txt" in_progress {"task":"T002"}
            < plan in_progress T001 Make a.txt, in_progress T002 Make b.txt, pending T003 Make c.txt, pending T004 Make d.txt
            < call call-2-100003 completed "Task $TASK (T001 Make a.txt) is done.\n\nRESULT: done\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
            < text[note-6] ⏎✓ T001: done by a child agent⏎
            < plan completed T001 Make a.txt, in_progress T002 Make b.txt, pending T003 Make c.txt, pending T004 Make d.txt
            < call call-2-100004 completed "Task $TASK (T002 Make b.txt) is done.\n\nRESULT: done\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
            < text[note-8] ⏎✓ T002: done by a child agent⏎
            < plan completed T001 Make a.txt, completed T002 Make b.txt, pending T003 Make c.txt, pending T004 Make d.txt
            < call call-3-100009 task "T003 Make c.txt" in_progress {"task":"T003"}
            < call call-3-100010 task "T004 Make d.txt" in_progress {"task":"T004"}
            < plan completed T001 Make a.txt, completed T002 Make b.txt, in_progress T003 Make c.txt, in_progress T004 Make d.txt
            < call call-3-100009 completed "Task $TASK (T003 Make c.txt) is done.\n\nRESULT: done\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
            < text[note-12] ⏎✓ T003: done by a child agent⏎
            < plan completed T001 Make a.txt, completed T002 Make b.txt, completed T003 Make c.txt, in_progress T004 Make d.txt
            < call call-3-100010 completed "Task $TASK (T004 Make d.txt) is done.\n\nRESULT: done\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
            < text[note-14] ⏎✓ T004: done by a child agent⏎
            < plan completed T001 Make a.txt, completed T002 Make b.txt, completed T003 Make c.txt, completed T004 Make d.txt
            < plan completed T001 Make a.txt, completed T002 Make b.txt, completed T003 Make c.txt, completed T004 Make d.txt
            < text[msg-4] ⏎**/speckit.implement**⏎- Done in this run: 4⏎- tasks.md: 4 of 4 done⏎⏎Next: `/speckit.converge`⏎
            = end_turn
            # [X] T001 [X] T002 [X] T003 [X] T004; 4 bytes differ, 0 more or less
            child asked user: You do one task of a larger piece of work, 001-photo-albums, in `$HOME/project`. Paths here and in the documents begin there.⏎⏎<task id="T001" phase="Phase 1: S… (T001)
            child asked user: You do one task of a larger piece of work, 001-photo-albums, in `$HOME/project`. Paths here and in the documents begin there.⏎⏎<task id="T002" phase="Phase 1: S… (T002)
            child asked user: You do one task of a larger piece of work, 001-photo-albums, in `$HOME/project`. Paths here and in the documents begin there.⏎⏎<task id="T003" phase="Phase 2: M… (T003)
            child asked user: You do one task of a larger piece of work, 001-photo-albums, in `$HOME/project`. Paths here and in the documents begin there.⏎⏎<task id="T004" phase="Phase 2: M… (T004)
        "#]],
    );
}

/// Runs two children, one with this script; returns the reports about both.
#[track_caller]
fn check_result(answer: &str, transcript: &Expect) {
    let played = played(&format!(
        r###"
        config: speckit: {{ parallel: always }}
        {LIST}
        {ONE}: {answer}
        {TWO}: hold | text "RESULT: done"
        > prompt /speckit.implement
        > wait ✗ T001
        > release
        > end
        > ticks
        "###
    ));
    let is_said = |line: &&str| line.starts_with("< text") || line.starts_with('#') || line.starts_with('=');
    let said: String = played.lines().filter(is_said).map(|line| format!("{line}\n")).collect();
    transcript.assert_eq(&said);
}

#[test]
fn missing_report_of_a_child_is_no_success() {
    check_result(
        r#"text "I made it.""#,
        &expect![[r#"
            < text[note-4] ⏎✗ T001: the child agent did not report a result⏎
            < text[note-6] ⏎✓ T002: done by a child agent⏎
            < text[msg-3] ⏎**/speckit.implement**⏎- Done in this run: 1⏎- tasks.md: 1 of 3 done⏎- T001 failed: the child agent did not report a result⏎⏎Fix that or the task list; the run continues with /speckit.implement at the first open task.⏎⏎Next: `/speckit.implement`⏎
            = end_turn
            # [ ] T001 [X] T002 [ ] T003; 1 bytes differ, 0 more or less
        "#]],
    );
}

#[test]
fn last_report_of_a_child_counts() {
    check_result(
        r#"text "RESULT: done\nRESULT: failed: no room""#,
        &expect![[r#"
            < text[note-4] ⏎✗ T001: no room⏎
            < text[note-6] ⏎✓ T002: done by a child agent⏎
            < text[msg-3] ⏎**/speckit.implement**⏎- Done in this run: 1⏎- tasks.md: 1 of 3 done⏎- T001 failed: no room⏎⏎Fix that or the task list; the run continues with /speckit.implement at the first open task.⏎⏎Next: `/speckit.implement`⏎
            = end_turn
            # [ ] T001 [X] T002 [ ] T003; 1 bytes differ, 0 more or less
        "#]],
    );
}

#[test]
fn child_that_breaks_has_failed() {
    check_result(
        r#"status 500 {"error":{"message":"out of order"}}"#,
        &expect![[r#"
            < text[note-4] ⏎✗ T001: Task $TASK (T001 Make a.txt) failed: `fake` is overloaded or failing for `scripted` (500): out of order; try again later.⏎
            < text[note-6] ⏎✓ T002: done by a child agent⏎
            < text[msg-3] ⏎**/speckit.implement**⏎- Done in this run: 1⏎- tasks.md: 1 of 3 done⏎- T001 failed: Task $TASK (T001 Make a.txt) failed: `fake` is overloaded or failing for `scripted` (500): out of order; try again later.⏎⏎Fix that or the task list; the run continues with /speckit.implement at the first open task.⏎⏎Next: `/speckit.implement`⏎
            = end_turn
            # [ ] T001 [X] T002 [ ] T003; 1 bytes differ, 0 more or less
        "#]],
    );
}

#[test]
fn child_asks_the_user() {
    check(
        r###"
        tasks - [ ] T001 [P] Make a.txt
        tasks - [ ] T002 [P] Make b.txt
        child id="T001": hold | call write {"file_path":"a.txt","content":"a"}
        child id="T001": text "RESULT: done"
        child id="T002": text "RESULT: done"
        > answer allow_once
        > answer reject_once
        > prompt /speckit.implement
        > wait plan in_progress T001 Make a.txt, completed T002
        > release
        > end
        > show a.txt
        > ticks
        "###,
        &expect![[r#"
            > prompt /speckit.implement
            < call call-1-100002 speckit "Run T001, T002 in 2 child agents at once" pending {} "T001 Make a.txt\nT002 Make b.txt"
            ? Run T001, T002 in 2 child agents at once [allow_once, allow_always, reject_once, reject_always] -> allow_once
            < call call-1-100002 completed
            < call call-2-100003 task "T001 Make a.txt" in_progress {"task":"T001"}
            < call call-2-100004 task "T002 Make b.txt" in_progress {"task":"T002"}
            < plan in_progress T001 Make a.txt, in_progress T002 Make b.txt
            < call call-2-100004 completed "Task $TASK (T002 Make b.txt) is done.\n\nRESULT: done\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
            < text[note-6] ⏎✓ T002: done by a child agent⏎
            < plan in_progress T001 Make a.txt, completed T002 Make b.txt
            ? T001 Make a.txt: Write a.txt [allow_once, allow_always, allow_project, reject_once] -> reject_once
            < call call-2-100003 completed "Task $TASK (T001 Make a.txt) is done.\n\nRESULT: done\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
            < text[note-8] ⏎✓ T001: done by a child agent⏎
            < plan completed T001 Make a.txt, completed T002 Make b.txt
            < plan completed T001 Make a.txt, completed T002 Make b.txt
            < text[msg-3] ⏎**/speckit.implement**⏎- Done in this run: 2⏎- tasks.md: 2 of 2 done⏎⏎Next: `/speckit.converge`⏎
            = end_turn
            # no a.txt
            # [X] T001 [X] T002; 2 bytes differ, 0 more or less
            child asked tool: not run: the user rejected it
            child asked user: You do one task of a larger piece of work, 001-photo-albums, in `$HOME/project`. Paths here and in the documents begin there.⏎⏎<task id="T001" phase="">⏎Make a.… (T001)
            child asked user: You do one task of a larger piece of work, 001-photo-albums, in `$HOME/project`. Paths here and in the documents begin there.⏎⏎<task id="T002" phase="">⏎Make b.… (T002)
        "#]],
    );
}

#[test]
fn spec_changes_by_a_child_are_reverted() {
    check(
        r###"
        config: permissions: { mode: auto }
        config: speckit: { parallel: always }
        file specs/001-photo-albums/spec.md "# Feature Specification: Photo Albums\n"
        tasks - [ ] T001 [P] Make a.txt
        tasks - [ ] T002 [P] Make b.txt
        child id="T001": call read {"file_path":"specs/001-photo-albums/spec.md"}
        child id="T001": call write {"file_path":"specs/001-photo-albums/spec.md","content":"mine"}
        child id="T001": text "RESULT: done"
        child id="T002": hold | text "RESULT: done"
        > prompt /speckit.implement
        > wait ✓ T001
        > release
        > end
        > ticks
        > show specs/001-photo-albums/spec.md
        "###,
        &expect![[r##"
            > prompt /speckit.implement
            < call call-2-100002 task "T001 Make a.txt" in_progress {"task":"T001"}
            < call call-2-100003 task "T002 Make b.txt" in_progress {"task":"T002"}
            < plan in_progress T001 Make a.txt, in_progress T002 Make b.txt
            < call call-2-100002 completed "Task $TASK (T001 Make a.txt) is done.\n\nRESULT: done\n\nIt changed 1 file with its tools (+1 -1):\n  $HOME/project/specs/001-photo-albums/spec.md (+1 -1)\n\nThe whole" diff $HOME/project/specs/001-photo-albums/spec.md "# Feature Specification: Photo Albums\n" -> "mine"
            < text[note-5] ⏎✓ T001: done by a child agent⏎
            < plan completed T001 Make a.txt, in_progress T002 Make b.txt
            < call call-2-100003 completed "Task $TASK (T002 Make b.txt) is done.\n\nRESULT: done\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
            < text[note-7] ⏎✓ T002: done by a child agent⏎
            < plan completed T001 Make a.txt, completed T002 Make b.txt
            < text[note-8] ⏎/speckit.implement may not change specs/001-photo-albums/spec.md; it was restored, and the changed version is in .specify/crow/set-aside.⏎
            < plan completed T001 Make a.txt, completed T002 Make b.txt
            < text[msg-3] ⏎**/speckit.implement**⏎- Done in this run: 2⏎- tasks.md: 2 of 2 done⏎⏎Next: `/speckit.converge`⏎
            = end_turn
            # [X] T001 [X] T002; 2 bytes differ, 0 more or less
            # specs/001-photo-albums/spec.md
            # | # Feature Specification: Photo Albums
            child asked tool:      1	# Feature Specification: Photo Albums⏎
            child asked tool: replaced specs/001-photo-albums/spec.md: 1 line before, 1 line now
            child asked user: You do one task of a larger piece of work, 001-photo-albums, in `$HOME/project`. Paths here and in the documents begin there.⏎⏎<task id="T001" phase="">⏎Make a.… (T001)
            child asked user: You do one task of a larger piece of work, 001-photo-albums, in `$HOME/project`. Paths here and in the documents begin there.⏎⏎<task id="T002" phase="">⏎Make b.… (T002)
        "##]],
    );
}

#[test]
fn cancel_leaves_nothing_of_the_children() {
    check(
        &format!(
            r###"
            config: permissions: {{ mode: auto }}
            config: speckit: {{ parallel: always }}
            {LIST}
            {ONE}: {}
            {TWO}: hold
            > prompt /speckit.implement
            > wait in_progress T002
            > held
            > asked 2
            > cancel
            > end
            > gone
            > ticks
            "###,
            leashed()
        ),
        &expect![[r#"
            > prompt /speckit.implement
            < call call-2-100002 task "T001 Make a.txt" in_progress {"task":"T001"}
            < call call-2-100003 task "T002 Make b.txt" in_progress {"task":"T002"}
            < plan in_progress T001 Make a.txt, in_progress T002 Make b.txt, pending T003 Make c.txt
            > cancel
            < call call-2-100002 failed "Task $TASK (T001 Make a.txt) was cancelled.\n\nIt said nothing.\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
            < call call-2-100003 failed "Task $TASK (T002 Make b.txt) was cancelled.\n\nIt said nothing.\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
            < plan pending T001 Make a.txt, pending T002 Make b.txt, pending T003 Make c.txt
            < text[msg-3] ⏎**/speckit.implement**⏎- Done in this run: 0⏎- tasks.md: 0 of 3 done⏎⏎Stopped; the run continues with /speckit.implement at the first open task.⏎⏎Next: `/speckit.implement`⏎
            = cancelled
            # [ ] T001 [ ] T002 [ ] T003; 0 bytes differ, 0 more or less
            child asked user: You do one task of a larger piece of work, 001-photo-albums, in `$HOME/project`. Paths here and in the documents begin there.⏎⏎<task id="T001" phase="Phase 1: S… (T001)
            child asked user: You do one task of a larger piece of work, 001-photo-albums, in `$HOME/project`. Paths here and in the documents begin there.⏎⏎<task id="T002" phase="Phase 1: S… (T002)
        "#]],
    );
}

#[test]
fn tasks_run_in_sequence_where_children_are_not_allowed() {
    check(
        &format!(
            r###"
            config: agents: {{ max_depth: 0 }}
            {LIST}
            model: call speckit_task {{"id":"T001","state":"done","note":"made"}}
            model: call speckit_task {{"id":"T002","state":"done","note":"made"}}
            {LAST}
            > prompt /speckit.implement
            > end
            > ticks
            "###
        ),
        &expect![[r#"
            > prompt /speckit.implement
            < call call-1-100002 speckit "Run T001, T002 in 2 child agents at once" pending {} "T001 Make a.txt\nT002 Make b.txt"
            ? Run T001, T002 in 2 child agents at once [allow_once, allow_always, reject_once, reject_always] -> allow_once
            < call call-1-100002 completed
            < call call-2-100003 task "T001 Make a.txt" in_progress {"task":"T001"}
            < call call-2-100003 failed "No child could be started: this agent is 0 levels below the root, and agents.max_depth allows 0; do the work yourself"
            < call call-2-100004 task "T002 Make b.txt" in_progress {"task":"T002"}
            < call call-2-100004 failed "No child could be started: this agent is 0 levels below the root, and agents.max_depth allows 0; do the work yourself"
            < plan in_progress T001 Make a.txt, pending T002 Make b.txt, pending T003 Make c.txt
            < call call-3-0 speckit_task "T001 done" pending {"id":"T001","state":"done","note":"made"}
            < call call-3-0 in_progress
            < call call-3-0 completed "T001 is done"
            < text[note-6] ⏎✓ T001: made⏎
            < plan completed T001 Make a.txt, in_progress T002 Make b.txt, pending T003 Make c.txt
            < call call-6-0 speckit_task "T002 done" pending {"id":"T002","state":"done","note":"made"}
            < call call-6-0 in_progress
            < call call-6-0 completed "T002 is done"
            < text[note-8] ⏎✓ T002: made⏎
            < plan completed T001 Make a.txt, completed T002 Make b.txt, in_progress T003 Make c.txt
            < call call-9-0 speckit_task "T003 done" pending {"id":"T003","state":"done","note":"made"}
            < call call-9-0 in_progress
            < call call-9-0 completed "T003 is done"
            < text[note-10] ⏎✓ T003: made⏎
            < plan completed T001 Make a.txt, completed T002 Make b.txt, completed T003 Make c.txt
            < text[msg-11] ⏎**/speckit.implement**⏎- Done in this run: 3⏎- tasks.md: 3 of 3 done⏎⏎Next: `/speckit.converge`⏎
            = end_turn
            # [X] T001 [X] T002 [X] T003; 3 bytes differ, 0 more or less
            asked user: /speckit.implement⏎<crow:speckit/implement: # Build 001-photo-albums, task by task>⏎<crow:speckit/task: 0 of 3 tasks of 001-photo-albums are done. The next one: (T001)>
            asked tool: T001 is done + user: <crow:speckit/task: 1 of 3 tasks of 001-photo-albums are done. The next one: (T002)>
            asked tool: T002 is done + user: <crow:speckit/task: 2 of 3 tasks of 001-photo-albums are done. The next one: (T003)>
        "#]],
    );
}

#[test]
fn task_without_a_slot_runs_later() {
    check(
        &format!(
            r###"
            config: agents: {{ max_children: 1 }}
            config: speckit: {{ parallel: always }}
            {LIST}
            {ONE}: hold | text "RESULT: done"
            model: call speckit_task {{"id":"T002","state":"done","note":"made"}}
            {LAST}
            > prompt /speckit.implement
            > wait No child
            > release
            > end
            > ticks
            "###
        ),
        &expect![[r#"
            > prompt /speckit.implement
            < call call-2-100002 task "T001 Make a.txt" in_progress {"task":"T001"}
            < call call-2-100003 task "T002 Make b.txt" in_progress {"task":"T002"}
            < call call-2-100003 failed "No child could be started: agents.max_children allows 1 child at a time; wait for one to finish or cancel it"
            < plan in_progress T001 Make a.txt, pending T002 Make b.txt, pending T003 Make c.txt
            < call call-2-100002 completed "Task $TASK (T001 Make a.txt) is done.\n\nRESULT: done\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
            < text[note-5] ⏎✓ T001: done by a child agent⏎
            < plan completed T001 Make a.txt, pending T002 Make b.txt, pending T003 Make c.txt
            < plan completed T001 Make a.txt, in_progress T002 Make b.txt, pending T003 Make c.txt
            < call call-4-0 speckit_task "T002 done" pending {"id":"T002","state":"done","note":"made"}
            < call call-4-0 in_progress
            < call call-4-0 completed "T002 is done"
            < text[note-7] ⏎✓ T002: made⏎
            < plan completed T001 Make a.txt, completed T002 Make b.txt, in_progress T003 Make c.txt
            < call call-7-0 speckit_task "T003 done" pending {"id":"T003","state":"done","note":"made"}
            < call call-7-0 in_progress
            < call call-7-0 completed "T003 is done"
            < text[note-9] ⏎✓ T003: made⏎
            < plan completed T001 Make a.txt, completed T002 Make b.txt, completed T003 Make c.txt
            < text[msg-9] ⏎**/speckit.implement**⏎- Done in this run: 3⏎- tasks.md: 3 of 3 done⏎⏎Next: `/speckit.converge`⏎
            = end_turn
            # [X] T001 [X] T002 [X] T003; 3 bytes differ, 0 more or less
            asked user: /speckit.implement⏎<crow:speckit/implement: # Build 001-photo-albums, task by task>⏎<crow:speckit/children: Child agents did these tasks meanwhile, in the same folder. Take what they changed as it is now.>⏎<crow:speckit/task: 1 of 3 tasks of 001-photo-albums are done. The next one: (T002)>
            asked tool: T002 is done + user: <crow:speckit/task: 2 of 3 tasks of 001-photo-albums are done. The next one: (T003)>
            child asked user: You do one task of a larger piece of work, 001-photo-albums, in `$HOME/project`. Paths here and in the documents begin there.⏎⏎<task id="T001" phase="Phase 1: S… (T001)
        "#]],
    );
}

#[test]
fn kill_leaves_nothing_of_the_children_and_their_tasks_open() {
    check(
        &format!(
            r###"
            config: permissions: {{ mode: auto }}
            config: speckit: {{ parallel: always }}
            {LIST}
            {ONE}: {}
            {TWO}: hold
            > prompt /speckit.implement
            > wait in_progress T002
            > held
            > asked 2
            > kill
            > gone
            > ticks
            > load
            > wait tasks ended
            "###,
            leashed()
        ),
        &expect![[r#"
            > prompt /speckit.implement
            < call call-2-100002 task "T001 Make a.txt" in_progress {"task":"T001"}
            < call call-2-100003 task "T002 Make b.txt" in_progress {"task":"T002"}
            < plan in_progress T001 Make a.txt, in_progress T002 Make b.txt, pending T003 Make c.txt
            > kill
            # [ ] T001 [ ] T002 [ ] T003; 0 bytes differ, 0 more or less
            > load
            < prompt[msg-0] /speckit.implement
            < plan pending T001 Make a.txt, pending T002 Make b.txt, pending T003 Make c.txt
            < thought[] 2 tasks ended while this session was closed. The model gets the result with your next prompt.⏎
            child asked user: You do one task of a larger piece of work, 001-photo-albums, in `$HOME/project`. Paths here and in the documents begin there.⏎⏎<task id="T001" phase="Phase 1: S… (T001)
            child asked user: You do one task of a larger piece of work, 001-photo-albums, in `$HOME/project`. Paths here and in the documents begin there.⏎⏎<task id="T002" phase="Phase 1: S… (T002)
        "#]],
    );
}
