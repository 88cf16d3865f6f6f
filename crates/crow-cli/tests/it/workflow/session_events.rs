//! Other events of a session during the workflow.

use expect_test::expect;

use super::{check, fixture};

#[test]
fn fork_works_on_the_same_feature() {
    check(
        r###"
        tasks - [ ] T001 Make a.txt
        file specs/002-other/spec.md "# Feature Specification: Other\n"
        > prompt /speckit use 002
        > end
        > write .specify/feature.json "{\"feature_directory\":\"specs/001-photo-albums\"}"
        > fork
        > prompt /speckit
        > end
        > new .
        > prompt /speckit
        > end
        "###,
        &expect![[r#"
            > prompt /speckit use 002
            < text[note-1] Switched to `specs/002-other`: spec⏎
            = end_turn
            > fork
            > prompt /speckit
            < text[note-2] - · `001-photo-albums`: spec, plan, 0 of 1 tasks done⏎- ▸ `002-other`: spec⏎⏎This session works on specs/002-other; the project points at specs/001-photo-albums (`/speckit use` changes both).⏎⏎Next: `/speckit.plan`⏎
            = end_turn
            > new .
            > prompt /speckit
            < text[note-3] - ▸ `001-photo-albums`: spec, plan, 0 of 1 tasks done⏎- · `002-other`: spec⏎⏎Next: `/speckit.implement`⏎
            = end_turn
        "#]],
    );
}

#[test]
fn compaction_repeats_the_rules_with_the_next_task() {
    // More than fits with the tools and the first prompts.
    let long: String = (0..1300).map(|line| format!("line {line:04} of a long file\n")).collect();
    let played = fixture::played(&format!(
        r###"
        client: {{"session": {{"compaction": {{}}}}}}
        config: max_compact_tokens: 22000
        file a.txt {long:?}
        file b.txt {long:?}
        tasks - [ ] T001 Make a.txt
        tasks - [ ] T002 Make b.txt
        tasks - [ ] T003 Make c.txt
        aside: text "We build photo albums."
        aside: text "complete"
        model: call read {{"file_path":"a.txt"}}
        model: call read {{"file_path":"b.txt"}}
        model: call speckit_task {{"id":"T001","state":"done","note":"made"}}
        model: call speckit_task {{"id":"T002","state":"done","note":"made"}}
        model: call speckit_task {{"id":"T003","state":"done","note":"made"}}
        > prompt /speckit.implement
        > end
        > told three honest attempts at one obstacle
        > ticks
        "###
    ));
    let is_shown = |line: &&str| !line.starts_with("< call") && !line.starts_with("< plan");
    let shown: String = played.lines().filter(is_shown).map(|line| format!("{line}\n")).collect();
    expect![[r#"
        > prompt /speckit.implement
        < compaction in_progress
        < compaction completed  "Compacted: older messages are summarized for the model, 24k → 13k tokens. `/compact undo` undoes it." "We build photo albums."
        < text[note-3] ⏎✓ T001: made⏎
        < text[note-5] ⏎✓ T002: made⏎
        < text[note-7] ⏎✓ T003: made⏎
        < text[msg-14] ⏎**/speckit.implement**⏎- Done in this run: 3⏎- tasks.md: 3 of 3 done⏎⏎Next: `/speckit.converge`⏎
        = end_turn
        # [X] T001 [X] T002 [X] T003; 3 bytes differ, 0 more or less
        asked user: /speckit.implement⏎<crow:speckit/implement: # Build 001-photo-albums, task by task (T001)>
        asked tool:      1	line 0000 of a long file⏎     2	line 0001 of a long file⏎     3	line 0002 of a long file⏎     4	line 0003 of a long file⏎     5	line 0004 of a long file⏎…
        asked user: <person>⏎/speckit.implement⏎</person>⏎<result>⏎[added by Crow: speckit/implement]⏎# Build 001-photo-albums, task by task⏎⏎You build what the documents describe.… (T001)
        asked user: Hold your notes against what you read. List what they lack that the agent needs, above all facts, names, numbers, paths and constraints that the person stated; …
        asked tool:      1	line 0000 of a long file⏎     2	line 0001 of a long file⏎     3	line 0002 of a long file⏎     4	line 0003 of a long file⏎     5	line 0004 of a long file⏎…
        asked tool: T001 is done + user: <crow:speckit/implement: # Build 001-photo-albums, task by task (T002)>
        asked tool: T002 is done + user: <crow:speckit/task: 2 of 3 tasks of 001-photo-albums are done. The next one: (T003)>
    "#]].assert_eq(&shown);
}
