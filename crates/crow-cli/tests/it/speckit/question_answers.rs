//! Questions to the user as text that the next prompt answers: the meaning of answers, and that none is lost.

use expect_test::{Expect, expect};

use super::check;

/// The question of most of these tests.
const ASK: &str = r#"call speckit_ask {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}"#;

/// Writes an answer into the spec.
const SETTLE: &str = r#"call edit {"file_path":"$F/spec.md","old_string":" [NEEDS CLARIFICATION: may it write into the folder?]","new_string":", and writes nothing into their folder"}"#;

/// Replaces names by the usual calls.
#[track_caller]
pub(super) fn asks(script: &str, transcript: &Expect) {
    check(&script.replace("ASK", ASK).replace("SETTLE", SETTLE), transcript);
}

/// Returns the part of a spec about an answer, whatever the user typed.
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
fn answer_is_a_letter_a_label_or_free_text() {
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
            < call call-2-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-2-0 in_progress
            < text[note-2] ⏎**May it write into the folder?**⏎⏎- **A** Never (recommended): The order is kept elsewhere.⏎- **B** One file: The order lies beside the photos.⏎⏎Answer with a letter, or your own words. `done` ends the questions, `cancel` ends the step.⏎
            < call call-2-0 completed "**May it write into the folder?**\n\n- **A** Never (recommended): The order is kept elsewhere.\n- **B** One file: The order lies beside the photos.\n\nAnswer with a "
            < title /speckit.clarify
            = end_turn
            > prompt no more!
            < call call-5-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-5-0 in_progress
            < call call-5-0 failed "no more questions may be asked in this step; assume what is usual, and say what you assumed"
            < text[msg-7] Then I assume.
            < call call-7-0 read "Read .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","limit":1}
            < call call-7-0 in_progress
            < call call-7-0 completed "     1\t# Feature Specification: Photo Albums\n(lines 1 to 1 of 47; continue with offset=2)\n"
            < call call-9-0 edit "Edit .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","old_string":" [NEEDS CLARIFICATION: may it write into the folder?]","new_string":", and writes nothing into their folder"}
            < call call-9-0 in_progress
            < call call-9-0 completed diff $HOME/project/.specify/specs/001-photo-albums/spec.md "- **FR-002**: The application MUST leave photos as they are [NEEDS CLARIFICATION: may it write into the folder?]" -> "- **FR-002**: The application MUST leave photos as they are, and writes nothing into their folder"
            < text[msg-11] Settled.
            < text[msg-12] ⏎**/speckit.clarify**⏎- Feature: .specify/specs/001-photo-albums⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 0 open points⏎- Answers recorded today: 0⏎⏎Next: `/speckit.plan`⏎
            = end_turn
            asked 0 with speckit_ask
              user: "/speckit.clarify" + crow:speckit/clarify "# Settle the open points of 001-photo-albums"
            asked 1 with speckit_ask
              tool: "the question was shown to the person; their answer comes as the next message"
              user: "no more!" + crow:speckit/answer "The person wants no more questions. This one stays without an answer:"
            asked 2 with speckit_ask
              tool: "no more questions may be asked in this step; assume what is usual, and say what you assumed"
            asked 3 with speckit_ask
              tool: "     1\t# Feature Specification: Photo Albums\n(lines 1 to 1 of 47; continue with offset=2)"
            asked 4 with speckit_ask
              tool: "edited .specify/specs/001-photo-albums/spec.md in 1 place; match: exact\n    34\t### Functional Requirements\n    35\t\n    36\t- **FR-001**: The application MUST put each photo into the album of its day\n    37\t- **FR-002**: The application MUST "
        "##]],
    );
}

/// The prompt of this step makes the model name a topic.
#[test]
fn question_has_a_topic() {
    let topic = ASK.replace("{\"question\"", "{\"topic\":\"Storage\",\"question\"");
    let mut asked = String::new();
    super::run(async {
        let mut stage = super::Stage::new(&format!("have spec\nmodel: {topic}")).await;
        for line in ["> prompt /speckit.clarify", "> end"] {
            stage.act(line).await;
        }
        asked = stage
            .close()
            .await
            .lines()
            .find(|line| line.starts_with("< text"))
            .unwrap_or_default()
            .to_owned();
    });
    assert!(asked.starts_with("< text[note-2] ⏎**Storage: May it write into the folder?**"), "{asked}");
}

