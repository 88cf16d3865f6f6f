//! The protected names that a partly known word may expand to: `"$DIR/.env"`, `*/.e?v`, `~/.ss*/config`.

use std::path::Path;

use super::paths::fold_name;
use super::policy::SessionRoots;
use crate::shell::{ShellWord, WordPiece};

/// Names of key files; `*` matches any letters.
const KEY_FILES: &[&str] = &[
    ".env",
    ".env.*",
    ".netrc",
    "_netrc",
    "id_rsa",
    "id_rsa_sk",
    "id_dsa",
    "id_dsa_sk",
    "id_ecdsa",
    "id_ecdsa_sk",
    "id_ed25519",
    "id_ed25519_sk",
    "*.pem",
];

/// Names of key directories.
const KEY_DIRS: &[&str] = &[".ssh", ".gnupg", ".aws"];

/// Names of Git directories.
const GIT_DIRS: &[&str] = &[".git", "git~1"];

/// A part of one path component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NamePart {
    /// This letter.
    Letter(char),
    /// Letters that the shell matches against file names.
    Glob,
    /// Any letters, including slashes.
    Any,
}

/// Whether a word may name a key, by its known letters.
pub(super) fn may_name_key(word: &ShellWord) -> bool {
    let names = path_names(word);
    let in_key_dir = names.iter().any(|name| spells_any(name, KEY_DIRS));
    in_key_dir || names.last().is_some_and(|name| spells_any(name, KEY_FILES))
}

/// Whether a word may name a key, even if nothing of it is known.
pub(super) fn may_name_any_key(word: &ShellWord) -> bool {
    let names = path_names(word);
    let spells = |name: &Vec<NamePart>, patterns: &[&str]| {
        name.contains(&NamePart::Any)
            || patterns.iter().any(|pattern| count_shared_letters(name, pattern).is_some())
    };
    names.iter().any(|name| spells(name, KEY_DIRS))
        || names.last().is_some_and(|name| spells(name, KEY_FILES))
}

/// Whether a word may name a path in a Git directory, by its known part.
pub(super) fn may_name_git(word: &ShellWord) -> bool {
    path_names(word).iter().any(|name| spells_any(name, GIT_DIRS))
}

/// Whether a word may name a path below a protected directory: the text after its unknown part equals the end of the
/// directory's path.
pub(super) fn may_name_dir(word: &ShellWord, directories: &[String]) -> bool {
    let names = path_names(word);
    let Some(unknown) = names.iter().rposition(|name| !name.iter().all(is_letter)) else { return false };
    let known: Vec<String> =
        names[unknown + 1..].iter().map(|name| known_letters(name)).map(|name| fold_name(&name)).collect();
    let is_end = |n_names: usize, directory: &String| {
        let mut tail = Path::new(directory)
            .components()
            .rev()
            .map(|part| fold_name(&part.as_os_str().to_string_lossy()));
        known[..n_names].iter().rev().all(|name| tail.next().as_ref() == Some(name))
    };
    (1..=known.len()).any(|n_names| directories.iter().any(|directory| is_end(n_names, directory)))
}

/// Whether a word may name a protected path, by its known part.
pub(super) fn may_name_secret(word: &ShellWord, roots: &SessionRoots) -> bool {
    may_name_key(word) || may_name_dir(word, &roots.protected)
}

/// Splits a word into path components; an unknown part may contain slashes.
fn path_names(word: &ShellWord) -> Vec<Vec<NamePart>> {
    let mut names = vec![Vec::new()];
    let mut add = |part: NamePart| match (part, names.last_mut()) {
        (NamePart::Letter('/'), _) => names.push(Vec::new()),
        (part, Some(name)) => name.push(part),
        (_, None) => {}
    };
    word.text.chars().flat_map(char::to_lowercase).map(NamePart::Letter).for_each(&mut add);
    for piece in &word.pieces {
        match piece {
            WordPiece::Known(text) => {
                text.chars().flat_map(char::to_lowercase).map(NamePart::Letter).for_each(&mut add);
            }
            WordPiece::Glob => add(NamePart::Glob),
            WordPiece::Variable(_) | WordPiece::Unknown(_) => add(NamePart::Any),
        }
    }
    // `a//b` and `a/b/` are the same as `a/b`.
    names.retain(|name| !name.is_empty());
    names
}

fn is_letter(part: &NamePart) -> bool {
    matches!(part, NamePart::Letter(_))
}

