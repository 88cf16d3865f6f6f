//! What the data of a stream of `responses` means, and how the stream ended.
//!
//! By the book each text comes three times: in pieces, whole when its item ends, and whole again when the reply does.
//! Servers leave out any two of them, so each is taken for what it adds to the others.

#[cfg(test)]
mod tests;

use crow_core::ModelEvent;
use serde_json::Value;

use super::event::{
    ResponseObject, ResponsesEvent, complete_text, index_or_zero, is_bare_error, item_arguments, json_text,
    parse_index, parse_item, read_reason, read_usage, resolve_item_marks, string_value,
};
use super::item::{
    CallHeader, ItemAddress, OutputItem, OutputItemKind, ReasoningSource, TextUpdate, message_parts,
    replay_item,
};
use super::request::PARAGRAPH;
use crate::decoder::{FinishReason, StreamError, error_excerpt};

/// Items of one reply; a model that says more has lost its way, and the list stays bounded.
const ITEMS_MAX: usize = 1024;

/// Many times what the reasoning of one reply takes; a longer one goes on without.
const SEALED_LEN_MAX: usize = 4 * 1024 * 1024;

/// One answer while it is read.
#[derive(Debug, Default)]
pub(crate) struct ResponsesStream {
    items: Vec<OutputItem>,
    /// The message that spoke last.
    spoke: Option<usize>,
    /// The item and part that was thought last.
    thought: Option<(usize, usize)>,
    /// Bytes of what is to be sent back.
    sealed_len: usize,
    finish: Option<FinishReason>,
    is_done: bool,
}

impl ResponsesStream {
    /// How the model came to its end, if it did.
    pub(crate) fn finish_reason(&self) -> Option<FinishReason> {
        self.finish
    }

