//! Prerequisites of a step: if one is missing, no request is sent and no file is written.

use expect_test::expect;

use super::check;

#[test]
fn feature_is_missing() {
    check(
        r#"
        > still /speckit.specify
        > still /speckit.specify \n
        > still /speckit.clarify
        > still /speckit.plan
        > still /speckit.checklist
        > still /speckit.tasks
        > still /speckit.analyze
        > still /speckit.implement
        > still /speckit.converge
        > tree
        "#,
        &expect![[r#"
            > still /speckit.specify
            < text[note-1] There is nothing to specify; describe after /speckit.specify what to build and why.⏎
            = end_turn
            > still /speckit.specify \n
            < text[note-2] There is nothing to specify; describe after /speckit.specify what to build and why.⏎
            = end_turn
            > still /speckit.clarify
            < text[note-3] The project has no feature yet; run /speckit.specify first.⏎
            = end_turn
            > still /speckit.plan
            < text[note-4] The project has no feature yet; run /speckit.specify first.⏎
            = end_turn
            > still /speckit.checklist
            < text[note-5] The project has no feature yet; run /speckit.specify first.⏎
            = end_turn
            > still /speckit.tasks
            < text[note-6] The project has no feature yet; run /speckit.specify first.⏎
            = end_turn
            > still /speckit.analyze
            < text[note-7] The project has no feature yet; run /speckit.specify first.⏎
            = end_turn
            > still /speckit.implement
            < text[note-8] The project has no feature yet; run /speckit.specify first.⏎
            = end_turn
            > still /speckit.converge
            < text[note-9] The project has no feature yet; run /speckit.specify first.⏎
            = end_turn
            > tree
        "#]],
    );
}

#[test]
fn plan_is_missing() {
    check(
        r#"
        have spec
        > still /speckit.checklist
        > still /speckit.tasks
        > still /speckit.analyze
        > still /speckit.implement
        > still /speckit.converge
        > put $F/plan.md ""
        > still /speckit.checklist
        "#,
        &expect![[r#"
            > still /speckit.checklist
            < text[note-1] .specify/specs/001-photo-albums/plan.md does not exist; run /speckit.plan first.⏎
            = end_turn
            > still /speckit.tasks
            < text[note-2] .specify/specs/001-photo-albums/plan.md does not exist; run /speckit.plan first.⏎
            = end_turn
            > still /speckit.analyze
            < text[note-3] .specify/specs/001-photo-albums/plan.md does not exist; run /speckit.plan first.⏎
            = end_turn
            > still /speckit.implement
            < text[note-4] .specify/specs/001-photo-albums/plan.md does not exist; run /speckit.plan first.⏎
            = end_turn
            > still /speckit.converge
            < text[note-5] .specify/specs/001-photo-albums/plan.md does not exist; run /speckit.plan first.⏎
            = end_turn
            > still /speckit.checklist
            < text[note-6] .specify/specs/001-photo-albums/plan.md is empty; fill it, or remove it; run /speckit.plan first.⏎
            = end_turn
        "#]],
    );
}

#[test]
fn tasks_are_missing() {
    check(
        r#"
        have spec plan
        > still /speckit.analyze
        > still /speckit.implement
        > still /speckit.converge
        > put $F/tasks.md "Tasks\n"
        > still /speckit.implement
        > put $F/tasks.md $tasks
        > still /speckit.converge
        > put $F/spec.md
        > still /speckit.plan
        > still /speckit.clarify
        > still /speckit.tasks
        > still /speckit.analyze
        > still /speckit.converge
        "#,
        &expect![[r#"
            > still /speckit.analyze
            < text[note-1] .specify/specs/001-photo-albums/tasks.md does not exist; run /speckit.tasks first.⏎
            = end_turn
            > still /speckit.implement
            < text[note-2] .specify/specs/001-photo-albums/tasks.md does not exist; run /speckit.tasks first.⏎
            = end_turn
            > still /speckit.converge
            < text[note-3] .specify/specs/001-photo-albums/tasks.md does not exist; run /speckit.tasks first.⏎
            = end_turn
            > still /speckit.implement
            < text[note-4] There is no task in tasks.md; run /speckit.tasks first.⏎
            = end_turn
            > still /speckit.converge
            < text[note-5] No task is done yet, so there is nothing to compare; run /speckit.implement first.⏎
            = end_turn
            > still /speckit.plan
            < text[note-6] .specify/specs/001-photo-albums/spec.md does not exist; run /speckit.specify first.⏎
            = end_turn
            > still /speckit.clarify
            < text[note-7] .specify/specs/001-photo-albums/spec.md does not exist; run /speckit.specify first.⏎
            = end_turn
            > still /speckit.tasks
            < text[note-8] .specify/specs/001-photo-albums/spec.md does not exist; run /speckit.specify first.⏎
            = end_turn
            > still /speckit.analyze
            < text[note-9] .specify/specs/001-photo-albums/spec.md does not exist; run /speckit.specify first.⏎
            = end_turn
            > still /speckit.converge
            < text[note-10] .specify/specs/001-photo-albums/spec.md does not exist; run /speckit.specify first.⏎
            = end_turn
        "#]],
    );
}

#[test]
fn feature_that_cannot_be_found() {
    check(
        r#"
        have spec plan
        file .specify/specs/002-music/spec.md "music"
        > still /speckit.plan --feature 003
        > still /speckit.plan --feature
        > put .specify/feature.json "{\"feature_directory\":\"specs/009-gone\"}"
        > still /speckit.plan
        > put .specify/feature.json "{\"feature_directory\":null}"
        > still /speckit.plan
        > put .specify/feature.json "{\"feature_directory\":\"../elsewhere\"}"
        > still /speckit.plan
        > put .specify/feature.json
        > still /speckit.plan
        "#,
        &expect![[r#"
            > still /speckit.plan --feature 003
            < text[note-1] There is no feature "003"; select one with /speckit use or --feature: 001-photo-albums, 002-music.⏎
            = end_turn
            > still /speckit.plan --feature
            < text[note-2] --feature needs a value.⏎
            = end_turn
            > still /speckit.plan
            < text[note-3] The feature's directory specs/009-gone does not exist; run /speckit.specify first.⏎
            = end_turn
            > still /speckit.plan
            < text[note-4] $HOME/project/.specify/feature.json cannot be used: its feature_directory is not the name of a directory; select a feature with /speckit use, or delete the file.⏎
            = end_turn
            > still /speckit.plan
            < text[note-5] $HOME/project/.specify/feature.json cannot be used: it leads out of the project, to $HOME/project/../elsewhere; to use that directory, select it with --feature or SPECIFY_FEATURE_DIRECTORY.⏎
            = end_turn
            > still /speckit.plan
            < text[note-6] No feature is selected; select one with /speckit use or --feature: 001-photo-albums, 002-music.⏎
            = end_turn
        "#]],
    );
}

#[test]
fn plan_mode_rejects_steps_that_write() {
    check(
        r#"
        have spec plan tasks
        model: text "Nothing found."
        > prompt /mode plan
        > end
        > still /speckit.constitution rules
        > still /speckit.specify albums
        > still /speckit.clarify
        > still /speckit.plan
        > still /speckit.checklist
        > still /speckit.tasks
        > still /speckit.implement
        > still /speckit.converge
        > still /speckit init
        > prompt /speckit.analyze
        > end
        "#,
        &expect![[r##"
            > prompt /mode plan
            < mode plan
            < config_option_update
            < text[note-1] Mode plan, model scripted.⏎
            = end_turn
            > still /speckit.constitution rules
            < text[note-2] Plan mode only reads, and this writes files. Change the mode first, with /mode.⏎
            = end_turn
            > still /speckit.specify albums
            < text[note-3] Plan mode only reads, and this writes files. Change the mode first, with /mode.⏎
            = end_turn
            > still /speckit.clarify
            < text[note-4] Plan mode only reads, and this writes files. Change the mode first, with /mode.⏎
            = end_turn
            > still /speckit.plan
            < text[note-5] Plan mode only reads, and this writes files. Change the mode first, with /mode.⏎
            = end_turn
            > still /speckit.checklist
            < text[note-6] Plan mode only reads, and this writes files. Change the mode first, with /mode.⏎
            = end_turn
            > still /speckit.tasks
            < text[note-7] Plan mode only reads, and this writes files. Change the mode first, with /mode.⏎
            = end_turn
            > still /speckit.implement
            < text[note-8] Plan mode only reads, and this writes files. Change the mode first, with /mode.⏎
            = end_turn
            > still /speckit.converge
            < text[note-9] Plan mode only reads, and this writes files. Change the mode first, with /mode.⏎
            = end_turn
            > still /speckit init
            < text[note-10] Plan mode only reads, and this writes files. Change the mode first, with /mode.⏎
            = end_turn
            > prompt /speckit.analyze
            < text[msg-2] Nothing found.
            < text[msg-3] ⏎**/speckit.analyze**⏎- Feature: .specify/specs/001-photo-albums⏎- tasks.md: 4 tasks in 4 phases, 0 done, 0 marked [P]⏎⏎Next: `/speckit.implement`⏎
            < title /speckit.analyze
            = end_turn
            asked 0
              user: "/speckit.analyze" + crow:speckit/analyze "# Cross-check spec, plan and tasks of 001-photo-albums"
        "##]],
    );
}

/// An unreadable constitution is reported before a step that checks against it.
#[test]
fn constitution_outside_the_project() {
    check(
        r"
        have spec
        > link .specify/memory/constitution.md /etc/hostname
        > still /speckit.plan Python
        ",
        &expect![[r#"
            > still /speckit.plan Python
            < text[note-1] $HOME/project/.specify/memory/constitution.md cannot be used: it leads out of .⏎
            = end_turn
        "#]],
    );
}