fn known_letters(name: &[NamePart]) -> String {
    let letter = |part: &NamePart| match part {
        NamePart::Letter(letter) => Some(*letter),
        NamePart::Glob | NamePart::Any => None,
    };
    name.iter().filter_map(letter).collect()
}

/// Whether a name may be one of these, because of its known letters.
fn spells_any(name: &[NamePart], patterns: &[&str]) -> bool {
    if name.iter().all(is_letter) {
        let name: Vec<NamePart> = fold_name(&known_letters(name)).chars().map(NamePart::Letter).collect();
        return patterns.iter().any(|pattern| count_shared_letters(&name, pattern).is_some())
            && !is_example(&name);
    }
    // After an unknown part, one letter is too little: `$name.$ending`.
    let n_needed = if name.first().is_some_and(is_letter) { 1 } else { 2 };
    patterns.iter().any(|pattern| {
        let is_ending = pattern.ends_with('*') && name.first() == Some(&NamePart::Any);
        let n_needed = if is_ending { pattern.len() - 1 } else { n_needed };
        count_shared_letters(name, pattern).is_some_and(|n_shared| n_shared >= n_needed)
    })
}

/// Whether a name marks the file as an example.
fn is_example(name: &[NamePart]) -> bool {
    let name = known_letters(name);
    name.starts_with(".env.")
        && [".example", ".sample", ".template", ".dist"].iter().any(|end| name.ends_with(end))
}

/// Returns the maximum number of known letters that match the pattern; `None` if name and pattern cannot be equal.
fn count_shared_letters(name: &[NamePart], pattern: &str) -> Option<usize> {
    let pattern: Vec<char> = pattern.chars().collect();
    // The best counts for the rests of both; computed from their ends.
    let mut best_counts: Vec<Option<usize>> = Vec::new();
    for at in (0..=name.len()).rev() {
        let mut row = vec![None; pattern.len() + 1];
        for place in (0..=pattern.len()).rev() {
            let (part, expected) = (name.get(at), pattern.get(place));
            // A glob does not match a leading dot.
            let is_hidden = at == 0 && place == 0 && part == Some(&NamePart::Glob) && expected == Some(&'.');
            row[place] = match (part, expected) {
                (None, None) => Some(0),
                (Some(NamePart::Glob | NamePart::Any), _) => {
                    let longer = if expected.is_some() && !is_hidden { row[place + 1] } else { None };
                    let none = if is_hidden { None } else { best_counts[place] };
                    longer.max(none)
                }
                (_, Some('*')) => row[place + 1].max(best_counts.get(place).copied().flatten()),
                (Some(NamePart::Letter(letter)), Some(expected)) if letter == expected => {
                    best_counts[place + 1].map(|n_shared| n_shared + 1)
                }
                _ => None,
            };
        }
        best_counts = row;
    }
    best_counts[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell;

    /// Parses the second word of a line.
    fn word(text: &str) -> ShellWord {
        shell::parse_line(&format!("cat {text}")).unwrap().last().unwrap().words[1].clone()
    }

    #[test]
    fn key_is_detected_by_known_letters() {
        #[rustfmt::skip]
        let table = [
            ("$D/.env", true), ("\"$PWD/.env\"", true), ("*/.env", true), (".e*", true), (".e?v", true),
            (".[e]nv", true), (".[!a-d]nv", true), ("[.]env", false), ("${D}.env", true), ("$HOME/.ssh/id_rsa", true),
            ("~/.ss?/x", true), ("$x.pem", true), ("*.pem", true), ("k*.pem", true), ("$a/.env.local", true),
            (".env.$x", true), ("$H/.aws/credentials", true), ("id_$x", true), ("$x_rsa", false), ("$X/id_rsa", true),
            ("$x", false), ("*", false), ("$x.rs", false), ("*.rs", false), ("$a.$b", false), ("$a-$b", false),
            ("src/*.rs", false), ("$D/README.md", false), ("$D/.env.example", false), ("*.*", false), ("d*", false),
        ];
        for (text, expected) in table {
            assert_eq!(may_name_key(&word(text)), expected, "{text}");
        }
    }

    #[test]
    fn directory_is_detected_by_path_end() {
        let directories = ["/home/me/.crow".to_owned(), "/w/a/meta".to_owned()];
        for (text, expected) in [
            ("$H/.crow/config.yaml", true),
            ("$H/me/.crow", true),
            ("*/meta/x", true),
            ("$H/you/.crow", false),
            ("$X", false),
            ("$X/crow", false),
        ] {
            assert_eq!(may_name_dir(&word(text), &directories), expected, "{text}");
        }
    }
}
