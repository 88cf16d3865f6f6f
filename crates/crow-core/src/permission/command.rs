//! Judges a command line: each simple command in it, whatever runs it.

use std::collections::BTreeSet;

use super::accepted::Effect;
use super::autorun::is_autorun;
use super::denials::SHELLS;
use super::folders::{Route, Way, route};
use super::grants::LastingCommand;
use super::paths::{Place, Target, is_inside};
use super::protected::named_roughly;
use super::risks::{base, covered, is_input, reads_program, risks};
use super::rules::Rules;
use super::scripts::is_interpreter;
use super::variables::Variables;
use super::written::output_operands;
use super::{Grant, GrantOffer, Grants, Law, Mode, Verdict, harmless, prefixes};
use crate::shell::{self, Direction, NotUnderstood, Redirection, Simple, Through, Word};

/// Why a line is asked; `None` when nothing allows it and nothing stands against it either.
pub(super) type Why = Option<String>;

/// Whether a command may run a text as a program, be it its input or a word of it.
fn runs_texts(simple: &Simple) -> bool {
    let program = simple.words.first().and_then(Word::whole).map(base);
    program.is_none_or(|program| SHELLS.contains(&program) || program == "eval" || is_interpreter(program))
        && !simple.words.is_empty()
        || reads_program(&simple.words)
}

const MAY_BE_FORBIDDEN: &str = "it may run what a deny rule forbids";
/// Programs that may place a link: what the rest of their line reads through it is not known before.
const LINKING: &[&str] = &["ln", "link", "cp", "mv", "install", "rsync", "tar", "bsdtar", "unzip", "cpio"];

/// Judges a command line under a law; `tool` runs it.
pub(super) fn judge(law: &Law<'_>, grants: &Grants, tool: &str, line: &str) -> Verdict {
    let has_denials = Rules::commands(&law.rules.deny).next().is_some() || law.rules.denies_paths();
    let is_free = law.mode == Mode::Auto || Rules::tool(&law.rules.allow, &[tool], None).is_some();
    let commands = match shell::parse(line) {
        Ok(commands) => commands,
        Err(_) if law.mode == Mode::Plan => return super::refuse_in_plan(),
        Err(why) => return judge_extended(law, grants, (tool, line), why),
    };
    let court = Court::new(law, grants, &commands);
    let perhaps = match court.denied() {
        Err(verdict) => return verdict,
        Ok(perhaps) => perhaps,
    };
    if perhaps.is_none() && court.only_reads(&commands) {
        return Verdict::Allow;
    }
    if law.mode == Mode::Plan {
        return super::refuse_in_plan();
    }
    if let Some(why) = court.protected(is_free) {
        return Verdict::Ask { offer: GrantOffer::default(), why: Some(why) };
    }
    if law.mode == Mode::AcceptEdits && perhaps.is_none() && court.effect(&commands).is_some() {
        return Verdict::Allow;
    }
    let is_open = is_free && !(has_denials && (perhaps.is_some() || court.hides_program()));
    if is_open {
        return Verdict::Allow;
    }
    let (offer, why) = match perhaps {
        // What may be forbidden is asked about each time.
        Some(why) => (GrantOffer::default(), Some(why)),
        None => match court.allowed(&commands, line) {
            Ok(()) => return Verdict::Allow,
            Err(why) => (court.offer(&commands, line), why),
        },
    };
    let hides = || is_free.then(|| MAY_BE_FORBIDDEN.to_owned());
    Verdict::Ask { offer, why: why.or_else(hides) }
}

/// Judges a line that not every shell reads alike: no rule allows it, but what forbids it counts in every reading.
fn judge_extended(law: &Law<'_>, grants: &Grants, (tool, line): (&str, &str), why: NotUnderstood) -> Verdict {
    let has_denials = Rules::commands(&law.rules.deny).next().is_some() || law.rules.denies_paths();
    let is_free = law.mode == Mode::Auto || Rules::tool(&law.rules.allow, &[tool], None).is_some();
    let ask = |why| Verdict::Ask { offer: GrantOffer::default(), why: Some(why) };
    let commands = shell::parse_extended(line).ok();
    let mut text = line.to_owned();
    if let Some(commands) = &commands {
        let court = Court::new(law, grants, commands);
        match court.denied() {
            Err(verdict) => return verdict,
            Ok(Some(why)) => return ask(why),
            Ok(None) if !is_free => {}
            Ok(None) => {
                if let Some(why) = court.protected(true) {
                    return ask(why);
                }
                if has_denials && court.hides_program() {
                    return ask(MAY_BE_FORBIDDEN.into());
                }
            }
        }
        // What is only text to a program names nothing, unless another one may run it.
        if !court.all.iter().any(|simple| runs_texts(simple)) {
            for document in court.all.iter().flat_map(|simple| &simple.documents) {
                text = text.replacen(document.as_str(), "", 1);
            }
        }
    }
    match named_roughly(law, &text) {
        Some(name) => ask(format!("it {why}, and names {name}, which is protected")),
        None if is_free && (!has_denials || commands.is_some()) => Verdict::Allow,
        None => ask(format!("it {why}, so no rule can be applied")),
    }
}

