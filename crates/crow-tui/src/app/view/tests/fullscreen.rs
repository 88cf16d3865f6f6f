//! The conversation on the whole screen.

use super::*;
use crate::screen::{InputEvent, KeyCode, KeyPress, TimedInput};

/// Shows the frame after these keys.
#[track_caller]
fn check_after(stage: &mut ViewStage, keys: &[KeyCode], expected: &Expect) {
    for code in keys {
        let event = InputEvent::Key(KeyPress::plain(*code));
        stage.apply(AppEvent::Input(TimedInput { event, read_at: stage.now }));
    }
    let frame = view(&stage.state, stage.now);
    assert!(frame.is_fullscreen && frame.history.is_empty());
    assert_eq!(frame.live.len(), usize::from(stage.state.size.rows));
    expected
        .assert_eq(&frame.live.iter().map(|row| row.text().trim_end().to_owned() + "\n").collect::<String>());
}

fn empty_stage() -> ViewStage {
    let mut stage = ViewStage::new(40);
    stage.state.is_fullscreen = true;
    stage.state.size.rows = 10;
    stage
}

fn long_stage() -> ViewStage {
    let mut stage = empty_stage();
    stage.type_text("count\n");
    for number in 1..=12 {
        stage.update(AgentUpdate::Text(format!("Paragraph {number}.\n\n")));
    }
    let code = "let a_rather_long_line_of_code_that_is_not_cut = 1;";
    stage.update(AgentUpdate::Text(format!("```rust\n{code}\n```\n")));
    stage
}

#[test]
fn transcript_is_above_the_composer() {
    let mut stage = empty_stage();
    check_after(
        &mut stage,
        &[],
        &expect![[r#"








            › Ask anything
            crow · small · ask · ~/project
        "#]],
    );
    let mut stage = long_stage();
    check_after(
        &mut stage,
        &[],
        &expect![[r#"
            Paragraph 11.

            Paragraph 12.

            let a_rather_long_line_of_code_that_is_
            not_cut = 1;

            ⠋ Writing · 0 s · esc stops
            › Ask anything
            crow · small · ask · ~/project
        "#]],
    );
    check_after(
        &mut stage,
        &[KeyCode::PageUp; 9],
        &expect![[r#"
            › count

            Paragraph 1.

            Paragraph 2.


            ⠋ Writing · 0 s · esc stops
            › Ask anything
            crow · small · ask · ~/project
        "#]],
    );
}

#[test]
fn place_stays_while_text_arrives() {
    let mut stage = long_stage();
    check_after(
        &mut stage,
        &[KeyCode::PageUp, KeyCode::WheelUp],
        &expect![[r#"
            Paragraph 7.

            Paragraph 8.

            Paragraph 9.


            ⠋ Writing · 0 s · esc stops
            › Ask anything
            crow · small · ask · ~/project
        "#]],
    );
    stage.update(AgentUpdate::Text("More while it is scrolled.\n".into()));
    check_after(
        &mut stage,
        &[],
        &expect![[r#"
            Paragraph 7.

            Paragraph 8.

            Paragraph 9.


            ⠋ Writing · 0 s · esc stops
            › Ask anything
            crow · small · ask · ~/project
        "#]],
    );
    check_after(
        &mut stage,
        &[KeyCode::PageDown, KeyCode::PageDown],
        &expect![[r#"
            Paragraph 12.

            let a_rather_long_line_of_code_that_is_
            not_cut = 1;

            More while it is scrolled.

            ⠋ Writing · 0 s · esc stops
            › Ask anything
            crow · small · ask · ~/project
        "#]],
    );
}
