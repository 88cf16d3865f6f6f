//! What is not certain of a call's arguments, as a stored message says it.

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
    NotClosed,
    BracketsMissing,
    CutInString,
    Several,
    TextBehind,
    LoneSurrogate,
    KeyTwice,
    Guessed,
}

#[derive(Serialize, Deserialize)]
struct TextPositionRow {
    line: usize,
    column: usize,
}

impl RepairDoubtRow {
    pub(super) fn from_doubt(doubt: RepairDoubt) -> Self {
        let place = doubt.place.map(|TextPosition { line, column }| TextPositionRow { line, column });
        Self { kind: doubt.kind, place }
    }

    pub(super) fn into_doubt(self) -> RepairDoubt {
        let place = self.place.map(|TextPositionRow { line, column }| TextPosition { line, column });
        RepairDoubt { kind: self.kind, place }
    }
}
