//! Data that a provider sends with a reply and wants back: reasoning details, and data attached to calls. Opaque to
//! Crow; assembled here and sent back by [`super::request`].

use crow_core::ModelEvent;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::api::EventSink;
use crate::surrogates::resolve_value_marks;

/// The size limit; the longest records are some hundred kilobytes. Half a record is worse than none.
const PROVIDER_STATE_LEN_MAX: usize = 4 * 1024 * 1024;

/// The fields of a record that arrive in pieces.
const STREAMED_FIELDS: [&str; 2] = ["text", "summary"];

/// The data so far.
#[derive(Debug, Default)]
pub(crate) struct ProviderStateCollector {
    details: Vec<Map<String, Value>>,
    n_bytes: usize,
}

impl ProviderStateCollector {
    /// Adds a chunk's `reasoning_details`.
    pub(super) fn add_details(&mut self, raw: &RawValue) {
        if !self.has_room(raw) {
            return;
        }
        let Ok(Value::Array(fragments)) = serde_json::from_str(raw.get()) else { return };
        for fragment in fragments {
            let Value::Object(fragment) = fragment else { continue };
            match self.details.iter_mut().rev().find(|detail| continues_detail(detail, &fragment)) {
                Some(detail) => merge_detail(detail, fragment),
                None => self.details.push(fragment),
            }
        }
    }

    /// Adds the data attached to the call in a slot, such as a signature.
    pub(super) fn add_to_call(&mut self, call_index: usize, raw: &RawValue, on_event: &mut EventSink<'_>) {
        if !self.has_room(raw) {
            return;
        }
        if let Ok(mut extra @ Value::Object(_)) = serde_json::from_str(raw.get()) {
            resolve_value_marks(&mut extra);
            on_event(ModelEvent::ProviderState(&json!({ "call": call_index, "extra_content": extra })));
        }
    }

    /// Emits the record once it is complete: a reply that breaks off before has none.
    pub(crate) fn emit_details(&mut self, on_event: &mut EventSink<'_>) {
        if !self.details.is_empty() {
            let details = std::mem::take(&mut self.details);
            let mut state = json!({ "reasoning_details": details });
            resolve_value_marks(&mut state);
            on_event(ModelEvent::ProviderState(&state));
        }
    }

    fn has_room(&mut self, raw: &RawValue) -> bool {
        self.n_bytes = self.n_bytes.saturating_add(raw.get().len());
        if self.n_bytes > PROVIDER_STATE_LEN_MAX {
            self.details = Vec::new();
        }
        self.n_bytes <= PROVIDER_STATE_LEN_MAX
    }
}

/// The reasoning details in a reply's provider state.
pub(super) fn find_reasoning_details(items: &[Value]) -> Option<&Value> {
    items.iter().find_map(|item| item.get("reasoning_details"))
}

/// The data attached to a call in its reply's provider state.
pub(super) fn find_extra_content(items: &[Value], call_index: usize) -> Option<&Value> {
    let call_index = u64::try_from(call_index).ok()?;
    let has_call_index = |piece: &&Value| piece.get("call").and_then(Value::as_u64) == Some(call_index);
    items.iter().find(has_call_index)?.get("extra_content")
}

/// Whether a piece continues a detail. Encrypted ones arrive complete.
fn continues_detail(detail: &Map<String, Value>, fragment: &Map<String, Value>) -> bool {
    let is_equal = |name: &str| detail.get(name) == fragment.get(name);
    let is_present = |of: &Map<String, Value>, name: &str| of.get(name).is_some_and(|value| !value.is_null());
    let is_streamed =
        STREAMED_FIELDS.iter().any(|name| detail.contains_key(*name) || fragment.contains_key(*name));
    let is_other_detail = is_present(detail, "id") && is_present(fragment, "id") && !is_equal("id");
    // Without an index, a signature ends a detail.
    let is_complete = !is_present(detail, "index") && is_present(detail, "signature");
    is_equal("type") && is_equal("index") && is_streamed && !is_other_detail && !is_complete
}

fn merge_detail(detail: &mut Map<String, Value>, fragment: Map<String, Value>) {
    for (name, value) in fragment {
        match (detail.get_mut(&name), value) {
            (_, Value::Null) => {}
            (Some(Value::String(text)), Value::String(fragment_text))
                if STREAMED_FIELDS.contains(&name.as_str()) =>
            {
                text.push_str(&fragment_text);
            }
            (_, value) => {
                detail.insert(name, value);
            }
        }
    }
}
