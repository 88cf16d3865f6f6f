//! Which protected names a word may spell of which only parts are known: `"$DIR/.env"`, `*/.e?v`, `~/.ss*/config`.

use std::path::Path;

use super::Roots;
use super::paths::fold;
use crate::shell::{Piece, Word};

/// Names of files that hold keys; `*` is any letters.
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

/// Names of folders that hold keys.
const KEY_FOLDERS: &[&str] = &[".ssh", ".gnupg", ".aws"];

/// Names of the folder that a Git repository keeps itself in.
const GIT_FOLDERS: &[&str] = &[".git", "git~1"];

/// A part of one name in a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// This letter.
    Letter(char),
    /// Letters that the shell finds in file names.
    Glob,
    /// Any letters, slashes among them.
    Any,
}

/// Whether a word may spell the name of a key, judged by the letters of it that are known.
pub(super) fn may_name_key(word: &Word) -> bool {
    let names = names(word);
    let in_folder = names.iter().any(|name| spells_any(name, KEY_FOLDERS));
    in_folder || names.last().is_some_and(|name| spells_any(name, KEY_FILES))
}

/// Whether a word may spell the name of a key for all that is known of it, even if that is nothing.
pub(super) fn may_name_any_key(word: &Word) -> bool {
    let names = names(word);
    let spells = |name: &Vec<Part>, patterns: &[&str]| {
        name.contains(&Part::Any) || patterns.iter().any(|pattern| n_letters_shared(name, pattern).is_some())
    };
    names.iter().any(|name| spells(name, KEY_FOLDERS))
        || names.last().is_some_and(|name| spells(name, KEY_FILES))
}

/// Whether a word may spell a path into a Git repository's own folder, judged by what is known of it.
pub(super) fn may_name_git(word: &Word) -> bool {
    names(word).iter().any(|name| spells_any(name, GIT_FOLDERS))
}

/// Whether a word may spell a path below one of the protected folders: what follows its unknown part is how the path
/// of the folder ends.
pub(super) fn may_name_folder(word: &Word, folders: &[String]) -> bool {
    let names = names(word);
    let Some(unknown) = names.iter().rposition(|name| !name.iter().all(is_letter)) else { return false };
    let known: Vec<String> =
        names[unknown + 1..].iter().map(|name| text(name)).map(|name| fold(&name)).collect();
    let is_end = |n_names: usize, folder: &String| {
        let mut tail =
            Path::new(folder).components().rev().map(|part| fold(&part.as_os_str().to_string_lossy()));
        known[..n_names].iter().rev().all(|name| tail.next().as_ref() == Some(name))
    };
    (1..=known.len()).any(|n_names| folders.iter().any(|folder| is_end(n_names, folder)))
}

/// Whether a word may spell a protected place, judged by what is known of it.
pub(super) fn may_name_secret(word: &Word, roots: &Roots) -> bool {
    may_name_key(word) || may_name_folder(word, &roots.protected)
}

/// Splits a word into the names of its path; a part of which nothing is known may hold slashes itself.
fn names(word: &Word) -> Vec<Vec<Part>> {
    let mut names = vec![Vec::new()];
    let mut add = |part: Part| match (part, names.last_mut()) {
        (Part::Letter('/'), _) => names.push(Vec::new()),
        (part, Some(name)) => name.push(part),
        (_, None) => {}
    };
    word.text.chars().flat_map(char::to_lowercase).map(Part::Letter).for_each(&mut add);
    for piece in &word.rest {
        match piece {
            Piece::Known(text) => {
                text.chars().flat_map(char::to_lowercase).map(Part::Letter).for_each(&mut add);
            }
            Piece::Glob => add(Part::Glob),
            Piece::Variable(_) | Piece::Unknown(_) => add(Part::Any),
        }
    }
    // `a//b` and `a/b/` are the same as `a/b`.
    names.retain(|name| !name.is_empty());
    names
}

fn is_letter(part: &Part) -> bool {
    matches!(part, Part::Letter(_))
}

fn text(name: &[Part]) -> String {
    let letter = |part: &Part| match part {
        Part::Letter(letter) => Some(*letter),
        Part::Glob | Part::Any => None,
    };
    name.iter().filter_map(letter).collect()
}

/// Whether a name may be one of these, and the letters that are known are the reason to think so.
fn spells_any(name: &[Part], patterns: &[&str]) -> bool {
    if name.iter().all(is_letter) {
        let name: Vec<Part> = fold(&text(name)).chars().map(Part::Letter).collect();
        return patterns.iter().any(|pattern| n_letters_shared(&name, pattern).is_some())
            && !is_example(&name);
    }
    // Behind something that may be anything, one letter says too little: `$name.$ending`.
    let n_needed = if name.first().is_some_and(is_letter) { 1 } else { 2 };
    patterns.iter().any(|pattern| {
        let is_ending = pattern.ends_with('*') && name.first() == Some(&Part::Any);
        let n_needed = if is_ending { pattern.len() - 1 } else { n_needed };
        n_letters_shared(name, pattern).is_some_and(|n_shared| n_shared >= n_needed)
    })
}

/// Whether a name says that what is in the file are examples.
fn is_example(name: &[Part]) -> bool {
    let name = text(name);
    name.starts_with(".env.")
        && [".example", ".sample", ".template", ".dist"].iter().any(|end| name.ends_with(end))
}

/// Finds out whether a name and a pattern can be the same text, and how many known letters of the name can at the
/// most be letters of the pattern then.
fn n_letters_shared(name: &[Part], pattern: &str) -> Option<usize> {
    let pattern: Vec<char> = pattern.chars().collect();
    // The best count for what follows each place of both; worked out from their ends.
    let mut behind: Vec<Option<usize>> = Vec::new();
    for at in (0..=name.len()).rev() {
        let mut row = vec![None; pattern.len() + 1];
        for place in (0..=pattern.len()).rev() {
            let (part, wanted) = (name.get(at), pattern.get(place));
            // No pattern of file names finds a dot at their start.
            let is_hidden = at == 0 && place == 0 && part == Some(&Part::Glob) && wanted == Some(&'.');
            row[place] = match (part, wanted) {
                (None, None) => Some(0),
                (Some(Part::Glob | Part::Any), _) => {
                    let longer = if wanted.is_some() && !is_hidden { row[place + 1] } else { None };
                    let none = if is_hidden { None } else { behind[place] };
                    longer.max(none)
                }
                (_, Some('*')) => row[place + 1].max(behind.get(place).copied().flatten()),
                (Some(Part::Letter(letter)), Some(wanted)) if letter == wanted => {
                    behind[place + 1].map(|n_shared| n_shared + 1)
                }
                _ => None,
            };
        }
        behind = row;
    }
    behind[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell;

    /// Reads the second word of a line.
    fn word(text: &str) -> Word {
        shell::parse(&format!("cat {text}")).unwrap().last().unwrap().words[1].clone()
    }

    #[test]
    fn known_letters_give_a_key_away() {
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
    fn folders_are_known_by_how_they_end() {
        let folders = ["/home/me/.crow".to_owned(), "/w/a/meta".to_owned()];
        for (text, expected) in [
            ("$H/.crow/config.yaml", true),
            ("$H/me/.crow", true),
            ("*/meta/x", true),
            ("$H/you/.crow", false),
            ("$X", false),
            ("$X/crow", false),
        ] {
            assert_eq!(may_name_folder(&word(text), &folders), expected, "{text}");
        }
    }
}
