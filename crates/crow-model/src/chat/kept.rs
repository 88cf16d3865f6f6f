//! What a provider gives along with a reply and wants back: its record of the reasoning, and what hangs on calls.
//! Nobody reads it; it is put together here and put back by [`super::request`].

use crow_core::ModelEvent;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::halves::resolve_value_marks;

/// Room for it; the longest records are some hundred kilobytes. Half a record is worse than none.
const LEN_MAX: usize = 4 * 1024 * 1024;

/// The fields of a record that arrive in pieces.
const IN_PIECES: [&str; 2] = ["text", "summary"];

/// What has come of it so far.
#[derive(Debug, Default)]
pub(crate) struct ProviderStateCollector {
    details: Vec<Map<String, Value>>,
    n_bytes: usize,
}

impl ProviderStateCollector {
    /// Takes a chunk's `reasoning_details`.
    pub(super) fn add_details(&mut self, raw: &RawValue) {
        if !self.has_room(raw) {
            return;
        }
        let Ok(Value::Array(pieces)) = serde_json::from_str(raw.get()) else { return };
        for piece in pieces {
            let Value::Object(piece) = piece else { continue };
            match self.details.iter_mut().rev().find(|detail| continues_detail(detail, &piece)) {
                Some(detail) => merge_detail(detail, piece),
                None => self.details.push(piece),
            }
        }
    }

    /// Takes what hangs on the call in a slot, such as the signature of the thought behind it.
    pub(super) fn add_to_call(
        &mut self,
        slot: usize,
        raw: &RawValue,
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) {
        if !self.has_room(raw) {
            return;
        }
        if let Ok(mut extra @ Value::Object(_)) = serde_json::from_str(raw.get()) {
            resolve_value_marks(&mut extra);
            on_event(ModelEvent::Sealed(&json!({ "call": slot, "extra_content": extra })));
        }
    }

    /// Says the record once it is whole: a reply that breaks off before has none.
    pub(crate) fn emit_details(&mut self, on_event: &mut impl FnMut(ModelEvent<'_>)) {
        if !self.details.is_empty() {
            let details = std::mem::take(&mut self.details);
            let mut record = json!({ "reasoning_details": details });
            resolve_value_marks(&mut record);
            on_event(ModelEvent::Sealed(&record));
        }
    }

    fn has_room(&mut self, raw: &RawValue) -> bool {
        self.n_bytes = self.n_bytes.saturating_add(raw.get().len());
        if self.n_bytes > LEN_MAX {
            self.details = Vec::new();
        }
        self.n_bytes <= LEN_MAX
    }
}

/// The record of the reasoning among the pieces that a reply carries.
pub(super) fn find_reasoning_details(pieces: &[Value]) -> Option<&Value> {
    pieces.iter().find_map(|piece| piece.get("reasoning_details"))
}

/// What hangs on a call, among the pieces that its reply carries.
pub(super) fn find_extra_content(pieces: &[Value], slot: usize) -> Option<&Value> {
    let slot = u64::try_from(slot).ok()?;
    let is_its = |piece: &&Value| piece.get("call").and_then(Value::as_u64) == Some(slot);
    pieces.iter().find(is_its)?.get("extra_content")
}

/// Tells whether a piece goes on with a detail. Encrypted ones come whole.
fn continues_detail(detail: &Map<String, Value>, piece: &Map<String, Value>) -> bool {
    let is = |name: &str| detail.get(name) == piece.get(name);
    let some = |of: &Map<String, Value>, name: &str| of.get(name).is_some_and(|value| !value.is_null());
    let is_in_pieces = IN_PIECES.iter().any(|name| detail.contains_key(*name) || piece.contains_key(*name));
    let is_another = some(detail, "id") && some(piece, "id") && !is("id");
    // Without numbers a signature ends a detail.
    let is_ended = !some(detail, "index") && some(detail, "signature");
    is("type") && is("index") && is_in_pieces && !is_another && !is_ended
}

fn merge_detail(detail: &mut Map<String, Value>, piece: Map<String, Value>) {
    for (name, value) in piece {
        match (detail.get_mut(&name), value) {
            (_, Value::Null) => {}
            (Some(Value::String(text)), Value::String(more)) if IN_PIECES.contains(&name.as_str()) => {
                text.push_str(&more);
            }
            (_, value) => {
                detail.insert(name, value);
            }
        }
    }
}