    /// Tells whether the provider said that nothing follows.
    pub(crate) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Takes the data of one event.
    pub(crate) fn on_data(
        &mut self,
        data: &[u8],
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<(), StreamError> {
        let data = data.trim_ascii();
        if data.is_empty() || self.is_done {
            return Ok(());
        }
        if data == b"[DONE]" {
            self.finish_stream(on_event);
            return Ok(());
        }
        match serde_json::from_slice(data) {
            Ok(event) => self.on_event(&event, data, on_event),
            Err(_) => self.on_malformed_data(data, on_event),
        }
    }

    /// Data that is no event: several lines without blank ones between.
    fn on_malformed_data(
        &mut self,
        data: &[u8],
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<(), StreamError> {
        if data.contains(&b'\n') {
            return data.split(|byte| *byte == b'\n').try_for_each(|line| self.on_data(line, on_event));
        }
        Err(StreamError::NotProtocol(error_excerpt(data)))
    }

    /// Takes an answer that came whole.
    pub(crate) fn on_complete_body(
        &mut self,
        whole: &[u8],
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<FinishReason, StreamError> {
        let event: ResponsesEvent<'_> = match serde_json::from_slice(whole) {
            Ok(event) => event,
            Err(error) if error.is_eof() => return Err(StreamError::Cut),
            Err(_) => return Err(StreamError::NotProtocol(error_excerpt(whole))),
        };
        self.on_event(&event, whole, on_event)?;
        self.finish.ok_or_else(|| StreamError::NotProtocol(error_excerpt(whole)))
    }

    fn on_reasoning(
        &mut self,
        kind: &str,
        event: &ResponsesEvent<'_>,
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) {
        let place = self.find_or_add_item(event, OutputItemKind::Thought);
        let part = if kind.contains("summary") {
            (ReasoningSource::Summary, index_or_zero(event.summary_index))
        } else {
            (ReasoningSource::Raw, index_or_zero(event.content_index))
        };
        if kind.ends_with(".done") {
            self.emit_thought(place, part, TextUpdate::Whole(&complete_text(event.text)), on_event);
        } else {
            self.emit_thought(place, part, TextUpdate::More(&string_value(event.delta)), on_event);
        }
    }

    fn on_event(
        &mut self,
        event: &ResponsesEvent<'_>,
        data: &[u8],
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<(), StreamError> {
        let (more, content) = (string_value(event.delta), index_or_zero(event.content_index));
        let kind = string_value(event.kind);
        match &*kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                let place = self.find_or_add_item(event, OutputItemKind::Message);
                self.emit_text(place, content, TextUpdate::More(&more), on_event);
            }
            "response.output_text.done" => {
                let place = self.find_or_add_item(event, OutputItemKind::Message);
                self.emit_text(place, content, TextUpdate::Whole(&complete_text(event.text)), on_event);
            }
            "response.refusal.done" => {
                let place = self.find_or_add_item(event, OutputItemKind::Message);
                self.emit_text(place, content, TextUpdate::Whole(&complete_text(event.refusal)), on_event);
            }
            "response.reasoning_summary_text.delta"
            | "response.reasoning_summary_text.done"
            | "response.reasoning_text.delta"
            | "response.reasoning.delta"
            | "response.reasoning_text.done"
            | "response.reasoning.done" => self.on_reasoning(&kind, event, on_event),
            "response.function_call_arguments.delta" => {
                let place = self.find_or_add_item(event, OutputItemKind::Call);
                self.emit_call(place, CallHeader::default(), TextUpdate::More(&more), on_event);
            }
            "response.function_call_arguments.done" => {
                let place = self.find_or_add_item(event, OutputItemKind::Call);
                let head = CallHeader { id: "", name: &complete_text(event.name) };
                self.emit_call(place, head, TextUpdate::Whole(&json_text(event.arguments)), on_event);
            }
            "response.output_item.added" => self.on_item_added(event, on_event),
            "response.output_item.done" => self.on_item_done(event, on_event),
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled"
            | "response.done" => {
                // Some proxies leave the wrapping out.
                let text =
                    event.response.map_or_else(|| String::from_utf8_lossy(data), |raw| raw.get().into());
                return self.on_response_end(&text, kind.trim_start_matches("response."), on_event);
            }
            "error" => return Err(StreamError::Provider(error_excerpt(data))),
            "" => return self.on_untyped_data(event, data, on_event),
            _ => {
                if let Some(error) = event.error {
                    return Err(StreamError::Provider(error.get().to_owned()));
                }
            }
        }
        Ok(())
    }

    /// Data that says no type: an answer that came whole, or an error.
    fn on_untyped_data(
        &mut self,
        event: &ResponsesEvent<'_>,
        data: &[u8],
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<(), StreamError> {
        match (event.error, event.output) {
            (Some(error), _) => Err(StreamError::Provider(error.get().to_owned())),
            (None, Some(_)) => self.on_response_end(&String::from_utf8_lossy(data), "", on_event),
            (None, None) if data == b"{}" => Ok(()),
            (None, None) if is_bare_error(data) => Err(StreamError::Provider(error_excerpt(data))),
            (None, None) => Err(StreamError::NotProtocol(error_excerpt(data))),
        }
    }

    /// Finds the item of an event, or makes room for it: some proxies do not announce items.
    fn find_or_add_item(&mut self, event: &ResponsesEvent<'_>, kind: OutputItemKind) -> Option<usize> {
        let id = string_value(event.item_id);
        let at = ItemAddress { index: parse_index(event.output_index), id: &id, kind };
        self.items.iter().rposition(|item| item.matches_address(at)).or_else(|| self.add_item(at))
    }

    fn add_item(&mut self, at: ItemAddress<'_>) -> Option<usize> {
        if self.items.len() == ITEMS_MAX {
            return None;
        }
        self.items.push(OutputItem::new(at));
        Some(self.items.len() - 1)
    }

    fn on_item_added(&mut self, event: &ResponsesEvent<'_>, on_event: &mut impl FnMut(ModelEvent<'_>)) {
        let Some((kind, item)) = parse_item(event.item) else { return };
        let (id, index) = (item["id"].as_str().unwrap_or_default(), parse_index(event.output_index));
        let Some(place) = self.add_item(ItemAddress { index, id, kind }) else { return };
        if kind == OutputItemKind::Call {
            self.items[place].announced = item_arguments(&item).to_owned();
            self.emit_call(Some(place), CallHeader::from_item(&item), TextUpdate::More(""), on_event);
        }
    }

    fn on_item_done(&mut self, event: &ResponsesEvent<'_>, on_event: &mut impl FnMut(ModelEvent<'_>)) {
        let Some((kind, item)) = parse_item(event.item) else { return };
        let (id, index) = (item["id"].as_str().unwrap_or_default(), parse_index(event.output_index));
        let at = ItemAddress { index, id, kind };
        let place =
            self.items.iter().rposition(|known| known.matches_address(at)).or_else(|| self.add_item(at));
        if let Some(place) = place {
            self.on_complete_item(place, &item, on_event);
        }
    }

