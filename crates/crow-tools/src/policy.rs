//! The permission policy of a session, a child and the MCP server: the only place that determines which directories may
//! be read and written.

use std::path::{Path, PathBuf};

use crow_core::{
    ApprovalSource, Confinement, EffectivePolicy, GrantSet, Mode, PermissionDecision, PermissionRules,
    SandboxMode, SandboxPolicy, SandboxSupport, SessionRoots, ToolAccess, ToolCallInfo, ToolKind,
    approval_source_in_sandbox, evaluate_call_in_sandbox,
};
use crow_files::resolve_links;

use crate::Workspace;
use crate::file_lookup::LocalFileSystem;

/// The sources of a permission policy.
#[derive(Debug, Clone)]
pub struct PolicySources<'a> {
    /// The working directories and their repositories.
    pub workspace: &'a Workspace,
    /// A further working directory, such as that of a child.
    pub cwd: Option<&'a Path>,
    /// Directories that may only be read.
    pub readable: Vec<PathBuf>,
    /// The directory of the configuration with its keys.
    pub config_dir: &'a Path,
    /// The rules that allow and deny calls.
    pub rules: PermissionRules,
    /// Which commands run in the sandbox.
    pub sandbox: SandboxMode,
    /// The system's support for the sandbox.
    pub support: SandboxSupport,
}

/// Decides which calls run, need permission or are denied.
#[derive(Debug)]
pub struct PermissionPolicy {
    roots: SessionRoots,
    rules: PermissionRules,
    sandbox: SandboxMode,
    support: SandboxSupport,
}

impl PermissionPolicy {
    /// Determines which directories may be read and written.
    pub fn new(sources: PolicySources<'_>) -> Self {
        let PolicySources { workspace, cwd, readable, config_dir, rules, sandbox, support } = sources;
        let display = |path: &Path| path.display().to_string();
        let mut work_dirs: Vec<String> = workspace.roots().iter().map(|root| display(root)).collect();
        work_dirs.extend(cwd.map(|cwd| display(&resolve_links(cwd))));
        let git_dirs = [workspace.external_git_dirs(), workspace.bare_repository_parts()].concat();
        let roots = SessionRoots {
            work: work_dirs,
            readable: readable.iter().map(|dir| display(dir)).collect(),
            protected: vec![display(config_dir), display(&resolve_links(config_dir))],
            repository: git_dirs.iter().map(|dir| display(dir)).collect(),
        };
        Self { roots, rules, sandbox, support }
    }

    /// Evaluates a call of a tool in a mode, with the user's grants.
    pub fn evaluate(
        &self,
        mode: Mode,
        grants: &GrantSet,
        tool: &str,
        info: &ToolCallInfo,
    ) -> PermissionDecision {
        evaluate_call_in_sandbox(&self.for_mode(mode), grants, tool, info, &self.sandbox_rules())
    }

    /// Whether `read` of these files needs no question.
    pub fn allows_reads(&self, mode: Mode, paths: &[String]) -> bool {
        let info = ToolCallInfo {
            title: String::new(),
            kind: ToolKind::Read,
            locations: Vec::new(),
            access: ToolAccess::Reads(paths.to_owned()),
        };
        self.evaluate(mode, &GrantSet::default(), "read", &info) == PermissionDecision::Allow
    }

    /// Returns who approved a call that [`Self::evaluate`] allows.
    pub fn approval(&self, mode: Mode, grants: &GrantSet, tool: &str, info: &ToolCallInfo) -> ApprovalSource {
        approval_source_in_sandbox(&self.for_mode(mode), grants, tool, info, &self.sandbox_rules())
    }

    /// Returns the confinement of a command with such an approval.
    pub fn confinement(&self, mode: Mode, approval: ApprovalSource) -> Confinement {
        self.sandbox_rules().confinement_for(mode, approval)
    }

    /// The working directories, with links resolved.
    pub fn work_roots(&self) -> &[String] {
        &self.roots.work
    }

    /// The configured sandbox mode and the system's support for it.
    pub fn sandbox_rules(&self) -> SandboxPolicy<'_> {
        SandboxPolicy { sandbox_mode: self.sandbox, support: &self.support }
    }

    fn for_mode(&self, mode: Mode) -> EffectivePolicy<'_> {
        EffectivePolicy { mode, rules: &self.rules, roots: &self.roots, files: &LocalFileSystem }
    }
}
