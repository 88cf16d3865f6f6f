//! Feature numbers: parsing directory names and choosing the next number.

use std::path::Path;

use crate::{SpeckitError, SpeckitProject, confined_files};

/// Other programs use signed 64-bit numbers.
const NUMBER_MAX: u64 = i64::MAX as u64;

/// More directories than this are an attack, not a project.
const DIRS_MAX: usize = 20_000;

/// The method to choose the prefix of a new feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeatureNumbering {
    /// One more than the highest number.
    Next,
    /// This number if it is free, or else one more than the highest.
    Prefer(u64),
    /// The local time.
    Timestamp,
}

/// The default numbering: that of the project's options, or sequential.
pub fn default_numbering(project: &SpeckitProject) -> FeatureNumbering {
    let options =
        confined_files::read_specify_file(project, &project.specify_path("init-options.json")).ok().flatten();
    let options = options.and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
    let setting = ["feature_numbering", "branch_numbering"]
        .into_iter()
        .find_map(|key| options.as_ref()?.get(key)?.as_str());
    if setting == Some("timestamp") { FeatureNumbering::Timestamp } else { FeatureNumbering::Next }
}

/// Parses the number of a directory name; `None` for a timestamp, fewer than three digits or a number that is too
/// large.
pub(crate) fn parse_dir_number(name: &str) -> Option<u64> {
    let (digits, _) = name.split_once('-')?;
    let is_number = digits.len() >= 3 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse().ok().filter(|_| is_number && !is_timestamped(name));
    number.filter(|number| *number <= NUMBER_MAX)
}

/// Returns the prefix before the short name: digits or a timestamp.
pub(crate) fn parse_dir_prefix(name: &str) -> Option<&str> {
    if is_timestamped(name) {
        return name.get(..TIMESTAMP_BYTES);
    }
    let (digits, _) = name.split_once('-')?;
    (digits.len() >= 3 && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(digits)
}

/// A date, a hyphen and a time.
const TIMESTAMP_BYTES: usize = "20260101-120000".len();

/// Whether a name begins with a timestamp and a hyphen.
pub(crate) fn is_timestamped(name: &str) -> bool {
    let matches_format = |(at, byte): (usize, u8)| match at {
        8 | TIMESTAMP_BYTES => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    name.len() > TIMESTAMP_BYTES && name.bytes().take(TIMESTAMP_BYTES + 1).enumerate().all(matches_format)
}

/// Formats a number as a prefix.
pub(crate) fn format_number(number: u64) -> String {
    format!("{number:03}")
}

/// Parses a number that a user typed.
pub fn parse_number(typed: &str) -> Result<u64, SpeckitError> {
    let is_digits = !typed.is_empty() && typed.bytes().all(|byte| byte.is_ascii_digit());
    let number = typed.parse().ok().filter(|number| is_digits && *number <= NUMBER_MAX);
    number.ok_or_else(|| {
        SpeckitError::Invalid(format!("{typed:?} is not a feature number; use one from 0 to {NUMBER_MAX}"))
    })
}

/// Lists the names of the directories in these directories; a missing one has none.
pub(crate) fn list_dir_names(roots: &[impl AsRef<Path>]) -> Result<Vec<String>, SpeckitError> {
    let mut names = Vec::new();
    for root in roots {
        let root = root.as_ref();
        let Ok(entries) = root.read_dir() else { continue };
        for entry in entries.take(DIRS_MAX + 1) {
            let entry = entry.map_err(|error| SpeckitError::io(root, error))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // A link to a directory takes its number too.
            if !name.starts_with('.') && entry.path().is_dir() {
                names.push(name);
            }
            if names.len() > DIRS_MAX {
                return Err(SpeckitError::invalid_file(
                    root,
                    format!("it has more than {DIRS_MAX} directories"),
                ));
            }
        }
    }
    Ok(names)
}

/// Returns the number of a new feature, at least `floor`, with a note if it is not the preferred one.
pub(crate) fn next_number(
    names: &[String],
    preferred: Option<u64>,
    floor: u64,
) -> Result<(u64, Option<String>), SpeckitError> {
    let is_taken = |number: u64| {
        let prefix = format_number(number) + "-";
        names.iter().any(|name| name.starts_with(&prefix))
    };
    if let Some(number) = preferred.filter(|number| *number >= floor && !is_taken(*number)) {
        return Ok((number, None));
    }
    let highest = names.iter().filter_map(|name| parse_dir_number(name)).max().unwrap_or(0);
    let mut number = highest.saturating_add(1).max(floor);
    while preferred.is_some() && number <= NUMBER_MAX && is_taken(number) {
        number += 1;
    }
    if number > NUMBER_MAX {
        return Err(SpeckitError::Invalid(format!(
            "there is no number after {NUMBER_MAX}; choose a free one with --number, or use --timestamp"
        )));
    }
    let note = preferred.map(|taken| {
        format!("the number {} is taken; {} is used", format_number(taken), format_number(number))
    });
    Ok((number, note))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_next_number(names: &str, preferred: Option<u64>, expected: &str) {
        let directories: Vec<String> = names.split(' ').map(str::to_owned).collect();
        let found = match next_number(&directories, preferred, 0) {
            Ok((number, None)) => format_number(number),
            Ok((number, Some(_))) => format!("{} noted", format_number(number)),
            Err(_) => "refused".to_owned(),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn next_number_is_one_more_than_the_highest() {
        assert_next_number("", None, "001");
        assert_next_number("001-a 007-b", None, "008");
        assert_next_number("0099-x 12-short nothing 0012", None, "100");
        assert_next_number("999-a", None, "1000");
        assert_next_number("20260101-120000-a", None, "001");
        assert_next_number("20260101-120000a-b 20260101-b", None, "20260102");
        assert_next_number("99999999999999999999-x", None, "001");
        assert_next_number("9223372036854775807-x", None, "refused");
    }

    #[test]
    fn preferred_number_is_used_if_free() {
        assert_next_number("007-b", Some(3), "003");
        assert_next_number("007-b", Some(7), "008 noted");
        assert_next_number("0007-b", Some(7), "007");
        assert_next_number("000-b", Some(0), "001 noted");
        assert_next_number("9223372036854775807-x", Some(9_223_372_036_854_775_807), "refused");
    }

    #[test]
    fn typed_number_is_limited_digits() {
        assert_eq!(parse_number("010").unwrap(), 10);
        for typed in ["", "-1", "+1", "1a", "9223372036854775808"] {
            let told = parse_number(typed).unwrap_err().to_string();
            assert!(told.contains("use one from 0"), "{told}");
        }
    }

    #[test]
    fn prefix_is_parsed_from_a_name() {
        assert_eq!(parse_dir_prefix("012-x"), Some("012"));
        assert_eq!(parse_dir_prefix("20260101-120000-x"), Some("20260101-120000"));
        assert_eq!(parse_dir_prefix("12-x"), None);
        assert_eq!(parse_dir_prefix("012x"), None);
    }
}
