//! What is not certain of a call's arguments, as a stored message says it.

use crow_core::{Doubt, DoubtKind, Place};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub(super) struct DoubtRow {
    #[serde(with = "DoubtKindRow")]
    kind: DoubtKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    place: Option<PlaceRow>,
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
struct PlaceRow {
    line: usize,
    column: usize,
}

impl DoubtRow {
    pub(super) fn of(doubt: Doubt) -> Self {
        let place = doubt.place.map(|Place { line, column }| PlaceRow { line, column });
        Self { kind: doubt.kind, place }
    }

    pub(super) fn into_doubt(self) -> Doubt {
        let place = self.place.map(|PlaceRow { line, column }| Place { line, column });
        Doubt { kind: self.kind, place }
    }
}
