//! Encodes a conversation as the body of `chat/completions`. The only module that does.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use crow_core::{
    CallId, ContentPart, ModelStep, ModelTranscript, Reply, ToolArguments, ToolCall, ToolResult, ToolSpec,
};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::provider_quirks::{ReasoningPolicy, max_tokens_field, needs_cache_marks, reasoning_policy};
use super::provider_state;
use crate::ModelSettings;
use crate::content::{NO_OUTPUT, part_text, wire_tool_name};

/// The reasoning for providers that require some; an empty string counts as missing.
const EMPTY_REASONING: &str = " ";

/// The text of a result that consists of images.
const IMAGES_FOLLOW: &str = "(the images follow)";

/// Builds the body of a request.
pub(crate) fn build_body(
    settings: &ModelSettings,
    transcript: ModelTranscript<'_>,
    tools: &[ToolSpec],
) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&ChatRequest { settings, transcript, tools })
}

struct ChatRequest<'a> {
    settings: &'a ModelSettings,
    transcript: ModelTranscript<'a>,
    tools: &'a [ToolSpec],
}

impl Serialize for ChatRequest<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let settings = self.settings;
        let mut fields =
            BodyFields { map: serializer.serialize_map(None)?, extra_fields: settings.extra_fields() };
        fields.add_field("model", &settings.model)?;
        fields.add_field("messages", &build_messages(settings, self.transcript))?;
        if !self.tools.is_empty() {
            fields.add_field("tools", &ChatTools(self.tools))?;
            fields.add_field("parallel_tool_calls", &true)?;
        }
        fields.add_field("stream", &true)?;
        fields.add_field("stream_options", &StreamOptions { include_usage: true })?;
        fields.add_optional_field(max_tokens_field(settings), settings.max_tokens.as_ref())?;
        fields.add_optional_field("temperature", settings.temperature.as_ref())?;
        fields.add_optional_field("reasoning_effort", settings.effort_level().as_ref())?;
        for (name, value) in &fields.extra_fields {
            fields.map.serialize_entry(name, value)?;
        }
        fields.map.end()
    }
}

/// The fields of a body, except those that the settings contain.
pub(crate) struct BodyFields<M> {
    pub(crate) map: M,
    pub(crate) extra_fields: Map<String, Value>,
}

impl<M: SerializeMap> BodyFields<M> {
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
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

struct ChatTools<'a>(&'a [ToolSpec]);

impl Serialize for ChatTools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|tool| ChatTool {
            kind: "function",
            function: ChatFunction {
                name: &tool.name,
                description: &tool.description,
                parameters: &tool.parameters,
            },
        }))
    }
}

#[derive(Serialize)]
struct ChatTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: ChatFunction<'a>,
}

#[derive(Serialize)]
struct ChatFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum ChatMessage<'a> {
    System {
        content: ChatContent<'a>,
    },
    User {
        content: ChatContent<'a>,
    },
    Assistant {
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_details: Option<&'a Value>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ChatToolCall<'a>>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: ChatContent<'a>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum ChatContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<ChatContentPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ChatContentPart<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<ChatCacheControl>,
    },
    ImageUrl {
        image_url: ImageUrl,
    },
}

/// Marks where the provider's cache may end.
#[derive(Serialize)]
struct ChatCacheControl {
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct ChatToolCall<'a> {
    id: Cow<'a, str>,
    #[serde(rename = "type")]
    kind: &'static str,
    function: ChatToolCallFunction<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<&'a Value>,
}

#[derive(Serialize)]
struct ChatToolCallFunction<'a> {
    name: Cow<'a, str>,
    arguments: String,
}

