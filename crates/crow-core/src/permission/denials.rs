//! Applies the deny rules to a line: certain matches, possible matches, and hidden programs.

use super::command_evaluation::{
    AskReason, CommandEvaluation, SHELLS, describe_word, runs_commands_from_input,
};
use super::deny_match::{self, MatchCertainty};
use super::harmless;
use super::paths::WordTarget;
use super::policy::{PermissionDecision, deny_by_rule, denying_path_rule};
use super::program_names::program_name;
use super::risks::program_texts;
use super::rules::{PermissionRule, PermissionRules};
use super::scripts::is_interpreter;
use super::written_files::{WrittenWords, find_written_words};
use crate::shell::{self, ShellWord, SimpleCommand};

impl CommandEvaluation<'_> {
    /// Applies the deny rules; returns the reason for a possible match.
    pub(super) fn check_denials(&self) -> Result<AskReason, PermissionDecision> {
        let mut possible_denial = None;
        for (rule, words) in PermissionRules::command_rules(&self.policy.rules.deny) {
            for simple in &self.all_commands {
                match deny_match::match_rule(words, simple) {
                    MatchCertainty::NoMatch => {}
                    MatchCertainty::Possible => possible_denial = Some(deny_rule_reason(rule)),
                    MatchCertainty::Certain => return Err(deny_by_rule(rule)),
                }
            }
        }
        if self.policy.rules.denies_paths() {
            for simple in &self.all_commands {
                let written = find_written_words(simple);
                possible_denial = self.check_denied_files(&written)?.or(possible_denial);
                // Such an option may name another file.
                if written != WrittenWords::default()
                    && let Some(word) = simple.words.iter().skip(1).find(|word| self.reads_as_option(word))
                {
                    possible_denial = possible_denial.or(Some(unknown_file_reason(word)));
                }
                possible_denial = self.denied_text_reason(simple).or(possible_denial);
            }
        }
        Ok(possible_denial)
    }

    /// Applies the path rules to the text of an inline program.
    fn denied_text_reason(&self, simple: &SimpleCommand) -> AskReason {
        let words = program_texts(simple).into_iter().filter_map(shell::rough_words).flatten();
        let mut targets = words
            .filter(|word| word.text.contains('.') || word.text.contains('/'))
            .map(|word| self.resolver.resolve_word(&word));
        targets.find_map(|target| match target {
            WordTarget::Path(path) => denying_path_rule(self.policy, &path).map(deny_rule_reason),
            WordTarget::Device | WordTarget::Unknown(_) => None,
        })
    }

    /// Applies the path rules to the files that a command changes.
    fn check_denied_files(&self, written: &WrittenWords) -> Result<AskReason, PermissionDecision> {
        let mut possible_denial = None;
        let certain = written.certain.iter().map(|word| (word, true));
        for (word, is_certain) in certain.chain(written.possible.iter().map(|word| (word, false))) {
            let readings = self.variables.word_readings(word);
            let is_certain = is_certain && readings.len() == 1 && self.cd_route.directories.len() == 1;
            for target in readings.iter().flat_map(|reading| self.word_targets(reading)) {
                match target {
                    WordTarget::Device => {}
                    WordTarget::Path(path) => match denying_path_rule(self.policy, &path) {
                        Some(rule) if is_certain => return Err(deny_by_rule(rule)),
                        Some(rule) => possible_denial = Some(deny_rule_reason(rule)),
                        None => {}
                    },
                    WordTarget::Unknown(_) => {
                        possible_denial = Some(unknown_file_reason(word));
                    }
                }
            }
        }
        Ok(possible_denial)
    }

    /// Whether the line may run a program that no deny rule can see.
    pub(super) fn hides_program(&self) -> bool {
        self.all_commands.iter().any(|simple| {
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
            let has_script = simple.words.first().and_then(ShellWord::known_text).is_some_and(is_interpreter)
                && simple.words.iter().any(|word| gives_text(&word));
            let runs_unknown = (is_shell || is_source || has_script)
                && simple.inner.is_none()
                && simple.words.iter().skip(1).any(|word| !is_known(word));
            is_unknown
                || runs_unknown
                || (is_shell && runs_commands_from_input(simple, false))
                || sets_program(simple)
        })
    }
}

fn unknown_file_reason(word: &ShellWord) -> String {
    format!("it may change {}, which a deny rule may cover", describe_word(word))
}

fn deny_rule_reason(rule: &PermissionRule) -> String {
    format!("it may match the deny rule `{}`", rule.as_str())
}

/// Builtins with assignments as words.
const SETTERS: &[&str] = &["export", "declare", "typeset", "local", "readonly"];

/// Whether a command sets a variable that determines later programs.
fn sets_program(simple: &SimpleCommand) -> bool {
    let is_setter =
        simple.words.first().and_then(ShellWord::known_text).is_some_and(|name| SETTERS.contains(&name));
    let words = simple.words.iter().skip(1).filter(|_| is_setter);
    let set_names = words.map(|word| word.text.split_once('=').map_or(word.text.as_str(), |(name, _)| name));
    let assigned_names = simple.assignments.iter().map(|assignment| assignment.name.as_str());
    assigned_names.chain(set_names).any(harmless::names_program)
}
