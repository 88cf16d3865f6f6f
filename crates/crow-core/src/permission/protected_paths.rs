//! Finds the protected paths that a line names.

use super::cd_route::CdScope;
use super::command_evaluation::{
    AskReason, CommandEvaluation, SHELLS, describe_word, output_words, runs_commands_from_input,
};
use super::harmless;
use super::paths::{GIT_INTERNALS, PathResolver, WordTarget, is_protected, is_secret, may_begin_protected};
use super::policy::{EffectivePolicy, SessionRoots};
use super::program_names::program_name;
use super::protected_names::{may_name_dir, may_name_git, may_name_secret};
use super::risks::program_texts;
use super::variables::{ShellVariables, split_value};
use super::written_files::{
    WrittenWords, changes_files, changes_given_files, find_written_words, word_values,
};
use crate::shell::{self, RedirectDirection, ShellWord, SimpleCommand};

/// The access to the target of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WordAccess {
    Reads,
    Writes,
}

impl CommandEvaluation<'_> {
    /// Returns the reason that always asks: writing to a protected path, and, unless everything is free, naming a
    /// key.
    pub(super) fn protected_reason(&self, is_free: bool) -> AskReason {
        for word in self.all_commands.iter().flat_map(|simple| output_words(simple)) {
            if self.is_guarded(word, WordAccess::Writes) {
                return Some(format!("it writes to {}, which is protected", describe_word(word)));
            }
            if !self.variables.word_readings(word).iter().all(ShellWord::has_known_part) {
                return Some("it writes to a file whose name is unknown".to_owned());
            }
        }
        for WrittenWords { certain, possible } in
            self.all_commands.iter().map(|simple| find_written_words(simple))
        {
            let mut words = certain.iter().chain(&possible);
            if let Some(word) = words.find(|word| self.is_guarded(word, WordAccess::Writes)) {
                return Some(format!("it changes {}, which is protected", describe_word(word)));
            }
        }
        if let Some(reason) = self.repository_removal_reason() {
            return Some(reason);
        }
        if self.feeds_changes() {
            let mut words = self.all_commands.iter().flat_map(|simple| &simple.words);
            let mut documents = self.all_commands.iter().flat_map(|simple| &simple.documents);
            let name = words.find_map(|word| self.protected_in_word(word));
            let name = name.or_else(|| documents.find_map(|text| roughly_protected_name(self.policy, text)));
            if let Some(name) = name {
                return Some(format!("it names {name}, which is protected, and may change it"));
            }
        }
        let texts = self.all_commands.iter().flat_map(|simple| program_texts(simple));
        if let Some(name) = texts.filter_map(|text| roughly_protected_name(self.policy, text)).next() {
            return Some(format!("it runs a program that names {name}, which is protected"));
        }
        let protected_word = self.all_commands.iter().find_map(|simple| self.protected_name(simple, is_free));
        let protected_word = protected_word.map(|text| format!("it names {text}, which is protected"));
        protected_word.or_else(|| {
            self.protected_assignment()
                .map(|text| format!("it changes files through a variable with the value {text}"))
        })
    }

    /// Finds a protected path in a variable of a line that changes unknown files.
    fn protected_assignment(&self) -> AskReason {
        let mut assigned = self
            .all_commands
            .iter()
            .flat_map(|simple| &simple.assignments)
            .map(|assignment| &assignment.value);
        // The shell may expand it without quotes.
        let is_guarded = |value: &ShellWord| {
            self.is_guarded(value, WordAccess::Writes)
                || split_value(value).iter().any(|word| self.is_guarded(word, WordAccess::Writes))
        };
        let value = assigned.find(|value| is_guarded(value))?;
        let is_open = |word: &ShellWord| word.known_text().is_none();
        let changes = |simple: &&SimpleCommand| {
            output_words(simple).into_iter().any(is_open)
                || (changes_given_files(simple) && simple.words.iter().any(is_open))
        };
        self.all_commands.iter().any(changes).then(|| value.text.clone())
    }

    /// Finds a protected path in the words of a command.
    fn protected_name(&self, simple: &SimpleCommand, is_free: bool) -> Option<String> {
        let changes_directory = changes_dir(simple);
        let access = if changes_directory || changes_given_files(simple) {
            WordAccess::Writes
        } else {
            WordAccess::Reads
        };
        if is_free && access == WordAccess::Reads {
            return None;
        }
        let has_plain_words = harmless::needs_no_rule(simple) && !changes_directory;
        let n_words = if has_plain_words { 0 } else { simple.words.len() };
        let inputs =
            simple.redirections.iter().filter(|redirection| redirection.direction == RedirectDirection::In);
        let words = simple.words.iter().take(n_words).skip(1);
        let mut words = words.chain(inputs.map(|redirection| &redirection.target)).flat_map(word_values);
        words.find(|word| self.is_guarded(word, access)).map(|word| word.text)
    }

    /// Whether a command gets the files it changes, or the commands it runs, from another one.
    fn feeds_changes(&self) -> bool {
        let gets_commands = |simple: &SimpleCommand| {
            let program =
                simple.words.first().and_then(ShellWord::known_text).map(program_name).unwrap_or_default();
            let mut inner = simple.inner.iter().flat_map(|inner| &inner.commands);
            match program {
                "xargs" | "find" | "gfind" | "fd" | "fdfind" => inner.any(changes_given_files),
                "parallel" | "flock" | "watch" | "strace" | "ltrace" | "entr" | "unbuffer" | "chronic"
                | "script" => {
                    let mut words = simple
                        .words
                        .iter()
                        .skip(1)
                        .filter_map(ShellWord::known_text)
                        .flat_map(str::split_whitespace);
                    words.any(|word| changes_files(program_name(word)))
                }
                _ => SHELLS.contains(&program) && runs_commands_from_input(simple, false),
            }
        };
        self.all_commands.iter().any(|simple| gets_commands(simple))
    }

    /// Finds a protected name in a word, including words that are program text.
    fn protected_in_word(&self, word: &ShellWord) -> AskReason {
        match word.known_text() {
            Some(text) => roughly_protected_name(self.policy, text),
            None => self.is_guarded(word, WordAccess::Writes).then(|| describe_word(word)),
        }
    }

    /// Whether a word names a protected path, or may name one.
    fn is_guarded(&self, word: &ShellWord, access: WordAccess) -> bool {
        // In an unknown directory these may belong to a Git directory.
        let is_unknown_directory =
            self.cd_route.scope == CdScope::Anywhere && self.cd_route.directories.len() == 1;
        let is_git_internal = |word: &ShellWord| {
            let first = word.text.split('/').find(|name| !["", ".", ".."].contains(name)).unwrap_or_default();
            is_unknown_directory && access == WordAccess::Writes && GIT_INTERNALS.contains(&first)
        };
        let is_protected_word = |word: &ShellWord| {
            is_git_internal(word) || is_guarded(word, access, &self.resolver, self.policy.roots)
        };
        let readings = self.variables.word_readings(word);
        let is_option = self.reads_as_option(word);
        let mut option_values = readings.iter().filter(|_| is_option).flat_map(word_values);
        readings.iter().any(is_protected_word) || option_values.any(|word| is_protected_word(&word))
    }
}

