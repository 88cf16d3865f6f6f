//! `task`, `task_send`, `task_read` and `task_cancel`: the model's tools to give work to child agents. They only know
//! requests and reports, not how a child runs.

mod specs;

use std::pin::pin;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use crow_core::{
    AgentServer, CallId, SessionId, ToolAccess, ToolCallContent, ToolCallInfo, ToolCallStatus, ToolKind,
    ToolResult, ToolSpec,
};
use crow_files::resolve_links;
use crow_store::TaskState;
use crow_tools::{Tool, ToolCx, ToolFuture, ToolProgress, Workspace};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::time::{MissedTickBehavior, interval};

pub use self::specs::task_specs;
use self::specs::{cancel_spec, read_spec, send_spec, task_spec};
use crate::child_agents::{ChildAgents, TaskReport, TaskSendOutcome};
use crate::handle::AwaitedTurn;
use crate::questions::ParentCall;
use crate::report::{task_resumed_text, task_started_text};
use crate::shared::OWN_AGENT;
use crate::start::NewTaskRequest;
use crate::view::single_line;

/// People read no faster than this.
const SHOW_EVERY: Duration = Duration::from_millis(100);

/// Total size of a child's diffs shown to the client at the end.
const DIFF_BYTES_MAX: usize = 512 * 1024;

const NO_SESSION: &str = "this agent cannot start tasks: it is at the maximum depth of agents; do the work yourself with the other tools";

/// Gives the tools of a session access to its children. It is set once, when the session has created them.
#[derive(Clone, Default)]
pub struct ChildAgentsCell(Arc<OnceLock<Weak<ChildAgents>>>);

impl ChildAgentsCell {
    /// Sets the children; a second call has no effect.
    pub fn set_children(&self, children: &Arc<ChildAgents>) {
        self.0.get_or_init(|| Arc::downgrade(children));
    }

    fn get_children(&self) -> Option<Arc<ChildAgents>> {
        self.0.get()?.upgrade()
    }
}

/// Creates the tools for a session. With an empty cell they can only be listed.
pub fn task_tools(children: &ChildAgentsCell, agents: &[AgentServer]) -> Vec<Arc<dyn Tool>> {
    let children = children.clone();
    vec![
        Arc::new(TaskTool { spec: task_spec(agents), children: children.clone() }),
        Arc::new(TaskSendTool { spec: send_spec(), children: children.clone() }),
        Arc::new(TaskReadTool { spec: read_spec(), children: children.clone() }),
        Arc::new(TaskCancelTool { spec: cancel_spec(), children }),
    ]
}

struct TaskTool {
    spec: ToolSpec,
    children: ChildAgentsCell,
}

struct TaskSendTool {
    spec: ToolSpec,
    children: ChildAgentsCell,
}

struct TaskReadTool {
    spec: ToolSpec,
    children: ChildAgentsCell,
}

struct TaskCancelTool {
    spec: ToolSpec,
    children: ChildAgentsCell,
}

#[derive(Debug, Deserialize)]
struct TaskArgs {
    prompt: String,
    agent: Option<String>,
    cwd: Option<String>,
    model: Option<String>,
    title: Option<String>,
    wait: Option<bool>,
    worktree: Option<bool>,
}

#[derive(Debug, Deserialize)]
struct TaskSendArgs {
    task: String,
    prompt: String,
    wait: Option<bool>,
}

#[derive(Debug, Deserialize)]
struct TaskIdArgs {
    task: String,
}

