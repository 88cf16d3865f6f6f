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

pub(crate) use request::{Fields, arguments, body, join};
pub(crate) use stream::Stream;
