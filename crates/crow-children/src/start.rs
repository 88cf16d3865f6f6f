//! Starts and resumes tasks: which agent, which directory, which model.

use std::path::{Path, PathBuf};

use crow_core::{AgentServer, SessionId};
use crow_store::{NewSession, StoreError, TaskLease};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::budget::BudgetSlot;
use crate::child_agents::{ChildAgents, unknown_task};
use crate::events::ChildKind;
use crate::launch::ChildSpec;
use crate::link::ChildSessionStart;
use crate::questions::ParentCall;
use crate::report::task_started_text;
use crate::shared::OWN_AGENT;
use crate::turn::{ChildTurnRequest, child_turn_span};
use crate::view;
use crate::worktree::{AgentWorktree, WorktreeRequest};

/// Characters of a title made from a prompt.
const TITLE_CHARS: usize = 40;

/// A request to start a task.
#[derive(Debug)]
pub struct NewTaskRequest {
    pub prompt: String,
    pub agent: Option<String>,
    pub cwd: Option<PathBuf>,
    pub model: Option<String>,
    pub title: Option<String>,
    pub worktree: bool,
    pub notify_parent: bool,
}

impl ChildAgents {
    /// Starts a task and returns its id, or the reason why it cannot be started.
    pub async fn start_task(
        &self,
        request: NewTaskRequest,
        parent_call: ParentCall,
        cancel: &CancellationToken,
    ) -> Result<SessionId, String> {
        let shared = &self.shared;
        let agent = self.find_agent(request.agent.as_deref())?;
        let slot = self.acquire_slot().await?;
        let session_cwd = shared.session_cwd();
        check_farm_request(&agent, &request)?;
        let is_remote = agent.cwd.is_some();
        let cwd = request.cwd.clone().or_else(|| agent.cwd.clone()).unwrap_or_else(|| session_cwd.clone());
        if !is_remote {
            self.check_directory(&cwd).await?;
        }
        let kind = self.child_kind(&agent);
        // Before the worktree, which an error would leave behind.
        let model = match kind {
            ChildKind::Crow => self.resolve_own_model(request.model.as_deref())?,
            ChildKind::External => request.model.clone(),
        };
        let title = new_task_title(&request);
        let task = shared.store.new_session_id();
        let worktree = match request.worktree {
            true => Some(self.start_worktree(&agent, &cwd, &task, cancel).await?),
            false => None,
        };
        let directory = cwd.clone();
        let cwd = worktree.as_ref().and_then(AgentWorktree::local_path).map_or(cwd, Path::to_path_buf);
        let session = self.new_child_session(&cwd, model.clone(), &agent);
        let worktree_of = worktree.is_some().then_some(directory);
        let lease = self.store_task(&task, session, worktree_of).await.map_err(|error| error.to_string())?;
        let start = match kind {
            ChildKind::Crow => ChildSessionStart::Stored,
            ChildKind::External => ChildSessionStart::New { model },
        };
        let shown_text = request.notify_parent.then(|| task_started_text(&task));
        let turn_request = self.child_turn_request(
            request.prompt,
            slot,
            request.notify_parent,
            ParentCall { shown_text, ..parent_call },
        );
        let program_cwd = if is_remote { session_cwd } else { cwd.clone() };
        let spec = ChildSpec {
            task: task.clone(),
            title,
            agent,
            cwd,
            program_cwd,
            worktree,
            n_tokens_before: 0,
            place: None,
        };
        self.launch_child(spec, lease, start, turn_request).await?;
        Ok(task)
    }

    /// Stores the session of a task and returns the right to drive it.
    async fn store_task(
        &self,
        task: &SessionId,
        session: NewSession,
        worktree_of: Option<PathBuf>,
    ) -> Result<TaskLease, StoreError> {
        let store = &self.shared.store;
        store.create_session(task, session).await?;
        if let Some(directory) = worktree_of {
            store.set_config(task, WORKTREE_OF, Some(json!(directory))).await?;
        }
        store.acquire_task_lease(task).await
    }

