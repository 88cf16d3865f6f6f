//! Takes up tasks that went on elsewhere when the process that gave them was killed.

use crow_core::{AgentServer, AgentTransport, NatsServer, ToolAccess, ToolCallInfo, ToolKind};
use crow_fleet::SentCode;
use crow_store::{StoreError, TaskEnd, TaskLease, TaskPlace, TaskRow, TaskState};

use crate::budget::BudgetSlot;
use crate::child_agents::ChildAgents;
use crate::kept_place::KeptPlace;
use crate::launch::ChildSpec;
use crate::link::ChildSessionStart;
use crate::questions::ParentCall;
use crate::report::task_resumed_text;
use crate::view::single_line;
use crate::worktree::AgentWorktree;

/// A task that can be taken up again.
pub(crate) struct FarTask {
    row: TaskRow,
    lease: TaskLease,
    agent: AgentServer,
    kept: KeptPlace,
    server: NatsServer,
}

impl ChildAgents {
    /// Finds those of the session's tasks that go on elsewhere and that no process drives. Those that cannot be reached any
    /// more are ended as lost.
    pub(crate) async fn find_far_tasks(&self, rows: Vec<TaskRow>) -> Vec<FarTask> {
        let mut tasks = Vec::new();
        for row in rows.into_iter().filter(|row| row.state == TaskState::Running && row.has_place) {
            let task = row.task.clone();
            match self.find_far_task(row).await {
                Ok(found) => tasks.extend(found),
                Err(error) => tracing::warn!(%error, %task, "could not take up a task again"),
            }
        }
        tasks
    }

    /// Finds one task; `None` if another process drives it, or if it is over.
    async fn find_far_task(&self, row: TaskRow) -> Result<Option<FarTask>, StoreError> {
        let store = &self.shared.store;
        let lease = match store.acquire_task_lease(&row.task).await {
            Ok(lease) => lease,
            Err(StoreError::Busy { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        // It may have ended since it was listed.
        let Some(stored) = store.task_place(&row.task).await? else { return Ok(None) };
        match self.locate_task(&row, &stored) {
            Ok((agent, server, kept)) => Ok(Some(FarTask { row, lease, agent, server, kept })),
            Err(reason) => {
                let delivery = Some(unreachable_task_text(&row, &reason));
                let now = self.shared.session.now();
                let end = TaskEnd { state: TaskState::Lost, n_tokens: 0, branch: None, delivery, now };
                store.end_task(&lease, end).await?;
                Ok(None)
            }
        }
    }

    /// Returns the queue that has a task, as it is configured now; the error is the reason why there is none.
    fn locate_task(
        &self,
        row: &TaskRow,
        stored: &TaskPlace,
    ) -> Result<(AgentServer, NatsServer, KeptPlace), String> {
        let kept = KeptPlace::decode(stored)?;
        let agent = self.find_agent(row.agent_type.as_deref())?;
        let AgentTransport::Farm(address) = &agent.transport else {
            return Err(format!("the agent {} is no queue any more", agent.name));
        };
        if !kept.place.is_at(&address.server) {
            let servers = kept.place.servers();
            return Err(format!(
                "the queue {} is at another server now, and the task at {servers}",
                agent.name
            ));
        }
        let server = address.server.clone();
        Ok((agent, server, kept))
    }

    /// Takes up tasks again; returns how many.
    pub(crate) async fn resume_far_tasks(&self, tasks: Vec<FarTask>) -> usize {
        let mut n_resumed = 0;
        for far in tasks {
            let (task, title) = (far.row.task.clone(), far.row.title.clone());
            let resumed = async {
                let slot = self.acquire_slot().await?;
                self.resume_far_task(far, slot).await
            };
            match resumed.await {
                Ok(()) => n_resumed += 1,
                Err(reason) => self.shared.show_notice(format!(
                    "Task {task} ({title}) goes on elsewhere, and could not be taken up again: {reason}. Open the \
                     session again to try it once more."
                )),
            }
        }
        n_resumed
    }

    async fn resume_far_task(&self, far: FarTask, slot: BudgetSlot) -> Result<(), String> {
        let FarTask { row, lease, agent, server, kept } = far;
        let KeptPlace { call, place, repository } = kept;
        let title = single_line(&format!("Task for {}: {}", agent.name, row.title));
        let info =
            ToolCallInfo { title, kind: ToolKind::Other, locations: Vec::new(), access: ToolAccess::Nothing };
        let parent_call = ParentCall { call, info, shown_text: Some(task_resumed_text(&row.task)) };
        let turn_request = self.child_turn_request(place.prompt().to_owned(), slot, true, parent_call);
        let worktree = repository
            .and_then(|kept| SentCode::of_place(&place, server, kept.root, kept.n_uncommitted))
            .map(|code| AgentWorktree::Elsewhere(Box::new(code)));
        let session_cwd = self.shared.session_cwd();
        let start = ChildSessionStart::Resume { session: place.session().to_string() };
        let spec = ChildSpec {
            task: row.task,
            title: row.title,
            cwd: agent.cwd.clone().unwrap_or_else(|| session_cwd.clone()),
            agent,
            program_cwd: session_cwd,
            worktree,
            n_tokens_before: row.n_tokens,
            place: Some(place),
        };
        self.launch_child(spec, lease, start, turn_request).await
    }
}

fn unreachable_task_text(row: &TaskRow, reason: &str) -> String {
    let TaskRow { task, title, .. } = row;
    format!(
        "Task {task} ({title}) was lost: Crow exited while it was running on another machine, and {reason}.\n\nIts \
         messages until then: query_session with session_id {task}. It may still be running there. To do the work \
         again, start a new task.\n"
    )
}
