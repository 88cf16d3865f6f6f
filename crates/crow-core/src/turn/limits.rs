//! The limits of a turn.

/// The limits of one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnLimits {
    /// Model requests in one turn.
    pub requests_max: u32,
    /// Tokens in context above which the conversation is compacted.
    pub compact_tokens_max: u64,
}
