//! The dialect of `chat/completions`, which most servers speak.

mod chunk;
mod kept;
mod request;
mod slots;
mod stream;
mod usage;
mod wants;

#[cfg(test)]
mod tests;

pub(crate) use request::{BodyFields, arguments_json, build_body, join_lines};
pub(crate) use stream::ChatStream;
