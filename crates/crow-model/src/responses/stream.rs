//! The meaning of the data of a `responses` stream, and how the stream ended.
//!
//! According to the specification each text arrives three times: in deltas, complete at the end of its item, and
//! complete again at the end of the reply. Servers omit any two of them, so each is used for what it adds to the
//! others.

#[cfg(test)]
mod tests;

use crow_core::ModelEvent;
use serde_json::Value;

use super::event::{
    ResponseObject, ResponsesEvent, complete_text, index_or_zero, is_bare_error, item_arguments, json_text,
    parse_index, parse_item, read_reason, read_usage, resolve_item_marks, string_value,
};
use super::item::{
    CallHeader, ItemAddress, MESSAGE_SEPARATOR, OutputItem, OutputItemKind, ReasoningSource, TextUpdate,
    message_parts, replay_item,
};
use crate::api::{ApiDecoder, DataError, EventSink, FinishReason, StreamEnd, StreamError};

/// Items of one reply; a model that sends more is malfunctioning, and the list stays bounded.
const ITEMS_MAX: usize = 1024;

/// Many times the thinking of one reply; a longer one continues without it.
const PROVIDER_STATE_LEN_MAX: usize = 4 * 1024 * 1024;

/// One response while it is read.
#[derive(Debug, Default)]
pub(super) struct ResponsesDecoder {
    items: Vec<OutputItem>,
    /// The message with the latest text.
    last_text_item: Option<usize>,
    /// The item and part with the latest thinking.
    last_thought_part: Option<(usize, usize)>,
    /// Bytes of provider state.
    provider_state_len: usize,
    end: StreamEnd,
}

impl ApiDecoder for ResponsesDecoder {
    fn on_data(&mut self, data: &[u8], on_event: &mut EventSink<'_>) -> Result<(), DataError> {
        let event = serde_json::from_slice(data)?;
        Ok(self.on_event(&event, data, on_event)?)
    }

    fn on_complete_body(
        &mut self,
        body: &[u8],
        on_event: &mut EventSink<'_>,
    ) -> Result<FinishReason, DataError> {
        let event: ResponsesEvent<'_> = serde_json::from_slice(body)?;
        self.on_event(&event, body, on_event)?;
        Ok(self.end.finish_reason.ok_or_else(|| StreamError::unexpected_format(body))?)
    }

    fn on_end_mark(&mut self, on_event: &mut EventSink<'_>) {
        self.finish_stream(on_event);
    }

    fn flush(&mut self, on_event: &mut EventSink<'_>) -> Result<(), StreamError> {
        for (item_index, item) in self.items.iter_mut().enumerate() {
            let remaining_text = item.take_pending();
            match item.kind {
                _ if remaining_text.is_empty() => {}
                OutputItemKind::Message => on_event(ModelEvent::Text(&remaining_text)),
                OutputItemKind::Thought => on_event(ModelEvent::Thought(&remaining_text)),
                OutputItemKind::Call => {
                    on_event(ModelEvent::Call {
                        index: item_index,
                        id: None,
                        name: None,
                        arguments: &remaining_text,
                    });
                }
            }
        }
        Ok(())
    }

    fn end(&self) -> StreamEnd {
        self.end
    }
}

impl ResponsesDecoder {
    fn on_reasoning(&mut self, kind: &str, event: &ResponsesEvent<'_>, on_event: &mut EventSink<'_>) {
        let item_index = self.find_or_add_item(event, OutputItemKind::Thought);
        let part = if kind.contains("summary") {
            (ReasoningSource::Summary, index_or_zero(event.summary_index))
        } else {
            (ReasoningSource::Raw, index_or_zero(event.content_index))
        };
        if kind.ends_with(".done") {
            self.emit_thought(item_index, part, TextUpdate::Complete(&complete_text(event.text)), on_event);
        } else {
            self.emit_thought(item_index, part, TextUpdate::Delta(&string_value(event.delta)), on_event);
        }
    }

