//! Converts a server's result to a tool result of limited size. Pure.

use std::fmt::Write as _;

use crow_core::{
    ContentPart, ToolCallContent, ToolCallStatus, ToolResult, escape_hidden_start, read_image_part,
};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

/// About 25,000 tokens: one call must not fill a model's context window.
const TEXT_BYTES_MAX: usize = 100_000;

/// Providers' limit for an image in base64.
const IMAGE_BYTES_MAX: usize = 5_000_000;

/// A handful of screenshots; providers reject requests that are too large as a whole.
const IMAGES_MAX: usize = 8;

/// Characters of a MIME type from a server.
const MIME_CHARS_MAX: usize = 80;

/// Content blocks of one result; a model reads no more.
const BLOCKS_MAX: usize = 1000;

/// A result as far as the SDK could parse it.
pub(super) enum RawCallResult {
    Result(CallToolResult),
    /// A result that the SDK does not know.
    Unrecognized(Value),
}

/// Converts a result.
pub(super) fn convert_result(answer: RawCallResult) -> ToolResult {
    let mut collector = ContentCollector::default();
    let is_error = match answer {
        RawCallResult::Result(result) => {
            let is_empty = result.content.is_empty();
            result.content.into_iter().for_each(|block| collector.add_block(block));
            collector.add_structured(result.structured_content.filter(|_| is_empty));
            result.is_error
        }
        RawCallResult::Unrecognized(Value::Object(mut result)) => {
            let is_error = result.get("isError").and_then(Value::as_bool);
            match result.remove("content") {
                Some(Value::Array(blocks)) if !blocks.is_empty() => {
                    blocks.iter().for_each(|block| collector.add_value(block));
                }
                Some(Value::String(text)) => collector.add_text(&text),
                _ => collector.add_structured(result.remove("structuredContent")),
            }
            is_error
        }
        RawCallResult::Unrecognized(other) => {
            collector.add_text(&other.to_string());
            None
        }
    };
    collector.into_tool_result(if is_error == Some(true) {
        ToolCallStatus::Failed
    } else {
        ToolCallStatus::Completed
    })
}

/// Collects a server's content up to a model's limits.
#[derive(Default)]
pub(super) struct ContentCollector {
    parts: Vec<ContentPart>,
    /// The text since the last image.
    text: String,
    n_text_bytes: usize,
    n_images: usize,
    n_blocks: usize,
}

impl ContentCollector {
    /// Adds a content block of any kind.
    pub(super) fn add_value(&mut self, block: &Value) {
        if self.n_blocks >= BLOCKS_MAX {
            self.n_blocks += 1;
            return;
        }
        match serde_json::from_value(block.clone()) {
            Ok(block) => self.add_block(block),
            Err(_) => {
                self.n_blocks += 1;
                self.add_text(&block.to_string());
            }
        }
    }

    fn add_block(&mut self, block: ContentBlock) {
        self.n_blocks += 1;
        if self.n_blocks > BLOCKS_MAX {
            return;
        }
        match block {
            ContentBlock::Text(text) => self.add_text(&text.text),
            ContentBlock::Image(image) => self.add_image(&image.mime_type, &image.data),
            ContentBlock::Audio(audio) => self.add_omission_note("audio", &audio.mime_type, audio.data.len()),
            ContentBlock::Resource(embedded) => self.add_resource(embedded.resource),
            ContentBlock::ResourceLink(link) => {
                let mut line = format!("resource {}", link.uri);
                for detail in [Some(link.name), link.description].into_iter().flatten() {
                    // Writing to a string cannot fail.
                    let _ = write!(line, " ({detail})");
                }
                self.add_text(&line);
            }
            other => self.add_text(&serde_json::to_string(&other).unwrap_or_default()),
        }
    }

