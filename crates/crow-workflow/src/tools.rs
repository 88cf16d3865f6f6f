//! The model's tools during a step: to ask the user, to report on a task, to report gaps. Each one stores its data in
//! the step state; the step's driver acts on it.

mod ask;
mod report;

use std::sync::Arc;

use crow_speckit::{StepDefinition, StepTool};
use crow_tools::Tool;

use self::ask::AskQuestionTool;
use self::report::{ConvergeTool, ReportTaskTool};
use crate::port::UserQuestions;
use crate::project_files::AnswerRecord;
use crate::step_state::SharedStepState;

/// Returns the tools of a step.
pub(crate) fn step_tools(
    definition: &StepDefinition,
    step_state: &Arc<SharedStepState>,
    user: Arc<dyn UserQuestions>,
    answer_record: Option<AnswerRecord>,
) -> Vec<Arc<dyn Tool>> {
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    let questions_max = definition.questions_max;
    if questions_max > 0 {
        tools.push(Arc::new(AskQuestionTool::new(user, questions_max, step_state.clone(), answer_record)));
    }
    match definition.tool {
        Some(StepTool::ReportTask) => tools.push(Arc::new(ReportTaskTool::new(step_state.clone()))),
        Some(StepTool::ReportGaps) => tools.push(Arc::new(ConvergeTool::new(step_state.clone()))),
        None => {}
    }
    tools
}
