//! The configuration options of a session, as a client reads them.

/// A configuration option of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigOption {
    /// The agent's ID.
    pub id: String,
    /// Whether it concerns the `mode`, the `model` or the `thought_level`, by its category in the protocol.
    pub category: Option<&'static str>,
    pub name: String,
    /// The current value.
    pub current: String,
    pub choices: Vec<ConfigChoice>,
}

/// A value of a configuration option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigChoice {
    pub value: String,
    pub name: String,
    pub description: Option<String>,
}

impl ConfigOption {
    /// Whether it is the option with this ID or category.
    pub fn is_about(&self, id_or_category: &str) -> bool {
        self.id == id_or_category || self.category == Some(id_or_category)
    }
}
