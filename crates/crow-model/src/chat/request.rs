//! Spells a conversation as the body of `chat/completions`. The only place that does.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use crow_core::{Arguments, Call, CallId, ForModel, Outcome, Part, Reply, Shown, ToolSpec};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::kept;
use super::wants::{Reasoning, limit_field, marks_cache, reasoning};
use crate::ModelSettings;
use crate::parts::{NO_WORDS, text, tool_name};

/// Reasoning where a provider insists on some and there is none: an empty one counts as missing.
const NO_REASONING: &str = " ";

/// The text of a result that is only images.
const IMAGES_FOLLOW: &str = "(the images follow)";

/// Writes the body of a request.
pub(crate) fn body(
    settings: &ModelSettings,
    transcript: ForModel<'_>,
    tools: &[ToolSpec],
) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&Body { settings, transcript, tools })
}

struct Body<'a> {
    settings: &'a ModelSettings,
    transcript: ForModel<'a>,
    tools: &'a [ToolSpec],
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let settings = self.settings;
        let mut fields = Fields { map: serializer.serialize_map(None)?, added: settings.added_fields() };
        fields.add("model", &settings.model)?;
        fields.add("messages", &messages(settings, self.transcript))?;
        if !self.tools.is_empty() {
            fields.add("tools", &Tools(self.tools))?;
            fields.add("parallel_tool_calls", &true)?;
        }
        fields.add("stream", &true)?;
        fields.add("stream_options", &StreamOptions { include_usage: true })?;
        fields.add_some(limit_field(settings), settings.max_tokens.as_ref())?;
        fields.add_some("temperature", settings.temperature.as_ref())?;
        fields.add_some("reasoning_effort", settings.effort().as_ref())?;
        for (name, value) in &fields.added {
            fields.map.serialize_entry(name, value)?;
        }
        fields.map.end()
    }
}

/// The fields of a body, except those that the settings bring themselves.
pub(crate) struct Fields<M> {
    pub(crate) map: M,
    pub(crate) added: Map<String, Value>,
}

impl<M: SerializeMap> Fields<M> {
    pub(crate) fn add(&mut self, name: &str, value: &impl Serialize) -> Result<(), M::Error> {
        if self.added.contains_key(name) { Ok(()) } else { self.map.serialize_entry(name, value) }
    }

    pub(crate) fn add_some(&mut self, name: &str, value: Option<&impl Serialize>) -> Result<(), M::Error> {
        value.map_or(Ok(()), |value| self.add(name, value))
    }
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

struct Tools<'a>(&'a [ToolSpec]);

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|tool| WireTool {
            kind: "function",
            function: WireFunction {
                name: &tool.name,
                description: &tool.description,
                parameters: &tool.parameters,
            },
        }))
    }
}

#[derive(Serialize)]
struct WireTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: WireFunction<'a>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Message<'a> {
    System {
        content: Content<'a>,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_details: Option<&'a Value>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<WireCall<'a>>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: Content<'a>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<WirePart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WirePart<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ImageUrl {
        image_url: ImageUrl,
    },
}

/// Marks where the provider's cache may end.
#[derive(Serialize)]
struct CacheControl {
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: Cow<'a, str>,
    #[serde(rename = "type")]
    kind: &'static str,
    function: WireCallFunction<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<&'a Value>,
}

#[derive(Serialize)]
struct WireCallFunction<'a> {
    name: Cow<'a, str>,
    arguments: String,
}

