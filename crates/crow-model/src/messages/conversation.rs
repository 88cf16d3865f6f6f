//! The conversation as messages of content blocks, in the form that the provider takes: a person's message first and
//! last, the two sides in turn, each call with a name of its own and its result at the head of what follows.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crow_core::{
    CallId, ContentPart, ModelStep, ModelTranscript, Reply, ToolCall, ToolCallStatus, ToolResult,
};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::ModelSettings;
use crate::parts::{NO_WORDS, is_valid_name, part_text, wire_tool_name};

/// Said for the person where the provider wants them to speak and they did not.
const GO_ON: &str = "(go on)";

/// How Crow's own names of calls begin; no provider's name may look like one.
const OWN_ID: &str = "call-";

/// The images that the provider reads.
const MIMES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Markers for the cache on the last messages of the person: where this request ends, and where the one before did.
const MARKED_MESSAGES: usize = 2;

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
    /// Reasoning as the provider gave it.
    #[serde(untagged)]
    Thinking(&'a Value),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "base64")]
pub(super) struct AnthropicImageSource<'a> {
    media_type: &'a str,
    data: &'a str,
}

/// Marks the end of a beginning that is worth keeping at the provider.
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
            // Nothing of the model's stands at the end of a message of the person.
            Self::ToolUse { .. } | Self::Thinking(_) => {}
        }
    }
}

/// Spells the conversation.
pub(super) fn build_messages<'a>(
    settings: &ModelSettings,
    transcript: ModelTranscript<'a>,
) -> Vec<AnthropicMessage<'a>> {
    let by = settings.qualified_id();
    let mut talk = MessageList { messages: Vec::new() };
    let mut ids = WireCallIds::default();
    let mut names: Vec<(CallId, Cow<'a, str>)> = Vec::new();
    for step in transcript.steps() {
        match step {
            ModelStep::Prompt(prompt) => talk.push_user(prompt.parts.iter().filter_map(part_block)),
            ModelStep::Reply(reply) => {
                names = ids.assign_ids(reply);
                let sealed =
                    if settings.send_reasoning == Some(false) { &[] } else { reply.provider_state_for(&by) };
                talk.push_assistant(reply_blocks(reply, &names, sealed));
            }
            ModelStep::Result { call, outcome } => {
                let name = names.iter().find(|(id, _)| *id == call);
                // The transcript has a reply before each result; without one there is nothing to say.
                let Some((_, name)) = name else { continue };
                talk.push_user([tool_result_block(name.clone(), outcome)]);
            }
        }
    }
    talk.finish()
}

/// Marks the ends of the last messages of the person, so that each request reads what the one before wrote.
pub(super) fn mark_cache(messages: &mut [AnthropicMessage<'_>]) {
    let of_person = messages.iter_mut().rev().filter(|message| message.role == AnthropicRole::User);
    of_person
        .take(MARKED_MESSAGES)
        .filter_map(|message| message.content.last_mut())
        .for_each(AnthropicBlock::add_cache_control);
}

/// Tells whether the model is in the middle of a turn that it began without reasoning, or with some that is not here.
pub(super) fn turn_began_without_thinking(messages: &[AnthropicMessage<'_>]) -> bool {
    let says = |block: &AnthropicBlock<'_>| !matches!(block, AnthropicBlock::ToolResult { .. });
    let asked = messages
        .iter()
        .rposition(|message| message.role == AnthropicRole::User && message.content.iter().any(says));
    let first = asked.and_then(|asked| messages.get(asked + 1)).and_then(|reply| reply.content.first());
    first.is_some_and(|block| !matches!(block, AnthropicBlock::Thinking(_)))
}

/// Leaves the reasoning out. No message is only reasoning, so each keeps something.
pub(super) fn remove_thinking(messages: &mut [AnthropicMessage<'_>]) {
    for message in messages {
        message.content.retain(|block| !matches!(block, AnthropicBlock::Thinking(_)));
    }
}

struct MessageList<'a> {
    messages: Vec<AnthropicMessage<'a>>,
}

impl<'a> MessageList<'a> {
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

    /// A reply without words or calls, such as one cut while it was thinking, is no message.
    fn push_assistant(&mut self, content: Vec<AnthropicBlock<'a>>) {
        if content.is_empty() {
            return;
        }
        if self.messages.last().is_none_or(|message| message.role == AnthropicRole::Assistant) {
            self.push_user([AnthropicBlock::from_text(GO_ON)]);
        }
        self.messages.push(AnthropicMessage { role: AnthropicRole::Assistant, content });
    }

    /// The provider would take a reply at the end for the beginning of the next, or refuse it.
    fn finish(mut self) -> Vec<AnthropicMessage<'a>> {
        if self.messages.last().is_none_or(|message| message.role == AnthropicRole::Assistant) {
            self.push_user([AnthropicBlock::from_text(GO_ON)]);
        }
        self.messages
    }
}

/// The names of calls on the wire, each there once in a request.
#[derive(Default)]
struct WireCallIds<'a> {
    taken: BTreeSet<&'a str>,
}