    /// Takes the end of the reply, with all of it once more. `said` is what its event says of it.
    fn on_response_end(
        &mut self,
        text: &str,
        said: &str,
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<(), StreamError> {
        let Ok(response) = serde_json::from_str::<ResponseObject<'_>>(text) else {
            return Err(StreamError::NotProtocol(error_excerpt(text.as_bytes())));
        };
        let status = string_value(response.status);
        let is = |words: &[&str]| words.contains(&&*status) || words.contains(&said);
        if is(&["failed", "cancelled"]) || response.error.is_some() {
            let unsaid = || format!("\"it ended as {}\"", if status.is_empty() { said } else { &*status });
            return Err(StreamError::Provider(
                response.error.map_or_else(unsaid, |raw| raw.get().to_owned()),
            ));
        }
        let output = response.output.and_then(|raw| serde_json::from_str::<Vec<Value>>(raw.get()).ok());
        let mut output = output.unwrap_or_default();
        output.iter_mut().for_each(resolve_item_marks);
        let ids: Vec<&str> = output.iter().filter_map(|item| item["id"].as_str()).collect();
        for item in &output {
            if let Some(place) = self.match_listed_item(item, &ids) {
                self.on_complete_item(place, item, on_event);
            }
        }
        if let Some(usage) = response.usage.and_then(read_usage) {
            on_event(ModelEvent::Usage(usage));
        }
        let reason = response.incomplete_details.map(read_reason).unwrap_or_default();
        self.finish = Some(match reason.as_str() {
            "content_filter" => FinishReason::Refused,
            "" if !is(&["incomplete"]) => FinishReason::Normally,
            _ => FinishReason::OutputLimit,
        });
        self.finish_stream(on_event);
        Ok(())
    }

    /// Finds an item of the last list among those that came: by its name, or else in order among those whose names are
    /// not in the list.
    fn match_listed_item(&mut self, item: &Value, ids: &[&str]) -> Option<usize> {
        let kind = OutputItemKind::from_item(item)?;
        let id = item["id"].as_str().unwrap_or_default();
        let left = |known: &OutputItem| known.kind == kind && !known.is_listed;
        let named = self.items.iter().position(|known| left(known) && !id.is_empty() && known.id == id);
        let unnamed = |known: &OutputItem| left(known) && !ids.contains(&known.id.as_str());
        let place = named.or_else(|| self.items.iter().position(unnamed));
        let place = place.or_else(|| self.add_item(ItemAddress { index: None, id, kind }))?;
        self.items[place].is_listed = true;
        Some(place)
    }