/// The conversation in the provider's order.
fn messages<'a>(settings: &ModelSettings, transcript: ForModel<'a>) -> Vec<Message<'a>> {
    let mut messages = Vec::new();
    if !transcript.system().trim().is_empty() {
        let content = Content::Text(Cow::Borrowed(transcript.system()));
        messages.push(Message::System { content });
    }
    let spoken = Spoken::new(settings, transcript);
    let mut names: Vec<(CallId, Cow<'_, str>)> = Vec::new();
    let mut images: Vec<WirePart<'_>> = Vec::new();
    // Many servers take no two messages of a person in a row, so they wait until somebody else speaks.
    let mut said: Vec<&Part> = Vec::new();
    for (place, step) in transcript.steps().enumerate() {
        // Most providers take text only in a result, so its images wait until the last result is said.
        if !matches!(step, Shown::Result { .. }) && !images.is_empty() {
            messages.push(images_of_results(&mut images));
        }
        match step {
            Shown::Prompt(prompt) => said.extend(&prompt.parts),
            Shown::Reply(reply) => {
                names = call_names(reply);
                if let Some(message) = spoken.assistant(place, reply, &names) {
                    messages.extend(user_content(&said).map(|content| Message::User { content }));
                    said.clear();
                    messages.push(message);
                }
            }
            Shown::Result { call, outcome } => {
                // The transcript has a reply before each result; without one there is nothing to say.
                let Some((_, name)) = names.iter().find(|(id, _)| *id == call) else { continue };
                let content = Content::Text(result_text(outcome));
                messages.push(Message::Tool { tool_call_id: name.clone(), content });
                images.extend(outcome.for_model.iter().filter_map(image));
            }
        }
    }
    if !images.is_empty() {
        messages.push(images_of_results(&mut images));
    }
    messages.extend(user_content(&said).map(|content| Message::User { content }));
    if marks_cache(settings) {
        mark_cache(&mut messages);
    }
    messages
}

/// Marks the ends of what stays: the instructions, what the person said last, the last result.
fn mark_cache(messages: &mut [Message<'_>]) {
    let is_system = |message: &Message<'_>| matches!(message, Message::System { .. });
    let is_user = |message: &Message<'_>| matches!(message, Message::User { .. });
    let is_tool = |message: &Message<'_>| matches!(message, Message::Tool { .. });
    let places = [is_system as fn(&Message<'_>) -> bool, is_user, is_tool];
    for place in places.map(|is| messages.iter().rposition(is)).into_iter().flatten() {
        match &mut messages[place] {
            Message::System { content } | Message::User { content } | Message::Tool { content, .. } => {
                content.mark();
            }
            Message::Assistant { .. } => {}
        }
    }
}

impl Content<'_> {
    fn mark(&mut self) {
        if let Self::Text(text) = self {
            *self = Self::Parts(vec![WirePart::text(std::mem::take(text))]);
        }
        let Self::Parts(parts) = self else { return };
        let last = parts.iter_mut().rev().find_map(|part| match part {
            WirePart::Text { cache_control, .. } => Some(cache_control),
            WirePart::ImageUrl { .. } => None,
        });
        if let Some(cache_control) = last {
            *cache_control = Some(CacheControl { kind: "ephemeral" });
        }
    }
}

impl<'a> WirePart<'a> {
    fn text(text: Cow<'a, str>) -> Self {
        Self::Text { text, cache_control: None }
    }
}

/// The calls' names on the wire: the provider's own, unless two calls of the reply share one.
fn call_names(reply: &Reply) -> Vec<(CallId, Cow<'_, str>)> {
    let n_same =
        |call: &Call| reply.calls.iter().filter(|other| other.provider_id == call.provider_id).count();
    let names = reply.calls.iter().map(|call| {
        let is_usable = !call.provider_id.is_empty() && n_same(call) == 1;
        let name = if is_usable {
            Cow::Borrowed(call.provider_id.as_str())
        } else {
            Cow::Owned(call.id.to_string())
        };
        (call.id, name)
    });
    names.collect()
}

/// How replies are given back to a model.
struct Spoken {
    /// The model, as its sealed pieces name it.
    by: String,
    reasoning: Reasoning,
    /// The place after the last words of the person: from here on it is one turn.
    turn: usize,
}

impl Spoken {
    fn new(settings: &ModelSettings, transcript: ForModel<'_>) -> Self {
        let prompts = transcript.steps().enumerate().filter(|(_, step)| matches!(step, Shown::Prompt(_)));
        let turn = prompts.last().map_or(0, |(place, _)| place);
        Self { by: settings.id(), reasoning: reasoning(settings), turn }
    }

    /// A reply without words or calls, such as one cut while it was thinking, is no message.
    fn assistant<'a>(
        &self,
        place: usize,
        reply: &'a Reply,
        names: &[(CallId, Cow<'a, str>)],
    ) -> Option<Message<'a>> {
        let content = Some(reply.text.as_str()).filter(|text| !text.trim().is_empty());
        if content.is_none() && reply.calls.is_empty() {
            return None;
        }
        let pieces = reply.sealed_by(&self.by);
        let calls = reply.calls.iter().zip(names).enumerate();
        let tool_calls = calls.map(|(slot, (call, (_, id)))| WireCall {
            id: id.clone(),
            kind: "function",
            function: WireCallFunction { name: tool_name(&call.name), arguments: arguments(call) },
            extra_content: kept::extra_of_call(pieces, slot),
        });
        Some(Message::Assistant {
            content,
            reasoning_content: self.reasoning_of(place, reply),
            reasoning_details: kept::details(pieces),
            tool_calls: tool_calls.collect(),
        })
    }

    fn reasoning_of<'a>(&self, place: usize, reply: &'a Reply) -> Option<&'a str> {
        let thought = Some(reply.thought.as_str()).filter(|thought| !thought.trim().is_empty());
        match self.reasoning {
            Reasoning::Unsent => None,
            Reasoning::OfTurn => thought.filter(|_| place > self.turn),
            Reasoning::WithCalls if reply.calls.is_empty() => None,
            Reasoning::WithCalls => thought.or(Some(NO_REASONING)),
        }
    }
}

