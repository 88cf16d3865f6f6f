//! `todo`: the plan.

use crow_core::{Facets, Outcome, PlanEntry, PlanStatus, ToolKind, ToolSpec, Touch};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    Running, Tool, ToolCx, Workspace,
    tool::{Refusal, answer, parse},
};

/// A plan that nobody can read is none; and every client draws all of it each time.
const ENTRIES_MAX: usize = 200;

/// A step is one line in a list.
const ENTRY_CHARS_MAX: usize = 1000;

pub(crate) struct Todo {
    spec: ToolSpec,
}

#[derive(Deserialize)]
struct Wanted {
    entries: Vec<WantedEntry>,
}

#[derive(Deserialize)]
struct WantedEntry {
    content: String,
    status: WantedStatus,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum WantedStatus {
    Pending,
    InProgress,
    Completed,
}

impl Todo {
    pub(crate) fn new() -> Self {
        let spec = ToolSpec {
            name: "todo".into(),
            description:
                "Sets the plan for work of several steps, and shows how far it is. Each call gives the \
                          whole plan; have one step in progress at a time."
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

impl Tool for Todo {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn facets(&self, _arguments: &Map<String, Value>, _workspace: &Workspace) -> Facets {
        Facets { title: "Plan".into(), kind: ToolKind::Think, locations: Vec::new(), touch: Touch::Nothing }
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, _cx: ToolCx<'a>) -> Running<'a> {
        answer(async move {
            let Wanted { entries } = parse(arguments)?;
            if entries.len() > ENTRIES_MAX {
                return Err(Refusal(format!(
                    "the plan has more than {ENTRIES_MAX} steps; sum some of them up"
                )));
            }
            let is_long = |entry: &WantedEntry| entry.content.chars().nth(ENTRY_CHARS_MAX).is_some();
            if let Some(at) = entries.iter().position(is_long) {
                let number = at + 1;
                return Err(Refusal(format!(
                    "step {number} of the plan is longer than {ENTRY_CHARS_MAX} characters; say it shorter"
                )));
            }
            let plan: Vec<PlanEntry> = entries.into_iter().map(WantedEntry::into_core).collect();
            let n_done = plan.iter().filter(|entry| entry.status == PlanStatus::Completed).count();
            let text = format!("the plan has {} steps, {n_done} completed", plan.len());
            Ok(Outcome { plan: Some(plan), ..Outcome::done(text) })
        })
    }
}

impl WantedEntry {
    fn into_core(self) -> PlanEntry {
        let status = match self.status {
            WantedStatus::Pending => PlanStatus::Pending,
            WantedStatus::InProgress => PlanStatus::InProgress,
            WantedStatus::Completed => PlanStatus::Completed,
        };
        PlanEntry::new(self.content, status)
    }
}
