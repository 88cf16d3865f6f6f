//! Decodes a provider's bytes into events and determines how the stream ended. Pure: bytes in, values out.

use crow_core::{EVENT_LEN_MAX, EventTooLong, ModelEvent, SseParser};

use crate::settings::ModelApi;
use crate::surrogates::{mark_surrogates, resolve_marks};
use crate::{chat, messages, responses};

/// Bytes accepted after the end of a reply: the usage, and anything unrequested.
const TRAILING_LEN_MAX: usize = 1024 * 1024;

/// The length of a quotation from an unexpected response.
const EXCERPT_LEN_MAX: usize = 2000;

/// The model's own end of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishReason {
    /// The reply is complete.
    Complete,
    /// The output limit was reached.
    OutputLimit,
    /// A filter withheld the rest.
    Refused,
}

/// The reason why a stream is not a reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// The provider sent an error inside the stream; its JSON is kept.
    #[error("the provider sent an error: {0}")]
    Provider(String),
    /// The bytes are not the protocol; an excerpt is kept.
    #[error("the answer is not a stream of completions: {0}")]
    UnexpectedFormat(String),
    /// An event exceeds the size limit.
    #[error("an event is too long")]
    TooLong,
    /// The stream ended before the model did.
    #[error("the stream broke off")]
    Incomplete,
}

/// Decodes one response, streamed or complete.
#[derive(Debug)]
pub struct ReplyDecoder {
    body: BodyState,
    state: ApiStream,
    /// Bytes after the model's own end.
    n_after_end: usize,
}

#[derive(Debug, Default)]
enum BodyState {
    /// Only white space has arrived.
    #[default]
    Unknown,
    Events(SseParser),
    /// JSON without a stream around it: the server ignored `stream`.
    Json(Vec<u8>),
}

/// The meaning of the events, in the provider's API.
#[derive(Debug)]
enum ApiStream {
    Chat(chat::ChatStream),
    Messages(messages::AnthropicStream),
    Responses(responses::ResponsesStream),
}

impl ReplyDecoder {
    /// Starts decoding a response of an API.
    pub fn new(api: ModelApi) -> Self {
        let state = match api {
            ModelApi::Chat => ApiStream::Chat(chat::ChatStream::default()),
            ModelApi::Messages => ApiStream::Messages(messages::AnthropicStream::default()),
            ModelApi::Responses => ApiStream::Responses(responses::ResponsesStream::default()),
        };
        Self { body: BodyState::default(), state, n_after_end: 0 }
    }

    /// Decodes the next bytes, split anywhere, and emits the events they complete.
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
            // White space before a response is not part of it, however it is split.
            bytes = bytes.trim_ascii_start();
            self.body = match bytes.first() {
                None => return Ok(()),
                Some(b'{' | b'[') => BodyState::Json(Vec::new()),
                Some(b'<') => return Err(StreamError::UnexpectedFormat("a web page".to_owned())),
                Some(_) => BodyState::Events(SseParser::default()),
            };
        }
        let state = &mut self.state;
        match &mut self.body {
            BodyState::Events(events) => {
                let mut result = Ok(());
                let fed_result = events.feed(bytes, &mut |event| {
                    if result.is_ok() {
                        result = state.on_event_data(event.data, on_event);
                    }
                });
                if state.finish_reason().is_none() {
                    return result.and(fed_result.map_err(StreamError::from));
                }
                self.n_after_end += if fed_result.is_ok() { bytes.len() } else { TRAILING_LEN_MAX };
                Ok(())
            }
            BodyState::Json(body) if body.len() + bytes.len() > EVENT_LEN_MAX => Err(StreamError::TooLong),
            BodyState::Json(body) => {
                body.extend_from_slice(bytes);
                Ok(())
            }
            BodyState::Unknown => Ok(()),
        }
    }

    /// Whether the provider said that nothing follows.
    pub fn is_done(&self) -> bool {
        self.state.is_done() || self.n_after_end > TRAILING_LEN_MAX
    }

    /// Ends the input; emits what was pending and returns how the response ended.
    pub fn finish(self, on_event: &mut impl FnMut(ModelEvent<'_>)) -> Result<FinishReason, StreamError> {
        let Self { body, mut state, .. } = self;
        let finish_reason = match body {
            BodyState::Unknown => return Err(StreamError::Incomplete),
            BodyState::Json(body) => state
                .on_complete_body(mark_surrogates(&body).as_bytes(), on_event)
                .map_err(StreamError::resolve_quoted_marks)?,
            BodyState::Events(events) => state.finish_events(events, on_event)?,
        };
        state.flush(on_event)?;
        Ok(finish_reason)
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

    /// Decodes the data of one event, unless nothing follows any more. A finished reply is complete: unexpected data
    /// after it changes nothing.
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

    /// Handles the end of a stream, perhaps in the middle of an event.
    fn finish_events(
        &mut self,
        mut events: SseParser,
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<FinishReason, StreamError> {
        let mut result = Ok(());
        let end_result = events.finish(&mut |event| result = self.on_event_data(event.data, on_event));
        match (self.finish_reason(), self.is_done()) {
            (Some(finish_reason), _) => return Ok(finish_reason),
            (None, true) => return Ok(FinishReason::Complete),
            (None, false) => end_result?,
        }
        match result {
            // A broken connection leaves half an event.
            Err(StreamError::UnexpectedFormat(_)) | Ok(()) => Err(StreamError::Incomplete),
            Err(error) => Err(error),
        }
    }

    /// Emits what was pending.
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
        body: &[u8],
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<FinishReason, StreamError> {
        match self {
            Self::Chat(stream) => stream.on_complete_body(body, on_event),
            Self::Messages(stream) => stream.on_complete_body(body, on_event),
            Self::Responses(stream) => stream.on_complete_body(body, on_event),
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
    /// Makes its quotations readable.
    fn resolve_quoted_marks(self) -> Self {
        match self {
            Self::Provider(text) => Self::Provider(resolve_marks(&text).into_owned()),
            Self::UnexpectedFormat(text) => Self::UnexpectedFormat(resolve_marks(&text).into_owned()),
            Self::TooLong | Self::Incomplete => self,
        }
    }
}

/// An excerpt of an unexpected response.
pub(crate) fn error_excerpt(data: &[u8]) -> String {
    let data = data.trim_ascii();
    String::from_utf8_lossy(&data[..data.len().min(EXCERPT_LEN_MAX)]).into_owned()
}

impl From<EventTooLong> for StreamError {
    fn from(EventTooLong: EventTooLong) -> Self {
        Self::TooLong
    }
}

#[cfg(test)]
mod tests;
