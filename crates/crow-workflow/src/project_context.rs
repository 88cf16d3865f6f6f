//! The state of a session in the workflow: its project, its feature and the configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crow_core::Failure;
use crow_speckit::{
    Feature, FeatureOrigin, FeatureSelector, FileApprovals, PageTemplate, SpeckitError, SpeckitProject,
    WorkflowCommand, resolve_feature,
};

use crate::blocking::run_blocking;
use crate::config::WorkflowConfig;
use crate::exit::WorkflowExit;
use crate::port::WorkflowPort;
use crate::session_facts::{FeatureBinding, SessionFacts};

/// The project context of a session.
#[derive(Debug, Clone)]
pub(crate) struct ProjectContext {
    pub(crate) project: SpeckitProject,
    /// The feature that the session works on.
    pub(crate) feature_dir: Option<PathBuf>,
    pub(crate) last_command: Option<WorkflowCommand>,
    pub(crate) config: WorkflowConfig,
    /// The user's own prompts.
    pub(crate) prompts_dir: PathBuf,
    /// The user's configuration file.
    pub(crate) config_file: PathBuf,
    /// Directory to which the model's relative paths refer.
    pub(crate) cwd: PathBuf,
    /// The files that the user approved.
    pub(crate) approvals: Arc<dyn FileApprovals>,
    /// The time at which the request began.
    pub(crate) now: jiff::Zoned,
}

impl ProjectContext {
    /// Finds the project around the session's directory; without one, that directory becomes the project.
    pub(crate) async fn find_project(port: &mut impl WorkflowPort) -> Result<Self, WorkflowExit> {
        let facts = port.read_facts().await?;
        run_blocking(move || Self::from_facts(facts)).await.map_err(WorkflowExit::Refused)
    }

    fn from_facts(facts: SessionFacts) -> Result<Self, SpeckitError> {
        let SessionFacts { binding, config, cwd, .. } = facts;
        let found_project = SpeckitProject::find_project(&cwd, config.variables.init_dir.as_deref())?;
        // Outside of the session's directories, its repository and the home directory, a project is not used.
        let home_dir = config.variables.home.as_deref().map(crow_files::resolve_links);
        let is_allowed = |project: &SpeckitProject| {
            let root = project.root();
            config.variables.init_dir.is_some()
                || root.starts_with(&facts.repository)
                || home_dir.as_ref().is_some_and(|home_dir| root.starts_with(home_dir))
                || facts.roots.iter().any(|session_root| root.starts_with(session_root))
        };
        let project = found_project.filter(is_allowed).unwrap_or_else(|| SpeckitProject::from_root(&cwd));
        // The binding applies to the project that it was made for.
        let binding = binding.filter(|binding| project.root().to_str() == Some(&binding.project_root));
        Ok(Self {
            // The feature may have been removed, or belong to another branch.
            feature_dir: binding
                .as_ref()
                .and_then(|binding| binding.feature_dir.clone())
                .map(PathBuf::from)
                .filter(|dir| dir.is_dir()),
            last_command: binding.and_then(|binding| binding.last_command),
            project,
            config,
            prompts_dir: facts.prompts_dir,
            config_file: facts.config_file,
            cwd,
            approvals: facts.approvals,
            now: facts.now,
        })
    }

    /// Returns notes for the user before a step.
    pub(crate) fn project_notes(&self) -> Vec<String> {
        let root = self.project.root();
        let is_above_cwd = self.cwd != root && self.cwd.starts_with(root);
        let note = || {
            format!(
                "The project is in {}, above this session's directory: its files may need permission.",
                root.display()
            )
        };
        is_above_cwd.then(note).into_iter().collect()
    }

    /// Finds the selected feature, and the origin of the selection.
    pub(crate) fn find_feature(
        &self,
        selector: Option<&str>,
    ) -> Result<(Feature, FeatureOrigin), SpeckitError> {
        let feature_selector = FeatureSelector {
            typed: selector,
            session_dir: self.feature_dir.as_deref(),
            variables: &self.config.variables,
            specs_root: &self.config.specs_root,
        };
        resolve_feature(&self.project, feature_selector)
    }

    /// Finds a page template.
    pub(crate) fn find_page(&self, name: &str) -> Result<PageTemplate, SpeckitError> {
        crow_speckit::compose_page(&self.project, Some(&self.prompts_dir.join("speckit")), name)
    }

    /// Binds the session to a feature, with the last command.
    pub(crate) async fn bind_feature(
        &self,
        port: &mut impl WorkflowPort,
        feature: Option<&Feature>,
        last_command: Option<WorkflowCommand>,
    ) -> Result<(), Failure> {
        let feature_dir = feature.map(|feature| feature.dir.clone()).or_else(|| self.feature_dir.clone());
        let binding = FeatureBinding {
            project_root: self.project.root().display().to_string(),
            feature_dir: feature_dir.map(|dir| dir.display().to_string()),
            last_command: last_command.or(self.last_command),
        };
        port.bind_feature(binding).await
    }

    /// Returns the date at which the request began.
    pub(crate) fn today(&self) -> String {
        self.now.date().to_string()
    }

    /// Reads a file if it has the approved content; `None` if it does not exist.
    pub(crate) fn read_approved_file(&self, path: &Path) -> Result<Option<String>, SpeckitError> {
        let Some(text) = self.project.read_project_file(path)? else { return Ok(None) };
        self.check_approved(path, text.as_bytes())?;
        Ok(Some(text))
    }

    /// Checks that the user approved the content of a file.
    pub(crate) fn check_approved(&self, path: &Path, bytes: &[u8]) -> Result<(), SpeckitError> {
        if self.approvals.is_approved(path, bytes) {
            return Ok(());
        }
        Err(SpeckitError::Invalid(format!("{} is not approved", self.project.display_path(path))))
    }

    /// Formats a path so that the model's tools find it.
    pub(crate) fn display_path(&self, path: &Path) -> String {
        path.strip_prefix(&self.cwd).unwrap_or(path).display().to_string()
    }
}