pub(crate) fn arguments(call: &Call) -> String {
    match &call.arguments {
        // A map of strings to JSON values has nothing that JSON cannot spell.
        Arguments::Valid(value) | Arguments::Repaired { value, .. } => {
            serde_json::to_string(value).unwrap_or_else(|_| "{}".to_owned())
        }
        Arguments::Unreadable { .. } => "{}".to_owned(),
    }
}

fn user_content<'a>(said: &[&'a Part]) -> Option<Content<'a>> {
    let has_images = said.iter().any(|part| matches!(part, Part::Image { .. }));
    if has_images {
        let parts = said.iter().filter_map(|part| image(part).or_else(|| text(part).map(WirePart::text)));
        return Some(Content::Parts(parts.collect()));
    }
    let joined = join(said.iter().filter_map(|part| text(part)))?;
    Some(Content::Text(joined))
}

fn result_text(outcome: &Outcome) -> Cow<'_, str> {
    let has_images = outcome.for_model.iter().any(|part| matches!(part, Part::Image { .. }));
    let without = if has_images { IMAGES_FOLLOW } else { NO_WORDS };
    join(outcome.for_model.iter().filter_map(text)).unwrap_or(Cow::Borrowed(without))
}

fn images_of_results<'a>(images: &mut Vec<WirePart<'a>>) -> Message<'a> {
    let says =
        if images.len() == 1 { "The image of the result above:" } else { "The images of the results above:" };
    let mut parts = vec![WirePart::text(Cow::Borrowed(says))];
    parts.append(images);
    Message::User { content: Content::Parts(parts) }
}

pub(crate) fn join<'a>(mut texts: impl Iterator<Item = Cow<'a, str>>) -> Option<Cow<'a, str>> {
    let mut joined = texts.next()?;
    for text in texts {
        let joined = joined.to_mut();
        joined.push('\n');
        joined.push_str(&text);
    }
    Some(joined)
}

fn image<'a>(part: &Part) -> Option<WirePart<'a>> {
    match part {
        Part::Image { mime, data } => {
            Some(WirePart::ImageUrl { image_url: ImageUrl { url: format!("data:{mime};base64,{data}") } })
        }
        Part::Text(_) | Part::Link { .. } | Part::Resource { .. } | Part::FromCrow { .. } => None,
    }
}
