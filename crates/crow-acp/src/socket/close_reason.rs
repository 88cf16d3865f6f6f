//! The end of a connection, as a close frame.

use tokio_tungstenite::tungstenite::protocol::{CloseFrame, frame::coding::CloseCode};

/// The space in a close frame besides its code.
const REASON_BYTES_MAX: usize = 123;

/// The server's reason for closing a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CloseReason {
    /// Finished.
    Normal,
    /// The server is shutting down.
    GoingAway,
    /// The agent exited without being asked by its client.
    AgentEnded {
        /// The exit reason; never truncated.
        summary: String,
        /// The end of its stderr, as much as fits.
        stderr: String,
    },
}

impl CloseReason {
    pub(super) fn to_close_frame(&self) -> CloseFrame {
        match self {
            Self::Normal => close_frame(CloseCode::Normal, "", ""),
            Self::GoingAway => close_frame(CloseCode::Away, "the server is shutting down", ""),
            Self::AgentEnded { summary, stderr } => close_frame(CloseCode::Error, summary, stderr),
        }
    }
}

/// Makes a close frame of a sentence and the end of some text.
pub(super) fn close_frame(code: CloseCode, summary: &str, details: &str) -> CloseFrame {
    let mut reason = summary[..summary.floor_char_boundary(REASON_BYTES_MAX)].to_owned();
    let details = details.split_whitespace().collect::<Vec<_>>().join(" ");
    let n_bytes_left = REASON_BYTES_MAX.saturating_sub(reason.len() + ": ".len());
    let details = &details[details.ceil_char_boundary(details.len().saturating_sub(n_bytes_left))..];
    if !details.is_empty() {
        reason.push_str(": ");
        reason.push_str(details);
    }
    CloseFrame { code, reason: reason.into() }
}
