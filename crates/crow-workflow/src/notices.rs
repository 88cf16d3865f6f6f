//! Messages of the workflow to the user.

use crate::port::WorkflowPort;

/// Sends a note before a step.
pub(crate) fn send_note(port: &impl WorkflowPort, text: &str) {
    port.send_text(&format!("{}\n", text.trim_end()));
}

/// Sends a note between the parts of the model's text.
pub(crate) fn send_step_note(port: &impl WorkflowPort, text: &str) {
    port.send_text(&format!("\n{}\n", text.trim()));
}

/// Reports why a request was rejected.
pub(crate) fn report_refusal(port: &impl WorkflowPort, reason: &str) {
    port.send_refusal(reason);
}
