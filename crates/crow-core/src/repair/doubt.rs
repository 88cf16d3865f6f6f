//! Parsed arguments with their doubts, between the readers.

use serde_json::{Map, Value};

use crate::DoubtKind;

/// A doubt, with its byte offset.
pub(super) struct LocatedDoubt {
    pub(super) kind: DoubtKind,
    pub(super) end: usize,
}

/// An object, its doubt, and the text after it.
pub(super) type PartialRead<'a> = (Map<String, Value>, Option<LocatedDoubt>, &'a str);
