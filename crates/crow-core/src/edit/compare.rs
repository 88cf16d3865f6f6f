//! The comparison keys of lines, by matcher.

use std::borrow::Cow;

use super::matcher::EditMatcher;

/// Returns the key of a line for the loosest matcher.
pub(super) fn loosest_key(line: &str) -> Cow<'_, str> {
    comparison_key(line, EditMatcher::BlankLines)
}

/// Returns the key of a line for a matcher.
pub(super) fn comparison_key(line: &str, matcher: EditMatcher) -> Cow<'_, str> {
    match matcher {
        EditMatcher::Exact
        | EditMatcher::SymbolSpacing
        | EditMatcher::Escapes
        | EditMatcher::LineNumbers
        | EditMatcher::Fence => Cow::Borrowed(line),
        EditMatcher::LineTrimmed => Cow::Borrowed(line.trim_end()),
        EditMatcher::Indentation => Cow::Borrowed(split_indent(line).1.trim_end()),
        EditMatcher::Spacing => collapse_spaces(line),
        EditMatcher::Punctuation | EditMatcher::BlankLines if line.is_ascii() => collapse_spaces(line),
        EditMatcher::Punctuation | EditMatcher::BlankLines => {
            Cow::Owned(collapse_spaces(&fold_punctuation(line)).into_owned())
        }
    }
}

/// Whether a line contains only white space.
pub(super) fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

/// Splits a line into its indentation and the rest.
pub(super) fn split_indent(line: &str) -> (&str, &str) {
    let rest = line.trim_start_matches([' ', '\t']);
    line.split_at(line.len() - rest.len())
}

/// Replaces each run of spaces and tabs by one space, and trims the line.
fn collapse_spaces(line: &str) -> Cow<'_, str> {
    let line = split_indent(line).1.trim_end();
    if line.contains('\t') || line.contains("  ") {
        let words: Vec<&str> = line.split([' ', '\t']).filter(|word| !word.is_empty()).collect();
        return Cow::Owned(words.join(" "));
    }
    Cow::Borrowed(line)
}

/// Replaces typographic punctuation by plain.
pub(super) fn fold_punctuation(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for char in line.chars() {
        match plain_equivalent(char) {
            Some(plain) => out.push_str(plain),
            None => out.push(char),
        }
    }
    out
}

/// Returns the ASCII equivalent of a typographic character; `None` for others.
pub(super) fn plain_equivalent(char: char) -> Option<&'static str> {
    match char {
        '\u{2018}'..='\u{201b}' | '\u{2032}' => Some("'"),
        '\u{201c}'..='\u{201f}' | '\u{2033}' => Some("\""),
        '\u{2010}'..='\u{2015}' | '\u{2212}' => Some("-"),
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => Some(" "),
        '\u{2026}' => Some("..."),
        _ => None,
    }
}
