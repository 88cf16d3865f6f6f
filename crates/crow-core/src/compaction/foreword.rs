//! What the model is told instead of what it no longer sees.

use super::{clip::clip, quote::quote};
use crate::{MessageId, Outcome, Part, Prompt, link};

/// Bytes of one earlier prompt that stay word for word; one that is longer is mostly pasted.
const SAID_BYTES_MAX: usize = 12 * 1024;

/// Bytes of an attached text that stay; the file it came from can be read again.
const ATTACHED_BYTES_MAX: usize = 512;

const BEGIN: &str = "This conversation was compacted: what came before the messages below is left out. The tool \
                     query_session reads it, query_memory finds words in it.";
const SAID: &str = "What the person said in it, word for word, oldest first:";
const SUMMARY: &str = "What happened in it, as you noted it down:";
const REMOVED: &str =
    "(this output was removed to save room; query_session reads it, or run the call again for less)";

/// What stands for the output of a call that was pruned.
pub(crate) fn removed() -> Outcome {
    Outcome::done(REMOVED)
}

/// Makes the message that stands before the entries that are kept.
pub(crate) fn foreword<'a>(said: impl IntoIterator<Item = &'a Prompt>, summary: Option<&str>) -> Prompt {
    let mut text = BEGIN.to_owned();
    let mut images = Vec::new();
    for (index, prompt) in said.into_iter().enumerate() {
        if index == 0 {
            text.push_str("\n\n");
            text.push_str(SAID);
        }
        text.push_str("\n\n<said>\n");
        text.push_str(&quote("said", &words(prompt)));
        text.push_str("\n</said>");
        images.extend(prompt.parts.iter().filter(|part| matches!(part, Part::Image { .. })).cloned());
    }
    if let Some(summary) = summary {
        let summary = quote("summary", summary);
        text.push_str(&format!("\n\n{SUMMARY}\n\n<summary>\n{summary}\n</summary>"));
    }
    let parts = std::iter::once(Part::Text(text)).chain(images).collect();
    Prompt { id: MessageId::new("foreword"), parts }
}

/// A prompt as it stays in front: its words whole unless there are very many, what was attached by its beginning and
/// end, its images.
pub(super) fn kept(prompt: &Prompt) -> Prompt {
    let images = prompt.parts.iter().filter(|part| matches!(part, Part::Image { .. })).cloned();
    let parts = std::iter::once(Part::Text(words(prompt))).chain(images).collect();
    Prompt { id: prompt.id.clone(), parts }
}

/// The words of a prompt, shortened where they are too many.
fn words(prompt: &Prompt) -> String {
    clip(&all_words(prompt), SAID_BYTES_MAX)
}

/// All words of a prompt, and how what was attached begins and ends.
pub(super) fn all_words(prompt: &Prompt) -> String {
    let texts = prompt.parts.iter().map(|part| match part {
        Part::Text(text) => text.clone(),
        Part::Image { .. } => "[an image]".to_owned(),
        Part::Link { uri, name, .. } => link::spell(uri, name),
        Part::Resource { uri, text, .. } => format!("[attached: {uri}]\n{}", clip(text, ATTACHED_BYTES_MAX)),
    });
    texts.collect::<Vec<_>>().join("\n")
}
