//! The tools that report: the result of a task, and the gaps of the code.

use std::sync::Arc;

use crow_core::{ToolCallInfo, ToolResult, ToolSpec};
use crow_speckit::{ConvergenceGap, GapKind};
use crow_tools::{Tool, ToolCx, ToolFuture, Workspace};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::step_state::{SharedStepState, StepTaskResult};
use crate::tool_arguments::{call_info, parse_arguments, single_line};

/// A note is one line of a report.
const NOTE_CHARS_MAX: usize = 2_000;

/// Tasks that one comparison may add; more would be another plan.
const GAPS_MAX: usize = 100;

pub(crate) struct ReportTaskTool {
    spec: ToolSpec,
    step_state: Arc<SharedStepState>,
}

#[derive(Deserialize)]
struct TaskResultArgs {
    id: String,
    state: TaskStateArg,
    #[serde(default)]
    note: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum TaskStateArg {
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

impl Tool for ReportTaskTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call_info(&self, arguments: &Map<String, Value>, _workspace: &Workspace) -> ToolCallInfo {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        call_info(&format!("{} {}", text("id"), text("state")))
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, _cx: ToolCx<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            self.record_result(arguments).map_or_else(ToolResult::failure, ToolResult::success)
        })
    }
}

impl ReportTaskTool {
    pub(crate) fn new(step_state: Arc<SharedStepState>) -> Self {
        Self { spec: task_spec(), step_state }
    }

    fn record_result(&self, arguments: &Map<String, Value>) -> Result<String, String> {
        let TaskResultArgs { id, state, note } = parse_arguments(arguments)?;
        let note = shorten_text(&note);
        let mut step_state = self.step_state.lock_state();
        let current_task = step_state.task.as_deref().ok_or("there is no task at hand")?;
        if !current_task.eq_ignore_ascii_case(id.trim()) {
            return Err(format!(
                "the task at hand is {current_task}, not {}; nothing was marked",
                single_line(&id)
            ));
        }
        if step_state.result.is_some() {
            return Err(format!("{current_task} was reported already"));
        }
        let text = match state {
            TaskStateArg::Done => format!("{current_task} is done"),
            TaskStateArg::Failed if note.is_empty() => return Err("say in the note why it failed".to_owned()),
            TaskStateArg::Failed => format!("{current_task} is noted as failed"),
        };
        step_state.result = Some(match state {
            TaskStateArg::Done => StepTaskResult::Done { note },
            TaskStateArg::Failed => StepTaskResult::Failed { reason: note },
        });
        step_state.is_over = true;
        Ok(text)
    }
}

pub(crate) struct ConvergeTool {
    spec: ToolSpec,
    step_state: Arc<SharedStepState>,
}

#[derive(Deserialize)]
struct GapsArgs {
    tasks: Vec<GapArgs>,
}

#[derive(Deserialize)]
struct GapArgs {
    text: String,
    source: String,
    gap: GapKindArg,
    #[serde(default)]
    is_critical: bool,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum GapKindArg {
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

impl Tool for ConvergeTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call_info(&self, arguments: &Map<String, Value>, _workspace: &Workspace) -> ToolCallInfo {
        let n_gaps = arguments.get("tasks").and_then(Value::as_array).map_or(0, Vec::len);
        call_info(&format!("{n_gaps} gaps between code and spec"))
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, _cx: ToolCx<'a>) -> ToolFuture<'a> {
        Box::pin(
            async move { self.record_gaps(arguments).map_or_else(ToolResult::failure, ToolResult::success) },
        )
    }
}

impl ConvergeTool {
    pub(crate) fn new(step_state: Arc<SharedStepState>) -> Self {
        Self { spec: converge_spec(), step_state }
    }

    fn record_gaps(&self, arguments: &Map<String, Value>) -> Result<String, String> {
        let GapsArgs { tasks } = parse_arguments(arguments)?;
        if tasks.len() > GAPS_MAX {
            return Err(format!("these are more than {GAPS_MAX} tasks; sum some of them up"));
        }
        if let Some(index) = tasks
            .iter()
            .position(|gap| single_line(&gap.text).is_empty() || single_line(&gap.source).is_empty())
        {
            return Err(format!("task {} has no text or no source", index + 1));
        }
        let gaps: Vec<ConvergenceGap> = tasks.into_iter().map(GapArgs::into_gap).collect();
        let mut step_state = self.step_state.lock_state();
        if step_state.gaps.is_some() {
            return Err("this was reported already".to_owned());
        }
        let text = format!("{} tasks are noted", gaps.len());
        step_state.gaps = Some(gaps);
        step_state.is_over = true;
        Ok(text)
    }
}

impl GapArgs {
    fn into_gap(self) -> ConvergenceGap {
        let kind = match self.gap {
            GapKindArg::Missing => GapKind::Missing,
            GapKindArg::Partial => GapKind::Partial,
            GapKindArg::Contradicts => GapKind::Contradicts,
            GapKindArg::Unrequested => GapKind::Unrequested,
        };
        ConvergenceGap {
            text: shorten_text(&self.text),
            source: shorten_text(&self.source),
            kind,
            is_critical: self.is_critical,
        }
    }
}

fn shorten_text(text: &str) -> String {
    crow_speckit::sanitize_text(&single_line(text)).chars().take(NOTE_CHARS_MAX).collect()
}
