//! Judges a command line: each simple command in it, whatever runs it.

use std::collections::BTreeSet;

use super::deny::{self, Found};
use super::folders::{Way, way};
use super::names::{may_name_folder, may_name_git, may_name_secret};
use super::paths::{Place, Target, is_git, is_inside, is_secret, may_begin_protected};
use super::programs::Does;
use super::risks::{Risk, base, covered, interprets, is_input, reads_program, risks};
use super::rules::Rules;
use super::variables::Variables;
use super::{Grant, Grants, Law, Mode, Roots, Verdict, harmless};
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
    let all = all(&commands);
    let way = way(law, &all);
    let variables = Variables::collect(&all, way.cwd(law));
    let place = Place { cwd: way.cwd(law), resolve: law.resolve };
    let court = Court { law, grants, place, all, way, variables };
    let perhaps = match court.denied() {
        Err(verdict) => return verdict,
        Ok(perhaps) => perhaps,
    };
    let spelled: Option<BTreeSet<String>> = commands.iter().map(Simple::spelled).collect();
    // In another folder the same words are another command.
    let whole = BTreeSet::from([line.trim().to_owned()]);
    if grants.refuses(&whole) || spelled.as_ref().is_some_and(|spelled| grants.refuses(spelled)) {
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
    let spelled =
        spelled.filter(|_| !court.leaves() && !commands.iter().any(|command| is_fed(command, false)));
    let always = spelled.map(|spelled| Grant::Commands(if way == Way::Stays { spelled } else { whole }));
    let asked = match perhaps {
        Some(why) => Err(Some(why)),
        None if way != Way::Stays && always.as_ref().is_some_and(|whole| grants.allows(whole)) => Ok(()),
        None => court.asked(&commands),
    };
    match asked {
        Ok(()) => Verdict::Allow,
        Err(why) => {
            let hides = || is_free.then(|| "it may run what a deny rule forbids".to_owned());
            Verdict::Ask { always, why: why.or_else(hides) }
        }
    }
}

/// Tells whether a command does what comes from another one, so that its words say little.
fn is_fed(simple: &Simple, is_given: bool) -> bool {
    let is_in = |redirection: &Redirection| {
        redirection.direction == Direction::In && !is_input(&redirection.target.text)
    };
    let is_given = is_given || !simple.documents.is_empty() || simple.redirections.iter().any(is_in);
    let mut inner = simple.inner.iter().flat_map(|inner| &inner.commands);
    (reads_program(&simple.words) && !is_given) || inner.any(|inner| is_fed(inner, is_given))
}

fn all(commands: &[Simple]) -> Vec<&Simple> {
    let mut all = Vec::new();
    commands.iter().for_each(|command| command.walk(&mut |simple| all.push(simple)));
    all
}

/// What is done to what a word names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Reads,
    Changes,
}

/// A line that was understood, before its judge.
struct Court<'a> {
    law: &'a Law<'a>,
    grants: &'a Grants,
    /// Every command in it, those that others run included.
    all: Vec<&'a Simple>,
    place: Place<'a>,
    way: Way,
    variables: Variables,
}

