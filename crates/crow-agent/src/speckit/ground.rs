//! Where a session stands in the workflow: its project, its feature, what is configured.

use std::path::PathBuf;

use crow_core::Failure;
use crow_speckit::{
    Feature, FeatureOrigin, FeatureSelector, PageTemplate, SpeckitError, SpeckitProject, WorkflowCommand,
    resolve_feature,
};
use crow_store::SpeckitRow;

use crate::clock;
use crate::kit::WorkflowConfig;
use crate::run_turn::{TurnCx, store_failure};
use crate::speckit::record::run_blocking;
use crate::supplies;

/// Where a session stands.
#[derive(Debug, Clone)]
pub(super) struct ProjectContext {
    pub(super) project: SpeckitProject,
    /// What the session works on.
    pub(super) bound: Option<PathBuf>,
    pub(super) last: Option<WorkflowCommand>,
    pub(super) settings: WorkflowConfig,
    /// The person's own prompts.
    pub(super) prompts_dir: PathBuf,
    /// Where relative paths of the model begin.
    pub(super) cwd: PathBuf,
}

impl ProjectContext {
    /// Finds the project around the session's folder; where there is none yet, that folder is one.
    pub(super) async fn find_project(cx: &TurnCx<'_>) -> Result<Result<Self, String>, Failure> {
        let row = cx.kit.store.speckit_state(cx.session).await.map_err(store_failure)?;
        let settings = cx.kit.config();
        let (workflow, cwd) = (settings.workflow.clone(), crow_tools::resolve_links(cx.workspace.cwd()));
        let prompts_dir = settings.prompts_dir.clone();
        let roots = cx.workspace.roots().to_vec();
        Ok(run_blocking(move || {
            let found = SpeckitProject::find_project(&cwd, workflow.variables.init_dir.as_deref())?;
            // Above the session's folders, its repository and the home folder nothing is anybody's to write.
            let repository = supplies::repository_root(&cwd);
            let home = workflow.variables.home.as_deref().map(crow_tools::resolve_links);
            let is_ours = |project: &SpeckitProject| {
                let root = project.root();
                workflow.variables.init_dir.is_some()
                    || root.starts_with(repository)
                    || home.as_ref().is_some_and(|home| root.starts_with(home))
                    || roots.iter().any(|own| root.starts_with(own))
            };
            let project = found.filter(is_ours).unwrap_or_else(|| SpeckitProject::from_root(&cwd));
            // A session that went elsewhere works on something else.
            let row = row.filter(|row| project.root().to_str() == Some(&row.project_root));
            Ok(Self {
                // Who took it back, or went to another branch, works on something else.
                bound: row
                    .as_ref()
                    .and_then(|row| row.feature_dir.clone())
                    .map(PathBuf::from)
                    .filter(|dir| dir.is_dir()),
                last: row.and_then(|row| WorkflowCommand::parse(row.last_command.as_deref()?)),
                project,
                settings: workflow,
                prompts_dir,
                cwd,
            })
        })
        .await)
    }

    /// What the person should know before a step.
    pub(super) fn project_notes(&self) -> Vec<String> {
        let root = self.project.root();
        let is_above = self.cwd != root && self.cwd.starts_with(root);
        let note = || {
            format!(
                "The project is in {}, above this session's folder: its files may be asked about.",
                root.display()
            )
        };
        is_above.then(note).into_iter().collect()
    }

    /// Finds the feature that is meant, and who said so.
    pub(super) fn find_feature(&self, named: Option<&str>) -> Result<(Feature, FeatureOrigin), SpeckitError> {
        let asked = FeatureSelector {
            named,
            bound: self.bound.as_deref(),
            variables: &self.settings.variables,
            specs_root: &self.settings.specs_root,
        };
        resolve_feature(&self.project, asked)
    }

    /// Finds a page template.
    pub(super) fn find_page(&self, name: &str) -> Result<PageTemplate, SpeckitError> {
        crow_speckit::compose_page(&self.project, Some(&self.prompts_dir.join("speckit")), name)
    }

    /// Remembers what the session works on.
    pub(super) async fn bind_feature(
        &self,
        cx: &TurnCx<'_>,
        feature: Option<&Feature>,
        last: Option<WorkflowCommand>,
    ) -> Result<(), Failure> {
        let feature_dir = feature.map(|feature| feature.dir.clone()).or_else(|| self.bound.clone());
        let row = SpeckitRow {
            project_root: self.project.root().display().to_string(),
            feature_dir: feature_dir.map(|dir| dir.display().to_string()),
            last_command: last.or(self.last).map(|last| last.as_str().to_owned()),
            updated: clock::now(),
        };
        let variables = feature_variables(&row);
        cx.kit.store.set_speckit_state(cx.writer, row).await.map_err(store_failure)?;
        cx.workspace.set_variables(variables);
        Ok(())
    }

    /// Spells a path so that the model's tools find it.
    pub(super) fn display_path(&self, path: &std::path::Path) -> String {
        path.strip_prefix(&self.cwd).unwrap_or(path).display().to_string()
    }
}

/// What programs are told of the feature that a session works on: the project's own scripts then follow the session, and
/// leave its pointer alone.
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
