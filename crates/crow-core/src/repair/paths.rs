//! Windows paths whose backslashes were not escaped: JSON decodes `C:\new` with a line break. If the text shows that
//! backslashes are literal, they are escaped; otherwise the value is rejected.

use serde_json::Value;

use super::string_escape::{StringEscape, parse_escape};

/// Path parameters, and suffixes of their names.
const PATH_NAMES: [&str; 8] = ["path", "paths", "filename", "cwd", "dir", "directory", "folder", "workdir"];
const PATH_ENDS: [&str; 7] = ["_path", "Path", "_paths", "_dir", "_directory", "_folder", "_filename"];

/// Shell command parameters.
const COMMAND_NAMES: [&str; 2] = ["command", "cmd"];

/// A string with unescaped Windows paths.
pub(super) struct EscapedPaths {
    /// The source between its quotes, with the paths escaped.
    pub(super) source: String,
    /// Whether a line may end inside a path.
    pub(super) is_guess: bool,
}

/// Escapes the Windows paths in the source of a string, if another invalid escape shows that the string was not
/// escaped.
pub(super) fn escape_windows_paths(source: &str) -> Option<EscapedPaths> {
    if !has_bare_backslash(source) {
        return None;
    }
    let is_whole = is_drive(source) && !source.contains(['"', '\'', '`', '\n', '<', '>', '|', '&']);
    // A text that ends with a line break is no path.
    let is_path = is_whole || (source.chars().all(is_path_char) && !source.ends_with(r"\n"));
    if is_path && !source.contains(r"\\") {
        return Some(EscapedPaths { source: source.replace('\\', r"\\"), is_guess: false });
    }
    let mut escaped = String::with_capacity(source.len() + 8);
    let (mut in_paths, mut in_other_text) = (false, false);
    let mut rest = source;
    while let Some(at) = next_drive(rest) {
        let (before, path) = rest.split_at(at);
        let (path, after) = path.split_at(path_len(path));
        escaped.push_str(before);
        in_other_text |= has_line_end(before);
        if path.contains(r"\\") {
            escaped.push_str(path);
        } else {
            in_paths |= has_line_end(path);
            escaped.push_str(&path.replace('\\', r"\\"));
        }
        rest = after;
    }
    in_other_text |= has_line_end(rest);
    let has_paths = rest.len() < source.len();
    has_paths.then(|| EscapedPaths { source: escaped + rest, is_guess: in_paths && in_other_text })
}

/// Whether the source of a string contains a line end.
fn has_line_end(source: &str) -> bool {
    source.contains(r"\n") || source.contains(r"\r") || source.contains('\n')
}

/// Describes the damage in a value by an unescaped path.
pub(super) fn describe_damage(name: &str, value: &Value) -> Option<String> {
    let is_path = PATH_NAMES.contains(&name) || PATH_ENDS.iter().any(|end| name.ends_with(end));
    let damaged = match value {
        Value::String(text) if is_path => text.chars().find(|char| is_escape_char(*char)),
        Value::String(text) if COMMAND_NAMES.contains(&name) => control_after_drive(text),
        Value::Array(items) if is_path => return items.iter().find_map(|item| describe_damage(name, item)),
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => None,
    };
    let description = match damaged? {
        '\n' | '\r' => "a line break",
        '\t' => "a tab",
        _ => "a control character",
    };
    let example = r#""C:\\new\\file.txt""#;
    Some(format!("has {description} in a path; a backslash is written twice in JSON: {example}"))
}

/// Whether a character has an escape such as `\t`.
fn is_escape_char(char: char) -> bool {
    matches!(char, '\n' | '\r' | '\t' | '\u{8}' | '\u{c}')
}

/// Returns the control character in a path after a drive.
fn control_after_drive(text: &str) -> Option<char> {
    text.match_indices(':').find_map(|(colon, _)| {
        let mut next = text[colon + 1..].chars();
        let control = next.next().filter(|char| is_escape_char(*char))?;
        let continues = next.next().is_some_and(|char| char.is_alphanumeric() || matches!(char, '_' | '.'));
        let is_path = continues
            && ends_with_drive_letter(&text[..colon])
            && !(control == '\n' && is_single_letter_line(&text[..colon]));
        is_path.then_some(control)
    })
}

/// Whether the last line of several is a single letter: as in a heredoc, unlike in a path.
fn is_single_letter_line(text: &str) -> bool {
    text.rsplit_once('\n').is_some_and(|(_, line)| line.trim_start().len() == 1)
}

/// Whether a text ends with a separate drive letter.
fn ends_with_drive_letter(text: &str) -> bool {
    let mut chars = text.chars().rev();
    chars.next().is_some_and(|char| char.is_ascii_alphabetic()) && chars.next().is_none_or(is_around_path)
}

fn is_around_path(char: char) -> bool {
    char.is_whitespace() || "\"'`=(),;|&<>[]{}".contains(char)
}

/// Whether a backslash before a name character is no escape.
fn has_bare_backslash(source: &str) -> bool {
    let mut rest = source;
    while let Some(at) = rest.find('\\') {
        rest = &rest[at..];
        let n_bytes = match parse_escape(rest) {
            StringEscape::Char(_, n_bytes) | StringEscape::LoneSurrogate(n_bytes) => n_bytes,
            StringEscape::Literal
                if rest[1..].starts_with(|char: char| char.is_alphanumeric() || "_.-$~".contains(char)) =>
            {
                return true;
            }
            StringEscape::Literal | StringEscape::Truncated => 1,
        };
        rest = &rest[n_bytes..];
    }
    false
}

fn is_drive(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && text[1..].starts_with(":\\")
        && bytes.get(3) != Some(&b'\\')
}

/// Returns the start of a path with a drive.
fn next_drive(text: &str) -> Option<usize> {
    text.match_indices(":\\").map(|(colon, _)| colon).find_map(|colon| {
        let start = colon.checked_sub(1)?;
        (ends_with_drive_letter(&text[..colon]) && is_drive(text.get(start..)?)).then_some(start)
    })
}

fn path_len(text: &str) -> usize {
    let end = text.find(is_around_path).unwrap_or(text.len());
    // A backslash before a quote escapes it.
    if text[end..].starts_with('"') && text[..end].ends_with('\\') { end - 1 } else { end }
}

fn is_path_char(char: char) -> bool {
    char.is_alphanumeric() || "_.-~$@%:/\\()".contains(char)
}
