//! Questions to the user as forms, for clients that support them.

use expect_test::expect;

use super::check;
use super::question_answers::asks;

/// As forms, so that all are asked in one turn.
#[test]
fn question_limit_applies_to_forms() {
    check(
        r#"
        client: {"elicitation":{"form":{}}}
        have constitution
        model: call speckit_ask {"question":"One?"}
        model: call speckit_ask {"question":"Two?"}
        model: call speckit_ask {"question":"Three?"}
        model: call speckit_ask {"question":"Four?"}
        model: text "Then not."
        > form first words
        > form second words
        > form third words
        > prompt /speckit.constitution Ask me.
        > end
        "#,
        &expect![[r##"
            > prompt /speckit.constitution Ask me.
            < call call-2-0 speckit_ask "One?" pending {"question":"One?"}
            < call call-2-0 in_progress
            ? form The model asks: One? [] -> first words
            < call call-2-0 completed "The person answered: first words\n(You may ask 2 more.)"
            < call call-4-0 speckit_ask "Two?" pending {"question":"Two?"}
            < call call-4-0 in_progress
            ? form The model asks: Two? [] -> second words
            < call call-4-0 completed "The person answered: second words\n(You may ask 1 more.)"
            < call call-6-0 speckit_ask "Three?" pending {"question":"Three?"}
            < call call-6-0 in_progress
            ? form The model asks: Three? [] -> third words
            < call call-6-0 completed "The person answered: third words\n(That was the last question you may ask.)"
            < call call-8-0 speckit_ask "Four?" pending {"question":"Four?"}
            < call call-8-0 in_progress
            < call call-8-0 failed "no more questions may be asked in this step; assume what is usual, and say what you assumed"
            < text[msg-10] Then not.
            < text[msg-11] ⏎**/speckit.constitution**⏎- .specify/memory/constitution.md: **Version**: 1.0.0 | **Ratified**: $DATE | **Last Amended**: $DATE⏎⏎Next: `/speckit.specify`⏎
            < title /speckit.constitution Ask me.
            = end_turn
            asked 0 with speckit_ask
              user: "/speckit.constitution Ask me." + crow:speckit/constitution "# Amend the project's constitution"
            asked 1 with speckit_ask
              tool: "The person answered: first words\n(You may ask 2 more.)"
            asked 2 with speckit_ask
              tool: "The person answered: second words\n(You may ask 1 more.)"
            asked 3 with speckit_ask
              tool: "The person answered: third words\n(That was the last question you may ask.)"
            asked 4 with speckit_ask
              tool: "no more questions may be asked in this step; assume what is usual, and say what you assumed"
        "##]],
    );
}

#[test]
fn form_in_clarify() {
    asks(
        r#"
        client: {"elicitation":{"form":{}}}
        have spec
        file $F/spec.md $spec-open
        model: ASK
        model: SETTLE
        model: call speckit_ask {"question":"How many photos?"}
        model: text "Settled."
        > form Never
        > form up to 5,000
        > prompt /speckit.clarify
        > end
        > changes $F/spec.md spec-open
        "#,
        &expect![[r##"
            > prompt /speckit.clarify
            < call call-2-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-2-0 in_progress
            ? form The model asks: May it write into the folder? [Never, One file] -> Never
            < call call-2-0 completed "The person answered: Never\n(You may ask 4 more.)\nCrow wrote both under Clarifications in $HOME/project/.specify/specs/001-photo-albums/spec.md. Carry it into th"
            < call call-4-0 edit "Edit .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","old_string":" [NEEDS CLARIFICATION: may it write into the folder?]","new_string":", and writes nothing into their folder"}
            < call call-4-0 in_progress
            < call call-4-0 completed diff $HOME/project/.specify/specs/001-photo-albums/spec.md "- **FR-002**: The application MUST leave photos as they are [NEEDS CLARIFICATION: may it write into the folder?]" -> "- **FR-002**: The application MUST leave photos as they are, and writes nothing into their folder"
            < call call-6-0 speckit_ask "How many photos?" pending {"question":"How many photos?"}
            < call call-6-0 in_progress
            ? form The model asks: How many photos? [] -> up to 5,000
            < call call-6-0 completed "The person answered: up to 5,000\n(You may ask 3 more.)\nCrow wrote both under Clarifications in $HOME/project/.specify/specs/001-photo-albums/spec.md. Carry it i"
            < text[msg-8] Settled.
            < text[msg-9] ⏎**/speckit.clarify**⏎- Feature: .specify/specs/001-photo-albums⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 0 open points⏎- Answers recorded today: 2⏎⏎Next: `/speckit.plan`⏎
            < title /speckit.clarify
            = end_turn
            $F/spec.md:
              - - **FR-002**: The application MUST leave photos as they are [NEEDS CLARIFICATION: may it write into the folder?]
              + ## Clarifications
              + ### Session $DATE
              + - Q: May it write into the folder? → A: Never
              + - Q: How many photos? → A: up to 5,000
              + - **FR-002**: The application MUST leave photos as they are, and writes nothing into their folder
            asked 0 with speckit_ask
              user: "/speckit.clarify" + crow:speckit/clarify "# Settle the open points of 001-photo-albums"
            asked 1 with speckit_ask
              tool: "The person answered: Never\n(You may ask 4 more.)\nCrow wrote both under Clarifications in $HOME/project/.specify/specs/001-photo-albums/spec.md. Carry it into the section it concerns now, before you ask anything else."
            asked 2 with speckit_ask
              tool: "edited .specify/specs/001-photo-albums/spec.md in 1 place; match: exact\n    40\t### Functional Requirements\n    41\t\n    42\t- **FR-001**: The application MUST put each photo into the album of its day\n    43\t- **FR-002**: The application MUST "
            asked 3 with speckit_ask
              tool: "The person answered: up to 5,000\n(You may ask 3 more.)\nCrow wrote both under Clarifications in $HOME/project/.specify/specs/001-photo-albums/spec.md. Carry it into the section it concerns now, before you ask anything else."
        "##]],
    );
}

#[test]
fn form_that_is_declined_or_closed() {
    asks(
        r#"
        client: {"elicitation":{"form":{}}}
        have spec
        file $F/spec.md $spec-open
        model: ASK
        model: ASK
        model: call read {"file_path":"$F/spec.md","limit":1}
        model: SETTLE
        model: text "Settled."
        > form cancelled
        > form declined
        > prompt /speckit.clarify
        > end
        "#,
        &expect![[r##"
            > prompt /speckit.clarify
            < call call-2-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-2-0 in_progress
            ? form The model asks: May it write into the folder? [Never, One file] -> cancelled
            < call call-2-0 failed "the question was closed without an answer; do not ask it again"
            < call call-4-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-4-0 in_progress
            ? form The model asks: May it write into the folder? [Never, One file] -> declined
            < call call-4-0 completed "The person wants no more questions. Assume what is usual for the rest."
            < call call-6-0 read "Read .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","limit":1}
            < call call-6-0 in_progress
            < call call-6-0 completed "     1\t# Feature Specification: Photo Albums\n(lines 1 to 1 of 47; continue with offset=2)\n"
            < call call-8-0 edit "Edit .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","old_string":" [NEEDS CLARIFICATION: may it write into the folder?]","new_string":", and writes nothing into their folder"}
            < call call-8-0 in_progress
            < call call-8-0 completed diff $HOME/project/.specify/specs/001-photo-albums/spec.md "- **FR-002**: The application MUST leave photos as they are [NEEDS CLARIFICATION: may it write into the folder?]" -> "- **FR-002**: The application MUST leave photos as they are, and writes nothing into their folder"
            < text[msg-10] Settled.
            < text[msg-11] ⏎**/speckit.clarify**⏎- Feature: .specify/specs/001-photo-albums⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 0 open points⏎- Answers recorded today: 0⏎⏎Next: `/speckit.plan`⏎
            < title /speckit.clarify
            = end_turn
            asked 0 with speckit_ask
              user: "/speckit.clarify" + crow:speckit/clarify "# Settle the open points of 001-photo-albums"
            asked 1 with speckit_ask
              tool: "the question was closed without an answer; do not ask it again"
            asked 2 with speckit_ask
              tool: "The person wants no more questions. Assume what is usual for the rest."
            asked 3 with speckit_ask
              tool: "     1\t# Feature Specification: Photo Albums\n(lines 1 to 1 of 47; continue with offset=2)"
            asked 4 with speckit_ask
              tool: "edited .specify/specs/001-photo-albums/spec.md in 1 place; match: exact\n    34\t### Functional Requirements\n    35\t\n    36\t- **FR-001**: The application MUST put each photo into the album of its day\n    37\t- **FR-002**: The application MUST "
        "##]],
    );
}

#[test]
fn form_that_fails_becomes_text() {
    asks(
        r#"
        client: {"elicitation":{"form":{}}}
        have spec
        file $F/spec.md $spec-open
        model: ASK
        model: SETTLE
        model: text "Settled."
        > form error
        > prompt /speckit.clarify
        > end
        > prompt b
        > end
        "#,
        &expect![[r##"
            > prompt /speckit.clarify
            < call call-2-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-2-0 in_progress
            ? form The model asks: May it write into the folder? [Never, One file] -> error
            < text[note-2] ⏎**May it write into the folder?**⏎⏎- **A** Never (recommended): The order is kept elsewhere.⏎- **B** One file: The order lies beside the photos.⏎⏎Answer with a letter, or your own words. `done` ends the questions, `cancel` ends the step.⏎
            < call call-2-0 completed "**May it write into the folder?**\n\n- **A** Never (recommended): The order is kept elsewhere.\n- **B** One file: The order lies beside the photos.\n\nAnswer with a "
            < title /speckit.clarify
            = end_turn
            > prompt b
            < call call-5-0 edit "Edit .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","old_string":" [NEEDS CLARIFICATION: may it write into the folder?]","new_string":", and writes nothing into their folder"}
            < call call-5-0 in_progress
            < call call-5-0 completed diff $HOME/project/.specify/specs/001-photo-albums/spec.md "- **FR-002**: The application MUST leave photos as they are [NEEDS CLARIFICATION: may it write into the folder?]" -> "- **FR-002**: The application MUST leave photos as they are, and writes nothing into their folder"
            < text[msg-7] Settled.
            < text[msg-8] ⏎**/speckit.clarify**⏎- Feature: .specify/specs/001-photo-albums⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 0 open points⏎- Answers recorded today: 1⏎⏎Next: `/speckit.plan`⏎
            = end_turn
            asked 0 with speckit_ask
              user: "/speckit.clarify" + crow:speckit/clarify "# Settle the open points of 001-photo-albums"
            asked 1 with speckit_ask
              tool: "the question was shown to the person; their answer comes as the next message"
              user: "b" + crow:speckit/answer "The person has answered your question."
            asked 2 with speckit_ask
              tool: "edited .specify/specs/001-photo-albums/spec.md in 1 place; match: exact\n    40\t### Functional Requirements\n    41\t\n    42\t- **FR-001**: The application MUST put each photo into the album of its day\n    43\t- **FR-002**: The application MUST "
        "##]],
    );
}

#[test]
fn form_is_withdrawn_with_its_turn() {
    asks(
        r#"
        client: {"elicitation":{"form":{}}}
        have spec
        file $F/spec.md $spec-open
        model: ASK
        model: text "An answer to nothing."
        > form silence
        > prompt /speckit.clarify
        > wait -> silence
        > cancel
        > end
        > prompt a
        > end
        "#,
        &expect![[r##"
            > prompt /speckit.clarify
            < call call-2-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-2-0 in_progress
            ? form The model asks: May it write into the folder? [Never, One file] -> silence
            > cancel
            < takes its question back
            < call call-2-0 failed "the question was closed without an answer; do not ask it again"
            < text[msg-4] ⏎/speckit.clarify was not finished. Repeat it to continue with what is there.⏎
            < title /speckit.clarify
            = cancelled
            > prompt a
            < text[msg-6] An answer to nothing.
            = end_turn
            asked 0 with speckit_ask
              user: "/speckit.clarify" + crow:speckit/clarify "# Settle the open points of 001-photo-albums"
            asked 1
              tool: "the question was closed without an answer; do not ask it again"
              user: + crow:speckit/report "" "a"
        "##]],
    );
}

#[test]
fn form_in_specify() {
    asks(
        r#"
        client: {"elicitation":{"form":{}}}
        model: call write {"file_path":"$F/spec.md","content":$spec-open}
        model: ASK
        model: SETTLE
        model: text "Written."
        > form One file
        > prompt /speckit.specify --short-name photo-albums Photos in albums
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
            ? form The model asks: May it write into the folder? [Never, One file] -> One file
            < call call-4-0 completed "The person answered: One file\n(You may ask 2 more.)"
            < call call-6-0 edit "Edit .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","old_string":" [NEEDS CLARIFICATION: may it write into the folder?]","new_string":", and writes nothing into their folder"}
            < call call-6-0 in_progress
            < call call-6-0 completed diff $HOME/project/.specify/specs/001-photo-albums/spec.md "- **FR-002**: The application MUST leave photos as they are [NEEDS CLARIFICATION: may it write into the folder?]" -> "- **FR-002**: The application MUST leave photos as they are, and writes nothing into their folder"
            < text[msg-8] Written.
            < text[msg-9] ⏎**/speckit.specify**⏎- Feature: .specify/specs/001-photo-albums⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 0 open points⏎- checklists/requirements.md: 0 of 16 checked⏎- .specify/memory/constitution.md: not filled in, so no principle was checked (/speckit.constitution fills it in)⏎⏎Next: `/speckit.clarify`, `/speckit.plan`⏎
            < title /speckit.specify --short-name photo-albums Photos in albums
            = end_turn
            $F/spec.md:
              - - **FR-002**: The application MUST leave photos as they are [NEEDS CLARIFICATION: may it write into the folder?]
              + - **FR-002**: The application MUST leave photos as they are, and writes nothing into their folder
            asked 0 with speckit_ask
              user: "/speckit.specify --short-name photo-albums Photos in albums" + crow:speckit/specify "# Write the spec of 001-photo-albums"
            asked 1 with speckit_ask
              tool: "replaced .specify/specs/001-photo-albums/spec.md: 83 lines before, 47 lines now"
            asked 2 with speckit_ask
              tool: "The person answered: One file\n(You may ask 2 more.)"
            asked 3 with speckit_ask
              tool: "edited .specify/specs/001-photo-albums/spec.md in 1 place; match: exact\n    34\t### Functional Requirements\n    35\t\n    36\t- **FR-001**: The application MUST put each photo into the album of its day\n    37\t- **FR-002**: The application MUST "
        "##]],
    );
}
