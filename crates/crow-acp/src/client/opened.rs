//! A session as an agent opened it, and what can be chosen in it.

use crow_core::SessionId;

/// A session as an agent opened it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedSession {
    /// The agent's name for it.
    pub session: SessionId,
    /// What can be chosen in it.
    pub options: Vec<ConfigOption>,
}

/// Something that can be chosen in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigOption {
    /// The agent's name for it.
    pub id: String,
    /// Whether it is about the `mode` or the `model`, as the protocol says these.
    pub category: Option<&'static str>,
    /// What it can be set to.
    pub values: Vec<String>,
}

impl OpenedSession {
    /// Finds an option by its name, or by what it is about.
    pub fn find_option(&self, what: &str) -> Option<&ConfigOption> {
        let by_category = || self.options.iter().find(|option| option.category == Some(what));
        self.options.iter().find(|option| option.id == what).or_else(by_category)
    }
}
