//! The facts about a session that a workflow request starts with, and the feature that a session is bound to.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crow_speckit::{FileApprovals, WorkflowCommand};

use crate::config::WorkflowConfig;

/// The facts about a session at the beginning of a request.
#[derive(Debug, Clone)]
pub struct SessionFacts {
    /// The feature that the session is bound to.
    pub binding: Option<FeatureBinding>,
    /// The configuration of the workflow.
    pub config: WorkflowConfig,
    /// Directory of the user's own prompts.
    pub prompts_dir: PathBuf,
    /// The user's configuration file, for a message.
    pub config_file: PathBuf,
    /// The session's directory, without links.
    pub cwd: PathBuf,
    /// The session's directories, without links.
    pub roots: Vec<PathBuf>,
    /// Root of the repository around the session's directory.
    pub repository: PathBuf,
    /// The files of the repository that the user approved.
    pub approvals: Arc<dyn FileApprovals>,
    /// The current time in the user's time zone.
    pub now: jiff::Zoned,
}

/// The feature that a session works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureBinding {
    /// Absolute path of the project.
    pub project_root: String,
    /// Absolute path of the feature.
    pub feature_dir: Option<String>,
    /// The last step.
    pub last_command: Option<WorkflowCommand>,
}

impl FeatureBinding {
    /// Returns the environment variables about the feature: the project's own scripts then use it, and do not change
    /// the project's pointer.
    pub fn variables(&self) -> Vec<(String, String)> {
        let Some(dir) = &self.feature_dir else { return Vec::new() };
        let name = Path::new(dir).file_name().map(|name| name.display().to_string());
        [
            ("SPECIFY_INIT_DIR", self.project_root.clone()),
            ("SPECIFY_FEATURE_DIRECTORY", dir.clone()),
            ("SPECIFY_FEATURE", name.unwrap_or_default()),
            ("SPECIFY_FEATURE_NO_PERSIST", "1".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }
}
