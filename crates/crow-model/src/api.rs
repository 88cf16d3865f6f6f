//! The interface of a model API: an endpoint, a request body, and a decoder of events. The rest of the crate works with
//! any [`ApiDefinition`]; must not know a particular one.

use std::fmt;

use crow_core::{EventTooLong, ModelEvent, ModelTranscript, ToolSpec};

use crate::encoded_messages::EncodedMessages;
use crate::settings::ModelSettings;

/// The length of a quotation from an unexpected response.
const EXCERPT_LEN_MAX: usize = 2000;

/// A model API. [`ModelApi::ALL`] lists them.
#[derive(Clone, Copy)]
pub struct ModelApi(&'static ApiDefinition);

/// The differences between model APIs.
pub(crate) struct ApiDefinition {
    /// The API's name in the configuration.
    pub(crate) name: &'static str,
    /// The path of the endpoint below `base_url`.
    pub(crate) path: &'static [&'static str],
    /// Headers that each request requires.
    pub(crate) headers: &'static [(&'static str, &'static str)],
    pub(crate) key_header: KeyHeader,
    pub(crate) build_body: BodyBuilder,
    /// Starts decoding a response.
    pub(crate) new_decoder: fn() -> Box<dyn ApiDecoder>,
}

/// Encodes a conversation and the tools offered as the body of a request.
pub(crate) type BodyBuilder = fn(
    &ModelSettings,
    ModelTranscript<'_>,
    &[ToolSpec],
    &EncodedMessages,
) -> Result<Vec<u8>, serde_json::Error>;

/// The header with the key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum KeyHeader {
    /// `authorization: Bearer KEY`.
    Bearer,
    /// The key alone, in a header of this name.
    Named(&'static str),
}

/// The receiver of a reply's events.
pub(crate) type EventSink<'s> = dyn FnMut(ModelEvent<'_>) + 's;

/// The meaning of an API's events. [`crate::ReplyDecoder`] splits the bytes into events, handles blank data, end marks
/// and data that follows the end, and decides what a broken stream is.
pub(crate) trait ApiDecoder: fmt::Debug + Send {
    /// Decodes the data of one event, which is neither blank nor an end mark.
    fn on_data(&mut self, data: &[u8], on_event: &mut EventSink<'_>) -> Result<(), DataError>;

    /// Decodes a response that was not streamed, and returns how it ended.
    fn on_complete_body(
        &mut self,
        body: &[u8],
        on_event: &mut EventSink<'_>,
    ) -> Result<FinishReason, DataError>;

    /// Handles the mark `[DONE]`, after which nothing follows.
    fn on_end_mark(&mut self, on_event: &mut EventSink<'_>);

    /// Emits what was pending at the end of the input.
    fn flush(&mut self, on_event: &mut EventSink<'_>) -> Result<(), StreamError>;

    /// The end of the reply as far as it was reached.
    fn end(&self) -> StreamEnd;
}

/// The end of a reply as far as it was reached.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StreamEnd {
    /// The model's own end.
    pub(crate) finish_reason: Option<FinishReason>,
    /// The provider said that nothing follows.
    pub(crate) is_done: bool,
}

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

/// The reason why the data of an event could not be used.
#[derive(Debug)]
pub(crate) enum DataError {
    /// The data is not an event of the API.
    Malformed(serde_json::Error),
    /// The stream is not a reply.
    Stream(StreamError),
}

impl ModelApi {
    pub(crate) const fn new(definition: &'static ApiDefinition) -> Self {
        Self(definition)
    }

    pub(crate) fn definition(self) -> &'static ApiDefinition {
        self.0
    }

    /// Returns the API's name in the configuration.
    pub fn as_str(self) -> &'static str {
        self.0.name
    }

    /// Parses the result of [`ModelApi::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|api| api.as_str() == text)
    }
}

impl fmt::Debug for ModelApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Names are unique.
impl PartialEq for ModelApi {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for ModelApi {}

impl StreamError {
    /// An error that is the whole data of an event.
    pub(crate) fn from_provider(data: &[u8]) -> Self {
        Self::Provider(excerpt(data))
    }

    /// Data of an unexpected format.
    pub(crate) fn unexpected_format(data: &[u8]) -> Self {
        Self::UnexpectedFormat(excerpt(data))
    }
}

impl From<EventTooLong> for StreamError {
    fn from(EventTooLong: EventTooLong) -> Self {
        Self::TooLong
    }
}

impl From<StreamError> for DataError {
    fn from(error: StreamError) -> Self {
        Self::Stream(error)
    }
}

impl From<serde_json::Error> for DataError {
    fn from(error: serde_json::Error) -> Self {
        Self::Malformed(error)
    }
}

fn excerpt(data: &[u8]) -> String {
    let data = data.trim_ascii();
    String::from_utf8_lossy(&data[..data.len().min(EXCERPT_LEN_MAX)]).into_owned()
}
