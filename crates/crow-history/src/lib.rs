//! The stored history of sessions, for the model and the user: the tools that search past messages, the list of
//! sessions, and the file changes that can be undone.
//!
//! Must not know a running session, a turn or a client. The time is an argument.

mod memory;
mod session_list;
mod time_text;
mod undo;
mod undo_recorder;

pub use memory::{memory_specs, memory_tools};
pub use session_list::render_sessions;
pub use undo::{TurnUndone, clear_pending_undo, pending_undo_part, render_undo, undo_turn};
pub use undo_recorder::CallUndoRecorder;
