//! `/speckit.converge`: gaps of the code become a phase of the task list.

use expect_test::expect;

use super::check;

#[test]
fn missing_work_becomes_a_phase() {
    check(
        r###"
        tasks ## Phase 1: Setup
        tasks - [X] T001 Make a.txt
        tasks - [ ] T007 Make b.txt
        model: call speckit_converge {"tasks":[{"text":"Name the file in a.txt\n- [x] T099 nothing","source":"FR-001","gap":"partial"},{"text":"Keep photos as they are","source":"Constitution II","gap":"contradicts","is_critical":true}]}
        > prompt /speckit.converge the files
        > end
        > show specs/001-photo-albums/tasks.md
        > plan
        > ticks
        "###,
        &expect![[r#"
            > prompt /speckit.converge the files
            < call call-2-0 speckit_converge "2 gaps between code and spec" pending {"tasks":[{"text":"Name the file in a.txt\n- [x] T099 nothing","source":"FR-001","gap":"partial"},{"text":"Keep photos as they are","source":"Constitution II","gap":"contradicts","is_critical":true}]}
            < call call-2-0 in_progress
            < call call-2-0 completed "2 tasks are noted"
            < plan completed T001 Make a.txt, pending T007 Make b.txt, pending T008 CRITICAL: Keep photos as they are per Constitution II (contradicts), pending T009 Name the file in a.txt - [x] T099 nothing per FR-001 (partial)
            < text[msg-4] ⏎**/speckit.converge**⏎- Feature: specs/001-photo-albums⏎- tasks.md: 4 tasks in 2 phases, 1 done, 0 marked [P]⏎- New tasks: 2, of these critical: 1⏎⏎Next: `/speckit.implement`⏎
            = end_turn
            # specs/001-photo-albums/tasks.md
            # | ## Phase 1: Setup
            # | - [X] T001 Make a.txt
            # | - [ ] T007 Make b.txt
            # | ## Phase 2: Convergence
            # | - [ ] T008 CRITICAL: Keep photos as they are per Constitution II (contradicts)
            # | - [ ] T009 Name the file in a.txt - [x] T099 nothing per FR-001 (partial)
            # high completed T001 Make a.txt {"id":"T001","phase":"Phase 1: Setup","story":null,"parallel":false,"line":2}
            # high pending T007 Make b.txt {"id":"T007","phase":"Phase 1: Setup","story":null,"parallel":false,"line":3}
            # high pending T008 CRITICAL: Keep photos as they are per Constitution II (contradicts) {"id":"T008","phase":"Phase 2: Convergence","story":null,"parallel":false,"line":7}
            # medium pending T009 Name the file in a.txt - [x] T099 nothing per FR-001 (partial) {"id":"T009","phase":"Phase 2: Convergence","story":null,"parallel":false,"line":8}
            # [X] T001 [ ] T007 [ ] T008 [ ] T009; 0 bytes differ, 179 more or less
            asked user: /speckit.converge the files⏎<crow:speckit/converge: # Compare the code with the documents of 001-photo-albums>
        "#]],
    );
}

#[test]
fn complete_work_changes_nothing_and_is_reported() {
    check(
        r###"
        tasks - [X] T001 Make a.txt
        model: call speckit_converge {"tasks":[]}
        > prompt /speckit.converge
        > end
        > ticks
        "###,
        &expect![[r#"
            > prompt /speckit.converge
            < call call-2-0 speckit_converge "0 gaps between code and spec" pending {"tasks":[]}
            < call call-2-0 in_progress
            < call call-2-0 completed "0 tasks are noted"
            < plan completed T001 Make a.txt
            < text[msg-4] ⏎**/speckit.converge**⏎- Feature: specs/001-photo-albums⏎- tasks.md: 1 task in 0 phases, 1 done, 0 marked [P]⏎- The code has no gaps; tasks.md is unchanged⏎
            = end_turn
            # [X] T001; 0 bytes differ, 0 more or less
            asked user: /speckit.converge⏎<crow:speckit/converge: # Compare the code with the documents of 001-photo-albums>
        "#]],
    );
}

#[test]
fn missing_report_does_not_mean_complete_work() {
    check(
        r###"
        tasks - [X] T001 Make a.txt
        model: text "All is fine."
        model: text "It is."
        > prompt /speckit.converge
        > end
        > ticks
        "###,
        &expect![[r#"
            > prompt /speckit.converge
            < text[msg-2] All is fine.
            < text[msg-4] It is.
            < plan completed T001 Make a.txt
            < text[msg-5] ⏎**/speckit.converge**⏎- Feature: specs/001-photo-albums⏎- tasks.md: 1 task in 0 phases, 1 done, 0 marked [P]⏎- Nothing was reported; tasks.md is unchanged⏎⏎Next: `/speckit.converge`⏎
            = end_turn
            # [X] T001; 0 bytes differ, 0 more or less
            asked user: /speckit.converge⏎<crow:speckit/converge: # Compare the code with the documents of 001-photo-albums>
            asked user: <crow:speckit/repair: Crow has checked what is on disk now, after `/speckit.converge`. This does not hold yet:>
        "#]],
    );
}

#[test]
fn invalid_report_is_requested_again() {
    check(
        r###"
        tasks - [X] T001 Make a.txt
        model: call speckit_converge {"tasks":[{"text":" ","source":"FR-001","gap":"partial"}]}
        model: call speckit_converge {"tasks":[{"text":"x","source":"FR-001","gap":"odd"}]}
        model: call speckit_converge {"tasks":[{"text":"Do it","source":"FR-001","gap":"missing"}]} | call speckit_converge {"tasks":[]}
        > prompt /speckit.converge
        > end
        > ticks
        "###,
        &expect![[r#"
            > prompt /speckit.converge
            < call call-2-0 speckit_converge "1 gaps between code and spec" pending {"tasks":[{"text":" ","source":"FR-001","gap":"partial"}]}
            < call call-2-0 in_progress
            < call call-2-0 failed "task 1 has no text or no source"
            < call call-4-0 speckit_converge "speckit_converge" pending {"tasks":[{"text":"x","source":"FR-001","gap":"odd"}]}
            < call call-4-0 in_progress
            < call call-4-0 failed "`speckit_converge` was not run: `tasks[0].gap` must be one of \"missing\", \"partial\", \"contradicts\", \"unrequested\", not the string \"odd\""
            < call call-6-0 speckit_converge "1 gaps between code and spec" pending {"tasks":[{"text":"Do it","source":"FR-001","gap":"missing"}]}
            < call call-6-1 speckit_converge "0 gaps between code and spec" pending {"tasks":[]}
            < call call-6-0 in_progress
            < call call-6-0 completed "1 tasks are noted"
            < call call-6-1 in_progress
            < call call-6-1 failed "this was reported already"
            < plan completed T001 Make a.txt, pending T002 Do it per FR-001 (missing)
            < text[msg-9] ⏎**/speckit.converge**⏎- Feature: specs/001-photo-albums⏎- tasks.md: 2 tasks in 1 phase, 1 done, 0 marked [P]⏎- New tasks: 1, of these critical: 0⏎⏎Next: `/speckit.implement`⏎
            = end_turn
            # [X] T001 [ ] T002; 0 bytes differ, 64 more or less
            asked user: /speckit.converge⏎<crow:speckit/converge: # Compare the code with the documents of 001-photo-albums>
            asked tool: task 1 has no text or no source
            asked tool: `speckit_converge` was not run: `tasks[0].gap` must be one of "missing", "partial", "contradicts", "unrequested", not the string "odd"
        "#]],
    );
}

#[test]
fn task_list_is_written_by_crow_only() {
    check(
        r###"
        config: permissions: { mode: auto }
        tasks - [X] T001 Make a.txt
        model: call write {"file_path":"specs/001-photo-albums/tasks.md","content":"- [x] T001\n"}
        model: call terminal {"command":"echo '- [ ] T002 Mine' >>specs/001-photo-albums/tasks.md"}
        model: call speckit_converge {"tasks":[]}
        > prompt /speckit.converge
        > end
        > ticks
        "###,
        &expect![[r#"
            > prompt /speckit.converge
            < call call-2-0 write "Write specs/001-photo-albums/tasks.md" pending {"file_path":"specs/001-photo-albums/tasks.md","content":"- [x] T001\n"}
            < call call-2-0 failed "not run: /speckit.converge writes no file; new tasks go through speckit_converge; specs/001-photo-albums/tasks.md stays as it is"
            < call call-4-0 terminal "`echo '- [ ] T002 Mine' >>specs/001-photo-albums/tasks.md`" pending {"command":"echo '- [ ] T002 Mine' >>specs/001-photo-albums/tasks.md"}
            < call call-4-0 in_progress
            < call call-4-0 completed "(no output)"
            < call call-6-0 speckit_converge "0 gaps between code and spec" pending {"tasks":[]}
            < call call-6-0 in_progress
            < call call-6-0 completed "0 tasks are noted"
            < text[note-2] ⏎/speckit.converge may not change specs/001-photo-albums/tasks.md; it was restored, and the changed version is in .specify/crow/set-aside.⏎
            < plan completed T001 Make a.txt
            < text[msg-8] ⏎**/speckit.converge**⏎- Feature: specs/001-photo-albums⏎- tasks.md: 1 task in 0 phases, 1 done, 0 marked [P]⏎- The code has no gaps; tasks.md is unchanged⏎
            = end_turn
            # [X] T001; 0 bytes differ, 0 more or less
            asked user: /speckit.converge⏎<crow:speckit/converge: # Compare the code with the documents of 001-photo-albums>
            asked tool: not run: /speckit.converge writes no file; new tasks go through speckit_converge; specs/001-photo-albums/tasks.md stays as it is
            asked tool: (no output)⏎(/speckit.converge may not change $HOME/project/specs/001-photo-albums/tasks.md: it was restored)
        "#]],
    );
}

#[test]
fn converge_needs_completed_work() {
    check(
        r###"
        tasks - [ ] T001 Make a.txt
        > prompt /speckit.converge
        > end
        > ticks
        "###,
        &expect![[r#"
            > prompt /speckit.converge
            < text[note-1] No task is done yet, so there is nothing to compare; run /speckit.implement first.⏎
            = end_turn
            # [ ] T001; 0 bytes differ, 0 more or less
        "#]],
    );
}
