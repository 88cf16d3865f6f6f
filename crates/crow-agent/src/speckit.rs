//! Runs the Spec Kit workflow in a session. What needs no model is in `crow-speckit`; the rest is sent to the model
//! here, within the limits of a step, and checked afterwards.

mod converge;
mod git;
mod implement;
mod info_command;
mod issues;
mod layout;
mod notices;
mod parallel_tasks;
mod preflight;
mod project_context;
mod project_files;
mod questions;
mod report;
mod session_step;
mod short_name;
mod step;
mod step_hooks;
mod step_policy;
mod step_port;
mod step_prompt;
mod step_rounds;
mod step_runner;
mod step_scope;
mod tools;
mod user_prompt;
mod workflow_exit;

use crow_acp::{Client, PromptBlock};
use crow_core::{
    CommandInfo, ContentPart, Failure, Mode, SessionId, SessionUpdate, SpeckitPart, Transcript, TurnEnd,
    slash,
};
use crow_speckit::{
    Feature, SpeckitAction, SpeckitProject, SpeckitRequest, TaskList, WorkflowCommand, step_definition,
};
use crow_store::SpeckitRow;

use self::notices::{report_refusal, send_note};
use self::project_files::run_blocking;
pub(crate) use self::questions::OpenQuestion;
pub(crate) use self::step::find_report;
use self::step_hooks::ExtensionCall;
pub(crate) use self::user_prompt::PromptInput;
use self::user_prompt::SteeringReceiver;
use self::workflow_exit::WorkflowExit;
use crate::failures::store_failure;
use crate::runtime::AgentRuntime;
use crate::sentence::to_sentence;
use crate::turn_context::{SessionState, TurnCx};

/// A request for the workflow.
#[derive(Debug)]
pub(crate) enum WorkflowRequest {
    /// A parsed command, or the reason why it is invalid.
    Command(Result<SpeckitRequest, String>),
    Answer(OpenQuestion),
}

/// A request with the prompt that made it.
pub(crate) struct WorkflowInput {
    pub(crate) request: WorkflowRequest,
    pub(crate) input: PromptInput,
}

impl WorkflowRequest {
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
            Self::Answer(question) => !step_definition(question.command).is_read_only,
        }
    }
}

/// Parses a prompt as a workflow command.
pub(crate) fn parse_workflow_command(content: &[PromptBlock]) -> Option<Result<SpeckitRequest, String>> {
    let command = slash::parse_command(prompt_text(content)?)?;
    SpeckitRequest::parse(command.name, command.arguments)
}

/// Returns the open question that a prompt answers. A command is not an answer.
pub(crate) fn find_answered_question(
    transcript: &Transcript,
    content: &[PromptBlock],
) -> Option<OpenQuestion> {
    let is_answer = prompt_text(content).is_some_and(|text| slash::parse_command(text).is_none());
    if is_answer { questions::find_open_question(transcript) } else { None }
}

fn prompt_text(content: &[PromptBlock]) -> Option<&str> {
    match content.first() {
        Some(PromptBlock::Part(ContentPart::Text(text))) => Some(text),
        Some(PromptBlock::Part(_) | PromptBlock::ImageUri { .. }) | None => None,
    }
}

/// Returns Crow's commands.
pub(crate) fn available_commands() -> impl Iterator<Item = CommandInfo> {
    let speckit_command = CommandInfo {
        name: "speckit".into(),
        description: "Show the state of the Spec Kit workflow".into(),
        hint: Some("status | use 002 | init | templates | doctor".into()),
    };
    let steps = WorkflowCommand::ALL.into_iter().map(|command| CommandInfo {
        name: format!("speckit.{}", command.as_str()),
        description: step_definition(command).description.into(),
        hint: Some(step_definition(command).argument_hint.into()),
    });
    steps.chain([speckit_command])
}

/// Returns the environment variables of a stored session about its feature.
pub(crate) async fn variables(runtime: &AgentRuntime, session: &SessionId) -> Vec<(String, String)> {
    row(runtime, session).await.map(|row| project_context::feature_variables(&row)).unwrap_or_default()
}

async fn row(runtime: &AgentRuntime, session: &SessionId) -> Option<SpeckitRow> {
    let row_result = runtime.store.speckit_state(session).await;
    row_result.unwrap_or_else(|error| {
        tracing::warn!(%session, %error, "the session's workflow state could not be read");
        None
    })
}