    #[expect(clippy::too_many_lines, reason = "a table of events")]
    fn on_event(
        &mut self,
        event: &ResponsesEvent<'_>,
        data: &[u8],
        on_event: &mut EventSink<'_>,
    ) -> Result<(), StreamError> {
        let (delta, content_index) = (string_value(event.delta), index_or_zero(event.content_index));
        let kind = string_value(event.kind);
        match &*kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                let item_index = self.find_or_add_item(event, OutputItemKind::Message);
                self.emit_text(item_index, content_index, TextUpdate::Delta(&delta), on_event);
            }
            "response.output_text.done" => {
                let item_index = self.find_or_add_item(event, OutputItemKind::Message);
                self.emit_text(
                    item_index,
                    content_index,
                    TextUpdate::Complete(&complete_text(event.text)),
                    on_event,
                );
            }
            "response.refusal.done" => {
                let item_index = self.find_or_add_item(event, OutputItemKind::Message);
                self.emit_text(
                    item_index,
                    content_index,
                    TextUpdate::Complete(&complete_text(event.refusal)),
                    on_event,
                );
            }
            "response.reasoning_summary_text.delta"
            | "response.reasoning_summary_text.done"
            | "response.reasoning_text.delta"
            | "response.reasoning.delta"
            | "response.reasoning_text.done"
            | "response.reasoning.done" => self.on_reasoning(&kind, event, on_event),
            "response.function_call_arguments.delta" => {
                let item_index = self.find_or_add_item(event, OutputItemKind::Call);
                self.emit_call(item_index, CallHeader::default(), TextUpdate::Delta(&delta), on_event);
            }
            "response.function_call_arguments.done" => {
                let item_index = self.find_or_add_item(event, OutputItemKind::Call);
                let header = CallHeader { id: "", name: &complete_text(event.name) };
                self.emit_call(
                    item_index,
                    header,
                    TextUpdate::Complete(&json_text(event.arguments)),
                    on_event,
                );
            }
            "response.output_item.added" => self.on_item_added(event, on_event),
            "response.output_item.done" => self.on_item_done(event, on_event),
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled"
            | "response.done" => {
                // Some proxies omit the wrapper.
                let text =
                    event.response.map_or_else(|| String::from_utf8_lossy(data), |raw| raw.get().into());
                return self.on_response_end(&text, kind.trim_start_matches("response."), on_event);
            }
            "error" => return Err(StreamError::from_provider(data)),
            "" => return self.on_untyped_data(event, data, on_event),
            _ => {
                if let Some(error) = event.error {
                    return Err(StreamError::Provider(error.get().to_owned()));
                }
            }
        }
        Ok(())
    }

    /// Handles data without a type: a response that was not streamed, or an error.
    fn on_untyped_data(
        &mut self,
        event: &ResponsesEvent<'_>,
        data: &[u8],
        on_event: &mut EventSink<'_>,
    ) -> Result<(), StreamError> {
        match (event.error, event.output) {
            (Some(error), _) => Err(StreamError::Provider(error.get().to_owned())),
            (None, Some(_)) => self.on_response_end(&String::from_utf8_lossy(data), "", on_event),
            (None, None) if data == b"{}" => Ok(()),
            (None, None) if is_bare_error(data) => Err(StreamError::from_provider(data)),
            (None, None) => Err(StreamError::unexpected_format(data)),
        }
    }

    /// Finds the item of an event, or adds it: some proxies do not announce items.
    fn find_or_add_item(&mut self, event: &ResponsesEvent<'_>, kind: OutputItemKind) -> Option<usize> {
        let id = string_value(event.item_id);
        let address = ItemAddress { index: parse_index(event.output_index), id: &id, kind };
        self.items.iter().rposition(|item| item.matches_address(address)).or_else(|| self.add_item(address))
    }

    fn add_item(&mut self, address: ItemAddress<'_>) -> Option<usize> {
        if self.items.len() == ITEMS_MAX {
            return None;
        }
        self.items.push(OutputItem::new(address));
        Some(self.items.len() - 1)
    }

    fn on_item_added(&mut self, event: &ResponsesEvent<'_>, on_event: &mut EventSink<'_>) {
        let Some((kind, item)) = parse_item(event.item) else { return };
        let (id, index) = (item["id"].as_str().unwrap_or_default(), parse_index(event.output_index));
        let Some(item_index) = self.add_item(ItemAddress { index, id, kind }) else { return };
        if kind == OutputItemKind::Call {
            self.items[item_index].announced_arguments = item_arguments(&item).to_owned();
            self.emit_call(Some(item_index), CallHeader::from_item(&item), TextUpdate::Delta(""), on_event);
        }
    }

    fn on_item_done(&mut self, event: &ResponsesEvent<'_>, on_event: &mut EventSink<'_>) {
        let Some((kind, item)) = parse_item(event.item) else { return };
        let (id, index) = (item["id"].as_str().unwrap_or_default(), parse_index(event.output_index));
        let address = ItemAddress { index, id, kind };
        let item_index = self
            .items
            .iter()
            .rposition(|known| known.matches_address(address))
            .or_else(|| self.add_item(address));
        if let Some(item_index) = item_index {
            self.on_complete_item(item_index, &item, on_event);
        }
    }

    /// Handles the end of the reply, which contains all of it again. `event_status` is the status in its name.
    fn on_response_end(
        &mut self,
        text: &str,
        event_status: &str,
        on_event: &mut EventSink<'_>,
    ) -> Result<(), StreamError> {
        let Ok(response) = serde_json::from_str::<ResponseObject<'_>>(text) else {
            return Err(StreamError::unexpected_format(text.as_bytes()));
        };
        let status = string_value(response.status);
        let has_status = |words: &[&str]| words.contains(&&*status) || words.contains(&event_status);
        if has_status(&["failed", "cancelled"]) || response.error.is_some() {
            let default_error =
                || format!("\"it ended as {}\"", if status.is_empty() { event_status } else { &*status });
            return Err(StreamError::Provider(
                response.error.map_or_else(default_error, |raw| raw.get().to_owned()),
            ));
        }
        let output = response.output.and_then(|raw| serde_json::from_str::<Vec<Value>>(raw.get()).ok());
        let mut output = output.unwrap_or_default();
        output.iter_mut().for_each(resolve_item_marks);
        let ids: Vec<&str> = output.iter().filter_map(|item| item["id"].as_str()).collect();
        for item in &output {
            if let Some(item_index) = self.match_listed_item(item, &ids) {
                self.on_complete_item(item_index, item, on_event);
            }
        }
        if let Some(usage) = response.usage.and_then(read_usage) {
            on_event(ModelEvent::Usage(usage));
        }
        let reason = response.incomplete_details.map(read_reason).unwrap_or_default();
        self.end.finish_reason = Some(match reason.as_str() {
            "content_filter" => FinishReason::Refused,
            "" if !has_status(&["incomplete"]) => FinishReason::Complete,
            _ => FinishReason::OutputLimit,
        });
        self.finish_stream(on_event);
        Ok(())
    }

    /// Matches an item of the final list with those that arrived: by ID, or else in order among those whose IDs are
    /// not in the list.
    fn match_listed_item(&mut self, item: &Value, ids: &[&str]) -> Option<usize> {
        let kind = OutputItemKind::from_item(item)?;
        let id = item["id"].as_str().unwrap_or_default();
        let is_unlisted = |known: &OutputItem| known.kind == kind && !known.is_listed;
        let by_id =
            self.items.iter().position(|known| is_unlisted(known) && !id.is_empty() && known.id == id);
        let is_unmatched = |known: &OutputItem| is_unlisted(known) && !ids.contains(&known.id.as_str());
        let item_index = by_id.or_else(|| self.items.iter().position(is_unmatched));
        let item_index = item_index.or_else(|| self.add_item(ItemAddress { index: None, id, kind }))?;
        self.items[item_index].is_listed = true;
        Some(item_index)
    }

    /// Handles a complete item.
    fn on_complete_item(&mut self, item_index: usize, item: &Value, on_event: &mut EventSink<'_>) {
        let stored = &mut self.items[item_index];
        if !stored.is_done {
            stored.is_done = true;
            stored.provider_state = replay_item(stored.kind, item);
            self.provider_state_len +=
                stored.provider_state.as_ref().map_or(0, |piece| piece.to_string().len());
            if self.provider_state_len > PROVIDER_STATE_LEN_MAX {
                stored.provider_state = None;
            }
        }
        match self.items[item_index].kind {
            OutputItemKind::Message => {
                for (part, text) in message_parts(item).enumerate() {
                    self.emit_text(Some(item_index), part, TextUpdate::Complete(text), on_event);
                }
            }
            OutputItemKind::Thought => {
                for (source, field) in
                    [(ReasoningSource::Summary, "summary"), (ReasoningSource::Raw, "content")]
                {
                    let parts = item[field].as_array().map(Vec::as_slice).unwrap_or_default();
                    for (part, text) in parts.iter().map(|part| part["text"].as_str()).enumerate() {
                        let text = TextUpdate::Complete(text.unwrap_or_default());
                        self.emit_thought(Some(item_index), (source, part), text, on_event);
                    }
                }
            }
            OutputItemKind::Call => {
                self.emit_call(
                    Some(item_index),
                    CallHeader::from_item(item),
                    TextUpdate::Complete(item_arguments(item)),
                    on_event,
                );
            }
        }
    }

    fn emit_text(
        &mut self,
        item_index: Option<usize>,
        part: usize,
        text: TextUpdate<'_>,
        on_event: &mut EventSink<'_>,
    ) {
        let Some(item_index) = item_index else { return };
        let delta = self.items[item_index].append_text(part, text);
        if delta.is_empty() {
            return;
        }
        if self.last_text_item.replace(item_index).is_some_and(|last| last != item_index) {
            on_event(ModelEvent::Text(MESSAGE_SEPARATOR));
        }
        on_event(ModelEvent::Text(&delta));
    }

    fn emit_thought(
        &mut self,
        item_index: Option<usize>,
        (source, part): (ReasoningSource, usize),
        text: TextUpdate<'_>,
        on_event: &mut EventSink<'_>,
    ) {
        let (Some(item_index), TextUpdate::Delta(update_text) | TextUpdate::Complete(update_text)) =
            (item_index, text)
        else {
            return;
        };
        let item = &mut self.items[item_index];
        if update_text.is_empty() || *item.reasoning_source.get_or_insert(source) != source {
            return;
        }
        let delta = item.append_text(part, text);
        if delta.is_empty() {
            return;
        }
        if self.last_thought_part.replace((item_index, part)).is_some_and(|last| last != (item_index, part)) {
            on_event(ModelEvent::Thought(MESSAGE_SEPARATOR));
        }
        on_event(ModelEvent::Thought(&delta));
    }

    fn emit_call(
        &mut self,
        item_index: Option<usize>,
        header: CallHeader<'_>,
        text: TextUpdate<'_>,
        on_event: &mut EventSink<'_>,
    ) {
        let Some(call_index) = item_index else { return };
        let id = Some(header.id).filter(|id| !id.is_empty());
        let name = Some(header.name).filter(|name| !name.is_empty());
        let arguments = self.items[call_index].append_text(0, text);
        on_event(ModelEvent::Call { index: call_index, id, name, arguments: &arguments });
    }

    /// Emits what waited for the end. Provider state is sent back only for a complete reply: the provider checks that
    /// related items come back together.
    fn finish_stream(&mut self, on_event: &mut EventSink<'_>) {
        self.end.is_done = true;
        for item_index in 0..self.items.len() {
            let item = &mut self.items[item_index];
            if item.kind == OutputItemKind::Call && item.is_silent() {
                let arguments = std::mem::take(&mut item.announced_arguments);
                self.emit_call(
                    Some(item_index),
                    CallHeader::default(),
                    TextUpdate::Delta(&arguments),
                    on_event,
                );
            }
        }
        let provider_state: Option<Vec<&Value>> =
            self.items.iter().map(|item| item.provider_state.as_ref()).collect();
        let is_needed = |item: &OutputItem| {
            let has_phase = item.provider_state.as_ref().is_some_and(|piece| piece["phase"].is_string());
            item.kind == OutputItemKind::Thought || has_phase
        };
        let is_complete = self.end.finish_reason == Some(FinishReason::Complete);
        if is_complete && self.items.iter().any(is_needed) {
            for provider_item in provider_state.unwrap_or_default() {
                on_event(ModelEvent::ProviderState(provider_item));
            }
        }
    }
}
