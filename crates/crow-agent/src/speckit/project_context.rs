//! The state of a session in the workflow: its project, its feature and the configuration.

use std::path::PathBuf;

use crow_core::Failure;
use crow_speckit::{
    Feature, FeatureOrigin, FeatureSelector, PageTemplate, SpeckitError, SpeckitProject, WorkflowCommand,
    resolve_feature,
};
use crow_store::SpeckitRow;

use crate::clock;
use crate::failures::store_failure;
use crate::project_config;
use crate::runtime::WorkflowConfig;
use crate::speckit::project_files::run_blocking;
use crate::speckit::workflow_exit::WorkflowExit;
use crate::turn_context::TurnCx;

/// The project context of a session.
#[derive(Debug, Clone)]
pub(super) struct ProjectContext {
    pub(super) project: SpeckitProject,
    /// The feature that the session works on.
    pub(super) feature_dir: Option<PathBuf>,
    pub(super) last_command: Option<WorkflowCommand>,
    pub(super) config: WorkflowConfig,
    /// The user's own prompts.
    pub(super) prompts_dir: PathBuf,
    /// Directory to which the model's relative paths refer.
    pub(super) cwd: PathBuf,
}

impl ProjectContext {
    /// Finds the project around the session's directory; without one, that directory becomes the project.
    pub(super) async fn find_project(cx: &TurnCx<'_>) -> Result<Self, WorkflowExit> {
        let row = cx.runtime.store.speckit_state(cx.session).await.map_err(store_failure)?;
        let config = cx.runtime.config();
        let (workflow, cwd) = (config.workflow.clone(), crow_tools::resolve_links(cx.workspace.cwd()));
        let prompts_dir = config.prompts_dir.clone();
        let roots = cx.workspace.roots().to_vec();
        run_blocking(move || {
            let found_project = SpeckitProject::find_project(&cwd, workflow.variables.init_dir.as_deref())?;
            // Outside of the session's directories, its repository and the home directory, a project is not used.
            let repository = project_config::repository_root(&cwd);
            let home_dir = workflow.variables.home.as_deref().map(crow_tools::resolve_links);
            let is_allowed = |project: &SpeckitProject| {
                let root = project.root();
                workflow.variables.init_dir.is_some()
                    || root.starts_with(repository)
                    || home_dir.as_ref().is_some_and(|home_dir| root.starts_with(home_dir))
                    || roots.iter().any(|session_root| root.starts_with(session_root))
            };
            let project = found_project.filter(is_allowed).unwrap_or_else(|| SpeckitProject::from_root(&cwd));
            // The row applies to the project that it was written for.
            let row = row.filter(|row| project.root().to_str() == Some(&row.project_root));
            Ok(Self {
                // The feature may have been removed, or belong to another branch.
                feature_dir: row
                    .as_ref()
                    .and_then(|row| row.feature_dir.clone())
                    .map(PathBuf::from)
                    .filter(|dir| dir.is_dir()),
                last_command: row.and_then(|row| WorkflowCommand::parse(row.last_command.as_deref()?)),
                project,
                config: workflow,
                prompts_dir,
                cwd,
            })
        })
        .await
        .map_err(WorkflowExit::Refused)
    }

    /// Returns the context of a session in the root of a project.
    #[cfg(test)]
    pub(super) fn in_root(root: &std::path::Path) -> Self {
        Self {
            project: SpeckitProject::from_root(root),
            feature_dir: None,
            last_command: None,
            config: WorkflowConfig::default(),
            prompts_dir: root.join("prompts"),
            cwd: root.to_owned(),
        }
    }

    /// Returns notes for the user before a step.
    pub(super) fn project_notes(&self) -> Vec<String> {
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
    pub(super) fn find_feature(
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
    pub(super) fn find_page(&self, name: &str) -> Result<PageTemplate, SpeckitError> {
        crow_speckit::compose_page(&self.project, Some(&self.prompts_dir.join("speckit")), name)
    }

    /// Stores the feature and the last command of the session.
    pub(super) async fn bind_feature(
        &self,
        cx: &TurnCx<'_>,
        feature: Option<&Feature>,
        last_command: Option<WorkflowCommand>,
    ) -> Result<(), Failure> {
        let feature_dir = feature.map(|feature| feature.dir.clone()).or_else(|| self.feature_dir.clone());
        let row = SpeckitRow {
            project_root: self.project.root().display().to_string(),
            feature_dir: feature_dir.map(|dir| dir.display().to_string()),
            last_command: last_command
                .or(self.last_command)
                .map(|last_command| last_command.as_str().to_owned()),
            updated: clock::now(),
        };
        let variables = feature_variables(&row);
        cx.runtime.store.set_speckit_state(cx.lease, row).await.map_err(store_failure)?;
        cx.workspace.set_variables(variables);
        Ok(())
    }

    /// Formats a path so that the model's tools find it.
    pub(super) fn display_path(&self, path: &std::path::Path) -> String {
        path.strip_prefix(&self.cwd).unwrap_or(path).display().to_string()
    }
}

/// Returns the environment variables about a session's feature: the project's own scripts then use it, and do not
/// change the project's pointer.
pub(crate) fn feature_variables(row: &SpeckitRow) -> Vec<(String, String)> {
    let Some(dir) = &row.feature_dir else { return Vec::new() };
    let name = std::path::Path::new(dir).file_name().map(|name| name.display().to_string());
    [
        ("SPECIFY_INIT_DIR", row.project_root.clone()),
        ("SPECIFY_FEATURE_DIRECTORY", dir.clone()),
        ("SPECIFY_FEATURE", name.unwrap_or_default()),
        ("SPECIFY_FEATURE_NO_PERSIST", "1".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}
