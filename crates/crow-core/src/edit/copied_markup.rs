//! Removes markup that a model copied along with a text: the line numbers of a listing, or a code fence.

use super::matcher::EditMatcher;
use super::place::{AppliedEdit, line_at};

/// Removes line numbers from lines that all have consecutive ones in the same format.
pub(super) fn strip_line_numbers<'a>(old: &'a str, new: &'a str) -> Vec<UnnumberedTexts> {
    let Some(listing) = Listing::read(old) else { return Vec::new() };
    let Some(new_lines) = listing.strip_matching_numbers(new) else { return Vec::new() };
    let line_pair = LinePair { old: listing.lines.clone(), new: new_lines.lines };
    let mut readings = vec![listing.to_unnumbered(&line_pair, old, new)];
    // A space after the number belongs to the listing or to the line; both readings are tried.
    let listed: &[&str] = if new_lines.is_listed { &line_pair.new } else { &[] };
    let may_be_narrower = |line: &&str| line.is_empty() || line.starts_with(' ');
    if listing.separator.is_spaced() && line_pair.old.iter().chain(listed).all(may_be_narrower) {
        let narrower =
            |lines: &[&'a str]| lines.iter().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
        let new_lines = if new_lines.is_listed { narrower(&line_pair.new) } else { line_pair.new.clone() };
        readings.push(listing.to_unnumbered(
            &LinePair { old: narrower(&line_pair.old), new: new_lines },
            old,
            new,
        ));
    }
    readings
}

/// The lines of both texts.
struct LinePair<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
}

/// The lines of a new text, and whether they had numbers.
struct NewLines<'a> {
    lines: Vec<&'a str>,
    is_listed: bool,
}

/// Both texts without line numbers.
pub(super) struct UnnumberedTexts {
    pub(super) old: String,
    pub(super) new: String,
    /// The required first line of the old text, if only that shows that its number is a line number.
    pub(super) line: Option<u32>,
}

/// The separator between a number and its line in a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NumberSeparator {
    Tab,
    Arrow,
    Bar,
    Other(char),
    /// An empty line: nothing follows the number.
    End,
}

impl NumberSeparator {
    fn read(rest: &str) -> Option<(Self, &str)> {
        let trimmed = rest.trim_start_matches(' ');
        for (mark, separator) in [('\t', Self::Tab), ('→', Self::Arrow), ('|', Self::Bar), ('│', Self::Bar)]
        {
            if let Some(line) = trimmed.strip_prefix(mark) {
                return Some((separator, line));
            }
        }
        if trimmed.is_empty() {
            return Some((Self::End, ""));
        }
        let mark = rest.chars().next().filter(|mark| [':', '.', ')', '-', ' '].contains(mark))?;
        Some((Self::Other(mark), &rest[mark.len_utf8()..]))
    }

    fn is_spaced(self) -> bool {
        matches!(self, Self::Bar | Self::Other(_) | Self::Arrow)
    }

    /// Whether a single line with this separator is certainly from a listing.
    fn is_sure(self) -> bool {
        matches!(self, Self::Tab | Self::Arrow | Self::Bar)
    }
}

/// A line with its number, separator and prefix.
struct NumberedLine<'a> {
    prefix: &'a str,
    number: u32,
    separator: NumberSeparator,
    line: &'a str,
}

impl<'a> NumberedLine<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let bare = line.trim_start_matches([' ', '\t']);
        let n_before = prefix_len(bare)?;
        let (before, rest) = bare.split_at(n_before);
        let n_digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number = rest[..n_digits].parse().ok()?;
        let rest = &rest[n_digits..];
        let rest = if before == "[" { rest.strip_prefix(']')? } else { rest };
        let (separator, line) = NumberSeparator::read(rest)?;
        Some(Self { prefix: before, number, separator, line })
    }
}

/// Returns the length of the text before a number: nothing, a word for line, or a path as in search output.
fn prefix_len(line: &str) -> Option<usize> {
    if line.starts_with(|c: char| c.is_ascii_digit()) {
        return Some(0);
    }
    let follows = |n: usize| line[n..].starts_with(|c: char| c.is_ascii_digit());
    if let Some(word) = ["L", "l", "[", "Line ", "line "].into_iter().find(|word| line.starts_with(word)) {
        return follows(word.len()).then_some(word.len());
    }
    let n_path = line.find(':')? + 1;
    (!line[..n_path].contains([' ', '\t', '"', '\'']) && follows(n_path)).then_some(n_path)
}

