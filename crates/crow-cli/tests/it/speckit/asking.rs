//! Questions to the person: as text that the next prompt answers, and as a form; which answers mean what, and that
//! nothing of it is lost.

use expect_test::{Expect, expect};

use super::check;

/// The question that most of these ask.
const ASK: &str = r#"call speckit_ask {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}"#;

/// Carries an answer into the spec.
const SETTLE: &str = r#"call edit {"file_path":"$F/spec.md","old_string":" [NEEDS CLARIFICATION: may it write into the folder?]","new_string":", and writes nothing into their folder"}"#;

/// Puts the usual calls in the place of their names.
#[track_caller]
fn asks(script: &str, transcript: &Expect) {
    check(&script.replace("ASK", ASK).replace("SETTLE", SETTLE), transcript);
}

/// What of a spec is about an answer, whatever the person typed.
#[track_caller]
fn answered(words: &str, bullet: &str) {
    let mut seen = String::new();
    super::run(async {
        let script = "
            have spec
            file $F/spec.md $spec-open
            model: ASK
            model: text \"begun\" | hold
        ";
        let mut stage = super::Stage::new(&script.replace("ASK", ASK)).await;
        for line in ["> prompt /speckit.clarify", "> end", &format!("> prompt {words}"), "> wait begun"] {
            stage.act(line).await;
        }
        let spec = std::fs::read_to_string(stage.world.project().join(super::FEATURE).join("spec.md"));
        for line in spec.expect("the spec is there").lines().filter(|line| line.starts_with("- Q:")) {
            seen.push_str(line);
        }
        stage.act("> cancel").await;
        stage.act("> end").await;
    });
    assert_eq!(seen, bullet, "{words:?}");
}

#[test]
fn an_answer_is_a_letter_a_label_or_own_words() {
    answered("b", "- Q: May it write into the folder? → A: One file");
    answered("A.", "- Q: May it write into the folder? → A: Never");
    answered("one file", "- Q: May it write into the folder? → A: One file");
    answered("yes", "- Q: May it write into the folder? → A: Never");
    answered(
        "only → {{7*7}}\\n## not a heading",
        "- Q: May it write into the folder? → A: only -> {{7*7}} ## not a heading",
    );
    answered("done", "");
}

#[test]
fn no_more_questions() {
    asks(
        r#"
        have spec
        file $F/spec.md $spec-open
        model: ASK
        model: ASK
        model: text "Then I assume." | call read {"file_path":"$F/spec.md","limit":1}
        model: SETTLE
        model: text "Settled."
        > prompt /speckit.clarify
        > end
        > prompt no more!
        > end
        "#,
        &expect![[r##"
            > prompt /speckit.clarify
            < call call-1-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-1-0 in_progress
            < text[note-1] ⏎**May it write into the folder?**⏎⏎- **A** Never (recommended): The order is kept elsewhere.⏎- **B** One file: The order lies beside the photos.⏎⏎Answer with a letter, or your own words. `done` ends the questions, `cancel` ends the step.⏎
            < call call-1-0 completed "**May it write into the folder?**\n\n- **A** Never (recommended): The order is kept elsewhere.\n- **B** One file: The order lies beside the photos.\n\nAnswer with a "
            < title /speckit.clarify
            = end_turn
            > prompt no more!
            < call call-4-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-4-0 in_progress
            < call call-4-0 failed "no more questions may be asked in this step; assume what is usual, and say what you assumed"
            < text[msg-6] Then I assume.
            < call call-6-0 read "Read .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","limit":1}
            < call call-6-0 in_progress
            < call call-6-0 completed "     1\t# Feature Specification: Photo Albums\n(lines 1 to 1 of 47; go on with offset=2)\n"
            < call call-8-0 edit "Edit .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","old_string":" [NEEDS CLARIFICATION: may it write into the folder?]","new_string":", and writes nothing into their folder"}
            < call call-8-0 in_progress
            < call call-8-0 completed diff $HOME/project/.specify/specs/001-photo-albums/spec.md "- **FR-002**: The application MUST leave photos as they are [NEEDS CLARIFICATION: may it write into the folder?]" -> "- **FR-002**: The application MUST leave photos as they are, and writes nothing into their folder"
            < text[msg-10] Settled.
            < text[note-3] ⏎**/speckit.clarify**⏎- Feature: .specify/specs/001-photo-albums⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 0 open points⏎- Answers written down today: 0⏎⏎Next: `/speckit.plan`⏎
            = end_turn
            asked 0 with speckit_ask
              user: "/speckit.clarify" + crow:speckit/clarify "# Settle the open points of 001-photo-albums"
            asked 1 with speckit_ask
              tool: "the question was shown to the person; their answer comes as the next message"
              user: "no more!" + crow:speckit/answer "The person wants no more questions. This one stays without an answer:"
            asked 2 with speckit_ask
              tool: "no more questions may be asked in this step; assume what is usual, and say what you assumed"
            asked 3 with speckit_ask
              tool: "     1\t# Feature Specification: Photo Albums\n(lines 1 to 1 of 47; go on with offset=2)"
            asked 4 with speckit_ask
              tool: "edited .specify/specs/001-photo-albums/spec.md in 1 place; match: exact\n    34\t### Functional Requirements\n    35\t\n    36\t- **FR-001**: The application MUST put each photo into the album of its day\n    37\t- **FR-002**: The application MUST "
        "##]],
    );
}

