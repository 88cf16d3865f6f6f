//! Which call of a reply a piece belongs to. By the book a call has a number and its first piece an id and a name; servers
//! leave out any of these, repeat them, or give all calls the same.

use serde_json::Value;

/// Calls of one reply; a model that asks for more has lost its way, and the list stays bounded.
const SLOTS_MAX: usize = 1024;

/// The calls of a reply as far as they have come.
#[derive(Debug, Default)]
pub(super) struct CallSlots {
    slots: Vec<CallSlot>,
}

/// A piece of a call. What it does not say is empty.
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
    /// The arguments themselves, up to where they are whole.
    text: String,
    /// Its name came again when it was whole: either it was repeated, or another call of the same tool begins.
    is_named_again: bool,
}

/// How far the JSON of a call's arguments has come.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum JsonExtent {
    #[default]
    Blank,
    Inside {
        depth: u32,
        in_string: bool,
        is_escaped: bool,
    },
    Whole,
}

impl CallSlots {
    /// Finds the call that a piece belongs to, or begins it; `None` where it says nothing, or there are too many.
    pub(super) fn accept_fragment(&mut self, piece: CallFragment<'_>) -> Option<(usize, &CallSlot)> {
        let known = self.find_slot(piece);
        let place = match known.filter(|place| self.slots[*place].continues_with(piece)) {
            Some(place) => place,
            None if piece.is_empty() || self.slots.len() == SLOTS_MAX => return None,
            None => {
                let again =
                    known.and_then(|place| self.slots.get_mut(place)).filter(|slot| slot.is_named_again);
                let name = again.map(|slot| {
                    slot.is_named_again = false;
                    slot.name.clone()
                });
                let name = name.filter(|_| piece.name.is_empty()).unwrap_or_default();
                self.slots.push(CallSlot { index: piece.index, name, ..CallSlot::default() });
                self.slots.len() - 1
            }
        };
        let slot = self.slots.get_mut(place)?;
        slot.append_fragment(piece);
        Some((place, slot))
    }

    /// Finds the latest call with the number or the id of a piece; without any the latest of all.
    fn find_slot(&self, piece: CallFragment<'_>) -> Option<usize> {
        let has_id = |slot: &CallSlot| !piece.id.is_empty() && slot.id == piece.id;
        let has_index = |slot: &CallSlot| slot.index == piece.index;
        let latest = |is_it: &dyn Fn(&CallSlot) -> bool| self.slots.iter().rposition(is_it);
        // Of several with one id it is more of the one that it does not contradict.
        let with_id = |is_it: &dyn Fn(&CallSlot) -> bool| {
            let goes_on = latest(&|slot| is_it(slot) && has_id(slot) && slot.continues_with(piece));
            goes_on.or_else(|| latest(&|slot| is_it(slot) && has_id(slot)))
        };
        match piece.index {
            Some(_) => with_id(&has_index).or_else(|| latest(&has_index)),
            None => match with_id(&|_| true) {
                Some(place) => Some(place),
                None if piece.id.is_empty() => latest(&|_| true),
                // Some servers make up a new id for each piece, but name only the first.
                None => latest(&|_| true)
                    .filter(|last| piece.name.is_empty() && self.slots[*last].is_incomplete()),
            },
        }
    }
}

impl CallSlot {
    /// Whether a piece that has its number or its id is more of this call.
    fn continues_with(&self, piece: CallFragment<'_>) -> bool {
        let has_arguments = !piece.arguments.trim().is_empty();
        let is_whole = self.arguments == JsonExtent::Whole;
        if piece.name.is_empty() {
            return !(self.is_named_again && begins_value(piece.arguments));
        }
        let has_ids = !piece.id.is_empty() && !self.id.is_empty();
        if has_ids && piece.id != self.id {
            return false;
        }
        if self.name.is_empty() {
            return !(is_whole && has_arguments);
        }
        // What has the same id is the same call, however often it comes; with other arguments it is another one.
        let is_repeated = has_ids && !(is_whole && self.is_contradicted_by(piece.arguments));
        self.name == piece.name && (is_repeated || !is_whole || !has_arguments)
    }

    /// Whether a text begins arguments that are not the same. Some servers send an empty object before the real one.
    fn is_contradicted_by(&self, arguments: &str) -> bool {
        let read = |text: &str| serde_json::from_str::<Value>(text).ok();
        let is_same = || read(&self.text).is_some_and(|value| read(arguments) == Some(value));
        begins_value(arguments) && !self.is_empty_object() && !is_same()
    }

    fn is_empty_object(&self) -> bool {
        self.text.bytes().filter(|byte| !byte.is_ascii_whitespace()).eq(*b"{}")
    }

    fn is_incomplete(&self) -> bool {
        matches!(self.arguments, JsonExtent::Inside { .. })
    }

    fn append_fragment(&mut self, piece: CallFragment<'_>) {
        let is_bare = piece.id.is_empty() || (piece.arguments.trim().is_empty() && !self.is_empty_object());
        let is_named_again = !piece.name.is_empty() && is_bare && self.arguments == JsonExtent::Whole;
        self.is_named_again |= is_named_again && piece.name == self.name;
        if self.id.is_empty() {
            self.id.push_str(piece.id);
        }
        if self.name.is_empty() {
            self.name.push_str(piece.name);
        }
        if self.arguments != JsonExtent::Whole {
            self.text.push_str(piece.arguments);
        }
        self.arguments = piece.arguments.bytes().fold(self.arguments, JsonExtent::after_byte);
    }
}

/// Whether a text is the beginning of arguments and no more of them.
fn begins_value(arguments: &str) -> bool {
    arguments.trim_start().starts_with(['{', '[', '"'])
}

impl CallFragment<'_> {
    fn is_empty(self) -> bool {
        self.id.is_empty() && self.name.is_empty() && self.arguments.trim().is_empty()
    }
}

impl JsonExtent {
    /// Goes on with the next byte of the text. Only quotes and brackets count.
    fn after_byte(self, byte: u8) -> Self {
        let inside = |depth, in_string| Self::Inside { depth, in_string, is_escaped: false };
        match (self, byte) {
            (Self::Blank, b'{' | b'[') => inside(1, false),
            (Self::Blank, b'"') => inside(0, true),
            (Self::Blank | Self::Whole, _) => self,
            (Self::Inside { depth, in_string: true, is_escaped }, _) => match byte {
                _ if is_escaped => inside(depth, true),
                b'\\' => Self::Inside { depth, in_string: true, is_escaped: true },
                b'"' if depth == 0 => Self::Whole,
                b'"' => inside(depth, false),
                _ => self,
            },
            (Self::Inside { depth, .. }, b'"') => inside(depth, true),
            (Self::Inside { depth, .. }, b'{' | b'[') => inside(depth.saturating_add(1), false),
            (Self::Inside { depth, .. }, b'}' | b']') if depth <= 1 => Self::Whole,
            (Self::Inside { depth, .. }, b'}' | b']') => inside(depth - 1, false),
            (Self::Inside { .. }, _) => self,
        }
    }
}

#[cfg(test)]
mod tests;