impl<'a> WireCallIds<'a> {
    /// The provider's own name where it fits and is new; else Crow's, which is always both.
    fn assign_ids(&mut self, reply: &'a Reply) -> Vec<(CallId, Cow<'a, str>)> {
        let name = |call: &'a ToolCall| {
            let id = call.provider_id.as_str();
            let is_usable = is_valid_name(id) && !id.starts_with(OWN_ID) && self.taken.insert(id);
            (call.id, if is_usable { Cow::Borrowed(id) } else { Cow::Owned(call.id.to_string()) })
        };
        reply.calls.iter().map(name).collect()
    }
}

/// Puts a reply together again in the order in which its pieces came.
fn reply_blocks<'a>(
    reply: &'a Reply,
    names: &[(CallId, Cow<'a, str>)],
    sealed: &'a [Value],
) -> Vec<AnthropicBlock<'a>> {
    let mut words = reply.text.as_str();
    let mut calls = reply.calls.iter().zip(names).map(|(call, (_, id))| AnthropicBlock::ToolUse {
        id: id.clone(),
        name: wire_tool_name(&call.name),
        input: call.arguments.to_object(),
    });
    let mut content = Vec::new();
    for piece in sealed {
        match piece["type"].as_str() {
            Some("thinking" | "redacted_thinking") => content.push(AnthropicBlock::Thinking(piece)),
            Some("text") => {
                let n_bytes = piece["n_bytes"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
                let (piece, rest) = words.split_at(words.floor_char_boundary(n_bytes));
                words = rest;
                content.extend(text_block(piece));
            }
            Some("tool_use") => content.extend(calls.next()),
            _ => {}
        }
    }
    content.extend(text_block(words));
    content.extend(calls);
    // The provider takes no reasoning that leads to nothing.
    while matches!(content.last(), Some(AnthropicBlock::Thinking(_))) {
        content.pop();
    }
    content
}

fn text_block(words: &str) -> Option<AnthropicBlock<'_>> {
    (!words.trim().is_empty()).then(|| AnthropicBlock::from_text(words))
}

fn tool_result_block<'a>(tool_use_id: Cow<'a, str>, outcome: &'a ToolResult) -> AnthropicBlock<'a> {
    let mut content: Vec<_> = outcome.for_model.iter().filter_map(part_block).collect();
    if content.is_empty() {
        content.push(AnthropicBlock::from_text(NO_WORDS));
    }
    // The provider takes nothing but text in a failure.
    let is_text = content.iter().all(|block| matches!(block, AnthropicBlock::Text { .. }));
    let is_error = outcome.status == ToolCallStatus::Failed && is_text;
    AnthropicBlock::ToolResult { tool_use_id, content, is_error, cache_control: None }
}

fn part_block(part: &ContentPart) -> Option<AnthropicBlock<'_>> {
    match part {
        ContentPart::Image { mime, data } if MIMES.contains(&mime.as_str()) => {
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
