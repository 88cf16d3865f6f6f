//! Interrupted runs of tasks, and how the next one continues.

use expect_test::expect;

use super::check;

#[test]
fn cancelled_task_is_open_and_first_in_the_next_run() {
    check(
        r###"
        tasks - [ ] T001 Make a.txt
        tasks - [ ] T002 Make b.txt
        model: call speckit_task {"id":"T001","state":"done","note":"made"}
        model: text "I begin" | hold
        model: call speckit_task {"id":"T002","state":"done","note":"made"}
        > prompt /speckit.implement
        > wait I begin
        > cancel
        > end
        > ticks
        > plan
        > prompt /speckit.implement
        > end
        > ticks
        "###,
        &expect![[r#"
            > prompt /speckit.implement
            < plan in_progress T001 Make a.txt, pending T002 Make b.txt
            < call call-2-0 speckit_task "T001 done" pending {"id":"T001","state":"done","note":"made"}
            < call call-2-0 in_progress
            < call call-2-0 completed "T001 is done"
            < text[note-3] ⏎✓ T001: made⏎
            < plan completed T001 Make a.txt, in_progress T002 Make b.txt
            < text[msg-5] I begin
            > cancel
            < plan completed T001 Make a.txt, pending T002 Make b.txt
            < text[msg-6] ⏎**/speckit.implement**⏎- Done in this run: 1⏎- tasks.md: 1 of 2 done⏎⏎Stopped; the run continues with /speckit.implement at the first open task.⏎⏎Next: `/speckit.implement`⏎
            = cancelled
            # [X] T001 [ ] T002; 1 bytes differ, 0 more or less
            # medium completed T001 Make a.txt {"id":"T001","phase":null,"story":null,"parallel":false,"line":1}
            # medium pending T002 Make b.txt {"id":"T002","phase":null,"story":null,"parallel":false,"line":2}
            > prompt /speckit.implement
            < plan completed T001 Make a.txt, in_progress T002 Make b.txt
            < call call-9-0 speckit_task "T002 done" pending {"id":"T002","state":"done","note":"made"}
            < call call-9-0 in_progress
            < call call-9-0 completed "T002 is done"
            < text[note-6] ⏎✓ T002: made⏎
            < plan completed T001 Make a.txt, completed T002 Make b.txt
            < text[msg-11] ⏎**/speckit.implement**⏎- Done in this run: 1⏎- tasks.md: 2 of 2 done⏎⏎Next: `/speckit.converge`⏎
            = end_turn
            # [X] T001 [X] T002; 2 bytes differ, 0 more or less
            asked user: /speckit.implement⏎<crow:speckit/implement: # Build 001-photo-albums, task by task (T001)>
            asked tool: T001 is done + user: <crow:speckit/task: 1 of 2 tasks of 001-photo-albums are done. The next one: (T002)>
            asked user: <crow:speckit/report: **/speckit.implement**>⏎/speckit.implement⏎<crow:speckit/implement: # Build 001-photo-albums, task by task (T002)>
        "#]],
    );
}

#[test]
fn report_before_the_cancellation_counts() {
    check(
        r###"
        config: permissions: { mode: auto }
        tasks - [ ] T001 Make a.txt
        tasks - [ ] T002 Make b.txt
        model: call speckit_task {"id":"T001","state":"done","note":"made"} | call terminal {"command":"echo begun; tail -f /dev/null"}
        > prompt /speckit.implement
        > wait ~  "begun
        > cancel
        > end
        > ticks
        "###,
        &expect![[r#"
            > prompt /speckit.implement
            < plan in_progress T001 Make a.txt, pending T002 Make b.txt
            < call call-2-0 speckit_task "T001 done" pending {"id":"T001","state":"done","note":"made"}
            < call call-2-1 terminal "`echo begun; tail -f /dev/null`" pending {"command":"echo begun; tail -f /dev/null"}
            < call call-2-0 in_progress
            < call call-2-0 completed "T001 is done"
            < call call-2-1 in_progress
            > cancel
            < call call-2-1 failed "begun\nstopped: the turn was cancelled"
            < text[note-3] ⏎✓ T001: made⏎
            < plan completed T001 Make a.txt, pending T002 Make b.txt
            < text[msg-5] ⏎**/speckit.implement**⏎- Done in this run: 1⏎- tasks.md: 1 of 2 done⏎⏎Stopped; the run continues with /speckit.implement at the first open task.⏎⏎Next: `/speckit.implement`⏎
            = cancelled
            # [X] T001 [ ] T002; 1 bytes differ, 0 more or less
            asked user: /speckit.implement⏎<crow:speckit/implement: # Build 001-photo-albums, task by task (T001)>
        "#]],
    );
}

#[test]
fn killed_run_continues_at_the_first_open_task() {
    check(
        r###"
        tasks - [ ] T001 Make a.txt
        tasks - [ ] T002 Make b.txt
        model: call speckit_task {"id":"T001","state":"done","note":"made"}
        model: text "I begin" | hold
        model: call speckit_task {"id":"T002","state":"done","note":"made"}
        > prompt /speckit.implement
        > wait I begin
        > kill
        > ticks
        > load
        > wait < plan
        > plan
        > prompt /speckit.implement
        > end
        > ticks
        "###,
        &expect![[r#"
            > prompt /speckit.implement
            < plan in_progress T001 Make a.txt, pending T002 Make b.txt
            < call call-2-0 speckit_task "T001 done" pending {"id":"T001","state":"done","note":"made"}
            < call call-2-0 in_progress
            < call call-2-0 completed "T001 is done"
            < text[note-3] ⏎✓ T001: made⏎
            < plan completed T001 Make a.txt, in_progress T002 Make b.txt
            < text[msg-5] I begin
            > kill
            # [X] T001 [ ] T002; 1 bytes differ, 0 more or less
            > load
            < prompt[msg-0] /speckit.implement
            < call call-2-0 speckit_task "T001 done" completed {"id":"T001","state":"done","note":"made"} "T001 is done"
            < text[msg-5] I begin
            < plan completed T001 Make a.txt, pending T002 Make b.txt
            # medium completed T001 Make a.txt {"id":"T001","phase":null,"story":null,"parallel":false,"line":1}
            # medium pending T002 Make b.txt {"id":"T002","phase":null,"story":null,"parallel":false,"line":2}
            > prompt /speckit.implement
            < plan completed T001 Make a.txt, in_progress T002 Make b.txt
            < call call-8-0 speckit_task "T002 done" pending {"id":"T002","state":"done","note":"made"}
            < call call-8-0 in_progress
            < call call-8-0 completed "T002 is done"
            < text[note-3] ⏎✓ T002: made⏎
            < plan completed T001 Make a.txt, completed T002 Make b.txt
            < text[msg-10] ⏎**/speckit.implement**⏎- Done in this run: 1⏎- tasks.md: 2 of 2 done⏎⏎Next: `/speckit.converge`⏎
            = end_turn
            # [X] T001 [X] T002; 2 bytes differ, 0 more or less
            asked user: /speckit.implement⏎<crow:speckit/implement: # Build 001-photo-albums, task by task (T001)>
            asked tool: T001 is done + user: <crow:speckit/task: 1 of 2 tasks of 001-photo-albums are done. The next one: (T002)>
            asked user: /speckit.implement⏎<crow:speckit/implement: # Build 001-photo-albums, task by task (T002)>
        "#]],
    );
}

#[test]
fn request_limit_ends_the_run() {
    check(
        r###"
        config: max_turn_requests: 2
        tasks - [ ] T001 Make a.txt
        tasks - [ ] T002 Make b.txt
        model: call speckit_task {"id":"T001","state":"done","note":"made"}
        model: call read {"file_path":"a.txt"}
        model: call read {"file_path":"a.txt"}
        > prompt /speckit.implement
        > end
        > ticks
        "###,
        &expect![[r#"
            > prompt /speckit.implement
            < plan in_progress T001 Make a.txt, pending T002 Make b.txt
            < call call-2-0 speckit_task "T001 done" pending {"id":"T001","state":"done","note":"made"}
            < call call-2-0 in_progress
            < call call-2-0 completed "T001 is done"
            < text[note-3] ⏎✓ T001: made⏎
            < plan completed T001 Make a.txt, in_progress T002 Make b.txt
            < call call-5-0 read "Read a.txt" pending {"file_path":"a.txt"}
            < call call-5-0 in_progress
            < call call-5-0 failed "could not read a.txt: it does not exist"
            < call call-7-0 read "Read a.txt" pending {"file_path":"a.txt"}
            < call call-7-0 in_progress
            < call call-7-0 failed "could not read a.txt: it does not exist"
            < plan completed T001 Make a.txt, pending T002 Make b.txt
            < text[msg-9] ⏎**/speckit.implement**⏎- Done in this run: 1⏎- tasks.md: 1 of 2 done⏎⏎The turn reached its request limit; the run continues with /speckit.implement at the first open task.⏎⏎Next: `/speckit.implement`⏎
            = max_turn_requests
            # [X] T001 [ ] T002; 1 bytes differ, 0 more or less
            asked user: /speckit.implement⏎<crow:speckit/implement: # Build 001-photo-albums, task by task (T001)>
            asked tool: T001 is done + user: <crow:speckit/task: 1 of 2 tasks of 001-photo-albums are done. The next one: (T002)>
            asked tool: could not read a.txt: it does not exist
        "#]],
    );
}

#[test]
fn model_error_ends_the_run() {
    check(
        r###"
        tasks - [ ] T001 Make a.txt
        tasks - [ ] T002 Make b.txt
        model: call speckit_task {"id":"T001","state":"done","note":"made"}
        model: status 500 {"error":{"message":"out of order"}}
        model: call speckit_task {"id":"T002","state":"done","note":"made"}
        > prompt /speckit.implement
        > end
        > ticks
        > prompt /speckit.implement
        > end
        > ticks
        "###,
        &expect![[r#"
            > prompt /speckit.implement
            < plan in_progress T001 Make a.txt, pending T002 Make b.txt
            < call call-2-0 speckit_task "T001 done" pending {"id":"T001","state":"done","note":"made"}
            < call call-2-0 in_progress
            < call call-2-0 completed "T001 is done"
            < text[note-3] ⏎✓ T001: made⏎
            < plan completed T001 Make a.txt, in_progress T002 Make b.txt
            < plan completed T001 Make a.txt, pending T002 Make b.txt
            < text[msg-5] ⏎**/speckit.implement**⏎- Done in this run: 1⏎- tasks.md: 1 of 2 done⏎⏎The request to the model failed; the run continues with /speckit.implement at the first open task.⏎⏎Next: `/speckit.implement`⏎
            ! "provider_overloaded" "`fake` is overloaded or failing for `scripted` (500): out of order; try again later"
            # [X] T001 [ ] T002; 1 bytes differ, 0 more or less
            > prompt /speckit.implement
            < plan completed T001 Make a.txt, in_progress T002 Make b.txt
            < call call-8-0 speckit_task "T002 done" pending {"id":"T002","state":"done","note":"made"}
            < call call-8-0 in_progress
            < call call-8-0 completed "T002 is done"
            < text[note-6] ⏎✓ T002: made⏎
            < plan completed T001 Make a.txt, completed T002 Make b.txt
            < text[msg-10] ⏎**/speckit.implement**⏎- Done in this run: 1⏎- tasks.md: 2 of 2 done⏎⏎Next: `/speckit.converge`⏎
            = end_turn
            # [X] T001 [X] T002; 2 bytes differ, 0 more or less
            asked user: /speckit.implement⏎<crow:speckit/implement: # Build 001-photo-albums, task by task (T001)>
            asked tool: T001 is done + user: <crow:speckit/task: 1 of 2 tasks of 001-photo-albums are done. The next one: (T002)>
            asked tool: T001 is done + user: <crow:speckit/task: 1 of 2 tasks of 001-photo-albums are done. The next one: (T002)>⏎<crow:speckit/report: **/speckit.implement**>⏎/speckit.implement⏎<crow:speckit/implement: # Build 001-photo-albums, task by task (T002)>
        "#]],
    );
}

#[test]
fn cancel_between_two_tasks_sends_nothing_more() {
    check(
        r###"
        tasks - [ ] T001 Make a.txt
        tasks - [ ] T002 [P] Make b.txt
        tasks - [ ] T003 [P] Make c.txt
        model: call speckit_task {"id":"T001","state":"done","note":"made"}
        > answer silence
        > prompt /speckit.implement
        > wait -> silence
        > cancel
        > end
        > ticks
        "###,
        &expect![[r#"
            > prompt /speckit.implement
            < plan in_progress T001 Make a.txt, pending T002 Make b.txt, pending T003 Make c.txt
            < call call-2-0 speckit_task "T001 done" pending {"id":"T001","state":"done","note":"made"}
            < call call-2-0 in_progress
            < call call-2-0 completed "T001 is done"
            < text[note-3] ⏎✓ T001: made⏎
            < call call-4-100004 speckit "Run T002, T003 in 2 child agents at once" pending {} "T002 Make b.txt\nT003 Make c.txt"
            ? Run T002, T003 in 2 child agents at once [allow_once, allow_always, reject_once, reject_always] -> silence
            > cancel
            < takes its question back
            < call call-4-100004 failed
            < plan completed T001 Make a.txt, pending T002 Make b.txt, pending T003 Make c.txt
            < text[msg-4] ⏎**/speckit.implement**⏎- Done in this run: 1⏎- tasks.md: 1 of 3 done⏎⏎Stopped; the run continues with /speckit.implement at the first open task.⏎⏎Next: `/speckit.implement`⏎
            = cancelled
            # [X] T001 [ ] T002 [ ] T003; 1 bytes differ, 0 more or less
            asked user: /speckit.implement⏎<crow:speckit/implement: # Build 001-photo-albums, task by task (T001)>
        "#]],
    );
}
