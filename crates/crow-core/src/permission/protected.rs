//! Finds what a line names of the places that are protected in every mode.

use super::command::{AskReason, CommandEvaluation, describe_word, output_words, runs_commands_from_input};
use super::denials::SHELLS;
use super::folders::CdScope;
use super::names::{may_name_folder, may_name_git, may_name_secret};
use super::paths::{PathResolver, WordTarget, is_protected, is_secret, may_begin_protected};
use super::programs::RiskEffect;
use super::risks::{CommandRisk, find_risks, program_name};
use super::scripts::program_texts;
use super::variables::ShellVariables;
use super::written::{WrittenWords, changes_files, find_written_words, may_change, word_values};
use super::{EffectivePolicy, SessionRoots, harmless};
use crate::shell::{self, RedirectDirection, ShellWord, SimpleCommand};

/// What is done to what a word names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WordAccess {
    Reads,
    Changes,
}

impl CommandEvaluation<'_> {
    /// Finds what always asks: writing to a protected place, and, unless all is free, naming a key.
    pub(super) fn protected_reason(&self, is_free: bool) -> AskReason {
        for word in self.all.iter().flat_map(|simple| output_words(simple)) {
            if self.is_guarded(word, WordAccess::Changes) {
                return Some(format!("it writes to {}, which is protected", describe_word(word)));
            }
            if !self.variables.word_readings(word).iter().all(ShellWord::has_known_part) {
                return Some("it writes to a file whose name is not known".to_owned());
            }
        }
        for WrittenWords { certain, possible } in self.all.iter().map(|simple| find_written_words(simple)) {
            let mut words = certain.iter().chain(&possible);
            if let Some(word) = words.find(|word| self.is_guarded(word, WordAccess::Changes)) {
                return Some(format!("it changes {}, which is protected", describe_word(word)));
            }
        }
        if self.feeds_changes() {
            let mut words = self.all.iter().flat_map(|simple| &simple.words);
            let mut documents = self.all.iter().flat_map(|simple| &simple.documents);
            let name = words.find_map(|word| self.protected_in_word(word));
            let name = name.or_else(|| documents.find_map(|text| roughly_protected_name(self.law, text)));
            if let Some(name) = name {
                return Some(format!("it names {name}, which is protected, and may change what it names"));
            }
        }
        let texts = self.all.iter().flat_map(|simple| program_texts(simple));
        if let Some(name) = texts.filter_map(|text| roughly_protected_name(self.law, text)).next() {
            return Some(format!("it runs a program that names {name}, which is protected"));
        }
        let named = self.all.iter().find_map(|simple| self.protected_name(simple, is_free));
        let named = named.map(|text| format!("it names {text}, which is protected"));
        named.or_else(|| {
            self.protected_assignment().map(|text| format!("it changes files by a variable that is {text}"))
        })
    }

    /// Finds a protected place in a variable of a line that changes what is not known.
    fn protected_assignment(&self) -> AskReason {
        let mut values =
            self.all.iter().flat_map(|simple| &simple.assignments).map(|assignment| &assignment.value);
        let value = values.find(|value| self.is_guarded(value, WordAccess::Changes))?;
        let is_open = |word: &ShellWord| word.known_text().is_none();
        let changes = |simple: &&SimpleCommand| {
            output_words(simple).into_iter().any(is_open)
                || (changes_given_files(simple) && simple.words.iter().any(is_open))
        };
        self.all.iter().any(changes).then(|| value.text.clone())
    }

    /// Finds a protected place in the words of a command.
    fn protected_name(&self, simple: &SimpleCommand, is_free: bool) -> Option<String> {
        let goes = changes_folder(simple);
        let access =
            if goes || changes_given_files(simple) { WordAccess::Changes } else { WordAccess::Reads };
        if is_free && access == WordAccess::Reads {
            return None;
        }
        let has_plain_words = harmless::needs_no_rule(simple) && !goes;
        let n_words = if has_plain_words { 0 } else { simple.words.len() };
        let inputs =
            simple.redirections.iter().filter(|redirection| redirection.direction == RedirectDirection::In);
        let words = simple.words.iter().take(n_words).skip(1);
        let mut words = words.chain(inputs.map(|redirection| &redirection.target)).flat_map(word_values);
        words.find(|word| self.is_guarded(word, access)).map(|word| word.text)
    }

    /// Whether a command changes files, or runs what it reads, and another one tells it which.
    fn feeds_changes(&self) -> bool {
        let is_told = |simple: &SimpleCommand| {
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
        self.all.iter().any(|simple| is_told(simple))
    }

    /// Finds a protected name in a word, also where the word is a text that names it.
    fn protected_in_word(&self, word: &ShellWord) -> AskReason {
        match word.known_text() {
            Some(text) => roughly_protected_name(self.law, text),
            None => self.is_guarded(word, WordAccess::Changes).then(|| describe_word(word)),
        }
    }

    /// Whether a word names what is protected, or may name it.
    fn is_guarded(&self, word: &ShellWord, access: WordAccess) -> bool {
        // From a folder that nobody knows these may be a repository's own.
        let is_lost = self.route.way == CdScope::Anywhere && self.route.places.len() == 1;
        let of_git = |word: &ShellWord| {
            let first = word.text.split('/').find(|name| !["", ".", ".."].contains(name)).unwrap_or_default();
            is_lost && access == WordAccess::Changes && GIT_INSIDE.contains(&first)
        };
        let is_it = |word: &ShellWord| of_git(word) || is_guarded(word, access, &self.place, self.law.roots);
        self.variables.word_readings(word).iter().any(is_it)
    }
}

