//! Commands that remove, move or change a directory as a whole, and with it the Git repository in it, which they need not
//! name.

use std::path::Path;

use super::command_evaluation::{AskReason, CommandEvaluation, describe_word};
use super::paths::{WordTarget, is_inside};
use super::program_names::program_name;
use super::written_files::changes_given_files;
use crate::pattern::{LetterCase, PathGlob};
use crate::shell::{ShellWord, SimpleCommand};

/// Names that a repository has, apart from those of branches.
const GIT_NAMES: &[&str] = &[
    ".git",
    "COMMIT_EDITMSG",
    "FETCH_HEAD",
    "HEAD",
    "ORIG_HEAD",
    "commondir",
    "config",
    "description",
    "exclude",
    "gitdir",
    "heads",
    "hooks",
    "index",
    "index.lock",
    "info",
    "lfs",
    "logs",
    "main",
    "master",
    "modules",
    "objects",
    "pack",
    "pack-0123456789abcdef0123456789abcdef01234567.idx",
    "pack-0123456789abcdef0123456789abcdef01234567.pack",
    "pack-0123456789abcdef0123456789abcdef01234567.rev",
    "packed-refs",
    "pre-commit.sample",
    "refs",
    "remotes",
    "shallow",
    "tags",
    "worktrees",
    // Of an object and its directory.
    "0123456789abcdef0123456789abcdef012345",
    "e6",
];

impl CommandEvaluation<'_> {
    /// Returns the reason to ask about a command that changes everything in a directory with a repository.
    pub(super) fn repository_removal_reason(&self) -> AskReason {
        let mut directories = self.all_commands.iter().flat_map(|simple| changed_directories(simple));
        let directory = directories.find(|word| self.holds_repository(word))?;
        Some(format!("it changes everything in {}, which may include .git", describe_word(&directory)))
    }

    /// Whether a directory contains a root of the session, or is a repository in one.
    fn holds_repository(&self, word: &ShellWord) -> bool {
        let roots = &self.policy.roots.work;
        let readings = self.variables.word_readings(word);
        readings.iter().flat_map(|word| self.word_targets(word)).any(|target| match target {
            WordTarget::Path(path) => {
                roots.iter().any(|root| Path::new(root).starts_with(&path))
                    || (is_inside(&path, roots) && self.policy.files.may_be_repository(Path::new(&path)))
            }
            WordTarget::Device | WordTarget::Unknown(_) => false,
        })
    }
}

/// Returns the directories that a command removes or moves, or of which it changes any file.
fn changed_directories(simple: &SimpleCommand) -> Vec<ShellWord> {
    let Some((program, arguments)) = simple.words.split_first() else { return Vec::new() };
    let is_option = |word: &&ShellWord| word.text.starts_with('-');
    let operands = || arguments.iter().filter(|word| !is_option(word)).cloned().collect::<Vec<_>>();
    match program.known_text().map(program_name).unwrap_or_default() {
        "rm" if arguments.iter().filter(is_option).any(is_recursive) => operands(),
        "mv" => moved_files(arguments),
        "find" | "gfind" if changes_found(simple) && !is_limited(arguments) => {
            let is_start = |word: &&ShellWord| !word.text.starts_with(['-', '(', '!']);
            let starts: Vec<ShellWord> = arguments.iter().take_while(is_start).cloned().collect();
            if starts.is_empty() { vec![ShellWord::from_text(".")] } else { starts }
        }
        _ => Vec::new(),
    }
}

/// Returns the operands of `mv` without the destination.
fn moved_files(arguments: &[ShellWord]) -> Vec<ShellWord> {
    let target_option =
        arguments.iter().position(|word| ["-t", "--target-directory"].contains(&word.text.as_str()));
    let destination = match target_option {
        Some(option) => option + 1,
        None if arguments.iter().any(|word| word.text.starts_with("--target-directory=")) => arguments.len(),
        None => arguments.len().saturating_sub(1),
    };
    let sources =
        arguments.iter().enumerate().filter(|(at, word)| *at != destination && !word.text.starts_with('-'));
    sources.map(|(_, word)| word.clone()).collect()
}

/// Whether an option of `rm` removes directories with their content.
fn is_recursive(option: &ShellWord) -> bool {
    match option.text.strip_prefix("--") {
        Some(name) => !name.is_empty() && "recursive".starts_with(name),
        None => option.text.contains(['r', 'R']),
    }
}

/// Whether `find` removes or changes what it finds.
fn changes_found(simple: &SimpleCommand) -> bool {
    let inner = simple.inner.iter().flat_map(|inner| &inner.commands);
    simple.words.iter().any(|word| word.text == "-delete") || inner.into_iter().any(changes_given_files)
}

/// Whether each alternative of `find` is limited to what is not part of a repository.
fn is_limited(arguments: &[ShellWord]) -> bool {
    let is_or = |word: &ShellWord| ["-o", "-or", ","].contains(&word.text.as_str());
    arguments.split(is_or).all(|tests| {
        let texts: Vec<&str> = tests.iter().map(|word| word.text.as_str()).collect();
        let is_negation = |text: &str| ["!", "-not"].contains(&text);
        let has_negated_group = texts.windows(2).any(|pair| is_negation(pair[0]) && pair[1] == "(");
        let has_limit = (0..tests.len()).any(|at| {
            let is_negated = at > 0 && is_negation(texts[at - 1]);
            let value = tests.get(at + 1).and_then(ShellWord::known_text);
            !is_negated && is_limiting_test(texts[at], value)
        });
        has_limit && !has_negated_group
    })
}

/// Whether a test with its value matches nothing in a repository, but for branches and what is empty.
fn is_limiting_test(test: &str, value: Option<&str>) -> bool {
    match test {
        "-empty" => true,
        "-name" | "-iname" => value.is_some_and(is_outside_git),
        // A pattern for `.git` asks for its name.
        "-path" | "-ipath" | "-wholename" => {
            let mut names = value.into_iter().flat_map(|value| value.split('/'));
            names.any(|name| !["", ".", ".."].contains(&name) && is_outside_git(name))
        }
        _ => false,
    }
}

/// Whether a pattern of names matches none of a repository.
fn is_outside_git(pattern: &str) -> bool {
    // For `find`, braces are letters.
    !pattern.contains('{')
        && PathGlob::compile(pattern, LetterCase::Insensitive)
            .is_ok_and(|glob| !GIT_NAMES.iter().any(|name| glob.is_match(name)))
}
