//! The configuration of the workflow, from files and the environment.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crow_speckit::{SpecsLink, SpecsRoot};

/// The configuration of the Spec Kit workflow, from files and the environment.
#[derive(Debug, Clone, Default)]
pub struct WorkflowConfig {
    /// Directory of new features.
    pub specs_root: SpecsRoot,
    /// Whether to create a link to that directory for other programs.
    pub specs_link: SpecsLink,
    /// Whether tasks marked `[P]` go to child agents.
    pub parallel: ParallelMode,
    /// Environment variables about the project and its feature.
    pub variables: crow_speckit::SpeckitVariables,
    /// Environment variables that hook conditions of a project may use.
    pub environment: PublicEnvironment,
}

/// Environment variables that are not secret.
#[derive(Clone, Default)]
pub struct PublicEnvironment(Arc<BTreeMap<String, String>>);

impl PublicEnvironment {
    /// Wraps variables.
    pub fn new(variables: BTreeMap<String, String>) -> Self {
        Self(Arc::new(variables))
    }

    pub(crate) fn get(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned()
    }
}

impl fmt::Debug for PublicEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values of environment variables do not belong in a log.
        write!(f, "{} variables", self.0.len())
    }
}

/// Whether parallel tasks go to child agents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ParallelMode {
    /// The user is asked.
    #[default]
    Ask,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl ParallelMode {
    /// Parses the setting.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "ask" => Some(Self::Ask),
            "always" => Some(Self::Always),
            "never" => Some(Self::Never),
            _ => None,
        }
    }
}
