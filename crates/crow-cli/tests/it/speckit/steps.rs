//! Each step from its command to its report, without problems.

use expect_test::expect;

use super::check;

#[test]
fn constitution() {
    check(
        r#"
        model: text "I write it." | call write {"file_path":".specify/memory/constitution.md","content":$constitution}
        model: text "One rule: photos stay."
        > prompt /speckit.constitution Photos stay as they are.
        > end
        > tree
        "#,
        &expect![[r##"
            > prompt /speckit.constitution Photos stay as they are.
            < text[msg-2] I write it.
            < call call-2-0 write "Write .specify/memory/constitution.md" pending {"file_path":".specify/memory/constitution.md","content":"$constitution"}
            < call call-2-0 in_progress
            < call call-2-0 completed diff $HOME/project/.specify/memory/constitution.md "# [PROJECT_NAME] Constitution\n\n<!-- Rules that hold for every feature of this project. Delete each comment when its part"… -> "$constitution"
            < text[msg-4] One rule: photos stay.
            < text[msg-5] ⏎**/speckit.constitution**⏎- .specify/memory/constitution.md: **Version**: 1.0.0 | **Ratified**: $DATE | **Last Amended**: $DATE⏎⏎Next: `/speckit.specify`⏎
            < title /speckit.constitution Photos stay as they are.
            = end_turn
            > tree
              .specify/crow/.gitignore *
              .specify/memory/constitution.md $constitution
            asked 0 with speckit_ask
              user: "/speckit.constitution Photos stay as they are." + crow:speckit/constitution "# Write the project's constitution"
            asked 1 with speckit_ask
              tool: "replaced .specify/memory/constitution.md: 49 lines before, 13 lines now"
        "##]],
    );
}

#[test]
fn specify() {
    check(
        r#"
        model: text "photo-albums"
        model: call read {"file_path":"$F/spec.md"}
        model: call write {"file_path":"$F/spec.md","content":$spec}
        model: call edit {"file_path":"$F/checklists/requirements.md","old_string":"- [ ] Nothing in it","new_string":"- [x] Nothing in it"}
        model: text "Albums by day."
        > prompt /speckit.specify Photos in albums, by day.
        > end
        > tree
        > cat .specify/feature.json
        "#,
        &expect![[r##"
            > prompt /speckit.specify Photos in albums, by day.
            < call call-2-0 read "Read .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md"}
            < call call-2-0 in_progress
            < call call-2-0 completed "     1\t# Feature Specification: Photo albums\n     2\t\n     3\t**Feature Branch**: `001-photo-albums`\n     4\t\n     5\t**Created**: $DATE\n     6\t\n     7\t**Statu"
            < call call-4-0 write "Write .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","content":"$spec"}
            < call call-4-0 in_progress
            < call call-4-0 completed diff $HOME/project/.specify/specs/001-photo-albums/spec.md "# Feature Specification: Photo albums\n\n**Feature Branch**: `001-photo-albums`\n\n**Created**: $DATE\n\n**Status**: Draf"… -> "$spec"
            < call call-6-0 edit "Edit .specify/specs/001-photo-albums/checklists/requirements.md" pending {"file_path":".specify/specs/001-photo-albums/checklists/requirements.md","old_string":"- [ ] Nothing in it","new_string":"- [x] Nothing in it"}
            < call call-6-0 in_progress
            < call call-6-0 completed diff $HOME/project/.specify/specs/001-photo-albums/checklists/requirements.md "- [ ] Nothing in it depends on a language, a framework, a database or an interface of code" -> "- [x] Nothing in it depends on a language, a framework, a database or an interface of code"
            < text[msg-8] Albums by day.
            < text[msg-9] ⏎**/speckit.specify**⏎- Feature: .specify/specs/001-photo-albums⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 0 open points⏎- checklists/requirements.md: 1 of 16 checked⏎- .specify/memory/constitution.md: not filled in, so no principle was checked (/speckit.constitution fills it in)⏎⏎Next: `/speckit.clarify`, `/speckit.plan`⏎
            < title /speckit.specify Photos in albums, by day.
            = end_turn
            > tree
              .specify/crow/.gitignore *
              .specify/crow/lock
              .specify/feature.json {"feature_directory":".specify/specs/001-photo-albums"}
              .specify/memory/constitution.md # [PROJECT_NAME] Constitution … 49 lines
              .specify/specs/001-photo-albums/checklists/requirements.md # Specification Quality Checklist: Photo albums … 34 lines
              .specify/specs/001-photo-albums/spec.md $spec
              specs -> .specify/specs
            .specify/feature.json:
              {"feature_directory":".specify/specs/001-photo-albums"}
            asked 0 without tools
              user: "Name a directory for this feature:\n\n<request>\nPhotos in albums, by day.\n</request>\n\nThe name has 2 to 4 words in small letters with hyphens between, at most 40 characters: what is done or made, in the words of the request, such as `photo-al"
            asked 1 with speckit_ask
              user: "/speckit.specify Photos in albums, by day." + crow:speckit/specify "# Write the spec of 001-photo-albums"
            asked 2 with speckit_ask
              tool: "     1\t# Feature Specification: Photo albums\n     2\t\n     3\t**Feature Branch**: `001-photo-albums`\n     4\t\n     5\t**Created**: $DATE\n     6\t\n     7\t**Status**: Draft\n     8\t\n     9\t**Input**: User description: \"Photos in albums, by day"
            asked 3 with speckit_ask
              tool: "replaced .specify/specs/001-photo-albums/spec.md: 83 lines before, 47 lines now"
            asked 4 with speckit_ask
              tool: "edited .specify/specs/001-photo-albums/checklists/requirements.md in 1 place; match: exact\n     6\t\n     7\t## Content Quality\n     8\t\n     9\t- [x] Nothing in it depends on a language, a framework, a database or an interface of code\n    10\t- "
        "##]],
    );
}

#[test]
fn clarify() {
    check(
        r#"
        have spec-open
        file $F/spec.md $spec-open
        model: call speckit_ask {"question":"May it write into the folder?","options":[{"label":"Never","meaning":"The order is kept elsewhere."},{"label":"One file","meaning":"The order lies beside the photos."}],"recommended":"Never"}
        model: call edit {"file_path":"$F/spec.md","old_string":" [NEEDS CLARIFICATION: may it write into the folder?]","new_string":", and writes nothing into their folder"}
        model: text "Settled."
        > prompt /speckit.clarify storage
        > end
        > prompt a
        > end
        > changes $F/spec.md spec-open
        "#,
        &expect![[r##"
            > prompt /speckit.clarify storage
            < call call-2-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"Never","meaning":"The order is kept elsewhere."},{"label":"One file","meaning":"The order lies beside the photos."}],"recommended":"Never"}
            < call call-2-0 in_progress
            < text[note-2] ⏎**May it write into the folder?**⏎⏎- **A** Never (recommended): The order is kept elsewhere.⏎- **B** One file: The order lies beside the photos.⏎⏎Answer with a letter, or your own words. `done` ends the questions, `cancel` ends the step.⏎
            < call call-2-0 completed "**May it write into the folder?**\n\n- **A** Never (recommended): The order is kept elsewhere.\n- **B** One file: The order lies beside the photos.\n\nAnswer with a "
            < title /speckit.clarify storage
            = end_turn
            > prompt a
            < call call-5-0 edit "Edit .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","old_string":" [NEEDS CLARIFICATION: may it write into the folder?]","new_string":", and writes nothing into their folder"}
            < call call-5-0 in_progress
            < call call-5-0 completed diff $HOME/project/.specify/specs/001-photo-albums/spec.md "- **FR-002**: The application MUST leave photos as they are [NEEDS CLARIFICATION: may it write into the folder?]" -> "- **FR-002**: The application MUST leave photos as they are, and writes nothing into their folder"
            < text[msg-7] Settled.
            < text[msg-8] ⏎**/speckit.clarify**⏎- Feature: .specify/specs/001-photo-albums⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 0 open points⏎- Answers recorded today: 1⏎⏎Next: `/speckit.plan`⏎
            = end_turn
            $F/spec.md:
              - - **FR-002**: The application MUST leave photos as they are [NEEDS CLARIFICATION: may it write into the folder?]
              + ## Clarifications
              + ### Session $DATE
              + - Q: May it write into the folder? → A: Never
              + - **FR-002**: The application MUST leave photos as they are, and writes nothing into their folder
            asked 0 with speckit_ask
              user: "/speckit.clarify storage" + crow:speckit/clarify "# Settle the open points of 001-photo-albums"
            asked 1 with speckit_ask
              tool: "the question was shown to the person; their answer comes as the next message"
              user: "a" + crow:speckit/answer "The person has answered your question."
            asked 2 with speckit_ask
              tool: "edited .specify/specs/001-photo-albums/spec.md in 1 place; match: exact\n    40\t### Functional Requirements\n    41\t\n    42\t- **FR-001**: The application MUST put each photo into the album of its day\n    43\t- **FR-002**: The application MUST "
        "##]],
    );
}

