//! Tells a call that a model wants from one that it quotes. A file, a page or a result can hold a text that looks
//! like a call; a model that repeats it must not make it one.

use super::forms::WrittenCall;
use crate::{ContentPart, ModelStep, ModelTranscript, Prompt, ToolResult};

/// What stands before a tool's name where it is called, whatever the form.
const BEFORE_NAMES: [&str; 7] =
    ["name", "tool", "function", "function=", "functions.", "[TOOL_CALLS]", "<|tool_call_begin|>"];

/// Tells whether one of the texts that the model was shown calls the same tool in writing, with all the words of
/// this call in it. Its own replies do not count.
pub(super) fn is_quoted(call: &WrittenCall<'_>, shown: ModelTranscript<'_>) -> bool {
    let words: Vec<&str> = call.text.split(is_between_words).filter(|word| !word.is_empty()).collect();
    let holds = |text: &str| is_named(&call.name, text) && words.iter().all(|word| text.contains(word));
    holds(shown.system())
        || shown.steps().any(|step| match step {
            ModelStep::Prompt(Prompt { parts, .. })
            | ModelStep::Result { outcome: ToolResult { for_model: parts, .. }, .. } => {
                parts.iter().filter_map(part_text).any(holds)
            }
            ModelStep::Reply(_) => false,
        })
}

/// Blanks and brackets may differ where a text is quoted, and so may the signs that escape.
fn is_between_words(char: char) -> bool {
    char.is_whitespace() || "{}[]<>\"',\\:=".contains(char)
}

/// Tells whether a tool is named as calls do. The number of a line may stand before its name.
fn is_named(name: &str, text: &str) -> bool {
    let is_between = |char: char| char.is_whitespace() || char.is_ascii_digit() || "\"'\\:".contains(char);
    text.match_indices(name).any(|(place, _)| {
        let before = text[..place].trim_end_matches(is_between);
        BEFORE_NAMES.iter().any(|spelled| before.ends_with(spelled))
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
