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

use crate::api::{ApiDefinition, KeyHeader};

pub(crate) static DEFINITION: ApiDefinition = ApiDefinition {
    name: "chat",
    path: &["chat", "completions"],
    headers: &[],
    key_header: KeyHeader::Bearer,
    build_body: request::build_body,
    new_decoder: || Box::new(stream::ChatDecoder::default()),
};
