//! The permission policy of a session, a child and the MCP server, made in one place: which folders may be read and
//! written is worked out here and nowhere else.

use std::path::{Path, PathBuf};

use crow_core::{
    ApprovalSource, Confinement, EffectivePolicy, GrantSet, Mode, PermissionDecision, PermissionRules,
    SandboxMode, SandboxPolicy, SandboxSupport, SessionRoots, ToolCallInfo, approval_source_in_sandbox,
    evaluate_call_in_sandbox,
};

use crate::{Workspace, resolve_links};

/// What a permission policy is made from.
#[derive(Debug, Clone)]
pub struct PolicySources<'a> {
    /// The folders to work in, and their repositories.
    pub workspace: &'a Workspace,
    /// One more folder to work in, such as that of a child.
    pub cwd: Option<&'a Path>,
    /// Folders that may be read as well.
    pub readable: Vec<PathBuf>,
    /// The configuration with its keys.
    pub config_dir: &'a Path,
    /// What is allowed and denied for good.
    pub rules: PermissionRules,
    /// Which commands run in the sandbox.
    pub sandbox: SandboxMode,
    /// How well the sandbox holds them here.
    pub support: SandboxSupport,
}

/// Decides which calls run, ask or are refused.
#[derive(Debug)]
pub struct PermissionPolicy {
    roots: SessionRoots,
    rules: PermissionRules,
    sandbox: SandboxMode,
    support: SandboxSupport,
}

impl PermissionPolicy {
    /// Works out which folders may be read and written.
    pub fn new(sources: PolicySources<'_>) -> Self {
        let PolicySources { workspace, cwd, readable, config_dir, rules, sandbox, support } = sources;
        let display = |path: &Path| path.display().to_string();
        let mut work_dirs: Vec<String> = workspace.roots().iter().map(|root| display(root)).collect();
        work_dirs.extend(cwd.map(|cwd| display(&resolve_links(cwd))));
        let roots = SessionRoots {
            work: work_dirs,
            readable: readable.iter().map(|dir| display(dir)).collect(),
            protected: vec![display(config_dir), display(&resolve_links(config_dir))],
            repository: workspace.external_git_dirs().iter().map(|dir| display(dir)).collect(),
        };
        Self { roots, rules, sandbox, support }
    }

    /// Judges a call of a tool in a mode, with what a person granted.
    pub fn evaluate(
        &self,
        mode: Mode,
        grants: &GrantSet,
        tool: &str,
        info: &ToolCallInfo,
    ) -> PermissionDecision {
        evaluate_call_in_sandbox(&self.for_mode(mode), grants, tool, info, &self.sandbox_rules())
    }

    /// Tells who approved a call that [`Self::evaluate`] lets run.
    pub fn approval(&self, mode: Mode, grants: &GrantSet, tool: &str, info: &ToolCallInfo) -> ApprovalSource {
        approval_source_in_sandbox(&self.for_mode(mode), grants, tool, info, &self.sandbox_rules())
    }

    /// Tells how a command runs that was approved so.
    pub fn confinement(&self, mode: Mode, approval: ApprovalSource) -> Confinement {
        self.sandbox_rules().confinement_for(mode, approval)
    }

    /// The folders to work in, resolved through links.
    pub fn work_roots(&self) -> &[String] {
        &self.roots.work
    }

    /// The configured choice, and what the system makes of it.
    pub fn sandbox_rules(&self) -> SandboxPolicy<'_> {
        SandboxPolicy { choice: self.sandbox, support: &self.support }
    }

    fn for_mode(&self, mode: Mode) -> EffectivePolicy<'_> {
        EffectivePolicy { mode, rules: &self.rules, roots: &self.roots, resolve: &resolve_links }
    }
}
