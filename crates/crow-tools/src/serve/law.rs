//! What an MCP client may have done without another question. Pure.

use crow_core::{Mode, Touch};

/// The mode a call is judged in.
///
/// The client's person was asked for the call, so commands go, held by the sandbox, and so do edits inside the folders
/// and pages of the public web; what leads elsewhere, and what is protected, is asked for. `plan` stays what it is.
pub(super) fn mode(configured: Mode, touch: &Touch) -> Mode {
    match (configured, touch) {
        (Mode::Plan, _) => Mode::Plan,
        (Mode::Ask | Mode::AcceptEdits | Mode::Auto, Touch::Nothing | Touch::Reads(_) | Touch::Writes(_)) => {
            Mode::AcceptEdits
        }
        (
            Mode::Ask | Mode::AcceptEdits | Mode::Auto,
            Touch::Runs(_) | Touch::Calls { .. } | Touch::Fetches { .. } | Touch::Searches,
        ) => Mode::Auto,
    }
}
