//! The part of a tool's output that a summary reads.

use super::clip::clip_middle;
use crate::{ContentPart, ToolResult};

/// Bytes of one tool output; the reply after it mostly contains what matters.
const OUTPUT_BYTES_MAX: usize = 2 * 1024;

/// Room for the note of what was left out, so that a shortened output is not shortened again.
const NOTE_BYTES_MAX: usize = 64;

/// Returns what a summary reads of an output.
pub(super) fn clip_output(result: &ToolResult) -> String {
    let text = render_output(result);
    match text.len() {
        0..=OUTPUT_BYTES_MAX => text,
        _ => clip_middle(&text, OUTPUT_BYTES_MAX - NOTE_BYTES_MAX),
    }
}

/// Reduces an output to what a summary reads of it.
pub(crate) fn shorten_output(result: &ToolResult) -> ToolResult {
    ToolResult {
        status: result.status,
        for_model: vec![ContentPart::Text(clip_output(result))],
        for_client: Vec::new(),
        plan: None,
    }
}

fn render_output(result: &ToolResult) -> String {
    let texts = result.for_model.iter().map(|part| match part {
        ContentPart::Text(text) | ContentPart::Resource { text, .. } | ContentPart::FromCrow { text, .. } => {
            text.as_str()
        }
        ContentPart::Image { .. } => "[an image]",
        ContentPart::Link { uri, .. } => uri.as_str(),
    });
    texts.collect::<Vec<_>>().join("\n")
}
