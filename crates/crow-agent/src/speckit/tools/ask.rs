//! The tool that asks the user a question that only they can decide.

use std::sync::Arc;

use crow_acp::Client;
use crow_core::{SessionId, SessionUpdate, ToolCallContent, ToolCallInfo, ToolResult, ToolSpec};
use crow_speckit::{QuestionAnswer, QuestionOption, StepQuestion};
use crow_tools::{Tool, ToolCx, ToolFuture, Workspace};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{call_info, parse_arguments, single_line};
use crate::runtime::AgentRuntime;
use crate::speckit::notices::STOPPED;
use crate::speckit::project_files::AnswerRecord;
use crate::speckit::questions::{self, QuestionOutcome};
use crate::speckit::step_policy::SharedStepState;
use crate::turn_context::TurnCx;

/// Name of the tool; its last call has the open question.
pub(in crate::speckit) const ASK: &str = "speckit_ask";

/// More than a user compares at a glance.
const OPTIONS_MAX: usize = 5;

/// A question is one sentence.
const QUESTION_CHARS_MAX: usize = 500;

/// A topic is a few words.
const TOPIC_CHARS_MAX: usize = 100;

/// An option is a few words, and a sentence about its meaning.
const OPTION_CHARS_MAX: usize = 300;

pub(super) struct AskQuestionTool {
    spec: ToolSpec,
    questions_max: usize,
    step_state: Arc<SharedStepState>,
    runtime: Arc<AgentRuntime>,
    client: Client,
    session: SessionId,
    /// The record of answers, if the step has one.
    answer_record: Option<AnswerRecord>,
}

#[derive(Deserialize)]
struct QuestionArgs {
    question: String,
    #[serde(default)]
    options: Vec<ChoiceArgs>,
    recommended: Option<String>,
    topic: Option<String>,
}

#[derive(Deserialize)]
struct ChoiceArgs {
    label: String,
    #[serde(default)]
    meaning: String,
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

/// Parses the question of a call, or returns what is wrong with it.
pub(in crate::speckit) fn parse_question(arguments: &Map<String, Value>) -> Result<StepQuestion, String> {
    let QuestionArgs { question, options, recommended, topic } = parse_arguments(arguments)?;
    let question = single_line(&question);
    let options: Vec<QuestionOption> = options
        .into_iter()
        .map(|choice| QuestionOption {
            label: single_line(&choice.label),
            meaning: single_line(&choice.meaning),
        })
        .collect();
    if !question.ends_with('?') {
        return Err("the question is none: ask one sentence that ends with a question mark".to_owned());
    }
    if question.chars().count() > QUESTION_CHARS_MAX {
        return Err(format!("the question has more than {QUESTION_CHARS_MAX} characters; ask it shorter"));
    }
    if options.len() > OPTIONS_MAX || options.len() == 1 {
        return Err(format!("give no options, or two to {OPTIONS_MAX}"));
    }
    let is_invalid = |choice: &QuestionOption| {
        choice.label.is_empty()
            || choice.label.chars().count() + choice.meaning.chars().count() > OPTION_CHARS_MAX
    };
    if options.iter().any(is_invalid) {
        return Err(format!(
            "an option has no label, or has with its meaning more than {OPTION_CHARS_MAX} characters"
        ));
    }
    let mut labels: Vec<String> = options.iter().map(|choice| choice.label.to_lowercase()).collect();
    labels.sort();
    labels.dedup();
    if labels.len() != options.len() {
        return Err("two options have the same label".to_owned());
    }
    let recommended = recommended.map(|label| single_line(&label));
    let recommended = recommended.filter(|label| options.iter().any(|choice| choice.label == *label));
    let topic = topic.map(|topic| single_line(&topic)).filter(|topic| !topic.is_empty());
    if topic.as_ref().is_some_and(|topic| topic.chars().count() > TOPIC_CHARS_MAX) {
        return Err(format!("the topic has more than {TOPIC_CHARS_MAX} characters; a few words are enough"));
    }
    Ok(StepQuestion { question, options, recommended, topic })
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
    pub(super) fn new(
        cx: &TurnCx<'_>,
        questions_max: usize,
        step_state: Arc<SharedStepState>,
        answer_record: Option<AnswerRecord>,
    ) -> Self {
        Self {
            spec: ask_spec(),
            questions_max,
            step_state,
            runtime: cx.runtime.clone(),
            client: cx.client.clone(),
            session: cx.session.clone(),
            answer_record,
        }
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
        match questions::ask_question(&self.client, &self.session, &question, cx.cancel).await {
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
                let message = self.runtime.next_message_id();
                self.client
                    .send_update(&self.session, SessionUpdate::Text { message, text: format!("\n{text}") });
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
