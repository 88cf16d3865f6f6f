//! Model APIs over HTTP: request, stream, retry. Only this crate contains a provider's JSON.
//!
//! Input is a transcript, output are events and one reply; it knows nothing of sessions, tools or clients.

mod settings;

mod http;
mod json_post;
mod models;
mod reply_stream;
mod request_span;
mod simulated;

mod api;
mod api_table;
mod chat;
mod messages;
mod responses;

mod conversation;
mod decoder;
mod encoded_messages;
mod surrogates;
mod text_calls;
mod wire;

mod failure;
mod fallback;
mod price;
mod recording;
mod retry;

#[cfg(test)]
mod test_decoding;
#[cfg(test)]
mod test_settings;

pub use api::{FinishReason, ModelApi, StreamError};
pub use decoder::ReplyDecoder;
pub use encoded_messages::EncodedMessages;
pub use fallback::{CurrentFallback, FallbackChain, RequestBounds, stream_with_fallbacks};
pub use http::HttpClients;
pub use json_post::{JsonPost, JsonPostAnswer};
pub use models::{ListedModel, ModelListing, ModelServerKind, check_key, list_models};
pub use recording::{RequestRecorder, redact_provider_secrets};
pub use reply_stream::{ModelRequest, ReplyListener, stream_reply};
pub use request_span::telemetry_provider_name;
pub use retry::ProviderOutage;
pub use settings::{ApiKey, ModelPrice, ModelSettings, ProviderSettings, ToolCallMode};
pub use simulated::{ProviderResponse, SimulatedProvider};
