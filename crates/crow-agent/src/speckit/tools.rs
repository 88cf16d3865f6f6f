//! The tools that a model has while a step runs: to ask the person, to say what became of a task, to say what the code
//! lacks. Each leaves what it heard on the desk; what follows from it is the driver's to do.

mod ask;
mod say;

use std::sync::Arc;

use crow_acp::Client;
use crow_core::{Facets, SessionId, ToolKind, Touch};
use crow_speckit::Command;
use crow_tools::Tool;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use self::ask::Ask;
pub(super) use self::ask::{ASK, question};
use self::say::{Converge, Task};
use crate::kit::Kit;
use crate::speckit::record::Record;
use crate::speckit::scope::Desk;

/// How many questions a step may ask.
pub(super) fn questions_max(command: Command) -> usize {
    match command {
        Command::Constitution | Command::Specify => 3,
        Command::Clarify | Command::Checklist => 5,
        Command::Plan
        | Command::Tasks
        | Command::Analyze
        | Command::Implement
        | Command::Converge
        | Command::TasksToIssues => 0,
    }
}

/// The tools of a step.
pub(super) fn of(
    command: Command,
    desk: &Arc<Desk>,
    (kit, client, session): (&Arc<Kit>, &Client, &SessionId),
    record: Option<Record>,
) -> Vec<Arc<dyn Tool>> {
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    if questions_max(command) > 0 {
        let asks = (kit.clone(), client.clone(), session.clone());
        tools.push(Arc::new(Ask::new(questions_max(command), desk.clone(), asks, record)));
    }
    match command {
        Command::Implement => tools.push(Arc::new(Task::new(desk.clone()))),
        Command::Converge => tools.push(Arc::new(Converge::new(desk.clone()))),
        Command::Constitution
        | Command::Specify
        | Command::Clarify
        | Command::Plan
        | Command::Checklist
        | Command::Tasks
        | Command::Analyze
        | Command::TasksToIssues => {}
    }
    tools
}

fn facets(title: &str) -> Facets {
    Facets {
        title: crate::children::line(title),
        kind: ToolKind::Think,
        locations: Vec::new(),
        touch: Touch::Nothing,
    }
}

/// Makes one line of what may be anything.
fn line(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn parse<T: DeserializeOwned>(arguments: &Map<String, Value>) -> Result<T, String> {
    serde_json::from_value(Value::Object(arguments.clone()))
        .map_err(|error| format!("the arguments do not fit: {error}"))
}
