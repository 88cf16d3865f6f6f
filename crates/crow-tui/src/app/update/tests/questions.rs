//! Questions, and which input answers them.

use crow_acp::{AgentPermissionRequest, ElicitationForm, FormSubject, PermissionOption, PermissionSubject};
use crow_core::ToolKind;
use expect_test::expect;
use proptest::prelude::*;

use super::{Stage, check};
use crate::{
    app::{
        event::{AppEvent, DrawnFrame, DrawnQuestion},
        question::QuestionSubject,
    },
    screen::{InputEvent, KeyCode, KeyPress},
};

pub(super) fn ask(stage: &mut Stage, id: u64) {
    let option = |id: &str, allows, always| PermissionOption {
        id: id.into(),
        name: id.into(),
        allows,
        always,
        prefix: None,
    };
    let request = AgentPermissionRequest {
        subject: PermissionSubject::Call,
        call: "call".into(),
        title: "`rm`".into(),
        kind: ToolKind::Execute,
        input: None,
        content: Vec::new(),
        options: vec![
            option("once", true, false),
            option("session", true, true),
            option("reject", false, false),
        ],
        offer: None,
    };
    stage.apply(AppEvent::Permission { id, request: Box::new(request) });
}

/// A command waits that the user may allow by a prefix.
fn asked_with_prefix() -> Stage {
    let mut stage = Stage::open();
    stage.keys("'go' enter");
    ask(&mut stage, 1);
    let Some(QuestionSubject::Call(request)) = stage.state.question().map(|question| &mut question.subject)
    else {
        panic!("a question waits")
    };
    request.options.insert(
        2,
        PermissionOption {
            id: "project".into(),
            name: "Always allow `cargo test …` in this project".into(),
            allows: true,
            always: true,
            prefix: Some("cargo test".into()),
        },
    );
    draw(&mut stage, 1, true);
    stage.show();
    stage
}

fn draw(stage: &mut Stage, id: u64, is_complete: bool) {
    let end = if is_complete { 9 } else { 8 };
    let question = DrawnQuestion { id, n_rows: 9, columns: 59, first: 0, end };
    stage.apply(AppEvent::FrameDrawn(DrawnFrame { n_committed: 0, question: Some(question) }));
}

fn asked() -> Stage {
    let mut stage = Stage::open();
    stage.keys("'go' enter");
    ask(&mut stage, 1);
    draw(&mut stage, 1, true);
    stage.show();
    stage
}

