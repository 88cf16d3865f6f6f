//! A call's arguments as they were read, and how sure that reading is. Knows no tool: what may run in doubt
//! is decided where the tools are.

use std::fmt;

use serde_json::{Map, Value};

/// A call's arguments after reading them.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolArguments {
    /// Valid as sent.
    Valid(Map<String, Value>),
    /// Valid after a repair of syntax.
    Repaired {
        /// What it came to.
        value: Map<String, Value>,
        /// Why that may not be all that was meant; `None` where the repair left nothing open.
        doubt: Option<RepairDoubt>,
    },
    /// Beyond repair; history holds `{}` and the result says why.
    Unreadable {
        /// The parse error with its position.
        why: String,
    },
}

impl ToolArguments {
    /// Shows the object that history holds.
    pub fn to_object(&self) -> Map<String, Value> {
        match self {
            Self::Valid(value) | Self::Repaired { value, .. } => value.clone(),
            Self::Unreadable { .. } => Map::new(),
        }
    }

    /// Accepts missing brackets in a reply that ended regularly: the model forgot them, and nothing was cut.
    #[must_use]
    pub(crate) fn accept_missing_brackets(self) -> Self {
        match self {
            Self::Repaired { value, doubt: Some(RepairDoubt { kind: DoubtKind::BracketsMissing, .. }) } => {
                Self::Repaired { value, doubt: None }
            }
            Self::Valid(_) | Self::Repaired { .. } | Self::Unreadable { .. } => self,
        }
    }

    /// Says why the object may not be all that was meant.
    pub fn doubt(&self) -> Option<RepairDoubt> {
        match self {
            Self::Repaired { doubt, .. } => *doubt,
            Self::Valid(_) | Self::Unreadable { .. } => None,
        }
    }
}

/// Why repaired arguments may not be all that was meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepairDoubt {
    /// What was not certain.
    pub kind: DoubtKind,
    /// Where; `None` where that was not kept.
    pub place: Option<TextPosition>,
}

/// What was not certain of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DoubtKind {
    /// A closing bracket is missing: more may have been meant to stand before it.
    NotClosed,
    /// Nothing but closing brackets is missing, behind a value that is whole.
    BracketsMissing,
    /// The text stops in the middle of a string.
    CutInString,
    /// Another object follows, which is not the same.
    Several,
    /// Words follow, and what they say of the object nobody knows.
    TextBehind,
    /// A string has half a surrogate pair in it.
    LoneSurrogate,
    /// A key has two values that are not the same.
    KeyTwice,
    /// It is no JSON there, and more than one thing may have been meant.
    Guessed,
}

/// A place in a text as parse errors name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextPosition {
    /// Line, from 1.
    pub line: usize,
    /// Bytes of the line up to there.
    pub column: usize,
}

impl TextPosition {
    /// Names the place where a beginning of a text ends.
    pub(crate) fn at_end(beginning: &str) -> Self {
        let line_start = beginning.rfind('\n').map_or(0, |newline| newline + 1);
        Self { line: beginning.matches('\n').count() + 1, column: beginning.len() - line_start }
    }
}

impl RepairDoubt {
    /// Says what a model can do about it.
    pub fn advice(self) -> &'static str {
        match self.kind {
            DoubtKind::NotClosed | DoubtKind::BracketsMissing | DoubtKind::CutInString => {
                "send the whole call again, in smaller steps if it is long"
            }
            DoubtKind::Several => "send one call for each",
            DoubtKind::TextBehind => "send the call again with nothing but the object",
            DoubtKind::LoneSurrogate => "send the call again with whole characters",
            DoubtKind::KeyTwice => "send the call again with each key once",
            DoubtKind::Guessed => {
                "send the call again as JSON, with each quote, backslash and line end in a string escaped"
            }
        }
    }
}

impl fmt::Display for RepairDoubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, after) = match self.kind {
            DoubtKind::NotClosed | DoubtKind::BracketsMissing => ("a closing bracket is missing", ""),
            DoubtKind::CutInString => ("they stop", " in the middle of a string"),
            DoubtKind::Several => ("another object follows", ""),
            DoubtKind::TextBehind => ("words follow", ""),
            DoubtKind::LoneSurrogate => ("half a character stands in a string that ends", ""),
            DoubtKind::KeyTwice => ("a key has a second value", ", which is not the first"),
            DoubtKind::Guessed => ("what was meant", " had to be guessed"),
        };
        f.write_str(before)?;
        if let Some(place) = self.place {
            write!(f, " at {place}")?;
        }
        f.write_str(after)
    }
}

impl fmt::Display for TextPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} column {}", self.line, self.column)
    }
}
