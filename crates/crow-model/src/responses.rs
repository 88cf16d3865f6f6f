//! OpenAI's `responses` API. Crow keeps the conversation itself, so nothing is stored at the provider and each
//! request contains all of it.

mod event;
mod item;
mod request;
mod stream;

pub(crate) use request::build_body;
pub(crate) use stream::ResponsesStream;