/// Whether one reading of a word names a protected path, or may name one.
fn is_guarded(
    word: &ShellWord,
    access: WordAccess,
    resolver: &PathResolver<'_>,
    roots: &SessionRoots,
) -> bool {
    let changes = access == WordAccess::Writes;
    if !word.pieces.is_empty() {
        return may_name_secret(word, roots)
            || may_begin_protected(word, resolver, roots)
            || (changes && (may_name_git(word) || may_name_dir(word, &roots.repository)));
    }
    match resolver.resolve_word(word) {
        WordTarget::Device => false,
        WordTarget::Path(path) | WordTarget::Unknown(path) => {
            is_secret(&path, roots) || (changes && is_protected(&path, roots, resolver.files))
        }
    }
}

/// Finds a protected path in a line that was not parsed.
pub(super) fn roughly_protected_name(policy: &EffectivePolicy<'_>, line: &str) -> AskReason {
    let Some(words) = shell::rough_words(line) else {
        return Some("text that is too long to check".into());
    };
    let cwd = policy.roots.work.first().map(String::as_str);
    let resolver = PathResolver { cwd, files: policy.files };
    let variables = ShellVariables::from_commands(&[], cwd);
    let is_named = |word: &ShellWord| {
        let readings = variables.word_readings(word);
        readings.iter().any(|word| is_guarded(word, WordAccess::Writes, &resolver, policy.roots))
    };
    words.iter().find(|word| is_named(word)).map(describe_word)
}

/// Whether a command changes the working directory.
fn changes_dir(simple: &SimpleCommand) -> bool {
    let program = simple.words.first().and_then(ShellWord::known_text).map(program_name);
    program.is_some_and(|program| ["cd", "pushd"].contains(&program))
}
