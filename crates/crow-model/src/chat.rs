//! The dialect of `chat/completions`, which most servers speak.

mod chunk;
mod request;
mod stream;

pub(crate) use request::body;
pub(crate) use stream::Stream;
