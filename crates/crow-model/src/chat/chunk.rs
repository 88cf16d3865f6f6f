//! A chunk of a reply as providers really send it, borrowed from its bytes, and its events.
//!
//! Parses leniently: a field of an unexpected type is no reason to lose a reply.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use crow_core::ModelEvent;
use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::call_slots::{CallFragment, CallSlots};
use super::provider_state::ProviderStateCollector;
use super::usage::read_usage;
use crate::api::EventSink;
use crate::surrogates::{SurrogateJoiner, escape_marks, resolve_marks};

/// One chunk, or a whole reply that was not streamed.
#[derive(Debug, Deserialize)]
pub(crate) struct ChatChunk<'a> {
    #[serde(borrow, default)]
    pub(crate) choices: Option<Vec<ChatChoice<'a>>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    /// The place of one provider's usage.
    #[serde(borrow, default)]
    x_groq: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ChatChoice<'a> {
    #[serde(default)]
    index: LenientIndex,
    #[serde(borrow, default)]
    delta: Option<ChatDelta<'a>>,
    /// Replaces `delta` in a reply that was not streamed.
    #[serde(borrow, default)]
    message: Option<ChatDelta<'a>>,
    #[serde(borrow, default)]
    finish_reason: LenientText<'a>,
    /// Some send it here and not next to the choices.
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct ChatDelta<'a> {
    #[serde(borrow, default)]
    content: LenientContent<'a>,
    #[serde(borrow, default)]
    reasoning_content: LenientText<'a>,
    #[serde(borrow, default)]
    reasoning: LenientText<'a>,
    #[serde(borrow, default)]
    refusal: LenientText<'a>,
    #[serde(borrow, default)]
    reasoning_details: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<ToolCallDelta<'a>>>,
    /// The predecessor of `tool_calls`, for one call.
    #[serde(borrow, default)]
    function_call: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct ToolCallDelta<'a> {
    #[serde(default)]
    index: LenientIndex,
    #[serde(borrow, default)]
    id: LenientText<'a>,
    #[serde(borrow, default)]
    function: Option<FunctionDelta<'a>>,
    #[serde(borrow, default)]
    extra_content: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct FunctionDelta<'a> {
    #[serde(borrow, default)]
    name: LenientText<'a>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct GroqExtension<'a> {
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

/// Text in any form: a string, a list of parts with a `text`, or nothing.
#[derive(Debug, Default)]
struct LenientText<'a>(Cow<'a, str>);

/// Content: a string, or a list of parts of which some are thoughts.
#[derive(Debug, Default)]
struct LenientContent<'a> {
    text: Cow<'a, str>,
    thought: Cow<'a, str>,
}

/// A list index, if it is one.
#[derive(Debug, Default)]
struct LenientIndex(Option<u64>);

/// A reply as far as its chunks have arrived.
#[derive(Debug, Default)]
pub(crate) struct ChatReplyState {
    call_slots: CallSlots,
    /// The server sends calls as lists.
    has_tool_calls: bool,
    text: SurrogateJoiner,
    thought: SurrogateJoiner,
    pub(crate) provider_state: ProviderStateCollector,
}

impl ChatReplyState {
    /// Emits what was pending.
    pub(crate) fn flush(&mut self, on_event: &mut EventSink<'_>) {
        let (thought, text) = (self.thought.flush(), self.text.flush());
        if !thought.is_empty() {
            on_event(ModelEvent::Thought(&thought));
        }
        if !text.is_empty() {
            on_event(ModelEvent::Text(&text));
        }
        self.provider_state.emit_details(on_event);
    }
}

impl<'a> ChatChunk<'a> {
    /// Parses a chunk; the error says where it is invalid.
    pub(crate) fn parse(data: &'a [u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(data)
    }

    /// The error object, if the chunk contains one in place of content.
    pub(crate) fn error_json(&self) -> Option<&'a str> {
        let choice_errors = self.choices.iter().flatten().filter_map(|choice| choice.error);
        let mut errors = self.error.into_iter().chain(choice_errors).map(RawValue::get);
        errors.find(|error| !matches!(*error, "null" | "{}" | "\"\"" | "false"))
    }

    /// Whether this is part of a completion at all.
    pub(crate) fn is_completion(&self) -> bool {
        self.choices.is_some() || self.usage.is_some()
    }

    /// Emits the events of the chunk; returns the finish reason if it has one.
    pub(crate) fn emit_events(
        self,
        state: &mut ChatReplyState,
        on_event: &mut EventSink<'_>,
    ) -> Option<Cow<'a, str>> {
        let mut finish_reason = None;
        let mut usage = self.usage;
        for choice in self.choices.unwrap_or_default() {
            // We request one choice; others would be mixed into its text.
            if choice.index.0.unwrap_or(0) != 0 {
                continue;
            }
            if let Some(delta) = choice.delta.or(choice.message) {
                delta.emit_events(state, on_event);
            }
            let LenientText(reason) = choice.finish_reason;
            finish_reason = Some(reason).filter(|reason| !matches!(&**reason, "" | "null")).or(finish_reason);
            usage = usage.or(choice.usage);
        }
        let groq_usage = || serde_json::from_str::<GroqExtension<'_>>(self.x_groq?.get()).ok()?.usage;
        if let Some(usage) = usage.or_else(groq_usage).and_then(|usage| read_usage(usage.get())) {
            on_event(ModelEvent::Usage(usage));
        }
        finish_reason
    }
}

