//! What the data of a stream of `responses` means, and how the stream ended.
//!
//! By the book each text comes three times: in pieces, whole when its item ends, and whole again when the reply does.
//! Servers leave out any two of them, so each is taken for what it adds to the others.

#[cfg(test)]
mod tests;

use crow_core::ModelEvent;
use serde_json::Value;

use super::event::{
    Event, Response, arguments, index, is_bare_error, json, make_item_whole, number, read_item, read_reason,
    read_usage, whole_words, words,
};
use super::item::{Address, Head, Item, Kind, Text, Voice, message_parts, piece_of};
use super::request::PARAGRAPH;
use crate::decoder::{Finish, StreamError, quote};

/// Items of one reply; a model that says more has lost its way, and the list stays bounded.
const ITEMS_MAX: usize = 1024;

/// Many times what the reasoning of one reply takes; a longer one goes on without.
const SEALED_LEN_MAX: usize = 4 * 1024 * 1024;

/// One answer while it is read.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    items: Vec<Item>,
    /// The message that spoke last.
    spoke: Option<usize>,
    /// The item and part that was thought last.
    thought: Option<(usize, usize)>,
    /// Bytes of what is to be sent back.
    sealed_len: usize,
    finish: Option<Finish>,
    is_done: bool,
}

impl Stream {
    /// How the model came to its end, if it did.
    pub(crate) fn finish(&self) -> Option<Finish> {
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
            self.end(on_event);
            return Ok(());
        }
        match serde_json::from_slice(data) {
            Ok(event) => self.on_event(&event, data, on_event),
            Err(_) => self.on_odd_data(data, on_event),
        }
    }

    /// Data that is no event: several lines without blank ones between.
    fn on_odd_data(
        &mut self,
        data: &[u8],
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<(), StreamError> {
        if data.contains(&b'\n') {
            return data.split(|byte| *byte == b'\n').try_for_each(|line| self.on_data(line, on_event));
        }
        Err(StreamError::NotProtocol(quote(data)))
    }

    /// Takes an answer that came whole.
    pub(crate) fn on_whole(
        &mut self,
        whole: &[u8],
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<Finish, StreamError> {
        let event: Event<'_> = match serde_json::from_slice(whole) {
            Ok(event) => event,
            Err(error) if error.is_eof() => return Err(StreamError::Cut),
            Err(_) => return Err(StreamError::NotProtocol(quote(whole))),
        };
        self.on_event(&event, whole, on_event)?;
        self.finish.ok_or_else(|| StreamError::NotProtocol(quote(whole)))
    }

    fn on_event(
        &mut self,
        event: &Event<'_>,
        data: &[u8],
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<(), StreamError> {
        let (more, content) = (words(event.delta), number(event.content_index));
        let kind = words(event.kind);
        match &*kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                let place = self.place(event, Kind::Message);
                self.speak(place, content, Text::More(&more), on_event);
            }
            "response.output_text.done" => {
                let place = self.place(event, Kind::Message);
                self.speak(place, content, Text::Whole(&whole_words(event.text)), on_event);
            }
            "response.refusal.done" => {
                let place = self.place(event, Kind::Message);
                self.speak(place, content, Text::Whole(&whole_words(event.refusal)), on_event);
            }
            "response.reasoning_summary_text.delta" => {
                let (place, part) = (self.place(event, Kind::Thought), number(event.summary_index));
                self.think(place, (Voice::Summary, part), Text::More(&more), on_event);
            }
            "response.reasoning_summary_text.done" => {
                let (place, part) = (self.place(event, Kind::Thought), number(event.summary_index));
                self.think(place, (Voice::Summary, part), Text::Whole(&whole_words(event.text)), on_event);
            }
            "response.reasoning_text.delta" | "response.reasoning.delta" => {
                let place = self.place(event, Kind::Thought);
                self.think(place, (Voice::Raw, content), Text::More(&more), on_event);
            }
            "response.reasoning_text.done" | "response.reasoning.done" => {
                let place = self.place(event, Kind::Thought);
                self.think(place, (Voice::Raw, content), Text::Whole(&whole_words(event.text)), on_event);
            }
            "response.function_call_arguments.delta" => {
                let place = self.place(event, Kind::Call);
                self.call(place, Head::default(), Text::More(&more), on_event);
            }
            "response.function_call_arguments.done" => {
                let place = self.place(event, Kind::Call);
                let head = Head { id: "", name: &whole_words(event.name) };
                self.call(place, head, Text::Whole(&json(event.arguments)), on_event);
            }
            "response.output_item.added" => self.on_added(event, on_event),
            "response.output_item.done" => self.on_item_done(event, on_event),
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled"
            | "response.done" => {
                // Some proxies leave the wrapping out.
                let text =
                    event.response.map_or_else(|| String::from_utf8_lossy(data), |raw| raw.get().into());
                return self.on_response(&text, kind.trim_start_matches("response."), on_event);
            }
            "error" => return Err(StreamError::Provider(quote(data))),
            "" => return self.on_untyped(event, data, on_event),
            _ => {
                if let Some(error) = event.error {
                    return Err(StreamError::Provider(error.get().to_owned()));
                }
            }
        }
        Ok(())
    }

    /// Data that says no type: an answer that came whole, or an error.
    fn on_untyped(
        &mut self,
        event: &Event<'_>,
        data: &[u8],
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<(), StreamError> {
        match (event.error, event.output) {
            (Some(error), _) => Err(StreamError::Provider(error.get().to_owned())),
            (None, Some(_)) => self.on_response(&String::from_utf8_lossy(data), "", on_event),
            (None, None) if data == b"{}" => Ok(()),
            (None, None) if is_bare_error(data) => Err(StreamError::Provider(quote(data))),
            (None, None) => Err(StreamError::NotProtocol(quote(data))),
        }
    }

    /// Finds the item of an event, or makes room for it: some proxies do not announce items.
    fn place(&mut self, event: &Event<'_>, kind: Kind) -> Option<usize> {
        let id = words(event.item_id);
        let at = Address { index: index(event.output_index), id: &id, kind };
        self.items.iter().rposition(|item| item.is_at(at)).or_else(|| self.add(at))
    }

    fn add(&mut self, at: Address<'_>) -> Option<usize> {
        if self.items.len() == ITEMS_MAX {
            return None;
        }
        self.items.push(Item::new(at));
        Some(self.items.len() - 1)
    }

    fn on_added(&mut self, event: &Event<'_>, on_event: &mut impl FnMut(ModelEvent<'_>)) {
        let Some((kind, item)) = read_item(event.item) else { return };
        let (id, index) = (item["id"].as_str().unwrap_or_default(), index(event.output_index));
        let Some(place) = self.add(Address { index, id, kind }) else { return };
        if kind == Kind::Call {
            self.items[place].announced = arguments(&item).to_owned();
            self.call(Some(place), Head::of(&item), Text::More(""), on_event);
        }
    }

    fn on_item_done(&mut self, event: &Event<'_>, on_event: &mut impl FnMut(ModelEvent<'_>)) {
        let Some((kind, item)) = read_item(event.item) else { return };
        let (id, index) = (item["id"].as_str().unwrap_or_default(), index(event.output_index));
        let at = Address { index, id, kind };
        let place = self.items.iter().rposition(|known| known.is_at(at)).or_else(|| self.add(at));
        if let Some(place) = place {
            self.on_whole_item(place, &item, on_event);
        }
    }

    /// Takes the end of the reply, with all of it once more. `said` is what its event says of it.
    fn on_response(
        &mut self,
        text: &str,
        said: &str,
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<(), StreamError> {
        let Ok(response) = serde_json::from_str::<Response<'_>>(text) else {
            return Err(StreamError::NotProtocol(quote(text.as_bytes())));
        };
        let status = words(response.status);
        let is = |words: &[&str]| words.contains(&&*status) || words.contains(&said);
        if is(&["failed", "cancelled"]) || response.error.is_some() {
            let unsaid = || format!("\"it ended as {}\"", if status.is_empty() { said } else { &*status });
            return Err(StreamError::Provider(
                response.error.map_or_else(unsaid, |raw| raw.get().to_owned()),
            ));
        }
        let output = response.output.and_then(|raw| serde_json::from_str::<Vec<Value>>(raw.get()).ok());
        let mut output = output.unwrap_or_default();
        output.iter_mut().for_each(make_item_whole);
        let ids: Vec<&str> = output.iter().filter_map(|item| item["id"].as_str()).collect();
        for item in &output {
            if let Some(place) = self.listed(item, &ids) {
                self.on_whole_item(place, item, on_event);
            }
        }
        if let Some(usage) = response.usage.and_then(read_usage) {
            on_event(ModelEvent::Usage(usage));
        }
        let reason = response.incomplete_details.map(read_reason).unwrap_or_default();
        self.finish = Some(match reason.as_str() {
            "content_filter" => Finish::Refused,
            "" if !is(&["incomplete"]) => Finish::Normally,
            _ => Finish::OutputLimit,
        });
        self.end(on_event);
        Ok(())
    }

    /// Finds an item of the last list among those that came: by its name, or else in order among those whose names are
    /// not in the list.
    fn listed(&mut self, item: &Value, ids: &[&str]) -> Option<usize> {
        let kind = Kind::of(item)?;
        let id = item["id"].as_str().unwrap_or_default();
        let left = |known: &Item| known.kind == kind && !known.is_listed;
        let named = self.items.iter().position(|known| left(known) && !id.is_empty() && known.id == id);
        let unnamed = |known: &Item| left(known) && !ids.contains(&known.id.as_str());
        let place = named.or_else(|| self.items.iter().position(unnamed));
        let place = place.or_else(|| self.add(Address { index: None, id, kind }))?;
        self.items[place].is_listed = true;
        Some(place)
    }

    /// Takes an item with all it says.
    fn on_whole_item(&mut self, place: usize, item: &Value, on_event: &mut impl FnMut(ModelEvent<'_>)) {
        let known = &mut self.items[place];
        if !known.is_done {
            known.is_done = true;
            known.piece = piece_of(known.kind, item);
            self.sealed_len += known.piece.as_ref().map_or(0, |piece| piece.to_string().len());
            if self.sealed_len > SEALED_LEN_MAX {
                known.piece = None;
            }
        }
        match self.items[place].kind {
            Kind::Message => {
                for (part, text) in message_parts(item).enumerate() {
                    self.speak(Some(place), part, Text::Whole(text), on_event);
                }
            }
            Kind::Thought => {
                for (voice, field) in [(Voice::Summary, "summary"), (Voice::Raw, "content")] {
                    let parts = item[field].as_array().map(Vec::as_slice).unwrap_or_default();
                    for (part, text) in parts.iter().map(|part| part["text"].as_str()).enumerate() {
                        let text = Text::Whole(text.unwrap_or_default());
                        self.think(Some(place), (voice, part), text, on_event);
                    }
                }
            }
            Kind::Call => {
                self.call(Some(place), Head::of(item), Text::Whole(arguments(item)), on_event);
            }
        }
    }

    fn speak(
        &mut self,
        place: Option<usize>,
        part: usize,
        text: Text<'_>,
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) {
        let Some(place) = place else { return };
        let new = self.items[place].more(part, text);
        if new.is_empty() {
            return;
        }
        if self.spoke.replace(place).is_some_and(|spoke| spoke != place) {
            on_event(ModelEvent::Text(PARAGRAPH));
        }
        on_event(ModelEvent::Text(&new));
    }

    fn think(
        &mut self,
        place: Option<usize>,
        (voice, part): (Voice, usize),
        text: Text<'_>,
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) {
        let (Some(place), Text::More(words) | Text::Whole(words)) = (place, text) else { return };
        let item = &mut self.items[place];
        if words.is_empty() || *item.voice.get_or_insert(voice) != voice {
            return;
        }
        let new = item.more(part, text);
        if new.is_empty() {
            return;
        }
        if self.thought.replace((place, part)).is_some_and(|thought| thought != (place, part)) {
            on_event(ModelEvent::Thought(PARAGRAPH));
        }
        on_event(ModelEvent::Thought(&new));
    }

    fn call(
        &mut self,
        place: Option<usize>,
        head: Head<'_>,
        text: Text<'_>,
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) {
        let Some(slot) = place else { return };
        let id = Some(head.id).filter(|id| !id.is_empty());
        let name = Some(head.name).filter(|name| !name.is_empty());
        let arguments = self.items[slot].more(0, text);
        on_event(ModelEvent::Call { slot, id, name, arguments: &arguments });
    }

    /// Says what was still waiting.
    pub(crate) fn flush(&mut self, on_event: &mut impl FnMut(ModelEvent<'_>)) {
        for (slot, item) in self.items.iter_mut().enumerate() {
            let rest = item.rest();
            match item.kind {
                _ if rest.is_empty() => {}
                Kind::Message => on_event(ModelEvent::Text(&rest)),
                Kind::Thought => on_event(ModelEvent::Thought(&rest)),
                Kind::Call => on_event(ModelEvent::Call { slot, id: None, name: None, arguments: &rest }),
            }
        }
    }

    /// Says what waited for the end. Only a reply that came whole is sealed: the provider checks that what belongs
    /// together comes back together.
    fn end(&mut self, on_event: &mut impl FnMut(ModelEvent<'_>)) {
        self.is_done = true;
        for slot in 0..self.items.len() {
            let item = &mut self.items[slot];
            if item.kind == Kind::Call && item.is_silent() {
                let arguments = std::mem::take(&mut item.announced);
                self.call(Some(slot), Head::default(), Text::More(&arguments), on_event);
            }
        }
        let pieces: Option<Vec<&Value>> = self.items.iter().map(|item| item.piece.as_ref()).collect();
        let is_needed = |item: &Item| {
            let has_phase = item.piece.as_ref().is_some_and(|piece| piece["phase"].is_string());
            item.kind == Kind::Thought || has_phase
        };
        let is_whole = self.finish == Some(Finish::Normally);
        if is_whole && self.items.iter().any(is_needed) {
            for piece in pieces.unwrap_or_default() {
                on_event(ModelEvent::Sealed(piece));
            }
        }
    }
}
