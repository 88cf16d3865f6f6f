//! The results of `/speckit`, and the feature of a session.

use expect_test::expect;

use super::check;

#[test]
fn status_without_a_feature() {
    check(
        r#"
        > still /speckit
        > still /speckit doctor
        > still /speckit templates
        > still /speckit use 001
        > still /speckit dance
        > prompt /speckit init
        > end
        > tree
        > still /speckit init
        "#,
        &expect![[r#"
            > still /speckit
            < text[note-1] No feature yet in $HOME/project. Start with /speckit.constitution or /speckit.specify.⏎
            = end_turn
            > still /speckit doctor
            < text[note-2] - there is no .specify/ yet; the first step creates what it needs⏎- the project has no feature yet⏎- new features go to .specify/specs⏎
            = end_turn
            > still /speckit templates
            < text[note-3] Page templates:⏎- spec-template: Crow⏎- plan-template: Crow⏎- tasks-template: Crow⏎- constitution-template: Crow⏎- checklist-template: Crow⏎- requirements-template: Crow⏎⏎Prompts:⏎- /speckit.constitution: Crow⏎- /speckit.specify: Crow⏎- /speckit.clarify: Crow⏎- /speckit.plan: Crow⏎- /speckit.checklist: Crow⏎- /speckit.tasks: Crow⏎- /speckit.analyze: Crow⏎- /speckit.implement: Crow⏎- /speckit.converge: Crow⏎- /speckit.taskstoissues: Crow⏎
            = end_turn
            > still /speckit use 001
            < text[note-4] There is no feature "001"; create one with /speckit.specify.⏎
            = end_turn
            > still /speckit dance
            < text[note-5] `/speckit` shows the state of the workflow. `/speckit use 002` switches to another feature, `/speckit init` prepares the project, `/speckit templates` shows where each template comes from, `/speckit doctor` shows problems.⏎
            = end_turn
            > prompt /speckit init
            < text[note-6] Created:⏎- `.specify/memory`⏎- `.specify/memory/constitution.md`⏎- `.specify/crow`⏎⏎Fill in the constitution with /speckit.constitution.⏎
            = end_turn
            > tree
              .specify/crow/.gitignore *
              .specify/memory/constitution.md # [PROJECT_NAME] Constitution … 49 lines
            > still /speckit init
            < text[note-7] The project is prepared already.⏎
            = end_turn
        "#]],
    );
}

#[test]
fn status_of_a_feature_in_progress() {
    check(
        r#"
        have spec plan tasks security
        file .specify/specs/002-music/spec.md $spec
        file .specify/templates/overrides/spec-template.md "Spec\n"
        > still /speckit
        > still /speckit doctor
        > still /speckit templates
        > prompt /speckit use 2
        > end
        > cat .specify/feature.json
        > still /speckit status
        > still /speckit use 9
        "#,
        &expect![[r#"
            > still /speckit
            < text[note-1] - ▸ `001-photo-albums`: spec, plan, 0 of 4 tasks done, 2 open checklist items⏎- · `002-music`: spec⏎⏎Next: `/speckit.implement`⏎
            = end_turn
            > still /speckit doctor
            < text[note-2] - new features go to .specify/specs⏎
            = end_turn
            > still /speckit templates
            < text[note-3] Page templates:⏎- spec-template: this project's override⏎- plan-template: Crow⏎- tasks-template: Crow⏎- constitution-template: Crow⏎- checklist-template: Crow⏎- requirements-template: Crow⏎⏎Prompts:⏎- /speckit.constitution: Crow⏎- /speckit.specify: Crow⏎- /speckit.clarify: Crow⏎- /speckit.plan: Crow⏎- /speckit.checklist: Crow⏎- /speckit.tasks: Crow⏎- /speckit.analyze: Crow⏎- /speckit.implement: Crow⏎- /speckit.converge: Crow⏎- /speckit.taskstoissues: Crow⏎
            = end_turn
            > prompt /speckit use 2
            < text[note-4] Switched to `.specify/specs/002-music`: spec⏎
            = end_turn
            .specify/feature.json:
              {"feature_directory":".specify/specs/002-music"}
            > still /speckit status
            < text[note-5] - · `001-photo-albums`: spec, plan, 0 of 4 tasks done, 2 open checklist items⏎- ▸ `002-music`: spec⏎⏎Next: `/speckit.plan`⏎
            = end_turn
            > still /speckit use 9
            < text[note-6] There is no feature "9"; select one with /speckit use or --feature: 001-photo-albums, 002-music.⏎
            = end_turn
        "#]],
    );
}

#[test]
fn sessions_work_on_separate_features() {
    check(
        r#"
        have spec plan
        file .specify/specs/002-music/spec.md $spec
        model: call write {"file_path":"$F/checklists/security.md","content":$security}
        model: text "Done."
        > prompt /speckit use 1
        > end
        > second
        > prompt /speckit use .specify/specs/002-music
        > end
        > first
        > prompt /speckit.checklist
        > end
        > first
        > still /speckit
        > cat .specify/feature.json
        "#,
        &expect![[r##"
            > prompt /speckit use 1
            < text[note-1] Switched to `.specify/specs/001-photo-albums`: spec, plan⏎
            = end_turn
            > second
            > prompt /speckit use .specify/specs/002-music
            < text[note-2] Switched to `.specify/specs/002-music`: spec⏎
            = end_turn
            > first
            > prompt /speckit.checklist
            < text[note-3] This session works on .specify/specs/001-photo-albums; the project points at .specify/specs/002-music (`/speckit use` changes both).⏎
            < call call-2-0 write "Write .specify/specs/001-photo-albums/checklists/security.md" pending {"file_path":".specify/specs/001-photo-albums/checklists/security.md","content":"$security"}
            < call call-2-0 in_progress
            < call call-2-0 completed diff $HOME/project/.specify/specs/001-photo-albums/checklists/security.md null -> "$security"
            < text[msg-4] Done.
            < text[msg-5] ⏎**/speckit.checklist**⏎- Feature: .specify/specs/001-photo-albums⏎- checklists/security.md: 0 of 2 checked⏎⏎Next: `/speckit.tasks`⏎
            < title /speckit.checklist
            = end_turn
            > first
            > still /speckit
            < text[note-5] - · `001-photo-albums`: spec, plan, 2 open checklist items⏎- ▸ `002-music`: spec⏎⏎Next: `/speckit.plan`⏎
            = end_turn
            .specify/feature.json:
              {"feature_directory":".specify/specs/002-music"}
            asked 0 with speckit_ask
              user: "/speckit.checklist" + crow:speckit/checklist "# Make a review list for 001-photo-albums"
            asked 1 with speckit_ask
              tool: "created .specify/specs/001-photo-albums/checklists/security.md: 14 lines"
        "##]],
    );
}

#[test]
fn fork_and_new_process_work_on_the_same_feature() {
    check(
        r#"
        have spec
        file .specify/specs/002-music/spec.md $spec
        > prompt /speckit use 2
        > end
        > put .specify/feature.json "{\"feature_directory\":\"specs/001-photo-albums\"}"
        > fork
        > still /speckit
        > kill
        > still /speckit
        "#,
        &expect![[r#"
            > prompt /speckit use 2
            < text[note-1] Switched to `.specify/specs/002-music`: spec⏎
            = end_turn
            > fork
            > still /speckit
            < text[note-2] - · `001-photo-albums`: spec⏎- ▸ `002-music`: spec⏎⏎This session works on .specify/specs/002-music; the project points at specs/001-photo-albums (`/speckit use` changes both).⏎⏎Next: `/speckit.plan`⏎
            = end_turn
            > kill
            > still /speckit
            < text[note-1] - · `001-photo-albums`: spec⏎- ▸ `002-music`: spec⏎⏎This session works on .specify/specs/002-music; the project points at specs/001-photo-albums (`/speckit use` changes both).⏎⏎Next: `/speckit.plan`⏎
            = end_turn
        "#]],
    );
}

#[test]
fn feature_creation_is_undone() {
    check(
        r#"
        model: call write {"file_path":"$F/spec.md","content":$spec}
        model: text "Done."
        > prompt /speckit.specify --short-name photo-albums Photos in albums
        > end
        > prompt /undo
        > end
        > tree
        > still /speckit
        > still /speckit.plan
        "#,
        &expect![[r##"
            > prompt /speckit.specify --short-name photo-albums Photos in albums
            < call call-2-0 write "Write .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","content":"$spec"}
            < call call-2-0 in_progress
            < call call-2-0 completed diff $HOME/project/.specify/specs/001-photo-albums/spec.md "# Feature Specification: Photo albums\n\n**Feature Branch**: `001-photo-albums`\n\n**Created**: $DATE\n\n**Status**: Draf"… -> "$spec"
            < text[msg-4] Done.
            < text[msg-5] ⏎**/speckit.specify**⏎- Feature: .specify/specs/001-photo-albums⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 0 open points⏎- checklists/requirements.md: 0 of 16 checked⏎- .specify/memory/constitution.md: not filled in, so no principle was checked (/speckit.constitution fills it in)⏎⏎Next: `/speckit.clarify`, `/speckit.plan`⏎
            < title /speckit.specify --short-name photo-albums Photos in albums
            = end_turn
            > prompt /undo
            < text[note-2] - `.specify/feature.json`: removed⏎- `.specify/memory/constitution.md`: removed⏎- `.specify/specs/001-photo-albums/checklists/requirements.md`: removed⏎- `.specify/specs/001-photo-albums/spec.md`: removed⏎
            = end_turn
            > tree
              .specify/crow/.gitignore *
              .specify/crow/lock
              specs -> .specify/specs
            > still /speckit
            < text[note-3] - ▸ `001-photo-albums`: empty⏎⏎Next: `/speckit.specify`⏎
            = end_turn
            > still /speckit.plan
            < text[note-4] .specify/specs/001-photo-albums/spec.md does not exist; run /speckit.specify first.⏎
            = end_turn
            asked 0 with speckit_ask
              user: "/speckit.specify --short-name photo-albums Photos in albums" + crow:speckit/specify "# Write the spec of 001-photo-albums"
            asked 1 with speckit_ask
              tool: "replaced .specify/specs/001-photo-albums/spec.md: 83 lines before, 47 lines now"
        "##]],
    );
}

#[test]
fn plan_creation_is_undone() {
    check(
        r#"
        have spec research quickstart
        model: call write {"file_path":"$F/plan.md","content":$plan}
        model: text "Done."
        > prompt /speckit.plan
        > end
        > prompt /undo
        > end
        > tree
        "#,
        &expect![[r##"
            > prompt /speckit.plan
            < call call-2-0 write "Write .specify/specs/001-photo-albums/plan.md" pending {"file_path":".specify/specs/001-photo-albums/plan.md","content":"$plan"}
            < call call-2-0 in_progress
            < call call-2-0 completed diff $HOME/project/.specify/specs/001-photo-albums/plan.md "# Implementation Plan: Photo albums\n\n**Branch**: `001-photo-albums` | **Date**: $DATE | **Spec**: [spec.md](spec.md"… -> "$plan"
            < text[msg-4] Done.
            < text[msg-5] ⏎**/speckit.plan**⏎- Feature: .specify/specs/001-photo-albums⏎- plan.md, research.md, quickstart.md⏎⏎Next: `/speckit.tasks`, `/speckit.checklist`⏎
            < title /speckit.plan
            = end_turn
            > prompt /undo
            < text[note-2] - `.specify/specs/001-photo-albums/plan.md`: removed⏎
            = end_turn
            > tree
              .specify/feature.json {"feature_directory":".specify/specs/001-photo-albums"}
              .specify/specs/001-photo-albums/quickstart.md $quickstart
              .specify/specs/001-photo-albums/research.md $research
              .specify/specs/001-photo-albums/spec.md $spec
            asked 0
              user: "/speckit.plan" + crow:speckit/plan "# Plan how 001-photo-albums is built"
            asked 1
              tool: "replaced .specify/specs/001-photo-albums/plan.md: 65 lines before, 59 lines now"
        "##]],
    );
}