impl ChatDelta<'_> {
    fn emit_events(self, state: &mut ChatReplyState, on_event: &mut EventSink<'_>) {
        // Some servers send both fields with the same text.
        let thought =
            if self.reasoning_content.0.is_empty() { self.reasoning } else { self.reasoning_content };
        for thought in [thought.0, self.content.thought] {
            let thought = state.thought.join_next(&thought);
            if !thought.is_empty() {
                on_event(ModelEvent::Thought(&thought));
            }
        }
        for text in [self.content.text, self.refusal.0] {
            let text = state.text.join_next(&text);
            if !text.is_empty() {
                on_event(ModelEvent::Text(&text));
            }
        }
        if let Some(details) = self.reasoning_details {
            state.provider_state.add_details(details);
        }
        for fragment in self.tool_calls.unwrap_or_default() {
            state.has_tool_calls = true;
            fragment.emit_call(state, on_event);
        }
        let legacy = self.function_call.and_then(|raw| serde_json::from_str(raw.get()).ok());
        // Some servers send a call in both forms.
        if let Some(function) = legacy.filter(|_| !state.has_tool_calls) {
            ToolCallDelta { function: Some(function), ..ToolCallDelta::default() }.emit_call(state, on_event);
        }
    }
}

impl ToolCallDelta<'_> {
    fn emit_call(self, state: &mut ChatReplyState, on_event: &mut EventSink<'_>) {
        let function = self.function.unwrap_or_default();
        let (id, name) = (resolve_marks(&self.id.0), resolve_marks(&function.name.0));
        let arguments = function.arguments.map(read_arguments).unwrap_or_default();
        let arguments = escape_marks(&arguments);
        let fragment = CallFragment { index: self.index.0, id: &id, name: &name, arguments: &arguments };
        let Some((call_index, slot)) = state.call_slots.accept_fragment(fragment) else { return };
        on_event(ModelEvent::Call {
            index: call_index,
            id: Some(slot.id.as_str()).filter(|id| !id.is_empty()),
            name: Some(slot.name.as_str()).filter(|name| !name.is_empty()),
            arguments: &arguments,
        });
        if let Some(extra) = self.extra_content {
            state.provider_state.add_to_call(call_index, extra, on_event);
        }
    }
}

/// Arguments should be a string; some servers send the object itself.
fn read_arguments(raw: &RawValue) -> Cow<'_, str> {
    #[derive(Deserialize)]
    struct BorrowedStr<'a>(#[serde(borrow)] Cow<'a, str>);
    match raw.get() {
        "null" => Cow::Borrowed(""),
        text if text.starts_with('"') => match serde_json::from_str::<BorrowedStr<'_>>(text) {
            Ok(BorrowedStr(arguments)) => arguments,
            Err(_) => Cow::Borrowed(""),
        },
        object => Cow::Borrowed(object),
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for LenientText<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor).map(|content| Self(content.text))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for LenientContent<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

impl<'de> Deserialize<'de> for LenientIndex {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(LenientText::deserialize(deserializer)?.0.parse().ok()))
    }
}

struct ContentVisitor;

fn text_content<'a>(text: impl Into<Cow<'a, str>>) -> LenientContent<'a> {
    LenientContent { text: text.into(), thought: Cow::Borrowed("") }
}

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = LenientContent<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(text_content(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(text_content(text.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(LenientContent::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(LenientContent::default())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(text_content(number.to_string()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(text_content(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(text_content(number.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        let mut content = LenientContent::default();
        while let Some(LenientContent { text, thought }) = parts.next_element()? {
            content.text += text;
            content.thought += thought;
        }
        Ok(content)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut part = LenientContent::default();
        while let Some(field) = fields.next_key::<LenientText<'de>>()? {
            match &*field.0 {
                "text" => part.text = fields.next_value::<LenientText<'de>>()?.0,
                "thinking" => part.thought = fields.next_value::<LenientText<'de>>()?.0,
                _ => {
                    fields.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(part)
    }
}
