//! The usage of models over time.

use crow_core::{SessionId, TokenUsage};

use crate::Timestamp;

/// The length of the period of a [`PeriodUsage`], in milliseconds. All time zones differ by a multiple of it, so a
/// period is in one day everywhere.
pub const USAGE_PERIOD_MS: i64 = 15 * 60 * 1000;

/// The tokens and cost of a session with a model within a quarter of an hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeriodUsage {
    pub session: SessionId,
    /// The session's working directory.
    pub cwd: String,
    /// The configured name of the model: the session's current one, or the fallback that replied.
    pub model: String,
    /// The beginning of the period, a multiple of [`USAGE_PERIOD_MS`].
    pub start: Timestamp,
    /// Replies, and requests that are not messages.
    pub n_requests: u64,
    pub usage: TokenUsage,
}
