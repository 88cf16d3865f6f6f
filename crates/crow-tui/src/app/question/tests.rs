use std::time::Duration;

use crow_acp::{ElicitationChoice, FormSubject, PermissionOption, PermissionSubject};
use crow_core::ToolKind;
use expect_test::{Expect, expect};

use super::*;

fn request(options: &[(&str, bool, bool)]) -> QuestionSubject {
    let options = options.iter().map(|(name, allows, always)| PermissionOption {
        id: name.to_lowercase(),
        name: (*name).to_owned(),
        allows: *allows,
        always: *always,
        prefix: None,
    });
    QuestionSubject::Call(Box::new(AgentPermissionRequest {
        subject: PermissionSubject::Call,
        call: "call".into(),
        title: "`ls`".into(),
        kind: ToolKind::Execute,
        input: None,
        content: Vec::new(),
        options: options.collect(),
        offer: None,
    }))
}

#[track_caller]
fn check(subject: QuestionSubject, expected: &Expect) {
    let answers = WaitingQuestion::new(1, subject).answers();
    let lines = answers.iter().map(|answer| {
        let key = answer.key.map_or("-", crate::app::keys::key_for);
        format!("{key} {}: {:?}\n", answer.name, answer.effect)
    });
    expected.assert_eq(&lines.collect::<String>());
}

#[test]
fn answers_have_the_same_keys_in_every_question() {
    check(
        request(&[
            ("Allow once", true, false),
            ("Allow `ls` for this session", true, true),
            ("Always allow `ls` in this project", true, true),
            ("Reject", false, false),
            ("Reject and say what to do instead", false, false),
        ]),
        &expect![[r#"
            y Allow once: Option("allow once")
            a Allow `ls` for this session: Option("allow `ls` for this session")
            p Always allow `ls` in this project: Option("always allow `ls` in this project")
            n Reject: Option("reject")
            e Reject and say what to do instead: Option("reject and say what to do instead")
        "#]],
    );
    check(
        request(&[
            ("Yes", true, false),
            ("Always in this project", true, true),
            ("No", false, false),
            ("Never", false, true),
        ]),
        &expect![[r#"
            y Yes: Option("yes")
            p Always in this project: Option("always in this project")
            n No: Option("no")
            e Reject and say what to do instead: Instead("no")
            x Never: Option("never")
        "#]],
    );
}

#[test]
fn forms_offer_their_choices_and_free_text() {
    let choice = |label: &str| ElicitationChoice { label: label.into(), description: String::new() };
    let form = ElicitationForm {
        message: "Which one?".into(),
        options: vec![choice("This"), choice("That")],
        free_text: true,
        subject: FormSubject::Question,
    };
    check(
        QuestionSubject::Form(Box::new(form)),
        &expect![[r#"
            - This: Choice("This")
            - That: Choice("That")
            e Type an answer: FreeText
        "#]],
    );
}

#[test]
fn keys_from_before_the_question_and_hasty_ones_do_not_answer() {
    let start = Instant::now();
    let at = |milliseconds| start + Duration::from_millis(milliseconds);
    let mut question = WaitingQuestion::new(1, request(&[("Yes", true, false)]));
    assert!(!question.has_keyboard(at(0), QUIET, true), "it is not drawn");
    let drawn = DrawnQuestion { id: 1, n_rows: 3, columns: 60, first: 0, end: 3 };
    question.mark_drawn(drawn, at(1000));
    assert!(!question.has_keyboard(at(900), QUIET, true), "read before it was drawn");
    assert!(!question.has_keyboard(at(1399), QUIET, true), "too early");
    assert!(question.has_keyboard(at(1400), QUIET, true));
    assert!(!question.has_keyboard(at(1799), QUIET_SAME_KEY, true), "it may be held");
    assert!(question.has_keyboard(at(1800), QUIET_SAME_KEY, true));
    assert!(!question.has_keyboard(at(1400), QUIET, false), "the text has the keyboard");
    question.note_key(at(1400));
    assert!(!question.has_keyboard(at(1700), QUIET, true), "still typing");
    assert!(question.has_keyboard(at(1800), QUIET, true));
    question.focus(at(1700), QUIET);
    assert!(!question.is_focused, "still typing");
    question.focus(at(1800), QUIET);
    assert!(question.has_keyboard(at(1401), QUIET, false), "chosen with Tab");
    assert!(!question.has_keyboard(at(999), QUIET, false), "read before it was drawn");
}