/// Sends the task list that the client of a stored session saw last.
pub(crate) async fn restore_workflow(runtime: &AgentRuntime, client: &Client, session: &SessionId) {
    let Some(row) = row(runtime, session).await else { return };
    let last_command = row.last_command.as_deref().and_then(WorkflowCommand::parse);
    let shows_tasks = last_command.is_some_and(|last| step_definition(last).shows_tasks);
    let Some(dir) = row.feature_dir.filter(|_| shows_tasks) else { return };
    let text = run_blocking(move || {
        Ok(SpeckitProject::read_file(&Feature::from_dir(dir.into()).tasks_path())?.unwrap_or_default())
    })
    .await;
    let list = TaskList::parse(&text.unwrap_or_default());
    if !list.tasks.is_empty() {
        client.send_update(session, SessionUpdate::Plan(step::plan_entries(&list, &[])));
    }
}

/// Returns a reminder of the workflow for the model, if a compaction removed every mention of it.
pub(crate) async fn workflow_reminder(
    cx: &TurnCx<'_>,
    transcript: &Transcript,
) -> Result<Option<ContentPart>, Failure> {
    if transcript.compaction().is_none() || transcript.entries().iter().any(questions::mentions_workflow) {
        return Ok(None);
    }
    let row = cx.runtime.store.speckit_state(cx.session).await.map_err(store_failure)?;
    let Some(row) = row else { return Ok(None) };
    let Some(dir) = row.feature_dir else { return Ok(None) };
    let feature = Feature::from_dir(dir.into());
    let last = row.last_command.as_deref().and_then(WorkflowCommand::parse);
    // A feature that cannot be read is left out.
    let text = run_blocking(move || report::feature_reminder(&feature, last)).await;
    Ok(text.ok().map(|text| step::hidden_part(SpeckitPart::Reminder, text)))
}

/// Runs a request; a request that is rejected writes nothing.
pub(crate) async fn run_workflow(
    cx: &TurnCx<'_>,
    state: &mut SessionState,
    WorkflowInput { request, input }: WorkflowInput,
    steering: SteeringReceiver<'_>,
) -> Result<TurnEnd, Failure> {
    if cx.settings.borrow().mode == Mode::Plan && request.writes_files() {
        report_refusal(cx, "Plan mode only reads, and this writes files. Change the mode first, with /mode.");
        return Ok(TurnEnd::Completed);
    }
    match run_request(cx, state, WorkflowInput { request, input }, steering).await {
        Ok(end) | Err(WorkflowExit::Ended(end)) => Ok(end),
        Err(WorkflowExit::Refused(reason)) => {
            report_refusal(cx, &to_sentence(&reason));
            Ok(TurnEnd::Completed)
        }
        Err(WorkflowExit::Failed(failure)) => Err(failure),
    }
}

async fn run_request(
    cx: &TurnCx<'_>,
    state: &mut SessionState,
    WorkflowInput { request, input }: WorkflowInput,
    steering: SteeringReceiver<'_>,
) -> Result<TurnEnd, WorkflowExit> {
    match request {
        WorkflowRequest::Command(Err(reason)) => Err(WorkflowExit::Refused(reason)),
        // The answer would be written for another feature than the one it is about.
        WorkflowRequest::Command(Ok(SpeckitRequest::Action(SpeckitAction::Use(_))))
            if questions::find_open_question(&state.transcript).is_some() =>
        {
            let reason =
                "a question waits for its answer; answer it or say `cancel`, then switch the feature";
            Err(WorkflowExit::Refused(reason.to_owned()))
        }
        WorkflowRequest::Command(Ok(SpeckitRequest::Action(action))) => {
            send_note(cx, &info_command::run_info_command(cx, action).await?);
            Ok(TurnEnd::Completed)
        }
        WorkflowRequest::Command(Ok(SpeckitRequest::Extension { name, text })) => {
            let call = ExtensionCall { name, text, input };
            step_hooks::run_extension_command(cx, state, call, steering).await
        }
        WorkflowRequest::Command(Ok(SpeckitRequest::Step(invocation))) => {
            step_runner::begin_step(cx, state, invocation, input, steering).await
        }
        WorkflowRequest::Answer(question) => {
            step_runner::resume_step(cx, state, question, input, steering).await
        }
    }
}
