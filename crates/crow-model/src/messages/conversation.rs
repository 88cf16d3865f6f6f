//! The conversation as messages of content blocks, in the form that the provider takes: a person's message first and
//! last, the two sides in turn, each call with a name of its own and its result at the head of what follows.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crow_core::{Call, CallId, ForModel, Outcome, Part, Reply, Shown, Status};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::ModelSettings;
use crate::parts::{NO_WORDS, fits, text, tool_name};

/// Said for the person where the provider wants them to speak and they did not.
const GO_ON: &str = "(go on)";

/// How Crow's own names of calls begin; no provider's name may look like one.
const OWN_ID: &str = "call-";

/// The images that the provider reads.
const MIMES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Markers for the cache on the last messages of the person: where this request ends, and where the one before did.
const MARKED_MESSAGES: usize = 2;

#[derive(Debug, Serialize)]
pub(super) struct Message<'a> {
    role: Role,
    content: Vec<Block<'a>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    User,
    Assistant,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Image {
        source: Source<'a>,
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
        content: Vec<Block<'a>>,
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
pub(super) struct Source<'a> {
    media_type: &'a str,
    data: &'a str,
}

/// Marks the end of a beginning that is worth keeping at the provider.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "type", rename = "ephemeral")]
pub(super) struct CacheControl {}

impl<'a> Block<'a> {
    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text { text: text.into(), cache_control: None }
    }

    pub(super) fn mark(&mut self) {
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
pub(super) fn messages<'a>(settings: &ModelSettings, transcript: ForModel<'a>) -> Vec<Message<'a>> {
    let by = settings.id();
    let mut talk = Talk { messages: Vec::new() };
    let mut ids = Ids::default();
    let mut names: Vec<(CallId, Cow<'a, str>)> = Vec::new();
    for step in transcript.steps() {
        match step {
            Shown::Prompt(prompt) => talk.user(prompt.parts.iter().filter_map(block)),
            Shown::Reply(reply) => {
                names = ids.of(reply);
                let sealed = if settings.send_reasoning == Some(false) { &[] } else { reply.sealed_by(&by) };
                talk.assistant(assistant(reply, &names, sealed));
            }
            Shown::Result { call, outcome } => {
                let name = names.iter().find(|(id, _)| *id == call);
                // The transcript has a reply before each result; without one there is nothing to say.
                let Some((_, name)) = name else { continue };
                talk.user([result(name.clone(), outcome)]);
            }
        }
    }
    talk.end()
}

/// Marks the ends of the last messages of the person, so that each request reads what the one before wrote.
pub(super) fn mark(messages: &mut [Message<'_>]) {
    let of_person = messages.iter_mut().rev().filter(|message| message.role == Role::User);
    of_person.take(MARKED_MESSAGES).filter_map(|message| message.content.last_mut()).for_each(Block::mark);
}

/// Tells whether the model is in the middle of a turn that it began without reasoning, or with some that is not here.
pub(super) fn turn_began_without_thinking(messages: &[Message<'_>]) -> bool {
    let says = |block: &Block<'_>| !matches!(block, Block::ToolResult { .. });
    let asked =
        messages.iter().rposition(|message| message.role == Role::User && message.content.iter().any(says));
    let first = asked.and_then(|asked| messages.get(asked + 1)).and_then(|reply| reply.content.first());
    first.is_some_and(|block| !matches!(block, Block::Thinking(_)))
}

/// Leaves the reasoning out. No message is only reasoning, so each keeps something.
pub(super) fn leave_thinking_out(messages: &mut [Message<'_>]) {
    for message in messages {
        message.content.retain(|block| !matches!(block, Block::Thinking(_)));
    }
}

struct Talk<'a> {
    messages: Vec<Message<'a>>,
}

impl<'a> Talk<'a> {
    fn user(&mut self, blocks: impl IntoIterator<Item = Block<'a>>) {
        let mut blocks = blocks.into_iter().peekable();
        if blocks.peek().is_none() {
            return;
        }
        match self.messages.last_mut().filter(|message| message.role == Role::User) {
            Some(message) => message.content.extend(blocks),
            None => self.messages.push(Message { role: Role::User, content: blocks.collect() }),
        }
    }

    /// A reply without words or calls, such as one cut while it was thinking, is no message.
    fn assistant(&mut self, content: Vec<Block<'a>>) {
        if content.is_empty() {
            return;
        }
        if self.messages.last().is_none_or(|message| message.role == Role::Assistant) {
            self.user([Block::text(GO_ON)]);
        }
        self.messages.push(Message { role: Role::Assistant, content });
    }

    /// The provider would take a reply at the end for the beginning of the next, or refuse it.
    fn end(mut self) -> Vec<Message<'a>> {
        if self.messages.last().is_none_or(|message| message.role == Role::Assistant) {
            self.user([Block::text(GO_ON)]);
        }
        self.messages
    }
}

/// The names of calls on the wire, each there once in a request.
#[derive(Default)]
struct Ids<'a> {
    taken: BTreeSet<&'a str>,
}

