//! Judges a command line: each simple command in it, whatever runs it.

use std::collections::BTreeSet;
use std::path::Path;

use super::deny::{self, Found};
use super::paths::{Place, Target, is_git, is_inside, is_protected, is_secret};
use super::programs::Does;
use super::risks::{base, risks};
use super::rules::Rules;
use super::{Grant, Grants, Law, Mode, Verdict, harmless};
use crate::shell::{self, Direction, Redirection, Simple, Through, Word};

/// Why a line is asked; `None` when nothing allows it and nothing stands against it either.
type Why = Option<String>;

/// Programs that change the files they are given.
const WRITERS: &[&str] = &[
    "rm", "mv", "cp", "ln", "tee", "install", "dd", "truncate", "shred", "chmod", "chown", "touch", "mkdir",
    "rmdir", "patch", "rsync", "sed", "perl",
];

/// Judges a command line under a law; `tool` runs it.
pub(super) fn judge(law: &Law<'_>, grants: &Grants, tool: &str, line: &str) -> Verdict {
    let has_denials = Rules::commands(&law.rules.deny).next().is_some();
    let is_free = law.mode == Mode::Auto || Rules::tool(&law.rules.allow, tool, None).is_some();
    let commands = match shell::parse(line) {
        Ok(commands) => commands,
        Err(_) if law.mode == Mode::Plan => return super::refuse_in_plan(),
        Err(_) if is_free && !has_denials => return Verdict::Allow,
        Err(why) => {
            return Verdict::Ask { always: None, why: Some(format!("it {why}, so no rule can be applied")) };
        }
    };
    let court = Court { law, grants, all: all(&commands), place: place(law, &commands) };
    let perhaps = match court.denied() {
        Err(verdict) => return verdict,
        Ok(perhaps) => perhaps,
    };
    let spelled: Option<BTreeSet<String>> = commands.iter().map(Simple::spelled).collect();
    if spelled.as_ref().is_some_and(|spelled| grants.refuses(spelled)) {
        return super::refused();
    }
    if law.mode == Mode::Plan {
        return super::refuse_in_plan();
    }
    if let Some(why) = court.protected(is_free) {
        return Verdict::Ask { always: None, why: Some(why) };
    }
    let is_open = is_free && !(has_denials && (perhaps.is_some() || court.is_hidden()));
    if is_open {
        return Verdict::Allow;
    }
    let asked = match perhaps {
        Some(why) => Err(Some(why)),
        None => commands.iter().try_for_each(|command| court.allows(command)),
    };
    let asked = match asked {
        // What is harmless beside an allowed command is no reason to run anything by itself.
        Ok(()) if !court.has_leave() => Err(None),
        asked => asked,
    };
    match asked {
        Ok(()) => Verdict::Allow,
        Err(why) => {
            let always = spelled.filter(|_| !court.leaves()).map(Grant::Commands);
            Verdict::Ask { always, why }
        }
    }
}

fn all(commands: &[Simple]) -> Vec<&Simple> {
    let mut all = Vec::new();
    commands.iter().for_each(|command| command.walk(&mut |simple| all.push(simple)));
    all
}

/// Where the paths of a line begin. After a `cd` nobody knows: it may fail.
fn place<'a>(law: &Law<'a>, commands: &[Simple]) -> Place<'a> {
    let moves = |simple: &Simple| {
        let program = simple.words.first().and_then(Word::whole).map(base);
        program.is_some_and(|program| ["cd", "pushd", "popd", ".", "source"].contains(&program))
    };
    let is_moved = all(commands).into_iter().any(moves);
    let cwd = law.roots.work.first().map(String::as_str).filter(|_| !is_moved);
    Place { cwd, resolve: law.resolve }
}

/// A line that was understood, before its judge.
struct Court<'a> {
    law: &'a Law<'a>,
    grants: &'a Grants,
    /// Every command in it, those that others run included.
    all: Vec<&'a Simple>,
    place: Place<'a>,
}

