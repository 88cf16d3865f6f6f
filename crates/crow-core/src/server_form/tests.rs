use std::fmt::Write as _;

use expect_test::{Expect, expect};

use super::*;

fn field(name: &str, kind: ServerFieldKind) -> ServerFormField {
    let (title, description) = (name.to_owned(), String::new());
    ServerFormField { name: name.to_owned(), title, description, is_required: true, kind, default: None }
}

fn text_field(name: &str) -> ServerFormField {
    field(name, ServerFieldKind::Text { chars_min: 0, chars_max: 20, format: None })
}

fn choices(labels: &[&str]) -> Vec<ServerFieldChoice> {
    let choice = |label: &&str| ServerFieldChoice { value: label.to_lowercase(), label: (*label).to_owned() };
    labels.iter().map(choice).collect()
}

fn form(fields: Vec<ServerFormField>) -> ServerElicitation {
    let (server, message) = ("box".to_owned(), "Who are you?".to_owned());
    ServerElicitation::Form(ServerForm { server, message, fields })
}

/// Answers question after question and shows everything.
#[track_caller]
fn check(request: ServerElicitation, answers: &[&str], expected: &Expect) {
    let (mut dialogue, mut answers) = (ElicitationDialogue::new(request), answers.iter());
    let mut log = String::new();
    loop {
        match dialogue.next_step() {
            DialogueStep::Ask(ServerQuestion { message, options, free_text }) => {
                let more = if free_text { " …" } else { "" };
                let _ = writeln!(log, "{message}\n  {options:?}{more}");
            }
            DialogueStep::End(outcome) => {
                let _ = writeln!(log, "{outcome:?}");
                break;
            }
        }
        let Some(answer) = answers.next() else { break };
        let _ = writeln!(log, "> {answer}");
        dialogue.on_answer(answer);
    }
    assert_eq!(answers.next(), None, "an answer was not asked for");
    expected.assert_eq(&log);
}