impl Tool for TaskTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// Children that are Crow evaluate each of their calls as their parent would; an external agent does not, so giving
    /// it a prompt is evaluated here.
    fn call_info(&self, arguments: &Map<String, Value>, workspace: &Workspace) -> ToolCallInfo {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let agent = text("agent").unwrap_or(OWN_AGENT);
        let subject = text("title").or(text("prompt")).unwrap_or("a task");
        let title = match agent {
            OWN_AGENT => format!("Task: {subject}"),
            agent => format!("Task for {agent}: {subject}"),
        };
        let outside_cwd = text("cwd").map(|cwd| resolve_links(&workspace.cwd().join(cwd)));
        let outside_cwd =
            outside_cwd.filter(|cwd| !workspace.roots().iter().any(|root| cwd.starts_with(root)));
        let is_crow = self.children.get_children().is_none_or(|children| children.is_own_agent(agent));
        let access = match outside_cwd {
            _ if !is_crow => ToolAccess::Calls { server: agent.to_owned(), tool: self.spec.name.clone() },
            // The child may write in its directory.
            Some(cwd) => ToolAccess::Writes(vec![cwd.display().to_string()]),
            None => ToolAccess::Nothing,
        };
        call_info(&title, access)
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let info = self.call_info(arguments, cx.workspace);
            run_task(self.children.get_children(), arguments, cx, info)
                .await
                .unwrap_or_else(ToolResult::failure)
        })
    }
}

impl Tool for TaskSendTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call_info(&self, arguments: &Map<String, Value>, _workspace: &Workspace) -> ToolCallInfo {
        call_info(&call_title("Message task", arguments), ToolAccess::Nothing)
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let info = self.call_info(arguments, cx.workspace);
            Box::pin(run_task_send(self.children.get_children(), arguments, cx, info))
                .await
                .unwrap_or_else(ToolResult::failure)
        })
    }
}

impl Tool for TaskReadTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn call_info(&self, arguments: &Map<String, Value>, _workspace: &Workspace) -> ToolCallInfo {
        call_info(&call_title("Read task", arguments), ToolAccess::Nothing)
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> ToolFuture<'a> {
        run_tool(async move {
            let TaskIdArgs { task } = parse_arguments(arguments)?;
            let (children, task) = (require_children(self.children.get_children())?, SessionId::new(task));
            let report = children.read_task(&task).await?;
            Ok(claim_report(&children, cx.call, report))
        })
    }
}

impl Tool for TaskCancelTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call_info(&self, arguments: &Map<String, Value>, _workspace: &Workspace) -> ToolCallInfo {
        call_info(&call_title("Cancel task", arguments), ToolAccess::Nothing)
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> ToolFuture<'a> {
        run_tool(async move {
            let TaskIdArgs { task } = parse_arguments(arguments)?;
            let (children, task) = (require_children(self.children.get_children())?, SessionId::new(task));
            let report = children.cancel_task(&task).await?;
            Ok(claim_report(&children, cx.call, report))
        })
    }
}

fn require_children(children: Option<Arc<ChildAgents>>) -> Result<Arc<ChildAgents>, String> {
    children.ok_or_else(|| NO_SESSION.to_owned())
}

async fn run_task(
    children: Option<Arc<ChildAgents>>,
    arguments: &Map<String, Value>,
    cx: ToolCx<'_>,
    info: ToolCallInfo,
) -> Result<ToolResult, String> {
    let (children, args): (_, TaskArgs) = (require_children(children)?, parse_arguments(arguments)?);
    let call = cx.call.ok_or(NO_SESSION)?;
    let notify_parent = !args.wait.unwrap_or(true);
    if args.prompt.trim().is_empty() {
        return Err(
            "the prompt is empty; say what is to be done, with all that the agent has to know".to_owned()
        );
    }
    let new = NewTaskRequest {
        prompt: args.prompt,
        agent: args.agent,
        cwd: args.cwd.map(|cwd| cx.workspace.cwd().join(cwd)),
        model: args.model,
        title: args.title,
        worktree: args.worktree.unwrap_or(false),
        notify_parent,
    };
    let task = children.start_task(new, ParentCall { call, info, shown_text: None }, cx.cancel).await?;
    if cx.cancel.is_cancelled() {
        // It started while everything was being cancelled.
        children.cancel_one(&task);
    }
    Ok(match (notify_parent, children.running_turn(&task)) {
        (false, Some(turn)) => wait_for_turn(&children, &task, turn, cx).await,
        (true, _) | (false, None) => ToolResult::success(task_started_text(&task)),
    })
}

