//! One old message: the JSON that providers take, as the Python version stored it.

use crow_core::{Arguments, Part, repair};
use serde_json::{Map, Value};

use super::{
    Lost,
    images::{self, Images},
};

/// What stands where an image was.
const NO_IMAGE: &str = "(an image was here that is no longer there)";

/// A message as far as it can be read.
#[derive(Debug)]
pub(super) enum Said {
    /// The system prompt.
    System(String),
    Prompt(Vec<Part>),
    Reply {
        thought: String,
        text: String,
        calls: Vec<OldCall>,
    },
    Result {
        /// The provider's name of the call.
        call: String,
        parts: Vec<Part>,
    },
}

/// A call before it has a name of ours.
#[derive(Debug)]
pub(super) struct OldCall {
    pub(super) provider_id: String,
    pub(super) name: String,
    pub(super) arguments: Arguments,
}

/// Reads a message; counts it when that is not possible. `role` is what its row says of it.
pub(super) fn read(data: &[u8], role: &str, images: Images<'_>, lost: &mut Lost) -> Option<Said> {
    let Some(message) = object(data) else {
        lost.messages += 1;
        return None;
    };
    let role = message.get("role").and_then(Value::as_str).unwrap_or(role);
    let content = message.get("content").unwrap_or(&Value::Null);
    match role {
        "system" => Some(Said::System(words(&parts(content, images, lost)))),
        "user" => Some(Said::Prompt(parts(content, images, lost))),
        "assistant" => Some(Said::Reply {
            thought: text(&message, "reasoning_content"),
            text: words(&parts(content, images, lost)),
            calls: calls(message.get("tool_calls")),
        }),
        "tool" => {
            Some(Said::Result { call: text(&message, "tool_call_id"), parts: parts(content, images, lost) })
        }
        _ => {
            lost.messages += 1;
            None
        }
    }
}

/// Reads an object, which may have been encoded twice.
fn object(data: &[u8]) -> Option<Map<String, Value>> {
    let read = serde_json::from_slice(data).ok();
    let read = read.or_else(|| serde_json::from_str(&without_halves(str::from_utf8(data).ok()?)).ok());
    match read? {
        Value::Object(map) => Some(map),
        Value::String(inner) => serde_json::from_str(&inner).ok(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    }
}

/// Replaces escapes of half a character: Python has such texts, from file names and from output that is no UTF-8.
fn without_halves(json: &str) -> String {
    let mut whole = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(place) = rest.find('\\') {
        let (before, escape) = rest.split_at(place);
        whole.push_str(before);
        let is_pair = half(escape) == Some(Half::First)
            && escape.get(ESCAPE_BYTES..).and_then(half) == Some(Half::Second);
        let n_bytes = match half(escape) {
            _ if is_pair => 2 * ESCAPE_BYTES,
            Some(Half::First | Half::Second) => ESCAPE_BYTES,
            None => escape.chars().take(2).map(char::len_utf8).sum(),
        };
        let (escape, after) = escape.split_at(n_bytes);
        whole.push_str(if half(escape).is_some() && !is_pair { "\\ufffd" } else { escape });
        rest = after;
    }
    whole + rest
}

/// `\uXXXX`.
const ESCAPE_BYTES: usize = 6;

/// Which half of a character an escape stands for.
#[derive(PartialEq, Eq)]
enum Half {
    First,
    Second,
}

fn half(escape: &str) -> Option<Half> {
    let digits = escape.strip_prefix("\\u")?.get(..4)?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xD800..=0xDBFF => Some(Half::First),
        0xDC00..=0xDFFF => Some(Half::Second),
        _ => None,
    }
}

fn text(map: &Map<String, Value>, key: &str) -> String {
    map.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Reads what was said: plain text, or a list of pieces. What says nothing is left out.
fn parts(content: &Value, images: Images<'_>, lost: &mut Lost) -> Vec<Part> {
    let parts: Vec<Part> = match content {
        Value::Null => Vec::new(),
        Value::Array(pieces) => pieces.iter().filter_map(|piece| part(piece, images, lost)).collect(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            part(content, images, lost).into_iter().collect()
        }
    };
    let says_nothing = |part: &Part| matches!(part, Part::Text(text) if text.trim().is_empty());
    parts.into_iter().filter(|part| !says_nothing(part)).collect()
}

fn part(piece: &Value, images: Images<'_>, lost: &mut Lost) -> Option<Part> {
    let map = match piece {
        Value::String(text) => return Some(Part::Text(text.clone())),
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
                return Some(Part::Link { uri, name, mime: None });
            }
            images::inline(address)
        }
        Some("image") => images::image(map.get("mimeType").and_then(Value::as_str), text(map, "data")),
        Some("image_ref") => images.named(&text(map, "path"), map.get("mime").and_then(Value::as_str)),
        _ => {
            let text = map.get("text").and_then(Value::as_str);
            lost.pieces += u64::from(text.is_none());
            return text.map(|text| Part::Text(text.to_owned()));
        }
    };
    lost.images += u64::from(image.is_none());
    Some(image.unwrap_or_else(|| Part::Text(NO_IMAGE.to_owned())))
}

/// Joins the words of a message.
pub(super) fn words(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) | Part::Resource { text, .. } | Part::FromCrow { text, .. } => Some(text.as_str()),
        Part::Image { .. } | Part::Link { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Reads the calls of a reply. One without a name was cut while it arrived: nobody can have run it.
fn calls(calls: Option<&Value>) -> Vec<OldCall> {
    let calls = calls.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object);
    let named = calls.filter_map(|call| {
        let function = call.get("function").and_then(Value::as_object)?;
        let name = Some(text(function, "name")).filter(|name| !name.trim().is_empty())?;
        let arguments = match function.get("arguments") {
            Some(Value::String(text)) => repair::read_arguments(text),
            Some(Value::Object(map)) => Arguments::Valid(map.clone()),
            None | Some(Value::Null) => Arguments::Valid(Map::new()),
            Some(other) => repair::read_arguments(&other.to_string()),
        };
        Some(OldCall { provider_id: text(call, "id"), name, arguments })
    });
    named.collect()
}