    pub(super) fn add_resource(&mut self, resource: ResourceContents) {
        match resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                self.add_text(&format!("resource {uri}:\n{text}"));
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                self.add_text(&format!("resource {uri}:"));
                self.add_image(mime_type.as_deref().unwrap_or("application/octet-stream"), &blob);
            }
            _ => self.add_text("(a resource of an unknown kind)"),
        }
    }

    /// Adds text on a new line, as far as there is room.
    pub(super) fn add_text(&mut self, text: &str) {
        let text = text.trim_end_matches('\n');
        if text.is_empty() {
            return;
        }
        let separator = if self.text.is_empty() { "" } else { "\n" };
        for piece in [separator, text] {
            let room = TEXT_BYTES_MAX.saturating_sub(self.n_text_bytes);
            self.n_text_bytes += piece.len();
            self.text.push_str(&piece[..piece.floor_char_boundary(room)]);
        }
    }

    fn add_image(&mut self, mime: &str, data: &str) {
        let fits = data.len() <= IMAGE_BYTES_MAX && self.n_images < IMAGES_MAX;
        let Some(Ok(image)) = fits.then(|| read_image_part(mime, data)) else {
            return self.add_omission_note("data", mime, data.len());
        };
        self.n_images += 1;
        self.flush_text();
        self.parts.push(image);
    }

    fn add_structured(&mut self, value: Option<Value>) {
        if let Some(value) = value {
            self.add_text(&serde_json::to_string_pretty(&value).unwrap_or_default());
        }
    }

    fn add_omission_note(&mut self, what: &str, mime: &str, n_base64: usize) {
        let n_bytes = n_base64 / 4 * 3;
        let mime = escape_hidden_start(mime, MIME_CHARS_MAX);
        self.add_text(&format!("({what} of type {mime}, about {n_bytes} bytes, not shown)"));
    }

    fn flush_text(&mut self) {
        if !self.text.is_empty() {
            self.parts.push(ContentPart::Text(std::mem::take(&mut self.text)));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.text.is_empty()
    }

    /// Returns the parts in order.
    pub(super) fn into_parts(mut self) -> Vec<ContentPart> {
        if self.n_text_bytes > TEXT_BYTES_MAX {
            let n_bytes = self.n_text_bytes;
            let _ = write!(self.text, "\n(cut: the first {TEXT_BYTES_MAX} of {n_bytes} bytes are shown)");
        }
        if self.n_blocks > BLOCKS_MAX {
            let n_blocks = self.n_blocks;
            let _ = write!(self.text, "\n(cut: the first {BLOCKS_MAX} of {n_blocks} pieces are shown)");
        }
        self.flush_text();
        self.parts
    }

    /// Converts the content to a tool result.
    pub(super) fn into_tool_result(self, status: ToolCallStatus) -> ToolResult {
        let mut parts = self.into_parts();
        if parts.is_empty() {
            parts.push(ContentPart::Text("(no output)".to_owned()));
        }
        let client_content = parts.iter().filter_map(|part| match part {
            ContentPart::Text(text) => Some(ToolCallContent::Text(text.clone())),
            ContentPart::Image { mime, data } => {
                Some(ToolCallContent::Image { mime: mime.clone(), data: data.clone() })
            }
            ContentPart::Link { .. } | ContentPart::Resource { .. } | ContentPart::FromCrow { .. } => None,
        });
        ToolResult { status, for_client: client_content.collect(), for_model: parts, plan: None }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bytes_for_model(result: &ToolResult) -> usize {
        let texts = result.for_model.iter().map(|part| match part {
            ContentPart::Text(text) => text.len(),
            ContentPart::Image { .. }
            | ContentPart::Link { .. }
            | ContentPart::Resource { .. }
            | ContentPart::FromCrow { .. } => 0,
        });
        texts.sum()
    }

    /// The model's share of a result is limited, however many blocks it has, and the total is shown.
    #[test]
    fn blocks_and_separators_count_toward_the_limit() {
        let block = json!({"type": "text", "text": "a"});
        let unrecognized = json!({"type": "unknown"});
        for block in [block, unrecognized] {
            let blocks = vec![block; 100_000];
            let answers = [
                RawCallResult::Unrecognized(json!({ "content": blocks })),
                RawCallResult::Result(CallToolResult::success(
                    blocks.iter().filter_map(|block| serde_json::from_value(block.clone()).ok()).collect(),
                )),
            ];
            for answer in answers {
                let result = convert_result(answer);
                assert!(bytes_for_model(&result) <= TEXT_BYTES_MAX + 200, "{}", bytes_for_model(&result));
                let last = format!("{:?}", result.for_model.last());
                assert!(
                    last.contains("of 100000 pieces are shown") || last.contains("no output"),
                    "{last:.200}"
                );
            }
        }
    }

    #[test]
    fn text_limit_includes_line_endings() {
        let blocks = vec![json!({"type": "text", "text": "ab"}); 900];
        let mut all = vec![json!({"type": "text", "text": "x".repeat(TEXT_BYTES_MAX - 100)})];
        all.extend(blocks);
        let result = convert_result(RawCallResult::Unrecognized(json!({ "content": all })));
        let n_bytes = TEXT_BYTES_MAX - 100 + 900 * 3;
        let note = format!("\n(cut: the first {TEXT_BYTES_MAX} of {n_bytes} bytes are shown)");
        assert_eq!(bytes_for_model(&result), TEXT_BYTES_MAX + note.len());
    }
}