/// The step ends without the model, which learns of it with its next request.
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
            < call call-2-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-2-0 in_progress
            < text[note-2] ⏎**May it write into the folder?**⏎⏎- **A** Never (recommended): The order is kept elsewhere.⏎- **B** One file: The order lies beside the photos.⏎⏎Answer with a letter, or your own words. `done` ends the questions, `cancel` ends the step.⏎
            < call call-2-0 completed "**May it write into the folder?**\n\n- **A** Never (recommended): The order is kept elsewhere.\n- **B** One file: The order lies beside the photos.\n\nAnswer with a "
            < title /speckit.clarify
            = end_turn
            > prompt cancel
            < text[note-3] ⏎/speckit.clarify was stopped. The files written so far were kept.⏎
            = end_turn
            > prompt hello
            < text[msg-6] Hello.
            = end_turn
            > tree
              .specify/feature.json {"feature_directory":".specify/specs/001-photo-albums"}
              .specify/specs/001-photo-albums/spec.md $spec-open
            asked 0 with speckit_ask
              user: "/speckit.clarify" + crow:speckit/clarify "# Settle the open points of 001-photo-albums"
            asked 1
              tool: "the question was shown to the person; their answer comes as the next message"
              user: "cancel" + crow:speckit/answer "The person ended this step here. What is written stays; do not go on with it." "hello"
        "##]],
    );
}

#[test]
fn other_command_is_no_answer() {
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
            < call call-2-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-2-0 in_progress
            < text[note-2] ⏎**May it write into the folder?**⏎⏎- **A** Never (recommended): The order is kept elsewhere.⏎- **B** One file: The order lies beside the photos.⏎⏎Answer with a letter, or your own words. `done` ends the questions, `cancel` ends the step.⏎
            < call call-2-0 completed "**May it write into the folder?**\n\n- **A** Never (recommended): The order is kept elsewhere.\n- **B** One file: The order lies beside the photos.\n\nAnswer with a "
            < title /speckit.clarify
            = end_turn
            > still /speckit status
            < text[note-3] - ▸ `001-photo-albums`: spec⏎⏎Next: `/speckit.plan`⏎
            = end_turn
            > prompt /speckit.plan
            < call call-6-0 write "Write .specify/specs/001-photo-albums/plan.md" pending {"file_path":".specify/specs/001-photo-albums/plan.md","content":"$plan"}
            < call call-6-0 in_progress
            < call call-6-0 completed diff $HOME/project/.specify/specs/001-photo-albums/plan.md "# Implementation Plan: Photo albums\n\n**Branch**: `001-photo-albums` | **Date**: $DATE | **Spec**: [spec.md](spec.md"… -> "$plan"
            < text[msg-8] Planned.
            < text[msg-9] ⏎**/speckit.plan**⏎- Feature: .specify/specs/001-photo-albums⏎- plan.md, research.md, quickstart.md⏎⏎Next: `/speckit.tasks`, `/speckit.checklist`⏎
            = end_turn
            > prompt a
            < text[msg-11] A letter.
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
              tool: "replaced .specify/specs/001-photo-albums/plan.md: 65 lines before, 59 lines now"
            asked 3
              user: + crow:speckit/report "" "a"
        "##]],
    );
}

/// The answer is for the feature of the question.
#[test]
fn other_feature_waits_for_the_answer() {
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
            < call call-2-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-2-0 in_progress
            < text[note-2] ⏎**May it write into the folder?**⏎⏎- **A** Never (recommended): The order is kept elsewhere.⏎- **B** One file: The order lies beside the photos.⏎⏎Answer with a letter, or your own words. `done` ends the questions, `cancel` ends the step.⏎
            < call call-2-0 completed "**May it write into the folder?**\n\n- **A** Never (recommended): The order is kept elsewhere.\n- **B** One file: The order lies beside the photos.\n\nAnswer with a "
            < title /speckit.clarify
            = end_turn
            > still /speckit use 2
            < text[note-3] A question waits for its answer; answer it or say `cancel`, then switch the feature.⏎
            = end_turn
            > prompt cancel
            < text[note-4] ⏎/speckit.clarify was stopped. The files written so far were kept.⏎
            = end_turn
            > prompt /speckit use 2
            < text[note-5] Switched to `.specify/specs/002-music`: spec⏎
            = end_turn
            asked 0 with speckit_ask
              user: "/speckit.clarify" + crow:speckit/clarify "# Settle the open points of 001-photo-albums"
        "##]],
    );
}