async fn run_task_send(
    children: Option<Arc<ChildAgents>>,
    arguments: &Map<String, Value>,
    cx: ToolCx<'_>,
    info: ToolCallInfo,
) -> Result<ToolResult, String> {
    let (children, args): (_, TaskSendArgs) = (require_children(children)?, parse_arguments(arguments)?);
    let call = cx.call.ok_or(NO_SESSION)?;
    let (task, notify_parent) = (SessionId::new(args.task), !args.wait.unwrap_or(true));
    let parent_call = ParentCall { call, info, shown_text: None };
    let sending = Box::pin(children.send_to_task(&task, args.prompt, notify_parent, parent_call));
    let outcome = cx.cancel.run_until_cancelled(sending).await.ok_or("stopped: the turn was cancelled")??;
    if cx.cancel.is_cancelled() {
        children.cancel_one(&task);
    }
    Ok(match (outcome, notify_parent, children.running_turn(&task)) {
        (TaskSendOutcome::Started, false, Some(turn)) => wait_for_turn(&children, &task, turn, cx).await,
        (TaskSendOutcome::Started, ..) => ToolResult::success(task_resumed_text(&task)),
        (TaskSendOutcome::Steered, ..) => {
            ToolResult::success(format!("The message was sent to task {task}, which is running.\n"))
        }
    })
}

/// Shows the progress of a child turn until it has ended; returns its result.
pub async fn wait_for_turn(
    children: &ChildAgents,
    task: &SessionId,
    turn: AwaitedTurn,
    cx: ToolCx<'_>,
) -> ToolResult {
    let mut view_changed = turn.subscribe_view();
    let mut ticker = interval(SHOW_EVERY);
    ticker.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let report = {
        let mut end_of_turn = pin!(turn.wait_for_end());
        let mut is_cancelled = false;
        loop {
            tokio::select! {
                biased;
                report = &mut end_of_turn => break report,
                () = cx.cancel.cancelled(), if !is_cancelled => {
                    // The end follows soon in any case.
                    turn.cancel_turn();
                    is_cancelled = true;
                }
                _ = ticker.tick() => if let Some(view) = turn.changed_view(&mut view_changed) {
                    (cx.progress)(ToolProgress::Content(vec![ToolCallContent::Text(view)]));
                }
            }
        }
    };
    let task_report = children.task_report(task, report).await;
    let report = claim_report(children, cx.call, task_report);
    let status = match turn.task_state() {
        TaskState::Completed | TaskState::Running => ToolCallStatus::Completed,
        TaskState::Failed | TaskState::Cancelled | TaskState::Lost => ToolCallStatus::Failed,
    };
    let result = match status {
        ToolCallStatus::Completed => ToolResult::success(report),
        ToolCallStatus::Failed | ToolCallStatus::Pending | ToolCallStatus::InProgress => {
            ToolResult::failure(report)
        }
    };
    let mut n_bytes = 0;
    let diffs = turn.file_diffs().into_iter().take_while(|content| {
        if let ToolCallContent::Diff { old, new, .. } = content {
            n_bytes += old.as_ref().map_or(0, String::len) + new.len();
        }
        n_bytes <= DIFF_BYTES_MAX
    });
    let for_client = result.for_client.into_iter().chain(diffs).collect();
    ToolResult { for_client, ..result }
}

/// Registers the deliveries that a result contains; returns its text.
fn claim_report(children: &ChildAgents, call: Option<CallId>, report: TaskReport) -> String {
    if let Some(call) = call {
        children.register_deliveries(call, report.deliveries.into_iter());
    }
    report.text
}

fn call_title(verb: &str, arguments: &Map<String, Value>) -> String {
    let task = arguments.get("task").and_then(Value::as_str).unwrap_or_default();
    format!("{verb} {task}")
}

fn call_info(title: &str, access: ToolAccess) -> ToolCallInfo {
    ToolCallInfo { title: single_line(title), kind: ToolKind::Other, locations: Vec::new(), access }
}

fn parse_arguments<T: serde::de::DeserializeOwned>(arguments: &Map<String, Value>) -> Result<T, String> {
    serde_json::from_value(Value::Object(arguments.clone()))
        .map_err(|error| format!("the arguments do not fit: {error}"))
}

fn run_tool<'a>(
    work: impl Future<Output = Result<String, String>> + std::marker::Send + 'a,
) -> ToolFuture<'a> {
    Box::pin(async move { work.await.map_or_else(ToolResult::failure, ToolResult::success) })
}
