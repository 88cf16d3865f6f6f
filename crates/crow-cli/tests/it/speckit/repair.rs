//! Problems of a page are returned to the model as often as the step allows, and reported if they remain.

use expect_test::expect;

use super::check;

#[test]
fn spec_is_repaired_once() {
    check(
        r#"
        model: call write {"file_path":"$F/spec.md","content":$spec-bad}
        model: text "Written."
        model: call edit {"file_path":"$F/spec.md","old_string":"- **FR-001**: The application MUST leave","new_string":"- **FR-002**: The application MUST leave"}
        model: text "Numbered."
        > prompt /speckit.specify --short-name photo-albums Photos in albums
        > end
        "#,
        &expect![[r##"
            > prompt /speckit.specify --short-name photo-albums Photos in albums
            < call call-2-0 write "Write .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","content":"$spec-bad"}
            < call call-2-0 in_progress
            < call call-2-0 completed diff $HOME/project/.specify/specs/001-photo-albums/spec.md "# Feature Specification: Photo albums\n\n**Feature Branch**: `001-photo-albums`\n\n**Created**: $DATE\n\n**Status**: Draf"… -> "$spec-bad"
            < text[msg-4] Written.
            < call call-6-0 edit "Edit .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","old_string":"- **FR-001**: The application MUST leave","new_string":"- **FR-002**: The application MUST leave"}
            < call call-6-0 in_progress
            < call call-6-0 completed diff $HOME/project/.specify/specs/001-photo-albums/spec.md "- **FR-001**: The application MUST leave photos as they are" -> "- **FR-002**: The application MUST leave photos as they are"
            < text[msg-8] Numbered.
            < text[msg-9] ⏎**/speckit.specify**⏎- Feature: .specify/specs/001-photo-albums⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 0 open points⏎- checklists/requirements.md: 0 of 16 checked⏎- .specify/memory/constitution.md: not filled in, so no principle was checked (/speckit.constitution fills it in)⏎⏎Remaining problems:⏎- spec.md: line 13: story 1 does not say **Why this priority**: …; add it⏎
            < title /speckit.specify --short-name photo-albums Photos in albums
            = end_turn
            asked 0 with speckit_ask
              user: "/speckit.specify --short-name photo-albums Photos in albums" + crow:speckit/specify "# Write the spec of 001-photo-albums"
            asked 1 with speckit_ask
              tool: "replaced .specify/specs/001-photo-albums/spec.md: 83 lines before, 45 lines now"
            asked 2 with speckit_ask
              user: + crow:speckit/repair "Crow has checked what is on disk now, after `/speckit.specify`. This does not hold yet:"
                - spec.md: line 13: story 1 does not say **Why this priority**: …; add it
                - spec.md: line 35: FR-001 is there twice; number it on
            asked 3 with speckit_ask
              tool: "edited .specify/specs/001-photo-albums/spec.md in 1 place; match: exact\n    32\t### Functional Requirements\n    33\t\n    34\t- **FR-001**: The application MUST put each photo into the album of its day\n    35\t- **FR-002**: The application MUST "
        "##]],
    );
}

