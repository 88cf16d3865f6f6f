//! A session of a day: the state and each frame are bounded, whatever arrives.

use super::*;
use crate::app::event::DrawnFrame;

/// Draws a frame as the loop does.
fn draw(stage: &mut ViewStage) -> AppView {
    let frame = view(&stage.state, stage.now);
    let drawn = DrawnFrame { n_committed: frame.n_committed, question: None };
    stage.apply(AppEvent::FrameDrawn(drawn));
    frame
}

#[test]
fn day_is_bounded() {
    let mut stage = ViewStage::new(100);
    let output = "compiling another crate of many\n".repeat(3000);
    let (mut n_open_max, mut n_updates) = (0, 0);
    for n_call in 0..500 {
        let id = format!("call {n_call}");
        stage.update(call(&id, ToolCallStatus::InProgress, Vec::new()));
        stage.update(AgentUpdate::CallOutput { id: id.clone(), text: output.clone() });
        for n_word in 0..17 {
            stage.update(AgentUpdate::Text(format!("word {n_word}\n\n")));
        }
        draw(&mut stage);
        stage.update(call(&id, ToolCallStatus::Completed, Vec::new()));
        n_updates += 20;
        draw(&mut stage);
        n_open_max = n_open_max.max(stage.state.cells.uncommitted().len());
    }
    assert_eq!(n_updates, 10_000);
    assert!(n_open_max < 32, "{n_open_max} cells are rendered with each frame");
    assert!(stage.state.cells.n_history_bytes() <= 32 * 1024 * 1024 + output.len());
    let n_stubs = stage.state.cells.all().iter().filter(|cell| is_stub(cell)).count();
    assert!(n_stubs > 0, "the oldest calls keep no output");
    // Ten more days of short messages.
    for n_notice in 0..30_000 {
        stage.update(AgentUpdate::Notice(format!("notice {n_notice}")));
        if n_notice % 100 == 0 {
            draw(&mut stage);
        }
    }
    assert!(stage.state.cells.all().len() <= 20_100);
    assert!(stage.state.cells.has_dropped());
}

fn is_stub(cell: &crate::app::cells::TranscriptCell) -> bool {
    matches!(cell, crate::app::cells::TranscriptCell::Call(call) if call.is_stub)
}
