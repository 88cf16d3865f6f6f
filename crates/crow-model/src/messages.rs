//! Anthropic's Messages API, which other servers support as well.

mod conversation;
mod event;
mod request;
mod stream;
mod thinking;

pub(crate) use request::build_body;
pub(crate) use stream::AnthropicStream;
