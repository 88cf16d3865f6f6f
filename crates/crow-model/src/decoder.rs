//! Decodes a provider's bytes into events and determines how the stream ended. Pure: bytes in, values out.

use crow_core::{EVENT_LEN_MAX, ModelEvent, SseParser};

use crate::api::{ApiDecoder, DataError, EventSink, FinishReason, ModelApi, StreamError};
use crate::surrogates::{mark_surrogates, resolve_marks};

/// The mark at the end of a stream, which several APIs have.
const END_MARK: &[u8] = b"[DONE]";

/// Bytes accepted after the end of a reply: the usage, and anything unrequested.
const TRAILING_LEN_MAX: usize = 1024 * 1024;

/// Decodes one response, streamed or complete.
#[derive(Debug)]
pub struct ReplyDecoder {
    body: BodyState,
    events: EventStream,
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

/// The events of a response.
#[derive(Debug)]
struct EventStream(Box<dyn ApiDecoder>);

impl ReplyDecoder {
    /// Starts decoding a response of an API.
    pub fn new(api: ModelApi) -> Self {
        let events = EventStream((api.definition().new_decoder)());
        Self { body: BodyState::default(), events, n_after_end: 0 }
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
        let events = &mut self.events;
        match &mut self.body {
            BodyState::Events(parser) => {
                let mut result = Ok(());
                let fed_result = parser.feed(bytes, &mut |event| {
                    if result.is_ok() {
                        result = events.on_event_data(event.data, on_event);
                    }
                });
                if events.finish_reason().is_none() {
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
        self.events.is_done() || self.n_after_end > TRAILING_LEN_MAX
    }

    /// Whether the model ended the reply: only the usage and the end of the stream may be missing.
    pub fn has_finish_reason(&self) -> bool {
        self.events.finish_reason().is_some()
    }

    /// Ends the input; emits what was pending and returns how the response ended.
    pub fn finish(self, on_event: &mut impl FnMut(ModelEvent<'_>)) -> Result<FinishReason, StreamError> {
        let Self { body, mut events, .. } = self;
        let finish_reason = match body {
            BodyState::Unknown => return Err(StreamError::Incomplete),
            BodyState::Json(body) => events.on_complete_body(&body, on_event)?,
            BodyState::Events(parser) => events.finish(parser, on_event)?,
        };
        events.0.flush(on_event)?;
        Ok(finish_reason)
    }
}

impl EventStream {
    /// Decodes the data of one event, unless nothing follows any more. A finished reply is complete: unexpected data
    /// after it changes nothing.
    fn on_event_data(&mut self, data: &[u8], on_event: &mut EventSink<'_>) -> Result<(), StreamError> {
        match self.on_data(mark_surrogates(data).as_bytes(), on_event) {
            Err(_) if self.finish_reason().is_some() => Ok(()),
            result => result.map_err(StreamError::resolve_quoted_marks),
        }
    }

    fn on_data(&mut self, data: &[u8], on_event: &mut EventSink<'_>) -> Result<(), StreamError> {
        let data = data.trim_ascii();
        if data.is_empty() || self.is_done() {
            return Ok(());
        }
        if data == END_MARK {
            self.0.on_end_mark(on_event);
            return Ok(());
        }
        self.0.on_data(data, on_event).or_else(|error| match error {
            DataError::Stream(error) => Err(error),
            // Several events without blank lines between.
            DataError::Malformed(_) if data.contains(&b'\n') => {
                data.split(|byte| *byte == b'\n').try_for_each(|line| self.on_data(line, on_event))
            }
            DataError::Malformed(_) => Err(StreamError::unexpected_format(data)),
        })
    }

    fn on_complete_body(
        &mut self,
        body: &[u8],
        on_event: &mut EventSink<'_>,
    ) -> Result<FinishReason, StreamError> {
        let body = mark_surrogates(body);
        let result = self.0.on_complete_body(body.as_bytes(), on_event).map_err(|error| match error {
            DataError::Stream(error) => error,
            DataError::Malformed(error) if error.is_eof() => StreamError::Incomplete,
            DataError::Malformed(_) => StreamError::unexpected_format(body.as_bytes()),
        });
        result.map_err(StreamError::resolve_quoted_marks)
    }

    /// Handles the end of a stream, perhaps in the middle of an event.
    fn finish(
        &mut self,
        mut parser: SseParser,
        on_event: &mut EventSink<'_>,
    ) -> Result<FinishReason, StreamError> {
        let mut result = Ok(());
        let end_result = parser.finish(&mut |event| result = self.on_event_data(event.data, on_event));
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

    fn finish_reason(&self) -> Option<FinishReason> {
        self.0.end().finish_reason
    }

    fn is_done(&self) -> bool {
        self.0.end().is_done
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

#[cfg(test)]
mod tests;
