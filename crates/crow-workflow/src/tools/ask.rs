//! The tool that asks the user a question that only they can decide.

use std::sync::Arc;

use crow_core::{ToolCallContent, ToolCallInfo, ToolResult, ToolSpec};
use crow_speckit::QuestionAnswer;
use crow_tools::{Tool, ToolCx, ToolFuture, Workspace};
use serde_json::{Map, Value, json};

use crate::parts::STOPPED;
use crate::port::UserQuestions;
use crate::project_files::AnswerRecord;
use crate::question_call::{ASK, parse_question};
use crate::questions::{self, QuestionOutcome};
use crate::step_state::SharedStepState;
use crate::tool_arguments::call_info;

/// The tool that asks the user.
pub(crate) struct AskQuestionTool {
    spec: ToolSpec,
    questions_max: usize,
    step_state: Arc<SharedStepState>,
    user: Arc<dyn UserQuestions>,
    /// The record of answers, if the step has one.
    answer_record: Option<AnswerRecord>,
}

fn ask_spec() -> ToolSpec {
    ToolSpec {
        name: ASK.into(),
        description: "Asks the person one question that only they can decide, and gives their answer. Give two to five \
                      options where you can, and recommend one."
            .into(),
        parameters: json!({
            "type": "object",
            "properties": {
                "question": {"type": "string", "description": "One sentence that ends with a question mark"},
                "options": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "label": {"type": "string", "description": "The answer in a few words"},
                            "meaning": {"type": "string", "description": "What follows from it, one sentence"}
                        },
                        "required": ["label"]
                    }
                },
                "recommended": {"type": "string", "description": "The label of the option you would take"},
                "topic": {"type": "string", "description": "What it is about, in a few words"}
            },
            "required": ["question"]
        }),
    }
}

impl Tool for AskQuestionTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call_info(&self, arguments: &Map<String, Value>, _workspace: &Workspace) -> ToolCallInfo {
        let question = arguments.get("question").and_then(Value::as_str).unwrap_or("Ask");
        call_info(question)
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> ToolFuture<'a> {
        Box::pin(async move { self.ask_question(arguments, cx).await.unwrap_or_else(ToolResult::failure) })
    }
}

impl AskQuestionTool {
    pub(crate) fn new(
        user: Arc<dyn UserQuestions>,
        questions_max: usize,
        step_state: Arc<SharedStepState>,
        answer_record: Option<AnswerRecord>,
    ) -> Self {
        Self { spec: ask_spec(), questions_max, step_state, user, answer_record }
    }

    async fn ask_question(
        &self,
        arguments: &Map<String, Value>,
        cx: ToolCx<'_>,
    ) -> Result<ToolResult, String> {
        let question = parse_question(arguments)?;
        {
            let mut state = self.step_state.lock_state();
            if state.is_waiting {
                return Err("a question waits for its answer already; ask one at a time".to_owned());
            }
            if state.n_questions >= self.questions_max {
                return Err("no more questions may be asked in this step; assume what is usual, and say what you assumed".to_owned());
            }
            state.n_questions += 1;
            // Another question of the same reply has to wait.
            state.is_waiting = true;
        }
        let n_left = || self.questions_max - self.step_state.lock_state().n_questions;
        match questions::ask_question(&*self.user, &question, cx.cancel).await {
            QuestionOutcome::Answered(answer) => {
                {
                    let mut state = self.step_state.lock_state();
                    state.is_waiting = false;
                    if matches!(answer, QuestionAnswer::NoMore | QuestionAnswer::Stop) {
                        state.n_questions = self.questions_max;
                    }
                    state.has_stopped |= answer == QuestionAnswer::Stop;
                    state.is_over |= answer == QuestionAnswer::Stop;
                }
                let record = self.answer_record.as_ref();
                questions::write_answer(record, &question, &answer, cx.undo_recorder, cx.workspace).await?;
                let mut text = answer_message(&answer, n_left());
                if let (Some(answer_record), QuestionAnswer::Answer(_)) = (&self.answer_record, &answer) {
                    text.push_str(&format!(
                        "\nCrow wrote both under Clarifications in {}. Carry it into the section it concerns now, before you \
                         ask anything else.",
                        answer_record.spec.display()
                    ));
                }
                Ok(ToolResult::success(text))
            }
            QuestionOutcome::Cancelled => {
                self.step_state.lock_state().is_waiting = false;
                Err("the question was closed without an answer; do not ask it again".to_owned())
            }
            QuestionOutcome::AsText => {
                let text = question.to_markdown();
                self.user.send_text(&format!("\n{text}"));
                self.step_state.lock_state().is_over = true;
                let result = ToolResult::success(
                    "the question was shown to the person; their answer comes as the next message",
                );
                Ok(ToolResult { for_client: vec![ToolCallContent::Text(text)], ..result })
            }
        }
    }
}

/// Returns the message to the model about an answer.
fn answer_message(answer: &QuestionAnswer, n_left: usize) -> String {
    match answer {
        QuestionAnswer::Answer(text) if n_left > 0 => {
            format!("The person answered: {text}\n(You may ask {n_left} more.)")
        }
        QuestionAnswer::Answer(text) => {
            format!("The person answered: {text}\n(That was the last question you may ask.)")
        }
        QuestionAnswer::NoMore => {
            "The person wants no more questions. Assume what is usual for the rest.".to_owned()
        }
        QuestionAnswer::Stop => STOPPED.to_owned(),
    }
}