/// What in a repository's own folder has Git run programs.
const GIT_INSIDE: &[&str] = &["config", "config.worktree", "hooks", "modules", "worktrees", "commondir"];

/// Whether one reading of a word names what is protected, or may name it.
fn is_guarded(word: &ShellWord, access: WordAccess, place: &PathResolver<'_>, roots: &SessionRoots) -> bool {
    let changes = access == WordAccess::Changes;
    if !word.rest.is_empty() {
        return may_name_secret(word, roots)
            || may_begin_protected(word, place, roots)
            || (changes && (may_name_git(word) || may_name_folder(word, &roots.repository)));
    }
    match place.resolve_word(word) {
        WordTarget::Nowhere => false,
        WordTarget::At(path) | WordTarget::Unknown(path) => {
            is_secret(&path, roots) || (changes && is_protected(&path, roots))
        }
    }
}

/// Finds what a line that was not understood seems to name of what is protected.
pub(super) fn roughly_protected_name(law: &EffectivePolicy<'_>, line: &str) -> AskReason {
    let Some(words) = shell::rough_words(line) else {
        return Some("what is too long to look through".into());
    };
    let cwd = law.roots.work.first().map(String::as_str);
    let place = PathResolver { cwd, resolve: law.resolve };
    let variables = ShellVariables::from_commands(&[], cwd);
    let is_named = |word: &ShellWord| {
        let readings = variables.word_readings(word);
        readings.iter().any(|word| is_guarded(word, WordAccess::Changes, &place, law.roots))
    };
    words.iter().find(|word| is_named(word)).map(describe_word)
}

/// Tells whether a command goes to the folder it names.
fn changes_folder(simple: &SimpleCommand) -> bool {
    let program = simple.words.first().and_then(ShellWord::known_text).map(program_name);
    program.is_some_and(|program| ["cd", "pushd"].contains(&program))
}

/// Tells whether a command changes the files it is given.
fn changes_given_files(simple: &SimpleCommand) -> bool {
    let program = simple.words.first().and_then(ShellWord::known_text).map(program_name);
    let writes = |risk: &CommandRisk| risk.does == RiskEffect::Writes;
    program.is_some_and(changes_files) || may_change(simple) || find_risks(&simple.words).iter().any(writes)
}
