//! OpenAI's `responses` API. Crow keeps the conversation itself, so nothing is stored at the provider and each
//! request contains all of it.

mod event;
mod item;
mod request;
mod stream;

use crate::api::{ApiDefinition, KeyHeader};

pub(crate) static DEFINITION: ApiDefinition = ApiDefinition {
    name: "responses",
    path: &["responses"],
    headers: &[],
    key_header: KeyHeader::Bearer,
    build_body: |settings, transcript, tools, _| request::build_body(settings, transcript, tools),
    new_decoder: || Box::new(stream::ResponsesDecoder::default()),
};
