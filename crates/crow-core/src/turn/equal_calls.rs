//! Detects a model that makes the same call again although nothing changes, and says what it is told: small models call
//! tools again instead of answering.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use crate::{
    CallId, ContentPart, ToolAccess, ToolCall, ToolCallContent, ToolCallInfo, ToolResult, TranscriptEntry,
};

/// Equal calls after which the turn ends. The notes before are for small models; one that ignores three does not stop.
pub(super) const CALLS_MAX: usize = 5;

/// Added to the second result, which is shown in full: the first may be far away.
const SECOND_NOTE: &str = "(This is the same call with the same result as before, and nothing has changed since. Answer now with \
                           what you know, or do something else.)";

/// In place of the third result.
const THIRD_NOTE: &str = "(Not shown again: this is the third time that you make this call, and its result is the same. Answer the \
                          user now, in words and without a call.)";

/// In place of the fourth result and the later ones.
const LAST_NOTE: &str = "(Not shown again: the result is still the same. Answer the user now, in words and without a call. The same \
                         call once more ends the turn.)";

/// A call that has just ended.
#[derive(Debug, Clone, Copy)]
pub struct AnsweredCall<'a> {
    pub call: &'a ToolCall,
    pub info: &'a ToolCallInfo,
    pub result: &'a ToolResult,
}

/// Returns in how many replies a call was made with the same result, its own included; 1 for a call that changed
/// something. A prompt of the user and another call that may change something start anew.
pub fn count_equal_calls(entries: &[TranscriptEntry], ended: AnsweredCall<'_>) -> usize {
    if !is_without_effect(ended) {
        return 1;
    }
    let mut results: HashMap<CallId, (&ToolCallInfo, &ToolResult)> = HashMap::new();
    // From the last one to the first.
    let mut equal_calls: Vec<&ToolResult> = Vec::new();
    'entries: for entry in entries.iter().rev() {
        match entry {
            TranscriptEntry::Prompt(prompt) if prompt.has_user_content() => break,
            TranscriptEntry::Prompt(_) => {}
            TranscriptEntry::Result { call, info, result } => {
                results.insert(*call, (info, result));
            }
            TranscriptEntry::Reply(reply) => {
                // A reply counts once: its model had not seen the results of its other calls.
                let mut is_counted = reply.calls.iter().any(|call| call.id == ended.call.id);
                for call in reply.calls.iter().rev() {
                    match results.get(&call.id) {
                        Some((_, result)) if is_same_call(call, ended.call) => {
                            equal_calls.extend((!is_counted).then_some(result));
                            is_counted = true;
                        }
                        Some((info, _)) if may_change_files(&info.access) => break 'entries,
                        Some(_) | None => {}
                    }
                }
            }
        }
    }
    // Later results have notes, so the earliest one with this result is searched.
    let is_equal = |other: &&ToolResult| {
        other.status == ended.result.status && other.for_model == ended.result.for_model
    };
    let n_since_earliest = equal_calls.iter().rposition(is_equal).map_or(0, |at| at + 1);
    n_since_earliest + 1
}

/// Whether a call changed nothing: it reads, or it failed to change a file or found it as it should be.
fn is_without_effect(ended: AnsweredCall<'_>) -> bool {
    match ended.info.access {
        ToolAccess::Reads(_) => true,
        ToolAccess::Writes(_) => {
            !ended.result.for_client.iter().any(|content| matches!(content, ToolCallContent::Diff { .. }))
        }
        ToolAccess::Nothing
        | ToolAccess::Runs(_)
        | ToolAccess::Calls { .. }
        | ToolAccess::Fetches { .. }
        | ToolAccess::Searches => false,
    }
}

fn is_same_call(call: &ToolCall, other: &ToolCall) -> bool {
    call.id != other.id && call.name == other.name && call.arguments == other.arguments
}

fn may_change_files(access: &ToolAccess) -> bool {
    match access {
        ToolAccess::Writes(_) | ToolAccess::Runs(_) | ToolAccess::Calls { .. } => true,
        ToolAccess::Nothing | ToolAccess::Reads(_) | ToolAccess::Fetches { .. } | ToolAccess::Searches => {
            false
        }
    }
}

/// Adds to the result of a call what a model is told that has made it this many times.
pub fn note_equal_calls(result: &mut ToolResult, n_equal: usize) {
    let note = |text: &str| ContentPart::Text(text.to_owned());
    match n_equal {
        0 | 1 => {}
        2 => result.for_model.push(note(SECOND_NOTE)),
        3 => result.for_model = vec![note(THIRD_NOTE)],
        _ => result.for_model = vec![note(LAST_NOTE)],
    }
}
