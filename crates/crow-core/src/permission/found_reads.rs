//! Readers of files that another command finds: `find -exec`, and `xargs` after a list.

use super::command_evaluation::CommandEvaluation;
use super::file_lists::{FIND_VALUED, finds_files, lists_files};
use super::key_patterns::finds_keys;
use crate::shell::{KnownExtent, ShellWord, SimpleCommand, WordPiece};

/// Readers for any files, and those that do not show content.
const LISTED_READERS: &[&str] = &[
    "grep",
    "egrep",
    "fgrep",
    "cat",
    "head",
    "tail",
    "file",
    "md5sum",
    "sha256sum",
    "wc",
    "ls",
    "stat",
    "du",
];
const LISTED_COUNTERS: &[&str] = &["wc", "ls", "stat", "du"];

/// Tests of `find` by name.
const NAME_TESTS: &[&str] = &["-name", "-iname", "-path", "-ipath", "-wholename"];

impl CommandEvaluation<'_> {
    /// Whether a program runs a reader only on files found inside the roots.
    pub(super) fn reads_found(&self, program: &str, simple: &SimpleCommand) -> bool {
        match program {
            "xargs" => self.reads_listed(simple),
            "find" | "gfind" => self.reads_matches(simple),
            _ => false,
        }
    }

    /// Whether `find` only runs a reader on what it finds inside the roots. Content is shown of plain files only, so not of
    /// what a link leads to, and only of those that are found by name.
    fn reads_matches(&self, simple: &SimpleCommand) -> bool {
        let Some(inner) = &simple.inner else { return false };
        let (tests, call) = simple.words.split_at(inner.first_word);
        let ([_, tests @ .., action], [words @ .., found, end]) = (tests, call) else { return false };
        let selection = FoundSelection::of_tests(tests);
        let shows_content = selection.has_plain_files && selection.has_names;
        let readers = match selection {
            _ if shows_content => LISTED_READERS,
            _ if selection.has_no_links => LISTED_COUNTERS,
            _ => &["wc"],
        };
        action.known_text() == Some("-exec")
            && inner.commands.len() == 1
            && matches!(end.known_text(), Some(";" | "+"))
            && found.known_text() == Some("{}")
            && words.iter().all(|word| word.known_text().is_some_and(|text| !text.contains("{}")))
            && !tests.iter().any(finds_keys)
            && self.is_free_find(tests, shows_content)
            && self.is_listed_reader(words.to_vec(), readers)
    }

    /// Whether a command without its found operands is one of these readers.
    fn is_listed_reader(&self, words: Vec<ShellWord>, readers: &[&str]) -> bool {
        let command = SimpleCommand { words, ..SimpleCommand::default() };
        let program = command.words.first().and_then(ShellWord::known_text).unwrap_or_default();
        readers.contains(&program) && self.is_reader(program, &command)
    }

    /// Whether `xargs` runs a reader only on files found inside the roots.
    fn reads_listed(&self, simple: &SimpleCommand) -> bool {
        let Some(inner) = &simple.inner else { return false };
        let [command] = inner.commands.as_slice() else { return false };
        let xargs_words = simple.words.get(1..inner.first_word).unwrap_or_default();
        let is_plain = |word: &ShellWord| {
            let text = word.text.as_str();
            let number = text.trim_start_matches("-n").trim_start_matches("-P").trim_start_matches("-L");
            ["-0", "-r", "--null", "--no-run-if-empty", "-I{}", "-I", "{}", "-n", "-L", "-P"].contains(&text)
                || number.bytes().all(|byte| byte.is_ascii_digit())
        };
        // The arguments replace these, or the braces.
        let words: Vec<ShellWord> =
            command.words.iter().filter(|word| word.extent != KnownExtent::Unknown).cloned().collect();
        let is_file = |word: &ShellWord| {
            word.known_text().is_some() || (word.text.is_empty() && word.pieces == [WordPiece::Unknown(None)])
        };
        let known: Vec<ShellWord> =
            words.iter().filter(|word| word.known_text().is_some()).cloned().collect();
        // A name with a space is split into two, and the second may be any file.
        let is_split = !xargs_words.iter().any(|word| ["-0", "--null"].contains(&word.text.as_str()));
        let readers = if is_split { LISTED_COUNTERS } else { LISTED_READERS };
        let is_known = |word: &&ShellWord| word.known_text().is_some();
        let is_free_list = |other: &SimpleCommand| {
            let is_find = finds_files(other) && ["find", "gfind"].contains(&other.words[0].text.as_str());
            is_split || !is_find || self.is_free_find(&other.words[1..], true)
        };
        words.first().is_some_and(|word| word.known_text().is_some())
            && xargs_words.iter().all(is_plain)
            && command.inner.is_none()
            && command.assignments.is_empty()
            && words.iter().all(is_file)
            // Otherwise a found name could take the place of a pattern.
            && !words.iter().skip_while(is_known).any(|word| is_known(&word))
            && self.is_listed_reader(known, readers)
            && self.all_commands.iter().any(|other| finds_files(other))
            && self.all_commands.iter().all(|other| is_free_list(other))
            && self.all_commands.iter().all(|other| {
                std::ptr::eq(*other, simple) || std::ptr::eq(*other, command) || lists_files(other)
            })
    }
}

/// The certain effect of the tests of `find` on what it finds.
#[derive(Debug, Clone, Copy, Default)]
struct FoundSelection {
    has_plain_files: bool,
    has_no_links: bool,
    has_names: bool,
}

impl FoundSelection {
    fn of_tests(tests: &[ShellWord]) -> Self {
        let mut selection = Self::default();
        let mut is_negated = false;
        let mut tests = tests.iter().map(|word| word.text.as_str());
        while let Some(test) = tests.next() {
            let value = FIND_VALUED.contains(&test).then(|| tests.next().unwrap_or_default());
            match (test, value) {
                ("-o" | "-or" | "," | "(" | ")", _) => return Self::default(),
                ("!" | "-not", _) => {
                    is_negated = true;
                    continue;
                }
                ("-type", Some(kind @ ("f" | "d"))) if !is_negated => {
                    selection.has_plain_files |= kind == "f";
                    selection.has_no_links = true;
                }
                (_, Some(pattern)) if NAME_TESTS.contains(&test) => {
                    selection.has_names |= !is_negated && selects_extension(pattern);
                }
                _ => {}
            }
            is_negated = false;
        }
        selection
    }
}

/// Whether a name pattern selects one name, or names with one extension.
fn selects_extension(pattern: &str) -> bool {
    let end = pattern.rsplit(['*', '?', ']']).next().unwrap_or_default();
    let extension = end.rsplit_once('.').map(|(_, extension)| extension);
    end == pattern || extension.is_some_and(|extension| extension.contains(char::is_alphanumeric))
}
