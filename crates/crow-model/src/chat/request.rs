//! Encodes a conversation as the body of `chat/completions`. The only module that does.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use crow_core::{ContentPart, ModelTranscript, Reply, ToolCall, ToolResult, ToolSpec};
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::provider_quirks::{
    ReasoningPolicy, has_mistral_rules, is_mistral_call_id, max_tokens_field, mistral_call_id,
    needs_cache_marks, reasoning_policy,
};
use super::provider_state;
use crate::ModelSettings;
use crate::conversation::{ConversationEncoder, ReplyStep, encode_conversation};
use crate::encoded_messages::{EncodedMessages, EncodedPrefix};
use crate::wire::{
    BodyFields, NO_OUTPUT, UsedCallIds, WireCallIds, arguments_json, image_data_url, join_lines, part_text,
    wire_tool_name,
};

/// The reasoning for providers that require some; an empty string counts as missing.
const EMPTY_REASONING: &str = " ";

/// The text of a result that consists of images.
const IMAGES_FOLLOW: &str = "(the images follow)";

/// The reply between results and a user message, for providers that require one.
const RESULTS_ACKNOWLEDGED: &str = "OK.";

/// Builds the body of a request.
pub(crate) fn build_body(
    settings: &ModelSettings,
    transcript: ModelTranscript<'_>,
    tools: &[ToolSpec],
    encoded_messages: &EncodedMessages,
) -> Result<Vec<u8>, serde_json::Error> {
    let mut prefix = encoded_messages.lock_prefix(transcript.identity(), encoding_rules(settings));
    let (mut messages, last_prompt) = build_messages(settings, transcript, &prefix);
    if let Some(MessagePlace { n_steps, n_messages }) = last_prompt {
        let n_kept = prefix.keep_messages(&messages[..n_messages], n_steps)?;
        messages.drain(..n_kept);
    }
    let messages = ChatMessages { encoded: prefix.messages(), new: &messages };
    serde_json::to_vec(&ChatRequest { settings, messages, tools })
}

/// Returns what decides how messages are encoded that are followed by a prompt; `None` if the messages after them do, too.
fn encoding_rules(settings: &ModelSettings) -> Option<String> {
    let is_fixed = !has_mistral_rules(settings) && !needs_cache_marks(settings);
    is_fixed.then(|| format!("{} {:?}", settings.qualified_id(), reasoning_policy(settings)))
}

struct ChatRequest<'a> {
    settings: &'a ModelSettings,
    messages: ChatMessages<'a>,
    tools: &'a [ToolSpec],
}

struct ChatMessages<'a> {
    encoded: &'a [Box<RawValue>],
    new: &'a [ChatMessage<'a>],
}

impl Serialize for ChatMessages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { encoded, new } = self;
        let mut messages = serializer.serialize_seq(Some(encoded.len() + new.len()))?;
        encoded.iter().try_for_each(|message| messages.serialize_element(message))?;
        new.iter().try_for_each(|message| messages.serialize_element(message))?;
        messages.end()
    }
}

impl Serialize for ChatRequest<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let settings = self.settings;
        let extra_fields = settings.extra_fields();
        let mut fields = BodyFields::new(serializer.serialize_map(None)?, &extra_fields);
        fields.add_field("model", &settings.model)?;
        fields.add_field("messages", &self.messages)?;
        if !self.tools.is_empty() {
            fields.add_field("tools", &ChatTools(self.tools))?;
            fields.add_field("parallel_tool_calls", &settings.wants_parallel_calls())?;
        }
        fields.add_field("stream", &true)?;
        fields.add_field("stream_options", &StreamOptions { include_usage: true })?;
        fields.add_optional_field(max_tokens_field(settings), settings.max_tokens.as_ref())?;
        fields.add_optional_field("temperature", settings.temperature.as_ref())?;
        fields.add_optional_field("reasoning_effort", settings.effort_level().as_ref())?;
        fields.finish()
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

/// The conversation in the provider's order, after the messages that are encoded already; and the place of the last prompt.
fn build_messages<'a>(
    settings: &ModelSettings,
    transcript: ModelTranscript<'a>,
    prefix: &EncodedPrefix,
) -> (Vec<ChatMessage<'a>>, Option<MessagePlace>) {
    let mut messages = Vec::new();
    if prefix.messages().is_empty() && !transcript.system().trim().is_empty() {
        let content = ChatContent::Text(Cow::Borrowed(transcript.system()));
        messages.push(ChatMessage::System { content });
    }
    let mut encoder = ChatEncoder {
        messages,
        model_id: settings.qualified_id(),
        reasoning: reasoning_policy(settings),
        mistral_ids: has_mistral_rules(settings).then(UsedCallIds::default),
        result_images: Vec::new(),
        last_prompt: None,
    };
    encode_conversation(transcript, prefix.n_steps(), &mut encoder);
    encoder.add_result_images();
    let ChatEncoder { mut messages, last_prompt, .. } = encoder;
    if needs_cache_marks(settings) {
        mark_cache(&mut messages);
    }
    (messages, last_prompt)
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

/// The messages while they are put in order.
struct ChatEncoder<'a> {
    messages: Vec<ChatMessage<'a>>,
    /// The model, as its provider state names it.
    model_id: String,
    reasoning: ReasoningPolicy,
    /// The IDs so far, if Mistral's rules apply.
    mistral_ids: Option<UsedCallIds<'a>>,
    /// The images of the latest results.
    result_images: Vec<ChatContentPart<'a>>,
    /// The last prompt before which everything is in the messages.
    last_prompt: Option<MessagePlace>,
}

