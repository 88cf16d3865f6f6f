//! Messages of the workflow to the user.

use crow_core::{ReportOutcome, SessionUpdate};

use crate::confirm::replace_control_chars;
use crate::turn_context::TurnCx;

/// Message to the model about a step that the user ended.
pub(super) const STOPPED: &str =
    "The person ended this step here. What is written stays; do not go on with it.";

/// Sends a note.
pub(super) fn send_note(cx: &TurnCx<'_>, text: &str) {
    let text = format!("{}\n", replace_control_chars(text.trim_end()));
    cx.client.send_update(cx.session, SessionUpdate::Text { message: cx.runtime.next_message_id(), text });
}

/// Reports why a request was rejected.
pub(super) fn report_refusal(cx: &TurnCx<'_>, reason: &str) {
    let text = format!("{}\n", replace_control_chars(reason.trim_end()));
    let (message, outcome) = (cx.runtime.next_message_id(), ReportOutcome::NotStarted);
    cx.client.send_update(cx.session, SessionUpdate::Report { message, text, outcome, next: Vec::new() });
}