/// The conversation in the provider's order.
fn build_messages<'a>(settings: &ModelSettings, transcript: ModelTranscript<'a>) -> Vec<ChatMessage<'a>> {
    let mut messages = Vec::new();
    if !transcript.system().trim().is_empty() {
        let content = ChatContent::Text(Cow::Borrowed(transcript.system()));
        messages.push(ChatMessage::System { content });
    }
    let reply_encoder = ReplyEncoder::new(settings, transcript);
    let mut call_ids: Vec<(CallId, Cow<'_, str>)> = Vec::new();
    let mut images: Vec<ChatContentPart<'_>> = Vec::new();
    // Many servers reject two user messages in a row, so they are merged until another role follows.
    let mut pending_parts: Vec<&ContentPart> = Vec::new();
    for (step_index, step) in transcript.steps().enumerate() {
        // Most providers accept only text in a result, so its images follow after the last result.
        if !matches!(step, ModelStep::Result { .. }) && !images.is_empty() {
            messages.push(result_images_message(&mut images));
        }
        match step {
            ModelStep::Prompt(prompt) => pending_parts.extend(&prompt.parts),
            ModelStep::Reply(reply) => {
                call_ids = wire_call_ids(reply);
                if let Some(message) = reply_encoder.assistant_message(step_index, reply, &call_ids) {
                    messages
                        .extend(user_content(&pending_parts).map(|content| ChatMessage::User { content }));
                    pending_parts.clear();
                    messages.push(message);
                }
            }
            ModelStep::Result { call, result } => {
                // The transcript has a reply before each result; without one nothing is sent.
                let Some((_, call_id)) = call_ids.iter().find(|(id, _)| *id == call) else { continue };
                let content = ChatContent::Text(result_text(result));
                messages.push(ChatMessage::Tool { tool_call_id: call_id.clone(), content });
                images.extend(result.for_model.iter().filter_map(image_part));
            }
        }
    }
    if !images.is_empty() {
        messages.push(result_images_message(&mut images));
    }
    messages.extend(user_content(&pending_parts).map(|content| ChatMessage::User { content }));
    if needs_cache_marks(settings) {
        mark_cache(&mut messages);
    }
    messages
}

/// Marks the ends of stable parts: the system prompt, the last user message, the last result.
fn mark_cache(messages: &mut [ChatMessage<'_>]) {
    let is_system = |message: &ChatMessage<'_>| matches!(message, ChatMessage::System { .. });
    let is_user = |message: &ChatMessage<'_>| matches!(message, ChatMessage::User { .. });
    let is_tool = |message: &ChatMessage<'_>| matches!(message, ChatMessage::Tool { .. });
    let roles = [is_system as fn(&ChatMessage<'_>) -> bool, is_user, is_tool];
    for index in roles.map(|is_role| messages.iter().rposition(is_role)).into_iter().flatten() {
        match &mut messages[index] {
            ChatMessage::System { content }
            | ChatMessage::User { content }
            | ChatMessage::Tool { content, .. } => {
                content.add_cache_control();
            }
            ChatMessage::Assistant { .. } => {}
        }
    }
}

impl ChatContent<'_> {
    fn add_cache_control(&mut self) {
        if let Self::Text(text) = self {
            *self = Self::Parts(vec![ChatContentPart::from_text(std::mem::take(text))]);
        }
        let Self::Parts(parts) = self else { return };
        let last = parts.iter_mut().rev().find_map(|part| match part {
            ChatContentPart::Text { cache_control, .. } => Some(cache_control),
            ChatContentPart::ImageUrl { .. } => None,
        });
        if let Some(cache_control) = last {
            *cache_control = Some(ChatCacheControl { kind: "ephemeral" });
        }
    }
}

impl<'a> ChatContentPart<'a> {
    fn from_text(text: Cow<'a, str>) -> Self {
        Self::Text { text, cache_control: None }
    }
}

/// The IDs of calls on the wire: the provider's own, unless two calls of the reply share one.
fn wire_call_ids(reply: &Reply) -> Vec<(CallId, Cow<'_, str>)> {
    let n_with_id =
        |call: &ToolCall| reply.calls.iter().filter(|other| other.provider_id == call.provider_id).count();
    let call_ids = reply.calls.iter().map(|call| {
        let is_usable = !call.provider_id.is_empty() && n_with_id(call) == 1;
        let call_id = if is_usable {
            Cow::Borrowed(call.provider_id.as_str())
        } else {
            Cow::Owned(call.id.to_string())
        };
        (call.id, call_id)
    });
    call_ids.collect()
}

/// Encodes replies for a model.
struct ReplyEncoder {
    /// The model, as its provider state names it.
    model_id: String,
    reasoning: ReasoningPolicy,
    /// The index after the last user message: from here on it is one turn.
    last_prompt_index: usize,
}

impl ReplyEncoder {
    fn new(settings: &ModelSettings, transcript: ModelTranscript<'_>) -> Self {
        let prompts = transcript.steps().enumerate().filter(|(_, step)| matches!(step, ModelStep::Prompt(_)));
        let last_prompt_index = prompts.last().map_or(0, |(index, _)| index);
        Self { model_id: settings.qualified_id(), reasoning: reasoning_policy(settings), last_prompt_index }
    }

    /// A reply without text or calls, such as one cancelled while thinking, is not sent.
    fn assistant_message<'a>(
        &self,
        step_index: usize,
        reply: &'a Reply,
        call_ids: &[(CallId, Cow<'a, str>)],
    ) -> Option<ChatMessage<'a>> {
        let content = Some(reply.text.as_str()).filter(|text| !text.trim().is_empty());
        if content.is_none() && reply.calls.is_empty() {
            return None;
        }
        let provider_state = reply.provider_state_for(&self.model_id);
        let calls = reply.calls.iter().zip(call_ids).enumerate();
        let tool_calls = calls.map(|(call_index, (call, (_, id)))| ChatToolCall {
            id: id.clone(),
            kind: "function",
            function: ChatToolCallFunction {
                name: wire_tool_name(&call.name),
                arguments: arguments_json(call),
            },
            extra_content: provider_state::find_extra_content(provider_state, call_index),
        });
        Some(ChatMessage::Assistant {
            content,
            reasoning_content: self.reasoning_for(step_index, reply),
            reasoning_details: provider_state::find_reasoning_details(provider_state),
            tool_calls: tool_calls.collect(),
        })
    }

    fn reasoning_for<'a>(&self, step_index: usize, reply: &'a Reply) -> Option<&'a str> {
        let thought = Some(reply.thought.as_str()).filter(|thought| !thought.trim().is_empty());
        match self.reasoning {
            ReasoningPolicy::Never => None,
            ReasoningPolicy::CurrentTurn => thought.filter(|_| step_index > self.last_prompt_index),
            ReasoningPolicy::RepliesWithCalls if reply.calls.is_empty() => None,
            ReasoningPolicy::RepliesWithCalls => thought.or(Some(EMPTY_REASONING)),
        }
    }
}