/// The step ends without the model, which learns of it with what it is asked next.
#[test]
fn cancel_ends_the_step() {
    asks(
        r#"
        have spec
        file $F/spec.md $spec-open
        model: ASK
        model: text "Hello."
        > prompt /speckit.clarify
        > end
        > prompt cancel
        > end
        > prompt hello
        > end
        > tree
        "#,
        &expect![[r##"
            > prompt /speckit.clarify
            < call call-1-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-1-0 in_progress
            < text[note-1] ⏎**May it write into the folder?**⏎⏎- **A** Never (recommended): The order is kept elsewhere.⏎- **B** One file: The order lies beside the photos.⏎⏎Answer with a letter, or your own words. `done` ends the questions, `cancel` ends the step.⏎
            < call call-1-0 completed "**May it write into the folder?**\n\n- **A** Never (recommended): The order is kept elsewhere.\n- **B** One file: The order lies beside the photos.\n\nAnswer with a "
            < title /speckit.clarify
            = end_turn
            > prompt cancel
            < text[note-3] /speckit.clarify ends here. What is written stays.⏎
            = end_turn
            > prompt hello
            < text[msg-5] Hello.
            = end_turn
            > tree
              .specify/feature.json {"feature_directory":".specify/specs/001-photo-albums"}
              .specify/specs/001-photo-albums/spec.md $spec-open
            asked 0 with speckit_ask
              user: "/speckit.clarify" + crow:speckit/clarify "# Settle the open points of 001-photo-albums"
            asked 1
              tool: "the question was shown to the person; their answer comes as the next message"
              user: "cancel" + crow:speckit/answer "The person ended /speckit.clarify here. What is written stays; do not go on with it."
              user: "hello"
        "##]],
    );
}

#[test]
fn another_command_is_no_answer() {
    asks(
        r#"
        have spec research quickstart
        file $F/spec.md $spec-open
        model: ASK
        model: call write {"file_path":"$F/plan.md","content":$plan}
        model: text "Planned."
        model: text "A letter."
        > prompt /speckit.clarify
        > end
        > still /speckit status
        > prompt /speckit.plan
        > end
        > prompt a
        > end
        > tree
        "#,
        &expect![[r##"
            > prompt /speckit.clarify
            < call call-1-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-1-0 in_progress
            < text[note-1] ⏎**May it write into the folder?**⏎⏎- **A** Never (recommended): The order is kept elsewhere.⏎- **B** One file: The order lies beside the photos.⏎⏎Answer with a letter, or your own words. `done` ends the questions, `cancel` ends the step.⏎
            < call call-1-0 completed "**May it write into the folder?**\n\n- **A** Never (recommended): The order is kept elsewhere.\n- **B** One file: The order lies beside the photos.\n\nAnswer with a "
            < title /speckit.clarify
            = end_turn
            > still /speckit status
            < text[note-2] - ▸ `001-photo-albums`: spec⏎⏎Next: `/speckit.plan`⏎
            = end_turn
            > prompt /speckit.plan
            < call call-4-0 write "Write .specify/specs/001-photo-albums/plan.md" pending {"file_path":".specify/specs/001-photo-albums/plan.md","content":"$plan"}
            < call call-4-0 in_progress
            < call call-4-0 completed diff $HOME/project/.specify/specs/001-photo-albums/plan.md "# Implementation Plan: Photo albums\n\n**Branch**: `001-photo-albums` | **Date**: $DATE | **Spec**: [spec.md](spec.md"… -> "$plan"
            < text[msg-6] Planned.
            < text[note-3] ⏎**/speckit.plan**⏎- Feature: .specify/specs/001-photo-albums⏎- plan.md, research.md, quickstart.md⏎⏎Next: `/speckit.tasks`, `/speckit.checklist`⏎
            = end_turn
            > prompt a
            < text[msg-8] A letter.
            = end_turn
            > tree
              .specify/feature.json {"feature_directory":".specify/specs/001-photo-albums"}
              .specify/specs/001-photo-albums/plan.md $plan
              .specify/specs/001-photo-albums/quickstart.md $quickstart
              .specify/specs/001-photo-albums/research.md $research
              .specify/specs/001-photo-albums/spec.md $spec-open
            asked 0 with speckit_ask
              user: "/speckit.clarify" + crow:speckit/clarify "# Settle the open points of 001-photo-albums"
            asked 1
              tool: "the question was shown to the person; their answer comes as the next message"
              user: "/speckit.plan" + crow:speckit/plan "# Plan how 001-photo-albums is built"
            asked 2
              tool: "replaced .specify/specs/001-photo-albums/plan.md: 59 lines"
            asked 3
              user: "a"
        "##]],
    );
}

/// The answer is for the feature that the question is about.
#[test]
fn another_feature_waits_for_the_answer() {
    asks(
        r#"
        have spec
        file $F/spec.md $spec-open
        file .specify/specs/002-music/spec.md $spec
        model: ASK
        > prompt /speckit.clarify
        > end
        > still /speckit use 2
        > prompt cancel
        > end
        > prompt /speckit use 2
        > end
        "#,
        &expect![[r##"
            > prompt /speckit.clarify
            < call call-1-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-1-0 in_progress
            < text[note-1] ⏎**May it write into the folder?**⏎⏎- **A** Never (recommended): The order is kept elsewhere.⏎- **B** One file: The order lies beside the photos.⏎⏎Answer with a letter, or your own words. `done` ends the questions, `cancel` ends the step.⏎
            < call call-1-0 completed "**May it write into the folder?**\n\n- **A** Never (recommended): The order is kept elsewhere.\n- **B** One file: The order lies beside the photos.\n\nAnswer with a "
            < title /speckit.clarify
            = end_turn
            > still /speckit use 2
            < text[note-2] A question waits for its answer; answer it, or say `cancel`, and change the feature then.⏎
            = end_turn
            > prompt cancel
            < text[note-4] /speckit.clarify ends here. What is written stays.⏎
            = end_turn
            > prompt /speckit use 2
            < text[note-5] Now at `.specify/specs/002-music`: spec⏎
            = end_turn
            asked 0 with speckit_ask
              user: "/speckit.clarify" + crow:speckit/clarify "# Settle the open points of 001-photo-albums"
        "##]],
    );
}

/// Nothing is written, and the question stays open.
#[test]
fn an_answer_in_plan_mode() {
    asks(
        r#"
        have spec
        file $F/spec.md $spec-open
        model: ASK
        model: text "As it is."
        > prompt /speckit.clarify
        > end
        > prompt /mode plan
        > end
        > still a
        > prompt /mode ask
        > end
        > prompt a
        > end
        "#,
        &expect![[r##"
            > prompt /speckit.clarify
            < call call-1-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-1-0 in_progress
            < text[note-1] ⏎**May it write into the folder?**⏎⏎- **A** Never (recommended): The order is kept elsewhere.⏎- **B** One file: The order lies beside the photos.⏎⏎Answer with a letter, or your own words. `done` ends the questions, `cancel` ends the step.⏎
            < call call-1-0 completed "**May it write into the folder?**\n\n- **A** Never (recommended): The order is kept elsewhere.\n- **B** One file: The order lies beside the photos.\n\nAnswer with a "
            < title /speckit.clarify
            = end_turn
            > prompt /mode plan
            < mode plan
            < config_option_update
            < text[note-2] Mode plan, model scripted.⏎
            = end_turn
            > still a
            < text[note-3] /speckit.clarify writes files, and plan mode only reads; change the mode first, or say `cancel`.⏎
            = end_turn
            > prompt /mode ask
            < mode ask
            < config_option_update
            < text[note-4] Mode ask, model scripted.⏎
            = end_turn
            > prompt a
            < text[msg-4] As it is.
            < text[note-6] ⏎**/speckit.clarify**⏎- Feature: .specify/specs/001-photo-albums⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 1 open points⏎- Answers written down today: 1⏎⏎Next: `/speckit.plan`⏎
            = end_turn
            asked 0 with speckit_ask
              user: "/speckit.clarify" + crow:speckit/clarify "# Settle the open points of 001-photo-albums"
            asked 1 with speckit_ask
              tool: "the question was shown to the person; their answer comes as the next message"
              user: "a" + crow:speckit/answer "The person has answered your question."
        "##]],
    );
}

/// What a step wrote before it asked is its work, too.
#[test]
fn written_before_the_question() {
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
            < call call-1-0 write "Write .specify/specs/001-photo-albums/checklists/security.md" pending {"file_path":".specify/specs/001-photo-albums/checklists/security.md","content":"$security"}
            < call call-1-0 in_progress
            < call call-1-0 completed diff $HOME/project/.specify/specs/001-photo-albums/checklists/security.md null -> "$security"
            < call call-3-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-3-0 in_progress
            < text[note-1] ⏎**May it write into the folder?**⏎⏎- **A** Never (recommended): The order is kept elsewhere.⏎- **B** One file: The order lies beside the photos.⏎⏎Answer with a letter, or your own words. `done` ends the questions, `cancel` ends the step.⏎
            < call call-3-0 completed "**May it write into the folder?**\n\n- **A** Never (recommended): The order is kept elsewhere.\n- **B** One file: The order lies beside the photos.\n\nAnswer with a "
            < title /speckit.checklist security
            = end_turn
            > prompt a
            < text[msg-6] Nothing changes.
            < text[note-3] ⏎**/speckit.checklist**⏎- Feature: .specify/specs/001-photo-albums⏎- checklists/security.md: 0 of 2 checked⏎⏎Next: `/speckit.tasks`⏎
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

/// Asked in one process, answered in the next.
#[test]
fn answered_after_a_restart() {
    asks(
        r#"
        have spec
        file $F/spec.md $spec-open
        model: ASK
        model: SETTLE
        model: text "Settled."
        > prompt /speckit.clarify
        > end
        > kill
        > prompt a
        > end
        "#,
        &expect![[r##"
            > prompt /speckit.clarify
            < call call-1-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-1-0 in_progress
            < text[note-1] ⏎**May it write into the folder?**⏎⏎- **A** Never (recommended): The order is kept elsewhere.⏎- **B** One file: The order lies beside the photos.⏎⏎Answer with a letter, or your own words. `done` ends the questions, `cancel` ends the step.⏎
            < call call-1-0 completed "**May it write into the folder?**\n\n- **A** Never (recommended): The order is kept elsewhere.\n- **B** One file: The order lies beside the photos.\n\nAnswer with a "
            < title /speckit.clarify
            = end_turn
            > kill
            < prompt[msg-0] /speckit.clarify
            < call call-1-0 speckit_ask "May it write into the folder?" completed {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"} "**May it write into the folder?**\n\n- **A** Never (recommended): The order is kept elsewhere.\n- **B** One file: The order lies beside the photos.\n\nAnswer with a "
            < title /speckit.clarify
            > prompt a
            < call call-4-0 edit "Edit .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","old_string":" [NEEDS CLARIFICATION: may it write into the folder?]","new_string":", and writes nothing into their folder"}
            < call call-4-0 in_progress
            < call call-4-0 completed diff $HOME/project/.specify/specs/001-photo-albums/spec.md "- **FR-002**: The application MUST leave photos as they are [NEEDS CLARIFICATION: may it write into the folder?]" -> "- **FR-002**: The application MUST leave photos as they are, and writes nothing into their folder"
            < text[msg-6] Settled.
            < text[note-2] ⏎**/speckit.clarify**⏎- Feature: .specify/specs/001-photo-albums⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 0 open points⏎- Answers written down today: 1⏎⏎Next: `/speckit.plan`⏎
            = end_turn
            asked 0 with speckit_ask
              user: "/speckit.clarify" + crow:speckit/clarify "# Settle the open points of 001-photo-albums"
            asked 1 with speckit_ask
              tool: "the question was shown to the person; their answer comes as the next message"
              user: "a" + crow:speckit/answer "The person has answered your question."
            asked 2 with speckit_ask
              tool: "edited .specify/specs/001-photo-albums/spec.md in 1 place; match: exact\n    40\t### Functional Requirements\n    41\t\n    42\t- **FR-001**: The application MUST put each photo into the album of its day\n    43\t- **FR-002**: The application MUST "
        "##]],
    );
}

/// Both sessions have the question, and each its own answer.
#[test]
fn answered_in_a_copy() {
    asks(
        r#"
        have spec
        file $F/spec.md $spec-open
        model: ASK
        model: SETTLE
        model: text "Settled."
        model: text "As it is."
        > prompt /speckit.clarify
        > end
        > fork
        > prompt a
        > end
        > first
        > prompt Beside the photos
        > end
        "#,
        &expect![[r##"
            > prompt /speckit.clarify
            < call call-1-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-1-0 in_progress
            < text[note-1] ⏎**May it write into the folder?**⏎⏎- **A** Never (recommended): The order is kept elsewhere.⏎- **B** One file: The order lies beside the photos.⏎⏎Answer with a letter, or your own words. `done` ends the questions, `cancel` ends the step.⏎
            < call call-1-0 completed "**May it write into the folder?**\n\n- **A** Never (recommended): The order is kept elsewhere.\n- **B** One file: The order lies beside the photos.\n\nAnswer with a "
            < title /speckit.clarify
            = end_turn
            > fork
            > prompt a
            < call call-4-0 edit "Edit .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","old_string":" [NEEDS CLARIFICATION: may it write into the folder?]","new_string":", and writes nothing into their folder"}
            < call call-4-0 in_progress
            < call call-4-0 completed diff $HOME/project/.specify/specs/001-photo-albums/spec.md "- **FR-002**: The application MUST leave photos as they are [NEEDS CLARIFICATION: may it write into the folder?]" -> "- **FR-002**: The application MUST leave photos as they are, and writes nothing into their folder"
            < text[msg-6] Settled.
            < text[note-3] ⏎**/speckit.clarify**⏎- Feature: .specify/specs/001-photo-albums⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 0 open points⏎- Answers written down today: 1⏎⏎Next: `/speckit.plan`⏎
            = end_turn
            > first
            > prompt Beside the photos
            < text[msg-4] As it is.
            < text[note-5] ⏎**/speckit.clarify**⏎- Feature: .specify/specs/001-photo-albums⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 0 open points⏎- Answers written down today: 2⏎⏎Next: `/speckit.plan`⏎
            = end_turn
            asked 0 with speckit_ask
              user: "/speckit.clarify" + crow:speckit/clarify "# Settle the open points of 001-photo-albums"
            asked 1 with speckit_ask
              tool: "the question was shown to the person; their answer comes as the next message"
              user: "a" + crow:speckit/answer "The person has answered your question."
            asked 2 with speckit_ask
              tool: "edited .specify/specs/001-photo-albums/spec.md in 1 place; match: exact\n    40\t### Functional Requirements\n    41\t\n    42\t- **FR-001**: The application MUST put each photo into the album of its day\n    43\t- **FR-002**: The application MUST "
            asked 3 with speckit_ask
              tool: "the question was shown to the person; their answer comes as the next message"
              user: "Beside the photos" + crow:speckit/answer "The person has answered your question."
        "##]],
    );
}

#[test]
fn two_at_once() {
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
            < call call-1-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-1-1 speckit_ask "And else?" pending {"question":"And else?"}
            < call call-1-0 in_progress
            < text[note-1] ⏎**May it write into the folder?**⏎⏎- **A** Never (recommended): The order is kept elsewhere.⏎- **B** One file: The order lies beside the photos.⏎⏎Answer with a letter, or your own words. `done` ends the questions, `cancel` ends the step.⏎
            < call call-1-0 completed "**May it write into the folder?**\n\n- **A** Never (recommended): The order is kept elsewhere.\n- **B** One file: The order lies beside the photos.\n\nAnswer with a "
            < call call-1-1 in_progress
            < call call-1-1 failed "a question waits for its answer already; ask one at a time"
            < title /speckit.clarify
            = end_turn
            > prompt a
            < call call-5-0 edit "Edit .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","old_string":" [NEEDS CLARIFICATION: may it write into the folder?]","new_string":", and writes nothing into their folder"}
            < call call-5-0 in_progress
            < call call-5-0 completed diff $HOME/project/.specify/specs/001-photo-albums/spec.md "- **FR-002**: The application MUST leave photos as they are [NEEDS CLARIFICATION: may it write into the folder?]" -> "- **FR-002**: The application MUST leave photos as they are, and writes nothing into their folder"
            < text[msg-7] Settled.
            < text[note-3] ⏎**/speckit.clarify**⏎- Feature: .specify/specs/001-photo-albums⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 0 open points⏎- Answers written down today: 1⏎⏎Next: `/speckit.plan`⏎
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
fn no_question_at_all() {
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
            < call call-1-0 speckit_ask "Tell me" pending {"question":"Tell me"}
            < call call-1-0 in_progress
            < call call-1-0 failed "the question is none: ask one sentence that ends with a question mark"
            < call call-3-0 speckit_ask "Which?" pending {"question":"Which?","options":[{"label":"One"}]}
            < call call-3-0 in_progress
            < call call-3-0 failed "give no options, or two to 5"
            < call call-5-0 speckit_ask "Which?" pending {"question":"Which?","options":[{"label":"One"},{"label":"one"}]}
            < call call-5-0 in_progress
            < call call-5-0 failed "two options have the same label"
            < text[msg-7] Nothing is open.
            < text[note-1] ⏎**/speckit.clarify**⏎- Feature: .specify/specs/001-photo-albums⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 0 open points⏎- Answers written down today: 0⏎⏎Next: `/speckit.plan`⏎
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

/// In forms, so that all are asked in one turn.
#[test]
fn the_limit() {
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
            < call call-1-0 speckit_ask "One?" pending {"question":"One?"}
            < call call-1-0 in_progress
            ? form One? [] -> first words
            < call call-1-0 completed "The person answered: first words\n(You may ask 2 more.)"
            < call call-3-0 speckit_ask "Two?" pending {"question":"Two?"}
            < call call-3-0 in_progress
            ? form Two? [] -> second words
            < call call-3-0 completed "The person answered: second words\n(You may ask 1 more.)"
            < call call-5-0 speckit_ask "Three?" pending {"question":"Three?"}
            < call call-5-0 in_progress
            ? form Three? [] -> third words
            < call call-5-0 completed "The person answered: third words\n(That was the last question you may ask.)"
            < call call-7-0 speckit_ask "Four?" pending {"question":"Four?"}
            < call call-7-0 in_progress
            < call call-7-0 failed "no more questions may be asked in this step; assume what is usual, and say what you assumed"
            < text[msg-9] Then not.
            < text[note-1] ⏎**/speckit.constitution**⏎- .specify/memory/constitution.md: **Version**: 1.0.0 | **Ratified**: $DATE | **Last Amended**: $DATE⏎⏎Next: `/speckit.specify`⏎
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
fn the_limit_across_prompts() {
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
            < call call-1-0 speckit_ask "One?" pending {"question":"One?"}
            < call call-1-0 in_progress
            < text[note-1] ⏎**One?**⏎⏎⏎Answer with your own words. `done` ends the questions, `cancel` ends the step.⏎
            < call call-1-0 completed "**One?**\n\n\nAnswer with your own words. `done` ends the questions, `cancel` ends the step.\n"
            < title /speckit.constitution Ask me.
            = end_turn
            > prompt one
            < call call-4-0 speckit_ask "Two?" pending {"question":"Two?"}
            < call call-4-0 in_progress
            < text[note-3] ⏎**Two?**⏎⏎⏎Answer with your own words. `done` ends the questions, `cancel` ends the step.⏎
            < call call-4-0 completed "**Two?**\n\n\nAnswer with your own words. `done` ends the questions, `cancel` ends the step.\n"
            = end_turn
            > prompt two
            < call call-7-0 speckit_ask "Three?" pending {"question":"Three?"}
            < call call-7-0 in_progress
            < text[note-5] ⏎**Three?**⏎⏎⏎Answer with your own words. `done` ends the questions, `cancel` ends the step.⏎
            < call call-7-0 completed "**Three?**\n\n\nAnswer with your own words. `done` ends the questions, `cancel` ends the step.\n"
            = end_turn
            > prompt three
            < call call-10-0 speckit_ask "Four?" pending {"question":"Four?"}
            < call call-10-0 in_progress
            < call call-10-0 failed "no more questions may be asked in this step; assume what is usual, and say what you assumed"
            < text[msg-12] Then not.
            < text[note-7] ⏎**/speckit.constitution**⏎- .specify/memory/constitution.md: **Version**: 1.0.0 | **Ratified**: $DATE | **Last Amended**: $DATE⏎⏎Next: `/speckit.specify`⏎
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

#[test]
fn a_form_in_clarify() {
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
            < call call-1-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-1-0 in_progress
            ? form May it write into the folder? [Never, One file] -> Never
            < call call-1-0 completed "The person answered: Never\n(You may ask 4 more.)\nCrow wrote both under Clarifications in $HOME/project/.specify/specs/001-photo-albums/spec.md. Carry it into th"
            < call call-3-0 edit "Edit .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","old_string":" [NEEDS CLARIFICATION: may it write into the folder?]","new_string":", and writes nothing into their folder"}
            < call call-3-0 in_progress
            < call call-3-0 completed diff $HOME/project/.specify/specs/001-photo-albums/spec.md "- **FR-002**: The application MUST leave photos as they are [NEEDS CLARIFICATION: may it write into the folder?]" -> "- **FR-002**: The application MUST leave photos as they are, and writes nothing into their folder"
            < call call-5-0 speckit_ask "How many photos?" pending {"question":"How many photos?"}
            < call call-5-0 in_progress
            ? form How many photos? [] -> up to 5,000
            < call call-5-0 completed "The person answered: up to 5,000\n(You may ask 3 more.)\nCrow wrote both under Clarifications in $HOME/project/.specify/specs/001-photo-albums/spec.md. Carry it i"
            < text[msg-7] Settled.
            < text[note-1] ⏎**/speckit.clarify**⏎- Feature: .specify/specs/001-photo-albums⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 0 open points⏎- Answers written down today: 2⏎⏎Next: `/speckit.plan`⏎
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
fn a_form_that_is_declined_or_closed() {
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
            < call call-1-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-1-0 in_progress
            ? form May it write into the folder? [Never, One file] -> cancelled
            < call call-1-0 failed "the question was closed without an answer; do not ask it again"
            < call call-3-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-3-0 in_progress
            ? form May it write into the folder? [Never, One file] -> declined
            < call call-3-0 completed "The person wants no more questions. Assume what is usual for the rest."
            < call call-5-0 read "Read .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","limit":1}
            < call call-5-0 in_progress
            < call call-5-0 completed "     1\t# Feature Specification: Photo Albums\n(lines 1 to 1 of 47; go on with offset=2)\n"
            < call call-7-0 edit "Edit .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","old_string":" [NEEDS CLARIFICATION: may it write into the folder?]","new_string":", and writes nothing into their folder"}
            < call call-7-0 in_progress
            < call call-7-0 completed diff $HOME/project/.specify/specs/001-photo-albums/spec.md "- **FR-002**: The application MUST leave photos as they are [NEEDS CLARIFICATION: may it write into the folder?]" -> "- **FR-002**: The application MUST leave photos as they are, and writes nothing into their folder"
            < text[msg-9] Settled.
            < text[note-1] ⏎**/speckit.clarify**⏎- Feature: .specify/specs/001-photo-albums⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 0 open points⏎- Answers written down today: 0⏎⏎Next: `/speckit.plan`⏎
            < title /speckit.clarify
            = end_turn
            asked 0 with speckit_ask
              user: "/speckit.clarify" + crow:speckit/clarify "# Settle the open points of 001-photo-albums"
            asked 1 with speckit_ask
              tool: "the question was closed without an answer; do not ask it again"
            asked 2 with speckit_ask
              tool: "The person wants no more questions. Assume what is usual for the rest."
            asked 3 with speckit_ask
              tool: "     1\t# Feature Specification: Photo Albums\n(lines 1 to 1 of 47; go on with offset=2)"
            asked 4 with speckit_ask
              tool: "edited .specify/specs/001-photo-albums/spec.md in 1 place; match: exact\n    34\t### Functional Requirements\n    35\t\n    36\t- **FR-001**: The application MUST put each photo into the album of its day\n    37\t- **FR-002**: The application MUST "
        "##]],
    );
}

#[test]
fn a_form_that_fails_becomes_text() {
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
            < call call-1-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-1-0 in_progress
            ? form May it write into the folder? [Never, One file] -> error
            < text[note-1] ⏎**May it write into the folder?**⏎⏎- **A** Never (recommended): The order is kept elsewhere.⏎- **B** One file: The order lies beside the photos.⏎⏎Answer with a letter, or your own words. `done` ends the questions, `cancel` ends the step.⏎
            < call call-1-0 completed "**May it write into the folder?**\n\n- **A** Never (recommended): The order is kept elsewhere.\n- **B** One file: The order lies beside the photos.\n\nAnswer with a "
            < title /speckit.clarify
            = end_turn
            > prompt b
            < call call-4-0 edit "Edit .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","old_string":" [NEEDS CLARIFICATION: may it write into the folder?]","new_string":", and writes nothing into their folder"}
            < call call-4-0 in_progress
            < call call-4-0 completed diff $HOME/project/.specify/specs/001-photo-albums/spec.md "- **FR-002**: The application MUST leave photos as they are [NEEDS CLARIFICATION: may it write into the folder?]" -> "- **FR-002**: The application MUST leave photos as they are, and writes nothing into their folder"
            < text[msg-6] Settled.
            < text[note-3] ⏎**/speckit.clarify**⏎- Feature: .specify/specs/001-photo-albums⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 0 open points⏎- Answers written down today: 1⏎⏎Next: `/speckit.plan`⏎
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
fn a_form_is_withdrawn_with_its_turn() {
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
            < call call-1-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-1-0 in_progress
            ? form May it write into the folder? [Never, One file] -> silence
            > cancel
            < takes its question back
            < call call-1-0 failed "the question was closed without an answer; do not ask it again"
            < title /speckit.clarify
            = cancelled
            > prompt a
            < text[msg-4] An answer to nothing.
            = end_turn
            asked 0 with speckit_ask
              user: "/speckit.clarify" + crow:speckit/clarify "# Settle the open points of 001-photo-albums"
            asked 1
              tool: "the question was closed without an answer; do not ask it again"
              user: "a"
        "##]],
    );
}

#[test]
fn a_form_in_specify() {
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
            < call call-1-0 write "Write .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","content":"$spec-open"}
            < call call-1-0 in_progress
            < call call-1-0 completed diff $HOME/project/.specify/specs/001-photo-albums/spec.md "# Feature Specification: Photo albums\n\n**Feature Branch**: `001-photo-albums`\n\n**Created**: $DATE\n\n**Status**: Draf"… -> "$spec-open"
            < call call-3-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-3-0 in_progress
            ? form May it write into the folder? [Never, One file] -> One file
            < call call-3-0 completed "The person answered: One file\n(You may ask 2 more.)"
            < call call-5-0 edit "Edit .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","old_string":" [NEEDS CLARIFICATION: may it write into the folder?]","new_string":", and writes nothing into their folder"}
            < call call-5-0 in_progress
            < call call-5-0 completed diff $HOME/project/.specify/specs/001-photo-albums/spec.md "- **FR-002**: The application MUST leave photos as they are [NEEDS CLARIFICATION: may it write into the folder?]" -> "- **FR-002**: The application MUST leave photos as they are, and writes nothing into their folder"
            < text[msg-7] Written.
            < text[note-1] ⏎**/speckit.specify**⏎- Feature: .specify/specs/001-photo-albums⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 0 open points⏎- checklists/requirements.md: 0 of 16 checked⏎⏎Next: `/speckit.clarify`, `/speckit.plan`⏎
            < title /speckit.specify --short-name photo-albums Photos in albums
            = end_turn
            $F/spec.md:
              - - **FR-002**: The application MUST leave photos as they are [NEEDS CLARIFICATION: may it write into the folder?]
              + - **FR-002**: The application MUST leave photos as they are, and writes nothing into their folder
            asked 0 with speckit_ask
              user: "/speckit.specify --short-name photo-albums Photos in albums" + crow:speckit/specify "# Write the spec of 001-photo-albums"
            asked 1 with speckit_ask
              tool: "replaced .specify/specs/001-photo-albums/spec.md: 47 lines"
            asked 2 with speckit_ask
              tool: "The person answered: One file\n(You may ask 2 more.)"
            asked 3 with speckit_ask
              tool: "edited .specify/specs/001-photo-albums/spec.md in 1 place; match: exact\n    34\t### Functional Requirements\n    35\t\n    36\t- **FR-001**: The application MUST put each photo into the album of its day\n    37\t- **FR-002**: The application MUST "
        "##]],
    );
}

/// What is asked for a spec that is just written goes into its text, and is not listed.
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
            < call call-1-0 write "Write .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","content":"$spec-open"}
            < call call-1-0 in_progress
            < call call-1-0 completed diff $HOME/project/.specify/specs/001-photo-albums/spec.md "# Feature Specification: Photo albums\n\n**Feature Branch**: `001-photo-albums`\n\n**Created**: $DATE\n\n**Status**: Draf"… -> "$spec-open"
            < call call-3-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-3-0 in_progress
            < text[note-1] ⏎**May it write into the folder?**⏎⏎- **A** Never (recommended): The order is kept elsewhere.⏎- **B** One file: The order lies beside the photos.⏎⏎Answer with a letter, or your own words. `done` ends the questions, `cancel` ends the step.⏎
            < call call-3-0 completed "**May it write into the folder?**\n\n- **A** Never (recommended): The order is kept elsewhere.\n- **B** One file: The order lies beside the photos.\n\nAnswer with a "
            < title /speckit.specify --short-name photo-albums Photos in albums
            = end_turn
            > prompt b
            < call call-6-0 edit "Edit .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","old_string":" [NEEDS CLARIFICATION: may it write into the folder?]","new_string":", and writes nothing into their folder"}
            < call call-6-0 in_progress
            < call call-6-0 completed diff $HOME/project/.specify/specs/001-photo-albums/spec.md "- **FR-002**: The application MUST leave photos as they are [NEEDS CLARIFICATION: may it write into the folder?]" -> "- **FR-002**: The application MUST leave photos as they are, and writes nothing into their folder"
            < text[msg-8] Written.
            < text[note-3] ⏎**/speckit.specify**⏎- Feature: .specify/specs/001-photo-albums⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 0 open points⏎- checklists/requirements.md: 0 of 16 checked⏎⏎Next: `/speckit.clarify`, `/speckit.plan`⏎
            = end_turn
            $F/spec.md:
              - - **FR-002**: The application MUST leave photos as they are [NEEDS CLARIFICATION: may it write into the folder?]
              + - **FR-002**: The application MUST leave photos as they are, and writes nothing into their folder
            asked 0 with speckit_ask
              user: "/speckit.specify --short-name photo-albums Photos in albums" + crow:speckit/specify "# Write the spec of 001-photo-albums"
            asked 1 with speckit_ask
              tool: "replaced .specify/specs/001-photo-albums/spec.md: 47 lines"
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
            < call call-1-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-1-0 in_progress
            < text[note-1] ⏎**May it write into the folder?**⏎⏎- **A** Never (recommended): The order is kept elsewhere.⏎- **B** One file: The order lies beside the photos.⏎⏎Answer with a letter, or your own words. `done` ends the questions, `cancel` ends the step.⏎
            < call call-1-0 completed "**May it write into the folder?**\n\n- **A** Never (recommended): The order is kept elsewhere.\n- **B** One file: The order lies beside the photos.\n\nAnswer with a "
            < title /speckit.checklist security
            = end_turn
            > prompt a
            < call call-4-0 write "Write .specify/specs/001-photo-albums/checklists/security.md" pending {"file_path":".specify/specs/001-photo-albums/checklists/security.md","content":"$security"}
            < call call-4-0 in_progress
            < call call-4-0 completed diff $HOME/project/.specify/specs/001-photo-albums/checklists/security.md null -> "$security"
            < text[msg-6] Written.
            < text[note-3] ⏎**/speckit.checklist**⏎- Feature: .specify/specs/001-photo-albums⏎- checklists/security.md: 0 of 2 checked⏎⏎Next: `/speckit.tasks`⏎
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
