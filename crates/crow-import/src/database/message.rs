//! One old message: a provider's JSON, as the Python version stored it.

use crow_core::{ContentPart, ToolArguments, repair};
use crow_store::ImportLosses;
use serde_json::{Map, Value};

use super::images::{self, ImageFolder};

/// Replaces a missing image.
const MISSING_IMAGE: &str = "(an image here is no longer available)";

/// A message as far as it can be read.
#[derive(Debug)]
pub(super) enum OldMessage {
    System(String),
    Prompt(Vec<ContentPart>),
    Reply {
        thought: String,
        text: String,
        calls: Vec<OldCall>,
    },
    Result {
        /// The provider's ID of the call.
        call: String,
        parts: Vec<ContentPart>,
    },
}

/// A call before it gets our ID.
#[derive(Debug)]
pub(super) struct OldCall {
    pub(super) provider_id: String,
    pub(super) name: String,
    pub(super) arguments: ToolArguments,
}

/// Reads a message; counts it if that is not possible. `role` is from its row.
pub(super) fn read_message(
    data: &[u8],
    role: &str,
    images: ImageFolder<'_>,
    losses: &mut ImportLosses,
) -> Option<OldMessage> {
    let Some(message) = parse_object(data) else {
        losses.messages += 1;
        return None;
    };
    let role = message.get("role").and_then(Value::as_str).unwrap_or(role);
    let content = message.get("content").unwrap_or(&Value::Null);
    match role {
        "system" => Some(OldMessage::System(parts_text(&read_parts(content, images, losses)))),
        "user" => Some(OldMessage::Prompt(read_parts(content, images, losses))),
        "assistant" => Some(OldMessage::Reply {
            thought: string_field(&message, "reasoning_content"),
            text: parts_text(&read_parts(content, images, losses)),
            calls: read_calls(message.get("tool_calls")),
        }),
        "tool" => Some(OldMessage::Result {
            call: string_field(&message, "tool_call_id"),
            parts: read_parts(content, images, losses),
        }),
        _ => {
            losses.messages += 1;
            None
        }
    }
}

/// Parses an object, which may have been encoded twice.
fn parse_object(data: &[u8]) -> Option<Map<String, Value>> {
    let read = serde_json::from_slice(data).ok();
    let read =
        read.or_else(|| serde_json::from_str(&replace_lone_surrogates(str::from_utf8(data).ok()?)).ok());
    match read? {
        Value::Object(map) => Some(map),
        Value::String(inner) => serde_json::from_str(&inner).ok(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    }
}

/// Replaces lone surrogates: Python has such texts, from file names and from output that is not UTF-8.
fn replace_lone_surrogates(json: &str) -> String {
    let mut output = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(offset) = rest.find('\\') {
        let (before, escape) = rest.split_at(offset);
        output.push_str(before);
        let is_pair = surrogate_half(escape) == Some(SurrogateHalf::High)
            && escape.get(ESCAPE_BYTES..).and_then(surrogate_half) == Some(SurrogateHalf::Low);
        let n_bytes = match surrogate_half(escape) {
            _ if is_pair => 2 * ESCAPE_BYTES,
            Some(SurrogateHalf::High | SurrogateHalf::Low) => ESCAPE_BYTES,
            None => escape.chars().take(2).map(char::len_utf8).sum(),
        };
        let (escape, after) = escape.split_at(n_bytes);
        output.push_str(if surrogate_half(escape).is_some() && !is_pair { "\\ufffd" } else { escape });
        rest = after;
    }
    output + rest
}

/// `\uXXXX`.
const ESCAPE_BYTES: usize = 6;

/// The half of a surrogate pair.
#[derive(PartialEq, Eq)]
enum SurrogateHalf {
    High,
    Low,
}

fn surrogate_half(escape: &str) -> Option<SurrogateHalf> {
    let digits = escape.strip_prefix("\\u")?.get(..4)?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xD800..=0xDBFF => Some(SurrogateHalf::High),
        0xDC00..=0xDFFF => Some(SurrogateHalf::Low),
        _ => None,
    }
}

fn string_field(map: &Map<String, Value>, key: &str) -> String {
    map.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Reads the content: plain text, or a list of parts. Empty parts are dropped.
fn read_parts(content: &Value, images: ImageFolder<'_>, losses: &mut ImportLosses) -> Vec<ContentPart> {
    let parts: Vec<ContentPart> = match content {
        Value::Null => Vec::new(),
        Value::Array(items) => items.iter().filter_map(|item| read_part(item, images, losses)).collect(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            read_part(content, images, losses).into_iter().collect()
        }
    };
    let is_blank = |part: &ContentPart| matches!(part, ContentPart::Text(text) if text.trim().is_empty());
    parts.into_iter().filter(|part| !is_blank(part)).collect()
}

fn read_part(item: &Value, images: ImageFolder<'_>, losses: &mut ImportLosses) -> Option<ContentPart> {
    let map = match item {
        Value::String(text) => return Some(ContentPart::Text(text.clone())),
        Value::Object(map) => map,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            losses.parts += 1;
            return None;
        }
    };
    let image = match map.get("type").and_then(Value::as_str) {
        Some("image_url") => {
            let url = map.get("image_url").map(|inner| inner.get("url").unwrap_or(inner));
            let url = url.and_then(Value::as_str).unwrap_or_default();
            if url.starts_with("https://") || url.starts_with("http://") {
                let (uri, name) = (url.to_owned(), url.to_owned());
                return Some(ContentPart::Link { uri, name, mime: None });
            }
            images::parse_data_url(url)
        }
        Some("image") => {
            images::image_part(map.get("mimeType").and_then(Value::as_str), string_field(map, "data"))
        }
        Some("image_ref") => {
            images.load_image(&string_field(map, "path"), map.get("mime").and_then(Value::as_str))
        }
        _ => {
            let text = map.get("text").and_then(Value::as_str);
            losses.parts += u64::from(text.is_none());
            return text.map(|text| ContentPart::Text(text.to_owned()));
        }
    };
    losses.images += u64::from(image.is_none());
    Some(image.unwrap_or_else(|| ContentPart::Text(MISSING_IMAGE.to_owned())))
}

/// Joins the text of a message.
pub(super) fn parts_text(parts: &[ContentPart]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        ContentPart::Text(text) | ContentPart::Resource { text, .. } | ContentPart::FromCrow { text, .. } => {
            Some(text.as_str())
        }
        ContentPart::Image { .. } | ContentPart::Link { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Reads the calls of a reply. A call without a name was truncated while it arrived and cannot have run.
fn read_calls(calls: Option<&Value>) -> Vec<OldCall> {
    let calls = calls.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object);
    let named_calls = calls.filter_map(|call| {
        let function = call.get("function").and_then(Value::as_object)?;
        let name = Some(string_field(function, "name")).filter(|name| !name.trim().is_empty())?;
        let arguments = match function.get("arguments") {
            Some(Value::String(text)) => repair::read_arguments(text),
            Some(Value::Object(map)) => ToolArguments::Valid(map.clone()),
            None | Some(Value::Null) => ToolArguments::Valid(Map::new()),
            Some(other) => repair::read_arguments(&other.to_string()),
        };
        Some(OldCall { provider_id: string_field(call, "id"), name, arguments })
    });
    named_calls.collect()
}
