//! The `chat/completions` API, which most servers support.

mod call_slots;
mod chunk;
mod provider_quirks;
mod provider_state;
mod request;
mod stream;
mod usage;

#[cfg(test)]
mod tests;

pub(crate) use request::{BodyFields, arguments_json, build_body, join_lines};
pub(crate) use stream::ChatStream;
