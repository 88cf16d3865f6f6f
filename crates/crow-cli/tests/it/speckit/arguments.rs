//! Arguments of a step, and the name of a new feature.

use expect_test::expect;

use super::{check, transcript_of};

/// The user's text is never a template: it is unchanged in the prompt and in the prompt of the step.
#[test]
fn multiple_lines_are_unchanged() {
    check(
        r#"
        have spec research quickstart
        model: call write {"file_path":"$F/plan.md","content":$plan}
        model: text "Done."
        > prompt /speckit-plan {{7*7}} and $ARGUMENTS\n\n  - {% if x %}\t[DATE]\n--unknown x
        > end
        > told {{7*7}} and $ARGUMENTS\n\n  - {% if x %}\\t[DATE]\n--unknown x
        "#,
        &expect![[r##"
            > prompt /speckit-plan {{7*7}} and $ARGUMENTS\n\n  - {% if x %}\t[DATE]\n--unknown x
            < call call-2-0 write "Write .specify/specs/001-photo-albums/plan.md" pending {"file_path":".specify/specs/001-photo-albums/plan.md","content":"$plan"}
            < call call-2-0 in_progress
            < call call-2-0 completed diff $HOME/project/.specify/specs/001-photo-albums/plan.md "# Implementation Plan: Photo albums\n\n**Branch**: `001-photo-albums` | **Date**: $DATE | **Spec**: [spec.md](spec.md"… -> "$plan"
            < text[msg-4] Done.
            < text[msg-5] ⏎**/speckit.plan**⏎- Feature: .specify/specs/001-photo-albums⏎- plan.md, research.md, quickstart.md⏎⏎Next: `/speckit.tasks`, `/speckit.checklist`⏎
            < title /speckit-plan {{7*7}} and $ARGUMENTS
            = end_turn
            told 2 times
            asked 0
              user: "/speckit-plan {{7*7}} and $ARGUMENTS\n\n  - {% if x %}\\t[DATE]\n--unknown x" + crow:speckit/plan "# Plan how 001-photo-albums is built"
            asked 1
              tool: "replaced .specify/specs/001-photo-albums/plan.md: 65 lines before, 59 lines now"
        "##]],
    );
}

#[test]
fn unknown_option_is_text() {
    check(
        r#"
        model: call write {"file_path":".specify/specs/007-own-name/spec.md","content":$spec}
        model: text "Done."
        > prompt /speckit.specify --number 7 --short-name "Own Name" --x y -- --number 8 {{7*7}} $ARGUMENTS [DATE]
        > end
        > tree
        > still /speckit.specify --number seven x
        > still /speckit.specify --number 8
        > still /speckit.specify --short-name
        "#,
        &expect![[r##"
            > prompt /speckit.specify --number 7 --short-name "Own Name" --x y -- --number 8 {{7*7}} $ARGUMENTS [DATE]
            < call call-2-0 write "Write .specify/specs/007-own-name/spec.md" pending {"file_path":".specify/specs/007-own-name/spec.md","content":"$spec"}
            < call call-2-0 in_progress
            < call call-2-0 completed diff $HOME/project/.specify/specs/007-own-name/spec.md "# Feature Specification: Own name\n\n**Feature Branch**: `007-own-name`\n\n**Created**: $DATE\n\n**Status**: Draft\n\n**Inp"… -> "$spec"
            < text[msg-4] Done.
            < text[msg-5] ⏎**/speckit.specify**⏎- Feature: .specify/specs/007-own-name⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 0 open points⏎- checklists/requirements.md: 0 of 16 checked⏎- .specify/memory/constitution.md: not filled in, so no principle was checked (/speckit.constitution fills it in)⏎⏎Next: `/speckit.clarify`, `/speckit.plan`⏎
            < title /speckit.specify --number 7 --short-name "Own Name" --x y --…
            = end_turn
            > tree
              .specify/crow/.gitignore *
              .specify/crow/lock
              .specify/feature.json {"feature_directory":".specify/specs/007-own-name"}
              .specify/memory/constitution.md # [PROJECT_NAME] Constitution … 49 lines
              .specify/specs/007-own-name/checklists/requirements.md # Specification Quality Checklist: Own name … 34 lines
              .specify/specs/007-own-name/spec.md $spec
              specs -> .specify/specs
            > still /speckit.specify --number seven x
            < text[note-2] --number needs a number, not seven.⏎
            = end_turn
            > still /speckit.specify --number 8
            < text[note-3] There is nothing to specify; describe after /speckit.specify what to build and why.⏎
            = end_turn
            > still /speckit.specify --short-name
            < text[note-4] --short-name needs a value.⏎
            = end_turn
            asked 0 with speckit_ask
              user: "/speckit.specify --number 7 --short-name \"Own Name\" --x y -- --number 8 {{7*7}} $ARGUMENTS [DATE]" + crow:speckit/specify "# Write the spec of 007-own-name"
            asked 1 with speckit_ask
              tool: "replaced .specify/specs/007-own-name/spec.md: 83 lines before, 47 lines now"
        "##]],
    );
}

#[test]
fn description_is_not_parsed_as_options() {
    check(
        r#"
        model: text "hold" | hold
        > prompt /speckit.specify --short-name a-b --x {{7*7}} $ARGUMENTS [DATE]
        > wait hold
        > cat .specify/specs/001-a-b/spec.md **
        > cancel
        > end
        "#,
        &expect![[r##"
            > prompt /speckit.specify --short-name a-b --x {{7*7}} $ARGUMENTS [DATE]
            < text[msg-2] hold
            .specify/specs/001-a-b/spec.md:
              **Feature Branch**: `001-a-b`
              **Created**: $DATE
              **Status**: Draft
              **Input**: User description: "--x {{7*7}} $ARGUMENTS [DATE]"
              **Why this priority**: [What people would lose without this story]
              **Independent Test**: [What a tester does to see this story work while the others do not exist]
              **Acceptance Scenarios**:
              1. **Given** [how things stand], **When** [one thing is done], **Then** [what can be seen]
              2. **Given** [something is wrong or missing], **When** [the same thing is done], **Then** [what can be seen]
              **Why this priority**: [Why it can wait for the first]
              **Independent Test**: [What a tester does to see it]
              **Acceptance Scenarios**:
              1. **Given** [how things stand], **When** [one thing is done], **Then** [what can be seen]
              - **FR-001**: [Who or what] MUST [do one thing]
              - **FR-002**: [Who or what] MUST [do one thing]
              - **[Entity]**: [what it stands for, what is known of it, what it belongs to]
              - **SC-001**: [Who reaches what, how often or how fast]
              - **SC-002**: [What holds, for how many or how long]
            > cancel
            < text[msg-3] ⏎/speckit.specify was not finished. .specify/specs/001-a-b/spec.md exists; repeat the same command to continue it.⏎
            < title /speckit.specify --short-name a-b --x {{7*7}} $ARGUMENTS [DA…
            = cancelled
            asked 0 with speckit_ask
              user: "/speckit.specify --short-name a-b --x {{7*7}} $ARGUMENTS [DATE]" + crow:speckit/specify "# Write the spec of 001-a-b"
        "##]],
    );
}

#[test]
fn feature_is_selected_by_its_number() {
    check(
        r#"
        have spec
        file .specify/specs/002-music/spec.md $spec
        file .specify/specs/002-music/research.md $research
        file .specify/specs/002-music/quickstart.md $quickstart
        model: call write {"file_path":".specify/specs/002-music/plan.md","content":$plan}
        model: text "Done."
        > prompt /speckit.plan --feature 2 Rust
        > end
        > cat .specify/feature.json
        > still /speckit status
        "#,
        &expect![[r##"
            > prompt /speckit.plan --feature 2 Rust
            < call call-2-0 write "Write .specify/specs/002-music/plan.md" pending {"file_path":".specify/specs/002-music/plan.md","content":"$plan"}
            < call call-2-0 in_progress
            < call call-2-0 completed diff $HOME/project/.specify/specs/002-music/plan.md "# Implementation Plan: Music\n\n**Branch**: `002-music` | **Date**: $DATE | **Spec**: [spec.md](spec.md)\n\n**Input**: "… -> "$plan"
            < text[msg-4] Done.
            < text[msg-5] ⏎**/speckit.plan**⏎- Feature: .specify/specs/002-music⏎- plan.md, research.md, quickstart.md⏎⏎Next: `/speckit.tasks`, `/speckit.checklist`⏎
            < title /speckit.plan --feature 2 Rust
            = end_turn
            .specify/feature.json:
              {"feature_directory":".specify/specs/001-photo-albums"}
            > still /speckit status
            < text[note-2] - · `001-photo-albums`: spec⏎- ▸ `002-music`: spec, plan⏎⏎This session works on .specify/specs/002-music; the project points at .specify/specs/001-photo-albums (`/speckit use` changes both).⏎⏎Next: `/speckit.tasks`⏎
            = end_turn
            asked 0
              user: "/speckit.plan --feature 2 Rust" + crow:speckit/plan "# Plan how 002-music is built"
            asked 1
              tool: "replaced .specify/specs/002-music/plan.md: 65 lines before, 59 lines now"
        "##]],
    );
}

/// The directory is the same after a report, a failure and silence.
#[test]
fn name_is_derived_from_the_description_if_invalid() {
    let transcripts = [
        r#"text "I would call it the great photo album organiser feature""#,
        r#"text """#,
        r#"status 500 {"error": "down"}"#,
    ]
    .map(|answer| {
        transcript_of(&format!(
            r#"
            model: {answer}
            model: text "begun" | hold
            > prompt /speckit.specify Build an application that sorts photos
            > wait begun
            > tree
            > cancel
            > end
            "#
        ))
    });
    assert_eq!((&transcripts[0], &transcripts[1]), (&transcripts[1], &transcripts[2]));
    expect![[r##"
        > prompt /speckit.specify Build an application that sorts photos
        < text[msg-2] begun
        > tree
          .specify/crow/.gitignore *
          .specify/crow/lock
          .specify/feature.json {"feature_directory":".specify/specs/001-build-application-sorts-photos"}
          .specify/memory/constitution.md # [PROJECT_NAME] Constitution … 49 lines
          .specify/specs/001-build-application-sorts-photos/checklists/requirements.md # Specification Quality Checklist: Build application sorts photos … 34 lines
          .specify/specs/001-build-application-sorts-photos/spec.md # Feature Specification: Build application sorts photos … 83 lines
          specs -> .specify/specs
        > cancel
        < text[msg-3] ⏎/speckit.specify was not finished. .specify/specs/001-build-application-sorts-photos/spec.md exists; repeat the same command to continue it.⏎
        < title /speckit.specify Build an application that sorts photos
        = cancelled
        asked 0 without tools
          user: "Name a directory for this feature:\n\n<request>\nBuild an application that sorts photos\n</request>\n\nThe name has 2 to 4 words in small letters with hyphens between, at most 40 characters: what is done or made, in the words of the request, such"
        asked 1 with speckit_ask
          user: "/speckit.specify Build an application that sorts photos" + crow:speckit/specify "# Write the spec of 001-build-application-sorts-photos"
    "##]].assert_eq(&transcripts[0]);
}

#[test]
fn cancel_while_the_name_is_requested() {
    check(
        r#"
        model: text "photo-" | hold
        model: text "Hello."
        > prompt /speckit.specify Photos in albums, by day.
        > asked 1
        > cancel
        > end
        > hung-up 0
        > tree
        > still /speckit status
        > prompt hello
        > end
        "#,
        &expect![[r#"
            > prompt /speckit.specify Photos in albums, by day.
            > cancel
            < title /speckit.specify Photos in albums, by day.
            = cancelled
            > tree
            > still /speckit status
            < text[note-1] No feature yet in $HOME/project. Start with /speckit.constitution or /speckit.specify.⏎
            = end_turn
            > prompt hello
            < text[msg-2] Hello.
            = end_turn
            asked 0 without tools
              user: "Name a directory for this feature:\n\n<request>\nPhotos in albums, by day.\n</request>\n\nThe name has 2 to 4 words in small letters with hyphens between, at most 40 characters: what is done or made, in the words of the request, such as `photo-al"
            asked 1
              user: "/speckit.specify Photos in albums, by day.\nhello"
        "#]],
    );
}

#[test]
fn description_without_a_word_creates_no_feature() {
    check(
        r#"
        model: text "!?"
        > prompt /speckit.specify !!!
        > end
        > tree
        "#,
        &expect![[r#"
            > prompt /speckit.specify !!!
            < text[note-1] The name has no letters or digits; choose one with --short-name, such as user-auth.⏎
            = end_turn
            > tree
        "#]],
    );
}

/// A given directory, then the next number beside the first one; the project selects the latest feature.
#[test]
fn features_are_created_in_sequence() {
    check(
        r#"
        have spec
        model: call write {"file_path":"docs/own/spec.md","content":$spec}
        model: text "Done."
        model: call write {"file_path":".specify/specs/002-music/spec.md","content":$spec}
        model: text "Done."
        > prompt /speckit.specify --dir docs/own Own place
        > end
        > cat .specify/feature.json
        > still /speckit
        > prompt /speckit.specify --short-name music Songs
        > end
        > cat .specify/feature.json
        > still /speckit
        "#,
        &expect![[r##"
            > prompt /speckit.specify --dir docs/own Own place
            < call call-2-0 write "Write docs/own/spec.md" pending {"file_path":"docs/own/spec.md","content":"$spec"}
            < call call-2-0 in_progress
            < call call-2-0 completed diff $HOME/project/docs/own/spec.md "# Feature Specification: Own\n\n**Feature Branch**: `own`\n\n**Created**: $DATE\n\n**Status**: Draft\n\n**Input**: User des"… -> "$spec"
            < text[msg-4] Done.
            < text[msg-5] ⏎**/speckit.specify**⏎- Feature: docs/own⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 0 open points⏎- checklists/requirements.md: 0 of 16 checked⏎⏎Next: `/speckit.clarify`, `/speckit.plan`⏎
            < title /speckit.specify --dir docs/own Own place
            = end_turn
            .specify/feature.json:
              {"feature_directory":"docs/own"}
            > still /speckit
            < text[note-2] - · `001-photo-albums`: spec⏎- ▸ `own`: spec, 16 open checklist items⏎⏎Next: `/speckit.plan`⏎
            = end_turn
            > prompt /speckit.specify --short-name music Songs
            < call call-8-0 write "Write .specify/specs/002-music/spec.md" pending {"file_path":".specify/specs/002-music/spec.md","content":"$spec"}
            < call call-8-0 in_progress
            < call call-8-0 completed diff $HOME/project/.specify/specs/002-music/spec.md "# Feature Specification: Music\n\n**Feature Branch**: `002-music`\n\n**Created**: $DATE\n\n**Status**: Draft\n\n**Input**: "… -> "$spec"
            < text[msg-10] Done.
            < text[msg-11] ⏎**/speckit.specify**⏎- Feature: .specify/specs/002-music⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 0 open points⏎- checklists/requirements.md: 0 of 16 checked⏎⏎Next: `/speckit.clarify`, `/speckit.plan`⏎
            = end_turn
            .specify/feature.json:
              {"feature_directory":".specify/specs/002-music"}
            > still /speckit
            < text[note-4] - · `001-photo-albums`: spec⏎- ▸ `002-music`: spec, 16 open checklist items⏎⏎Next: `/speckit.plan`⏎
            = end_turn
            asked 0 with speckit_ask
              user: "/speckit.specify --dir docs/own Own place" + crow:speckit/specify "# Write the spec of own"
            asked 1 with speckit_ask
              tool: "replaced docs/own/spec.md: 83 lines before, 47 lines now"
            asked 2 with speckit_ask
              user: + crow:speckit/report "" "/speckit.specify --short-name music Songs" + crow:speckit/specify "# Write the spec of 002-music"
            asked 3 with speckit_ask
              tool: "replaced .specify/specs/002-music/spec.md: 83 lines before, 47 lines now"
        "##]],
    );
}