    fn new_child_session(&self, cwd: &Path, model: Option<String>, agent: &AgentServer) -> NewSession {
        let settings = self.shared.session.settings();
        NewSession {
            cwd: cwd.display().to_string(),
            model: model.unwrap_or_default(),
            mode: settings.mode,
            thought_level: settings.thought_level,
            // Crow renders its own when it opens the session.
            system_prompt: String::new(),
            parent: Some(self.shared.parent.clone()),
            agent_type: (self.child_kind(agent) == ChildKind::External).then(|| agent.name.clone()),
            now: self.shared.session.now(),
        }
    }

    /// Returns the model for a child that is Crow: the given one, or that of the session.
    fn resolve_own_model(&self, name: Option<&str>) -> Result<Option<String>, String> {
        match name {
            None => Ok(self.shared.session.settings().model),
            Some(name) => self.shared.session.find_model(name).map(Some),
        }
    }

    /// Resumes a task whose agent has ended.
    pub(crate) async fn resume_task(
        &self,
        task: &SessionId,
        text: String,
        notify_parent: bool,
        parent_call: ParentCall,
    ) -> Result<(), String> {
        let shared = &self.shared;
        let store = &shared.store;
        let row = self.task_row(task).await?;
        if let Some(handle) = self.child_handle(task) {
            // It accepts no more commands and ends in a moment.
            handle.stopped.cancelled().await;
        }
        let slot = self.acquire_slot().await?;
        let stored = store.load_session(task).await.map_err(|error| error.to_string())?;
        let Some(stored) = stored else { return Err(unknown_task(task)) };
        let agent = self.find_agent(row.agent_type.as_deref())?;
        if agent.is_farm() {
            return Err(format!("a task of {} has one turn; start a new task", agent.name));
        }
        let start = match (self.child_kind(&agent), stored.session.agent_session_id) {
            (ChildKind::Crow, _) => ChildSessionStart::Stored,
            (ChildKind::External, Some(name)) => ChildSessionStart::Resume { session: name },
            (ChildKind::External, None) => {
                return Err("its agent never opened a session; start a new task".to_owned());
            }
        };
        let lease = store.acquire_task_lease(task).await.map_err(|error| error.to_string())?;
        let cwd = PathBuf::from(stored.session.cwd);
        let tip = store.session_tip(task).await.map_err(|error| error.to_string())?;
        let worktree = match tip.as_ref().and_then(|tip| stored_worktree(&tip.config)) {
            Some(directory) => Some(self.reopen_worktree(&directory, task, &shared.cancel).await?),
            None => None,
        };
        // The same directory, unless the repository has moved.
        let cwd = worktree.as_ref().and_then(AgentWorktree::local_path).map_or(cwd, Path::to_path_buf);
        let turn_request = self.child_turn_request(text, slot, notify_parent, parent_call);
        let program_cwd = match agent.cwd {
            Some(_) => shared.session_cwd(),
            None => cwd.clone(),
        };
        let spec = ChildSpec {
            task: task.clone(),
            title: row.title,
            agent,
            cwd,
            program_cwd,
            worktree,
            n_tokens_before: row.n_tokens,
            place: None,
        };
        self.launch_child(spec, lease, start, turn_request).await
    }

    pub(crate) fn child_turn_request(
        &self,
        text: String,
        slot: BudgetSlot,
        notify_parent: bool,
        parent_call: ParentCall,
    ) -> ChildTurnRequest {
        ChildTurnRequest {
            text,
            _slot: slot,
            cancel: self.shared.cancel.child_token(),
            notify_parent,
            parent_call,
            span: child_turn_span(),
        }
    }

    /// Whether the agent of this name is Crow itself.
    pub(crate) fn is_own_agent(&self, name: &str) -> bool {
        self.find_agent(Some(name)).is_ok_and(|agent| self.child_kind(&agent) == ChildKind::Crow)
    }

    async fn check_directory(&self, path: &Path) -> Result<(), String> {
        match self.shared.session.has_directory(path).await {
            true => Ok(()),
            false => Err(format!("there is no directory {}", path.display())),
        }
    }

