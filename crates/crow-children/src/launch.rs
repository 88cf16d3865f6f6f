//! Launches a child with its first turn: its handle for the session, and its driver on a task of its own.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crow_acp::ParentClient;
use crow_core::{AgentServer, AgentTransport, ChildMachine, ChildProfile, SessionId};
use crow_fleet::FarmPlace;
use crow_store::TaskLease;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::child_agents::ChildAgents;
use crate::child_status::SharedChildStatus;
use crate::driver::{ChildDriver, ChildParameters, HeldState};
use crate::events::{ChildEventHandler, ChildKind, OPEN_REQUESTS_MAX};
use crate::handle::ChildHandle;
use crate::link::ChildSessionStart;
use crate::turn::{ChildTurn, ChildTurnRequest};
use crate::worktree::AgentWorktree;

/// Commands that may wait for a child, which takes each one at once.
const COMMANDS_LEN: usize = 8;

/// The parameters of a new child.
pub(crate) struct ChildSpec {
    pub(crate) task: SessionId,
    pub(crate) title: String,
    pub(crate) agent: AgentServer,
    /// Working directory of its session, perhaps on another machine.
    pub(crate) cwd: PathBuf,
    /// Working directory of its program.
    pub(crate) program_cwd: PathBuf,
    pub(crate) worktree: Option<AgentWorktree>,
    /// Tokens that its agent has reported in earlier processes.
    pub(crate) n_tokens_before: u64,
    /// The place where its turn, which an earlier process began, goes on.
    pub(crate) place: Option<FarmPlace>,
}

impl ChildAgents {
    /// Launches a child.
    pub(crate) async fn launch_child(
        &self,
        spec: ChildSpec,
        lease: TaskLease,
        start: ChildSessionStart,
        turn_request: ChildTurnRequest,
    ) -> Result<(), String> {
        let shared = self.shared.clone();
        if spec.place.is_none() {
            let begin_result = shared.store.begin_task(&lease, &spec.title, shared.session.now()).await;
            begin_result.map_err(|error| error.to_string())?;
        }
        let (commands, inbox) = mpsc::channel(COMMANDS_LEN);
        let stopped = CancellationToken::new();
        let handle = ChildHandle {
            stopped: stopped.clone(),
            commands,
            status: Arc::new(SharedChildStatus::new_working()),
            view: Arc::default(),
            view_changed: Arc::new(watch::Sender::new(())),
            turn_cancel: Arc::new(Mutex::new(turn_request.cancel.clone())),
        };
        let event_handler = self.event_handler(&spec, &handle, &turn_request);
        event_handler.send_child_state(true);
        let profile = ChildProfile {
            ends_with_turn: spec.worktree.is_some() || spec.agent.is_farm(),
            follows_mode: event_handler.kind == ChildKind::Crow,
            replays_session: matches!(start, ChildSessionStart::Resume { .. }),
            times: shared.times,
        };
        let has_stored_session = !matches!(start, ChildSessionStart::New { .. });
        let (machine, actions) = ChildMachine::start(profile, shared.tree_limits().task_timeout);
        let ChildSpec { task, title, agent, cwd, program_cwd, worktree, n_tokens_before: _, place } = spec;
        let driver = ChildDriver {
            machine,
            event_handler,
            commands: inbox,
            status: handle.status.clone(),
            lease: Some(lease),
            stopped: Some(stopped.drop_guard()),
            start: Some(start),
            turn: Some(ChildTurn::new(turn_request, true)),
            held: HeldState::default(),
            parameters: ChildParameters {
                task: task.clone(),
                title,
                agent_name: agent.name,
                transport: agent.transport,
                cwd,
                program_cwd,
                worktree,
                place,
                end_stored: CancellationToken::new(),
                has_stored_session,
                connect_time_max: shared.times.open,
            },
        };
        self.lock_children().insert(task, handle);
        shared.tasks.spawn(driver.run(actions));
        Ok(())
    }

    fn event_handler(
        &self,
        spec: &ChildSpec,
        handle: &ChildHandle,
        turn_request: &ChildTurnRequest,
    ) -> ChildEventHandler {
        let shared = self.shared.clone();
        let ChildSpec { task, title, agent, cwd, worktree, .. } = spec;
        let kind = self.child_kind(agent);
        let parent_client = || Arc::new(ParentClient::new(shared.client.clone(), shared.parent.clone()));
        ChildEventHandler {
            // The client serves files of its own directories, which a worktree is not part of, nor another machine.
            parent_client: (worktree.is_none() && !agent.is_farm()).then(parent_client),
            task: task.clone(),
            label: child_label(kind, &agent.name, title),
            parent_call: turn_request.parent_call.clone(),
            kind,
            is_farm: agent.is_farm(),
            is_local: agent.cwd.is_none() && matches!(agent.transport, AgentTransport::Program { .. }),
            cwd: cwd.clone(),
            view: handle.view.clone(),
            view_changed: handle.view_changed.clone(),
            recorder: None,
            approvals: Arc::default(),
            shares_approvals: kind == ChildKind::Crow && (worktree.is_some() || shared.session_cwd() == *cwd),
            slots: Arc::default(),
            // Crow counts per process, other agents per session.
            n_reported_tokens: if kind == ChildKind::Crow { 0 } else { spec.n_tokens_before },
            n_turn_tokens: 0,
            deeper: std::collections::HashSet::new(),
            request_slots: Arc::new(Semaphore::new(OPEN_REQUESTS_MAX)),
            n_rejected: 0,
            shared,
        }
    }
}

/// The name of a child in its permission requests.
fn child_label(kind: ChildKind, agent: &str, title: &str) -> String {
    match kind {
        ChildKind::Crow => title.to_owned(),
        ChildKind::External => format!("{agent}, {title}"),
    }
}
