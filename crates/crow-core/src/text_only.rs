//! A conversation for a model that reads text only: a note where an image stood. What is stored keeps its images.

use crate::{
    CallId, ContentPart, InvalidEntry, ModelStep, ModelTranscript, Prompt, ToolAccess, ToolCall,
    ToolCallInfo, ToolKind, ToolResult, Transcript, TranscriptEntry, escape_hidden_start,
};

/// Characters of an image's name in its note.
const NAME_CHARS_MAX: usize = 100;

/// Arguments of calls that name what an image was read from.
const SOURCES: [&str; 3] = ["file_path", "path", "url"];

/// Returns the conversation with notes for its images; `None` where it has no images.
pub fn without_images(transcript: ModelTranscript<'_>) -> Result<Option<Transcript>, InvalidEntry> {
    let has_images = |step: ModelStep<'_>| match step {
        ModelStep::Prompt(prompt) => prompt.parts.iter().any(is_image),
        ModelStep::Result { outcome, .. } => outcome.for_model.iter().any(is_image),
        ModelStep::Reply(_) => false,
    };
    if !transcript.steps().any(has_images) {
        return Ok(None);
    }
    let mut text_only = Transcript::new(transcript.system());
    let mut calls: &[ToolCall] = &[];
    for step in transcript.steps() {
        text_only.push(match step {
            ModelStep::Prompt(prompt) => {
                TranscriptEntry::Prompt(Prompt { id: prompt.id.clone(), parts: noted(&prompt.parts, None) })
            }
            ModelStep::Reply(reply) => {
                calls = &reply.calls;
                TranscriptEntry::Reply(reply.clone())
            }
            ModelStep::Result { call, outcome } => result(calls, call, outcome),
        })?;
    }
    Ok(Some(text_only))
}

fn result(calls: &[ToolCall], id: CallId, outcome: &ToolResult) -> TranscriptEntry {
    let source = calls.iter().find(|call| call.id == id).and_then(|call| {
        let arguments = call.arguments.to_object();
        let source = SOURCES.iter().find_map(|name| arguments.get(*name)?.as_str());
        source.map(name_in)
    });
    let for_model = noted(&outcome.for_model, source.as_deref());
    // No model is told of these.
    let facets = ToolCallInfo {
        title: String::new(),
        kind: ToolKind::Other,
        locations: Vec::new(),
        touch: ToolAccess::Nothing,
    };
    TranscriptEntry::Result { call: id, facets, outcome: ToolResult { for_model, ..outcome.clone() } }
}

fn is_image(part: &ContentPart) -> bool {
    matches!(part, ContentPart::Image { .. })
}

fn noted(parts: &[ContentPart], source: Option<&str>) -> Vec<ContentPart> {
    let mut name = source.map(str::to_owned);
    let notes = parts.iter().map(|part| match part {
        ContentPart::Image { mime, data } => ContentPart::Text(note(name.as_deref(), mime, data)),
        ContentPart::Link { uri, name: title, .. } => {
            // An image that a link leads to stands behind it.
            name = Some(if title.is_empty() { name_in(uri) } else { title.clone() });
            part.clone()
        }
        ContentPart::Text(_) | ContentPart::Resource { .. } | ContentPart::FromCrow { .. } => {
            name = source.map(str::to_owned);
            part.clone()
        }
    });
    notes.collect()
}

/// Returns the last part of a path or an address.
fn name_in(path: &str) -> String {
    let path = path.split(['?', '#']).next().unwrap_or(path);
    path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path).to_owned()
}

fn note(name: Option<&str>, mime: &str, data: &str) -> String {
    let n_bytes = data.trim_end_matches('=').len() * 3 / 4;
    let name =
        name.map(|name| format!("{}, ", escape_hidden_start(name, NAME_CHARS_MAX))).unwrap_or_default();
    format!("(an image was here: {name}{mime}, {n_bytes} bytes; this model reads text only)")
}

#[cfg(test)]
mod tests;
