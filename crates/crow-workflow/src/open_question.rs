//! The question that waits for an answer, as read from the transcript. It is stored nowhere else, so a crash, a fork and
//! a replay agree.

use crow_core::{CallId, Reply, ToolCallStatus, ToolResult, Transcript, TranscriptEntry};
use crow_speckit::{StepQuestion, WorkflowCommand};

use crate::parts::started_step;
use crate::question_call::{ASK, parse_question};

/// An open question: its step, and the number of questions so far.
#[derive(Debug, PartialEq, Eq)]
pub struct OpenQuestion {
    pub(crate) command: WorkflowCommand,
    pub(crate) question: StepQuestion,
    pub(crate) n_asked: usize,
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
    let question = parse_question(&call.arguments.to_object()).ok()?;
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
