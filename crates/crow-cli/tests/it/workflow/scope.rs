//! `/speckit.implement` with arguments: the tasks that they select.

use expect_test::{Expect, expect};

use super::fixture;

/// Runs with a scope in a list of five tasks; each is reported done.
#[track_caller]
fn check_scope(scope: &str, ids: &[&str], transcript: &Expect) {
    let mut script = r###"
        tasks ## Phase 1: Setup
        tasks - [X] T001 Make a.txt
        tasks ## Phase 2: User Story 1 - See (Priority: P1)
        tasks - [ ] T002 [US1] Make b.txt
        tasks - [ ] T003 [US1] Make c.txt
        tasks ## Phase 3: User Story 2 - Move (Priority: P2)
        tasks - [ ] T004 [US2] Make d.txt
        "###
    .to_owned();
    for id in ids {
        script += &format!("model: call speckit_task {{\"id\":\"{id}\",\"state\":\"done\",\"note\":\"\"}}\n");
    }
    script += &format!("> prompt /speckit.implement {scope}\n> end\n> ticks\n");
    let played = fixture::played(&script);
    let is_shown = |line: &&str| !line.starts_with("< call") && !line.starts_with("< plan");
    let shown: Vec<&str> = played.lines().filter(is_shown).collect();
    transcript.assert_eq(&(shown.join("\n") + "\n"));
}

#[test]
fn scope_is_a_task() {
    check_scope(
        "T003",
        &["T003"],
        &expect![[r#"
            > prompt /speckit.implement T003
            < text[note-3] ⏎✓ T003⏎
            < text[msg-4] ⏎**/speckit.implement**⏎- Done in this run: 1⏎- tasks.md: 2 of 4 done⏎⏎The run continues with /speckit.implement at the first open task.⏎⏎Next: `/speckit.implement`⏎
            = end_turn
            # [X] T001 [ ] T002 [X] T003 [ ] T004; 1 bytes differ, 0 more or less
            asked user: /speckit.implement T003⏎<crow:speckit/implement: # Build 001-photo-albums, task by task (T003)>
        "#]],
    );
}

#[test]
fn scope_is_a_story() {
    check_scope(
        "US2",
        &["T004"],
        &expect![[r#"
            > prompt /speckit.implement US2
            < text[note-3] ⏎✓ T004⏎
            < text[msg-4] ⏎**/speckit.implement**⏎- Done in this run: 1⏎- tasks.md: 2 of 4 done⏎⏎The run continues with /speckit.implement at the first open task.⏎⏎Next: `/speckit.implement`⏎
            = end_turn
            # [X] T001 [ ] T002 [ ] T003 [X] T004; 1 bytes differ, 0 more or less
            asked user: /speckit.implement US2⏎<crow:speckit/implement: # Build 001-photo-albums, task by task (T004)>
        "#]],
    );
}

#[test]
fn scope_is_a_phase() {
    check_scope(
        "phase 2",
        &["T002", "T003"],
        &expect![[r#"
            > prompt /speckit.implement phase 2
            < text[note-3] ⏎✓ T002⏎
            < text[note-5] ⏎✓ T003⏎
            < text[msg-7] ⏎**/speckit.implement**⏎- Done in this run: 2⏎- tasks.md: 3 of 4 done⏎⏎The run continues with /speckit.implement at the first open task.⏎⏎Next: `/speckit.implement`⏎
            = end_turn
            # [X] T001 [X] T002 [X] T003 [ ] T004; 2 bytes differ, 0 more or less
            asked user: /speckit.implement phase 2⏎<crow:speckit/implement: # Build 001-photo-albums, task by task (T002)>
            asked tool: T002 is done + user: <crow:speckit/task: 2 of 4 tasks of 001-photo-albums are done. The next one: (T003)>
        "#]],
    );
}

#[test]
fn text_that_matches_no_scope_is_for_the_model() {
    check_scope(
        "quickly, and with tabs {{7*7}}",
        &["T002", "T003", "T004"],
        &expect![[r#"
            > prompt /speckit.implement quickly, and with tabs {{7*7}}
            < text[note-3] ⏎✓ T002⏎
            < text[note-5] ⏎✓ T003⏎
            < text[note-7] ⏎✓ T004⏎
            < text[msg-10] ⏎**/speckit.implement**⏎- Done in this run: 3⏎- tasks.md: 4 of 4 done⏎⏎Next: `/speckit.converge`⏎
            = end_turn
            # [X] T001 [X] T002 [X] T003 [X] T004; 3 bytes differ, 0 more or less
            asked user: /speckit.implement quickly, and with tabs {{7*7}}⏎<crow:speckit/implement: # Build 001-photo-albums, task by task (T002)>
            asked tool: T002 is done + user: <crow:speckit/task: 2 of 4 tasks of 001-photo-albums are done. The next one: (T003)>
            asked tool: T003 is done + user: <crow:speckit/task: 3 of 4 tasks of 001-photo-albums are done. The next one: (T004)>
        "#]],
    );
}

#[test]
fn scope_without_open_tasks_asks_nothing() {
    check_scope(
        "T001",
        &[],
        &expect![[r#"
            > prompt /speckit.implement T001
            < text[note-1] No open task is selected; name others, or run /speckit.implement alone for all open tasks.⏎
            = end_turn
            # [X] T001 [ ] T002 [ ] T003 [ ] T004; 0 bytes differ, 0 more or less
        "#]],
    );
    check_scope(
        "US7",
        &[],
        &expect![[r#"
            > prompt /speckit.implement US7
            < text[note-1] No open task is selected; name others, or run /speckit.implement alone for all open tasks.⏎
            = end_turn
            # [X] T001 [ ] T002 [ ] T003 [ ] T004; 0 bytes differ, 0 more or less
        "#]],
    );
}
