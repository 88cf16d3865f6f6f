//! The mode in which calls of MCP clients are evaluated. Pure.

use crow_core::{Mode, ToolAccess};

/// Returns the mode in which a call is evaluated.
///
/// The client's user approved the call, so confined commands, edits within the roots and pages of the public web are
/// allowed; other directories and protected paths need permission. `plan` is unchanged.
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
