//! A task that is given to a queue, and its message.

use std::sync::Arc;

use crow_core::Mode;

use super::code::SentCode;
use crate::place::PlaceKeeper;
use crate::record::{TaskMessage, TaskParts};
use crate::ticket::TaskTicket;

/// A task to be opened.
#[derive(Clone)]
pub struct FarmTask {
    /// The mode of the parent; a worker does not allow more.
    pub mode: Mode,
    /// The depth of the task's agent in its tree.
    pub depth: u32,
    /// The version of this program.
    pub version: &'static str,
    /// Keeps its place; without it no later process can take it up again.
    pub keeper: Option<Arc<dyn PlaceKeeper>>,
    /// The code to work on; its changes come back with the end.
    pub code: Option<SentCode>,
}

impl FarmTask {
    /// Creates its message under this name.
    pub(super) fn make_message(
        &self,
        task: String,
        ticket: TaskTicket,
        prompt: String,
        model: Option<String>,
    ) -> TaskMessage {
        let code = self.code.as_ref().map(SentCode::record);
        TaskMessage::new(TaskParts { task, ticket, prompt, model, mode: self.mode, depth: self.depth, code })
    }
}
