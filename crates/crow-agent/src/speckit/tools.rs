//! The model's tools during a step: to ask the user, to report on a task, to report gaps. Each one stores its data in
//! the step state; the step's driver acts on it.

mod ask;
mod say;

use std::sync::Arc;

use crow_core::{ToolAccess, ToolCallInfo, ToolKind};
use crow_speckit::{StepDefinition, StepTool};
use crow_tools::Tool;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use self::ask::AskQuestionTool;
pub(super) use self::ask::{ASK, parse_question};
use self::say::{ConvergeTool, ReportTaskTool};
use crate::speckit::project_files::AnswerRecord;
use crate::speckit::step_policy::SharedStepState;
use crate::turn_context::TurnCx;

/// Returns the tools of a step.
pub(super) fn step_tools(
    cx: &TurnCx<'_>,
    definition: &StepDefinition,
    step_state: &Arc<SharedStepState>,
    answer_record: Option<AnswerRecord>,
) -> Vec<Arc<dyn Tool>> {
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    let questions_max = definition.questions_max;
    if questions_max > 0 {
        tools.push(Arc::new(AskQuestionTool::new(cx, questions_max, step_state.clone(), answer_record)));
    }
    match definition.tool {
        Some(StepTool::ReportTask) => tools.push(Arc::new(ReportTaskTool::new(step_state.clone()))),
        Some(StepTool::ReportGaps) => tools.push(Arc::new(ConvergeTool::new(step_state.clone()))),
        None => {}
    }
    tools
}

fn call_info(title: &str) -> ToolCallInfo {
    ToolCallInfo {
        title: crow_children::single_line(title),
        kind: ToolKind::Think,
        locations: Vec::new(),
        access: ToolAccess::Nothing,
    }
}

/// Makes one line from any text.
fn single_line(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn parse_arguments<T: DeserializeOwned>(arguments: &Map<String, Value>) -> Result<T, String> {
    serde_json::from_value(Value::Object(arguments.clone()))
        .map_err(|error| format!("the arguments do not fit: {error}"))
}