impl Court<'_> {
    /// Applies the deny rules; gives what may fall under one.
    fn denied(&self) -> Result<Why, Verdict> {
        let mut perhaps = None;
        for (rule, words) in Rules::commands(&self.law.rules.deny) {
            for simple in &self.all {
                match deny::found(words, simple) {
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

    /// Finds out whether every command may run without a question.
    fn asked(&self, commands: &[Simple]) -> Result<(), Why> {
        for command in commands {
            let named = |why: Why| {
                // Alone it is in plain sight.
                why.or_else(|| (commands.len() > 1).then(|| format!("no rule covers `{}`", shown(command))))
            };
            self.allows(command).map_err(named)?;
        }
        // What is harmless beside an allowed command is no reason to run anything by itself.
        if self.has_leave() { Ok(()) } else { Err(None) }
    }

    /// Finds what always asks: writing to a protected place, and, unless all is free, naming a key.
    fn protected(&self, is_free: bool) -> Why {
        let mut outputs = self.all.iter().flat_map(|simple| outputs(simple));
        if let Some(word) = outputs.find(|word| self.is_guarded(word, Access::Changes)) {
            return Some(format!("it writes to {}, which is protected", described(word)));
        }
        let named = self.all.iter().find_map(|simple| self.named(simple, is_free));
        let named = named.map(|text| format!("it names {text}, which is protected"));
        named.or_else(|| self.set().map(|text| format!("it changes files by a variable that is {text}")))
    }

    /// Finds a protected place in a variable of a line that changes what is not known.
    fn set(&self) -> Why {
        let mut values =
            self.all.iter().flat_map(|simple| &simple.assignments).map(|assignment| &assignment.value);
        let value = values.find(|value| self.is_guarded(value, Access::Changes))?;
        let is_open = |word: &Word| word.whole().is_none();
        let changes = |simple: &&Simple| {
            outputs(simple).into_iter().any(is_open) || (changes(simple) && simple.words.iter().any(is_open))
        };
        self.all.iter().any(changes).then(|| value.text.clone())
    }

    /// Finds a protected place in the words of a command.
    fn named(&self, simple: &Simple, is_free: bool) -> Option<String> {
        let goes = goes(simple);
        let access = if goes || changes(simple) { Access::Changes } else { Access::Reads };
        if is_free && access == Access::Reads {
            return None;
        }
        let has_plain_words = harmless::needs_no_rule(simple) && !goes;
        let n_words = if has_plain_words { 0 } else { simple.words.len() };
        let inputs = simple.redirections.iter().filter(|redirection| redirection.direction == Direction::In);
        let words = simple.words.iter().take(n_words).skip(1);
        let mut words = words.chain(inputs.map(|redirection| &redirection.target)).flat_map(values);
        words.find(|word| self.is_guarded(word, access)).map(|word| word.text)
    }

    /// Whether a word names what is protected, or may name it.
    fn is_guarded(&self, word: &Word, access: Access) -> bool {
        self.variables.readings(word).iter().any(|word| is_guarded(word, access, &self.place, self.law.roots))
    }

    /// Tells whether something in the line runs what no deny rule could see.
    fn is_hidden(&self) -> bool {
        self.all.iter().any(|simple| {
            let is_unknown = simple.words.first().is_some_and(|program| program.whole().is_none());
            let seen = |at: usize| simple.inner.as_ref().is_some_and(|inner| at + 1 == inner.at);
            let hides = |risk: &Risk| risk.does == Does::Runs && !seen(risk.at);
            let is_file = simple.inner.is_none() && interprets(&simple.words);
            is_unknown
                || is_file
                || risky_assignment(simple).is_some()
                || risks(&simple.words).iter().any(hides)
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
        self.way == Way::Stays && simple.spelled().is_some_and(|spelled| self.grants.allows(&grant(spelled)))
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
        let mut has_git = false;
        simple.walk(&mut |inner| {
            let program = inner.words.first().and_then(Word::whole).map(base);
            has_git |= program.is_some_and(|program| program.eq_ignore_ascii_case("git"));
        });
        if has_git && self.way >= Way::Inside {
            let why = "git may find another repository in that folder, whose configuration can name programs";
            return Err(Some(why.to_owned()));
        }
        let reach = simple.inner.as_ref().map_or(0, |inner| inner.at);
        let risks = risks(&simple.words);
        let mut why = None;
        for (_, rule) in Rules::commands(&self.law.rules.allow) {
            let Some(n_covered) = covered(rule, &simple.words) else { continue };
            let is_reached = n_covered > reach
                || simple.inner.as_ref().is_none_or(|inner| inner.through == Through::WithMore);
            if !is_reached {
                continue;
            }
            let surprise = risks.iter().find(|risk| risk.at >= n_covered);
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
        let goes = simple.words.first().and_then(Word::whole) == Some("cd");
        (goes && self.way == Way::Anywhere).then(|| "it goes to a folder that may be outside".to_owned())
    }
}

/// Whether one reading of a word names what is protected, or may name it.
fn is_guarded(word: &Word, access: Access, place: &Place<'_>, roots: &Roots) -> bool {
    let changes = access == Access::Changes;
    if !word.rest.is_empty() {
        return may_name_secret(word, roots)
            || may_begin_protected(word, place, roots)
            || (changes && (may_name_git(word) || may_name_folder(word, &roots.repository)));
    }
    match place.target(word) {
        Target::Nowhere => false,
        Target::At(path) | Target::Unknown(path) => is_secret(&path, roots) || (changes && is_git(&path)),
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

/// Tells whether a command goes to the folder it names.
fn goes(simple: &Simple) -> bool {
    let program = simple.words.first().and_then(Word::whole).map(base);
    program.is_some_and(|program| ["cd", "pushd"].contains(&program))
}

/// Tells whether a command changes the files it is given.
fn changes(simple: &Simple) -> bool {
    let program = simple.words.first().and_then(Word::whole).map(base);
    let writes = |risk: &Risk| risk.does == Does::Writes;
    program.is_some_and(|program| WRITERS.contains(&program)) || risks(&simple.words).iter().any(writes)
}

/// Lists the values that may be in a word, as in `of=FILE`, `--file=FILE` and `-tFILE`.
fn values(word: &Word) -> Vec<Word> {
    let text = word.text.as_str();
    let mut starts = vec![text.find('=').map_or(0, |place| place + 1)];
    if text.starts_with('-') && !text.starts_with("--") {
        starts.extend(text.char_indices().nth(2).map(|(place, _)| place));
        let letters = text[1..].trim_start_matches(|letter: char| letter.is_ascii_alphanumeric());
        starts.push(text.len() - letters.len());
    }
    starts.into_iter().map(|start| word.without_prefix(start)).collect()
}

fn shown(simple: &Simple) -> String {
    simple
        .words
        .iter()
        .take_while(|word| word.whole().is_some())
        .map(|word| word.text.as_str())
        .collect::<Vec<_>>()
        .join(" ")
}
