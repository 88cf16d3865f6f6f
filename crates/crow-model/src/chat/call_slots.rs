//! Assigns a piece to a call of a reply. According to the specification a call has an index and its first piece an ID
//! and a name; servers omit any of these, repeat them, or give all calls the same.

use serde_json::Value;

/// Calls of one reply; a model that makes more is malfunctioning, and the list stays bounded.
const SLOTS_MAX: usize = 1024;

/// The calls of a reply as far as they have arrived.
#[derive(Debug, Default)]
pub(super) struct CallSlots {
    slots: Vec<CallSlot>,
}

/// A piece of a call. Missing fields are empty.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallFragment<'p> {
    pub(super) index: Option<u64>,
    pub(super) id: &'p str,
    pub(super) name: &'p str,
    pub(super) arguments: &'p str,
}

#[derive(Debug, Default)]
pub(super) struct CallSlot {
    index: Option<u64>,
    pub(super) id: String,
    pub(super) name: String,
    arguments: JsonExtent,
    /// The arguments, up to where they are complete.
    arguments_text: String,
    /// Its name arrived again when it was complete: either it was repeated, or another call of the same tool begins.
    has_repeated_name: bool,
}

/// The extent of the JSON of a call's arguments.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum JsonExtent {
    #[default]
    Empty,
    Open {
        depth: u32,
        in_string: bool,
        is_escaped: bool,
    },
    Complete,
}

impl CallSlots {
    /// Finds the call that a piece belongs to, or starts it; `None` if the piece is empty, or there are too many.
    pub(super) fn accept_fragment(&mut self, fragment: CallFragment<'_>) -> Option<(usize, &CallSlot)> {
        let known_index = self.find_slot(fragment);
        let index = match known_index.filter(|place| self.slots[*place].continues_with(fragment)) {
            Some(index) => index,
            None if fragment.is_empty() || self.slots.len() == SLOTS_MAX => return None,
            None => {
                let repeated = known_index
                    .and_then(|index| self.slots.get_mut(index))
                    .filter(|slot| slot.has_repeated_name);
                let name = repeated.map(|slot| {
                    slot.has_repeated_name = false;
                    slot.name.clone()
                });
                let name = name.filter(|_| fragment.name.is_empty()).unwrap_or_default();
                self.slots.push(CallSlot { index: fragment.index, name, ..CallSlot::default() });
                self.slots.len() - 1
            }
        };
        let slot = self.slots.get_mut(index)?;
        slot.append_fragment(fragment);
        Some((index, slot))
    }

    /// Finds the latest call with the index or the ID of a piece; without either the latest of all.
    fn find_slot(&self, fragment: CallFragment<'_>) -> Option<usize> {
        let has_id = |slot: &CallSlot| !fragment.id.is_empty() && slot.id == fragment.id;
        let has_index = |slot: &CallSlot| slot.index == fragment.index;
        let latest = |is_it: &dyn Fn(&CallSlot) -> bool| self.slots.iter().rposition(is_it);
        // Of several with one ID it continues the one that it does not contradict.
        let with_id = |is_it: &dyn Fn(&CallSlot) -> bool| {
            let continued = latest(&|slot| is_it(slot) && has_id(slot) && slot.continues_with(fragment));
            continued.or_else(|| latest(&|slot| is_it(slot) && has_id(slot)))
        };
        match fragment.index {
            Some(_) => with_id(&has_index).or_else(|| latest(&has_index)),
            None => match with_id(&|_| true) {
                Some(index) => Some(index),
                None if fragment.id.is_empty() => latest(&|_| true),
                // Some servers generate a new ID for each piece, but name only the first.
                None => latest(&|_| true)
                    .filter(|last| fragment.name.is_empty() && self.slots[*last].is_incomplete()),
            },
        }
    }
}

impl CallSlot {
    /// Whether a piece with its index or its ID continues this call.
    fn continues_with(&self, fragment: CallFragment<'_>) -> bool {
        let has_arguments = !fragment.arguments.trim().is_empty();
        let is_complete = self.arguments == JsonExtent::Complete;
        if fragment.name.is_empty() {
            return !(self.has_repeated_name && begins_value(fragment.arguments));
        }
        let has_ids = !fragment.id.is_empty() && !self.id.is_empty();
        if has_ids && fragment.id != self.id {
            return false;
        }
        if self.name.is_empty() {
            return !(is_complete && has_arguments);
        }
        // A piece with the same ID is the same call, however often it arrives; with other arguments it is another
        // one.
        let is_repeated = has_ids && !(is_complete && self.is_contradicted_by(fragment.arguments));
        self.name == fragment.name && (is_repeated || !is_complete || !has_arguments)
    }

    /// Whether a text begins different arguments. Some servers send an empty object before the real one.
    fn is_contradicted_by(&self, arguments: &str) -> bool {
        let read = |text: &str| serde_json::from_str::<Value>(text).ok();
        let is_same = || read(&self.arguments_text).is_some_and(|value| read(arguments) == Some(value));
        begins_value(arguments) && !self.is_empty_object() && !is_same()
    }

    fn is_empty_object(&self) -> bool {
        self.arguments_text.bytes().filter(|byte| !byte.is_ascii_whitespace()).eq(*b"{}")
    }

    fn is_incomplete(&self) -> bool {
        matches!(self.arguments, JsonExtent::Open { .. })
    }

    fn append_fragment(&mut self, fragment: CallFragment<'_>) {
        let is_bare =
            fragment.id.is_empty() || (fragment.arguments.trim().is_empty() && !self.is_empty_object());
        let has_repeated_name =
            !fragment.name.is_empty() && is_bare && self.arguments == JsonExtent::Complete;
        self.has_repeated_name |= has_repeated_name && fragment.name == self.name;
        if self.id.is_empty() {
            self.id.push_str(fragment.id);
        }
        if self.name.is_empty() {
            self.name.push_str(fragment.name);
        }
        if self.arguments != JsonExtent::Complete {
            self.arguments_text.push_str(fragment.arguments);
        }
        self.arguments = fragment.arguments.bytes().fold(self.arguments, JsonExtent::after_byte);
    }
}

/// Whether a text begins arguments.
fn begins_value(arguments: &str) -> bool {
    arguments.trim_start().starts_with(['{', '[', '"'])
}

impl CallFragment<'_> {
    fn is_empty(self) -> bool {
        self.id.is_empty() && self.name.is_empty() && self.arguments.trim().is_empty()
    }
}

impl JsonExtent {
    /// Advances by one byte. Only quotes and brackets count.
    fn after_byte(self, byte: u8) -> Self {
        let open = |depth, in_string| Self::Open { depth, in_string, is_escaped: false };
        match (self, byte) {
            (Self::Empty, b'{' | b'[') => open(1, false),
            (Self::Empty, b'"') => open(0, true),
            (Self::Empty | Self::Complete, _) => self,
            (Self::Open { depth, in_string: true, is_escaped }, _) => match byte {
                _ if is_escaped => open(depth, true),
                b'\\' => Self::Open { depth, in_string: true, is_escaped: true },
                b'"' if depth == 0 => Self::Complete,
                b'"' => open(depth, false),
                _ => self,
            },
            (Self::Open { depth, .. }, b'"') => open(depth, true),
            (Self::Open { depth, .. }, b'{' | b'[') => open(depth.saturating_add(1), false),
            (Self::Open { depth, .. }, b'}' | b']') if depth <= 1 => Self::Complete,
            (Self::Open { depth, .. }, b'}' | b']') => open(depth - 1, false),
            (Self::Open { .. }, _) => self,
        }
    }
}

#[cfg(test)]
mod tests;
