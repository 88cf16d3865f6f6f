//! Owns the provider's HTTP: request, stream, retry. Only this crate spells a provider's JSON.
//!
//! It hears a transcript and says events and one reply; it knows nothing of sessions, tools or clients.

mod settings;

mod ask;
mod http;
mod models;

mod chat;
mod decoder;
mod halves;
mod leaked;
mod messages;
mod parts;
mod responses;
mod sse;

mod failure;
mod price;
mod record;
mod retry;

#[cfg(test)]
mod heard;
#[cfg(test)]
mod sample;

pub use ask::{ModelRequest, ReplyListener, stream_reply};
pub use decoder::{FinishReason, ReplyDecoder, StreamError};
pub use http::HttpClients;
pub use models::{ListedModel, ModelListing, ModelServerKind, check_key, list_models};
pub use record::RequestRecorder;
pub use settings::{ApiKey, ModelApi, ModelPrice, ModelSettings, ProviderSettings, ToolCallMode};
