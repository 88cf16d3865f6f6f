//! `task`, `task_send`, `task_read` and `task_cancel`: work that the model gives to other agents. They know how a task
//! is asked for and told of; what a child is, is known elsewhere.

mod specs;

use std::pin::pin;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use crow_core::{
    AgentServer, CallId, Content, Facets, Outcome, SessionId, Status, ToolKind, ToolSpec, Touch,
};
use crow_store::TaskState;
use crow_tools::{Progress, Running, Tool, ToolCx, Workspace, resolve};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::time::{MissedTickBehavior, interval};

pub use self::specs::task_specs;
use self::specs::{cancel_spec, read_spec, send_spec, task_spec};
use crate::children::{Awaited, Children, NewTask, OWN, Sent, Spot, Told, Wake, goes_on, has_begun};

/// People read no faster than this.
const SHOW_EVERY: Duration = Duration::from_millis(100);

/// Bytes of what a child did to files that its parent's client is shown at the end.
const DIFF_BYTES_MAX: usize = 512 * 1024;

const NO_SESSION: &str = "there is no session here to give tasks";

/// Where the tools of a session find its children. It is opened once, when the session has what children need.
#[derive(Clone, Default)]
pub(crate) struct Door(Arc<OnceLock<Weak<Children>>>);

impl Door {
    /// Opens it; a second time changes nothing.
    pub(crate) fn open(&self, children: &Arc<Children>) {
        self.0.get_or_init(|| Arc::downgrade(children));
    }

    fn children(&self) -> Option<Arc<Children>> {
        self.0.get()?.upgrade()
    }
}

/// Makes the tools for a session. Behind a door that is never opened they can be told of and shown.
pub(crate) fn tools(children: &Door, agents: &[AgentServer]) -> Vec<Arc<dyn Tool>> {
    let children = children.clone();
    vec![
        Arc::new(Task { spec: task_spec(agents), children: children.clone() }),
        Arc::new(Send { spec: send_spec(), children: children.clone() }),
        Arc::new(Read { spec: read_spec(), children: children.clone() }),
        Arc::new(Cancel { spec: cancel_spec(), children }),
    ]
}

struct Task {
    spec: ToolSpec,
    children: Door,
}

struct Send {
    spec: ToolSpec,
    children: Door,
}

struct Read {
    spec: ToolSpec,
    children: Door,
}

struct Cancel {
    spec: ToolSpec,
    children: Door,
}

#[derive(Debug, Deserialize)]
struct AskedTask {
    prompt: String,
    agent: Option<String>,
    cwd: Option<String>,
    model: Option<String>,
    title: Option<String>,
    wait: Option<bool>,
    worktree: Option<bool>,
}

#[derive(Debug, Deserialize)]
struct AskedSend {
    task: String,
    prompt: String,
    wait: Option<bool>,
}

#[derive(Debug, Deserialize)]
struct AskedOne {
    task: String,
}

impl Tool for Task {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// Crow's own children judge each of their steps as their parent would; what an agent of others does with a prompt
    /// is its affair, so giving it one is a step that is judged here.
    fn facets(&self, arguments: &Map<String, Value>, workspace: &Workspace) -> Facets {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let agent = text("agent").unwrap_or(OWN);
        let about = text("title").or(text("prompt")).unwrap_or("a task");
        let title = match agent {
            OWN => format!("Task: {about}"),
            agent => format!("Task for {agent}: {about}"),
        };
        let outside = text("cwd").map(|cwd| resolve(&workspace.cwd().join(cwd)));
        let outside = outside.filter(|cwd| !workspace.roots().iter().any(|root| cwd.starts_with(root)));
        let is_own = self.children.children().is_none_or(|children| children.is_own(agent));
        let touch = match outside {
            _ if !is_own => Touch::Calls { server: agent.to_owned(), tool: self.spec.name.clone() },
            // Its folder is one that the child may work in.
            Some(cwd) => Touch::Writes(vec![cwd.display().to_string()]),
            None => Touch::Nothing,
        };
        facets(&title, touch)
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> Running<'a> {
        Box::pin(async move {
            let facets = self.facets(arguments, cx.workspace);
            given(self.children.children(), arguments, (cx, facets)).await.unwrap_or_else(Outcome::failed)
        })
    }
}

impl Tool for Send {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn facets(&self, arguments: &Map<String, Value>, _workspace: &Workspace) -> Facets {
        facets(&about("Tell task", arguments), Touch::Nothing)
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> Running<'a> {
        Box::pin(async move {
            let facets = self.facets(arguments, cx.workspace);
            Box::pin(sent(self.children.children(), arguments, (cx, facets)))
                .await
                .unwrap_or_else(Outcome::failed)
        })
    }
}

impl Tool for Read {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn only_reads(&self) -> bool {
        true
    }

    fn facets(&self, arguments: &Map<String, Value>, _workspace: &Workspace) -> Facets {
        facets(&about("Look at task", arguments), Touch::Nothing)
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> Running<'a> {
        answer(async move {
            let AskedOne { task } = parse(arguments)?;
            let (children, task) = (of(self.children.children())?, SessionId::new(task));
            let told = children.read(&task).await?;
            Ok(tells(&children, cx.call, told))
        })
    }
}

impl Tool for Cancel {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn facets(&self, arguments: &Map<String, Value>, _workspace: &Workspace) -> Facets {
        facets(&about("Cancel task", arguments), Touch::Nothing)
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> Running<'a> {
        answer(async move {
            let AskedOne { task } = parse(arguments)?;
            let (children, task) = (of(self.children.children())?, SessionId::new(task));
            let told = children.cancel(&task).await?;
            Ok(tells(&children, cx.call, told))
        })
    }
}

