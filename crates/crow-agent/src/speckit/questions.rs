//! Questions of a step and their answers: in a form if the client supports forms, otherwise as text that the next
//! prompt answers. The open question is stored in the transcript only, so a crash, a fork and a replay agree.

use crow_acp::{Client, ElicitationForm, ElicitationOutcome};
use crow_core::{
    CallId, CrowPart, Failure, Reply, SessionId, SpeckitPart, ToolCallStatus, ToolResult, Transcript,
    TranscriptEntry,
};
use crow_speckit::{
    AnswerFacts, AuxiliaryPrompt, QuestionAnswer, StepQuestion, StepWork, WorkflowCommand, step_definition,
};
use crow_tools::{UndoRecorder, Workspace};
use tokio_util::sync::CancellationToken;

use crate::speckit::project_files::AnswerRecord;
use crate::speckit::step_scope::StepScope;
use crate::speckit::tools::{self, ASK};

/// The outcome of a question.
pub(super) enum QuestionOutcome {
    Answered(QuestionAnswer),
    /// It was closed, or the turn was cancelled.
    Cancelled,
    /// It must be shown as text, and the next prompt answers it.
    AsText,
}

/// Asks a question in a form.
pub(super) async fn ask_question(
    client: &Client,
    session: &SessionId,
    question: &StepQuestion,
    cancel: &CancellationToken,
) -> QuestionOutcome {
    if !client.capabilities().forms {
        return QuestionOutcome::AsText;
    }
    let options = question.ordered_options().into_iter();
    let options = options.map(|choice| crow_acp::ElicitationChoice {
        label: choice.label.clone(),
        description: choice.meaning.clone(),
    });
    // It must not be mistaken for a question of Crow, such as one for permission.
    let topic_note = question.topic.as_ref().map(|topic| format!(" ({topic})")).unwrap_or_default();
    let message = format!("The model asks{topic_note}: {}", question.question);
    let form =
        ElicitationForm { message, options: options.collect(), free_text: true, is_about_trust: false };
    match client.elicit_form(session, &form, cancel).await {
        ElicitationOutcome::Accepted(text) if question.options.iter().any(|choice| choice.label == text) => {
            QuestionOutcome::Answered(QuestionAnswer::Answer(text))
        }
        ElicitationOutcome::Accepted(text) => QuestionOutcome::Answered(question.parse_answer(&text)),
        ElicitationOutcome::Declined => QuestionOutcome::Answered(QuestionAnswer::NoMore),
        ElicitationOutcome::Cancelled => QuestionOutcome::Cancelled,
        ElicitationOutcome::Unavailable { .. } => QuestionOutcome::AsText,
    }
}

/// Writes an answer into the record of the step.
pub(super) async fn write_answer(
    record: Option<&AnswerRecord>,
    question: &StepQuestion,
    answer: &QuestionAnswer,
    undo_recorder: Option<&dyn UndoRecorder>,
    workspace: &Workspace,
) -> Result<(), String> {
    match (record, answer) {
        (Some(record), QuestionAnswer::Answer(text)) => {
            record.add_answer(&question.question, text, undo_recorder, workspace).await
        }
        (Some(_) | None, _) => Ok(()),
    }
}

/// Returns the message to the model about an answer that was a prompt.
pub(super) async fn answer_message(
    scope: &StepScope,
    question: &StepQuestion,
    answer: &QuestionAnswer,
    n_left: usize,
) -> Result<String, Failure> {
    let answer = match answer {
        QuestionAnswer::Answer(text) => text.clone(),
        QuestionAnswer::NoMore | QuestionAnswer::Stop => String::new(),
    };
    let facts = AnswerFacts { question: question.question.clone(), answer, left: n_left };
    scope.render_side_prompt(AuxiliaryPrompt::Answer, |all| all.answer = facts).await
}

/// An open question: its step, and the number of questions so far.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OpenQuestion {
    pub(super) command: WorkflowCommand,
    pub(super) question: StepQuestion,
    pub(super) n_asked: usize,
}

/// Returns the question that the last reply left open.
pub(crate) fn find_open_question(transcript: &Transcript) -> Option<OpenQuestion> {
    let entries = transcript.entries();
    let reply_index = entries.iter().rposition(|entry| matches!(entry, TranscriptEntry::Reply(_)))?;
    let TranscriptEntry::Reply(Reply { calls, .. }) = &entries[reply_index] else { return None };
    let is_done = |result: &ToolResult| result.status == ToolCallStatus::Completed;
    let following = &entries[reply_index + 1..];
    // A prompt after the question means that it is no longer open.
    let results = following.iter().map(|entry| match entry {
        TranscriptEntry::Result { call, result, .. } => Some((call, is_done(result))),
        TranscriptEntry::Prompt(_) | TranscriptEntry::Reply(_) => None,
    });
    let results: Vec<_> = results.collect::<Option<_>>()?;
    let call = calls
        .iter()
        .find(|call| call.name == ASK && results.iter().any(|(id, is_done)| **id == call.id && *is_done))?;
    let question = tools::parse_question(&call.arguments.to_object()).ok()?;
    let (step_index, command) =
        entries.iter().enumerate().rev().find_map(|(index, entry)| Some((index, started_step(entry)?)))?;
    let question_call_ids: Vec<_> = entries[step_index..].iter().flat_map(question_calls).collect();
    let is_question = |entry: &&TranscriptEntry| match entry {
        TranscriptEntry::Result { call, result, .. } => question_call_ids.contains(call) && is_done(result),
        TranscriptEntry::Prompt(_) | TranscriptEntry::Reply(_) => false,
    };
    let n_asked = entries[step_index..].iter().filter(is_question).count();
    Some(OpenQuestion { command, question, n_asked })
}

/// Returns the calls of a reply that ask a question.
fn question_calls(entry: &TranscriptEntry) -> Vec<CallId> {
    let TranscriptEntry::Reply(reply) = entry else { return Vec::new() };
    reply.calls.iter().filter(|call| call.name == ASK).map(|call| call.id).collect()
}

/// Returns the step that a prompt started.
fn started_step(entry: &TranscriptEntry) -> Option<WorkflowCommand> {
    let step = |speckit_part: &SpeckitPart| {
        if let SpeckitPart::Step(step) = speckit_part { WorkflowCommand::parse(step) } else { None }
    };
    workflow_parts(entry).find_map(step)
}

/// Whether a prompt started a run of tasks.
pub(super) fn is_run_start(entry: &TranscriptEntry) -> bool {
    started_step(entry).is_some_and(|command| step_definition(command).work == StepWork::Tasks)
}

/// Whether a prompt has a part about the workflow.
pub(super) fn mentions_workflow(entry: &TranscriptEntry) -> bool {
    workflow_parts(entry).next().is_some()
}

/// Returns the parts that the workflow added to a prompt.
fn workflow_parts(entry: &TranscriptEntry) -> impl Iterator<Item = &SpeckitPart> {
    let parts = match entry {
        TranscriptEntry::Prompt(prompt) => prompt.parts.as_slice(),
        TranscriptEntry::Reply(_) | TranscriptEntry::Result { .. } => &[],
    };
    parts.iter().filter_map(|part| match part.crow_part() {
        Some(CrowPart::Speckit(speckit_part)) => Some(speckit_part),
        Some(_) | None => None,
    })
}
