//! The ports to the rest of Crow: the session that children belong to, and the start of their programs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crow_acp::{AgentCommand, AgentLauncher, AgentProgram, LineTransport};
use crow_core::{
    AgentServer, Grant, GrantOffer, GrantScope, Mode, PermissionDecision, ThoughtLevel, ToolCallInfo,
    TreeLimits,
};
use crow_store::Timestamp;
use crow_tools::{GitCli, Workspace};
use futures_util::future::BoxFuture;

/// The session that children belong to. All methods return at once, and so do their futures unless a disk is slow.
pub trait ParentSession: Send + Sync {
    /// Returns the current configuration of agents.
    fn agents_config(&self) -> ChildAgentsConfig;

    /// Returns the current workspace; its working directory is that of the session.
    fn workspace(&self) -> Arc<Workspace>;

    /// Returns the settings that a new child starts with.
    fn settings(&self) -> InheritedSettings;

    /// Waits until the mode of the session is another one, and returns it.
    fn wait_for_mode_change(&self, known: Mode) -> BoxFuture<'static, Mode>;

    /// Returns the name of a configured model, or the reason why there is none.
    fn find_model(&self, name: &str) -> Result<String, String>;

    /// Returns Git for worktrees.
    fn git(&self) -> GitCli;

    /// Evaluates an access of an external agent that works in `cwd` by the policy and the grants of the session.
    fn evaluate_access(&self, cwd: &Path, info: &ToolCallInfo) -> PermissionDecision;

    /// Whether a question with this offer was allowed before.
    fn covers_offer(&self, offer: &GrantOffer) -> bool;

    /// Stores an approval; the error is a sentence for the user.
    fn remember_grant<'a>(
        &'a self,
        scope: GrantScope,
        offer: &'a GrantOffer,
    ) -> BoxFuture<'a, Result<(), String>>;

    /// Stores grants for the project around a directory.
    fn remember_for_project<'a>(
        &'a self,
        directory: &'a Path,
        grants: &'a [Grant],
    ) -> BoxFuture<'a, Result<(), String>>;

    /// Returns whether a directory exists.
    fn has_directory(&self, path: &Path) -> BoxFuture<'static, bool>;

    /// Called when the mailbox has a message for which the model should be called; must not block.
    fn on_mail(&self);

    /// Returns the current time.
    fn now(&self) -> Timestamp;
}

/// The configuration of child agents.
#[derive(Debug, Clone)]
pub struct ChildAgentsConfig {
    /// The configured external agents.
    pub agent_servers: Vec<AgentServer>,
    /// The command that starts Crow as an agent.
    pub own_agent: Option<AgentServer>,
    /// The limits of a tree of agents.
    pub tree_limits: TreeLimits,
    /// Environment variables with keys; external agents do not get them.
    pub secret_variables: Vec<String>,
    /// Directory of the worktrees of tasks.
    pub worktrees_dir: PathBuf,
    /// Directory of worktrees in older versions; existing ones are still used.
    pub legacy_worktrees_dir: PathBuf,
}

/// The settings of a session that its children start with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InheritedSettings {
    pub mode: Mode,
    pub model: Option<String>,
    pub thought_level: ThoughtLevel,
}

/// Starts the programs of children.
pub trait ChildLauncher: Send + Sync {
    /// Starts an agent and returns its connection and its process, if it has one; the error is the reason.
    fn start_program<'a>(
        &'a self,
        agent_name: &'a str,
        command: AgentCommand,
    ) -> BoxFuture<'a, Result<(LineTransport, Option<AgentProgram>), String>>;
}

impl ChildLauncher for AgentLauncher {
    fn start_program<'a>(
        &'a self,
        agent_name: &'a str,
        command: AgentCommand,
    ) -> BoxFuture<'a, Result<(LineTransport, Option<AgentProgram>), String>> {
        Box::pin(async move {
            let (lines, program) =
                self.start(agent_name, command).await.map_err(|error| error.to_string())?;
            Ok((lines, Some(program)))
        })
    }
}
