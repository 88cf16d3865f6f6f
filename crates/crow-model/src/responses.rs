//! The dialect of `responses`, OpenAI's own. Crow keeps the conversation itself, so nothing is stored there and each
//! request says all of it.

mod event;
mod item;
mod request;
mod stream;

pub(crate) use request::build_body;
pub(crate) use stream::ResponsesStream;
