//! What the model is told instead of what it no longer sees.

use super::{clip::clip_middle, quote::escape_closing_tag};
use crate::{ContentPart, MessageId, Prompt, ToolResult, link};

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
pub(crate) fn removed_output() -> ToolResult {
    ToolResult::success(REMOVED)
}

/// Makes the message that stands before the entries that are kept.
pub(crate) fn summary_message<'a>(
    said: impl IntoIterator<Item = &'a Prompt>,
    summary: Option<&str>,
) -> Prompt {
    let mut text = BEGIN.to_owned();
    let mut images = Vec::new();
    let (said, ours): (Vec<&Prompt>, Vec<&Prompt>) =
        said.into_iter().partition(|prompt| prompt.has_user_content());
    for (title, tag, prompts) in [(SAID, "said", said), (ADDED, "added", ours)] {
        if !prompts.is_empty() {
            text.push_str(&format!("\n\n{title}"));
        }
        for prompt in prompts {
            text.push_str(&format!(
                "\n\n<{tag}>\n{}\n</{tag}>",
                escape_closing_tag(tag, &prompt_excerpt(prompt))
            ));
            images.extend(prompt_images(prompt));
        }
    }
    if let Some(summary) = summary {
        let summary = escape_closing_tag("summary", summary);
        text.push_str(&format!("\n\n{SUMMARY}\n\n<summary>\n{summary}\n</summary>"));
    }
    let parts = std::iter::once(ContentPart::Text(text)).chain(images).collect();
    Prompt { id: MessageId::new("foreword"), parts }
}

/// A prompt as it stays in front: its words whole unless there are very many, what was attached by its beginning and
/// end, its images.
pub(super) fn shorten_prompt(prompt: &Prompt) -> Prompt {
    let parts =
        std::iter::once(ContentPart::Text(prompt_excerpt(prompt))).chain(prompt_images(prompt)).collect();
    Prompt { id: prompt.id.clone(), parts }
}

fn prompt_images(prompt: &Prompt) -> impl Iterator<Item = ContentPart> {
    prompt.parts.iter().filter(|part| matches!(part, ContentPart::Image { .. })).cloned()
}

/// The words of a prompt, shortened where they are too many; of one that is Crow's alone how it begins and ends.
fn prompt_excerpt(prompt: &Prompt) -> String {
    match prompt.has_user_content() {
        true => clip_middle(&render_prompt(prompt), SAID_BYTES_MAX),
        false => render_additions(prompt),
    }
}

/// All words of a prompt, how what was attached begins and ends, and the names of what Crow added.
pub(super) fn render_prompt(prompt: &Prompt) -> String {
    let texts = prompt.parts.iter().map(|part| match part {
        ContentPart::FromCrow { what, .. } => format!("[added by Crow: {what}]"),
        ContentPart::Text(text) => text.clone(),
        ContentPart::Image { .. } => "[an image]".to_owned(),
        ContentPart::Link { uri, name, .. } => link::format_link(uri, name),
        ContentPart::Resource { uri, text, .. } => {
            format!("[attached: {uri}]\n{}", clip_middle(text, ATTACHED_BYTES_MAX))
        }
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// How that begins and ends which Crow added to a prompt.
pub(super) fn render_additions(prompt: &Prompt) -> String {
    let texts = prompt.parts.iter().filter_map(|part| match part {
        ContentPart::FromCrow { what, text } => {
            Some(format!("[added by Crow: {what}]\n{}", clip_middle(text, ATTACHED_BYTES_MAX)))
        }
        ContentPart::Text(_)
        | ContentPart::Image { .. }
        | ContentPart::Link { .. }
        | ContentPart::Resource { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
