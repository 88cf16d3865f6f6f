//! The time of a key.

use std::time::{Duration, Instant};

/// The time of a key: when it was read, and now.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyTime {
    pub(super) read_at: Instant,
    pub(super) now: Instant,
    /// The pause before it with which it is a reaction to a question.
    pub(super) quiet: Duration,
    /// The key is held: nothing was pressed.
    pub(super) is_repeat: bool,
}