impl Court<'_> {
    /// Applies the deny rules; gives what may fall under one.
    fn denied(&self) -> Result<Why, Verdict> {
        let mut perhaps = None;
        for (rule, words) in Rules::commands(&self.law.rules.deny) {
            for simple in &self.all {
                match deny::found(words, &simple.words) {
                    Found::No => {}
                    Found::Perhaps => {
                        perhaps = Some(format!("it may fall under the deny rule `{}`", rule.as_str()));
                    }
                    Found::Yes => return Err(super::forbidden(rule)),
                }
            }
        }
        for target in self.written() {
            if let Target::At(path) = target
                && let Some(rule) = super::denied_path(self.law, &path)
            {
                return Err(super::forbidden(rule));
            }
        }
        Ok(perhaps)
    }

    fn written(&self) -> impl Iterator<Item = Target> {
        let words = self.all.iter().flat_map(|simple| outputs(simple));
        words.map(|word| self.place.target(word))
    }

    /// Finds what always asks: writing to a protected place, and, unless all is free, naming a key.
    fn protected(&self, is_free: bool) -> Why {
        let roots = self.law.roots;
        for target in self.written() {
            if let Target::At(path) | Target::Unknown(path) = target
                && is_protected(&path, roots)
            {
                return Some(format!("it writes to {path}, which is protected"));
            }
        }
        for simple in &self.all {
            let program = simple.words.first().and_then(Word::whole).map(base).unwrap_or_default();
            let is_writer = WRITERS.contains(&program);
            if harmless::needs_no_rule(simple) || (is_free && !is_writer) {
                continue;
            }
            let inputs =
                simple.redirections.iter().filter(|redirection| redirection.direction == Direction::In);
            let words = simple.words.iter().skip(1).chain(inputs.map(|redirection| &redirection.target));
            for word in words {
                // As in `of=FILE` and `--file=FILE`.
                let text = word.text.split_once('=').map_or(word.text.as_str(), |(_, value)| value);
                let word = Word { text: text.to_owned(), extent: word.extent };
                let resolved = match self.place.target(&word) {
                    Target::Nowhere => continue,
                    Target::At(path) | Target::Unknown(path) => path,
                };
                if is_secret(&resolved, roots) || (is_writer && is_git(&resolved)) {
                    return Some(format!("it names {text}, which is protected"));
                }
            }
        }
        None
    }

    /// Tells whether something in the line runs what no deny rule could see.
    fn is_hidden(&self) -> bool {
        self.all.iter().any(|simple| {
            let is_unknown = simple.words.first().is_some_and(|program| program.whole().is_none());
            let seen = |at: usize| simple.inner.as_ref().is_some_and(|inner| at + 1 == inner.at);
            let hides = |risk: &super::risks::Risk| risk.does == Does::Runs && !seen(risk.at);
            let sets = simple.assignments.iter().any(|assignment| harmless::is_steering(&assignment.name));
            is_unknown || sets || risks(&simple.words).iter().any(hides)
        })
    }

    /// Tells whether the line goes or writes outside the roots, which is asked each time.
    fn leaves(&self) -> bool {
        let is_outside = |target: Target| match target {
            Target::Nowhere => false,
            Target::At(path) => !is_inside(&path, &self.law.roots.work),
            Target::Unknown(_) => true,
        };
        self.written().any(is_outside) || self.all.iter().any(|simple| self.leaving(simple).is_some())
    }

    /// Tells whether a rule or a person allowed something in the line.
    fn has_leave(&self) -> bool {
        self.all.iter().any(|simple| self.is_granted(simple) || self.ruled(simple).is_ok())
    }

    fn is_granted(&self, simple: &Simple) -> bool {
        let grant = |spelled| Grant::Commands(BTreeSet::from([spelled]));
        simple.spelled().is_some_and(|spelled| self.grants.allows(&grant(spelled)))
    }

    /// Finds out whether a command may run without a question.
    fn allows(&self, simple: &Simple) -> Result<(), Why> {
        if self.is_granted(simple) {
            return Ok(());
        }
        self.files(simple)?;
        if let Some(why) = self.leaving(simple) {
            return Err(Some(why));
        }
        if simple.words.is_empty() || harmless::needs_no_rule(simple) {
            return Ok(());
        }
        match self.ruled(simple) {
            Ok(()) => Ok(()),
            Err(why) => match &simple.inner {
                Some(inner) if inner.through == Through::Plainly => {
                    inner.commands.iter().try_for_each(|command| self.allows(command))
                }
                _ => Err(why),
            },
        }
    }

    /// Finds out whether what a command sets, writes and reads around its words is free.
    fn files(&self, simple: &Simple) -> Result<(), Why> {
        if let Some(name) = risky_assignment(simple) {
            return Err(Some(format!("it sets {name}, which may change what runs")));
        }
        for word in outputs(simple) {
            let is_free = match self.place.target(word) {
                Target::Nowhere => true,
                Target::At(path) => super::may_change(self.law, self.grants, &path),
                Target::Unknown(_) => false,
            };
            if !is_free {
                return Err(Some(format!("it writes to {}", described(word))));
            }
        }
        let mut inputs =
            simple.redirections.iter().filter(|redirection| redirection.direction == Direction::In);
        // Some shells open a connection for these names.
        let connects = |redirection: &Redirection| {
            let text = &redirection.target.text;
            redirection.target.whole().is_none()
                || text.starts_with("/dev/tcp/")
                || text.starts_with("/dev/udp/")
        };
        match inputs.find(|redirection| connects(redirection)) {
            Some(redirection) => Err(Some(format!("it reads from {}", described(&redirection.target)))),
            None => Ok(()),
        }
    }

    /// Finds out whether an allow rule covers a command, and everything in it that a rule must spell out.
    fn ruled(&self, simple: &Simple) -> Result<(), Why> {
        let reach = simple.inner.as_ref().map_or(0, |inner| inner.at);
        let risks = risks(&simple.words);
        let mut why = None;
        for (_, rule) in Rules::commands(&self.law.rules.allow) {
            let is_whole = |(expected, word): (&String, &Word)| word.whole() == Some(expected.as_str());
            let begins = rule.len() <= simple.words.len() && rule.iter().zip(&simple.words).all(is_whole);
            let is_reached = rule.len() > reach
                || simple.inner.as_ref().is_none_or(|inner| inner.through == Through::WithMore);
            if !begins || !is_reached {
                continue;
            }
            let surprise = risks.iter().find(|risk| risk.at >= rule.len());
            let Some(risk) = surprise else {
                return self.around(simple);
            };
            why = Some(format!("{} {}", simple.words[0].text, risk.why));
        }
        Err(why)
    }

    /// A rule that spells out a wrapper covers what it runs, not what that sets or writes.
    fn around(&self, simple: &Simple) -> Result<(), Why> {
        let inner = simple.inner.iter().flat_map(|inner| &inner.commands);
        all(&inner.cloned().collect::<Vec<_>>()).into_iter().try_for_each(|inner| self.files(inner))
    }

    /// Says when a command goes to a folder outside.
    fn leaving(&self, simple: &Simple) -> Why {
        let [program, rest @ ..] = simple.words.as_slice() else { return None };
        if program.whole() != Some("cd") {
            return None;
        }
        let cwd = self.law.roots.work.first()?;
        let operands: Vec<&str> = rest.iter().filter_map(Word::whole).filter(|word| *word != "--").collect();
        let inside = match operands.as_slice() {
            [folder] if rest.iter().all(|word| word.whole().is_some()) && !folder.starts_with('-') => {
                let folder = (self.place.resolve)(&Path::new(cwd).join(folder));
                is_inside(&folder.display().to_string(), &self.law.roots.work)
            }
            _ => false,
        };
        (!inside).then(|| "it goes to a folder that may be outside".to_owned())
    }
}

/// The words that name files a command writes to by its redirections; `tee` is one as well.
fn outputs(simple: &Simple) -> Vec<&Word> {
    let redirected = simple.redirections.iter().filter(|redirection| redirection.direction == Direction::Out);
    let mut words: Vec<&Word> = redirected.map(|redirection| &redirection.target).collect();
    if simple.words.first().and_then(Word::whole).is_some_and(|program| base(program) == "tee") {
        words.extend(simple.words.iter().skip(1).filter(|word| !word.text.starts_with('-')));
    }
    words
}

fn risky_assignment(simple: &Simple) -> Option<&str> {
    let names = simple.assignments.iter().map(|assignment| assignment.name.as_str());
    let is_for_program = !simple.words.is_empty();
    names.into_iter().find(|name| {
        let is_free =
            if is_for_program { harmless::is_setting(name) } else { harmless::is_own_variable(name) };
        !is_free
    })
}

fn described(word: &Word) -> String {
    if word.text.is_empty() { "a place that is not known".to_owned() } else { word.text.clone() }
}
