//! How a connection ends, said in a close frame.

use tokio_tungstenite::tungstenite::protocol::{CloseFrame, frame::coding::CloseCode};

/// What a close frame has room for beside its code.
const REASON_BYTES_MAX: usize = 123;

/// What whoever serves says to a client at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CloseReason {
    /// All was said.
    Over,
    /// The server ends.
    GoingAway,
    /// The agent ended otherwise than by its client's wish.
    AgentEnded {
        /// How; kept whole.
        how: String,
        /// What it complained of; the end of it is told, as much as there is room for.
        words: String,
    },
}

impl CloseReason {
    pub(super) fn to_close_frame(&self) -> CloseFrame {
        match self {
            Self::Over => close_frame(CloseCode::Normal, "", ""),
            Self::GoingAway => close_frame(CloseCode::Away, "the server ends", ""),
            Self::AgentEnded { how, words } => close_frame(CloseCode::Error, how, words),
        }
    }
}

/// Makes a frame of a sentence and the end of some words.
pub(super) fn close_frame(code: CloseCode, sentence: &str, words: &str) -> CloseFrame {
    let mut reason = sentence[..sentence.floor_char_boundary(REASON_BYTES_MAX)].to_owned();
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let room = REASON_BYTES_MAX.saturating_sub(reason.len() + ": ".len());
    let words = &words[words.ceil_char_boundary(words.len().saturating_sub(room))..];
    if !words.is_empty() {
        reason.push_str(": ");
        reason.push_str(words);
    }
    CloseFrame { code, reason: reason.into() }
}
