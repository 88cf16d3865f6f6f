use crow_acp::{ElicitationChoice, FormSubject};
use expect_test::{Expect, expect};

use super::*;

/// Renders a form of `LABEL: MEANING` lines, with `…` for free text, and parses an answer.
#[track_caller]
fn check(message: &str, options: &[&str], typed: &[&str], expected: &Expect) {
    check_form(FormSubject::Question, message, options, typed, expected);
}

#[track_caller]
fn check_form(subject: FormSubject, message: &str, options: &[&str], typed: &[&str], expected: &Expect) {
    let choices = options.iter().filter(|option| **option != "…").map(|option| {
        let (label, meaning) = option.split_once(": ").unwrap_or((option, ""));
        ElicitationChoice { label: label.into(), description: meaning.into() }
    });
    let form = ElicitationForm {
        message: message.into(),
        options: choices.collect(),
        free_text: options.contains(&"…"),
        subject,
    };
    let read = typed.iter().map(|typed| format!("{typed:?} {:?}\n", parse_answer(&form, typed)));
    let drawn = render_form(&form, PaintMode::Plain).join("\n");
    expected.assert_eq(&format!("{drawn}\n{}\n{}", describe_answers(&form), read.collect::<String>()));
}

#[test]
fn choice_is_a_number_or_a_label() {
    check(
        "Which nest?\nThere are two.",
        &["oak: The old one,\u{1b}[8m hidden.", "Elm"],
        &["", "1", " 2 ", "elm", "0", "3", "-1", "done", "DONE ", "a beech"],
        &expect![[r#"
            Question: Which nest?
              There are two.
              1 oak — The old one,␛[8m hidden.
              2 Elm
            1-2, Enter for 1 · done to leave it open
            "" Some(Accepted("oak"))
            "1" Some(Accepted("oak"))
            " 2 " Some(Accepted("Elm"))
            "elm" Some(Accepted("Elm"))
            "0" None
            "3" None
            "-1" None
            "done" Some(Declined)
            "DONE " Some(Declined)
            "a beech" None
        "#]],
    );
}

#[test]
fn free_text_is_accepted_where_the_form_allows_it() {
    check(
        "Which nest?",
        &["oak", "…"],
        &["", "oak", "2", "0", "a beech", "2 nests", "cancel", "done"],
        &expect![[r#"
            Question: Which nest?
              1 oak
            1 or Enter · your own answer · done to leave it open · cancel to stop
            "" Some(Accepted("oak"))
            "oak" Some(Accepted("oak"))
            "2" Some(Accepted("2"))
            "0" Some(Accepted("0"))
            "a beech" Some(Accepted("a beech"))
            "2 nests" Some(Accepted("2 nests"))
            "cancel" Some(Accepted("cancel"))
            "done" Some(Declined)
        "#]],
    );
    check(
        "How many?",
        &["…"],
        &["", "7", "  ", "done", "many"],
        &expect![[r#"
            Question: How many?
            your own answer · done to leave it open · cancel to stop
            "" None
            "7" Some(Accepted("7"))
            "  " None
            "done" Some(Declined)
            "many" Some(Accepted("many"))
        "#]],
    );
}

#[test]
fn label_done_is_a_label() {
    check(
        "How is it?",
        &["begun", "done"],
        &["done", "2"],
        &expect![[r#"
            Question: How is it?
              1 begun
              2 done
            1-2, Enter for 1 · done to leave it open
            "done" Some(Accepted("done"))
            "2" Some(Accepted("done"))
        "#]],
    );
}

#[test]
fn numeric_label_is_not_an_index() {
    check(
        "How many?",
        &["2", "1", "7", "…"],
        &["1", "2", "3", "7", "8"],
        &expect![[r#"
            Question: How many?
              1 2
              2 1
              3 7
            1-3, Enter for 1 · your own answer · done to leave it open · cancel to stop
            "1" Some(Accepted("1"))
            "2" Some(Accepted("2"))
            "3" Some(Accepted("7"))
            "7" Some(Accepted("7"))
            "8" Some(Accepted("8"))
        "#]],
    );
}

#[test]
fn free_text_is_limited_in_length() {
    let form = ElicitationForm {
        message: String::new(),
        options: Vec::new(),
        free_text: true,
        subject: FormSubject::Question,
    };
    assert_eq!(parse_answer(&form, &"x".repeat(ElicitationForm::ANSWER_CHARS_MAX + 1)), None);
}

#[test]
fn request_of_an_mcp_server_can_be_declined_and_cancelled() {
    check_form(
        FormSubject::McpServer,
        "The MCP server box asks: Who are you?\nName",
        &["leave out", "…"],
        &["", "1", "Ada", "leave out", "done", "Decline", "cancel"],
        &expect![[r#"
            Question: The MCP server box asks: Who are you?
              Name
              - leave out
            Enter for the first, or a name · your own answer · decline to answer nothing · cancel to stop
            "" Some(Accepted("leave out"))
            "1" Some(Accepted("1"))
            "Ada" Some(Accepted("Ada"))
            "leave out" Some(Accepted("leave out"))
            "done" Some(Accepted("done"))
            "Decline" Some(Declined)
            "cancel" Some(Cancelled)
        "#]],
    );
    check_form(
        FormSubject::McpServer,
        "The MCP server box asks: Well?",
        &["Accept", "Decline"],
        &["", "2", "cancel", "no"],
        &expect![[r#"
            Question: The MCP server box asks: Well?
              1 Accept
              2 Decline
            1-2, Enter for 1 · decline to answer nothing · cancel to stop
            "" Some(Accepted("Accept"))
            "2" Some(Accepted("Decline"))
            "cancel" Some(Cancelled)
            "no" None
        "#]],
    );
}
