//! The matchers of an edit, from strict to loose.

use std::fmt;

/// The comparison of the old text with the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EditMatcher {
    /// Exact, except for the line endings.
    Exact,
    /// Whole lines, ignoring trailing white space.
    LineTrimmed,
    /// Whole lines, ignoring a common difference in indentation.
    Indentation,
    /// Whole lines or part of one, with each run of spaces and tabs as one space.
    Spacing,
    /// Typographic punctuation as plain: whole lines with all of the above, or any part of lines.
    Punctuation,
    /// Whole lines with all of the above, ignoring blank lines between them.
    BlankLines,
    /// Part of one line, ignoring white space beside symbols.
    SymbolSpacing,
    /// Any of the above after decoding escapes that the model wrote by mistake.
    Escapes,
    /// From the start of a line, after removing copied line numbers.
    LineNumbers,
    /// Any of the above after removing a code fence around the text.
    Fence,
}

impl EditMatcher {
    /// The matchers that compare line by line, from strict to loose.
    pub(super) const LINE_BY_LINE: [Self; 4] =
        [Self::LineTrimmed, Self::Indentation, Self::Spacing, Self::Punctuation];

    /// Describes the comparison to the model and the user.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::LineTrimmed => "ignoring trailing spaces",
            Self::Indentation => "ignoring indentation",
            Self::Spacing => "ignoring the amount of white space",
            Self::Punctuation => "ignoring typographic quotes and dashes",
            Self::BlankLines => "ignoring blank lines",
            Self::SymbolSpacing => "ignoring white space beside symbols",
            Self::Escapes => "decoding escapes",
            Self::LineNumbers => "without copied line numbers",
            Self::Fence => "without the code fence around it",
        }
    }
}

impl fmt::Display for EditMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