/// A place in the conversation.
struct MessagePlace {
    /// The steps before it.
    n_steps: usize,
    /// The messages before it, without those that were encoded before.
    n_messages: usize,
}

impl<'a> ConversationEncoder<'a> for ChatEncoder<'a> {
    type EncodedReply = ChatMessage<'a>;

    /// The provider's own IDs, unless two calls of the reply share one or the API rejects them.
    fn choose_call_ids(&mut self, reply: &'a Reply) -> WireCallIds<'a> {
        if let Some(used_ids) = &mut self.mistral_ids {
            return used_ids.choose_ids(reply, is_mistral_call_id).with_own_ids(mistral_call_id);
        }
        let n_with_id = |call: &ToolCall| {
            reply.calls.iter().filter(|other| other.provider_id == call.provider_id).count()
        };
        WireCallIds::new(reply, |call| !call.provider_id.is_empty() && n_with_id(call) == 1)
    }

    /// A reply without text or calls, such as one cancelled while thinking, is not sent.
    fn encode_reply(&self, step: ReplyStep<'a, '_>) -> Option<ChatMessage<'a>> {
        let reply = step.reply;
        let content = Some(reply.text.as_str()).filter(|text| !text.trim().is_empty());
        if content.is_none() && reply.calls.is_empty() {
            return None;
        }
        let provider_state = reply.provider_state_for(&self.model_id);
        let calls = reply.calls.iter().zip(step.call_ids.iter()).enumerate();
        let tool_calls = calls.map(|(call_index, (call, id))| ChatToolCall {
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
            reasoning_content: self.reasoning_for(step),
            reasoning_details: provider_state::find_reasoning_details(provider_state),
            tool_calls: tool_calls.collect(),
        })
    }

    fn on_prompt(&mut self, n_steps: usize) {
        if self.result_images.is_empty() {
            self.last_prompt = Some(MessagePlace { n_steps, n_messages: self.messages.len() });
        }
    }

    fn add_prompt_parts(&mut self, parts: &[&'a ContentPart]) {
        if let Some(content) = user_content(parts) {
            self.add_result_images();
            self.push_user(content);
        }
    }

    fn add_reply(&mut self, message: ChatMessage<'a>) {
        self.add_result_images();
        self.messages.push(message);
    }

    fn add_result(&mut self, tool_call_id: Cow<'a, str>, result: &'a ToolResult) {
        let content = ChatContent::Text(result_text(result));
        self.messages.push(ChatMessage::Tool { tool_call_id, content });
        self.result_images.extend(result.for_model.iter().filter_map(image_part));
    }
}

impl<'a> ChatEncoder<'a> {
    fn reasoning_for(&self, ReplyStep { reply, is_in_last_turn, .. }: ReplyStep<'a, '_>) -> Option<&'a str> {
        let thought = Some(reply.thought.as_str()).filter(|thought| !thought.trim().is_empty());
        match self.reasoning {
            ReasoningPolicy::Never => None,
            ReasoningPolicy::CurrentTurn => thought.filter(|_| is_in_last_turn),
            ReasoningPolicy::RepliesWithCalls if reply.calls.is_empty() => None,
            ReasoningPolicy::RepliesWithCalls => thought.or(Some(EMPTY_REASONING)),
        }
    }

    /// Most providers accept only text in a result, so its images follow after the last result.
    fn add_result_images(&mut self) {
        let label = match self.result_images.len() {
            0 => return,
            1 => "The image of the result above:",
            _ => "The images of the results above:",
        };
        let mut parts = vec![ChatContentPart::from_text(Cow::Borrowed(label))];
        parts.append(&mut self.result_images);
        self.push_user(ChatContent::Parts(parts));
    }

    fn push_user(&mut self, content: ChatContent<'a>) {
        if self.mistral_ids.is_some() && matches!(self.messages.last(), Some(ChatMessage::Tool { .. })) {
            self.messages.push(ChatMessage::Assistant {
                content: Some(RESULTS_ACKNOWLEDGED),
                reasoning_content: None,
                reasoning_details: None,
                tool_calls: Vec::new(),
            });
        }
        self.messages.push(ChatMessage::User { content });
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

fn image_part<'a>(part: &ContentPart) -> Option<ChatContentPart<'a>> {
    match part {
        ContentPart::Image { mime, data } => {
            Some(ChatContentPart::ImageUrl { image_url: ImageUrl { url: image_data_url(mime, data) } })
        }
        ContentPart::Text(_)
        | ContentPart::Link { .. }
        | ContentPart::Resource { .. }
        | ContentPart::FromCrow { .. } => None,
    }
}
