//! The tools that say something: what became of a task, what the code lacks.

use std::sync::Arc;

use crow_core::{Facets, Outcome, ToolSpec};
use crow_speckit::{Gap, GapKind};
use crow_tools::{Running, Tool, ToolCx, Workspace};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{facets, line, parse};
use crate::speckit::scope::{Desk, TaskResult};

/// A note is what a person reads in one line of a report.
const NOTE_CHARS_MAX: usize = 2_000;

/// Tasks that one look at the code may add; more is another plan.
const GAPS_MAX: usize = 100;

pub(super) struct Task {
    spec: ToolSpec,
    desk: Arc<Desk>,
}

#[derive(Deserialize)]
struct WantedResult {
    id: String,
    state: WantedState,
    #[serde(default)]
    note: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum WantedState {
    Done,
    Failed,
}

fn task_spec() -> ToolSpec {
    ToolSpec {
        name: "speckit_task".into(),
        description: "Says what became of the task at hand, once, when its work is finished and checked. Crow marks it in \
                      tasks.md and hands out the next one."
            .into(),
        parameters: json!({
            "type": "object",
            "properties": {
                "id": {"type": "string", "description": "The task's id, such as T012"},
                "state": {"type": "string", "enum": ["done", "failed"]},
                "note": {"type": "string", "description": "What was done and how it was checked, or why it failed; one or two sentences"}
            },
            "required": ["id", "state", "note"]
        }),
    }
}

impl Tool for Task {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn facets(&self, arguments: &Map<String, Value>, _workspace: &Workspace) -> Facets {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        facets(&format!("{} {}", text("id"), text("state")))
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, _cx: ToolCx<'a>) -> Running<'a> {
        Box::pin(async move { self.report(arguments).map_or_else(Outcome::failed, Outcome::done) })
    }
}

impl Task {
    pub(super) fn new(desk: Arc<Desk>) -> Self {
        Self { spec: task_spec(), desk }
    }

    fn report(&self, arguments: &Map<String, Value>) -> Result<String, String> {
        let WantedResult { id, state, note } = parse(arguments)?;
        let note = short(&note);
        let mut desk = self.desk.state();
        let at_hand = desk.task.as_deref().ok_or("there is no task at hand")?;
        if !at_hand.eq_ignore_ascii_case(id.trim()) {
            return Err(format!("the task at hand is {at_hand}, not {}; nothing was marked", line(&id)));
        }
        if desk.result.is_some() {
            return Err(format!("{at_hand} was reported already"));
        }
        let text = match state {
            WantedState::Done => format!("{at_hand} is done"),
            WantedState::Failed if note.is_empty() => return Err("say in the note why it failed".to_owned()),
            WantedState::Failed => format!("{at_hand} is noted as failed"),
        };
        desk.result = Some(match state {
            WantedState::Done => TaskResult::Done { note },
            WantedState::Failed => TaskResult::Failed { why: note },
        });
        desk.is_over = true;
        Ok(text)
    }
}

pub(super) struct Converge {
    spec: ToolSpec,
    desk: Arc<Desk>,
}

#[derive(Deserialize)]
struct WantedGaps {
    tasks: Vec<WantedGap>,
}

#[derive(Deserialize)]
struct WantedGap {
    text: String,
    source: String,
    gap: WantedKind,
    #[serde(default)]
    is_critical: bool,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum WantedKind {
    Missing,
    Partial,
    Contradicts,
    Unrequested,
}

fn converge_spec() -> ToolSpec {
    ToolSpec {
        name: "speckit_converge".into(),
        description: "Says, once and completely, what the code lacks against spec, plan and tasks. Crow adds a task for \
                      each to tasks.md; an empty list means that nothing is missing."
            .into(),
        parameters: json!({
            "type": "object",
            "properties": {
                "tasks": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "text": {"type": "string", "description": "What is to be done, with the file path"},
                            "source": {"type": "string", "description": "What asks for it, such as FR-004 or plan.md"},
                            "gap": {"type": "string", "enum": ["missing", "partial", "contradicts", "unrequested"]},
                            "is_critical": {"type": "boolean", "description": "It breaks a must of the constitution or the main story"}
                        },
                        "required": ["text", "source", "gap"]
                    }
                }
            },
            "required": ["tasks"]
        }),
    }
}

impl Tool for Converge {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn facets(&self, arguments: &Map<String, Value>, _workspace: &Workspace) -> Facets {
        let n_gaps = arguments.get("tasks").and_then(Value::as_array).map_or(0, Vec::len);
        facets(&format!("{n_gaps} gaps between code and spec"))
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, _cx: ToolCx<'a>) -> Running<'a> {
        Box::pin(async move { self.report(arguments).map_or_else(Outcome::failed, Outcome::done) })
    }
}

impl Converge {
    pub(super) fn new(desk: Arc<Desk>) -> Self {
        Self { spec: converge_spec(), desk }
    }

    fn report(&self, arguments: &Map<String, Value>) -> Result<String, String> {
        let WantedGaps { tasks } = parse(arguments)?;
        if tasks.len() > GAPS_MAX {
            return Err(format!("these are more than {GAPS_MAX} tasks; sum some of them up"));
        }
        if let Some(at) =
            tasks.iter().position(|gap| line(&gap.text).is_empty() || line(&gap.source).is_empty())
        {
            return Err(format!("task {} has no text or no source", at + 1));
        }
        let gaps: Vec<Gap> = tasks.into_iter().map(WantedGap::into_gap).collect();
        let mut desk = self.desk.state();
        if desk.gaps.is_some() {
            return Err("this was reported already".to_owned());
        }
        let text = format!("{} tasks are noted", gaps.len());
        desk.gaps = Some(gaps);
        desk.is_over = true;
        Ok(text)
    }
}

impl WantedGap {
    fn into_gap(self) -> Gap {
        let kind = match self.gap {
            WantedKind::Missing => GapKind::Missing,
            WantedKind::Partial => GapKind::Partial,
            WantedKind::Contradicts => GapKind::Contradicts,
            WantedKind::Unrequested => GapKind::Unrequested,
        };
        Gap { text: short(&self.text), source: short(&self.source), kind, is_critical: self.is_critical }
    }
}

fn short(text: &str) -> String {
    crow_speckit::plain(&line(text)).chars().take(NOTE_CHARS_MAX).collect()
}