#[test]
fn form_is_asked_field_by_field() {
    let mut name = text_field("name");
    name.description = "As on the door.".to_owned();
    let age = ServerFieldKind::Number { is_integer: true, minimum: Some(1.0), maximum: Some(150.0) };
    let mut age = field("age", age);
    age.is_required = false;
    let mut agreed = field("agreed", ServerFieldKind::Boolean);
    agreed.default = Some("No".to_owned());
    let nest = field("nest", ServerFieldKind::Choice(choices(&["Oak", "Elm"])));
    check(
        form(vec![name, age, agreed, nest]),
        &["Ada", "36", "No", "Elm"],
        &expect![[r#"
        The MCP server box asks: Who are you?
        1 of 4: name
        As on the door.
          [] …
        > Ada
        The MCP server box asks: Who are you?
        2 of 4: age
        The answer is a whole number between 1 and 150.
          ["leave out"] …
        > 36
        The MCP server box asks: Who are you?
        3 of 4: agreed
          ["No", "Yes"]
        > No
        The MCP server box asks: Who are you?
        4 of 4: nest
          ["Oak", "Elm"]
        > Elm
        Accepted({"name": String("Ada"), "age": Number(36), "agreed": Bool(false), "nest": String("elm")})
    "#]],
    );
}

#[test]
fn optional_fields_can_be_left_out_and_defaults_are_offered() {
    let mut nick = text_field("nick");
    (nick.is_required, nick.default) = (false, Some("crow".to_owned()));
    let mut nest = field("nest", ServerFieldKind::Choice(choices(&["Oak", "Elm", "Ash"])));
    (nest.is_required, nest.default) = (false, Some("Ash".to_owned()));
    check(
        form(vec![nick, nest]),
        &["leave out", "leave out"],
        &expect![[r#"
        The MCP server box asks: Who are you?
        1 of 2: nick
          ["crow", "leave out"] …
        > leave out
        The MCP server box asks: Who are you?
        2 of 2: nest
          ["Ash", "Oak", "Elm", "leave out"]
        > leave out
        Accepted({})
    "#]],
    );
}

#[test]
fn several_choices_are_separated_by_commas() {
    let trees = ServerFieldKind::Choices { choices: choices(&["Oak", "Elm", "Ash"]), n_min: 1, n_max: 2 };
    check(
        form(vec![field("trees", trees)]),
        &["Oak, Elm, Ash", "Oak, Fir", "elm, Oak,oak"],
        &expect![[r#"
        The MCP server box asks: Who are you?
        trees
        Answer with several, separated by commas: Oak, Elm, Ash.
          [] …
        > Oak, Elm, Ash
        The MCP server box asks: Who are you?
        trees
        Answer with several, separated by commas: Oak, Elm, Ash.
        The answer is invalid: between 1 and 2 are required.
          [] …
        > Oak, Fir
        The MCP server box asks: Who are you?
        trees
        Answer with several, separated by commas: Oak, Elm, Ash.
        The answer is invalid: "Fir" was not offered.
          [] …
        > elm, Oak,oak
        Accepted({"trees": Array [String("elm"), String("oak")]})
    "#]],
    );
}

#[test]
fn invalid_answers_end_the_form() {
    let size = ServerFieldKind::Number { is_integer: false, minimum: None, maximum: Some(2.5) };
    check(
        form(vec![field("size", size)]),
        &["big", "NaN", "3"],
        &expect![[r#"
            The MCP server box asks: Who are you?
            size
            The answer is a number of at most 2.5.
              [] …
            > big
            The MCP server box asks: Who are you?
            size
            The answer is a number of at most 2.5.
            The answer is invalid: it is not such a number.
              [] …
            > NaN
            The MCP server box asks: Who are you?
            size
            The answer is a number of at most 2.5.
            The answer is invalid: it is not such a number.
              [] …
            > 3
            Unavailable { reason: "3 answers were invalid: it is not a number of at most 2.5" }
        "#]],
    );
}

#[test]
fn formats_are_checked() {
    let formats = [
        (TextFormat::Email, "ada@example.org", "ada"),
        (TextFormat::Uri, "https://example.org", "example.org /"),
        (TextFormat::Date, "2026-01-31", "tomorrow"),
        (TextFormat::DateTime, "2026-01-31T12:00:00Z", "2026-01-31"),
    ];
    for (format, valid, invalid) in formats {
        let kind = ServerFieldKind::Text { chars_min: 0, chars_max: 40, format: Some(format) };
        let field = field("value", kind);
        assert_eq!(field.parse_answer(valid), Ok(Some(valid.into())));
        assert!(field.parse_answer(invalid).is_err(), "{invalid} was taken as {format:?}");
    }
    let short = field("value", ServerFieldKind::Text { chars_min: 3, chars_max: 4, format: None });
    assert!(short.parse_answer("ab").is_err() && short.parse_answer("abcde").is_err());
}

#[test]
fn form_without_fields_asks_for_consent() {
    check(
        form(Vec::new()),
        &["Accept"],
        &expect![[r#"
        The MCP server box asks: Who are you?
          ["Accept", "Decline"]
        > Accept
        Accepted({})
    "#]],
    );
    check(
        form(Vec::new()),
        &["Decline"],
        &expect![[r#"
        The MCP server box asks: Who are you?
          ["Accept", "Decline"]
        > Decline
        Declined
    "#]],
    );
}

#[test]
fn address_is_shown_whole_and_never_opened() {
    let address = ServerAddress {
        server: "box".to_owned(),
        message: "Log in, please.".to_owned(),
        url: "https://example.org/log-in?id=1".to_owned(),
        host: "example.org".to_owned(),
    };
    let request = ServerElicitation::Address(address);
    check(
        request.clone(),
        &["Continue"],
        &expect![[r#"
        The MCP server box wants you to open an address of example.org in your browser: Log in, please.
        https://example.org/log-in?id=1
        Crow does not open it. Continue if you do.
          ["Continue", "Decline"]
        > Continue
        Accepted({})
    "#]],
    );
    check(
        request,
        &["Decline"],
        &expect![[r#"
        The MCP server box wants you to open an address of example.org in your browser: Log in, please.
        https://example.org/log-in?id=1
        Crow does not open it. Continue if you do.
          ["Continue", "Decline"]
        > Decline
        Declined
    "#]],
    );
}
