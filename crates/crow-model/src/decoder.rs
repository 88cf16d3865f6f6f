//! Turns a provider's bytes into events and says how the stream ended. Pure: bytes in, values out.

use crow_core::ModelEvent;

use crate::chunk::{Chunk, Slots};
use crate::sse::{EVENT_LEN_MAX, EventTooLong, Events};

/// How much of a strange answer is worth quoting.
const QUOTE_LEN_MAX: usize = 2000;

/// How a model came to an end of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// It said all it wanted.
    Normally,
    /// The output limit cut it.
    OutputLimit,
    /// A filter withheld the rest.
    Refused,
}

/// Why a stream is no reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// The provider sent an error where words were expected; its JSON is kept.
    #[error("the provider sent an error: {0}")]
    Provider(String),
    /// The bytes are not the protocol; a piece of them is kept.
    #[error("the answer is not a stream of completions: {0}")]
    NotProtocol(String),
    /// One event is longer than anything sensible.
    #[error("an event is too long")]
    TooLong,
    /// The stream stopped before the model did.
    #[error("the stream broke off")]
    Cut,
}

/// Reads one answer, whether streamed or whole.
#[derive(Debug, Default)]
pub struct Decoder {
    body: Body,
    state: State,
}

#[derive(Debug, Default)]
enum Body {
    /// Nothing but blanks has come.
    #[default]
    Unknown,
    Events(Events),
    /// JSON without a stream around it: the server ignored `stream`.
    Whole(Vec<u8>),
}

#[derive(Debug, Default)]
struct State {
    slots: Slots,
    finish: Option<Finish>,
    is_done: bool,
}

impl Decoder {
    /// Starts on an answer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes, cut anywhere; says the events they complete.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<(), StreamError> {
        if let Body::Unknown = self.body {
            self.body = match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
                None => return Ok(()),
                Some(b'{' | b'[') => Body::Whole(Vec::new()),
                Some(b'<') => return Err(StreamError::NotProtocol("a web page".to_owned())),
                Some(_) => Body::Events(Events::default()),
            };
        }
        let state = &mut self.state;
        match &mut self.body {
            Body::Events(events) => {
                let mut result = Ok(());
                let fed = events.feed(bytes, &mut |data| {
                    if result.is_ok() {
                        result = state.on_data(data, on_event);
                    }
                });
                result.and(fed.map_err(StreamError::from))
            }
            Body::Whole(whole) if whole.len() + bytes.len() > EVENT_LEN_MAX => Err(StreamError::TooLong),
            Body::Whole(whole) => {
                whole.extend_from_slice(bytes);
                Ok(())
            }
            Body::Unknown => Ok(()),
        }
    }

    /// Tells whether the provider said that nothing follows.
    pub fn is_done(&self) -> bool {
        self.state.is_done
    }

    /// Takes the end of the bytes; says what was still waiting and how the answer ended.
    pub fn end(mut self, on_event: &mut impl FnMut(ModelEvent<'_>)) -> Result<Finish, StreamError> {
        let state = &mut self.state;
        match self.body {
            Body::Unknown => return Err(StreamError::Cut),
            Body::Whole(whole) => return state.on_whole(&whole, on_event),
            // What follows `[DONE]` is nobody's business.
            Body::Events(_) if state.is_done => {}
            Body::Events(mut events) => {
                let mut result = Ok(());
                events.end(&mut |data| result = state.on_data(data, on_event))?;
                match result {
                    // Half an event is what a broken connection leaves.
                    Err(StreamError::NotProtocol(_)) if state.finish.is_none() => {
                        return Err(StreamError::Cut);
                    }
                    Err(StreamError::NotProtocol(_)) | Ok(()) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        match (state.finish, state.is_done) {
            (Some(finish), _) => Ok(finish),
            (None, true) => Ok(Finish::Normally),
            (None, false) => Err(StreamError::Cut),
        }
    }
}

impl State {
    fn on_data(&mut self, data: &[u8], on_event: &mut impl FnMut(ModelEvent<'_>)) -> Result<(), StreamError> {
        match Chunk::read(data) {
            Ok(chunk) => self.on_chunk(chunk, data, on_event),
            Err(_) => self.on_odd_data(data, on_event),
        }
    }

    fn on_chunk(
        &mut self,
        chunk: Chunk<'_>,
        data: &[u8],
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<(), StreamError> {
        if let Some(error) = chunk.error() {
            return Err(StreamError::Provider(error.to_owned()));
        }
        if !chunk.is_completion() && is_bare_error(data) {
            return Err(StreamError::Provider(quote(data)));
        }
        if let Some(reason) = chunk.events(&mut self.slots, on_event) {
            self.finish = Some(read_finish(&reason));
        }
        Ok(())
    }

    /// Data that is no chunk: the end mark, several lines without blank ones between, or bad UTF-8.
    fn on_odd_data(
        &mut self,
        data: &[u8],
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<(), StreamError> {
        let data = data.trim_ascii();
        if data.is_empty() || self.is_done {
            return Ok(());
        }
        if data == b"[DONE]" {
            self.is_done = true;
            return Ok(());
        }
        if let Some(end) = data.iter().position(|byte| *byte == b'\n') {
            self.on_data(&data[..end], on_event)?;
            return self.on_odd_rest(&data[end..], on_event);
        }
        let text = String::from_utf8_lossy(data);
        match Chunk::read(text.as_bytes()) {
            Ok(chunk) => self.on_chunk(chunk, text.as_bytes(), on_event),
            Err(_) => Err(StreamError::NotProtocol(quote(data))),
        }
    }

    fn on_odd_rest(
        &mut self,
        data: &[u8],
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<(), StreamError> {
        data.split(|byte| *byte == b'\n').try_for_each(|line| match line.trim_ascii() {
            b"" => Ok(()),
            line => self.on_data(line, on_event),
        })
    }

    fn on_whole(
        &mut self,
        whole: &[u8],
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<Finish, StreamError> {
        let chunk = match Chunk::read(whole) {
            Ok(chunk) => chunk,
            Err(error) if error.is_eof() => return Err(StreamError::Cut),
            Err(_) => return Err(StreamError::NotProtocol(quote(whole))),
        };
        if chunk.error().is_none() && !is_bare_error(whole) && !chunk.is_completion() {
            return Err(StreamError::NotProtocol(quote(whole)));
        }
        self.on_chunk(chunk, whole, on_event)?;
        Ok(self.finish.unwrap_or(Finish::Normally))
    }
}

fn read_finish(reason: &str) -> Finish {
    match reason {
        "length" | "max_tokens" => Finish::OutputLimit,
        "content_filter" | "refusal" => Finish::Refused,
        _ => Finish::Normally,
    }
}

/// `{"object": "error", "message": …}` and its like, without an `error` around it.
fn is_bare_error(data: &[u8]) -> bool {
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(data) else { return false };
    value["object"] == "error" || value["type"] == "error" || value["detail"].is_string()
}

fn quote(data: &[u8]) -> String {
    String::from_utf8_lossy(&data[..data.len().min(QUOTE_LEN_MAX)]).into_owned()
}

impl From<EventTooLong> for StreamError {
    fn from(EventTooLong: EventTooLong) -> Self {
        Self::TooLong
    }
}