#[test]
fn spec_that_is_corrected() {
    check(
        r#"
        have spec
        model: call read {"file_path":"$F/spec.md"}
        model: call write {"file_path":"$F/spec.md","content":$spec-bad}
        model: text "Written."
        model: call write {"file_path":"$F/spec.md","content":$spec}
        model: text "Mended."
        > prompt /speckit.clarify
        > end
        "#,
        &expect![[r##"
            > prompt /speckit.clarify
            < call call-2-0 read "Read .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md"}
            < call call-2-0 in_progress
            < call call-2-0 completed "     1\t# Feature Specification: Photo Albums\n     2\t\n     3\t**Feature Branch**: `001-photo-albums`\n     4\t\n     5\t**Created**: $DATE\n     6\t\n     7\t**Statu"
            < call call-4-0 write "Write .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","content":"$spec-bad"}
            < call call-4-0 in_progress
            < call call-4-0 completed diff $HOME/project/.specify/specs/001-photo-albums/spec.md "$spec" -> "$spec-bad"
            < text[msg-6] Written.
            < call call-8-0 write "Write .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","content":"$spec"}
            < call call-8-0 in_progress
            < call call-8-0 completed diff $HOME/project/.specify/specs/001-photo-albums/spec.md "$spec-bad" -> "$spec"
            < text[msg-10] Mended.
            < text[msg-11] ⏎**/speckit.clarify**⏎- Feature: .specify/specs/001-photo-albums⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 0 open points⏎- Answers recorded today: 0⏎⏎Next: `/speckit.plan`⏎
            < title /speckit.clarify
            = end_turn
            asked 0 with speckit_ask
              user: "/speckit.clarify" + crow:speckit/clarify "# Settle the open points of 001-photo-albums"
            asked 1 with speckit_ask
              tool: "     1\t# Feature Specification: Photo Albums\n     2\t\n     3\t**Feature Branch**: `001-photo-albums`\n     4\t\n     5\t**Created**: $DATE\n     6\t\n     7\t**Status**: Draft\n     8\t\n     9\t**Input**: User description: \"Photos in albums, by day"
            asked 2 with speckit_ask
              tool: "replaced .specify/specs/001-photo-albums/spec.md: 47 lines before, 45 lines now"
            asked 3 with speckit_ask
              user: + crow:speckit/repair "Crow has checked what is on disk now, after `/speckit.clarify`. This does not hold yet:"
                - spec.md: line 13: story 1 does not say **Why this priority**: …; add it
                - spec.md: line 35: FR-001 is there twice; number it on
            asked 4 with speckit_ask
              tool: "replaced .specify/specs/001-photo-albums/spec.md: 45 lines before, 47 lines now"
        "##]],
    );
}