/// A text with a number on every line.
struct Listing<'a> {
    prefix: &'a str,
    separator: NumberSeparator,
    first_number: u32,
    lines: Vec<&'a str>,
}

impl<'a> Listing<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let all = text.strip_suffix('\n').unwrap_or(text).split('\n').map(NumberedLine::read);
        let all: Vec<NumberedLine<'a>> = all.collect::<Option<_>>()?;
        let first = all.first()?;
        let separators = all.iter().map(|line| line.separator);
        let separator = separators.clone().find(|separator| *separator != NumberSeparator::End)?;
        let is_alike = all.iter().zip(first.number..).all(|(line, number)| {
            let is_same = line.separator == separator || line.separator == NumberSeparator::End;
            line.number == number && line.prefix == first.prefix && is_same
        });
        is_alike.then(|| Self {
            prefix: first.prefix,
            separator,
            first_number: first.number,
            lines: all.iter().map(|line| line.line).collect(),
        })
    }

    /// Returns the lines of the new text, without numbers if all have some, unchanged if none has. Mixed text is
    /// ambiguous.
    fn strip_matching_numbers<'b>(&self, new: &'b str) -> Option<NewLines<'b>> {
        if new.is_empty() {
            return Some(NewLines { lines: Vec::new(), is_listed: true });
        }
        if let Some(listing) = Listing::read(new) {
            let is_alike = listing.separator == self.separator && listing.prefix == self.prefix;
            let is_same = listing.first_number == self.first_number
                || (self.separator.is_sure() && listing.lines.len() > 1);
            return (is_alike && is_same).then_some(NewLines { lines: listing.lines, is_listed: true });
        }
        let lines: Vec<&str> = new.strip_suffix('\n').unwrap_or(new).split('\n').collect();
        let n_lines = u32::try_from(self.lines.len().max(lines.len())).unwrap_or(u32::MAX);
        // A bare number may be an empty line of the listing, or the text of a line, such as a return value.
        let numbers = self.first_number..=self.first_number.saturating_add(n_lines);
        let has_number = |line: &NumberedLine<'_>| {
            let is_empty_line = line.separator == NumberSeparator::End && numbers.contains(&line.number);
            line.prefix == self.prefix && (line.separator == self.separator || is_empty_line)
        };
        let is_mixed = lines.iter().filter_map(|line| NumberedLine::read(line)).any(|line| has_number(&line));
        (!is_mixed).then_some(NewLines { lines, is_listed: false })
    }

    fn to_unnumbered(&self, lines: &LinePair<'_>, old: &str, new: &str) -> UnnumberedTexts {
        let text = |lines: &[&str], given: &str| {
            let end = if given.ends_with('\n') && !lines.is_empty() { "\n" } else { "" };
            lines.join("\n") + end
        };
        let is_sure = self.separator.is_sure() || self.lines.len() > 1;
        let line = (!is_sure).then_some(self.first_number);
        UnnumberedTexts { old: text(&lines.old, old), new: text(&lines.new, new), line }
    }
}

/// Returns the text inside a code fence; the fence of the new text is optional.
pub(super) fn strip_fence(old: &str, new: &str) -> Option<(String, String)> {
    let inside = |text: &str| -> Option<String> {
        let text = text.trim_matches(['\n', '\r']);
        let (first, rest) = text.split_once('\n')?;
        let body = rest.trim_end().strip_suffix("```")?;
        let is_fence = first.starts_with("```") && !first[3..].contains('`') && !body.contains("```");
        is_fence.then(|| body.strip_suffix('\n').unwrap_or(body).to_owned())
    };
    let old = inside(old)?;
    let new = match inside(new) {
        Some(new) => new,
        None if new.contains("```") => return None,
        None => new.strip_suffix('\n').unwrap_or(new).to_owned(),
    };
    Some((old, new))
}

/// Whether an edit with line numbers changed the start of a line, and the numbered line if only that identifies the
/// number.
pub(super) fn is_in_place(file: &str, applied: &AppliedEdit, start: usize, line: Option<u32>) -> bool {
    let is_at_start = start == 0 || file[..start].ends_with(['\n', '\u{feff}']);
    let is_numbered_so = line.is_none_or(|line| line_at(file, start) == line);
    is_at_start && is_numbered_so && applied.matcher <= EditMatcher::LineTrimmed
}