/// Nothing is written, and the question stays open.
#[test]
fn answer_in_plan_mode() {
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
            < call call-2-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-2-0 in_progress
            < text[note-2] ⏎**May it write into the folder?**⏎⏎- **A** Never (recommended): The order is kept elsewhere.⏎- **B** One file: The order lies beside the photos.⏎⏎Answer with a letter, or your own words. `done` ends the questions, `cancel` ends the step.⏎
            < call call-2-0 completed "**May it write into the folder?**\n\n- **A** Never (recommended): The order is kept elsewhere.\n- **B** One file: The order lies beside the photos.\n\nAnswer with a "
            < title /speckit.clarify
            = end_turn
            > prompt /mode plan
            < mode plan
            < config_option_update
            < text[note-3] Mode plan, model scripted.⏎
            = end_turn
            > still a
            < text[note-4] Plan mode only reads, and this writes files. Change the mode first, with /mode.⏎
            = end_turn
            > prompt /mode ask
            < mode ask
            < config_option_update
            < text[note-5] Mode ask, model scripted.⏎
            = end_turn
            > prompt a
            < text[msg-5] As it is.
            < text[msg-6] ⏎**/speckit.clarify**⏎- Feature: .specify/specs/001-photo-albums⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 1 open points⏎- Answers recorded today: 1⏎⏎Next: `/speckit.plan`⏎
            = end_turn
            asked 0 with speckit_ask
              user: "/speckit.clarify" + crow:speckit/clarify "# Settle the open points of 001-photo-albums"
            asked 1 with speckit_ask
              tool: "the question was shown to the person; their answer comes as the next message"
              user: "a" + crow:speckit/answer "The person has answered your question."
        "##]],
    );
}

/// Asked in one process, answered in the next.
#[test]
fn answer_after_a_restart() {
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
            < call call-2-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-2-0 in_progress
            < text[note-2] ⏎**May it write into the folder?**⏎⏎- **A** Never (recommended): The order is kept elsewhere.⏎- **B** One file: The order lies beside the photos.⏎⏎Answer with a letter, or your own words. `done` ends the questions, `cancel` ends the step.⏎
            < call call-2-0 completed "**May it write into the folder?**\n\n- **A** Never (recommended): The order is kept elsewhere.\n- **B** One file: The order lies beside the photos.\n\nAnswer with a "
            < title /speckit.clarify
            = end_turn
            > kill
            < prompt[msg-0] /speckit.clarify
            < call call-2-0 speckit_ask "May it write into the folder?" completed {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"} "**May it write into the folder?**\n\n- **A** Never (recommended): The order is kept elsewhere.\n- **B** One file: The order lies beside the photos.\n\nAnswer with a "
            < title /speckit.clarify
            > prompt a
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
              user: "a" + crow:speckit/answer "The person has answered your question."
            asked 2 with speckit_ask
              tool: "edited .specify/specs/001-photo-albums/spec.md in 1 place; match: exact\n    40\t### Functional Requirements\n    41\t\n    42\t- **FR-001**: The application MUST put each photo into the album of its day\n    43\t- **FR-002**: The application MUST "
        "##]],
    );
}

/// Both sessions have the question, and each has its own answer.
#[test]
fn answer_in_a_fork() {
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
            < call call-2-0 speckit_ask "May it write into the folder?" pending {"question":"May it write into the folder?","options":[{"label":"One file","meaning":"The order lies beside the photos."},{"label":"Never","meaning":"The order is kept elsewhere."}],"recommended":"Never"}
            < call call-2-0 in_progress
            < text[note-2] ⏎**May it write into the folder?**⏎⏎- **A** Never (recommended): The order is kept elsewhere.⏎- **B** One file: The order lies beside the photos.⏎⏎Answer with a letter, or your own words. `done` ends the questions, `cancel` ends the step.⏎
            < call call-2-0 completed "**May it write into the folder?**\n\n- **A** Never (recommended): The order is kept elsewhere.\n- **B** One file: The order lies beside the photos.\n\nAnswer with a "
            < title /speckit.clarify
            = end_turn
            > fork
            > prompt a
            < call call-5-0 edit "Edit .specify/specs/001-photo-albums/spec.md" pending {"file_path":".specify/specs/001-photo-albums/spec.md","old_string":" [NEEDS CLARIFICATION: may it write into the folder?]","new_string":", and writes nothing into their folder"}
            < call call-5-0 in_progress
            < call call-5-0 completed diff $HOME/project/.specify/specs/001-photo-albums/spec.md "- **FR-002**: The application MUST leave photos as they are [NEEDS CLARIFICATION: may it write into the folder?]" -> "- **FR-002**: The application MUST leave photos as they are, and writes nothing into their folder"
            < text[msg-7] Settled.
            < text[msg-8] ⏎**/speckit.clarify**⏎- Feature: .specify/specs/001-photo-albums⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 0 open points⏎- Answers recorded today: 1⏎⏎Next: `/speckit.plan`⏎
            = end_turn
            > first
            > prompt Beside the photos
            < text[msg-5] As it is.
            < text[msg-6] ⏎**/speckit.clarify**⏎- Feature: .specify/specs/001-photo-albums⏎- spec.md: 1 user stories, 2 requirements, 1 success criteria, 0 open points⏎- Answers recorded today: 2⏎⏎Next: `/speckit.plan`⏎
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
