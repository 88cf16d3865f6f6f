//! A session as an agent opened it, with its configuration options.

use crow_core::SessionId;

use crate::config_option::ConfigOption;

/// A session as an agent opened it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedSession {
    /// The agent's ID.
    pub session: SessionId,
    pub options: Vec<ConfigOption>,
}

impl OpenedSession {
    /// Finds an option by its ID or its category.
    pub fn find_option(&self, id_or_category: &str) -> Option<&ConfigOption> {
        let by_category = || self.options.iter().find(|option| option.category == Some(id_or_category));
        self.options.iter().find(|option| option.id == id_or_category).or_else(by_category)
    }
}
