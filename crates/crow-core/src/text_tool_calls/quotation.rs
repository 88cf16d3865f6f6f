//! Distinguishes an intended call from a quotation. A file, a page or a result can contain text that looks like a
//! call; a model that repeats it must not execute it.

use super::written_call::WrittenCall;
use crate::{ContentPart, ModelStep, ModelTranscript, Prompt, ToolResult};

/// Text before a tool name in a call, in all formats.
const BEFORE_NAMES: [&str; 7] =
    ["name", "tool", "function", "function=", "functions.", "[TOOL_CALLS]", "<|tool_call_begin|>"];

/// Whether a text of the model's input contains a call of the same tool with all words of this call. The model's own
/// replies do not count.
pub(super) fn is_quoted(call: &WrittenCall<'_>, transcript: ModelTranscript<'_>) -> bool {
    let words: Vec<&str> = call.text.split(is_between_words).filter(|word| !word.is_empty()).collect();
    let is_call_text =
        |text: &str| is_named(&call.name, text) && words.iter().all(|word| text.contains(word));
    is_call_text(transcript.system())
        || transcript.steps().any(|step| match step {
            ModelStep::Prompt(Prompt { parts, .. })
            | ModelStep::Result { result: ToolResult { for_model: parts, .. }, .. } => {
                parts.iter().filter_map(part_text).any(is_call_text)
            }
            ModelStep::Reply(_) => false,
        })
}

/// White space, brackets and escapes may differ in a quotation.
fn is_between_words(char: char) -> bool {
    char.is_whitespace() || "{}[]<>\"',\\:=".contains(char)
}

/// Whether a text names a tool as a call does. A line number may precede the name.
fn is_named(name: &str, text: &str) -> bool {
    let is_between = |char: char| char.is_whitespace() || char.is_ascii_digit() || "\"'\\:".contains(char);
    text.match_indices(name).any(|(place, _)| {
        let before = text[..place].trim_end_matches(is_between);
        BEFORE_NAMES.iter().any(|prefix| before.ends_with(prefix))
    })
}

fn part_text(part: &ContentPart) -> Option<&str> {
    match part {
        ContentPart::Text(text) | ContentPart::Resource { text, .. } | ContentPart::FromCrow { text, .. } => {
            Some(text)
        }
        ContentPart::Image { .. } | ContentPart::Link { .. } => None,
    }
}