fn of(children: Option<Arc<Children>>) -> Result<Arc<Children>, String> {
    children.ok_or_else(|| NO_SESSION.to_owned())
}

async fn given(
    children: Option<Arc<Children>>,
    arguments: &Map<String, Value>,
    (cx, facets): (ToolCx<'_>, Facets),
) -> Result<Outcome, String> {
    let (children, asked): (_, AskedTask) = (of(children)?, parse(arguments)?);
    let call = cx.call.ok_or(NO_SESSION)?;
    let wake = wake(asked.wait);
    if asked.prompt.trim().is_empty() {
        return Err(
            "the prompt is empty; say what is to be done, with all that the agent has to know".to_owned()
        );
    }
    let new = NewTask {
        prompt: asked.prompt,
        agent: asked.agent,
        cwd: asked.cwd.map(|cwd| cx.workspace.cwd().join(cwd)),
        model: asked.model,
        title: asked.title,
        worktree: asked.worktree.unwrap_or(false),
        wake,
    };
    let task = children.begin(new, Spot { call, facets, shows: None }, cx.cut).await?;
    if cx.cut.is_cancelled() {
        // It began while everything was stopped.
        children.cancel_one(&task);
    }
    Ok(match (wake, children.awaited(&task)) {
        (Wake::No, Some(awaited)) => ended(&children, &task, awaited, cx).await,
        (Wake::Yes, _) | (Wake::No, None) => Outcome::done(has_begun(&task)),
    })
}

async fn sent(
    children: Option<Arc<Children>>,
    arguments: &Map<String, Value>,
    (cx, facets): (ToolCx<'_>, Facets),
) -> Result<Outcome, String> {
    let (children, asked): (_, AskedSend) = (of(children)?, parse(arguments)?);
    let call = cx.call.ok_or(NO_SESSION)?;
    let (task, wake) = (SessionId::new(asked.task), wake(asked.wait));
    let spot = Spot { call, facets, shows: None };
    let sending = Box::pin(children.send(&task, asked.prompt, wake, spot));
    let sent = cx.cut.run_until_cancelled(sending).await.ok_or("stopped: the turn was cancelled")??;
    if cx.cut.is_cancelled() {
        children.cancel_one(&task);
    }
    Ok(match (sent, wake, children.awaited(&task)) {
        (Sent::Begun, Wake::No, Some(awaited)) => ended(&children, &task, awaited, cx).await,
        (Sent::Begun, ..) => Outcome::done(goes_on(&task)),
        (Sent::Steered, ..) => Outcome::done(format!("Task {task} is at work and has been told.\n")),
    })
}

/// Shows a round until it has ended, and tells what came of it.
pub(crate) async fn ended(
    children: &Children,
    task: &SessionId,
    mut awaited: Awaited,
    cx: ToolCx<'_>,
) -> Outcome {
    let mut seen = awaited.seen();
    let view = awaited.clone();
    let mut beat = interval(SHOW_EVERY);
    beat.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let report = {
        let mut ended = pin!(awaited.ended());
        let mut is_cut = false;
        loop {
            tokio::select! {
                biased;
                report = &mut ended => break report,
                () = cx.cut.cancelled(), if !is_cut => {
                    // Its end comes soon, whatever it does.
                    view.cancel();
                    is_cut = true;
                }
                _ = beat.tick() => if seen.has_changed().unwrap_or(false) {
                    seen.mark_unchanged();
                    (cx.progress)(Progress::Shows(vec![Content::Text(view.shown())]));
                }
            }
        }
    };
    let told = children.told(task, report).await;
    let report = tells(children, cx.call, told);
    let status = match view.state() {
        TaskState::Done | TaskState::Running => Status::Done,
        TaskState::Failed | TaskState::Cancelled | TaskState::Lost => Status::Failed,
    };
    let outcome = match status {
        Status::Done => Outcome::done(report),
        Status::Failed | Status::Pending | Status::Running => Outcome::failed(report),
    };
    let mut n_bytes = 0;
    let diffs = view.diffs().into_iter().take_while(|content| {
        if let Content::Diff { old, new, .. } = content {
            n_bytes += old.as_ref().map_or(0, String::len) + new.len();
        }
        n_bytes <= DIFF_BYTES_MAX
    });
    let for_client = outcome.for_client.into_iter().chain(diffs).collect();
    Outcome { for_client, ..outcome }
}

/// Remembers what the outcome of a call tells of the mailbox; gives its text.
fn tells(children: &Children, call: Option<CallId>, told: Told) -> String {
    if let Some(call) = call {
        children.tells(call, told.deliveries.into_iter());
    }
    told.text
}

fn wake(wait: Option<bool>) -> Wake {
    if wait.unwrap_or(true) { Wake::No } else { Wake::Yes }
}

fn about(verb: &str, arguments: &Map<String, Value>) -> String {
    let task = arguments.get("task").and_then(Value::as_str).unwrap_or_default();
    format!("{verb} {task}")
}

fn facets(title: &str, touch: Touch) -> Facets {
    Facets { title: crate::children::line(title), kind: ToolKind::Other, locations: Vec::new(), touch }
}

fn parse<T: serde::de::DeserializeOwned>(arguments: &Map<String, Value>) -> Result<T, String> {
    serde_json::from_value(Value::Object(arguments.clone()))
        .map_err(|error| format!("the arguments do not fit: {error}"))
}

fn answer<'a>(work: impl Future<Output = Result<String, String>> + std::marker::Send + 'a) -> Running<'a> {
    Box::pin(async move { work.await.map_or_else(Outcome::failed, Outcome::done) })
}
