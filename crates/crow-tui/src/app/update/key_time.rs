//! The time of a key.

use std::time::Instant;

/// The time of a key: when it was read, and now.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyTime {
    pub(super) read_at: Instant,
    pub(super) now: Instant,
}
