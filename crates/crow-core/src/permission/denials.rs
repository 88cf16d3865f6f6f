//! Applies the deny rules to a line: what a rule forbids for sure, what may fall under one, and what none can see.

use super::command::{Court, Why, described, is_fed};
use super::deny::{self, Found};
use super::folders::Way;
use super::paths::{Place, Target};
use super::risks::base;
use super::rules::{Rule, Rules};
use super::scripts::{is_interpreter, program_texts};
use super::written::{Written, written};
use super::{Verdict, harmless};
use crate::shell::{self, Simple, Word};

impl Court<'_> {
    /// Applies the deny rules; gives what may fall under one.
    pub(super) fn denied(&self) -> Result<Why, Verdict> {
        let mut perhaps = None;
        for (rule, words) in Rules::commands(&self.law.rules.deny) {
            for simple in &self.all {
                match deny::found(words, simple) {
                    Found::No => {}
                    Found::Perhaps => perhaps = Some(may_fall_under(rule)),
                    Found::Yes => return Err(super::forbidden(rule)),
                }
            }
        }
        if self.law.rules.denies_paths() {
            for simple in &self.all {
                perhaps = self.denied_files(&written(simple))?.or(perhaps);
                perhaps = self.denied_texts(simple).or(perhaps);
            }
        }
        Ok(perhaps)
    }

    /// Applies the deny rules about paths to what the text of a program names.
    fn denied_texts(&self, simple: &Simple) -> Why {
        let words = program_texts(simple).into_iter().filter_map(shell::rough_words).flatten();
        let mut targets = words
            .filter(|word| word.text.contains('.') || word.text.contains('/'))
            .map(|word| self.place.target(&word));
        targets.find_map(|target| match target {
            Target::At(path) => super::denied_path(self.law, &path).map(may_fall_under),
            Target::Nowhere | Target::Unknown(_) => None,
        })
    }

    /// Applies the deny rules about paths to what a command changes.
    fn denied_files(&self, written: &Written) -> Result<Why, Verdict> {
        let mut perhaps = None;
        let certain = written.certain.iter().map(|word| (word, true));
        for (word, is_certain) in certain.chain(written.possible.iter().map(|word| (word, false))) {
            let readings = self.variables.readings(word);
            let is_certain = is_certain && readings.len() == 1 && self.route.places.len() == 1;
            for target in readings.iter().flat_map(|reading| self.targets(reading)) {
                match target {
                    Target::Nowhere => {}
                    Target::At(path) => match super::denied_path(self.law, &path) {
                        Some(rule) if is_certain => return Err(super::forbidden(rule)),
                        Some(rule) => perhaps = Some(may_fall_under(rule)),
                        None => {}
                    },
                    Target::Unknown(_) => {
                        let name = described(word);
                        perhaps = Some(format!("it may change {name}, which a deny rule may be about"));
                    }
                }
            }
        }
        Ok(perhaps)
    }

    /// Finds what a reading of a word names, from each folder that the line may be in.
    pub(super) fn targets(&self, word: &Word) -> Vec<Target> {
        if self.route.way == Way::Anywhere {
            return vec![self.place.target(word)];
        }
        let places = self.route.places.iter().map(|place| place.display().to_string());
        places.map(|cwd| Place { cwd: Some(&cwd), resolve: self.law.resolve }.target(word)).collect()
    }

    /// Whether something in the line may run a program that no deny rule could see.
    pub(super) fn hides_program(&self) -> bool {
        self.all.iter().any(|simple| {
            let is_known =
                |word: &Word| self.variables.readings(word).iter().all(|word| word.whole().is_some());
            let is_unknown = simple.words.first().is_some_and(|program| !is_known(program));
            let is_shell =
                simple.words.first().and_then(Word::whole).is_some_and(|name| SHELLS.contains(&base(name)));
            let is_source =
                simple.words.first().is_some_and(|word| [".", "source"].contains(&word.text.as_str()));
            let gives_text = |word: &&Word| ["-c", "-e", "-r", "-p", "--eval"].contains(&word.text.as_str());
            let is_given = simple.words.first().and_then(Word::whole).is_some_and(is_interpreter)
                && simple.words.iter().any(|word| gives_text(&word));
            let runs_unknown = (is_shell || is_source || is_given)
                && simple.inner.is_none()
                && simple.words.iter().skip(1).any(|word| !is_known(word));
            is_unknown || runs_unknown || (is_shell && is_fed(simple, false)) || sets_program(simple)
        })
    }
}

fn may_fall_under(rule: &Rule) -> String {
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
fn sets_program(simple: &Simple) -> bool {
    let is_setter = simple.words.first().and_then(Word::whole).is_some_and(|name| SETTERS.contains(&name));
    let words = simple.words.iter().skip(1).filter(|_| is_setter);
    let set = words.map(|word| word.text.split_once('=').map_or(word.text.as_str(), |(name, _)| name));
    let assigned = simple.assignments.iter().map(|assignment| assignment.name.as_str());
    assigned.chain(set).any(harmless::names_program)
}
