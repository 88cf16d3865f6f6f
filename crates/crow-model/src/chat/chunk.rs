//! A chunk of a reply as providers really spell it, borrowed from its bytes, and the events it comes to.
//!
//! Reads leniently: a field of an odd type is no reason to lose a reply.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use crow_core::ModelEvent;
use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::kept::Kept;
use super::slots::{Piece, Slots};
use super::usage::read_usage;
use crate::halves::{Halves, escaped, whole};

/// One chunk, or the whole of a reply that was not streamed.
#[derive(Debug, Deserialize)]
pub(crate) struct Chunk<'a> {
    #[serde(borrow, default)]
    pub(crate) choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    /// Where one provider puts its usage.
    #[serde(borrow, default)]
    x_groq: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Choice<'a> {
    #[serde(default)]
    index: Number,
    #[serde(borrow, default)]
    delta: Option<Words<'a>>,
    /// Stands where `delta` does when the reply came whole.
    #[serde(borrow, default)]
    message: Option<Words<'a>>,
    #[serde(borrow, default)]
    finish_reason: Text<'a>,
    /// Some say it here and not beside the choices.
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct Words<'a> {
    #[serde(borrow, default)]
    content: Content<'a>,
    #[serde(borrow, default)]
    reasoning_content: Text<'a>,
    #[serde(borrow, default)]
    reasoning: Text<'a>,
    #[serde(borrow, default)]
    refusal: Text<'a>,
    #[serde(borrow, default)]
    reasoning_details: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<CallPiece<'a>>>,
    /// What stood for `tool_calls` before there could be several.
    #[serde(borrow, default)]
    function_call: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct CallPiece<'a> {
    #[serde(default)]
    index: Number,
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, default)]
    function: Option<FunctionPiece<'a>>,
    #[serde(borrow, default)]
    extra_content: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct FunctionPiece<'a> {
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct GroqPart<'a> {
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

/// Text wherever it may be: a string, a list of parts with a `text`, or nothing.
#[derive(Debug, Default)]
struct Text<'a>(Cow<'a, str>);

/// What a model says: a string, or a list of parts of which some are thoughts.
#[derive(Debug, Default)]
struct Content<'a> {
    text: Cow<'a, str>,
    thought: Cow<'a, str>,
}

/// A number of a list, if it is one.
#[derive(Debug, Default)]
struct Number(Option<u64>);

/// A reply as far as its chunks have come.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    slots: Slots,
    /// The server speaks of calls as lists.
    has_lists: bool,
    text: Halves,
    thought: Halves,
    pub(crate) kept: Kept,
}

impl Progress {
    /// Says what was still waiting.
    pub(crate) fn end(&mut self, on_event: &mut impl FnMut(ModelEvent<'_>)) {
        let (thought, text) = (self.thought.end(), self.text.end());
        if !thought.is_empty() {
            on_event(ModelEvent::Thought(&thought));
        }
        if !text.is_empty() {
            on_event(ModelEvent::Text(&text));
        }
        self.kept.end(on_event);
    }
}

impl<'a> Chunk<'a> {
    /// Reads a chunk; the error says where it is broken.
    pub(crate) fn read(data: &'a [u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(data)
    }

    /// The error object, when the chunk carries one instead of words.
    pub(crate) fn error(&self) -> Option<&'a str> {
        let of_choices = self.choices.iter().flatten().filter_map(|choice| choice.error);
        let mut errors = self.error.into_iter().chain(of_choices).map(RawValue::get);
        errors.find(|error| !matches!(*error, "null" | "{}" | "\"\"" | "false"))
    }

    /// Tells whether this is something of a completion at all.
    pub(crate) fn is_completion(&self) -> bool {
        self.choices.is_some() || self.usage.is_some()
    }

    /// Says the events of the chunk; gives back the finish reason if it has one.
    pub(crate) fn events(
        self,
        progress: &mut Progress,
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Option<Cow<'a, str>> {
        let mut finish = None;
        let mut usage = self.usage;
        for choice in self.choices.unwrap_or_default() {
            // We ask for one choice; the others would be spliced into its text.
            if choice.index.0.unwrap_or(0) != 0 {
                continue;
            }
            if let Some(words) = choice.delta.or(choice.message) {
                words.events(progress, on_event);
            }
            let Text(reason) = choice.finish_reason;
            finish = Some(reason).filter(|reason| !matches!(&**reason, "" | "null")).or(finish);
            usage = usage.or(choice.usage);
        }
        let of_groq = || serde_json::from_str::<GroqPart<'_>>(self.x_groq?.get()).ok()?.usage;
        if let Some(usage) = usage.or_else(of_groq).and_then(|usage| read_usage(usage.get())) {
            on_event(ModelEvent::Usage(usage));
        }
        finish
    }
}

