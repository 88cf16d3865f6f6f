//! One item of a reply while it arrives, and which item an event is about.

use std::borrow::Cow;

use serde_json::Value;

use crate::halves::SurrogateJoiner;

/// Parts of one item; whatever comes after shares the last place.
const PARTS_MAX: usize = 256;

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputItemKind {
    /// Words to the person.
    Message,
    /// Reasoning.
    Thought,
    /// A call of a tool.
    Call,
}

impl OutputItemKind {
    /// Reads the type of an item; the others are none of ours.
    pub(super) fn from_item(item: &Value) -> Option<Self> {
        match item["type"].as_str()? {
            "message" => Some(Self::Message),
            "reasoning" => Some(Self::Thought),
            "function_call" => Some(Self::Call),
            _ => None,
        }
    }
}

/// Which of its two texts an item of reasoning is heard by; the other says the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReasoningSource {
    /// The summary for people.
    Summary,
    /// The reasoning itself.
    Raw,
}

/// Where an event says that it belongs. Some servers number the items, some name them, some do neither.
#[derive(Debug, Clone, Copy)]
pub(super) struct ItemAddress<'a> {
    pub(super) index: Option<usize>,
    pub(super) id: &'a str,
    pub(super) kind: OutputItemKind,
}

/// An item as far as it has come.
#[derive(Debug)]
pub(super) struct OutputItem {
    index: Option<usize>,
    pub(super) id: String,
    pub(super) kind: OutputItemKind,
    parts: Vec<ItemPart>,
    pub(super) voice: Option<ReasoningSource>,
    /// Arguments that stood in the item when it was announced. Some servers stream them afterwards all the same.
    pub(super) announced: String,
    /// It came to its end.
    pub(super) is_done: bool,
    /// The list of all items at the end has named it.
    pub(super) is_listed: bool,
    /// What is sent back of it.
    pub(super) piece: Option<Value>,
}

impl OutputItem {
    pub(super) fn new(at: ItemAddress<'_>) -> Self {
        Self {
            index: at.index,
            id: at.id.to_owned(),
            kind: at.kind,
            parts: Vec::new(),
            voice: None,
            announced: String::new(),
            is_done: false,
            is_listed: false,
            piece: None,
        }
    }

    /// Tells whether an event is about this item. Its number counts more than its name: there are proxies that make
    /// up a new name for each event. Yet some servers number everything 0.
    pub(super) fn matches_address(&self, at: ItemAddress<'_>) -> bool {
        let (id, other) = (self.id.as_str(), at.id);
        self.kind == at.kind
            && match (self.index, at.index) {
                (Some(index), Some(at)) => {
                    index == at && (!self.is_done || id.is_empty() || other.is_empty() || id == other)
                }
                _ if !id.is_empty() && !other.is_empty() => id == other,
                _ => !self.is_done,
            }
    }

    /// Gives what is new in more text of a part.
    pub(super) fn append_text<'t>(&mut self, part: usize, text: TextUpdate<'t>) -> Cow<'t, str> {
        let part = part.min(PARTS_MAX - 1);
        let halves = match self.kind {
            OutputItemKind::Message | OutputItemKind::Thought => SurrogateJoiner::default(),
            OutputItemKind::Call => SurrogateJoiner::for_json(),
        };
        if self.parts.len() <= part {
            self.parts.resize(part + 1, ItemPart { n_bytes: 0, halves: halves.clone() });
        }
        let known = &mut self.parts[part];
        let new = match text {
            TextUpdate::More(text) => known.halves.join_next(text),
            TextUpdate::Whole(text) => {
                // What waits is in the whole.
                known.halves = halves;
                Cow::Borrowed(text.get(known.n_bytes..).unwrap_or_default())
            }
        };
        known.n_bytes += new.len();
        new
    }

    /// Gives what still waits.
    pub(super) fn take_pending(&mut self) -> String {
        self.parts.iter_mut().map(|part| part.halves.flush()).collect()
    }

    /// Tells whether anything of it was said.
    pub(super) fn is_silent(&self) -> bool {
        self.parts.iter().all(|part| part.n_bytes == 0)
    }
}

/// What was said of a part.
#[derive(Debug, Clone)]
struct ItemPart {
    n_bytes: usize,
    halves: SurrogateJoiner,
}

/// Text of an event.
#[derive(Debug, Clone, Copy)]
pub(super) enum TextUpdate<'a> {
    /// What follows.
    More(&'a str),
    /// All of it, from the beginning.
    Whole(&'a str),
}

/// What of a whole item is sent back with the reply; `None` where it cannot be. The arguments of a call are not
/// kept: the transcript has them.
pub(super) fn replay_item(kind: OutputItemKind, item: &Value) -> Option<Value> {
    if matches!(item["status"].as_str(), Some("incomplete" | "in_progress")) {
        return None;
    }
    match kind {
        OutputItemKind::Message => Some(item.clone()),
        OutputItemKind::Call => {
            let mut piece = item.clone();
            let fields = piece.as_object_mut()?;
            fields.retain(|name, _| matches!(name.as_str(), "type" | "id" | "call_id"));
            Some(piece)
        }
        OutputItemKind::Thought => {
            let is_sealed = item["encrypted_content"].as_str().is_some_and(|text| !text.is_empty());
            let is_open = item["content"].as_array().is_some_and(|parts| !parts.is_empty());
            // Its name alone is no use: nothing was stored under it.
            (is_sealed || is_open).then(|| item.clone())
        }
    }
}

/// The parts of a message.
pub(super) fn message_parts(item: &Value) -> impl Iterator<Item = &str> {
    let parts = item["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    parts.iter().map(|part| part["text"].as_str().or(part["refusal"].as_str()).unwrap_or_default())
}

/// The words of a message.
pub(super) fn message_text(item: &Value) -> Cow<'_, str> {
    let mut parts = message_parts(item).filter(|part| !part.is_empty());
    let first = parts.next().unwrap_or_default();
    parts.fold(Cow::Borrowed(first), |words, part| words + part)
}

/// How a call begins.
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