#[test]
fn plan() {
    check(
        r#"
        have spec
        model: call write {"file_path":"$F/plan.md","content":$plan}
        model: call write {"file_path":"$F/research.md","content":$research}
        model: call write {"file_path":"$F/quickstart.md","content":$quickstart}
        model: text "Python, nothing else."
        > prompt /speckit.plan Python 3.11, no dependencies
        > end
        > tree
        "#,
        &expect![[r##"
            > prompt /speckit.plan Python 3.11, no dependencies
            < call call-2-0 write "Write .specify/specs/001-photo-albums/plan.md" pending {"file_path":".specify/specs/001-photo-albums/plan.md","content":"$plan"}
            < call call-2-0 in_progress
            < call call-2-0 completed diff $HOME/project/.specify/specs/001-photo-albums/plan.md "# Implementation Plan: Photo albums\n\n**Branch**: `001-photo-albums` | **Date**: $DATE | **Spec**: [spec.md](spec.md"… -> "$plan"
            < call call-4-0 write "Write .specify/specs/001-photo-albums/research.md" pending {"file_path":".specify/specs/001-photo-albums/research.md","content":"$research"}
            < call call-4-0 in_progress
            < call call-4-0 completed diff $HOME/project/.specify/specs/001-photo-albums/research.md null -> "$research"
            < call call-6-0 write "Write .specify/specs/001-photo-albums/quickstart.md" pending {"file_path":".specify/specs/001-photo-albums/quickstart.md","content":"$quickstart"}
            < call call-6-0 in_progress
            < call call-6-0 completed diff $HOME/project/.specify/specs/001-photo-albums/quickstart.md null -> "$quickstart"
            < text[msg-8] Python, nothing else.
            < text[msg-9] ⏎**/speckit.plan**⏎- Feature: .specify/specs/001-photo-albums⏎- plan.md, research.md, quickstart.md⏎⏎Next: `/speckit.tasks`, `/speckit.checklist`⏎
            < title /speckit.plan Python 3.11, no dependencies
            = end_turn
            > tree
              .specify/feature.json {"feature_directory":".specify/specs/001-photo-albums"}
              .specify/specs/001-photo-albums/plan.md $plan
              .specify/specs/001-photo-albums/quickstart.md $quickstart
              .specify/specs/001-photo-albums/research.md $research
              .specify/specs/001-photo-albums/spec.md $spec
            asked 0
              user: "/speckit.plan Python 3.11, no dependencies" + crow:speckit/plan "# Plan how 001-photo-albums is built"
            asked 1
              tool: "replaced .specify/specs/001-photo-albums/plan.md: 65 lines before, 59 lines now"
            asked 2
              tool: "created .specify/specs/001-photo-albums/research.md: 7 lines"
            asked 3
              tool: "created .specify/specs/001-photo-albums/quickstart.md: 3 lines"
        "##]],
    );
}

#[test]
fn checklist() {
    check(
        r#"
        have spec plan
        model: call write {"file_path":"$F/checklists/security.md","content":$security}
        model: text "Two questions."
        > prompt /speckit.checklist security
        > end
        > tree
        "#,
        &expect![[r##"
            > prompt /speckit.checklist security
            < call call-2-0 write "Write .specify/specs/001-photo-albums/checklists/security.md" pending {"file_path":".specify/specs/001-photo-albums/checklists/security.md","content":"$security"}
            < call call-2-0 in_progress
            < call call-2-0 completed diff $HOME/project/.specify/specs/001-photo-albums/checklists/security.md null -> "$security"
            < text[msg-4] Two questions.
            < text[msg-5] ⏎**/speckit.checklist**⏎- Feature: .specify/specs/001-photo-albums⏎- checklists/security.md: 0 of 2 checked⏎⏎Next: `/speckit.tasks`⏎
            < title /speckit.checklist security
            = end_turn
            > tree
              .specify/feature.json {"feature_directory":".specify/specs/001-photo-albums"}
              .specify/specs/001-photo-albums/checklists/security.md $security
              .specify/specs/001-photo-albums/plan.md $plan
              .specify/specs/001-photo-albums/spec.md $spec
            asked 0 with speckit_ask
              user: "/speckit.checklist security" + crow:speckit/checklist "# Make a review list for 001-photo-albums"
            asked 1 with speckit_ask
              tool: "created .specify/specs/001-photo-albums/checklists/security.md: 14 lines"
        "##]],
    );
}

#[test]
fn analyze() {
    check(
        r#"
        have spec plan tasks
        model: call read {"file_path":"$F/tasks.md","limit":2}
        model: text "| ID | Severity |\n|---|---|\n| A1 | LOW |"
        > prompt /speckit.analyze coverage
        > end
        > tree
        "#,
        &expect![[r##"
            > prompt /speckit.analyze coverage
            < call call-2-0 read "Read .specify/specs/001-photo-albums/tasks.md" pending {"file_path":".specify/specs/001-photo-albums/tasks.md","limit":2}
            < call call-2-0 in_progress
            < call call-2-0 completed "     1\t---\n     2\tdescription: \"The tasks of one feature, in the order of the work\"\n(lines 1 to 2 of 31; continue with offset=3)\n"
            < text[msg-4] | ID | Severity |⏎|---|---|⏎| A1 | LOW |
            < text[msg-5] ⏎**/speckit.analyze**⏎- Feature: .specify/specs/001-photo-albums⏎- tasks.md: 4 tasks in 4 phases, 0 done, 0 marked [P]⏎⏎Next: `/speckit.implement`⏎
            < title /speckit.analyze coverage
            = end_turn
            > tree
              .specify/feature.json {"feature_directory":".specify/specs/001-photo-albums"}
              .specify/specs/001-photo-albums/plan.md $plan
              .specify/specs/001-photo-albums/spec.md $spec
              .specify/specs/001-photo-albums/tasks.md $tasks
            asked 0
              user: "/speckit.analyze coverage" + crow:speckit/analyze "# Cross-check spec, plan and tasks of 001-photo-albums"
            asked 1
              tool: "     1\t---\n     2\tdescription: \"The tasks of one feature, in the order of the work\"\n(lines 1 to 2 of 31; continue with offset=3)"
        "##]],
    );
}
