//! `/speckit.implement`: tasks in order, each one assigned, reported and ticked.

use expect_test::{Expect, expect};

use super::check;

#[test]
fn task_is_a_prompt_of_its_own() {
    check(
        r###"
        config: permissions: { mode: auto }
        tasks ## Phase 1: Setup
        tasks - [ ] T001 Make a.txt
        tasks - [ ] T002 Make b.txt
        tasks ## Phase 2: User Story 1 - See (Priority: P1)
        tasks - [x] T003 [US1] Make c.txt
        model: call write {"file_path":"a.txt","content":"a"}
        model: call speckit_task {"id":"T001","state":"done","note":"Made and looked at."}
        model: call speckit_task {"id":"t002","state":"done","note":"It was there."}
        > prompt /speckit.implement
        > end
        > plan
        > ticks
        "###,
        &expect![[r#"
            > prompt /speckit.implement
            < plan in_progress T001 Make a.txt, pending T002 Make b.txt, completed T003 [US1] Make c.txt
            < call call-2-0 write "Write a.txt" pending {"file_path":"a.txt","content":"a"}
            < call call-2-0 in_progress
            < call call-2-0 completed diff $HOME/project/a.txt null -> "a"
            < call call-4-0 speckit_task "T001 done" pending {"id":"T001","state":"done","note":"Made and looked at."}
            < call call-4-0 in_progress
            < call call-4-0 completed "T001 is done"
            < text[note-3] ⏎✓ T001: Made and looked at.⏎
            < plan completed T001 Make a.txt, in_progress T002 Make b.txt, completed T003 [US1] Make c.txt
            < call call-7-0 speckit_task "t002 done" pending {"id":"t002","state":"done","note":"It was there."}
            < call call-7-0 in_progress
            < call call-7-0 completed "T002 is done"
            < text[note-5] ⏎✓ T002: It was there.⏎
            < plan completed T001 Make a.txt, completed T002 Make b.txt, completed T003 [US1] Make c.txt
            < text[msg-9] ⏎**/speckit.implement**⏎- Done in this run: 2⏎- tasks.md: 3 of 3 done⏎⏎Next: `/speckit.converge`⏎
            = end_turn
            # high completed T001 Make a.txt {"id":"T001","phase":"Phase 1: Setup","story":null,"parallel":false,"line":2}
            # high completed T002 Make b.txt {"id":"T002","phase":"Phase 1: Setup","story":null,"parallel":false,"line":3}
            # high completed T003 [US1] Make c.txt {"id":"T003","phase":"Phase 2: User Story 1 - See (Priority: P1)","story":"US1","parallel":false,"line":5}
            # [X] T001 [X] T002 [x] T003; 2 bytes differ, 0 more or less
            asked user: /speckit.implement⏎<crow:speckit/implement: # Build 001-photo-albums, task by task (T001)>
            asked tool: created a.txt: 1 line
            asked tool: T001 is done + user: <crow:speckit/task: 2 of 3 tasks of 001-photo-albums are done. The next one: (T002)>
        "#]],
    );
}

#[test]
fn report_counts_once_and_for_the_current_task() {
    check(
        r###"
        tasks - [ ] T001 Make a.txt
        tasks - [ ] T002 Make b.txt
        model: call speckit_task {"id":"T002","state":"done","note":"ahead"}
        model: call speckit_task {"id":"T001","state":"failed"}
        model: call speckit_task {"id":"T001","state":"started","note":"x"}
        model: call speckit_task {"id":"T001","state":"done","note":"made"} | call speckit_task {"id":"T001","state":"failed","note":"not made"} | call speckit_task {"id":"T002","state":"done","note":"as well"}
        model: call speckit_task {"id":"T002","state":"done","note":"made"}
        > prompt /speckit.implement
        > end
        > ticks
        "###,
        &expect![[r#"
            > prompt /speckit.implement
            < plan in_progress T001 Make a.txt, pending T002 Make b.txt
            < call call-2-0 speckit_task "T002 done" pending {"id":"T002","state":"done","note":"ahead"}
            < call call-2-0 in_progress
            < call call-2-0 failed "the task at hand is T001, not T002; nothing was marked"
            < call call-4-0 speckit_task "speckit_task" pending {"id":"T001","state":"failed"}
            < call call-4-0 in_progress
            < call call-4-0 failed "`speckit_task` was not run: `note` is missing; it must be a string"
            < call call-6-0 speckit_task "speckit_task" pending {"id":"T001","state":"started","note":"x"}
            < call call-6-0 in_progress
            < call call-6-0 failed "`speckit_task` was not run: `state` must be one of \"done\", \"failed\", not the string \"started\""
            < call call-8-0 speckit_task "T001 done" pending {"id":"T001","state":"done","note":"made"}
            < call call-8-1 speckit_task "T001 failed" pending {"id":"T001","state":"failed","note":"not made"}
            < call call-8-2 speckit_task "T002 done" pending {"id":"T002","state":"done","note":"as well"}
            < call call-8-0 in_progress
            < call call-8-0 completed "T001 is done"
            < call call-8-1 in_progress
            < call call-8-1 failed "T001 was reported already"
            < call call-8-2 in_progress
            < call call-8-2 failed "the task at hand is T001, not T002; nothing was marked"
            < text[note-3] ⏎✓ T001: made⏎
            < plan completed T001 Make a.txt, in_progress T002 Make b.txt
            < call call-13-0 speckit_task "T002 done" pending {"id":"T002","state":"done","note":"made"}
            < call call-13-0 in_progress
            < call call-13-0 completed "T002 is done"
            < text[note-5] ⏎✓ T002: made⏎
            < plan completed T001 Make a.txt, completed T002 Make b.txt
            < text[msg-15] ⏎**/speckit.implement**⏎- Done in this run: 2⏎- tasks.md: 2 of 2 done⏎⏎Next: `/speckit.converge`⏎
            = end_turn
            # [X] T001 [X] T002; 2 bytes differ, 0 more or less
            asked user: /speckit.implement⏎<crow:speckit/implement: # Build 001-photo-albums, task by task (T001)>
            asked tool: the task at hand is T001, not T002; nothing was marked
            asked tool: `speckit_task` was not run: `note` is missing; it must be a string
            asked tool: `speckit_task` was not run: `state` must be one of "done", "failed", not the string "started"
            asked tool: T001 is done + tool: T001 was reported already + tool: the task at hand is T001, not T002; nothing was marked + user: <crow:speckit/task: 1 of 2 tasks of 001-photo-albums are done. The next one: (T002)>
        "#]],
    );
}

#[test]
fn unreported_task_is_asked_about_once() {
    check(
        r###"
        tasks - [ ] T001 Make a.txt
        tasks - [ ] T002 Make b.txt
        model: text "I made it."
        model: call speckit_task {"id":"T001","state":"done","note":"made"}
        model: text "I made this."
        model: text "I did."
        > prompt /speckit.implement
        > end
        > ticks
        "###,
        &expect![[r#"
            > prompt /speckit.implement
            < plan in_progress T001 Make a.txt, pending T002 Make b.txt
            < text[msg-2] I made it.
            < call call-4-0 speckit_task "T001 done" pending {"id":"T001","state":"done","note":"made"}
            < call call-4-0 in_progress
            < call call-4-0 completed "T001 is done"
            < text[note-3] ⏎✓ T001: made⏎
            < plan completed T001 Make a.txt, in_progress T002 Make b.txt
            < text[msg-7] I made this.
            < text[msg-9] I did.
            < text[note-4] ⏎✗ T002: the model did not report a result⏎
            < plan completed T001 Make a.txt, pending T002 Make b.txt
            < text[msg-10] ⏎**/speckit.implement**⏎- Done in this run: 1⏎- tasks.md: 1 of 2 done⏎- T002 failed: the model did not report a result⏎⏎Fix that or the task list; the run continues with /speckit.implement at the first open task.⏎⏎Next: `/speckit.implement`⏎
            = end_turn
            # [X] T001 [ ] T002; 1 bytes differ, 0 more or less
            asked user: /speckit.implement⏎<crow:speckit/implement: # Build 001-photo-albums, task by task (T001)>
            asked user: <crow:speckit/task: You ended without saying what became of T001. Finish it if it is not finished, then call speckit_task.>
            asked tool: T001 is done + user: <crow:speckit/task: 1 of 2 tasks of 001-photo-albums are done. The next one: (T002)>
            asked user: <crow:speckit/task: You ended without saying what became of T002. Finish it if it is not finished, then call speckit_task.>
        "#]],
    );
}

#[test]
fn failed_task_ends_the_run_and_begins_the_next_one() {
    check(
        r###"
        tasks - [ ] T001 Make a.txt
        tasks - [ ] T002 Make b.txt
        model: call speckit_task {"id":"T001","state":"failed","note":"The disk is full."}
        model: call speckit_task {"id":"T001","state":"done","note":"There is room now."}
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
            < call call-2-0 speckit_task "T001 failed" pending {"id":"T001","state":"failed","note":"The disk is full."}
            < call call-2-0 in_progress
            < call call-2-0 completed "T001 is noted as failed"
            < text[note-2] ⏎✗ T001: The disk is full.⏎
            < plan pending T001 Make a.txt, pending T002 Make b.txt
            < text[msg-4] ⏎**/speckit.implement**⏎- Done in this run: 0⏎- tasks.md: 0 of 2 done⏎- T001 failed: The disk is full.⏎⏎Fix that or the task list; the run continues with /speckit.implement at the first open task.⏎⏎Next: `/speckit.implement`⏎
            = end_turn
            # [ ] T001 [ ] T002; 0 bytes differ, 0 more or less
            > prompt /speckit.implement
            < plan in_progress T001 Make a.txt, pending T002 Make b.txt
            < call call-7-0 speckit_task "T001 done" pending {"id":"T001","state":"done","note":"There is room now."}
            < call call-7-0 in_progress
            < call call-7-0 completed "T001 is done"
            < text[note-5] ⏎✓ T001: There is room now.⏎
            < plan completed T001 Make a.txt, in_progress T002 Make b.txt
            < call call-10-0 speckit_task "T002 done" pending {"id":"T002","state":"done","note":"made"}
            < call call-10-0 in_progress
            < call call-10-0 completed "T002 is done"
            < text[note-7] ⏎✓ T002: made⏎
            < plan completed T001 Make a.txt, completed T002 Make b.txt
            < text[msg-12] ⏎**/speckit.implement**⏎- Done in this run: 2⏎- tasks.md: 2 of 2 done⏎⏎Next: `/speckit.converge`⏎
            = end_turn
            # [X] T001 [X] T002; 2 bytes differ, 0 more or less
            asked user: /speckit.implement⏎<crow:speckit/implement: # Build 001-photo-albums, task by task (T001)>
            asked tool: T001 is noted as failed + user: <crow:speckit/report: **/speckit.implement**>⏎/speckit.implement⏎<crow:speckit/implement: # Build 001-photo-albums, task by task (T001)>
            asked tool: T001 is done + user: <crow:speckit/task: 1 of 2 tasks of 001-photo-albums are done. The next one: (T002)>
        "#]],
    );
}

/// Runs with an open checklist and a finished one, and with this answer.
#[track_caller]
fn check_gate(answer: &str, model: &str, transcript: &Expect) {
    check(
        &format!(
            r###"
            tasks - [ ] T001 Make a.txt
            file specs/001-photo-albums/checklists/requirements.md "# List\n\n- [x] One\n- [ ] Two\n"
            file specs/001-photo-albums/checklists/ux.md "# List\n\n- [X] CHK001 One\n"
            {model}
            > answer {answer}
            > prompt /speckit.implement
            > end
            > ticks
            "###
        ),
        transcript,
    );
}

#[test]
fn open_checklists_allow_a_run_the_user_approves() {
    let model = r#"model: call speckit_task {"id":"T001","state":"done","note":"made"}"#;
    check_gate(
        "allow_once",
        model,
        &expect![[r#"
            > prompt /speckit.implement
            < call call-0-100001 speckit "Implement although 1 checklist items are open" pending {} "| Checklist | Total | Checked | Unchecked | Status |\n|---|--:|--:|--:|---|\n| requirements.md | 2 | 1 | 1 | open |\n| ux.md | 1 | 1 | 0 | done |\n"
            ? Implement although 1 checklist items are open [allow_once, reject_once] -> allow_once
            < call call-0-100001 completed
            < plan in_progress T001 Make a.txt
            < call call-2-0 speckit_task "T001 done" pending {"id":"T001","state":"done","note":"made"}
            < call call-2-0 in_progress
            < call call-2-0 completed "T001 is done"
            < text[note-4] ⏎✓ T001: made⏎
            < plan completed T001 Make a.txt
            < text[msg-4] ⏎**/speckit.implement**⏎- Done in this run: 1⏎- tasks.md: 1 of 1 done⏎⏎Next: `/speckit.converge`⏎
            = end_turn
            # [X] T001; 1 bytes differ, 0 more or less
            asked user: /speckit.implement⏎<crow:speckit/implement: # Build 001-photo-albums, task by task (T001)>
        "#]],
    );
}

#[test]
fn open_checklists_stop_a_run_the_user_rejects() {
    check_gate(
        "reject_once",
        "",
        &expect![[r#"
            > prompt /speckit.implement
            < call call-0-100001 speckit "Implement although 1 checklist items are open" pending {} "| Checklist | Total | Checked | Unchecked | Status |\n|---|--:|--:|--:|---|\n| requirements.md | 2 | 1 | 1 | open |\n| ux.md | 1 | 1 | 0 | done |\n"
            ? Implement although 1 checklist items are open [allow_once, reject_once] -> reject_once
            < call call-0-100001 failed
            < text[note-2] ⏎| Checklist | Total | Checked | Unchecked | Status |⏎|---|--:|--:|--:|---|⏎| requirements.md | 2 | 1 | 1 | open |⏎| ux.md | 1 | 1 | 0 | done |⏎⏎/speckit.implement did not start: 1 checklist items are open. Tick what is done, then run it again.⏎
            = end_turn
            # [ ] T001; 0 bytes differ, 0 more or less
        "#]],
    );
}

#[test]
fn open_checklists_stop_a_run_without_a_user() {
    check_gate(
        "error",
        "",
        &expect![[r#"
            > prompt /speckit.implement
            < call call-0-100001 speckit "Implement although 1 checklist items are open" pending {} "| Checklist | Total | Checked | Unchecked | Status |\n|---|--:|--:|--:|---|\n| requirements.md | 2 | 1 | 1 | open |\n| ux.md | 1 | 1 | 0 | done |\n"
            ? Implement although 1 checklist items are open [allow_once, reject_once] -> error
            < call call-0-100001 failed
            < text[note-2] ⏎| Checklist | Total | Checked | Unchecked | Status |⏎|---|--:|--:|--:|---|⏎| requirements.md | 2 | 1 | 1 | open |⏎| ux.md | 1 | 1 | 0 | done |⏎⏎/speckit.implement did not start: 1 checklist items are open, and the user could not be asked (the dialog broke). Tick what is done, or allow it with `--yes`.⏎
            = end_turn
            # [ ] T001; 0 bytes differ, 0 more or less
        "#]],
    );
}

#[test]
fn checklist_question_that_is_cancelled_cancels_the_turn() {
    check(
        r###"
        tasks - [ ] T001 Make a.txt
        file specs/001-photo-albums/checklists/ux.md "# List\n\n- [ ] CHK001 One\n"
        > answer silence
        > prompt /speckit.implement
        > wait -> silence
        > cancel
        > end
        "###,
        &expect![[r#"
            > prompt /speckit.implement
            < call call-0-100001 speckit "Implement although 1 checklist items are open" pending {} "| Checklist | Total | Checked | Unchecked | Status |\n|---|--:|--:|--:|---|\n| ux.md | 1 | 0 | 1 | open |\n"
            ? Implement although 1 checklist items are open [allow_once, reject_once] -> silence
            > cancel
            < takes its question back
            < call call-0-100001 failed
            = cancelled
        "#]],
    );
}

#[test]
fn task_list_changes_by_others_stay() {
    check(
        r###"
        tasks - [ ] T001 Make a.txt
        tasks - [ ] T002 Make b.txt
        model: hold | call speckit_task {"id":"T001","state":"done","note":"made"}
        model: call speckit_task {"id":"T004","state":"done","note":"made"}
        > prompt /speckit.implement
        > asked 1
        > replace "- [ ] T002 Make b.txt\n" "- [x] T002 Make b.txt, by hand\n- [ ] T004 Make d.txt\n"
        > release
        > end
        > show specs/001-photo-albums/tasks.md
        "###,
        &expect![[r#"
            > prompt /speckit.implement
            < plan in_progress T001 Make a.txt, pending T002 Make b.txt
            < call call-2-0 speckit_task "T001 done" pending {"id":"T001","state":"done","note":"made"}
            < call call-2-0 in_progress
            < call call-2-0 completed "T001 is done"
            < text[note-3] ⏎✓ T001: made⏎
            < plan completed T001 Make a.txt, completed T002 Make b.txt, by hand, in_progress T004 Make d.txt
            < call call-5-0 speckit_task "T004 done" pending {"id":"T004","state":"done","note":"made"}
            < call call-5-0 in_progress
            < call call-5-0 completed "T004 is done"
            < text[note-5] ⏎✓ T004: made⏎
            < plan completed T001 Make a.txt, completed T002 Make b.txt, by hand, completed T004 Make d.txt
            < text[msg-7] ⏎**/speckit.implement**⏎- Done in this run: 2⏎- tasks.md: 3 of 3 done⏎⏎Next: `/speckit.converge`⏎
            = end_turn
            # specs/001-photo-albums/tasks.md
            # | - [X] T001 Make a.txt
            # | - [x] T002 Make b.txt, by hand
            # | - [X] T004 Make d.txt
            asked user: /speckit.implement⏎<crow:speckit/implement: # Build 001-photo-albums, task by task (T001)>
            asked tool: T001 is done + user: <crow:speckit/task: 2 of 3 tasks of 001-photo-albums are done. The next one: (T004)>
        "#]],
    );
}

/// A tick counts by its author: that of the model's command is reverted, that of the user stays.
#[test]
fn checkbox_ticked_by_the_user_stays_and_by_a_command_does_not() {
    check(
        r###"
        config: permissions: { mode: auto, sandbox: off }
        tasks - [ ] T001 Make a.txt
        tasks - [ ] T002 Make b.txt
        tasks - [ ] T003 Make c.txt
        model: hold | call terminal {"command":"sed -i 's/. . T003/[x] T003/' specs/001-photo-albums/tasks.md"}
        model: hold | call speckit_task {"id":"T001","state":"done","note":"made"}
        model: call speckit_task {"id":"T003","state":"done","note":"made"}
        > prompt /speckit.implement
        > asked 1
        > replace "- [ ] T002 Make b.txt\n" "- [x] T002 Make b.txt\n- [ ] T004 Make d.txt\n"
        > release
        > asked 2
        > replace "- [ ] T004" "- [x] T004"
        > release
        > end
        > ticks
        "###,
        &expect![[r#"
            > prompt /speckit.implement
            < plan in_progress T001 Make a.txt, pending T002 Make b.txt, pending T003 Make c.txt
            < call call-2-0 terminal "`sed -i 's/. . T003/[x] T003/' specs/001-photo-albums/tasks.md`" pending {"command":"sed -i 's/. . T003/[x] T003/' specs/001-photo-albums/tasks.md"}
            < call call-2-0 in_progress
            < call call-2-0 completed "(no output)"
            < call call-4-0 speckit_task "T001 done" pending {"id":"T001","state":"done","note":"made"}
            < call call-4-0 in_progress
            < call call-4-0 completed "T001 is done"
            < text[note-3] ⏎T003 was ticked while T001 was running; it is open again.⏎
            < text[note-5] ⏎✓ T001: made⏎
            < plan completed T001 Make a.txt, completed T002 Make b.txt, completed T004 Make d.txt, in_progress T003 Make c.txt
            < call call-7-0 speckit_task "T003 done" pending {"id":"T003","state":"done","note":"made"}
            < call call-7-0 in_progress
            < call call-7-0 completed "T003 is done"
            < text[note-7] ⏎✓ T003: made⏎
            < plan completed T001 Make a.txt, completed T002 Make b.txt, completed T004 Make d.txt, completed T003 Make c.txt
            < text[msg-9] ⏎**/speckit.implement**⏎- Done in this run: 2⏎- tasks.md: 4 of 4 done⏎⏎Next: `/speckit.converge`⏎
            = end_turn
            # [X] T001 [x] T002 [x] T004 [X] T003; 5 bytes differ, 22 more or less
            asked user: /speckit.implement⏎<crow:speckit/implement: # Build 001-photo-albums, task by task (T001)>
            asked tool: (no output)
            asked tool: T001 is done + user: <crow:speckit/task: 3 of 4 tasks of 001-photo-albums are done. The next one: (T003)>
        "#]],
    );
}

#[test]
fn task_list_is_not_written_by_the_model_and_shell_changes_are_detected() {
    check(
        r###"
        config: permissions: { mode: auto }
        tasks - [ ] T001 Make a.txt
        tasks - [ ] T002 Make b.txt
        model: call write {"file_path":"specs/001-photo-albums/tasks.md","content":"- [x] T001\n"}
        model: call terminal {"command":"sed -i 's/T002.*/T002 is nothing/' specs/001-photo-albums/tasks.md"}
        model: call speckit_task {"id":"T001","state":"done","note":"made"}
        model: call speckit_task {"id":"T002","state":"done","note":"made"}
        > prompt /speckit.implement
        > end
        > ticks
        "###,
        &expect![[r#"
            > prompt /speckit.implement
            < plan in_progress T001 Make a.txt, pending T002 Make b.txt
            < call call-2-0 write "Write specs/001-photo-albums/tasks.md" pending {"file_path":"specs/001-photo-albums/tasks.md","content":"- [x] T001\n"}
            < call call-2-0 failed "not run: /speckit.implement writes no task list; report tasks with speckit_task; specs/001-photo-albums/tasks.md stays as it is"
            < call call-4-0 terminal "`sed -i 's/T002.*/T002 is nothing/' specs/001-photo-albums/tasks.md`" pending {"command":"sed -i 's/T002.*/T002 is nothing/' specs/001-photo-albums/tasks.md"}
            < call call-4-0 in_progress
            < call call-4-0 completed "(no output)"
            < call call-6-0 speckit_task "T001 done" pending {"id":"T001","state":"done","note":"made"}
            < call call-6-0 in_progress
            < call call-6-0 completed "T001 is done"
            < text[note-3] ⏎✓ T001: made⏎
            < plan completed T001 Make a.txt, in_progress T002 is nothing
            < call call-9-0 speckit_task "T002 done" pending {"id":"T002","state":"done","note":"made"}
            < call call-9-0 in_progress
            < call call-9-0 completed "T002 is done"
            < text[note-5] ⏎✓ T002: made⏎
            < plan completed T001 Make a.txt, completed T002 is nothing
            < text[msg-11] ⏎**/speckit.implement**⏎- Done in this run: 2⏎- tasks.md: 2 of 2 done⏎⏎Next: `/speckit.converge`⏎
            = end_turn
            # [X] T001 [X] T002; 12 bytes differ, 0 more or less
            asked user: /speckit.implement⏎<crow:speckit/implement: # Build 001-photo-albums, task by task (T001)>
            asked tool: not run: /speckit.implement writes no task list; report tasks with speckit_task; specs/001-photo-albums/tasks.md stays as it is
            asked tool: (no output)
            asked tool: T001 is done + user: <crow:speckit/task: 1 of 2 tasks of 001-photo-albums are done. The next one: (T002)>
        "#]],
    );
}

#[test]
fn task_removed_before_it_is_done_is_reported() {
    check(
        r###"
        tasks - [ ] T001 Make a.txt
        tasks - [ ] T002 Make b.txt
        model: hold | call speckit_task {"id":"T001","state":"done","note":"made"}
        > prompt /speckit.implement
        > asked 1
        > replace "- [ ] T001 Make a.txt\n" ""
        > release
        > end
        > show specs/001-photo-albums/tasks.md
        "###,
        &expect![[r#"
            > prompt /speckit.implement
            < plan in_progress T001 Make a.txt, pending T002 Make b.txt
            < call call-2-0 speckit_task "T001 done" pending {"id":"T001","state":"done","note":"made"}
            < call call-2-0 in_progress
            < call call-2-0 completed "T001 is done"
            < text[note-2] ⏎✗ T001: it could not be ticked: tasks.md has no task T001; read it for the existing ids⏎
            < plan pending T002 Make b.txt
            < text[msg-4] ⏎**/speckit.implement**⏎- Done in this run: 0⏎- tasks.md: 0 of 1 done⏎- T001 failed: it could not be ticked: tasks.md has no task T001; read it for the existing ids⏎⏎Fix that or the task list; the run continues with /speckit.implement at the first open task.⏎⏎Next: `/speckit.implement`⏎
            = end_turn
            # specs/001-photo-albums/tasks.md
            # | - [ ] T002 Make b.txt
            asked user: /speckit.implement⏎<crow:speckit/implement: # Build 001-photo-albums, task by task (T001)>
        "#]],
    );
}

#[test]
fn byte_is_changed_for_each_task() {
    check(
        r###"
        windows
        tasks # Tasks: Ümlaute
        tasks
        tasks - [ ] T001 Make ä.txt
        tasks - [ ] T002 Make b.txt
        model: call speckit_task {"id":"T001","state":"done","note":"made"}
        model: call speckit_task {"id":"T002","state":"done","note":"made"}
        > prompt /speckit.implement T001
        > end
        > ticks
        > prompt /speckit.implement
        > end
        > ticks
        "###,
        &expect![[r#"
            > prompt /speckit.implement T001
            < plan in_progress T001 Make ä.txt, pending T002 Make b.txt
            < call call-2-0 speckit_task "T001 done" pending {"id":"T001","state":"done","note":"made"}
            < call call-2-0 in_progress
            < call call-2-0 completed "T001 is done"
            < text[note-3] ⏎✓ T001: made⏎
            < plan completed T001 Make ä.txt, pending T002 Make b.txt
            < text[msg-4] ⏎**/speckit.implement**⏎- Done in this run: 1⏎- tasks.md: 1 of 2 done⏎⏎The run continues with /speckit.implement at the first open task.⏎⏎Next: `/speckit.implement`⏎
            = end_turn
            # [X] T001 [ ] T002; 1 bytes differ, 0 more or less
            > prompt /speckit.implement
            < plan completed T001 Make ä.txt, in_progress T002 Make b.txt
            < call call-7-0 speckit_task "T002 done" pending {"id":"T002","state":"done","note":"made"}
            < call call-7-0 in_progress
            < call call-7-0 completed "T002 is done"
            < text[note-6] ⏎✓ T002: made⏎
            < plan completed T001 Make ä.txt, completed T002 Make b.txt
            < text[msg-9] ⏎**/speckit.implement**⏎- Done in this run: 1⏎- tasks.md: 2 of 2 done⏎⏎Next: `/speckit.converge`⏎
            = end_turn
            # [X] T001 [X] T002; 2 bytes differ, 0 more or less
            asked user: /speckit.implement T001⏎<crow:speckit/implement: # Build 001-photo-albums, task by task (T001)>
            asked tool: T001 is done + user: <crow:speckit/report: **/speckit.implement**>⏎/speckit.implement⏎<crow:speckit/implement: # Build 001-photo-albums, task by task (T002)>
        "#]],
    );
}

#[test]
fn finished_list_suggests_converge_and_costs_nothing() {
    check(
        r###"
        tasks - [x] T001 Make a.txt
        > prompt /speckit.implement
        > end
        > ticks
        "###,
        &expect![[r#"
            > prompt /speckit.implement
            < text[note-1] Every task is done; /speckit.converge finds what the code still lacks.⏎
            = end_turn
            # [x] T001; 0 bytes differ, 0 more or less
        "#]],
    );
}

#[test]
fn duplicate_task_id_is_reported_before_the_run() {
    check(
        r###"
        tasks - [ ] T001 Make a.txt
        tasks - [ ] T002 Make b.txt
        tasks - [ ] T001 Make c.txt
        > prompt /speckit.implement
        > end
        > ticks
        "###,
        &expect![[r#"
            > prompt /speckit.implement
            < text[note-1] A tick would be lost: tasks.md has T001 twice, in lines 1 and 3; give one of them another id.⏎
            = end_turn
            # [ ] T001 [ ] T002 [ ] T001; 0 bytes differ, 0 more or less
        "#]],
    );
}