pub(crate) fn arguments_json(call: &ToolCall) -> String {
    match &call.arguments {
        // A map of strings to JSON values can always be encoded.
        ToolArguments::Valid(value) | ToolArguments::Repaired { value, .. } => {
            serde_json::to_string(value).unwrap_or_else(|_| "{}".to_owned())
        }
        ToolArguments::Unreadable { .. } => "{}".to_owned(),
    }
}

fn user_content<'a>(parts: &[&'a ContentPart]) -> Option<ChatContent<'a>> {
    let has_images = parts.iter().any(|part| matches!(part, ContentPart::Image { .. }));
    if has_images {
        let parts = parts
            .iter()
            .filter_map(|part| image_part(part).or_else(|| part_text(part).map(ChatContentPart::from_text)));
        return Some(ChatContent::Parts(parts.collect()));
    }
    let joined = join_lines(parts.iter().filter_map(|part| part_text(part)))?;
    Some(ChatContent::Text(joined))
}

fn result_text(result: &ToolResult) -> Cow<'_, str> {
    let has_images = result.for_model.iter().any(|part| matches!(part, ContentPart::Image { .. }));
    let placeholder = if has_images { IMAGES_FOLLOW } else { NO_OUTPUT };
    join_lines(result.for_model.iter().filter_map(part_text)).unwrap_or(Cow::Borrowed(placeholder))
}

fn result_images_message<'a>(images: &mut Vec<ChatContentPart<'a>>) -> ChatMessage<'a> {
    let label =
        if images.len() == 1 { "The image of the result above:" } else { "The images of the results above:" };
    let mut parts = vec![ChatContentPart::from_text(Cow::Borrowed(label))];
    parts.append(images);
    ChatMessage::User { content: ChatContent::Parts(parts) }
}

pub(crate) fn join_lines<'a>(mut texts: impl Iterator<Item = Cow<'a, str>>) -> Option<Cow<'a, str>> {
    let mut joined = texts.next()?;
    for text in texts {
        let joined = joined.to_mut();
        joined.push('\n');
        joined.push_str(&text);
    }
    Some(joined)
}

fn image_part<'a>(part: &ContentPart) -> Option<ChatContentPart<'a>> {
    match part {
        ContentPart::Image { mime, data } => Some(ChatContentPart::ImageUrl {
            image_url: ImageUrl { url: format!("data:{mime};base64,{data}") },
        }),
        ContentPart::Text(_)
        | ContentPart::Link { .. }
        | ContentPart::Resource { .. }
        | ContentPart::FromCrow { .. } => None,
    }
}
