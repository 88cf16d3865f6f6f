//! Questions of a step: in a form, as text that the next prompt answers, and what ends them.

use expect_test::{Expect, expect};

use super::check;

const QUESTION: &str = r#"call speckit_ask {"question":"How many albums?","options":[{"label":"One"},{"label":"Many"}],"recommended":"Many","topic":"size"}"#;

#[track_caller]
fn check_clarify(script: &str, expected: &Expect) {
    check(&format!("have $F/spec.md: $spec\n{}", script.replace("$ask", QUESTION)), expected);
}

#[test]
fn answer_of_a_form_is_written_into_the_spec() {
    check_clarify(
        "
        form Many
        turn
        $ask
        > /speckit.clarify
        ",
        &expect![[r#"
            > /speckit.clarify
            text: No feature is selected, so the only one is used: specs/001-albums.
            feature: specs/001-albums
            turn: speckit/clarify
            form: The model asks (size): How many albums? -> Text("Many")
            recorded: specs/001-albums/spec.md
            speckit_ask: completed The person answered: Many (You may ask 4 more.) Crow wrote both under Clarifications in specs/001-albums/spec.md. Carry it into the section it concerns now, before you ask anything else.
            report done:
            **/speckit.clarify**
            - Feature: specs/001-albums
            - spec.md: 1 user stories, 1 requirements, 1 success criteria, 0 open points
            - Answers recorded today: 1

            Next: `/speckit.plan`
            = Ok(Completed)
        "#]],
    );
}

#[test]
fn question_as_text_is_answered_by_the_next_prompt() {
    check_clarify(
        "
        turn
        $ask
        > /speckit.clarify
        > B
        ",
        &expect![[r#"
            > /speckit.clarify
            text: No feature is selected, so the only one is used: specs/001-albums.
            feature: specs/001-albums
            turn: speckit/clarify
            form: The model asks (size): How many albums? -> Unavailable
            question: **size: How many albums?**

            - **A** Many (recommended)
            - **B** One

            Answer with a letter, or your own words. `done` ends the questions, `cancel` ends the step.
            speckit_ask: completed the question was shown to the person; their answer comes as the next message
            the baseline is kept
            = Ok(Completed)
            > B
            prompt: speckit/answer The person has answered your question.⏎⏎<question>⏎How many albums?⏎</question>⏎⏎<answer>⏎One⏎</answer>⏎⏎Crow has written both under `## Clarifications` in `specs/001-albums/spec.md`; do not write them there again. Read that file again, carry the answer into the section that it concerns, and save, before anything else. If it fits none of your options, their words count, not the option nearest to them. Then go on with `/speckit.clarify` where you were; you may ask 4 more, if it is still worth it.
            recorded: specs/001-albums/spec.md
            turn:
            report done:
            **/speckit.clarify**
            - Feature: specs/001-albums
            - spec.md: 1 user stories, 1 requirements, 1 success criteria, 0 open points
            - Answers recorded today: 1

            Next: `/speckit.plan`
            = Ok(Completed)
        "#]],
    );
}

#[test]
fn questions_end_when_the_user_declines() {
    check_clarify(
        "
        form declined
        turn
        $ask
        $ask
        > /speckit.clarify
        ",
        &expect![[r#"
            > /speckit.clarify
            text: No feature is selected, so the only one is used: specs/001-albums.
            feature: specs/001-albums
            turn: speckit/clarify
            form: The model asks (size): How many albums? -> Declined
            speckit_ask: completed The person wants no more questions. Assume what is usual for the rest.
            speckit_ask: failed no more questions may be asked in this step; assume what is usual, and say what you assumed
            report done:
            **/speckit.clarify**
            - Feature: specs/001-albums
            - spec.md: 1 user stories, 1 requirements, 1 success criteria, 0 open points
            - Answers recorded today: 0

            Next: `/speckit.plan`
            = Ok(Completed)
        "#]],
    );
    check_clarify(
        "
        form closed
        turn
        $ask
        > /speckit.clarify
        ",
        &expect![[r#"
            > /speckit.clarify
            text: No feature is selected, so the only one is used: specs/001-albums.
            feature: specs/001-albums
            turn: speckit/clarify
            form: The model asks (size): How many albums? -> Cancelled
            speckit_ask: failed the question was closed without an answer; do not ask it again
            report done:
            **/speckit.clarify**
            - Feature: specs/001-albums
            - spec.md: 1 user stories, 1 requirements, 1 success criteria, 0 open points
            - Answers recorded today: 0

            Next: `/speckit.plan`
            = Ok(Completed)
        "#]],
    );
}

#[test]
fn step_is_stopped_in_a_form_or_by_a_prompt() {
    check_clarify(
        "
        form cancel
        turn
        $ask
        > /speckit.clarify
        ",
        &expect![[r#"
            > /speckit.clarify
            text: No feature is selected, so the only one is used: specs/001-albums.
            feature: specs/001-albums
            turn: speckit/clarify
            form: The model asks (size): How many albums? -> Text("cancel")
            speckit_ask: completed The person ended this step here. What is written stays; do not go on with it.
            text: /speckit.clarify was stopped. The files written so far were kept.
            = Ok(Completed)
        "#]],
    );
    check_clarify(
        "
        turn
        $ask
        > /speckit.clarify
        > cancel
        ",
        &expect![[r#"
            > /speckit.clarify
            text: No feature is selected, so the only one is used: specs/001-albums.
            feature: specs/001-albums
            turn: speckit/clarify
            form: The model asks (size): How many albums? -> Unavailable
            question: **size: How many albums?**

            - **A** Many (recommended)
            - **B** One

            Answer with a letter, or your own words. `done` ends the questions, `cancel` ends the step.
            speckit_ask: completed the question was shown to the person; their answer comes as the next message
            the baseline is kept
            = Ok(Completed)
            > cancel
            prompt: speckit/answer The person ended this step here. What is written stays; do not go on with it.
            text: /speckit.clarify was stopped. The files written so far were kept.
            = Ok(Completed)
        "#]],
    );
}

#[test]
fn feature_is_not_switched_while_a_question_waits() {
    check_clarify(
        "
        turn
        $ask
        > /speckit.clarify
        > /speckit use 001
        ",
        &expect![[r#"
            > /speckit.clarify
            text: No feature is selected, so the only one is used: specs/001-albums.
            feature: specs/001-albums
            turn: speckit/clarify
            form: The model asks (size): How many albums? -> Unavailable
            question: **size: How many albums?**

            - **A** Many (recommended)
            - **B** One

            Answer with a letter, or your own words. `done` ends the questions, `cancel` ends the step.
            speckit_ask: completed the question was shown to the person; their answer comes as the next message
            the baseline is kept
            = Ok(Completed)
            > /speckit use 001
            refused: a question waits for its answer; answer it or say `cancel`, then switch the feature
            = Ok(Completed)
        "#]],
    );
}

#[test]
fn steps_that_create_pages_ask_as_well() {
    check(
        r#"
        form Simple
        turn
        call speckit_ask {"question":"Which principle?"}
        write .specify/memory/constitution.md: $constitution
        > /speckit.constitution
        form cancel
        turn
        call speckit_ask {"question":"For whom?"}
        > /speckit.specify albums
        "#,
        &expect![[r#"
            > /speckit.constitution
            recorded: .specify/memory/constitution.md
            feature:
            turn: speckit/constitution
            form: The model asks: Which principle? -> Text("Simple")
            speckit_ask: completed The person answered: Simple (You may ask 2 more.)
            write: completed .specify/memory/constitution.md
            report done:
            **/speckit.constitution**
            - .specify/memory/constitution.md: **Version**: 1.0.0 | **Ratified**: 2026-01-02 | **Last Amended**: 2026-01-02

            Next: `/speckit.specify`
            = Ok(Completed)
            > /speckit.specify albums
            side request: You name things in a few words.
            recorded: .specify/specs/001-photo-albums/spec.md
            recorded: .specify/specs/001-photo-albums/checklists/requirements.md
            recorded: .specify/feature.json
            feature: .specify/specs/001-photo-albums
            turn: speckit/specify
            form: The model asks: For whom? -> Text("cancel")
            speckit_ask: completed The person ended this step here. What is written stays; do not go on with it.
            text: /speckit.specify was stopped. The files written so far were kept.
            = Ok(Completed)
        "#]],
    );
}
