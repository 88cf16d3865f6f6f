//! A session as its children use it: its current workspace, settings, grants and policy.

use std::path::Path;
use std::sync::Arc;

use crow_children::{ChildAgentsConfig, InheritedSettings, ParentSession};
use crow_core::{
    Grant, GrantOffer, GrantScope, GrantSet, Mode, PermissionDecision, SandboxMode, SandboxSupport,
    SessionId, ToolAccess, ToolCallInfo,
};
use crow_project::{GrantStore, ProjectConfigLoader, project_root};
use crow_store::Timestamp;
use crow_tools::{GitCli, PermissionPolicy, PolicySources, Workspace};
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, watch};

use crate::clock;
use crate::handle::SessionMsg;
use crate::runtime::AgentRuntime;
use crate::session_settings::SessionSettings;

/// The environment of a session, which can change.
#[derive(Clone)]
pub(crate) struct SessionEnvironment {
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) config_loader: Arc<ProjectConfigLoader<AgentRuntime>>,
}

/// The port of one session.
pub(crate) struct ParentSessionPort {
    pub(crate) session: SessionId,
    pub(crate) runtime: Arc<AgentRuntime>,
    pub(crate) settings: watch::Receiver<SessionSettings>,
    pub(crate) environment: watch::Receiver<SessionEnvironment>,
    pub(crate) grants: Arc<GrantStore<AgentRuntime>>,
    pub(crate) inbox_sender: mpsc::WeakSender<SessionMsg>,
}

impl ParentSession for ParentSessionPort {
    fn agents_config(&self) -> ChildAgentsConfig {
        let config = self.runtime.config();
        ChildAgentsConfig {
            agent_servers: config.agent_servers.clone(),
            own_agent: config.own_agent.clone(),
            tree_limits: config.tree_limits,
            secret_variables: config.secret_variables.clone(),
            worktrees_dir: config.worktrees_dir.clone(),
            legacy_worktrees_dir: config.legacy_worktrees_dir.clone(),
        }
    }

    fn workspace(&self) -> Arc<Workspace> {
        self.environment.borrow().workspace.clone()
    }

    fn settings(&self) -> InheritedSettings {
        let SessionSettings { mode, model, thought_level } = self.settings.borrow().clone();
        InheritedSettings { mode, model, thought_level }
    }

    fn wait_for_mode_change(&self, known: Mode) -> BoxFuture<'static, Mode> {
        let mut settings = self.settings.clone();
        Box::pin(async move {
            let mode = settings.wait_for(|settings| settings.mode != known).await.map(|changed| changed.mode);
            match mode {
                Ok(mode) => mode,
                // The session has ended.
                Err(_) => std::future::pending().await,
            }
        })
    }

    fn find_model(&self, name: &str) -> Result<String, String> {
        let model = self.runtime.find_model(Some(name));
        model.map(|model| model.name).map_err(|failure| failure.message)
    }

    fn git(&self) -> GitCli {
        self.runtime.shared_tools.git_for(&self.workspace())
    }

    fn evaluate_access(&self, cwd: &Path, info: &ToolCallInfo) -> PermissionDecision {
        let SessionEnvironment { workspace, config_loader } = self.environment.borrow().clone();
        let config = self.runtime.config();
        let policy = PermissionPolicy::new(PolicySources {
            workspace: &workspace,
            cwd: Some(cwd),
            readable: vec![config.spill_dir.clone()],
            config_dir: &config.config_dir,
            rules: config_loader.current_config().rules.clone(),
            // The commands of a child run in the client's terminals, which have no sandbox.
            sandbox: SandboxMode::Off,
            support: SandboxSupport::Full,
        });
        let mode = self.settings.borrow().mode;
        let tool = match info.access {
            ToolAccess::Reads(_) => "read",
            ToolAccess::Runs(_) => "terminal",
            ToolAccess::Nothing
            | ToolAccess::Writes(_)
            | ToolAccess::Calls { .. }
            | ToolAccess::Fetches { .. }
            | ToolAccess::Searches => "write",
        };
        // In another directory the same command is a different one.
        let grants = if cwd == workspace.cwd() { self.grants.all_grants() } else { GrantSet::default() };
        policy.evaluate(mode, &grants, tool, info)
    }

    fn covers_offer(&self, offer: &GrantOffer) -> bool {
        self.grants.covers_offer(offer)
    }

    fn remember_grant<'a>(
        &'a self,
        scope: GrantScope,
        offer: &'a GrantOffer,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(self.grants.remember_grant(scope, offer))
    }

    fn remember_for_project<'a>(
        &'a self,
        directory: &'a Path,
        grants: &'a [Grant],
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(
            async move { self.grants.remember_for_project(&project_root(directory), grants).await.map(drop) },
        )
    }

    fn on_mail(&self) {
        if let Some(sender) = self.inbox_sender.upgrade()
            && sender.try_send(SessionMsg::Mail).is_err()
        {
            tracing::debug!(session = %self.session, "the mail is found at the end of the turn");
        }
    }

    fn has_directory(&self, path: &Path) -> BoxFuture<'static, bool> {
        let path = path.to_owned();
        let found = self.runtime.spawn_blocking(move || path.is_dir());
        Box::pin(async move { found.await.unwrap_or_default() })
    }

    fn now(&self) -> Timestamp {
        clock::now()
    }
}
