//! The dialect of Anthropic's Messages API, which other servers speak as well.

mod conversation;
mod event;
mod request;
mod stream;
mod thinking;

pub(crate) use request::body;
pub(crate) use stream::Stream;