impl<'a> Ids<'a> {
    /// The provider's own name where it fits and is new; else Crow's, which is always both.
    fn of(&mut self, reply: &'a Reply) -> Vec<(CallId, Cow<'a, str>)> {
        let name = |call: &'a Call| {
            let id = call.provider_id.as_str();
            let is_usable = fits(id) && !id.starts_with(OWN_ID) && self.taken.insert(id);
            (call.id, if is_usable { Cow::Borrowed(id) } else { Cow::Owned(call.id.to_string()) })
        };
        reply.calls.iter().map(name).collect()
    }
}

/// Puts a reply together again in the order in which its pieces came.
fn assistant<'a>(reply: &'a Reply, names: &[(CallId, Cow<'a, str>)], sealed: &'a [Value]) -> Vec<Block<'a>> {
    let mut words = reply.text.as_str();
    let mut calls = reply.calls.iter().zip(names).map(|(call, (_, id))| Block::ToolUse {
        id: id.clone(),
        name: tool_name(&call.name),
        input: call.arguments.object(),
    });
    let mut content = Vec::new();
    for piece in sealed {
        match piece["type"].as_str() {
            Some("thinking" | "redacted_thinking") => content.push(Block::Thinking(piece)),
            Some("text") => {
                let n_bytes = piece["n_bytes"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
                let (piece, rest) = words.split_at(words.floor_char_boundary(n_bytes));
                words = rest;
                content.extend(said(piece));
            }
            Some("tool_use") => content.extend(calls.next()),
            _ => {}
        }
    }
    content.extend(said(words));
    content.extend(calls);
    // The provider takes no reasoning that leads to nothing.
    while matches!(content.last(), Some(Block::Thinking(_))) {
        content.pop();
    }
    content
}

fn said(words: &str) -> Option<Block<'_>> {
    (!words.trim().is_empty()).then(|| Block::text(words))
}

fn result<'a>(tool_use_id: Cow<'a, str>, outcome: &'a Outcome) -> Block<'a> {
    let mut content: Vec<_> = outcome.for_model.iter().filter_map(block).collect();
    if content.is_empty() {
        content.push(Block::text(NO_WORDS));
    }
    // The provider takes nothing but text in a failure.
    let is_text = content.iter().all(|block| matches!(block, Block::Text { .. }));
    let is_error = outcome.status == Status::Failed && is_text;
    Block::ToolResult { tool_use_id, content, is_error, cache_control: None }
}

fn block(part: &Part) -> Option<Block<'_>> {
    match part {
        Part::Image { mime, data } if MIMES.contains(&mime.as_str()) => {
            let source = Source { media_type: mime, data };
            Some(Block::Image { source, cache_control: None })
        }
        Part::Image { mime, .. } => {
            Some(Block::text(format!("(an image of type {mime}, which cannot be shown)")))
        }
        Part::Text(_) | Part::Link { .. } | Part::Resource { .. } | Part::FromCrow { .. } => {
            text(part).map(Block::text)
        }
    }
}
