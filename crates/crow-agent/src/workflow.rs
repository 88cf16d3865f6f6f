//! Spec Kit in a session: converts prompts to requests of `crow-workflow`, runs them over the session's port, and keeps
//! the feature that a session is bound to.

mod binding;
mod child_tasks;
mod session_port;
mod user_forms;
mod user_prompt;

use crow_acp::{Client, PromptBlock};
use crow_core::{ContentPart, Failure, SessionId, SessionUpdate, Transcript, TurnEnd};
use crow_workflow::{FeatureBinding, WorkflowRequest, needs_reminder, restored_plan};

use self::binding::feature_binding;
use self::session_port::SessionPort;
use self::user_prompt::SteeringReceiver;
pub(crate) use self::user_prompt::{PromptInput, WorkflowInput};
use crate::failures::store_failure;
use crate::runtime::AgentRuntime;
use crate::turn_context::{SessionState, TurnCx};

/// Parses a prompt as a workflow command.
pub(crate) fn parse_workflow_command(content: &[PromptBlock]) -> Option<WorkflowRequest> {
    WorkflowRequest::parse_command(prompt_text(content)?)
}

/// Returns the request of a prompt that answers an open question.
pub(crate) fn find_answer(transcript: &Transcript, content: &[PromptBlock]) -> Option<WorkflowRequest> {
    prompt_text(content)?;
    WorkflowRequest::find_answer(transcript, &user_prompt::spoken_text(content))
}

fn prompt_text(content: &[PromptBlock]) -> Option<&str> {
    match content.first() {
        Some(PromptBlock::Part(ContentPart::Text(text))) => Some(text),
        Some(PromptBlock::Part(_) | PromptBlock::ImageUri { .. }) | None => None,
    }
}

/// Runs a request with the prompt that made it.
pub(crate) async fn run_workflow(
    cx: &TurnCx<'_>,
    state: &mut SessionState,
    WorkflowInput { request, input }: WorkflowInput,
    steering: SteeringReceiver<'_>,
) -> Result<TurnEnd, Failure> {
    let mode = cx.settings.borrow().mode;
    let mut port = SessionPort::new(*cx, state, steering, input);
    crow_workflow::run_workflow(&mut port, request, mode).await
}

/// Returns the environment variables of a stored session about its feature.
pub(crate) async fn feature_variables(runtime: &AgentRuntime, session: &SessionId) -> Vec<(String, String)> {
    let binding = try_feature_binding(runtime, session).await;
    binding.map(|binding| binding.variables()).unwrap_or_default()
}

/// Sends the task list that the client of a stored session saw last.
pub(crate) async fn restore_workflow(runtime: &AgentRuntime, client: &Client, session: &SessionId) {
    let Some(binding) = try_feature_binding(runtime, session).await else { return };
    let plan = restored_plan(binding).await;
    if !plan.is_empty() {
        client.send_update(session, SessionUpdate::Plan(plan));
    }
}

/// Returns a reminder of the workflow for the model, if a compaction removed every mention of it.
pub(crate) async fn workflow_reminder(
    cx: &TurnCx<'_>,
    transcript: &Transcript,
) -> Result<Option<ContentPart>, Failure> {
    if !needs_reminder(transcript) {
        return Ok(None);
    }
    match feature_binding(cx.runtime, cx.session).await.map_err(store_failure)? {
        Some(binding) => Ok(crow_workflow::workflow_reminder(binding).await),
        None => Ok(None),
    }
}

/// Like [`feature_binding`], but an error is only logged.
async fn try_feature_binding(runtime: &AgentRuntime, session: &SessionId) -> Option<FeatureBinding> {
    feature_binding(runtime, session).await.unwrap_or_else(|error| {
        tracing::warn!(%session, %error, "the session's workflow state could not be read");
        None
    })
}
