//! The requests of the workflow: a command of the user, or the answer to a question. A request that is rejected writes
//! nothing.

use crow_core::{Failure, Mode, Transcript, TurnEnd, slash};
use crow_speckit::{SpeckitAction, SpeckitRequest, step_definition};

use crate::exit::WorkflowExit;
use crate::extension_command::run_extension_command;
use crate::info;
use crate::notices::{report_refusal, send_note};
use crate::open_question::{OpenQuestion, find_open_question};
use crate::port::WorkflowPort;
use crate::runner;

/// A request for the workflow.
#[derive(Debug)]
pub enum WorkflowRequest {
    /// A parsed command, or the reason why it is invalid.
    Command(Result<SpeckitRequest, String>),
    /// The answer to a question of a step.
    Answer {
        /// The question.
        question: OpenQuestion,
        /// The text of the prompt.
        text: String,
    },
}

impl WorkflowRequest {
    /// Parses a prompt as a workflow command; `None` if it is none.
    pub fn parse_command(text: &str) -> Option<Self> {
        let command = slash::parse_command(text)?;
        Some(Self::Command(SpeckitRequest::parse(command.name, command.arguments)?))
    }

    /// Returns the request of a prompt that answers an open question. A command is not an answer.
    pub fn find_answer(transcript: &Transcript, text: &str) -> Option<Self> {
        if slash::parse_command(text).is_some() {
            return None;
        }
        let question = find_open_question(transcript)?;
        Some(Self::Answer { question, text: text.to_owned() })
    }

    /// Whether Crow itself would change files for the request.
    fn writes_files(&self) -> bool {
        match self {
            Self::Command(Ok(SpeckitRequest::Step(invocation))) => {
                !step_definition(invocation.command).is_read_only
            }
            Self::Command(Ok(SpeckitRequest::Action(action))) => {
                matches!(action, SpeckitAction::Use(_) | SpeckitAction::Init)
            }
            // The model makes the changes, and plan mode denies them.
            Self::Command(Ok(SpeckitRequest::Extension { .. }) | Err(_)) => false,
            Self::Answer { question, .. } => !step_definition(question.command).is_read_only,
        }
    }
}

/// Runs a request in a session with this mode.
pub async fn run_workflow(
    port: &mut impl WorkflowPort,
    request: WorkflowRequest,
    mode: Mode,
) -> Result<TurnEnd, Failure> {
    if mode == Mode::Plan && request.writes_files() {
        let reason = "Plan mode only reads, and this writes files. Change the mode first, with /mode.";
        report_refusal(port, reason);
        return Ok(TurnEnd::Completed);
    }
    match run_request(port, request).await {
        Ok(end) | Err(WorkflowExit::Ended(end)) => Ok(end),
        Err(WorkflowExit::Refused(reason)) => {
            report_refusal(port, &reason);
            Ok(TurnEnd::Completed)
        }
        Err(WorkflowExit::Failed(failure)) => Err(failure),
    }
}

async fn run_request(
    port: &mut impl WorkflowPort,
    request: WorkflowRequest,
) -> Result<TurnEnd, WorkflowExit> {
    match request {
        WorkflowRequest::Command(Err(reason)) => Err(WorkflowExit::Refused(reason)),
        // The answer would be written for another feature than the one it is about.
        WorkflowRequest::Command(Ok(SpeckitRequest::Action(SpeckitAction::Use(_))))
            if find_open_question(port.transcript()).is_some() =>
        {
            let reason =
                "a question waits for its answer; answer it or say `cancel`, then switch the feature";
            Err(WorkflowExit::Refused(reason.to_owned()))
        }
        WorkflowRequest::Command(Ok(SpeckitRequest::Action(action))) => {
            let text = info::run_info_command(port, action).await?;
            send_note(port, &text);
            Ok(TurnEnd::Completed)
        }
        WorkflowRequest::Command(Ok(SpeckitRequest::Extension { name, text })) => {
            run_extension_command(port, &name, text).await
        }
        WorkflowRequest::Command(Ok(SpeckitRequest::Step(invocation))) => {
            runner::run_step(port, invocation).await
        }
        WorkflowRequest::Answer { question, text } => runner::resume_step(port, question, &text).await,
    }
}