/// Returns what a line does at the most, if the tables know all that is in it.
pub(super) fn effect(law: &Law<'_>, line: &str) -> Option<Effect> {
    let commands = shell::parse(line).ok()?;
    Court::new(law, &Grants::default(), &commands).effect(&commands)
}

/// Tells whether a command does what comes from another one, so that its words say little.
pub(super) fn is_fed(simple: &Simple, is_given: bool) -> bool {
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

/// A line that was understood, before its judge.
pub(super) struct Court<'a> {
    pub(super) law: &'a Law<'a>,
    pub(super) grants: &'a Grants,
    /// Every command in it, those that others run included.
    pub(super) all: Vec<&'a Simple>,
    pub(super) place: Place<'a>,
    pub(super) route: Route,
    pub(super) variables: Variables,
}

impl<'a> Court<'a> {
    fn new(law: &'a Law<'a>, grants: &'a Grants, commands: &'a [Simple]) -> Self {
        let all = all(commands);
        let route = route(law, &all);
        let variables = Variables::collect(&all, route.cwd(law));
        let place = Place { cwd: route.cwd(law), resolve: law.resolve };
        Self { law, grants, all, place, route, variables }
    }

    fn written(&self) -> impl Iterator<Item = Target> {
        let words = self.all.iter().flat_map(|simple| outputs(simple));
        words.map(|word| self.place.target(word))
    }

    /// The same line before a judge who knows of other grants.
    fn with<'b>(&'b self, grants: &'b Grants) -> Court<'b> {
        Court {
            law: self.law,
            grants,
            all: self.all.clone(),
            place: self.place,
            route: self.route.clone(),
            variables: self.variables.clone(),
        }
    }

    /// Finds out whether the rules and grants free the line.
    fn allowed(&self, commands: &[Simple], line: &str) -> Result<(), Why> {
        let edits = || self.effect(commands).is_some_and(|effect| effect <= Effect::Edits);
        if self.grants.allows(&Grant::Edits) && edits() {
            return Ok(());
        }
        let is_granted = || self.exact(commands, line).first().is_some_and(|whole| self.grants.allows(whole));
        if self.route.way != Way::Stays && is_granted() { Ok(()) } else { self.asked(commands) }
    }

    /// What would free these very commands; in another folder the same words are another command.
    fn exact(&self, commands: &[Simple], line: &str) -> Vec<Grant> {
        let spelled: Option<BTreeSet<String>> = commands.iter().map(Simple::spelled).collect();
        match spelled {
            Some(_) if self.leaves() || commands.iter().any(|command| is_fed(command, false)) => Vec::new(),
            Some(spelled) if self.route.way == Way::Stays => spelled.into_iter().map(Grant::Run).collect(),
            Some(_) => vec![Grant::Run(line.trim().to_owned())],
            None => Vec::new(),
        }
    }