    /// Takes an item with all it says.
    fn on_complete_item(&mut self, place: usize, item: &Value, on_event: &mut impl FnMut(ModelEvent<'_>)) {
        let known = &mut self.items[place];
        if !known.is_done {
            known.is_done = true;
            known.piece = replay_item(known.kind, item);
            self.sealed_len += known.piece.as_ref().map_or(0, |piece| piece.to_string().len());
            if self.sealed_len > SEALED_LEN_MAX {
                known.piece = None;
            }
        }
        match self.items[place].kind {
            OutputItemKind::Message => {
                for (part, text) in message_parts(item).enumerate() {
                    self.emit_text(Some(place), part, TextUpdate::Whole(text), on_event);
                }
            }
            OutputItemKind::Thought => {
                for (voice, field) in
                    [(ReasoningSource::Summary, "summary"), (ReasoningSource::Raw, "content")]
                {
                    let parts = item[field].as_array().map(Vec::as_slice).unwrap_or_default();
                    for (part, text) in parts.iter().map(|part| part["text"].as_str()).enumerate() {
                        let text = TextUpdate::Whole(text.unwrap_or_default());
                        self.emit_thought(Some(place), (voice, part), text, on_event);
                    }
                }
            }
            OutputItemKind::Call => {
                self.emit_call(
                    Some(place),
                    CallHeader::from_item(item),
                    TextUpdate::Whole(item_arguments(item)),
                    on_event,
                );
            }
        }
    }

    fn emit_text(
        &mut self,
        place: Option<usize>,
        part: usize,
        text: TextUpdate<'_>,
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) {
        let Some(place) = place else { return };
        let new = self.items[place].append_text(part, text);
        if new.is_empty() {
            return;
        }
        if self.spoke.replace(place).is_some_and(|spoke| spoke != place) {
            on_event(ModelEvent::Text(PARAGRAPH));
        }
        on_event(ModelEvent::Text(&new));
    }

    fn emit_thought(
        &mut self,
        place: Option<usize>,
        (voice, part): (ReasoningSource, usize),
        text: TextUpdate<'_>,
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) {
        let (Some(place), TextUpdate::More(words) | TextUpdate::Whole(words)) = (place, text) else { return };
        let item = &mut self.items[place];
        if words.is_empty() || *item.voice.get_or_insert(voice) != voice {
            return;
        }
        let new = item.append_text(part, text);
        if new.is_empty() {
            return;
        }
        if self.thought.replace((place, part)).is_some_and(|thought| thought != (place, part)) {
            on_event(ModelEvent::Thought(PARAGRAPH));
        }
        on_event(ModelEvent::Thought(&new));
    }

    fn emit_call(
        &mut self,
        place: Option<usize>,
        head: CallHeader<'_>,
        text: TextUpdate<'_>,
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) {
        let Some(slot) = place else { return };
        let id = Some(head.id).filter(|id| !id.is_empty());
        let name = Some(head.name).filter(|name| !name.is_empty());
        let arguments = self.items[slot].append_text(0, text);
        on_event(ModelEvent::Call { slot, id, name, arguments: &arguments });
    }

    /// Says what was still waiting.
    pub(crate) fn flush(&mut self, on_event: &mut impl FnMut(ModelEvent<'_>)) {
        for (slot, item) in self.items.iter_mut().enumerate() {
            let rest = item.take_pending();
            match item.kind {
                _ if rest.is_empty() => {}
                OutputItemKind::Message => on_event(ModelEvent::Text(&rest)),
                OutputItemKind::Thought => on_event(ModelEvent::Thought(&rest)),
                OutputItemKind::Call => {
                    on_event(ModelEvent::Call { slot, id: None, name: None, arguments: &rest });
                }
            }
        }
    }

    /// Says what waited for the end. Only a reply that came whole is sealed: the provider checks that what belongs
    /// together comes back together.
    fn finish_stream(&mut self, on_event: &mut impl FnMut(ModelEvent<'_>)) {
        self.is_done = true;
        for slot in 0..self.items.len() {
            let item = &mut self.items[slot];
            if item.kind == OutputItemKind::Call && item.is_silent() {
                let arguments = std::mem::take(&mut item.announced);
                self.emit_call(Some(slot), CallHeader::default(), TextUpdate::More(&arguments), on_event);
            }
        }
        let pieces: Option<Vec<&Value>> = self.items.iter().map(|item| item.piece.as_ref()).collect();
        let is_needed = |item: &OutputItem| {
            let has_phase = item.piece.as_ref().is_some_and(|piece| piece["phase"].is_string());
            item.kind == OutputItemKind::Thought || has_phase
        };
        let is_whole = self.finish == Some(FinishReason::Normally);
        if is_whole && self.items.iter().any(is_needed) {
            for piece in pieces.unwrap_or_default() {
                on_event(ModelEvent::Sealed(piece));
            }
        }
    }
}
