//! The entries of a conversation, as values.

use crate::{CallId, Prompt, Reply, TokenUsage, ToolCallInfo, ToolResult};

/// A step of a conversation, as stored and replayed.
#[derive(Debug, Clone, PartialEq)]
pub enum TranscriptEntry {
    /// A message of the user.
    Prompt(Prompt),
    /// An answer of the model.
    Reply(Reply),
    /// The result of a call.
    Result {
        /// The call.
        call: CallId,
        /// The information shown live.
        info: ToolCallInfo,
        /// The result.
        result: ToolResult,
    },
}

impl TranscriptEntry {
    /// Returns the usage of a reply, by its provider's count.
    pub fn usage(&self) -> Option<TokenUsage> {
        match self {
            Self::Reply(reply) => reply.usage,
            Self::Prompt(_) | Self::Result { .. } => None,
        }
    }
}