#[test]
fn key_answers_after_a_pause() {
    check(
        &mut asked(),
        "500ms y",
        &expect![[r#"
        AnswerCall { id: 1, option: "once" }
        |
    "#]],
    );
    check(
        &mut asked(),
        "500ms down enter",
        &expect![[r#"
        AnswerCall { id: 1, option: "session" }
        |
    "#]],
    );
    check(
        &mut asked(),
        "500ms n",
        &expect![[r#"
        AnswerCall { id: 1, option: "reject" }
        |
    "#]],
    );
    check(
        &mut asked(),
        "500ms esc",
        &expect![[r#"
        CancelTurn
        DropQuestion(1)
        |
    "#]],
    );
}

#[test]
fn hasty_key_goes_to_the_draft_which_then_has_the_keyboard() {
    let mut stage = asked();
    check(
        &mut stage,
        "y 500ms enter",
        &expect![[r#"
            StoreDraft("y")
            y|
            flash: tab goes to the question; the text is kept
        "#]],
    );
    check(
        &mut stage,
        "500ms y 500ms tab a",
        &expect![[r#"
            StoreDraft("yy")
            AnswerCall { id: 1, option: "session" }
            yy|
        "#]],
    );
}

#[test]
fn held_key_never_answers() {
    check(
        &mut asked(),
        "100ms enter 350ms enter 350ms enter 350ms enter",
        &expect![[r#"
        |
        flash: a moment, then press it again to answer
    "#]],
    );
    check(
        &mut asked(),
        "390ms up 100ms enter",
        &expect![[r#"
        go|
        flash: tab goes to the question; the text is kept
    "#]],
    );
    // Tab may be meant for a completion.
    check(
        &mut asked(),
        "tab enter",
        &expect![[r#"
        |
        flash: a moment, then press it again to answer
    "#]],
    );
    check(
        &mut asked(),
        "500ms 'dr' tab enter",
        &expect![[r#"
        dr|
        flash: tab goes to the question; the text is kept
    "#]],
    );
    check(
        &mut asked(),
        "500ms 'dr' 500ms tab enter",
        &expect![[r#"
        StoreDraft("dr")
        AnswerCall { id: 1, option: "once" }
        dr|
    "#]],
    );
    // The wheel scrolls, wherever the keyboard is.
    check(
        &mut asked(),
        "300ms wheelup 200ms y",
        &expect![[r#"
        AnswerCall { id: 1, option: "once" }
        |
    "#]],
    );
}

#[test]
fn key_held_since_the_last_answer_does_not_answer_the_next_question() {
    let repeated = "29ms y ".repeat(40);
    let mut stage = asked();
    ask(&mut stage, 2);
    stage.keys("500ms y");
    draw(&mut stage, 2, true);
    // Keyboards wait for about half a second before they repeat a key.
    stage.keys(&format!("520ms y {repeated}"));
    let shown = stage.show();
    assert!(!shown.contains("id: 2"), "{shown}");
    assert_eq!(stage.state.questions.len(), 1);
    for (pause, has_answer) in [("520ms", false), ("820ms", true)] {
        let mut stage = asked();
        ask(&mut stage, 2);
        stage.keys("500ms y");
        draw(&mut stage, 2, true);
        stage.keys(&format!("{pause} y"));
        assert_eq!(stage.state.questions.is_empty(), has_answer, "{pause}");
    }
    let mut stage = asked();
    ask(&mut stage, 2);
    stage.keys("500ms y");
    draw(&mut stage, 2, true);
    stage.show();
    check(
        &mut stage,
        "420ms down 5ms down 5ms y",
        &expect![[r#"
        AnswerCall { id: 2, option: "once" }
        |
    "#]],
    );
}

#[test]
fn tab_that_is_too_early_says_so_and_restarts_no_wait() {
    check(
        &mut asked(),
        "500ms 'dr' 300ms tab",
        &expect![[r#"
        StoreDraft("dr")
        dr|
        flash: a moment, then tab again
    "#]],
    );
    check(
        &mut asked(),
        "500ms 'dr' 300ms tab 150ms tab y",
        &expect![[r#"
        StoreDraft("dr")
        AnswerCall { id: 1, option: "once" }
        dr|
        flash: a moment, then tab again
    "#]],
    );
}

#[test]
fn paste_never_answers() {
    check(
        &mut asked(),
        "500ms [y] 500ms enter",
        &expect![[r#"
            StoreDraft("y")
            y|
            flash: tab goes to the question; the text is kept
        "#]],
    );
}

#[test]
fn nothing_is_approved_before_its_end_was_visible() {
    let mut stage = Stage::open();
    stage.keys("'go' enter");
    ask(&mut stage, 1);
    draw(&mut stage, 1, false);
    stage.show();
    check(
        &mut stage,
        "500ms y",
        &expect![[r#"
        |
        flash: pagedown shows the rest, then it can be approved
    "#]],
    );
    draw(&mut stage, 1, true);
    check(
        &mut stage,
        "y",
        &expect![[r#"
        AnswerCall { id: 1, option: "once" }
        |
    "#]],
    );
}

#[test]
fn questions_come_one_after_the_other() {
    let mut stage = asked();
    ask(&mut stage, 2);
    check(
        &mut stage,
        "500ms y y",
        &expect![[r#"
        AnswerCall { id: 1, option: "once" }
        y|
    "#]],
    );
    draw(&mut stage, 2, true);
    check(
        &mut stage,
        "ctrl-u 500ms y",
        &expect![[r#"
        AnswerCall { id: 2, option: "once" }
        |
    "#]],
    );
}

#[test]
fn rejection_says_what_to_do_instead() {
    let mut stage = asked();
    check(
        &mut stage,
        "'dr' 500ms tab e",
        &expect![[r#"
            StoreDraft("dr")
            |
        "#]],
    );
    check(
        &mut stage,
        "'use_trash' enter",
        &expect![[r#"
        AnswerCall { id: 1, option: "reject" }
        history "use trash"
        Steer("use trash")
        dr|
    "#]],
    );
}

#[test]
fn prefix_can_be_changed_before_it_is_allowed() {
    check(
        &mut asked_with_prefix(),
        "500ms p",
        &expect![[r#"
        cargo test|
    "#]],
    );
    check(
        &mut asked_with_prefix(),
        "500ms p enter",
        &expect![[r#"
        AnswerPrefix { id: 1, option: "project", prefix: "cargo test" }
        |
    "#]],
    );
    check(
        &mut asked_with_prefix(),
        "500ms p '_-p_core' enter",
        &expect![[r#"
        AnswerPrefix { id: 1, option: "project", prefix: "cargo test -p core" }
        |
    "#]],
    );
    check(
        &mut asked_with_prefix(),
        "500ms p alt-backspace enter",
        &expect![[r#"
        cargo |
        flash: commands that begin with `cargo` always ask
    "#]],
    );
}

#[test]
fn changed_prefix_is_no_part_of_the_draft() {
    let mut drafted = asked_with_prefix();
    check(
        &mut drafted,
        "'dr' 500ms tab p '_x' esc",
        &expect![[r#"
        StoreDraft("dr")
        dr|
    "#]],
    );
    check(
        &mut drafted,
        "p '_-q' enter",
        &expect![[r#"
        AnswerPrefix { id: 1, option: "project", prefix: "cargo test -q" }
        dr|
    "#]],
    );
    let mut withdrawn = asked_with_prefix();
    withdrawn.keys("'dr' 500ms tab p");
    withdrawn.apply(AppEvent::QuestionWithdrawn(1));
    check(
        &mut withdrawn,
        "",
        &expect![[r#"
        StoreDraft("dr")
        dr|
    "#]],
    );
    check(
        &mut asked_with_prefix(),
        "500ms p ctrl-c ctrl-c ctrl-c",
        &expect![[r#"
        history "cargo test"
        CancelTurn
        Quit
        |
        flash: ctrl-c again quits
    "#]],
    );
}

#[test]
fn form_takes_free_text() {
    let mut stage = Stage::open();
    let form = ElicitationForm {
        message: "Name?".into(),
        options: Vec::new(),
        free_text: true,
        subject: FormSubject::Question,
    };
    stage.apply(AppEvent::Form { id: 7, form: Box::new(form) });
    draw(&mut stage, 7, true);
    check(
        &mut stage,
        "500ms enter 'crow' enter",
        &expect![[r#"
        AnswerForm { id: 7, outcome: Accepted("crow") }
        |
    "#]],
    );
}

#[test]
fn answer_for_an_mcp_server_is_not_repeated() {
    let mut stage = Stage::open();
    let form = ElicitationForm {
        message: "The MCP server box asks: Your code?".into(),
        options: Vec::new(),
        free_text: true,
        subject: FormSubject::McpServer,
    };
    stage.apply(AppEvent::Form { id: 7, form: Box::new(form) });
    draw(&mut stage, 7, true);
    stage.keys("500ms enter 's3cret' enter");
    let cells = format!("{:?}", stage.state.cells);
    assert!(cells.contains("answered") && !cells.contains("s3cret"), "{cells}");
}

#[test]
fn withdrawn_question_returns_the_draft() {
    let mut stage = asked();
    stage.keys("'dr' 500ms tab e 'half'");
    stage.show();
    stage.apply(AppEvent::QuestionWithdrawn(1));
    check(
        &mut stage,
        "",
        &expect![[r#"
        dr⏎half|
    "#]],
    );
}

/// One thing that a user does before a question is drawn.
fn early_input() -> impl Strategy<Value = InputEvent> {
    let key = |code| InputEvent::Key(KeyPress::plain(code));
    prop_oneof![
        prop::sample::select(vec!['y', 'a', 'p', 'n', 'e', 'x', '1', ' '])
            .prop_map(move |letter| key(KeyCode::Char(letter))),
        Just(key(KeyCode::Enter)),
        Just(key(KeyCode::Tab)),
        Just(key(KeyCode::Down)),
        "[yan\n]{1,12}".prop_map(|content| InputEvent::Paste { content, is_truncated: false }),
    ]
}

proptest! {
    #[test]
    fn input_from_before_the_frame_never_answers(inputs in prop::collection::vec(early_input(), 1..20), late in 0usize..20) {
        let mut stage = Stage::open();
        stage.keys("'go' enter");
        ask(&mut stage, 1);
        stage.show();
        let read_at = stage.now;
        for (index, event) in inputs.into_iter().enumerate() {
            // Some of it is handled after the frame, but all of it was read before.
            if index == late {
                stage.wait(1000);
                draw(&mut stage, 1, true);
            }
            stage.apply(AppEvent::Input(crate::screen::TimedInput { event, read_at }));
        }
        let shown = stage.show();
        prop_assert!(!shown.contains("AnswerCall"), "{}", shown);
        prop_assert_eq!(stage.state.questions.len(), 1);
    }
}

#[test]
fn held_keys_edit_and_move_but_neither_answer_nor_send() {
    let mut stage = Stage::open();
    check(
        &mut stage,
        "'abcd' held-left held-left held-backspace held-x held-enter",
        &expect![[r#"
        ax|cd
    "#]],
    );
    check(
        &mut stage,
        "esc held-esc ctrl-u ctrl-k ctrl-c held-ctrl-c held-ctrl-d",
        &expect![[r#"
        |
        flash: ctrl-c again quits
    "#]],
    );
    assert!(!stage.state.is_quitting);
    stage.keys("'go' enter");
    ask(&mut stage, 1);
    draw(&mut stage, 1, true);
    check(
        &mut stage,
        "900ms held-y held-enter held-esc held-n held-down",
        &expect![[r#"
        history "go"
        SendPrompt([Text("go")])
        |
    "#]],
    );
    check(
        &mut stage,
        "900ms y",
        &expect![[r#"
        AnswerCall { id: 1, option: "once" }
        |
    "#]],
    );
}
