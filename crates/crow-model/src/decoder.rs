//! Turns a provider's bytes into events and says how the stream ended. Pure: bytes in, values out.

use crow_core::ModelEvent;

use crate::halves::{marked, whole};
use crate::settings::Api;
use crate::sse::{EVENT_LEN_MAX, EventTooLong, Events};
use crate::{chat, messages, responses};

/// Bytes that may follow the end of a reply: what it cost, and what nobody asked for.
const REST_LEN_MAX: usize = 1024 * 1024;

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
#[derive(Debug)]
pub struct Decoder {
    body: Body,
    state: State,
    /// Bytes that came after the model's own end.
    n_after_end: usize,
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

/// What the events mean, in the dialect of the provider.
#[derive(Debug)]
enum State {
    Chat(chat::Stream),
    Messages(messages::Stream),
    Responses(responses::Stream),
}

impl Decoder {
    /// Starts on an answer in a dialect.
    pub fn new(api: Api) -> Self {
        let state = match api {
            Api::Chat => State::Chat(chat::Stream::default()),
            Api::Messages => State::Messages(messages::Stream::default()),
            Api::Responses => State::Responses(responses::Stream::default()),
        };
        Self { body: Body::default(), state, n_after_end: 0 }
    }

    /// Takes the next bytes, cut anywhere; says the events they complete.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<(), StreamError> {
        let mut bytes = bytes;
        if self.is_done() {
            return Ok(());
        }
        if let Body::Unknown = self.body {
            // However they are cut, blanks before an answer are none of it.
            bytes = bytes.trim_ascii_start();
            self.body = match bytes.first() {
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
                        result = state.hear(data, on_event);
                    }
                });
                if state.finish().is_none() {
                    return result.and(fed.map_err(StreamError::from));
                }
                self.n_after_end += if fed.is_ok() { bytes.len() } else { REST_LEN_MAX };
                Ok(())
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
        self.state.is_done() || self.n_after_end > REST_LEN_MAX
    }

    /// Takes the end of the bytes; says what was still waiting and how the answer ended.
    pub fn end(self, on_event: &mut impl FnMut(ModelEvent<'_>)) -> Result<Finish, StreamError> {
        let Self { body, mut state, .. } = self;
        let finish = match body {
            Body::Unknown => return Err(StreamError::Cut),
            Body::Whole(whole) => {
                state.on_whole(marked(&whole).as_bytes(), on_event).map_err(StreamError::whole)?
            }
            Body::Events(events) => state.end_events(events, on_event)?,
        };
        state.flush(on_event)?;
        Ok(finish)
    }
}

impl State {
    fn on_data(&mut self, data: &[u8], on_event: &mut impl FnMut(ModelEvent<'_>)) -> Result<(), StreamError> {
        match self {
            Self::Chat(stream) => stream.on_data(data, on_event),
            Self::Messages(stream) => stream.on_data(data, on_event),
            Self::Responses(stream) => stream.on_data(data, on_event),
        }
    }

    /// Takes the data of one event, unless nothing follows by now. A reply that has come to its end is whole: what is
    /// odd behind it takes nothing away.
    fn hear(&mut self, data: &[u8], on_event: &mut impl FnMut(ModelEvent<'_>)) -> Result<(), StreamError> {
        if self.is_done() {
            return Ok(());
        }
        match self.on_data(marked(data).as_bytes(), on_event) {
            Err(_) if self.finish().is_some() => Ok(()),
            result => result.map_err(StreamError::whole),
        }
    }

    /// Takes the end of a stream, perhaps in the middle of an event.
    fn end_events(
        &mut self,
        mut events: Events,
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<Finish, StreamError> {
        let mut result = Ok(());
        let ended = events.end(&mut |data| result = self.hear(data, on_event));
        match (self.finish(), self.is_done()) {
            (Some(finish), _) => return Ok(finish),
            (None, true) => return Ok(Finish::Normally),
            (None, false) => ended?,
        }
        match result {
            // Half an event is what a broken connection leaves.
            Err(StreamError::NotProtocol(_)) | Ok(()) => Err(StreamError::Cut),
            Err(error) => Err(error),
        }
    }

    /// Says what was still waiting.
    fn flush(&mut self, on_event: &mut impl FnMut(ModelEvent<'_>)) -> Result<(), StreamError> {
        match self {
            Self::Chat(stream) => stream.flush(on_event),
            Self::Messages(stream) => stream.flush(on_event)?,
            Self::Responses(stream) => stream.flush(on_event),
        }
        Ok(())
    }

    fn on_whole(
        &mut self,
        whole: &[u8],
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<Finish, StreamError> {
        match self {
            Self::Chat(stream) => stream.on_whole(whole, on_event),
            Self::Messages(stream) => stream.on_whole(whole, on_event),
            Self::Responses(stream) => stream.on_whole(whole, on_event),
        }
    }

    fn finish(&self) -> Option<Finish> {
        match self {
            Self::Chat(stream) => stream.finish(),
            Self::Messages(stream) => stream.finish(),
            Self::Responses(stream) => stream.finish(),
        }
    }

    fn is_done(&self) -> bool {
        match self {
            Self::Chat(stream) => stream.is_done(),
            Self::Messages(stream) => stream.is_done(),
            Self::Responses(stream) => stream.is_done(),
        }
    }
}

impl StreamError {
    /// Makes what it quotes text for a person.
    fn whole(self) -> Self {
        match self {
            Self::Provider(text) => Self::Provider(whole(&text).into_owned()),
            Self::NotProtocol(text) => Self::NotProtocol(whole(&text).into_owned()),
            Self::TooLong | Self::Cut => self,
        }
    }
}

/// A piece of a strange answer, for a person.
pub(crate) fn quote(data: &[u8]) -> String {
    let data = data.trim_ascii();
    String::from_utf8_lossy(&data[..data.len().min(QUOTE_LEN_MAX)]).into_owned()
}

impl From<EventTooLong> for StreamError {
    fn from(EventTooLong: EventTooLong) -> Self {
        Self::TooLong
    }
}

#[cfg(test)]
mod tests;
