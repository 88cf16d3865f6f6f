//! The forms that several APIs share: fields of a body, IDs of calls, names, text and images. Must not know the rest of a
//! request.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crow_core::{CallId, ContentPart, Reply, ToolArguments, ToolCall, link};
use serde::Serialize;
use serde::ser::SerializeMap;
use serde_json::{Map, Value};

/// Replaces an empty result, which providers reject.
pub(crate) const NO_OUTPUT: &str = "(no output)";

/// Returns the text of a part that is not an image, unless it is empty.
pub(crate) fn part_text(part: &ContentPart) -> Option<Cow<'_, str>> {
    match part {
        ContentPart::Text(text) if text.trim().is_empty() => None,
        ContentPart::Text(text) => Some(Cow::Borrowed(text)),
        ContentPart::Image { .. } => None,
        ContentPart::Link { uri, name, .. } => Some(Cow::Owned(link::format_link(uri, name))),
        ContentPart::Resource { uri, text, .. } => Some(Cow::Owned(resource_element(uri, text))),
        ContentPart::FromCrow { kind: what, text } => Some(Cow::Owned(resource_element(&what.uri(), text))),
    }
}

/// Joins texts with line breaks; `None` without a text.
pub(crate) fn join_lines<'a>(mut texts: impl Iterator<Item = Cow<'a, str>>) -> Option<Cow<'a, str>> {
    let mut joined = texts.next()?;
    for text in texts {
        let joined = joined.to_mut();
        joined.push('\n');
        joined.push_str(&text);
    }
    Some(joined)
}

/// Returns an image as a URL with its data.
pub(crate) fn image_data_url(mime: &str, data: &str) -> String {
    format!("data:{mime};base64,{data}")
}

/// The arguments of a call as the text of a JSON object.
pub(crate) fn arguments_json(call: &ToolCall) -> String {
    match &call.arguments {
        // A map of strings to JSON values can always be encoded.
        ToolArguments::Valid(value) | ToolArguments::Repaired { value, .. } => {
            serde_json::to_string(value).unwrap_or_else(|_| "{}".to_owned())
        }
        ToolArguments::Unreadable { .. } => "{}".to_owned(),
    }
}

/// The fields of a body, except those that the settings contain: these have priority.
pub(crate) struct BodyFields<'f, M> {
    map: M,
    extra_fields: &'f Map<String, Value>,
}

impl<'f, M: SerializeMap> BodyFields<'f, M> {
    pub(crate) fn new(map: M, extra_fields: &'f Map<String, Value>) -> Self {
        Self { map, extra_fields }
    }

    pub(crate) fn add_field(&mut self, name: &str, value: &impl Serialize) -> Result<(), M::Error> {
        if self.extra_fields.contains_key(name) { Ok(()) } else { self.map.serialize_entry(name, value) }
    }

    pub(crate) fn add_optional_field(
        &mut self,
        name: &str,
        value: Option<&impl Serialize>,
    ) -> Result<(), M::Error> {
        value.map_or(Ok(()), |value| self.add_field(name, value))
    }

    /// Adds the fields of the settings and ends the body.
    pub(crate) fn finish(mut self) -> Result<M::Ok, M::Error> {
        for (name, value) in self.extra_fields {
            self.map.serialize_entry(name, value)?;
        }
        self.map.end()
    }
}

/// The IDs of a reply's calls on the wire, in the order of the calls.
#[derive(Debug, Default)]
pub(crate) struct WireCallIds<'a>(Vec<(CallId, Cow<'a, str>)>);

impl<'a> WireCallIds<'a> {
    /// Takes the provider's own ID of each usable call, and Crow's ID of the others.
    pub(crate) fn new(reply: &'a Reply, mut is_usable: impl FnMut(&'a ToolCall) -> bool) -> Self {
        let ids = reply.calls.iter().map(|call| {
            let id = if is_usable(call) {
                Cow::Borrowed(call.provider_id.as_str())
            } else {
                Cow::Owned(call.id.to_string())
            };
            (call.id, id)
        });
        Self(ids.collect())
    }

    /// Replaces Crow's own IDs with IDs made from the sequence number of the reply and the index of the call.
    pub(crate) fn with_own_ids(mut self, own_id: impl Fn(u64, usize) -> String) -> Self {
        for (index, (call, wire_id)) in self.0.iter_mut().enumerate() {
            if let Cow::Owned(wire_id) = wire_id {
                *wire_id = own_id(call.reply_seq(), index);
            }
        }
        self
    }

    /// The ID of a call.
    pub(crate) fn id_of(&self, call: CallId) -> Option<&Cow<'a, str>> {
        self.0.iter().find(|(id, _)| *id == call).map(|(_, wire_id)| wire_id)
    }

    /// The IDs in the order of the calls.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Cow<'a, str>> {
        self.0.iter().map(|(_, wire_id)| wire_id)
    }
}

/// The providers' IDs that a request contains, for APIs that reject a second use.
#[derive(Debug, Default)]
pub(crate) struct UsedCallIds<'a>(BTreeSet<&'a str>);

impl<'a> UsedCallIds<'a> {
    /// Takes the providers' own IDs that the API accepts and no earlier call of the request has.
    pub(crate) fn choose_ids(
        &mut self,
        reply: &'a Reply,
        is_accepted: impl Fn(&str) -> bool,
    ) -> WireCallIds<'a> {
        WireCallIds::new(reply, |call| is_accepted(&call.provider_id) && self.0.insert(&call.provider_id))
    }
}

/// The longest name of a call or a tool that all providers accept.
const NAME_LEN_MAX: usize = 64;

/// Replaces an empty tool name, which providers reject.
const NO_NAME: &str = "_";

/// Returns a valid name for a tool that a model called, whatever it invented.
pub(crate) fn wire_tool_name(name: &str) -> Cow<'_, str> {
    if is_valid_name(name) {
        return Cow::Borrowed(name);
    }
    let sanitized =
        name.bytes().take(NAME_LEN_MAX).map(|byte| if is_name_byte(byte) { char::from(byte) } else { '_' });
    let sanitized: String = sanitized.collect();
    if sanitized.is_empty() { Cow::Borrowed(NO_NAME) } else { Cow::Owned(sanitized) }
}

/// Whether every provider accepts a name.
pub(crate) fn is_valid_name(name: &str) -> bool {
    (1..=NAME_LEN_MAX).contains(&name.len()) && name.bytes().all(is_name_byte)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn resource_element(uri: &str, text: &str) -> String {
    format!("<resource uri=\"{uri}\">\n{text}\n</resource>")
}
