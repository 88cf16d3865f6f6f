//! Turns a provider's bytes into events and says how the stream ended. Pure: bytes in, values out.

use crow_core::ModelEvent;

use crate::halves::{mark_surrogates, resolve_marks};
use crate::settings::ModelApi;
use crate::sse::{EVENT_LEN_MAX, EventTooLong, SseParser};
use crate::{chat, messages, responses};

/// Bytes that may follow the end of a reply: what it cost, and what nobody asked for.
const REST_LEN_MAX: usize = 1024 * 1024;

/// How much of a strange answer is worth quoting.
const QUOTE_LEN_MAX: usize = 2000;

/// How a model came to an end of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishReason {
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
pub struct ReplyDecoder {
    body: BodyState,
    state: ApiStream,
    /// Bytes that came after the model's own end.
    n_after_end: usize,
}

#[derive(Debug, Default)]
enum BodyState {
    /// Nothing but blanks has come.
    #[default]
    Unknown,
    Events(SseParser),
    /// JSON without a stream around it: the server ignored `stream`.
    Whole(Vec<u8>),
}

/// What the events mean, in the dialect of the provider.
#[derive(Debug)]
enum ApiStream {
    Chat(chat::ChatStream),
    Messages(messages::AnthropicStream),
    Responses(responses::ResponsesStream),
}

impl ReplyDecoder {
    /// Starts on an answer in a dialect.
    pub fn new(api: ModelApi) -> Self {
        let state = match api {
            ModelApi::Chat => ApiStream::Chat(chat::ChatStream::default()),
            ModelApi::Messages => ApiStream::Messages(messages::AnthropicStream::default()),
            ModelApi::Responses => ApiStream::Responses(responses::ResponsesStream::default()),
        };
        Self { body: BodyState::default(), state, n_after_end: 0 }
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
        if let BodyState::Unknown = self.body {
            // However they are cut, blanks before an answer are none of it.
            bytes = bytes.trim_ascii_start();
            self.body = match bytes.first() {
                None => return Ok(()),
                Some(b'{' | b'[') => BodyState::Whole(Vec::new()),
                Some(b'<') => return Err(StreamError::NotProtocol("a web page".to_owned())),
                Some(_) => BodyState::Events(SseParser::default()),
            };
        }
        let state = &mut self.state;
        match &mut self.body {
            BodyState::Events(events) => {
                let mut result = Ok(());
                let fed = events.feed(bytes, &mut |data| {
                    if result.is_ok() {
                        result = state.on_event_data(data, on_event);
                    }
                });
                if state.finish_reason().is_none() {
                    return result.and(fed.map_err(StreamError::from));
                }
                self.n_after_end += if fed.is_ok() { bytes.len() } else { REST_LEN_MAX };
                Ok(())
            }
            BodyState::Whole(whole) if whole.len() + bytes.len() > EVENT_LEN_MAX => Err(StreamError::TooLong),
            BodyState::Whole(whole) => {
                whole.extend_from_slice(bytes);
                Ok(())
            }
            BodyState::Unknown => Ok(()),
        }
    }

    /// Tells whether the provider said that nothing follows.
    pub fn is_done(&self) -> bool {
        self.state.is_done() || self.n_after_end > REST_LEN_MAX
    }

    /// Takes the end of the bytes; says what was still waiting and how the answer ended.
    pub fn finish(self, on_event: &mut impl FnMut(ModelEvent<'_>)) -> Result<FinishReason, StreamError> {
        let Self { body, mut state, .. } = self;
        let finish = match body {
            BodyState::Unknown => return Err(StreamError::Cut),
            BodyState::Whole(whole) => state
                .on_complete_body(mark_surrogates(&whole).as_bytes(), on_event)
                .map_err(StreamError::resolve_quoted_marks)?,
            BodyState::Events(events) => state.finish_events(events, on_event)?,
        };
        state.flush(on_event)?;
        Ok(finish)
    }
}

impl ApiStream {
    fn on_data(&mut self, data: &[u8], on_event: &mut impl FnMut(ModelEvent<'_>)) -> Result<(), StreamError> {
        match self {
            Self::Chat(stream) => stream.on_data(data, on_event),
            Self::Messages(stream) => stream.on_data(data, on_event),
            Self::Responses(stream) => stream.on_data(data, on_event),
        }
    }

    /// Takes the data of one event, unless nothing follows by now. A reply that has come to its end is whole: what is
    /// odd behind it takes nothing away.
    fn on_event_data(
        &mut self,
        data: &[u8],
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<(), StreamError> {
        if self.is_done() {
            return Ok(());
        }
        match self.on_data(mark_surrogates(data).as_bytes(), on_event) {
            Err(_) if self.finish_reason().is_some() => Ok(()),
            result => result.map_err(StreamError::resolve_quoted_marks),
        }
    }

    /// Takes the end of a stream, perhaps in the middle of an event.
    fn finish_events(
        &mut self,
        mut events: SseParser,
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<FinishReason, StreamError> {
        let mut result = Ok(());
        let ended = events.finish(&mut |data| result = self.on_event_data(data, on_event));
        match (self.finish_reason(), self.is_done()) {
            (Some(finish), _) => return Ok(finish),
            (None, true) => return Ok(FinishReason::Normally),
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

    fn on_complete_body(
        &mut self,
        whole: &[u8],
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<FinishReason, StreamError> {
        match self {
            Self::Chat(stream) => stream.on_complete_body(whole, on_event),
            Self::Messages(stream) => stream.on_complete_body(whole, on_event),
            Self::Responses(stream) => stream.on_complete_body(whole, on_event),
        }
    }

    fn finish_reason(&self) -> Option<FinishReason> {
        match self {
            Self::Chat(stream) => stream.finish_reason(),
            Self::Messages(stream) => stream.finish_reason(),
            Self::Responses(stream) => stream.finish_reason(),
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
    fn resolve_quoted_marks(self) -> Self {
        match self {
            Self::Provider(text) => Self::Provider(resolve_marks(&text).into_owned()),
            Self::NotProtocol(text) => Self::NotProtocol(resolve_marks(&text).into_owned()),
            Self::TooLong | Self::Cut => self,
        }
    }
}

/// A piece of a strange answer, for a person.
pub(crate) fn error_excerpt(data: &[u8]) -> String {
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
