//! The settings of a session that its client can change.

use crow_core::{Mode, ThoughtLevel};

/// The settings of a session; changes take effect at once, also during a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionSettings {
    pub(crate) mode: Mode,
    pub(crate) model: Option<String>,
    pub(crate) thought_level: ThoughtLevel,
}
