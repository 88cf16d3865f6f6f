//! The conversation as messages of content blocks, in the form that the provider accepts: a user message first and
//! last, alternating roles, each call with a unique ID and its result at the start of the next message.

use std::borrow::Cow;

use crow_core::{ContentPart, ModelTranscript, Reply, ToolCallStatus, ToolResult};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::ModelSettings;
use crate::conversation::{ConversationEncoder, ReplyStep, encode_conversation};
use crate::wire::{NO_OUTPUT, UsedCallIds, WireCallIds, is_valid_name, part_text, wire_tool_name};

/// The user message where the provider requires one and there is none.
const CONTINUE: &str = "(go on)";

/// The prefix of Crow's own call IDs; no provider's ID may look like one.
const CROW_ID_PREFIX: &str = "call-";

/// The image types that the provider accepts.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Cache marks on the last user messages: at the end of this request, and of the previous one.
const MARKED_MESSAGES_MAX: usize = 2;

#[derive(Debug, Serialize)]
pub(super) struct AnthropicMessage<'a> {
    role: AnthropicRole,
    content: Vec<AnthropicBlock<'a>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum AnthropicRole {
    User,
    Assistant,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum AnthropicBlock<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Image {
        source: AnthropicImageSource<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: Map<String, Value>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: Vec<AnthropicBlock<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    /// Thinking as the provider sent it.
    #[serde(untagged)]
    Thinking(&'a Value),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "base64")]
pub(super) struct AnthropicImageSource<'a> {
    media_type: &'a str,
    data: &'a str,
}

/// Marks the end of a prefix for the provider's cache.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "type", rename = "ephemeral")]
pub(super) struct CacheControl {}

impl<'a> AnthropicBlock<'a> {
    pub(super) fn from_text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text { text: text.into(), cache_control: None }
    }

    pub(super) fn add_cache_control(&mut self) {
        match self {
            Self::Text { cache_control, .. }
            | Self::Image { cache_control, .. }
            | Self::ToolResult { cache_control, .. } => *cache_control = Some(CacheControl {}),
            // A user message never ends with a block of the model.
            Self::ToolUse { .. } | Self::Thinking(_) => {}
        }
    }
}

/// Encodes the conversation.
pub(super) fn build_messages<'a>(
    settings: &ModelSettings,
    transcript: ModelTranscript<'a>,
) -> Vec<AnthropicMessage<'a>> {
    let model_id = Some(settings.qualified_id()).filter(|_| settings.send_reasoning != Some(false));
    let mut encoder = AnthropicEncoder { messages: Vec::new(), used_ids: UsedCallIds::default(), model_id };
    encode_conversation(transcript, 0, &mut encoder);
    encoder.finish()
}