    /// Begins the worktree of a new task: here, or where its agent works.
    async fn start_worktree(
        &self,
        agent: &AgentServer,
        directory: &Path,
        task: &SessionId,
        cancel: &CancellationToken,
    ) -> Result<AgentWorktree, String> {
        let (git, config) = (self.shared.session.git(), self.shared.session.agents_config());
        let worktrees_dir = &config.worktrees_dir;
        let (farms, name) = (&self.shared.farms, task.as_str());
        AgentWorktree::begin(
            agent,
            WorktreeRequest { git: &git, farms, directory, worktrees_dir, name },
            cancel,
        )
        .await
    }

    /// Opens the worktree of a task of an earlier process, which is made again if it is gone.
    async fn reopen_worktree(
        &self,
        directory: &Path,
        task: &SessionId,
        cancel: &CancellationToken,
    ) -> Result<AgentWorktree, String> {
        let (git, config) = (self.shared.session.git(), self.shared.session.agents_config());
        let legacy_dir = &config.legacy_worktrees_dir;
        let is_legacy = self.shared.session.has_directory(&legacy_dir.join(task.as_str())).await;
        let worktrees_dir = if is_legacy { legacy_dir } else { &config.worktrees_dir };
        let (farms, name) = (&self.shared.farms, task.as_str());
        AgentWorktree::begin_here(
            WorktreeRequest { git: &git, farms, directory, worktrees_dir, name },
            cancel,
        )
        .await
    }

    pub(crate) async fn acquire_slot(&self) -> Result<BudgetSlot, String> {
        let shared = &self.shared;
        let limits = shared.tree_limits();
        if !limits.may_start(shared.depth) {
            return Err(format!(
                "this agent is {} levels below the root, and agents.max_depth allows {}; do the work yourself",
                shared.depth, limits.depth_max
            ));
        }
        shared.budget.acquire_slot().await
    }

    /// Finds an agent by its name.
    pub(crate) fn find_agent(&self, name: Option<&str>) -> Result<AgentServer, String> {
        let config = self.shared.session.agents_config();
        let name = name.unwrap_or(OWN_AGENT);
        let configured = config.agent_servers.iter().find(|server| server.name == name);
        let crow = || config.own_agent.clone().filter(|_| name == OWN_AGENT);
        configured.cloned().or_else(crow).ok_or_else(|| {
            let names = config.agent_servers.iter().map(|server| server.name.as_str());
            let known_names: Vec<_> = std::iter::once(OWN_AGENT).chain(names).collect();
            format!(
                "there is no agent {}; the agents are: {}",
                view::single_line(name),
                known_names.join(", ")
            )
        })
    }

    pub(crate) fn child_kind(&self, agent: &AgentServer) -> ChildKind {
        match self.shared.session.agents_config().own_agent.as_ref() == Some(agent) {
            true => ChildKind::Crow,
            false => ChildKind::External,
        }
    }
}

/// Key in a session's stored configuration: the directory from which its worktree was created.
const WORKTREE_OF: &str = "worktree_of";

fn stored_worktree(config: &str) -> Option<PathBuf> {
    let config: Value = serde_json::from_str(config).ok()?;
    config.get(WORKTREE_OF)?.as_str().map(PathBuf::from)
}

/// Rejects what a queue cannot do: its workers have other directories.
fn check_farm_request(agent: &AgentServer, request: &NewTaskRequest) -> Result<(), String> {
    match agent.is_farm() && request.cwd.is_some() && !request.worktree {
        true => Err(format!(
            "{} runs tasks in directories of its workers, so it takes no cwd without a worktree",
            agent.name
        )),
        false => Ok(()),
    }
}

/// Returns the requested title, or one made from the prompt.
fn new_task_title(request: &NewTaskRequest) -> String {
    request.title.as_deref().map_or_else(|| title_from_prompt(&request.prompt), view::single_line)
}

/// Makes a title from a prompt.
fn title_from_prompt(prompt: &str) -> String {
    let line = view::single_line(prompt);
    match line.char_indices().nth(TITLE_CHARS) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line,
    }
}
