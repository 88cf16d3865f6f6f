//! The configuration files of repositories, as their reader parses them.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use crow_core::{HookConfig, McpServer, PermissionRules};

/// Reads the configuration files of repositories, which have the format of the user's own.
pub trait RepositoryConfigReader: fmt::Debug + Send + Sync {
    /// Parses a file's text; nothing else is read.
    fn read_config(&self, path: &Path, text: &str, variables: VariableExpansion<'_>) -> RepositoryConfig;
}

/// The expansion of `${NAME}` in a repository's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableExpansion<'a> {
    /// Not at all: the file is not trusted yet.
    AsWritten,
    /// Only these variables, which the user was shown, and never a key.
    Only(&'a BTreeSet<String>),
}

/// The content of a repository's configuration file.
#[derive(Debug, Clone, Default)]
pub struct RepositoryConfig {
    /// Its MCP servers.
    pub servers: Vec<McpServer>,
    /// Its permission rules.
    pub rules: PermissionRules,
    /// Its hooks.
    pub hooks: Vec<HookConfig>,
    /// The variables whose values it gets.
    pub variables: BTreeSet<String>,
    /// The variables in it that hold keys: a repository never gets these.
    pub secret_variables: BTreeSet<String>,
    /// Keys that a repository cannot set.
    pub rejected_keys: Vec<String>,
    /// Problems of the file, one sentence each.
    pub problems: Vec<String>,
}

impl RepositoryConfig {
    /// Whether it has nothing that needs approval.
    pub(crate) fn is_empty(&self) -> bool {
        self.servers.is_empty()
            && self.rules.allow.is_empty()
            && self.rules.deny.is_empty()
            && self.hooks.is_empty()
    }
}
