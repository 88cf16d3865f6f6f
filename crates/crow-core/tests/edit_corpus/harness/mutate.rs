//! Changes that models make to a text on its way from the file into an argument, line by line.

use super::{chance::Chance, outcome::MARK};

/// Changes each line that is not blank and not new.
fn each_line(text: &str, mut change: impl FnMut(&str) -> String) -> String {
    let lines = text.split_inclusive('\n').map(|line| {
        let bare = line.strip_suffix('\n').unwrap_or(line);
        let end = &line[bare.len()..];
        if bare.trim().is_empty() || bare.contains(MARK) { line.to_owned() } else { change(bare) + end }
    });
    lines.collect()
}

/// Changes the indentation of each line that is not blank; `None` if one cannot be changed.
fn each_indent(text: &str, change: impl Fn(&str) -> Option<String>) -> Option<String> {
    let lines = text.split_inclusive('\n').map(|line| {
        let rest = line.trim_start_matches([' ', '\t']);
        if rest.trim().is_empty() {
            return Some(line.to_owned());
        }
        Some(change(&line[..line.len() - rest.len()])? + rest)
    });
    lines.collect()
}

/// Adds trailing white space to some lines.
pub(crate) fn with_trailing(text: &str, chance: &mut Chance) -> String {
    each_line(text, |line| line.to_owned() + ["", " ", "  ", "\t"][chance.below(4)])
}

pub(crate) fn without_trailing(text: &str) -> String {
    each_line(text, |line| line.trim_end().to_owned())
}

/// Indents further.
pub(crate) fn indented(text: &str, by: &str) -> Option<String> {
    each_indent(text, |indent| Some(format!("{by}{indent}")))
}

/// Removes the common indentation.
pub(crate) fn dedented(text: &str, by: &str) -> Option<String> {
    each_indent(text, |indent| indent.strip_prefix(by).map(str::to_owned))
}

/// Converts tabs to spaces.
pub(crate) fn tabs_to_spaces(text: &str, width: usize) -> Option<String> {
    each_indent(text, |indent| Some(indent.replace('\t', &" ".repeat(width))))
}

/// Converts spaces to tabs.
pub(crate) fn spaces_to_tabs(text: &str, width: usize) -> Option<String> {
    each_indent(text, |indent| {
        let is_whole = !indent.contains('\t') && indent.len().is_multiple_of(width);
        is_whole.then(|| "\t".repeat(indent.len() / width))
    })
}

/// Converts the indentation of a file to tabs, as far as possible.
pub(crate) fn tabbed(text: &str) -> Option<String> {
    each_indent(text, |indent| Some(indent.replace("    ", "\t")))
}

/// Whether a text is indented by tabs only.
pub(crate) fn is_tabbed(text: &str) -> bool {
    each_indent(text, |indent| (!indent.contains(' ')).then(String::new)).is_some()
}

/// Halves or doubles the indentation.
pub(crate) fn other_steps(text: &str) -> Option<String> {
    let is_wide =
        text.lines().all(|line| (line.len() - line.trim_start_matches(' ').len()).is_multiple_of(4));
    each_indent(text, |indent| {
        let is_spaces = !indent.contains('\t');
        is_spaces.then(|| if is_wide { indent[..indent.len() / 2].to_owned() } else { indent.repeat(2) })
    })
}

/// Converts punctuation to typographic, in one of three styles.
pub(crate) fn typographic(text: &str, style: usize) -> String {
    each_line(text, |line| {
        let rest = line.trim_start();
        let indent = &line[..line.len() - rest.len()];
        let line = rest.replace('\'', ["’", "‘", "′"][style]).replace('"', ["“", "”", "„"][style]);
        let line = line.replace('-', ["–", "—", "−"][style]).replace("...", "…");
        indent.to_owned() + &line.replacen(' ', "\u{a0}", 1)
    })
}

/// Converts punctuation to plain.
pub(crate) fn plain(text: &str) -> String {
    let text =
        text.replace(['’', '‘', '′'], "'").replace(['“', '”', '„'], "\"").replace(['–', '—', '−'], "-");
    text.replace('…', "...").replace('\u{a0}', " ")
}

/// Replaces a space by several or by a tab, in one of three styles.
pub(crate) fn spaced(text: &str, style: usize) -> String {
    each_line(text, |line| {
        let rest = line.trim_start();
        let indent = &line[..line.len() - rest.len()];
        indent.to_owned() + &rest.replace(' ', ["  ", "   ", "\t"][style])
    })
}

/// Escapes a text as the content of a JSON string.
pub(crate) fn escaped(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    json[1..json.len() - 1].to_owned()
}

/// Escapes quotes; `None` if other escapes would be needed.
pub(crate) fn with_escaped_quotes(text: &str) -> Option<String> {
    let is_plain = text.contains('"') && !text.contains('\\');
    is_plain.then(|| text.replace('"', "\\\""))
}

/// Inserts a blank line before line `at`.
pub(crate) fn with_blank(text: &str, at: usize) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    lines.insert(at.min(lines.len()), "\n");
    lines.concat()
}

pub(crate) fn without_blanks(text: &str) -> String {
    text.split_inclusive('\n').filter(|line| !line.trim().is_empty()).collect()
}

pub(crate) fn with_crlf(text: &str) -> String {
    text.replace('\n', "\r\n")
}

/// Returns the distinct words of a text that could be names.
pub(crate) fn names(text: &str) -> Vec<&str> {
    let mut names: Vec<&str> = text
        .split(|char: char| !char.is_alphanumeric() && char != '_')
        .filter(|word| word.len() > 2 && word.starts_with(char::is_alphabetic))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns a text without the differences that any matcher ignores: no white space, plain punctuation.
pub(crate) fn bare(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars().filter(|char| !char.is_whitespace()) {
        match char {
            '‘' | '’' | '‚' | '‛' | '′' => out.push('\''),
            '“' | '”' | '„' | '‟' | '″' => out.push('"'),
            '‐' | '‑' | '‒' | '–' | '—' | '―' | '−' => out.push('-'),
            '…' => out.push_str("..."),
            other => out.push(other),
        }
    }
    out
}
