//! `todo`: the plan.

use crow_core::{PlanEntry, PlanStatus, ToolAccess, ToolCallInfo, ToolKind, ToolResult, ToolSpec};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    Tool, ToolCx, ToolFuture, Workspace,
    tool::{into_tool_future, parse_arguments},
    tool_error::ToolError,
};

/// A longer plan is unreadable, and every client renders all of it each time.
const ENTRIES_MAX: usize = 200;

/// A step is one line in a list.
const ENTRY_CHARS_MAX: usize = 1000;

pub(crate) struct TodoTool {
    spec: ToolSpec,
}

#[derive(Deserialize)]
struct TodoArgs {
    entries: Vec<TodoEntryArg>,
}

#[derive(Deserialize)]
struct TodoEntryArg {
    content: String,
    status: TodoStatusArg,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum TodoStatusArg {
    Pending,
    InProgress,
    Completed,
}

impl TodoTool {
    pub(crate) fn new() -> Self {
        let spec = ToolSpec {
            name: "todo".into(),
            description: "Sets the plan for work of more than three steps, and shows the person how far it is; do without it for \
                          less. Each call gives the whole plan; have one step in progress at a time."
                .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "entries": {
                        "type": "array",
                        "description": "All steps, in order",
                        "items": {
                            "type": "object",
                            "properties": {
                                "content": {"type": "string", "description": "What is to be done"},
                                "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]}
                            },
                            "required": ["content", "status"]
                        }
                    }
                },
                "required": ["entries"]
            }),
        };
        Self { spec }
    }
}

impl Tool for TodoTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call_info(&self, _arguments: &Map<String, Value>, _workspace: &Workspace) -> ToolCallInfo {
        ToolCallInfo {
            title: "Plan".into(),
            kind: ToolKind::Think,
            locations: Vec::new(),
            access: ToolAccess::Nothing,
        }
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, _cx: ToolCx<'a>) -> ToolFuture<'a> {
        into_tool_future(async move {
            let TodoArgs { entries } = parse_arguments(arguments)?;
            if entries.len() > ENTRIES_MAX {
                return Err(ToolError(format!(
                    "the plan has more than {ENTRIES_MAX} steps; merge some of them"
                )));
            }
            let is_too_long = |entry: &TodoEntryArg| entry.content.chars().nth(ENTRY_CHARS_MAX).is_some();
            if let Some(index) = entries.iter().position(is_too_long) {
                let number = index + 1;
                return Err(ToolError(format!(
                    "step {number} of the plan is longer than {ENTRY_CHARS_MAX} characters; shorten it"
                )));
            }
            let plan: Vec<PlanEntry> = entries.into_iter().map(TodoEntryArg::into_plan_entry).collect();
            let n_done = plan.iter().filter(|entry| entry.status == PlanStatus::Completed).count();
            let text = format!("the plan has {} steps, {n_done} completed", plan.len());
            Ok(ToolResult { plan: Some(plan), ..ToolResult::success(text) })
        })
    }
}

impl TodoEntryArg {
    fn into_plan_entry(self) -> PlanEntry {
        let status = match self.status {
            TodoStatusArg::Pending => PlanStatus::Pending,
            TodoStatusArg::InProgress => PlanStatus::InProgress,
            TodoStatusArg::Completed => PlanStatus::Completed,
        };
        PlanEntry::new(self.content, status)
    }
}
