//! The message that replaces the removed entries in the model's view.

use super::{clip::clip_middle, tag_escape::escape_closing_tag};
use crate::{ContentPart, CrowPart, MessageId, Prompt, ToolResult, link};

/// Bytes of one verbatim prompt; a longer one is mostly pasted text.
const VERBATIM_BYTES_MAX: usize = 12 * 1024;

/// Bytes of an attached text; its file can be read again.
const ATTACHED_BYTES_MAX: usize = 512;

const INTRODUCTION: &str = "This conversation was compacted: what came before the messages below is left out. The tool \
                     query_session reads it, query_memory finds words in it.";
const USER_HEADING: &str = "What the person said in it, word for word, oldest first:";
const CROW_HEADING: &str = "What Crow said by itself, oldest first:";
const SUMMARY_HEADING: &str = "What happened in it, as you noted it down:";
const REMOVED_TEXT: &str =
    "(this output was removed to save room; query_session reads it, or run the call again for less)";

/// Returns the result that replaces a pruned one.
pub(crate) fn removed_output() -> ToolResult {
    ToolResult::success(REMOVED_TEXT)
}

/// Builds the message before the entries that stay. It begins with the parts about the session, as the removed prompts
/// did, so that a provider finds them in its cache.
pub(crate) fn summary_message<'a>(
    context: Vec<ContentPart>,
    verbatim_prompts: impl IntoIterator<Item = &'a Prompt>,
    summary: Option<&str>,
) -> Prompt {
    let mut text = INTRODUCTION.to_owned();
    let mut images = Vec::new();
    let (user_prompts, crow_prompts): (Vec<&Prompt>, Vec<&Prompt>) =
        verbatim_prompts.into_iter().partition(|prompt| prompt.has_user_content());
    // A prompt about the session only has nothing to show.
    let crow_prompts =
        crow_prompts.into_iter().filter(|prompt| !render_additions(prompt).is_empty()).collect();
    for (title, tag, prompts) in [(USER_HEADING, "said", user_prompts), (CROW_HEADING, "added", crow_prompts)]
    {
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
        text.push_str(&format!("\n\n{SUMMARY_HEADING}\n\n<summary>\n{summary}\n</summary>"));
    }
    let parts = context.into_iter().chain([ContentPart::Text(text)]).chain(images).collect();
    Prompt { id: MessageId::new("foreword"), parts }
}

/// Returns a prompt as the summary message contains it: its text up to a limit, excerpts of the attachments, and its
/// images.
pub(super) fn shorten_prompt(prompt: &Prompt) -> Prompt {
    let parts =
        std::iter::once(ContentPart::Text(prompt_excerpt(prompt))).chain(prompt_images(prompt)).collect();
    Prompt { id: prompt.id.clone(), parts }
}

fn prompt_images(prompt: &Prompt) -> impl Iterator<Item = ContentPart> {
    prompt.parts.iter().filter(|part| matches!(part, ContentPart::Image { .. })).cloned()
}

/// Returns the text of a prompt, shortened if it is too long; for a prompt by Crow alone, excerpts of its parts.
fn prompt_excerpt(prompt: &Prompt) -> String {
    match prompt.has_user_content() {
        true => clip_middle(&render_prompt(prompt), VERBATIM_BYTES_MAX),
        false => render_additions(prompt),
    }
}

/// Renders the text of a prompt, excerpts of its attachments, and the names of the parts that Crow added.
pub(super) fn render_prompt(prompt: &Prompt) -> String {
    let texts = prompt.parts.iter().filter(|part| !is_context(part)).map(|part| match part {
        ContentPart::FromCrow { kind: what, .. } => format!("[added by Crow: {what}]"),
        ContentPart::Text(text) => text.clone(),
        ContentPart::Image { .. } => "[an image]".to_owned(),
        ContentPart::Link { uri, name, .. } => link::format_link(uri, name),
        ContentPart::Resource { uri, text, .. } => {
            format!("[attached: {uri}]\n{}", clip_middle(text, ATTACHED_BYTES_MAX))
        }
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn is_context(part: &ContentPart) -> bool {
    part.crow_part().is_some_and(CrowPart::is_session_context)
}

/// Renders excerpts of the parts that Crow added to a prompt.
pub(super) fn render_additions(prompt: &Prompt) -> String {
    let texts = prompt.parts.iter().filter(|part| !is_context(part)).filter_map(|part| match part {
        ContentPart::FromCrow { kind: what, text } => {
            Some(format!("[added by Crow: {what}]\n{}", clip_middle(text, ATTACHED_BYTES_MAX)))
        }
        ContentPart::Text(_)
        | ContentPart::Image { .. }
        | ContentPart::Link { .. }
        | ContentPart::Resource { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
