//! Detects a model that reads the same again although nothing has changed, and says what it is told: small models call
//! tools again instead of answering.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use crate::{CallId, ContentPart, ToolAccess, ToolCall, ToolCallInfo, ToolResult, TranscriptEntry};

/// Equal reads after which the turn ends. The notes before are for small models; one that ignores three does not stop.
pub(super) const READS_MAX: usize = 5;

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
pub struct EndedRead<'a> {
    pub call: &'a ToolCall,
    pub info: &'a ToolCallInfo,
    pub result: &'a ToolResult,
}

/// Returns how many times a read was made since the last change with the same result, itself included; 1 for a call that
/// does not only read. A prompt of the user and a call that may change something start anew.
pub fn count_equal_reads(entries: &[TranscriptEntry], ended: EndedRead<'_>) -> usize {
    if !matches!(ended.info.access, ToolAccess::Reads(_)) {
        return 1;
    }
    let mut results: HashMap<CallId, &ToolResult> = HashMap::new();
    let mut n_equal = 1;
    let mut first_result = None;
    for entry in entries.iter().rev() {
        match entry {
            TranscriptEntry::Prompt(prompt) if prompt.has_user_content() => break,
            TranscriptEntry::Prompt(_) => {}
            TranscriptEntry::Result { info, .. } if may_change_files(&info.access) => break,
            TranscriptEntry::Result { call, result, .. } => {
                results.insert(*call, result);
            }
            TranscriptEntry::Reply(reply) => {
                for call in reply.calls.iter().rev().filter(|call| is_same_call(call, ended.call)) {
                    let Some(result) = results.get(&call.id) else { continue };
                    first_result = Some(*result);
                    n_equal += 1;
                }
            }
        }
    }
    // Later results have notes, so the first one is compared.
    let is_unchanged = first_result
        .is_none_or(|first| first.status == ended.result.status && first.for_model == ended.result.for_model);
    if is_unchanged { n_equal } else { 1 }
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

/// Adds to the result of a read what a model is told that has made it this many times.
pub fn note_equal_reads(result: &mut ToolResult, n_equal: usize) {
    let note = |text: &str| ContentPart::Text(text.to_owned());
    match n_equal {
        0 | 1 => {}
        2 => result.for_model.push(note(SECOND_NOTE)),
        3 => result.for_model = vec![note(THIRD_NOTE)],
        _ => result.for_model = vec![note(LAST_NOTE)],
    }
}
