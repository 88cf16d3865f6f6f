//! Task information of a session: its agent and its state.

use crow_children::OWN_AGENT;
use crow_store::{SessionRow, Store, TaskRow, TaskState};
use serde_json::{Value, json};

use super::format::iso_timestamp;

/// Returns the name of the agent that runs a session.
pub(super) fn agent_name(row: &SessionRow) -> &str {
    row.agent_type.as_deref().unwrap_or(OWN_AGENT)
}

/// Refreshes a task's state. A running task without a lease holder is lost, unless it runs on another machine; that is stored
/// when its parent is opened.
pub(super) async fn refresh_task_state(store: &Store, mut task: TaskRow) -> TaskRow {
    if task.state == TaskState::Running
        && !task.has_place
        && let Ok(lease) = store.acquire_task_lease(&task.task).await
    {
        store.release_task_lease(lease).await;
        task.state = TaskState::Lost;
    }
    task
}

/// Describes a task on one line.
pub(super) fn describe_task(task: &TaskRow) -> String {
    let format_count = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let (rounds, tokens) = (format_count(task.n_turns.into(), "turn"), format_count(task.n_tokens, "token"));
    format!("{}, {rounds}, {tokens}", task.state.as_str())
}

/// JSON of a task.
pub(super) fn task_json(task: Option<&TaskRow>) -> Value {
    task.map_or(Value::Null, |task| {
        json!({
            "state": task.state.as_str(),
            "rounds": task.n_turns,
            "tokens": task.n_tokens,
            "started": iso_timestamp(task.started),
            "ended": task.ended.and_then(iso_timestamp),
            "branch": task.branch,
        })
    })
}
