//! Anthropic's Messages API, which other servers support as well.

mod conversation;
mod event;
mod request;
mod stream;
mod thinking;

use crate::api::{ApiDefinition, KeyHeader};

pub(crate) static DEFINITION: ApiDefinition = ApiDefinition {
    name: "messages",
    path: &["messages"],
    headers: &[("anthropic-version", "2023-06-01")],
    key_header: KeyHeader::Named("x-api-key"),
    build_body: |settings, transcript, tools, _| request::build_body(settings, transcript, tools),
    new_decoder: || Box::new(stream::AnthropicDecoder::default()),
};