impl Words<'_> {
    fn events(self, progress: &mut Progress, on_event: &mut impl FnMut(ModelEvent<'_>)) {
        // Some servers send both names with the same words.
        let thought =
            if self.reasoning_content.0.is_empty() { self.reasoning } else { self.reasoning_content };
        for thought in [thought.0, self.content.thought] {
            let thought = progress.thought.join(&thought);
            if !thought.is_empty() {
                on_event(ModelEvent::Thought(&thought));
            }
        }
        for text in [self.content.text, self.refusal.0] {
            let text = progress.text.join(&text);
            if !text.is_empty() {
                on_event(ModelEvent::Text(&text));
            }
        }
        if let Some(details) = self.reasoning_details {
            progress.kept.add_details(details);
        }
        for piece in self.tool_calls.unwrap_or_default() {
            progress.has_lists = true;
            piece.event(progress, on_event);
        }
        let legacy = self.function_call.and_then(|raw| serde_json::from_str(raw.get()).ok());
        // Some servers say a call in both ways.
        if let Some(function) = legacy.filter(|_| !progress.has_lists) {
            CallPiece { function: Some(function), ..CallPiece::default() }.event(progress, on_event);
        }
    }
}

impl CallPiece<'_> {
    fn event(self, progress: &mut Progress, on_event: &mut impl FnMut(ModelEvent<'_>)) {
        let function = self.function.unwrap_or_default();
        let (id, name) = (whole(&self.id.0), whole(&function.name.0));
        let arguments = function.arguments.map(read_arguments).unwrap_or_default();
        let arguments = escaped(&arguments);
        let piece = Piece { index: self.index.0, id: &id, name: &name, arguments: &arguments };
        let Some((place, slot)) = progress.slots.take(piece) else { return };
        on_event(ModelEvent::Call {
            slot: place,
            id: Some(slot.id.as_str()).filter(|id| !id.is_empty()),
            name: Some(slot.name.as_str()).filter(|name| !name.is_empty()),
            arguments: &arguments,
        });
        if let Some(extra) = self.extra_content {
            progress.kept.add_to_call(place, extra, on_event);
        }
    }
}

/// Arguments are text by the book; some servers send the object itself.
fn read_arguments(raw: &RawValue) -> Cow<'_, str> {
    #[derive(Deserialize)]
    struct Borrowed<'a>(#[serde(borrow)] Cow<'a, str>);
    match raw.get() {
        "null" => Cow::Borrowed(""),
        text if text.starts_with('"') => match serde_json::from_str::<Borrowed<'_>>(text) {
            Ok(Borrowed(arguments)) => arguments,
            Err(_) => Cow::Borrowed(""),
        },
        object => Cow::Borrowed(object),
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor).map(|content| Self(content.text))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Text::deserialize(deserializer)?.0.parse().ok()))
    }
}

struct ContentVisitor;

fn text<'a>(text: impl Into<Cow<'a, str>>) -> Content<'a> {
    Content { text: text.into(), thought: Cow::Borrowed("") }
}

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text")
    }

    fn visit_borrowed_str<E>(self, said: &'de str) -> Result<Self::Value, E> {
        Ok(text(said))
    }

    fn visit_str<E>(self, said: &str) -> Result<Self::Value, E> {
        Ok(text(said.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Content::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Content::default())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(text(number.to_string()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(text(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(text(number.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        let mut whole = Content::default();
        while let Some(Content { text, thought }) = parts.next_element()? {
            whole.text += text;
            whole.thought += thought;
        }
        Ok(whole)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut part = Content::default();
        while let Some(field) = fields.next_key::<Text<'de>>()? {
            match &*field.0 {
                "text" => part.text = fields.next_value::<Text<'de>>()?.0,
                "thinking" => part.thought = fields.next_value::<Text<'de>>()?.0,
                _ => {
                    fields.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(part)
    }
}
