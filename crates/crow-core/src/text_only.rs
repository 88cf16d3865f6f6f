//! Replaces images by notes for a model without image support. The stored transcript keeps its images.

use crate::{
    CallId, ContentPart, InvalidEntry, ModelStep, ModelTranscript, Prompt, ToolAccess, ToolCall,
    ToolCallInfo, ToolKind, ToolResult, Transcript, TranscriptEntry, escape_hidden_start,
};

/// Characters of an image's name in its note.
const NAME_CHARS_MAX: usize = 100;

/// Arguments that name the source of an image.
const SOURCES: [&str; 3] = ["file_path", "path", "url"];

/// Returns the transcript with notes instead of images; `None` if it has no images.
pub fn without_images(transcript: ModelTranscript<'_>) -> Result<Option<Transcript>, InvalidEntry> {
    let has_images = |step: ModelStep<'_>| match step {
        ModelStep::Prompt(prompt) => prompt.parts.iter().any(is_image),
        ModelStep::Result { result, .. } => result.for_model.iter().any(is_image),
        ModelStep::Reply(_) => false,
    };
    if !transcript.steps().any(has_images) {
        return Ok(None);
    }
    let mut text_only = Transcript::new(transcript.system());
    let mut calls: &[ToolCall] = &[];
    for step in transcript.steps() {
        text_only.push(match step {
            ModelStep::Prompt(prompt) => TranscriptEntry::Prompt(Prompt {
                id: prompt.id.clone(),
                parts: parts_with_notes(&prompt.parts, None),
            }),
            ModelStep::Reply(reply) => {
                calls = &reply.calls;
                TranscriptEntry::Reply(reply.clone())
            }
            ModelStep::Result { call, result } => result_with_notes(calls, call, result),
        })?;
    }
    Ok(Some(text_only))
}

fn result_with_notes(calls: &[ToolCall], id: CallId, result: &ToolResult) -> TranscriptEntry {
    let source = calls.iter().find(|call| call.id == id).and_then(|call| {
        let arguments = call.arguments.to_object();
        let source = SOURCES.iter().find_map(|name| arguments.get(*name)?.as_str());
        source.map(last_path_part)
    });
    let for_model = parts_with_notes(&result.for_model, source.as_deref());
    // These are not sent to the model.
    let info = ToolCallInfo {
        title: String::new(),
        kind: ToolKind::Other,
        locations: Vec::new(),
        access: ToolAccess::Nothing,
    };
    TranscriptEntry::Result { call: id, info, result: ToolResult { for_model, ..result.clone() } }
}

fn is_image(part: &ContentPart) -> bool {
    matches!(part, ContentPart::Image { .. })
}

fn parts_with_notes(parts: &[ContentPart], source: Option<&str>) -> Vec<ContentPart> {
    let mut name = source.map(str::to_owned);
    let notes = parts.iter().map(|part| match part {
        ContentPart::Image { mime, data } => ContentPart::Text(image_note(name.as_deref(), mime, data)),
        ContentPart::Link { uri, name: title, .. } => {
            // The image of a link follows it.
            name = Some(if title.is_empty() { last_path_part(uri) } else { title.clone() });
            part.clone()
        }
        ContentPart::Text(_) | ContentPart::Resource { .. } | ContentPart::FromCrow { .. } => {
            name = source.map(str::to_owned);
            part.clone()
        }
    });
    notes.collect()
}

/// Returns the last part of a path or URL.
fn last_path_part(path: &str) -> String {
    let path = path.split(['?', '#']).next().unwrap_or(path);
    path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path).to_owned()
}

fn image_note(name: Option<&str>, mime: &str, data: &str) -> String {
    let n_bytes = data.trim_end_matches('=').len() * 3 / 4;
    let name =
        name.map(|name| format!("{}, ", escape_hidden_start(name, NAME_CHARS_MAX))).unwrap_or_default();
    format!("(an image was here: {name}{mime}, {n_bytes} bytes; this model reads text only)")
}

#[cfg(test)]
mod tests;
