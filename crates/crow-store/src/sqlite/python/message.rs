//! One old message: the JSON that providers take, as the Python version stored it.

use crow_core::{ContentPart, ToolArguments, repair};
use serde_json::{Map, Value};

use super::{
    ImportLosses,
    images::{self, ImageFolder},
};

/// What stands where an image was.
const NO_IMAGE: &str = "(an image was here that is no longer there)";

/// A message as far as it can be read.
#[derive(Debug)]
pub(super) enum OldMessage {
    /// The system prompt.
    System(String),
    Prompt(Vec<ContentPart>),
    Reply {
        thought: String,
        text: String,
        calls: Vec<OldCall>,
    },
    Result {
        /// The provider's name of the call.
        call: String,
        parts: Vec<ContentPart>,
    },
}

/// A call before it has a name of ours.
#[derive(Debug)]
pub(super) struct OldCall {
    pub(super) provider_id: String,
    pub(super) name: String,
    pub(super) arguments: ToolArguments,
}

/// Reads a message; counts it when that is not possible. `role` is what its row says of it.
pub(super) fn read_message(
    data: &[u8],
    role: &str,
    images: ImageFolder<'_>,
    lost: &mut ImportLosses,
) -> Option<OldMessage> {
    let Some(message) = parse_object(data) else {
        lost.messages += 1;
        return None;
    };
    let role = message.get("role").and_then(Value::as_str).unwrap_or(role);
    let content = message.get("content").unwrap_or(&Value::Null);
    match role {
        "system" => Some(OldMessage::System(parts_text(&read_parts(content, images, lost)))),
        "user" => Some(OldMessage::Prompt(read_parts(content, images, lost))),
        "assistant" => Some(OldMessage::Reply {
            thought: string_field(&message, "reasoning_content"),
            text: parts_text(&read_parts(content, images, lost)),
            calls: read_calls(message.get("tool_calls")),
        }),
        "tool" => Some(OldMessage::Result {
            call: string_field(&message, "tool_call_id"),
            parts: read_parts(content, images, lost),
        }),
        _ => {
            lost.messages += 1;
            None
        }
    }
}

/// Reads an object, which may have been encoded twice.
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

/// Replaces escapes of half a character: Python has such texts, from file names and from output that is no UTF-8.
fn replace_lone_surrogates(json: &str) -> String {
    let mut whole = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(place) = rest.find('\\') {
        let (before, escape) = rest.split_at(place);
        whole.push_str(before);
        let is_pair = surrogate_half(escape) == Some(SurrogateHalf::First)
            && escape.get(ESCAPE_BYTES..).and_then(surrogate_half) == Some(SurrogateHalf::Second);
        let n_bytes = match surrogate_half(escape) {
            _ if is_pair => 2 * ESCAPE_BYTES,
            Some(SurrogateHalf::First | SurrogateHalf::Second) => ESCAPE_BYTES,
            None => escape.chars().take(2).map(char::len_utf8).sum(),
        };
        let (escape, after) = escape.split_at(n_bytes);
        whole.push_str(if surrogate_half(escape).is_some() && !is_pair { "\\ufffd" } else { escape });
        rest = after;
    }
    whole + rest
}

/// `\uXXXX`.
const ESCAPE_BYTES: usize = 6;

/// Which half of a character an escape stands for.
#[derive(PartialEq, Eq)]
enum SurrogateHalf {
    First,
    Second,
}

fn surrogate_half(escape: &str) -> Option<SurrogateHalf> {
    let digits = escape.strip_prefix("\\u")?.get(..4)?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xD800..=0xDBFF => Some(SurrogateHalf::First),
        0xDC00..=0xDFFF => Some(SurrogateHalf::Second),
        _ => None,
    }
}

fn string_field(map: &Map<String, Value>, key: &str) -> String {
    map.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Reads what was said: plain text, or a list of pieces. What says nothing is left out.
fn read_parts(content: &Value, images: ImageFolder<'_>, lost: &mut ImportLosses) -> Vec<ContentPart> {
    let parts: Vec<ContentPart> = match content {
        Value::Null => Vec::new(),
        Value::Array(pieces) => pieces.iter().filter_map(|piece| read_part(piece, images, lost)).collect(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            read_part(content, images, lost).into_iter().collect()
        }
    };
    let says_nothing = |part: &ContentPart| matches!(part, ContentPart::Text(text) if text.trim().is_empty());
    parts.into_iter().filter(|part| !says_nothing(part)).collect()
}

fn read_part(piece: &Value, images: ImageFolder<'_>, lost: &mut ImportLosses) -> Option<ContentPart> {
    let map = match piece {
        Value::String(text) => return Some(ContentPart::Text(text.clone())),
        Value::Object(map) => map,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            lost.pieces += 1;
            return None;
        }
    };
    let image = match map.get("type").and_then(Value::as_str) {
        Some("image_url") => {
            let address = map.get("image_url").map(|inner| inner.get("url").unwrap_or(inner));
            let address = address.and_then(Value::as_str).unwrap_or_default();
            if address.starts_with("https://") || address.starts_with("http://") {
                let (uri, name) = (address.to_owned(), address.to_owned());
                return Some(ContentPart::Link { uri, name, mime: None });
            }
            images::parse_data_url(address)
        }
        Some("image") => {
            images::image_part(map.get("mimeType").and_then(Value::as_str), string_field(map, "data"))
        }
        Some("image_ref") => {
            images.load_image(&string_field(map, "path"), map.get("mime").and_then(Value::as_str))
        }
        _ => {
            let text = map.get("text").and_then(Value::as_str);
            lost.pieces += u64::from(text.is_none());
            return text.map(|text| ContentPart::Text(text.to_owned()));
        }
    };
    lost.images += u64::from(image.is_none());
    Some(image.unwrap_or_else(|| ContentPart::Text(NO_IMAGE.to_owned())))
}

/// Joins the words of a message.
pub(super) fn parts_text(parts: &[ContentPart]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        ContentPart::Text(text) | ContentPart::Resource { text, .. } | ContentPart::FromCrow { text, .. } => {
            Some(text.as_str())
        }
        ContentPart::Image { .. } | ContentPart::Link { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Reads the calls of a reply. One without a name was cut while it arrived: nobody can have run it.
fn read_calls(calls: Option<&Value>) -> Vec<OldCall> {
    let calls = calls.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object);
    let named = calls.filter_map(|call| {
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
    named.collect()
}
