//! Reindents a block as the file is indented.

use std::{borrow::Cow, collections::HashMap, iter::zip};

use super::compare::{is_blank, split_indent};
use super::refusal::WRITTEN_BYTES_MAX;

/// Widths of a tab, the likeliest first.
const TAB_WIDTHS: [usize; 4] = [4, 2, 8, 3];

/// Indents `new` as the file indents `old`; `None` if the lines of `old` do not determine it.
pub(super) fn reindent_block(
    old: &[Cow<'_, str>],
    found: &[Cow<'_, str>],
    new: &[Cow<'_, str>],
) -> Option<Vec<String>> {
    let pairs = zip(old, found).filter(|(old, _)| !is_blank(old));
    let (from, to): (Vec<&str>, Vec<&str>) =
        pairs.map(|(old, found)| (split_indent(old).0, split_indent(found).0)).unzip();
    let styles = IndentStyle::candidate_styles(
        from.iter().copied().chain(new.iter().map(|line| split_indent(line).0)),
        &to,
    );
    let shifts: Vec<(IndentStyle, IndentShift)> = styles
        .into_iter()
        .filter_map(|style| {
            let from: Vec<String> = from.iter().map(|indent| style.format_indent(indent)).collect();
            Some((style, IndentShift::from_pairs(&from, &to)?))
        })
        .collect();
    // A width that needs no shift is the intended one.
    let (mut unmoved, mut moved): (Vec<_>, Vec<_>) =
        shifts.iter().partition(|(_, shift)| shift.is_identity());
    // Text that uses tabs like the file, including alignment, stays unchanged.
    let has_tabs = |indents: &[&str]| indents.iter().any(|indent| indent.contains('\t'));
    let is_alike = has_tabs(&from) && has_tabs(&to);
    unmoved.sort_by_key(|(style, _)| !matches!(style, IndentStyle::AsIs));
    moved.sort_by_key(|(style, _)| !is_alike || !matches!(style, IndentStyle::AsIs));
    let best_first = unmoved.into_iter().chain(moved);
    let mut fitting = best_first.filter(|(_, shift)| new.len() * shift.to.len() <= WRITTEN_BYTES_MAX);
    let shifted_by = |(style, shift): &(IndentStyle, IndentShift)| {
        new.iter().map(|line| shift_indent(line, *style, shift)).collect()
    };
    fitting.find_map(shifted_by).or_else(|| map_indents(&from, &to, new))
}

/// The text whose indentation the new text follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IndentBase {
    /// The old text as sent.
    Old,
    /// The file.
    File,
    /// Contradicting evidence.
    Unclear,
}

/// Determines the text whose indentation the new text follows, from unchanged lines and the smallest indentation.
pub(super) fn detect_indent_base(
    old: &[Cow<'_, str>],
    found: &[Cow<'_, str>],
    new: &[Cow<'_, str>],
) -> IndentBase {
    let nonblank_lines = |lines: &[Cow<'_, str>]| -> Vec<String> {
        lines.iter().filter(|line| !is_blank(line)).map(|line| line.trim_end().to_owned()).collect()
    };
    let (old, found, new) = (nonblank_lines(old), nonblank_lines(found), nonblank_lines(new));
    let min_indent =
        |lines: &[String]| lines.iter().map(|line| split_indent(line).0.to_owned()).min_by_key(String::len);
    let (by_old, by_file, by_new) = (min_indent(&old), min_indent(&found), min_indent(&new));
    let (mut n_old, mut n_file) = (0_usize, 0_usize);
    let mut line_indents: HashMap<&str, Option<(&str, &str)>> = HashMap::new();
    for (old, found) in zip(&old, &found) {
        let (old, found) = (split_indent(old), split_indent(found));
        let indents = Some((old.0, found.0)).filter(|_| !line_indents.contains_key(old.1));
        line_indents.insert(old.1, indents);
    }
    for (indent, text) in new.iter().map(|line| split_indent(line)) {
        let Some(Some((old, file))) = line_indents.get(text) else { continue };
        n_old += usize::from(indent == *old && old != file);
        n_file += usize::from(indent == *file && old != file);
    }
    match (by_new == by_old, by_new == by_file) {
        (true, _) => IndentBase::Old,
        (false, true) if n_old > 0 => IndentBase::Unclear,
        (false, true) => IndentBase::File,
        (false, false) if n_file > 0 => IndentBase::Unclear,
        (false, false) => IndentBase::Old,
    }
}

/// Maps the indentation of each new line by the pairs of old and file lines: the indentation steps of both may
/// differ.
fn map_indents(from: &[&str], to: &[&str], new: &[Cow<'_, str>]) -> Option<Vec<String>> {
    let mut file_indents: HashMap<&str, &str> = HashMap::new();
    for (from, to) in zip(from, to) {
        if *file_indents.entry(from).or_insert(to) != *to {
            return None;
        }
    }
    let mut n_written = 0;
    let lines = new.iter().map(|line| {
        if is_blank(line) {
            return Some(String::new());
        }
        let (indent, rest) = split_indent(line);
        let indent = file_indents.get(indent)?;
        n_written += indent.len();
        (n_written <= WRITTEN_BYTES_MAX).then(|| format!("{indent}{rest}"))
    });
    lines.collect()
}

fn shift_indent(line: &str, style: IndentStyle, shift: &IndentShift) -> Option<String> {
    if is_blank(line) {
        return Some(String::new());
    }
    let (indent, rest) = split_indent(line);
    let indent = style.format_indent(indent);
    Some(format!("{}{}{rest}", shift.to, indent.strip_prefix(&shift.from)?))
}

/// The conversion of an indentation to the style of the file.
#[derive(Clone, Copy)]
enum IndentStyle {
    AsIs,
    Tabs { width: usize },
    Spaces { width: usize },
}

impl IndentStyle {
    fn candidate_styles<'a>(
        mut given_indents: impl Iterator<Item = &'a str> + Clone,
        file_indents: &[&str],
    ) -> Vec<Self> {
        let file_has = |char| file_indents.iter().any(|indent| indent.contains(char));
        let mut given_has = |char| given_indents.any(|indent| indent.contains(char));
        let mut styles: Vec<Self> = if file_has('\t') && given_has(' ') {
            TAB_WIDTHS.map(|width| Self::Tabs { width }).into()
        } else if file_has(' ') && !file_has('\t') && given_has('\t') {
            TAB_WIDTHS.map(|width| Self::Spaces { width }).into()
        } else {
            Vec::new()
        };
        styles.push(Self::AsIs);
        styles
    }

    fn format_indent(self, indent: &str) -> String {
        let n_tabs = indent.matches('\t').count();
        let n_spaces = indent.len() - n_tabs;
        match self {
            Self::AsIs => indent.to_owned(),
            // Columns that do not fill a tab are alignment.
            Self::Tabs { width } => {
                let n_columns = n_tabs * width + n_spaces;
                "\t".repeat(n_columns / width) + &" ".repeat(n_columns % width)
            }
            Self::Spaces { width } => " ".repeat(n_spaces + n_tabs * width),
        }
    }
}

/// The replacement of one indentation by another at the start of every line.
struct IndentShift {
    from: String,
    to: String,
}

impl IndentShift {
    fn from_pairs(from: &[String], to: &[&str]) -> Option<Self> {
        let (shortest_from, shortest_to) = zip(from, to).min_by_key(|(from, _)| from.len())?;
        let is_uniform = zip(from, to).all(|(from, to)| {
            let rests = from.strip_prefix(shortest_from.as_str()).zip(to.strip_prefix(shortest_to));
            rests.is_some_and(|(from, to)| from == to)
        });
        let same =
            zip(shortest_from.bytes().rev(), shortest_to.bytes().rev()).take_while(|(from, to)| from == to);
        let n_same = same.count();
        is_uniform.then(|| Self {
            from: shortest_from[..shortest_from.len() - n_same].to_owned(),
            to: shortest_to[..shortest_to.len() - n_same].to_owned(),
        })
    }

    fn is_identity(&self) -> bool {
        self.from.is_empty() && self.to.is_empty()
    }
}
