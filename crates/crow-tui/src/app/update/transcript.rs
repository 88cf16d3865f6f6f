//! Updates as cells: the same for the session and for its children.

use std::time::Instant;

use crow_acp::AgentUpdate;
use crow_core::ReportOutcome;

use crate::app::cells::{CallChange, CommandEnd, TranscriptCell, TranscriptCells};

/// Applies an update to a transcript; what is no part of one has no effect.
pub(super) fn show_update(
    cells: &mut TranscriptCells,
    message: Option<String>,
    update: AgentUpdate,
    now: Instant,
) {
    match update {
        AgentUpdate::Text(text) => cells.append_text(message, &text),
        AgentUpdate::Thought(text) => cells.append_thought(message, &text),
        AgentUpdate::Prompt(text) => cells.append_prompt(&text),
        AgentUpdate::Call { id, title, kind, status, content, input } => {
            cells.change_call(CallChange { id, title, kind, status, content, input }, now);
        }
        AgentUpdate::CallOutput { id, text } => {
            if let Some(call) = cells.find_call(&id) {
                call.append_output(&text);
            }
        }
        AgentUpdate::CallResult { id, text } => {
            if let Some(call) = cells.find_call(&id) {
                call.set_result(&text);
            }
        }
        AgentUpdate::CallExit { id, code, signal } => {
            if let Some(call) = cells.find_call(&id) {
                call.end = code.map(CommandEnd::Exited).or(signal.map(CommandEnd::Signalled));
            }
        }
        AgentUpdate::Notice(text) | AgentUpdate::Compaction(text) => {
            cells.push(TranscriptCell::Notice(text));
        }
        AgentUpdate::Child { .. }
        | AgentUpdate::Plan(_)
        | AgentUpdate::Title(_)
        | AgentUpdate::Usage { .. }
        | AgentUpdate::Mode(_)
        | AgentUpdate::Options(_)
        | AgentUpdate::Commands(_)
        | AgentUpdate::Outcome(ReportOutcome::Done | ReportOutcome::Incomplete | ReportOutcome::NotStarted) =>
            {}
    }
}
