//! The composer: the text of the next prompt.

pub(crate) mod buffer;
pub(crate) mod layout;
pub(crate) mod vi;
mod vi_motion;
