//! Commands that list files, and filters of such lists: their output may be the operands of a reader.

use super::key_patterns::finds_keys;
use crate::shell::{RedirectDirection, ShellWord, SimpleCommand};

/// Options of `grep` that only filter its input.
const FILTER_OPTIONS: &[&str] = &["-v", "-i", "-E", "-F", "-vE", "-vi", "-iv", "-Ev"];

/// Tests and actions of `find` that only read, without a value and with one.
pub(super) const FIND_FLAGS: &[&str] = &[
    "-print",
    "-print0",
    "-ls",
    "-prune",
    "-quit",
    "-depth",
    "-empty",
    "-not",
    "-a",
    "-and",
    "-o",
    "-or",
    "!",
    "(",
    ")",
    "-true",
    "-false",
    "-xdev",
    "-mount",
    "-readable",
    "-writable",
    "-executable",
    "-nouser",
    "-nogroup",
    "-daystart",
    "-P",
    "-noleaf",
    "-ignore_readdir_race",
    ",",
];
pub(super) const FIND_VALUED: &[&str] = &[
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-regex",
    "-iregex",
    "-regextype",
    "-type",
    "-maxdepth",
    "-mindepth",
    "-size",
    "-mtime",
    "-mmin",
    "-ctime",
    "-cmin",
    "-atime",
    "-amin",
    "-perm",
    "-user",
    "-group",
    "-printf",
    "-links",
    "-inum",
    "-newermt",
    "-lname",
    "-xtype",
    "-newer",
    "-uid",
    "-gid",
];

/// Whether a command lists files.
pub(super) fn finds_files(simple: &SimpleCommand) -> bool {
    let program = simple.words.first().and_then(ShellWord::known_text).unwrap_or_default();
    ["find", "gfind", "fd", "fdfind", "git", "rg"].contains(&program)
}

/// Whether a command lists files inside the roots, or filters such a list.
pub(super) fn lists_files(simple: &SimpleCommand) -> bool {
    let words: Vec<&str> = simple.words.iter().map(|word| word.text.as_str()).collect();
    let are_plain = simple.assignments.is_empty()
        && simple.redirections.iter().all(|redirection| redirection.direction == RedirectDirection::Out);
    let has = |option: &str| words.iter().skip(1).any(|word| *word == option);
    let n_operands = words.iter().skip(1).filter(|word| !word.starts_with('-')).count();
    let names_no_key = !simple.words.iter().skip(1).any(finds_keys);
    let lists = match words.first().copied().unwrap_or_default() {
        "find" | "gfind" => !["-printf", "-ls", "-regex", "-iregex"].iter().any(|option| has(option)),
        "fd" | "fdfind" => true,
        "git" => words.get(1) == Some(&"ls-files"),
        "rg" => has("-l") || has("--files") || has("--files-with-matches"),
        "grep" => {
            let is_list =
                |word: &&str| word.starts_with('-') && !word.starts_with("--") && word.contains('l');
            let filters = |word: &&str| !word.starts_with('-') || FILTER_OPTIONS.contains(word);
            words.iter().skip(1).any(is_list) || (n_operands == 1 && words.iter().skip(1).all(filters))
        }
        "sort" | "uniq" => n_operands == 0,
        "head" | "tail" => n_operands == 0 || (n_operands == 1 && has("-n")),
        _ => false,
    };
    lists && are_plain && names_no_key
}
