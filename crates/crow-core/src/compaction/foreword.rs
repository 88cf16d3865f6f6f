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
const ADDED: &str = "What Crow said by itself, oldest first:";
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
    let (said, ours): (Vec<&Prompt>, Vec<&Prompt>) = said.into_iter().partition(|prompt| prompt.is_said());
    for (title, tag, prompts) in [(SAID, "said", said), (ADDED, "added", ours)] {
        if !prompts.is_empty() {
            text.push_str(&format!("\n\n{title}"));
        }
        for prompt in prompts {
            text.push_str(&format!("\n\n<{tag}>\n{}\n</{tag}>", quote(tag, &shown(prompt))));
            images.extend(images_of(prompt));
        }
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
    let parts = std::iter::once(Part::Text(shown(prompt))).chain(images_of(prompt)).collect();
    Prompt { id: prompt.id.clone(), parts }
}

fn images_of(prompt: &Prompt) -> impl Iterator<Item = Part> {
    prompt.parts.iter().filter(|part| matches!(part, Part::Image { .. })).cloned()
}

/// The words of a prompt, shortened where they are too many; of one that is Crow's alone how it begins and ends.
fn shown(prompt: &Prompt) -> String {
    match prompt.is_said() {
        true => clip(&all_words(prompt), SAID_BYTES_MAX),
        false => added(prompt),
    }
}

/// All words of a prompt, how what was attached begins and ends, and the names of what Crow added.
pub(super) fn all_words(prompt: &Prompt) -> String {
    let texts = prompt.parts.iter().map(|part| match part {
        Part::FromCrow { what, .. } => format!("[added by Crow: {what}]"),
        Part::Text(text) => text.clone(),
        Part::Image { .. } => "[an image]".to_owned(),
        Part::Link { uri, name, .. } => link::spell(uri, name),
        Part::Resource { uri, text, .. } => {
            format!("[attached: {uri}]\n{}", clip(text, ATTACHED_BYTES_MAX))
        }
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// How that begins and ends which Crow added to a prompt.
pub(super) fn added(prompt: &Prompt) -> String {
    let texts = prompt.parts.iter().filter_map(|part| match part {
        Part::FromCrow { what, text } => {
            Some(format!("[added by Crow: {what}]\n{}", clip(text, ATTACHED_BYTES_MAX)))
        }
        Part::Text(_) | Part::Image { .. } | Part::Link { .. } | Part::Resource { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
