//! Questions of a step as text: the steps that ask, the limit, and texts that are not questions.

use expect_test::expect;

use super::check;
use super::question_answers::asks;

/// A file that a step wrote before its question is part of its work.
#[test]
fn files_written_before_the_question_count() {
    asks(
        r#"
        have spec plan
        model: call write {"file_path":"$F/checklists/security.md","content":$security}
        model: ASK
        model: text "Nothing changes."
        > prompt /speckit.checklist security
        > end
        > prompt a
        > end
        "#,
        &expect![[r##"
            > prompt /speckit.checklist security
            < call call-2-0 write "Write .specify/specs/001-photo-albums/checklists/security.md" pending {"file_path":".specify/specs/001-photo-albums/checklists/security.md","content":"$security"}
            < call call-2-0 in_progress
            < call call-2-0 completed diff $HOME/project/.specify/specs/001-photo-albums/checklists/security.md null -> "$security"
            < call call-4-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-4-0 in_progress
            < text[note-2] ⏎**May it write into the folder?**⏎⏎- **A** Never (recommended): The order is kept elsewhere.⏎- **B** One file: The order lies beside the photos.⏎⏎Answer with a letter, or your own words. `done` ends the questions, `cancel` ends the step.⏎
            < call call-4-0 completed "**May it write into the folder?**\n\n- **A** Never (recommended): The order is kept elsewhere.\n- **B** One file: The order lies beside the photos.\n\nAnswer with a "
            < title /speckit.checklist security
            = end_turn
            > prompt a
            < text[msg-7] Nothing changes.
            < text[msg-8] ⏎**/speckit.checklist**⏎- Feature: .specify/specs/001-photo-albums⏎- checklists/security.md: 0 of 2 checked⏎⏎Next: `/speckit.tasks`⏎
            = end_turn
            asked 0 with speckit_ask
              user: "/speckit.checklist security" + crow:speckit/checklist "# Make a review list for 001-photo-albums"
            asked 1 with speckit_ask
              tool: "created .specify/specs/001-photo-albums/checklists/security.md: 14 lines"
            asked 2 with speckit_ask
              tool: "the question was shown to the person; their answer comes as the next message"
              user: "a" + crow:speckit/answer "The person has answered your question."
        "##]],
    );
}

#[test]
fn questions_asked_at_once() {
    asks(
        r#"
        have spec
        file $F/spec.md $spec-open
        model: ASK | call speckit_ask {"question":"And else?"}
        model: SETTLE
        model: text "Settled."
        > prompt /speckit.clarify
        > end
        > prompt a
        > end
        > told you may ask 4 more
        "#,
        &expect![[r##"
            > prompt /speckit.clarify
            < call call-2-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-2-1 speckit_ask "And else?" pending {"question":"And else?"}
            < call call-2-0 in_progress
            < text[note-2] ⏎**May it write into the folder?**⏎⏎- **A** Never (recommended): The order is kept elsewhere.⏎- **B** One file: The order lies beside the photos.⏎⏎Answer with a letter, or your own words. `done` ends the questions, `cancel` ends the step.⏎
            < call call-2-0 completed "**May it write into the folder?**\n\n- **A** Never (recommended): The order is kept elsewhere.\n- **B** One file: The order lies beside the photos.\n\nAnswer with a "
            < call call-2-1 in_progress
            < call call-2-1 failed "a question waits for its answer already; ask one at a time"
            < title /speckit.clarify
            = end_turn
            > prompt a
            < call call-6-0 edit "Edit .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","old_string":" [NEEDS CLARIFICATION: may it write into the folder?]","new_string":", and writes nothing into their folder"}
            < call call-6-0 in_progress
            < call call-6-0 completed diff $HOME/project/.specify/specs/001-photo-albums/spec.md "- **FR-002**: The application MUST leave photos as they are [NEEDS CLARIFICATION: may it write into the folder?]" -> "- **FR-002**: The application MUST leave photos as they are, and writes nothing into their folder"
            < text[msg-8] Settled.
            < text[msg-9] ⏎**/speckit.clarify**⏎- Feature: .specify/specs/001-photo-albums⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 0 open points⏎- Answers recorded today: 1⏎⏎Next: `/speckit.plan`⏎
            = end_turn
            told 1 times
            asked 0 with speckit_ask
              user: "/speckit.clarify" + crow:speckit/clarify "# Settle the open points of 001-photo-albums"
            asked 1 with speckit_ask
              tool: "the question was shown to the person; their answer comes as the next message"
              tool: "a question waits for its answer already; ask one at a time"
              user: "a" + crow:speckit/answer "The person has answered your question."
            asked 2 with speckit_ask
              tool: "edited .specify/specs/001-photo-albums/spec.md in 1 place; match: exact\n    40\t### Functional Requirements\n    41\t\n    42\t- **FR-001**: The application MUST put each photo into the album of its day\n    43\t- **FR-002**: The application MUST "
        "##]],
    );
}

#[test]
fn questions_are_absent() {
    asks(
        r#"
        have spec
        model: call speckit_ask {"question":"Tell me"}
        model: call speckit_ask {"question":"Which?","options":[{"label":"One"}]}
        model: call speckit_ask {"question":"Which?","options":[{"label":"One"},{"label":"one"}]}
        model: text "Nothing is open."
        > prompt /speckit.clarify
        > end
        "#,
        &expect![[r##"
            > prompt /speckit.clarify
            < call call-2-0 speckit_ask "Tell me" pending {"question":"Tell me"}
            < call call-2-0 in_progress
            < call call-2-0 failed "the question is none: ask one sentence that ends with a question mark"
            < call call-4-0 speckit_ask "Which?" pending {"question":"Which?","options":[{"label":"One"}]}
            < call call-4-0 in_progress
            < call call-4-0 failed "give no options, or two to 5"
            < call call-6-0 speckit_ask "Which?" pending {"question":"Which?","options":[{"label":"One"},{"label":"one"}]}
            < call call-6-0 in_progress
            < call call-6-0 failed "two options have the same label"
            < text[msg-8] Nothing is open.
            < text[msg-9] ⏎**/speckit.clarify**⏎- Feature: .specify/specs/001-photo-albums⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 0 open points⏎- Answers recorded today: 0⏎⏎Next: `/speckit.plan`⏎
            < title /speckit.clarify
            = end_turn
            asked 0 with speckit_ask
              user: "/speckit.clarify" + crow:speckit/clarify "# Settle the open points of 001-photo-albums"
            asked 1 with speckit_ask
              tool: "the question is none: ask one sentence that ends with a question mark"
            asked 2 with speckit_ask
              tool: "give no options, or two to 5"
            asked 3 with speckit_ask
              tool: "two options have the same label"
        "##]],
    );
}

#[test]
fn limit_applies_across_prompts() {
    check(
        r#"
        have constitution
        model: call speckit_ask {"question":"One?"}
        model: call speckit_ask {"question":"Two?"}
        model: call speckit_ask {"question":"Three?"}
        model: call speckit_ask {"question":"Four?"}
        model: text "Then not."
        > prompt /speckit.constitution Ask me.
        > end
        > prompt one
        > end
        > prompt two
        > end
        > prompt three
        > end
        "#,
        &expect![[r##"
            > prompt /speckit.constitution Ask me.
            < call call-2-0 speckit_ask "One?" pending {"question":"One?"}
            < call call-2-0 in_progress
            < text[note-2] ⏎**One?**⏎⏎⏎Answer with your own words. `done` ends the questions, `cancel` ends the step.⏎
            < call call-2-0 completed "**One?**\n\n\nAnswer with your own words. `done` ends the questions, `cancel` ends the step.\n"
            < title /speckit.constitution Ask me.
            = end_turn
            > prompt one
            < call call-5-0 speckit_ask "Two?" pending {"question":"Two?"}
            < call call-5-0 in_progress
            < text[note-4] ⏎**Two?**⏎⏎⏎Answer with your own words. `done` ends the questions, `cancel` ends the step.⏎
            < call call-5-0 completed "**Two?**\n\n\nAnswer with your own words. `done` ends the questions, `cancel` ends the step.\n"
            = end_turn
            > prompt two
            < call call-8-0 speckit_ask "Three?" pending {"question":"Three?"}
            < call call-8-0 in_progress
            < text[note-6] ⏎**Three?**⏎⏎⏎Answer with your own words. `done` ends the questions, `cancel` ends the step.⏎
            < call call-8-0 completed "**Three?**\n\n\nAnswer with your own words. `done` ends the questions, `cancel` ends the step.\n"
            = end_turn
            > prompt three
            < call call-11-0 speckit_ask "Four?" pending {"question":"Four?"}
            < call call-11-0 in_progress
            < call call-11-0 failed "no more questions may be asked in this step; assume what is usual, and say what you assumed"
            < text[msg-13] Then not.
            < text[msg-14] ⏎**/speckit.constitution**⏎- .specify/memory/constitution.md: **Version**: 1.0.0 | **Ratified**: $DATE | **Last Amended**: $DATE⏎⏎Next: `/speckit.specify`⏎
            = end_turn
            asked 0 with speckit_ask
              user: "/speckit.constitution Ask me." + crow:speckit/constitution "# Amend the project's constitution"
            asked 1 with speckit_ask
              tool: "the question was shown to the person; their answer comes as the next message"
              user: "one" + crow:speckit/answer "The person has answered your question."
            asked 2 with speckit_ask
              tool: "the question was shown to the person; their answer comes as the next message"
              user: "two" + crow:speckit/answer "The person has answered your question."
            asked 3 with speckit_ask
              tool: "the question was shown to the person; their answer comes as the next message"
              user: "three" + crow:speckit/answer "The person has answered your question."
            asked 4 with speckit_ask
              tool: "no more questions may be asked in this step; assume what is usual, and say what you assumed"
        "##]],
    );
}

/// Answers for a new spec go into its text, and are not listed.
#[test]
fn text_in_specify() {
    asks(
        r#"
        model: call write {"file_path":"$F/spec.md","content":$spec-open}
        model: ASK
        model: SETTLE
        model: text "Written."
        > prompt /speckit.specify --short-name photo-albums Photos in albums
        > end
        > prompt b
        > end
        > changes $F/spec.md spec-open
        "#,
        &expect![[r##"
            > prompt /speckit.specify --short-name photo-albums Photos in albums
            < call call-2-0 write "Write .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","content":"$spec-open"}
            < call call-2-0 in_progress
            < call call-2-0 completed diff $HOME/project/.specify/specs/001-photo-albums/spec.md "# Feature Specification: Photo albums\n\n**Feature Branch**: `001-photo-albums`\n\n**Created**: $DATE\n\n**Status**: Draf"… -> "$spec-open"
            < call call-4-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-4-0 in_progress
            < text[note-2] ⏎**May it write into the folder?**⏎⏎- **A** Never (recommended): The order is kept elsewhere.⏎- **B** One file: The order lies beside the photos.⏎⏎Answer with a letter, or your own words. `done` ends the questions, `cancel` ends the step.⏎
            < call call-4-0 completed "**May it write into the folder?**\n\n- **A** Never (recommended): The order is kept elsewhere.\n- **B** One file: The order lies beside the photos.\n\nAnswer with a "
            < title /speckit.specify --short-name photo-albums Photos in albums
            = end_turn
            > prompt b
            < call call-7-0 edit "Edit .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","old_string":" [NEEDS CLARIFICATION: may it write into the folder?]","new_string":", and writes nothing into their folder"}
            < call call-7-0 in_progress
            < call call-7-0 completed diff $HOME/project/.specify/specs/001-photo-albums/spec.md "- **FR-002**: The application MUST leave photos as they are [NEEDS CLARIFICATION: may it write into the folder?]" -> "- **FR-002**: The application MUST leave photos as they are, and writes nothing into their folder"
            < text[msg-9] Written.
            < text[msg-10] ⏎**/speckit.specify**⏎- Feature: .specify/specs/001-photo-albums⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 0 open points⏎- checklists/requirements.md: 0 of 16 checked⏎- .specify/memory/constitution.md: not filled in, so no principle was checked (/speckit.constitution fills it in)⏎⏎Next: `/speckit.clarify`, `/speckit.plan`⏎
            = end_turn
            $F/spec.md:
              - - **FR-002**: The application MUST leave photos as they are [NEEDS CLARIFICATION: may it write into the folder?]
              + - **FR-002**: The application MUST leave photos as they are, and writes nothing into their folder
            asked 0 with speckit_ask
              user: "/speckit.specify --short-name photo-albums Photos in albums" + crow:speckit/specify "# Write the spec of 001-photo-albums"
            asked 1 with speckit_ask
              tool: "replaced .specify/specs/001-photo-albums/spec.md: 83 lines before, 47 lines now"
            asked 2 with speckit_ask
              tool: "the question was shown to the person; their answer comes as the next message"
              user: "b" + crow:speckit/answer "The person has answered your question."
            asked 3 with speckit_ask
              tool: "edited .specify/specs/001-photo-albums/spec.md in 1 place; match: exact\n    34\t### Functional Requirements\n    35\t\n    36\t- **FR-001**: The application MUST put each photo into the album of its day\n    37\t- **FR-002**: The application MUST "
        "##]],
    );
}

#[test]
fn text_in_checklist() {
    asks(
        r#"
        have spec plan
        model: ASK
        model: call write {"file_path":"$F/checklists/security.md","content":$security}
        model: text "Written."
        > prompt /speckit.checklist security
        > end
        > prompt a
        > end
        > changes $F/spec.md spec
        "#,
        &expect![[r##"
            > prompt /speckit.checklist security
            < call call-2-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-2-0 in_progress
            < text[note-2] ⏎**May it write into the folder?**⏎⏎- **A** Never (recommended): The order is kept elsewhere.⏎- **B** One file: The order lies beside the photos.⏎⏎Answer with a letter, or your own words. `done` ends the questions, `cancel` ends the step.⏎
            < call call-2-0 completed "**May it write into the folder?**\n\n- **A** Never (recommended): The order is kept elsewhere.\n- **B** One file: The order lies beside the photos.\n\nAnswer with a "
            < title /speckit.checklist security
            = end_turn
            > prompt a
            < call call-5-0 write "Write .specify/specs/001-photo-albums/checklists/security.md" pending {"file_path":".specify/specs/001-photo-albums/checklists/security.md","content":"$security"}
            < call call-5-0 in_progress
            < call call-5-0 completed diff $HOME/project/.specify/specs/001-photo-albums/checklists/security.md null -> "$security"
            < text[msg-7] Written.
            < text[msg-8] ⏎**/speckit.checklist**⏎- Feature: .specify/specs/001-photo-albums⏎- checklists/security.md: 0 of 2 checked⏎⏎Next: `/speckit.tasks`⏎
            = end_turn
            $F/spec.md:
            asked 0 with speckit_ask
              user: "/speckit.checklist security" + crow:speckit/checklist "# Make a review list for 001-photo-albums"
            asked 1 with speckit_ask
              tool: "the question was shown to the person; their answer comes as the next message"
              user: "a" + crow:speckit/answer "The person has answered your question."
            asked 2 with speckit_ask
              tool: "created .specify/specs/001-photo-albums/checklists/security.md: 14 lines"
        "##]],
    );
}
