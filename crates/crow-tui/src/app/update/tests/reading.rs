//! A question is approved only after all of it was on the screen.

use expect_test::{Expect, expect};

use super::{Stage, check, questions::ask};
use crate::{
    app::{
        event::{AppEvent, DrawnFrame, DrawnQuestion},
        question::QuestionSubject,
        view::view,
    },
    screen::ScreenSize,
};

/// Draws a frame as the loop does.
fn draw_frame(stage: &mut Stage) -> Option<DrawnQuestion> {
    let question = view(&stage.state, stage.now).question;
    stage.apply(AppEvent::FrameDrawn(DrawnFrame { n_committed: 0, question }));
    question
}

/// Draws a frame after these keys; compares the part of the question that it has, and what happened before.
#[track_caller]
fn check_frame(stage: &mut Stage, keys: &str, expected: &Expect) {
    stage.keys(keys);
    let drawn = draw_frame(stage).expect("a question is drawn");
    let part = format!("rows {} to {} of {}\n", drawn.first, drawn.end, drawn.n_rows);
    expected.assert_eq(&(part + &stage.show()));
}

/// A command of 60 lines waits.
fn asked_at_length() -> Stage {
    let mut stage = Stage::open();
    stage.keys("'go' enter");
    ask(&mut stage, 1);
    let Some(QuestionSubject::Call(request)) = stage.state.question().map(|question| &mut question.subject)
    else {
        panic!("a question waits")
    };
    let command: String = (1..=60).map(|number| format!("line {number}\n")).collect();
    request.input = Some(serde_json::json!({"command": command}));
    stage.show();
    stage
}

#[test]
fn pages_leave_out_no_row() {
    let mut stage = asked_at_length();
    check_frame(
        &mut stage,
        "",
        &expect![[r#"
        rows 0 to 10 of 61
        |
    "#]],
    );
    // Keys that were read before the next frame.
    check_frame(
        &mut stage,
        "500ms space space space",
        &expect![[r#"
        rows 10 to 20 of 61
        |
    "#]],
    );
    for _ in 0..3 {
        stage.keys("space");
        draw_frame(&mut stage);
    }
    check_frame(
        &mut stage,
        "y",
        &expect![[r#"
        rows 40 to 50 of 61
        |
        flash: pagedown shows the rest, then it can be approved
    "#]],
    );
    check_frame(
        &mut stage,
        "space",
        &expect![[r#"
        rows 50 to 60 of 61
        |
    "#]],
    );
    check_frame(
        &mut stage,
        "space",
        &expect![[r#"
        rows 51 to 61 of 61
        |
    "#]],
    );
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
fn end_of_a_question_is_not_all_of_it() {
    let mut stage = asked_at_length();
    check_frame(
        &mut stage,
        "",
        &expect![[r#"
        rows 0 to 10 of 61
        |
    "#]],
    );
    check_frame(
        &mut stage,
        "500ms space",
        &expect![[r#"
        rows 10 to 20 of 61
        |
    "#]],
    );
    // The window becomes narrow: the rows that were seen are others.
    stage.state.size.columns = 30;
    check_frame(
        &mut stage,
        "",
        &expect![[r#"
        rows 10 to 20 of 61
        |
    "#]],
    );
    stage.state.size.rows = 50;
    check_frame(
        &mut stage,
        "y",
        &expect![[r#"
        rows 10 to 50 of 61
        |
        flash: pagedown shows the rest, then it can be approved
    "#]],
    );
    check_frame(
        &mut stage,
        "space",
        &expect![[r#"
        rows 0 to 40 of 61
        |
    "#]],
    );
    check_frame(
        &mut stage,
        "space",
        &expect![[r#"
        rows 21 to 61 of 61
        |
    "#]],
    );
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
fn question_that_does_not_fit_is_not_approved() {
    for (columns, rows) in [(60, 5), (19, 40)] {
        let mut stage = Stage::open();
        stage.keys("'go' enter");
        ask(&mut stage, 1);
        stage.show();
        stage.state.size = ScreenSize { columns, rows };
        let drawn = draw_frame(&mut stage).expect("a question is drawn");
        assert_eq!(drawn.end, 0);
        stage.keys("500ms y");
        let hint = "|\nflash: the window is too small to show what would be approved\n";
        assert_eq!(stage.show(), hint);
        stage.keys("n");
        assert_eq!(stage.show(), "AnswerCall { id: 1, option: \"reject\" }\n|\n");
    }
}
