//! One item of a reply while it arrives, and the item that an event belongs to.

use std::borrow::Cow;

use serde_json::Value;

use crate::surrogates::SurrogateJoiner;

/// Between two messages of one reply.
pub(super) const MESSAGE_SEPARATOR: &str = "\n\n";

/// Parts of one item; further ones share the last place.
const ITEM_PARTS_MAX: usize = 256;

/// The kind of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputItemKind {
    /// Text for the user.
    Message,
    /// Thinking.
    Thought,
    /// A tool call.
    Call,
}

impl OutputItemKind {
    /// Parses the type of an item; other types are ignored.
    pub(super) fn from_item(item: &Value) -> Option<Self> {
        match item["type"].as_str()? {
            "message" => Some(Self::Message),
            "reasoning" => Some(Self::Thought),
            "function_call" => Some(Self::Call),
            _ => None,
        }
    }
}

/// The text of a reasoning item that is used; the other has the same content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReasoningSource {
    /// The summary.
    Summary,
    /// The thinking itself.
    Raw,
}

/// The item that an event refers to. Some servers send indexes, some IDs, some neither.
#[derive(Debug, Clone, Copy)]
pub(super) struct ItemAddress<'a> {
    pub(super) index: Option<usize>,
    pub(super) id: &'a str,
    pub(super) kind: OutputItemKind,
}

/// An item as far as it has arrived.
#[derive(Debug)]
pub(super) struct OutputItem {
    index: Option<usize>,
    pub(super) id: String,
    pub(super) kind: OutputItemKind,
    parts: Vec<ItemPart>,
    pub(super) reasoning_source: Option<ReasoningSource>,
    /// Arguments in the announcement of the item. Some servers stream them afterwards as well.
    pub(super) announced_arguments: String,
    pub(super) is_done: bool,
    /// The final list of all items contained it.
    pub(super) is_listed: bool,
    /// The part that is sent back.
    pub(super) provider_state: Option<Value>,
}

impl OutputItem {
    pub(super) fn new(address: ItemAddress<'_>) -> Self {
        Self {
            index: address.index,
            id: address.id.to_owned(),
            kind: address.kind,
            parts: Vec::new(),
            reasoning_source: None,
            announced_arguments: String::new(),
            is_done: false,
            is_listed: false,
            provider_state: None,
        }
    }

    /// Whether an event belongs to this item. Its index counts more than its ID: some proxies generate a new ID for
    /// each event. But some servers set every index to 0.
    pub(super) fn matches_address(&self, address: ItemAddress<'_>) -> bool {
        let (id, address_id) = (self.id.as_str(), address.id);
        self.kind == address.kind
            && match (self.index, address.index) {
                (Some(index), Some(other)) => {
                    index == other
                        && (!self.is_done || id.is_empty() || address_id.is_empty() || id == address_id)
                }
                _ if !id.is_empty() && !address_id.is_empty() => id == address_id,
                _ => !self.is_done,
            }
    }

    /// Returns what is new in an update of a part's text.
    pub(super) fn append_text<'t>(&mut self, part: usize, text: TextUpdate<'t>) -> Cow<'t, str> {
        let part = part.min(ITEM_PARTS_MAX - 1);
        let surrogates = match self.kind {
            OutputItemKind::Message | OutputItemKind::Thought => SurrogateJoiner::default(),
            OutputItemKind::Call => SurrogateJoiner::for_json(),
        };
        if self.parts.len() <= part {
            self.parts.resize(part + 1, ItemPart { n_bytes: 0, surrogates: surrogates.clone() });
        }
        let item_part = &mut self.parts[part];
        let delta = match text {
            TextUpdate::Delta(text) => item_part.surrogates.join_next(text),
            TextUpdate::Complete(text) => {
                // The pending half is in the complete text.
                item_part.surrogates = surrogates;
                Cow::Borrowed(text.get(item_part.n_bytes..).unwrap_or_default())
            }
        };
        item_part.n_bytes += delta.len();
        delta
    }

    /// Returns what is still pending.
    pub(super) fn take_pending(&mut self) -> String {
        self.parts.iter_mut().map(|part| part.surrogates.flush()).collect()
    }

    /// Whether nothing of it was emitted.
    pub(super) fn is_silent(&self) -> bool {
        self.parts.iter().all(|part| part.n_bytes == 0)
    }
}

/// The text of a part so far.
#[derive(Debug, Clone)]
struct ItemPart {
    n_bytes: usize,
    surrogates: SurrogateJoiner,
}

/// The text of an event.
#[derive(Debug, Clone, Copy)]
pub(super) enum TextUpdate<'a> {
    /// A delta.
    Delta(&'a str),
    /// The complete text.
    Complete(&'a str),
}

/// The part of a complete item that is sent back with the reply; `None` if that is impossible. The arguments of a
/// call are not included: the transcript has them.
pub(super) fn replay_item(kind: OutputItemKind, item: &Value) -> Option<Value> {
    if matches!(item["status"].as_str(), Some("incomplete" | "in_progress")) {
        return None;
    }
    match kind {
        OutputItemKind::Message => Some(item.clone()),
        OutputItemKind::Call => {
            let mut provider_state = item.clone();
            let fields = provider_state.as_object_mut()?;
            fields.retain(|name, _| matches!(name.as_str(), "type" | "id" | "call_id"));
            Some(provider_state)
        }
        OutputItemKind::Thought => {
            let is_encrypted = item["encrypted_content"].as_str().is_some_and(|text| !text.is_empty());
            let is_plain = item["content"].as_array().is_some_and(|parts| !parts.is_empty());
            // Its ID alone is useless: nothing was stored under it.
            (is_encrypted || is_plain).then(|| item.clone())
        }
    }
}

/// The parts of a message.
pub(super) fn message_parts(item: &Value) -> impl Iterator<Item = &str> {
    let parts = item["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    parts.iter().map(|part| part["text"].as_str().or(part["refusal"].as_str()).unwrap_or_default())
}

/// The text of a message.
pub(super) fn message_text(item: &Value) -> Cow<'_, str> {
    let mut parts = message_parts(item).filter(|part| !part.is_empty());
    let first = parts.next().unwrap_or_default();
    parts.fold(Cow::Borrowed(first), |text, part| text + part)
}

/// The start of a call.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CallHeader<'a> {
    pub(super) id: &'a str,
    pub(super) name: &'a str,
}

impl<'a> CallHeader<'a> {
    pub(super) fn from_item(item: &'a Value) -> Self {
        let field = |name: &str| item[name].as_str().filter(|text| !text.is_empty());
        Self {
            id: field("call_id").or(field("id")).unwrap_or_default(),
            name: field("name").unwrap_or_default(),
        }
    }
}
