//! The arguments of a tool call after parsing, with the certainty of the result. Knows no tools: the callers decide
//! whether doubtful arguments may run.

use std::fmt;

use serde_json::{Map, Value};

/// The arguments of a tool call after parsing.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolArguments {
    /// Valid JSON as sent.
    Valid(Map<String, Value>),
    /// Valid after a repair of the syntax.
    Repaired {
        /// The repaired object.
        value: Map<String, Value>,
        /// The reason why the object may be incomplete or wrong; `None` if the repair is certain.
        doubt: Option<RepairDoubt>,
    },
    /// Not repairable; the transcript stores `{}` and the tool result gives the reason.
    Unreadable {
        /// The parse error with its position.
        reason: String,
    },
}

impl ToolArguments {
    /// Returns the object that the transcript stores.
    pub fn to_object(&self) -> Map<String, Value> {
        match self {
            Self::Valid(value) | Self::Repaired { value, .. } => value.clone(),
            Self::Unreadable { .. } => Map::new(),
        }
    }

    /// Accepts missing brackets in a reply that ended normally: the model forgot them and nothing was truncated.
    #[must_use]
    pub(crate) fn accept_missing_brackets(self) -> Self {
        match self {
            Self::Repaired { value, doubt: Some(RepairDoubt { kind: DoubtKind::MissingBrackets, .. }) } => {
                Self::Repaired { value, doubt: None }
            }
            Self::Valid(_) | Self::Repaired { .. } | Self::Unreadable { .. } => self,
        }
    }

    /// Returns the doubt about the object, if any.
    pub fn doubt(&self) -> Option<RepairDoubt> {
        match self {
            Self::Repaired { doubt, .. } => *doubt,
            Self::Valid(_) | Self::Unreadable { .. } => None,
        }
    }
}

/// The reason why repaired arguments may not be what the model meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepairDoubt {
    /// The kind of doubt.
    pub kind: DoubtKind,
    /// The position in the text; `None` if it is unknown.
    pub position: Option<TextPosition>,
}

/// The kinds of doubt about repaired JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DoubtKind {
    /// A closing bracket is missing; more members may have been intended before it.
    UnclosedValue,
    /// Only closing brackets are missing, after a complete value.
    MissingBrackets,
    /// The text ends inside a string.
    TruncatedString,
    /// A different object follows.
    SeveralObjects,
    /// Other text follows, with an unknown meaning.
    TrailingText,
    /// A string contains half of a surrogate pair.
    LoneSurrogate,
    /// A key has two different values.
    DuplicateKey,
    /// The text is not JSON and has more than one possible meaning.
    Ambiguous,
}

/// A position in a text, in the format of parse errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextPosition {
    /// The line, from 1.
    pub line: usize,
    /// The number of bytes of the line before the position.
    pub column: usize,
}

impl TextPosition {
    /// Returns the position after a prefix of a text.
    pub(crate) fn at_end(beginning: &str) -> Self {
        let line_start = beginning.rfind('\n').map_or(0, |newline| newline + 1);
        Self { line: beginning.matches('\n').count() + 1, column: beginning.len() - line_start }
    }
}

impl RepairDoubt {
    /// Returns the instruction to the model for a corrected call.
    pub fn advice(self) -> &'static str {
        match self.kind {
            DoubtKind::UnclosedValue | DoubtKind::MissingBrackets | DoubtKind::TruncatedString => {
                "send the whole call again, in smaller steps if it is long"
            }
            DoubtKind::SeveralObjects => "send one call for each",
            DoubtKind::TrailingText => "send the call again with nothing but the object",
            DoubtKind::LoneSurrogate => "send the call again with whole characters",
            DoubtKind::DuplicateKey => "send the call again with each key once",
            DoubtKind::Ambiguous => {
                "send the call again as JSON, with each quote, backslash and line end in a string escaped"
            }
        }
    }
}

impl fmt::Display for RepairDoubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, after) = match self.kind {
            DoubtKind::UnclosedValue | DoubtKind::MissingBrackets => ("a closing bracket is missing", ""),
            DoubtKind::TruncatedString => ("they stop", " in the middle of a string"),
            DoubtKind::SeveralObjects => ("another object follows", ""),
            DoubtKind::TrailingText => ("other text follows", ""),
            DoubtKind::LoneSurrogate => ("half a surrogate pair is in the string that ends", ""),
            DoubtKind::DuplicateKey => ("a key has a second value", ", which differs from the first"),
            DoubtKind::Ambiguous => ("the text", " is ambiguous"),
        };
        f.write_str(before)?;
        if let Some(position) = self.position {
            write!(f, " at {position}")?;
        }
        f.write_str(after)
    }
}

impl fmt::Display for TextPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} column {}", self.line, self.column)
    }
}