    /// Works out what a yes may be remembered as: nothing that would not free this line.
    fn offer(&self, commands: &[Simple], line: &str) -> GrantOffer {
        let frees = |grants: &Vec<Grant>| {
            let with = self.grants.iter().chain(grants).cloned().collect();
            !grants.is_empty() && self.with(&with).allowed(commands, line).is_ok()
        };
        let lasting = prefixes::of_commands(commands.iter().filter(|command| self.allows(command).is_err()));
        let commands_only = lasting.unwrap_or_default();
        let both = commands_only.iter().cloned().chain([Grant::Edits]).collect();
        let project = [vec![Grant::Edits], commands_only, both].into_iter().find(frees).unwrap_or_default();
        let exact = Some(self.exact(commands, line)).filter(frees).unwrap_or_default();
        let wide = project.iter().filter(|grant| exact.is_empty() || **grant != Grant::Edits);
        GrantOffer { session: exact.iter().chain(wide).cloned().collect(), project }
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

    /// Whether the line goes or writes outside the roots, or where other programs run it: that is asked each time.
    fn leaves(&self) -> bool {
        let is_outside = |target: Target| match target {
            Target::Nowhere => false,
            Target::At(path) => !is_inside(&path, &self.law.roots.work) || is_autorun(&path),
            Target::Unknown(_) => true,
        };
        self.written().any(is_outside) || self.all.iter().any(|simple| self.leaving(simple).is_some())
    }

    /// Tells whether a rule or a person allowed something in the line.
    fn has_leave(&self) -> bool {
        self.all.iter().any(|simple| self.is_granted(simple) || self.ruled(simple).is_ok())
    }

    fn is_granted(&self, simple: &Simple) -> bool {
        self.route.way == Way::Stays
            && simple.spelled().is_some_and(|spelled| self.grants.allows(&Grant::Run(spelled)))
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
        if simple.words.is_empty() || harmless::needs_no_rule(simple) || self.is_free_beside(simple) {
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

    /// Whether a command needs no rule beside others that have one: it only reads what is there before the line runs, or
    /// edits where edits are free.
    fn is_free_beside(&self, simple: &Simple) -> bool {
        let places_links = |simple: &&Simple| {
            simple.words.first().and_then(Word::whole).is_some_and(|program| LINKING.contains(&base(program)))
        };
        match self.effect(std::slice::from_ref(simple)) {
            Some(Effect::Reads) => !self.all.iter().any(places_links),
            Some(Effect::Edits) => self.law.mode == Mode::AcceptEdits || self.grants.allows(&Grant::Edits),
            Some(Effect::Builds) | None => false,
        }
    }

    /// Finds out whether what a command sets, writes and reads around its words is free.
    fn files(&self, simple: &Simple) -> Result<(), Why> {
        if let Some(name) = risky_assignment(simple) {
            return Err(Some(format!("it sets {name}, which may change what runs")));
        }
        for word in outputs(simple) {
            match self.place.target(word) {
                Target::Nowhere => {}
                Target::At(path) if super::may_change(self.law, self.grants, &path) => {}
                Target::At(path) if is_autorun(&path) => return Err(Some(super::runs_by_itself(&path))),
                Target::At(_) | Target::Unknown(_) => {
                    return Err(Some(format!("it writes to {}", described(word))));
                }
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
        if has_git && self.route.way >= Way::Inside {
            let why = "git may find another repository in that folder, whose configuration can name programs";
            return Err(Some(why.to_owned()));
        }
        let reach = simple.inner.as_ref().map_or(0, |inner| inner.at);
        let risks = risks(&simple.words);
        let mut why = None;
        let rules = Rules::commands(&self.law.rules.allow)
            .map(|(_, words)| LastingCommand { words, is_whole: false, is_granted: false })
            .chain(self.grants.lasting());
        for rule in rules {
            let Some(n_covered) = covered(rule.words, &simple.words) else { continue };
            let is_exceeded = (rule.is_whole && n_covered < simple.words.len())
                || (rule.is_granted && prefixes::has_more_targets(&simple.words, n_covered));
            if is_exceeded {
                continue;
            }
            let is_reached = n_covered > reach
                || simple.inner.as_ref().is_none_or(|inner| inner.through == Through::WithMore);
            if !is_reached {
                continue;
            }
            let surprise = risks.iter().find(|risk| risk.at >= n_covered);
            let Some(risk) = surprise else {
                let outputs = output_operands(&simple.words).into_iter();
                let mut elsewhere = outputs.filter(|(at, word)| *at >= n_covered && !self.may_output(word));
                match elsewhere.next() {
                    None => return self.around(simple),
                    Some((_, word)) => why = Some(format!("it writes to {}", described(&word))),
                }
                continue;
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
    pub(super) fn leaving(&self, simple: &Simple) -> Why {
        let goes = simple.words.first().and_then(Word::whole) == Some("cd");
        (goes && self.route.way == Way::Anywhere)
            .then(|| "it goes to a folder that may be outside".to_owned())
    }
}

/// The words that name files a command writes to by its redirections; `tee` is one as well.
pub(super) fn outputs(simple: &Simple) -> Vec<&Word> {
    let redirected = simple.redirections.iter().filter(|redirection| redirection.direction == Direction::Out);
    let mut words: Vec<&Word> = redirected.map(|redirection| &redirection.target).collect();
    if simple.words.first().and_then(Word::whole).is_some_and(|program| base(program) == "tee") {
        words.extend(simple.words.iter().skip(1).filter(|word| !word.text.starts_with('-')));
    }
    words
}

pub(super) fn risky_assignment(simple: &Simple) -> Option<&str> {
    let names = simple.assignments.iter().map(|assignment| assignment.name.as_str());
    let is_for_program = !simple.words.is_empty();
    names.into_iter().find(|name| {
        let is_free =
            if is_for_program { harmless::is_setting(name) } else { harmless::is_own_variable(name) };
        !is_free
    })
}

pub(super) fn described(word: &Word) -> String {
    if word.text.is_empty() { "a place that is not known".to_owned() } else { word.text.clone() }
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
