//! Applies the deny rules to a line: what a rule forbids for sure, what may fall under one, and what none can see.

use super::command::{AskReason, CommandEvaluation, describe_word, runs_commands_from_input};
use super::deny::{self, MatchCertainty};
use super::folders::CdScope;
use super::paths::{PathResolver, WordTarget};
use super::risks::program_name;
use super::rules::{PermissionRule, PermissionRules};
use super::scripts::{is_interpreter, program_texts};
use super::written::{WrittenWords, find_written_words};
use super::{PermissionDecision, harmless};
use crate::shell::{self, ShellWord, SimpleCommand};

impl CommandEvaluation<'_> {
    /// Applies the deny rules; gives what may fall under one.
    pub(super) fn check_denials(&self) -> Result<AskReason, PermissionDecision> {
        let mut perhaps = None;
        for (rule, words) in PermissionRules::command_rules(&self.law.rules.deny) {
            for simple in &self.all {
                match deny::match_rule(words, simple) {
                    MatchCertainty::No => {}
                    MatchCertainty::Perhaps => perhaps = Some(deny_rule_reason(rule)),
                    MatchCertainty::Yes => return Err(super::deny_by_rule(rule)),
                }
            }
        }
        if self.law.rules.denies_paths() {
            for simple in &self.all {
                perhaps = self.check_denied_files(&find_written_words(simple))?.or(perhaps);
                perhaps = self.denied_text_reason(simple).or(perhaps);
            }
        }
        Ok(perhaps)
    }

    /// Applies the deny rules about paths to what the text of a program names.
    fn denied_text_reason(&self, simple: &SimpleCommand) -> AskReason {
        let words = program_texts(simple).into_iter().filter_map(shell::rough_words).flatten();
        let mut targets = words
            .filter(|word| word.text.contains('.') || word.text.contains('/'))
            .map(|word| self.place.resolve_word(&word));
        targets.find_map(|target| match target {
            WordTarget::At(path) => super::denying_path_rule(self.law, &path).map(deny_rule_reason),
            WordTarget::Nowhere | WordTarget::Unknown(_) => None,
        })
    }

    /// Applies the deny rules about paths to what a command changes.
    fn check_denied_files(&self, written: &WrittenWords) -> Result<AskReason, PermissionDecision> {
        let mut perhaps = None;
        let certain = written.certain.iter().map(|word| (word, true));
        for (word, is_certain) in certain.chain(written.possible.iter().map(|word| (word, false))) {
            let readings = self.variables.word_readings(word);
            let is_certain = is_certain && readings.len() == 1 && self.route.places.len() == 1;
            for target in readings.iter().flat_map(|reading| self.word_targets(reading)) {
                match target {
                    WordTarget::Nowhere => {}
                    WordTarget::At(path) => match super::denying_path_rule(self.law, &path) {
                        Some(rule) if is_certain => return Err(super::deny_by_rule(rule)),
                        Some(rule) => perhaps = Some(deny_rule_reason(rule)),
                        None => {}
                    },
                    WordTarget::Unknown(_) => {
                        let name = describe_word(word);
                        perhaps = Some(format!("it may change {name}, which a deny rule may be about"));
                    }
                }
            }
        }
        Ok(perhaps)
    }

    /// Finds what a reading of a word names, from each folder that the line may be in.
    pub(super) fn word_targets(&self, word: &ShellWord) -> Vec<WordTarget> {
        if self.route.way == CdScope::Anywhere {
            return vec![self.place.resolve_word(word)];
        }
        let places = self.route.places.iter().map(|place| place.display().to_string());
        places
            .map(|cwd| PathResolver { cwd: Some(&cwd), resolve: self.law.resolve }.resolve_word(word))
            .collect()
    }

    /// Whether something in the line may run a program that no deny rule could see.
    pub(super) fn hides_program(&self) -> bool {
        self.all.iter().any(|simple| {
            let is_known = |word: &ShellWord| {
                self.variables.word_readings(word).iter().all(|word| word.known_text().is_some())
            };
            let is_unknown = simple.words.first().is_some_and(|program| !is_known(program));
            let is_shell = simple
                .words
                .first()
                .and_then(ShellWord::known_text)
                .is_some_and(|name| SHELLS.contains(&program_name(name)));
            let is_source =
                simple.words.first().is_some_and(|word| [".", "source"].contains(&word.text.as_str()));
            let gives_text =
                |word: &&ShellWord| ["-c", "-e", "-r", "-p", "--eval"].contains(&word.text.as_str());
            let is_given = simple.words.first().and_then(ShellWord::known_text).is_some_and(is_interpreter)
                && simple.words.iter().any(|word| gives_text(&word));
            let runs_unknown = (is_shell || is_source || is_given)
                && simple.inner.is_none()
                && simple.words.iter().skip(1).any(|word| !is_known(word));
            is_unknown
                || runs_unknown
                || (is_shell && runs_commands_from_input(simple, false))
                || sets_program(simple)
        })
    }
}

fn deny_rule_reason(rule: &PermissionRule) -> String {
    format!("it may fall under the deny rule `{}`", rule.as_str())
}

/// Programs whose input is a command line.
pub(super) const SHELLS: &[&str] = &[
    "sh",
    "bash",
    "dash",
    "ash",
    "zsh",
    "fish",
    "ksh",
    "mksh",
    "csh",
    "tcsh",
    "rbash",
    "pwsh",
    "powershell",
    "at",
    "batch",
    "crontab",
    "parallel",
];

/// Builtins that set a variable which is written like a word.
const SETTERS: &[&str] = &["export", "declare", "typeset", "local", "readonly"];

/// Whether a command sets a variable that decides which programs later ones run.
fn sets_program(simple: &SimpleCommand) -> bool {
    let is_setter =
        simple.words.first().and_then(ShellWord::known_text).is_some_and(|name| SETTERS.contains(&name));
    let words = simple.words.iter().skip(1).filter(|_| is_setter);
    let set = words.map(|word| word.text.split_once('=').map_or(word.text.as_str(), |(name, _)| name));
    let assigned = simple.assignments.iter().map(|assignment| assignment.name.as_str());
    assigned.chain(set).any(harmless::names_program)
}