/// Marks the end of what all sessions of a project share, and the ends of the last user messages, so that each request
/// reads what the previous one wrote.
pub(super) fn mark_cache(messages: &mut [AnthropicMessage<'_>], n_project_parts: usize) {
    let first_content = messages.first_mut().map(|message| &mut message.content);
    let last_shared = first_content.and_then(|content| content.get_mut(n_project_parts.checked_sub(1)?));
    if let Some(block) = last_shared {
        block.add_cache_control();
    }
    let user_messages = messages.iter_mut().rev().filter(|message| message.role == AnthropicRole::User);
    user_messages
        .take(MARKED_MESSAGES_MAX)
        .filter_map(|message| message.content.last_mut())
        .for_each(AnthropicBlock::add_cache_control);
}

/// Whether the model is in the middle of a turn that it began without thinking, or with thinking that is missing
/// here.
pub(super) fn turn_began_without_thinking(messages: &[AnthropicMessage<'_>]) -> bool {
    let is_user_content = |block: &AnthropicBlock<'_>| !matches!(block, AnthropicBlock::ToolResult { .. });
    let last_prompt = messages.iter().rposition(|message| {
        message.role == AnthropicRole::User && message.content.iter().any(is_user_content)
    });
    let first = last_prompt
        .and_then(|last_prompt| messages.get(last_prompt + 1))
        .and_then(|reply| reply.content.first());
    first.is_some_and(|block| !matches!(block, AnthropicBlock::Thinking(_)))
}

/// Removes the thinking. No message consists of thinking only, so each keeps something.
pub(super) fn remove_thinking(messages: &mut [AnthropicMessage<'_>]) {
    for message in messages {
        message.content.retain(|block| !matches!(block, AnthropicBlock::Thinking(_)));
    }
}

/// The messages while they are put in order.
struct AnthropicEncoder<'a> {
    messages: Vec<AnthropicMessage<'a>>,
    used_ids: UsedCallIds<'a>,
    /// The model whose thinking is sent back, as its provider state names it.
    model_id: Option<String>,
}

impl<'a> ConversationEncoder<'a> for AnthropicEncoder<'a> {
    type EncodedReply = Vec<AnthropicBlock<'a>>;

    fn choose_call_ids(&mut self, reply: &'a Reply) -> WireCallIds<'a> {
        self.used_ids.choose_ids(reply, |id| is_valid_name(id) && !id.starts_with(CROW_ID_PREFIX))
    }

    /// A reply without text or calls, such as one cancelled while thinking, is not sent.
    fn encode_reply(&self, step: ReplyStep<'a, '_>) -> Option<Vec<AnthropicBlock<'a>>> {
        Some(reply_blocks(step, self.model_id.as_deref())).filter(|content| !content.is_empty())
    }

    fn add_prompt_parts(&mut self, parts: &[&'a ContentPart]) {
        self.push_user(parts.iter().copied().filter_map(part_block));
    }

    fn add_reply(&mut self, content: Vec<AnthropicBlock<'a>>) {
        if self.messages.last().is_none_or(|message| message.role == AnthropicRole::Assistant) {
            self.push_user([AnthropicBlock::from_text(CONTINUE)]);
        }
        self.messages.push(AnthropicMessage { role: AnthropicRole::Assistant, content });
    }

    fn add_result(&mut self, call_id: Cow<'a, str>, result: &'a ToolResult) {
        self.push_user([tool_result_block(call_id, result)]);
    }
}

impl<'a> AnthropicEncoder<'a> {
    fn push_user(&mut self, blocks: impl IntoIterator<Item = AnthropicBlock<'a>>) {
        let mut blocks = blocks.into_iter().peekable();
        if blocks.peek().is_none() {
            return;
        }
        match self.messages.last_mut().filter(|message| message.role == AnthropicRole::User) {
            Some(message) => message.content.extend(blocks),
            None => {
                self.messages.push(AnthropicMessage { role: AnthropicRole::User, content: blocks.collect() });
            }
        }
    }

    /// The provider would continue a final reply, or reject it.
    fn finish(mut self) -> Vec<AnthropicMessage<'a>> {
        if self.messages.last().is_none_or(|message| message.role == AnthropicRole::Assistant) {
            self.push_user([AnthropicBlock::from_text(CONTINUE)]);
        }
        self.messages
    }
}

/// Reassembles a reply in the order in which its blocks arrived.
fn reply_blocks<'a>(
    ReplyStep { reply, call_ids, .. }: ReplyStep<'a, '_>,
    model_id: Option<&str>,
) -> Vec<AnthropicBlock<'a>> {
    let provider_state = model_id.map_or(&[][..], |model_id| reply.provider_state_for(model_id));
    let mut text = reply.text.as_str();
    let mut calls = reply.calls.iter().zip(call_ids.iter()).map(|(call, id)| AnthropicBlock::ToolUse {
        id: id.clone(),
        name: wire_tool_name(&call.name),
        input: call.arguments.to_object(),
    });
    let mut content = Vec::new();
    for item in provider_state {
        match item["type"].as_str() {
            Some("thinking" | "redacted_thinking") => content.push(AnthropicBlock::Thinking(item)),
            Some("text") => {
                let n_bytes = item["n_bytes"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
                let (item, rest) = text.split_at(text.floor_char_boundary(n_bytes));
                text = rest;
                content.extend(text_block(item));
            }
            Some("tool_use") => content.extend(calls.next()),
            _ => {}
        }
    }
    content.extend(text_block(text));
    content.extend(calls);
    // The provider rejects thinking at the end.
    while matches!(content.last(), Some(AnthropicBlock::Thinking(_))) {
        content.pop();
    }
    content
}

fn text_block(text: &str) -> Option<AnthropicBlock<'_>> {
    (!text.trim().is_empty()).then(|| AnthropicBlock::from_text(text))
}

fn tool_result_block<'a>(tool_use_id: Cow<'a, str>, result: &'a ToolResult) -> AnthropicBlock<'a> {
    let mut content: Vec<_> = result.for_model.iter().filter_map(part_block).collect();
    if content.is_empty() {
        content.push(AnthropicBlock::from_text(NO_OUTPUT));
    }
    // The provider accepts only text in a failed result.
    let is_text = content.iter().all(|block| matches!(block, AnthropicBlock::Text { .. }));
    let is_error = result.status == ToolCallStatus::Failed && is_text;
    AnthropicBlock::ToolResult { tool_use_id, content, is_error, cache_control: None }
}

fn part_block(part: &ContentPart) -> Option<AnthropicBlock<'_>> {
    match part {
        ContentPart::Image { mime, data } if IMAGE_TYPES.contains(&mime.as_str()) => {
            let source = AnthropicImageSource { media_type: mime, data };
            Some(AnthropicBlock::Image { source, cache_control: None })
        }
        ContentPart::Image { mime, .. } => {
            Some(AnthropicBlock::from_text(format!("(an image of type {mime}, which cannot be shown)")))
        }
        ContentPart::Text(_)
        | ContentPart::Link { .. }
        | ContentPart::Resource { .. }
        | ContentPart::FromCrow { .. } => part_text(part).map(AnthropicBlock::from_text),
    }
}
