//! What an MCP client may have done without another question. Pure.

use crow_core::{Mode, ToolAccess};

/// The mode a call is judged in.
///
/// The client's person was asked for the call, so commands go, held by the sandbox, and so do edits inside the folders
/// and pages of the public web; what leads elsewhere, and what is protected, is asked for. `plan` stays what it is.
pub(super) fn effective_mode(configured: Mode, access: &ToolAccess) -> Mode {
    match (configured, access) {
        (Mode::Plan, _) => Mode::Plan,
        (
            Mode::Ask | Mode::AcceptEdits | Mode::Auto,
            ToolAccess::Nothing | ToolAccess::Reads(_) | ToolAccess::Writes(_),
        ) => Mode::AcceptEdits,
        (
            Mode::Ask | Mode::AcceptEdits | Mode::Auto,
            ToolAccess::Runs(_)
            | ToolAccess::Calls { .. }
            | ToolAccess::Fetches { .. }
            | ToolAccess::Searches,
        ) => Mode::Auto,
    }
}
