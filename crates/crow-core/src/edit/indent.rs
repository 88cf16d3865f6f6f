//! Moves a block sideways, the way the file is indented.

use std::iter::zip;

/// Widths of a tab, the likeliest first.
const TAB_WIDTHS: [usize; 4] = [4, 2, 8, 3];

/// Splits a line into its indentation and the rest.
pub(super) fn split(line: &str) -> (&str, &str) {
    let rest = line.trim_start_matches([' ', '\t']);
    line.split_at(line.len() - rest.len())
}

/// Indents `new` as the file indents what was `old`; `None` unless every line is moved by the same amount.
pub(super) fn reindented(old: &[&str], found: &[&str], new: &[&str]) -> Option<Vec<String>> {
    let pairs = zip(old, found).filter(|(old, _)| !is_blank(old));
    let (from, to): (Vec<&str>, Vec<&str>) = pairs.map(|(old, found)| (split(old).0, split(found).0)).unzip();
    let styles = Style::candidates(from.iter().copied().chain(new.iter().map(|line| split(line).0)), &to);
    let shifts: Vec<(Style, Shift)> = styles
        .into_iter()
        .filter_map(|style| {
            let from: Vec<String> = from.iter().map(|indent| style.spell(indent)).collect::<Option<_>>()?;
            Some((style, Shift::between(&from, &to)?))
        })
        .collect();
    // A width at which nothing moves is the width that was meant.
    let (still, moved): (Vec<_>, Vec<_>) = shifts.iter().partition(|(_, shift)| shift.is_none());
    let mut best_first = still.into_iter().chain(moved);
    best_first.find_map(|(style, shift)| new.iter().map(|line| shifted(line, *style, shift)).collect())
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

fn shifted(line: &str, style: Style, shift: &Shift) -> Option<String> {
    if is_blank(line) {
        return Some(String::new());
    }
    let (indent, rest) = split(line);
    let indent = style.spell(indent)?;
    Some(format!("{}{}{rest}", shift.to, indent.strip_prefix(&shift.from)?))
}

/// How to spell an indentation as the file would.
#[derive(Clone, Copy)]
enum Style {
    AsIs,
    Tabs { width: usize },
    Spaces { width: usize },
}

impl Style {
    fn candidates<'a>(mut given: impl Iterator<Item = &'a str> + Clone, file: &[&str]) -> Vec<Self> {
        let file_has = |char| file.iter().any(|indent| indent.contains(char));
        let mut given_has = |char| given.any(|indent| indent.contains(char));
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

    fn spell(self, indent: &str) -> Option<String> {
        let n_tabs = indent.matches('\t').count();
        let n_spaces = indent.len() - n_tabs;
        match self {
            Self::AsIs => Some(indent.to_owned()),
            Self::Tabs { width } if !n_spaces.is_multiple_of(width) => None,
            Self::Tabs { width } => Some("\t".repeat(n_tabs + n_spaces / width)),
            Self::Spaces { width } => Some(" ".repeat(n_spaces + n_tabs * width)),
        }
    }
}

/// One indentation in place of another, at the beginning of every line.
struct Shift {
    from: String,
    to: String,
}

impl Shift {
    fn between(from: &[String], to: &[&str]) -> Option<Self> {
        let (base_from, base_to) = zip(from, to).min_by_key(|(from, _)| from.len())?;
        let is_uniform = zip(from, to).all(|(from, to)| {
            let rests = from.strip_prefix(base_from.as_str()).zip(to.strip_prefix(base_to));
            rests.is_some_and(|(from, to)| from == to)
        });
        let same = zip(base_from.bytes().rev(), base_to.bytes().rev()).take_while(|(from, to)| from == to);
        let n_same = same.count();
        is_uniform.then(|| Self {
            from: base_from[..base_from.len() - n_same].to_owned(),
            to: base_to[..base_to.len() - n_same].to_owned(),
        })
    }

    fn is_none(&self) -> bool {
        self.from.is_empty() && self.to.is_empty()
    }
}
