//! A session as an agent opened it, with its configuration options.

use crow_core::SessionId;

/// A session as an agent opened it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedSession {
    /// The agent's ID.
    pub session: SessionId,
    pub options: Vec<ConfigOption>,
}

/// A configuration option of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigOption {
    /// The agent's ID.
    pub id: String,
    /// Whether it concerns the `mode` or the `model`, by its category in the protocol.
    pub category: Option<&'static str>,
    pub values: Vec<String>,
}

impl OpenedSession {
    /// Finds an option by its ID or its category.
    pub fn find_option(&self, id_or_category: &str) -> Option<&ConfigOption> {
        let by_category = || self.options.iter().find(|option| option.category == Some(id_or_category));
        self.options.iter().find(|option| option.id == id_or_category).or_else(by_category)
    }
}
