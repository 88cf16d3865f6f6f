//! Doubts about a call's arguments, as a stored message has them.

use crow_core::{DoubtKind, RepairDoubt, TextPosition};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub(super) struct RepairDoubtRow {
    #[serde(with = "DoubtKindRow")]
    kind: DoubtKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    place: Option<TextPositionRow>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "DoubtKind", rename_all = "snake_case")]
enum DoubtKindRow {
    #[serde(rename = "not_closed")]
    UnclosedValue,
    #[serde(rename = "brackets_missing")]
    MissingBrackets,
    #[serde(rename = "cut_in_string")]
    TruncatedString,
    #[serde(rename = "several")]
    SeveralObjects,
    #[serde(rename = "text_behind")]
    TrailingText,
    LoneSurrogate,
    #[serde(rename = "key_twice")]
    DuplicateKey,
    #[serde(rename = "guessed")]
    Ambiguous,
}

#[derive(Serialize, Deserialize)]
struct TextPositionRow {
    line: usize,
    column: usize,
}

impl RepairDoubtRow {
    pub(super) fn from_doubt(doubt: RepairDoubt) -> Self {
        let position = doubt.position.map(|TextPosition { line, column }| TextPositionRow { line, column });
        Self { kind: doubt.kind, place: position }
    }

    pub(super) fn into_doubt(self) -> RepairDoubt {
        let position = self.place.map(|TextPositionRow { line, column }| TextPosition { line, column });
        RepairDoubt { kind: self.kind, position }
    }
}