#[test]
fn plan_is_repaired_twice() {
    check(
        r#"
        have spec
        model: call write {"file_path":"$F/plan.md","content":$plan-bad}
        model: text "Written."
        model: call write {"file_path":"$F/research.md","content":$research}
        model: text "Looked up."
        model: call write {"file_path":"$F/quickstart.md","content":$quickstart}
        model: text "Explained."
        > prompt /speckit.plan
        > end
        "#,
        &expect![[r##"
            > prompt /speckit.plan
            < call call-2-0 write "Write .specify/specs/001-photo-albums/plan.md" pending {"file_path":".specify/specs/001-photo-albums/plan.md","content":"$plan-bad"}
            < call call-2-0 in_progress
            < call call-2-0 completed diff $HOME/project/.specify/specs/001-photo-albums/plan.md "# Implementation Plan: Photo albums\n\n**Branch**: `001-photo-albums` | **Date**: $DATE | **Spec**: [spec.md](spec.md"… -> "$plan-bad"
            < text[msg-4] Written.
            < call call-6-0 write "Write .specify/specs/001-photo-albums/research.md" pending {"file_path":".specify/specs/001-photo-albums/research.md","content":"$research"}
            < call call-6-0 in_progress
            < call call-6-0 completed diff $HOME/project/.specify/specs/001-photo-albums/research.md null -> "$research"
            < text[msg-8] Looked up.
            < call call-10-0 write "Write .specify/specs/001-photo-albums/quickstart.md" pending {"file_path":".specify/specs/001-photo-albums/quickstart.md","content":"$quickstart"}
            < call call-10-0 in_progress
            < call call-10-0 completed diff $HOME/project/.specify/specs/001-photo-albums/quickstart.md null -> "$quickstart"
            < text[msg-12] Explained.
            < text[msg-13] ⏎**/speckit.plan**⏎- Feature: .specify/specs/001-photo-albums⏎- plan.md, research.md, quickstart.md⏎⏎Remaining problems:⏎- plan.md: the field **Testing** is missing; add it with its value, or N/A⏎- plan.md: line 17: NEEDS CLARIFICATION is still there; find it out, or decide it in research.md⏎
            < title /speckit.plan
            = end_turn
            asked 0
              user: "/speckit.plan" + crow:speckit/plan "# Plan how 001-photo-albums is built"
            asked 1
              tool: "replaced .specify/specs/001-photo-albums/plan.md: 65 lines before, 57 lines now"
            asked 2
              user: + crow:speckit/repair "Crow has checked what is on disk now, after `/speckit.plan`. This does not hold yet:"
                - plan.md: the field **Testing** is missing; add it with its value, or N/A
                - plan.md: line 17: NEEDS CLARIFICATION is still there; find it out, or decide it in research.md
                - research.md: research.md is missing; write Decision, Rationale and Alternatives of each topic
                - quickstart.md: quickstart.md is missing; write how the feature is run and how one sees that it works
            asked 3
              tool: "created .specify/specs/001-photo-albums/research.md: 7 lines"
            asked 4
              user: + crow:speckit/repair "Crow has checked what is on disk now, after `/speckit.plan`. This does not hold yet:"
                - plan.md: the field **Testing** is missing; add it with its value, or N/A
                - plan.md: line 17: NEEDS CLARIFICATION is still there; find it out, or decide it in research.md
                - quickstart.md: quickstart.md is missing; write how the feature is run and how one sees that it works
            asked 5
              tool: "created .specify/specs/001-photo-albums/quickstart.md: 3 lines"
        "##]],
    );
}

#[test]
fn tasks_are_repaired_twice() {
    check(
        r#"
        have spec plan
        model: call write {"file_path":"$F/tasks.md","content":$tasks-bad}
        model: text "Written."
        model: text "I see nothing wrong."
        model: text "Still not."
        > prompt /speckit.tasks
        > end
        "#,
        &expect![[r##"
            > prompt /speckit.tasks
            < call call-2-0 write "Write .specify/specs/001-photo-albums/tasks.md" pending {"file_path":".specify/specs/001-photo-albums/tasks.md","content":"$tasks-bad"}
            < call call-2-0 in_progress
            < call call-2-0 completed diff $HOME/project/.specify/specs/001-photo-albums/tasks.md null -> "$tasks-bad"
            < text[msg-4] Written.
            < text[msg-6] I see nothing wrong.
            < text[msg-8] Still not.
            < plan pending T001 [US1] Create pyproject.toml, pending T003 Show the albums of a folder
            < text[msg-9] ⏎**/speckit.tasks**⏎- Feature: .specify/specs/001-photo-albums⏎- tasks.md: 2 tasks in 2 phases, 0 done, 0 marked [P]⏎⏎Remaining problems:⏎- tasks.md: line 5: T001 is labelled with a story outside of a story's phase; remove the label or move it⏎- tasks.md: line 9: T003 follows T001; number the tasks on without gaps, in their order⏎- tasks.md: line 9: T003 is in the phase of story 1; label it [US1]⏎- tasks.md: line 9: T003 names no file; say the path it is about⏎
            < title /speckit.tasks
            = end_turn
            asked 0
              user: "/speckit.tasks" + crow:speckit/tasks "# Write the task list of 001-photo-albums"
            asked 1
              tool: "created .specify/specs/001-photo-albums/tasks.md: 9 lines"
            asked 2
              user: + crow:speckit/repair "Crow has checked what is on disk now, after `/speckit.tasks`. This does not hold yet:"
                - tasks.md: line 5: T001 is labelled with a story outside of a story's phase; remove the label or move it
                - tasks.md: line 9: T003 follows T001; number the tasks on without gaps, in their order
                - tasks.md: line 9: T003 is in the phase of story 1; label it [US1]
                - tasks.md: line 9: T003 names no file; say the path it is about
            asked 3
              user: + crow:speckit/repair "Crow has checked what is on disk now, after `/speckit.tasks`. This does not hold yet:"
                - tasks.md: line 5: T001 is labelled with a story outside of a story's phase; remove the label or move it
                - tasks.md: line 9: T003 follows T001; number the tasks on without gaps, in their order
                - tasks.md: line 9: T003 is in the phase of story 1; label it [US1]
                - tasks.md: line 9: T003 names no file; say the path it is about
        "##]],
    );
}

#[test]
fn constitution_is_repaired_twice() {
    check(
        r#"
        model: call write {"file_path":".specify/memory/constitution.md","content":$constitution-bad}
        model: text "Written."
        model: call edit {"file_path":".specify/memory/constitution.md","old_string":"one","new_string":"1.0.0"}
        model: text "Versioned."
        model: call edit {"file_path":".specify/memory/constitution.md","old_string":"[PRINCIPLE_1_DESCRIPTION]","new_string":"Photos stay."}
        model: text "Ruled."
        > prompt /speckit.constitution Photos stay.
        > end
        "#,
        &expect![[r##"
            > prompt /speckit.constitution Photos stay.
            < call call-2-0 write "Write .specify/memory/constitution.md" pending {"file_path":".specify/memory/constitution.md","content":"$constitution-bad"}
            < call call-2-0 in_progress
            < call call-2-0 completed diff $HOME/project/.specify/memory/constitution.md "# [PROJECT_NAME] Constitution\n\n<!-- Rules that hold for every feature of this project. Delete each comment when its part"… -> "$constitution-bad"
            < text[msg-4] Written.
            < call call-6-0 edit "Edit .specify/memory/constitution.md" pending {"file_path":".specify/memory/constitution.md","old_string":"one","new_string":"1.0.0"}
            < call call-6-0 in_progress
            < call call-6-0 completed diff $HOME/project/.specify/memory/constitution.md "**Version**: one | **Ratified**: $DATE | **Last Amended**: $DATE" -> "**Version**: 1.0.0 | **Ratified**: $DATE | **Last Amended**: $DATE"
            < text[msg-8] Versioned.
            < call call-10-0 edit "Edit .specify/memory/constitution.md" pending {"file_path":".specify/memory/constitution.md","old_string":"[PRINCIPLE_1_DESCRIPTION]","new_string":"Photos stay."}
            < call call-10-0 in_progress
            < call call-10-0 completed diff $HOME/project/.specify/memory/constitution.md "[PRINCIPLE_1_DESCRIPTION]" -> "Photos stay."
            < text[msg-12] Ruled.
            < text[msg-13] ⏎**/speckit.constitution**⏎- .specify/memory/constitution.md: **Version**: 1.0.0 | **Ratified**: $DATE | **Last Amended**: $DATE⏎⏎Next: `/speckit.specify`⏎
            < title /speckit.constitution Photos stay.
            = end_turn
            asked 0 with speckit_ask
              user: "/speckit.constitution Photos stay." + crow:speckit/constitution "# Write the project's constitution"
            asked 1 with speckit_ask
              tool: "replaced .specify/memory/constitution.md: 49 lines before, 13 lines now"
            asked 2 with speckit_ask
              user: + crow:speckit/repair "Crow has checked what is on disk now, after `/speckit.constitution`. This does not hold yet:"
                - constitution.md: line 7: [PRINCIPLE_1_DESCRIPTION] is still there; replace it, or remove its section
                - constitution.md: line 13: the version "one" is not of the form 1.0.0
            asked 3 with speckit_ask
              tool: "edited .specify/memory/constitution.md in 1 place; match: exact\n    10\t\n    11\tWhoever maintains the project changes these rules.\n    12\t\n    13\t**Version**: 1.0.0 | **Ratified**: $DATE | **Last Amended**: $DATE"
            asked 4 with speckit_ask
              user: + crow:speckit/repair "Crow has checked what is on disk now, after `/speckit.constitution`. This does not hold yet:"
                - constitution.md: line 7: [PRINCIPLE_1_DESCRIPTION] is still there; replace it, or remove its section
            asked 5 with speckit_ask
              tool: "edited .specify/memory/constitution.md in 1 place; match: exact\n     4\t\n     5\t### I. Photos Stay As They Are\n     6\t\n     7\tPhotos stay.\n     8\t\n     9\t## Governance\n    10\t"
        "##]],
    );
}

#[test]
fn checklist_is_repaired_once() {
    check(
        r#"
        have spec plan
        model: call write {"file_path":"$F/checklists/security.md","content":$security-bad}
        model: text "Written."
        model: text "It is good."
        > prompt /speckit.checklist security
        > end
        "#,
        &expect![[r##"
            > prompt /speckit.checklist security
            < call call-2-0 write "Write .specify/specs/001-photo-albums/checklists/security.md" pending {"file_path":".specify/specs/001-photo-albums/checklists/security.md","content":"$security-bad"}
            < call call-2-0 in_progress
            < call call-2-0 completed diff $HOME/project/.specify/specs/001-photo-albums/checklists/security.md null -> "$security-bad"
            < text[msg-4] Written.
            < text[msg-6] It is good.
            < text[msg-7] ⏎**/speckit.checklist**⏎- Feature: .specify/specs/001-photo-albums⏎- checklists/security.md: 1 of 2 checked⏎⏎Remaining problems:⏎- security.md: only 1 of 2 new items say what they are about; end at least 80 % of them with [Spec §…], [Gap], [Ambiguity], [Conflict] or [Assumption]⏎- security.md: line 10: a new item is ticked; only a reviewer ticks, write `[ ]`⏎- security.md: line 10: this item has to begin with CHK002⏎
            < title /speckit.checklist security
            = end_turn
            asked 0 with speckit_ask
              user: "/speckit.checklist security" + crow:speckit/checklist "# Make a review list for 001-photo-albums"
            asked 1 with speckit_ask
              tool: "created .specify/specs/001-photo-albums/checklists/security.md: 14 lines"
            asked 2 with speckit_ask
              user: + crow:speckit/repair "Crow has checked what is on disk now, after `/speckit.checklist`. This does not hold yet:"
                - security.md: only 1 of 2 new items say what they are about; end at least 80 % of them with [Spec §…], [Gap], [Ambiguity], [Conflict] or [Assumption]
                - security.md: line 10: a new item is ticked; only a reviewer ticks, write `[ ]`
                - security.md: line 10: this item has to begin with CHK002
        "##]],
    );
}

/// A reviewer's ticks and notes stay.
#[test]
fn checklist_is_append_only() {
    check(
        r#"
        have spec plan security
        model: call edit {"file_path":"$F/checklists/security.md","old_string":"- [ ] CHK001 Is it","new_string":"- [x] CHK001 Was it"}
        model: call read {"file_path":"$F/checklists/security.md","limit":1}
        model: call edit {"file_path":"$F/checklists/security.md","old_string":"- [ ] CHK001 Is it","new_string":"- [x] CHK001 Was it"}
        model: text "Changed."
        model: call write {"file_path":"$F/checklists/security.md","content":$security}
        model: text "Back."
        > prompt /speckit.checklist security
        > end
        "#,
        &expect![[r##"
            > prompt /speckit.checklist security
            < call call-2-0 edit "Edit .specify/specs/001-photo-albums/checklists/security.md" pending {"file_path":".specify/specs/001-photo-albums/checklists/security.md","old_string":"- [ ] CHK001 Is it","new_string":"- [x] CHK001 Was it"}
            < call call-2-0 in_progress
            < call call-2-0 completed diff $HOME/project/.specify/specs/001-photo-albums/checklists/security.md "- [ ] CHK001 Is it said that photos stay as they are? [Spec §FR-002]" -> "- [x] CHK001 Was it said that photos stay as they are? [Spec §FR-002]"
            < call call-4-0 read "Read .specify/specs/001-photo-albums/checklists/security.md" pending {"file_path":".specify/specs/001-photo-albums/checklists/security.md","limit":1}
            < call call-4-0 in_progress
            < call call-4-0 completed "     1\t# Security Checklist: Photo Albums\n(lines 1 to 1 of 14; continue with offset=2)\n"
            < call call-6-0 edit "Edit .specify/specs/001-photo-albums/checklists/security.md" pending {"file_path":".specify/specs/001-photo-albums/checklists/security.md","old_string":"- [ ] CHK001 Is it","new_string":"- [x] CHK001 Was it"}
            < call call-6-0 in_progress
            < call call-6-0 completed diff $HOME/project/.specify/specs/001-photo-albums/checklists/security.md "- [ ] CHK001 Is it said that photos stay as they are? [Spec §FR-002]" -> "- [x] CHK001 Was it said that photos stay as they are? [Spec §FR-002]"
            < text[msg-8] Changed.
            < text[note-2] ⏎/speckit.checklist may not change .specify/specs/001-photo-albums/checklists/security.md; it was restored, and the changed version is in .specify/crow/set-aside.⏎
            < call call-10-0 write "Write .specify/specs/001-photo-albums/checklists/security.md" pending {"file_path":".specify/specs/001-photo-albums/checklists/security.md","content":"$security"}
            < call call-10-0 in_progress
            < call call-10-0 completed ".specify/specs/001-photo-albums/checklists/security.md already has this content; nothing was changed"
            < text[msg-12] Back.
            < text[msg-13] ⏎**/speckit.checklist**⏎- Feature: .specify/specs/001-photo-albums⏎- checklists/security.md: 0 of 2 checked⏎⏎Remaining problems:⏎- no checklist was written; write one file in checklists/⏎
            < title /speckit.checklist security
            = end_turn
            asked 0 with speckit_ask
              user: "/speckit.checklist security" + crow:speckit/checklist "# Make a review list for 001-photo-albums"
            asked 1 with speckit_ask
              tool: "edited .specify/specs/001-photo-albums/checklists/security.md in 1 place; match: exact\n     6\t\n     7\t## Photos\n     8\t\n     9\t- [x] CHK001 Was it said that photos stay as they are? [Spec §FR-002]\n    10\t- [ ] CHK002 Is it said what happens"
            asked 2 with speckit_ask
              tool: "     1\t# Security Checklist: Photo Albums\n(lines 1 to 1 of 14; continue with offset=2)"
            asked 3 with speckit_ask
              tool: "edited .specify/specs/001-photo-albums/checklists/security.md in 1 place; match: exact\n     6\t\n     7\t## Photos\n     8\t\n     9\t- [x] CHK001 Was it said that photos stay as they are? [Spec §FR-002]\n    10\t- [ ] CHK002 Is it said what happens"
            asked 4 with speckit_ask
              user: + crow:speckit/repair "Crow has checked what is on disk now, after `/speckit.checklist`. This does not hold yet:"
                - no checklist was written; write one file in checklists/
            asked 5 with speckit_ask
              tool: ".specify/specs/001-photo-albums/checklists/security.md already has this content; nothing was changed"
        "##]],
    );
}

/// The items of a spec's checklist may not change, only its boxes.
#[test]
fn only_boxes_of_the_requirements_change() {
    check(
        r#"
        model: call write {"file_path":"$F/spec.md","content":$spec}
        model: call edit {"file_path":"$F/checklists/requirements.md","old_string":"- [ ] Nothing in it","new_string":"- [x] Something in it"}
        model: text "Written."
        model: call edit {"file_path":"$F/checklists/requirements.md","old_string":"- [x] Something in it","new_string":"- [x] Nothing in it"}
        model: text "Mended."
        > prompt /speckit.specify --short-name photo-albums Photos in albums
        > end
        "#,
        &expect![[r##"
            > prompt /speckit.specify --short-name photo-albums Photos in albums
            < call call-2-0 write "Write .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","content":"$spec"}
            < call call-2-0 in_progress
            < call call-2-0 completed diff $HOME/project/.specify/specs/001-photo-albums/spec.md "# Feature Specification: Photo albums\n\n**Feature Branch**: `001-photo-albums`\n\n**Created**: $DATE\n\n**Status**: Draf"… -> "$spec"
            < call call-4-0 edit "Edit .specify/specs/001-photo-albums/checklists/requirements.md" pending {"file_path":".specify/specs/001-photo-albums/checklists/requirements.md","old_string":"- [ ] Nothing in it","new_string":"- [x] Something in it"}
            < call call-4-0 in_progress
            < call call-4-0 completed diff $HOME/project/.specify/specs/001-photo-albums/checklists/requirements.md "- [ ] Nothing in it depends on a language, a framework, a database or an interface of code" -> "- [x] Something in it depends on a language, a framework, a database or an interface of code"
            < text[msg-6] Written.
            < call call-8-0 edit "Edit .specify/specs/001-photo-albums/checklists/requirements.md" pending {"file_path":".specify/specs/001-photo-albums/checklists/requirements.md","old_string":"- [x] Something in it","new_string":"- [x] Nothing in it"}
            < call call-8-0 in_progress
            < call call-8-0 completed diff $HOME/project/.specify/specs/001-photo-albums/checklists/requirements.md "- [x] Something in it depends on a language, a framework, a database or an interface of code" -> "- [x] Nothing in it depends on a language, a framework, a database or an interface of code"
            < text[msg-10] Mended.
            < text[msg-11] ⏎**/speckit.specify**⏎- Feature: .specify/specs/001-photo-albums⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 0 open points⏎- checklists/requirements.md: 1 of 16 checked⏎- .specify/memory/constitution.md: not filled in, so no principle was checked (/speckit.constitution fills it in)⏎⏎Next: `/speckit.clarify`, `/speckit.plan`⏎
            < title /speckit.specify --short-name photo-albums Photos in albums
            = end_turn
            asked 0 with speckit_ask
              user: "/speckit.specify --short-name photo-albums Photos in albums" + crow:speckit/specify "# Write the spec of 001-photo-albums"
            asked 1 with speckit_ask
              tool: "replaced .specify/specs/001-photo-albums/spec.md: 83 lines before, 47 lines now"
            asked 2 with speckit_ask
              tool: "edited .specify/specs/001-photo-albums/checklists/requirements.md in 1 place; match: exact\n     6\t\n     7\t## Content Quality\n     8\t\n     9\t- [x] Something in it depends on a language, a framework, a database or an interface of code\n    10\t"
            asked 3 with speckit_ask
              user: + crow:speckit/repair "Crow has checked what is on disk now, after `/speckit.specify`. This does not hold yet:"
                - requirements.md: line 9: only boxes may change here; the line was: - [ ] Nothing in it depends on a language, a framework, a database or an interface of code
            asked 4 with speckit_ask
              tool: "edited .specify/specs/001-photo-albums/checklists/requirements.md in 1 place; match: exact\n     6\t\n     7\t## Content Quality\n     8\t\n     9\t- [x] Nothing in it depends on a language, a framework, a database or an interface of code\n    10\t- "
        "##]],
    );
}

/// An unfinished step is not checked.
#[test]
fn cancelled_turn_is_not_repaired() {
    check(
        r#"
        have spec
        model: text "begun" | hold
        > prompt /speckit.plan
        > wait begun
        > cancel
        > end
        > tree
        "#,
        &expect![[r##"
            > prompt /speckit.plan
            < text[msg-2] begun
            > cancel
            < text[msg-3] ⏎/speckit.plan was not finished. Repeat it to continue with what is there.⏎
            < title /speckit.plan
            = cancelled
            > tree
              .specify/feature.json {"feature_directory":".specify/specs/001-photo-albums"}
              .specify/specs/001-photo-albums/plan.md # Implementation Plan: Photo albums … 65 lines
              .specify/specs/001-photo-albums/spec.md $spec
            asked 0
              user: "/speckit.plan" + crow:speckit/plan "# Plan how 001-photo-albums is built"
        "##]],
    );
}
