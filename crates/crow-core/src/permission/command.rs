//! Judges a command line: each simple command in it, whatever runs it.

use std::collections::BTreeSet;

use super::accepted::CommandEffect;
use super::autorun::is_autorun;
use super::denials::SHELLS;
use super::folders::{CdRoute, CdScope, find_cd_route};
use super::grants::LastingCommand;
use super::paths::{PathResolver, WordTarget, is_inside};
use super::protected::roughly_protected_name;
use super::risks::{count_covered_words, find_risks, is_input, program_name, reads_program};
use super::rules::PermissionRules;
use super::scripts::is_interpreter;
use super::variables::ShellVariables;
use super::written::output_operands;
use super::{EffectivePolicy, Grant, GrantOffer, GrantSet, Mode, PermissionDecision, harmless, prefixes};
use crate::shell::{
    self, RedirectDirection, Redirection, ShellParseError, ShellWord, SimpleCommand, WrapperEffect,
};

/// Why a line is asked; `None` when nothing allows it and nothing stands against it either.
pub(super) type AskReason = Option<String>;

/// Whether a command may run a text as a program, be it its input or a word of it.
fn runs_texts(simple: &SimpleCommand) -> bool {
    let program = simple.words.first().and_then(ShellWord::known_text).map(program_name);
    program.is_none_or(|program| SHELLS.contains(&program) || program == "eval" || is_interpreter(program))
        && !simple.words.is_empty()
        || reads_program(&simple.words)
}

const MAY_BE_FORBIDDEN: &str = "it may run what a deny rule forbids";
/// Programs that may place a link: what the rest of their line reads through it is not known before.
const LINKING: &[&str] = &["ln", "link", "cp", "mv", "install", "rsync", "tar", "bsdtar", "unzip", "cpio"];

/// Judges a command line under a law; `tool` runs it.
pub(super) fn evaluate_line(
    law: &EffectivePolicy<'_>,
    grants: &GrantSet,
    tool: &str,
    line: &str,
) -> PermissionDecision {
    let has_denials =
        PermissionRules::command_rules(&law.rules.deny).next().is_some() || law.rules.denies_paths();
    let is_free =
        law.mode == Mode::Auto || PermissionRules::find_tool_rule(&law.rules.allow, &[tool], None).is_some();
    let commands = match shell::parse_line(line) {
        Ok(commands) => commands,
        Err(_) if law.mode == Mode::Plan => return super::deny_in_plan_mode(),
        Err(why) => return evaluate_extended_line(law, grants, (tool, line), why),
    };
    let court = CommandEvaluation::new(law, grants, &commands);
    let perhaps = match court.check_denials() {
        Err(verdict) => return verdict,
        Ok(perhaps) => perhaps,
    };
    if perhaps.is_none() && court.only_reads(&commands) {
        return PermissionDecision::Allow;
    }
    if law.mode == Mode::Plan {
        return super::deny_in_plan_mode();
    }
    if let Some(why) = court.protected_reason(is_free) {
        return PermissionDecision::Ask { offer: GrantOffer::default(), why: Some(why) };
    }
    if law.mode == Mode::AcceptEdits && perhaps.is_none() && court.max_effect(&commands).is_some() {
        return PermissionDecision::Allow;
    }
    let is_open = is_free && !(has_denials && (perhaps.is_some() || court.hides_program()));
    if is_open {
        return PermissionDecision::Allow;
    }
    let (offer, why) = match perhaps {
        // What may be forbidden is asked about each time.
        Some(why) => (GrantOffer::default(), Some(why)),
        None => match court.check_allowed(&commands, line) {
            Ok(()) => return PermissionDecision::Allow,
            Err(why) => (court.grant_offer(&commands, line), why),
        },
    };
    let hides = || is_free.then(|| MAY_BE_FORBIDDEN.to_owned());
    PermissionDecision::Ask { offer, why: why.or_else(hides) }
}

/// Judges a line that not every shell reads alike: no rule allows it, but what forbids it counts in every reading.
fn evaluate_extended_line(
    law: &EffectivePolicy<'_>,
    grants: &GrantSet,
    (tool, line): (&str, &str),
    why: ShellParseError,
) -> PermissionDecision {
    let has_denials =
        PermissionRules::command_rules(&law.rules.deny).next().is_some() || law.rules.denies_paths();
    let is_free =
        law.mode == Mode::Auto || PermissionRules::find_tool_rule(&law.rules.allow, &[tool], None).is_some();
    let ask = |why| PermissionDecision::Ask { offer: GrantOffer::default(), why: Some(why) };
    let commands = shell::parse_extended(line).ok();
    let mut text = line.to_owned();
    if let Some(commands) = &commands {
        let court = CommandEvaluation::new(law, grants, commands);
        match court.check_denials() {
            Err(verdict) => return verdict,
            Ok(Some(why)) => return ask(why),
            Ok(None) if !is_free => {}
            Ok(None) => {
                if let Some(why) = court.protected_reason(true) {
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
    match roughly_protected_name(law, &text) {
        Some(name) => ask(format!("it {why}, and names {name}, which is protected")),
        None if is_free && (!has_denials || commands.is_some()) => PermissionDecision::Allow,
        None => ask(format!("it {why}, so no rule can be applied")),
    }
}

/// Returns what a line does at the most, if the tables know all that is in it.
pub(super) fn line_effect(law: &EffectivePolicy<'_>, line: &str) -> Option<CommandEffect> {
    let commands = shell::parse_line(line).ok()?;
    CommandEvaluation::new(law, &GrantSet::default(), &commands).max_effect(&commands)
}

/// Tells whether a command does what comes from another one, so that its words say little.
pub(super) fn runs_commands_from_input(simple: &SimpleCommand, is_given: bool) -> bool {
    let is_in = |redirection: &Redirection| {
        redirection.direction == RedirectDirection::In && !is_input(&redirection.target.text)
    };
    let is_given = is_given || !simple.documents.is_empty() || simple.redirections.iter().any(is_in);
    let mut inner = simple.inner.iter().flat_map(|inner| &inner.commands);
    (reads_program(&simple.words) && !is_given)
        || inner.any(|inner| runs_commands_from_input(inner, is_given))
}

fn flatten_commands(commands: &[SimpleCommand]) -> Vec<&SimpleCommand> {
    let mut all = Vec::new();
    commands.iter().for_each(|command| command.walk(&mut |simple| all.push(simple)));
    all
}

/// A line that was understood, before its judge.
pub(super) struct CommandEvaluation<'a> {
    pub(super) law: &'a EffectivePolicy<'a>,
    pub(super) grants: &'a GrantSet,
    /// Every command in it, those that others run included.
    pub(super) all: Vec<&'a SimpleCommand>,
    pub(super) place: PathResolver<'a>,
    pub(super) route: CdRoute,
    pub(super) variables: ShellVariables,
}

impl<'a> CommandEvaluation<'a> {
    fn new(law: &'a EffectivePolicy<'a>, grants: &'a GrantSet, commands: &'a [SimpleCommand]) -> Self {
        let all = flatten_commands(commands);
        let route = find_cd_route(law, &all);
        let variables = ShellVariables::from_commands(&all, route.cwd(law));
        let place = PathResolver { cwd: route.cwd(law), resolve: law.resolve };
        Self { law, grants, all, place, route, variables }
    }

    fn output_targets(&self) -> impl Iterator<Item = WordTarget> {
        let words = self.all.iter().flat_map(|simple| output_words(simple));
        words.map(|word| self.place.resolve_word(word))
    }

    /// The same line before a judge who knows of other grants.
    fn with_grants<'b>(&'b self, grants: &'b GrantSet) -> CommandEvaluation<'b> {
        CommandEvaluation {
            law: self.law,
            grants,
            all: self.all.clone(),
            place: self.place,
            route: self.route.clone(),
            variables: self.variables.clone(),
        }
    }

    /// Finds out whether the rules and grants free the line.
    fn check_allowed(&self, commands: &[SimpleCommand], line: &str) -> Result<(), AskReason> {
        let edits = || self.max_effect(commands).is_some_and(|effect| effect <= CommandEffect::Edits);
        if self.grants.contains(&Grant::Edits) && edits() {
            return Ok(());
        }
        let is_granted =
            || self.exact_grants(commands, line).first().is_some_and(|whole| self.grants.contains(whole));
        if self.route.way != CdScope::Stays && is_granted() { Ok(()) } else { self.check_commands(commands) }
    }

    /// What would free these very commands; in another folder the same words are another command.
    fn exact_grants(&self, commands: &[SimpleCommand], line: &str) -> Vec<Grant> {
        let spelled: Option<BTreeSet<String>> = commands.iter().map(SimpleCommand::canonical_text).collect();
        match spelled {
            Some(_)
                if self.leaves_roots()
                    || commands.iter().any(|command| runs_commands_from_input(command, false)) =>
            {
                Vec::new()
            }
            Some(spelled) if self.route.way == CdScope::Stays => {
                spelled.into_iter().map(Grant::Run).collect()
            }
            Some(_) => vec![Grant::Run(line.trim().to_owned())],
            None => Vec::new(),
        }
    }

    /// Works out what a yes may be remembered as: nothing that would not free this line.
    fn grant_offer(&self, commands: &[SimpleCommand], line: &str) -> GrantOffer {
        let frees = |grants: &Vec<Grant>| {
            let with = self.grants.iter().chain(grants).cloned().collect();
            !grants.is_empty() && self.with_grants(&with).check_allowed(commands, line).is_ok()
        };
        let lasting = prefixes::grants_for_commands(
            commands.iter().filter(|command| self.check_command(command).is_err()),
        );
        let commands_only = lasting.unwrap_or_default();
        let both = commands_only.iter().cloned().chain([Grant::Edits]).collect();
        let project = [vec![Grant::Edits], commands_only, both].into_iter().find(frees).unwrap_or_default();
        let exact = Some(self.exact_grants(commands, line)).filter(frees).unwrap_or_default();
        let wide = project.iter().filter(|grant| exact.is_empty() || **grant != Grant::Edits);
        GrantOffer { session: exact.iter().chain(wide).cloned().collect(), project }
    }

    /// Finds out whether every command may run without a question.
    fn check_commands(&self, commands: &[SimpleCommand]) -> Result<(), AskReason> {
        for command in commands {
            let named = |why: AskReason| {
                // Alone it is in plain sight.
                why.or_else(|| {
                    (commands.len() > 1).then(|| format!("no rule covers `{}`", known_command_text(command)))
                })
            };
            self.check_command(command).map_err(named)?;
        }
        // What is harmless beside an allowed command is no reason to run anything by itself.
        if self.is_partly_allowed() { Ok(()) } else { Err(None) }
    }

    /// Whether the line goes or writes outside the roots, or where other programs run it: that is asked each time.
    fn leaves_roots(&self) -> bool {
        let is_outside = |target: WordTarget| match target {
            WordTarget::Nowhere => false,
            WordTarget::At(path) => !is_inside(&path, &self.law.roots.work) || is_autorun(&path),
            WordTarget::Unknown(_) => true,
        };
        self.output_targets().any(is_outside)
            || self.all.iter().any(|simple| self.reason_for_leaving(simple).is_some())
    }

    /// Tells whether a rule or a person allowed something in the line.
    fn is_partly_allowed(&self) -> bool {
        self.all.iter().any(|simple| self.is_granted(simple) || self.check_rules(simple).is_ok())
    }

    fn is_granted(&self, simple: &SimpleCommand) -> bool {
        self.route.way == CdScope::Stays
            && simple.canonical_text().is_some_and(|spelled| self.grants.contains(&Grant::Run(spelled)))
    }

    /// Finds out whether a command may run without a question.
    fn check_command(&self, simple: &SimpleCommand) -> Result<(), AskReason> {
        if self.is_granted(simple) {
            return Ok(());
        }
        self.check_files(simple)?;
        if let Some(why) = self.reason_for_leaving(simple) {
            return Err(Some(why));
        }
        if simple.words.is_empty() || harmless::needs_no_rule(simple) || self.is_free_beside(simple) {
            return Ok(());
        }
        match self.check_rules(simple) {
            Ok(()) => Ok(()),
            Err(why) => match &simple.inner {
                Some(inner) if inner.through == WrapperEffect::Plainly => {
                    inner.commands.iter().try_for_each(|command| self.check_command(command))
                }
                _ => Err(why),
            },
        }
    }

    /// Whether a command needs no rule beside others that have one: it only reads what is there before the line runs, or
    /// edits where edits are free.
    fn is_free_beside(&self, simple: &SimpleCommand) -> bool {
        let places_links = |simple: &&SimpleCommand| {
            simple
                .words
                .first()
                .and_then(ShellWord::known_text)
                .is_some_and(|program| LINKING.contains(&program_name(program)))
        };
        match self.max_effect(std::slice::from_ref(simple)) {
            Some(CommandEffect::Reads) => !self.all.iter().any(places_links),
            Some(CommandEffect::Edits) => {
                self.law.mode == Mode::AcceptEdits || self.grants.contains(&Grant::Edits)
            }
            Some(CommandEffect::Builds) | None => false,
        }
    }

    /// Finds out whether what a command sets, writes and reads around its words is free.
    fn check_files(&self, simple: &SimpleCommand) -> Result<(), AskReason> {
        if let Some(name) = risky_assignment(simple) {
            return Err(Some(format!("it sets {name}, which may change what runs")));
        }
        for word in output_words(simple) {
            match self.place.resolve_word(word) {
                WordTarget::Nowhere => {}
                WordTarget::At(path) if super::may_change(self.law, self.grants, &path) => {}
                WordTarget::At(path) if is_autorun(&path) => return Err(Some(super::autorun_reason(&path))),
                WordTarget::At(_) | WordTarget::Unknown(_) => {
                    return Err(Some(format!("it writes to {}", describe_word(word))));
                }
            }
        }
        let mut inputs =
            simple.redirections.iter().filter(|redirection| redirection.direction == RedirectDirection::In);
        // Some shells open a connection for these names.
        let connects = |redirection: &Redirection| {
            let text = &redirection.target.text;
            redirection.target.known_text().is_none()
                || text.starts_with("/dev/tcp/")
                || text.starts_with("/dev/udp/")
        };
        match inputs.find(|redirection| connects(redirection)) {
            Some(redirection) => Err(Some(format!("it reads from {}", describe_word(&redirection.target)))),
            None => Ok(()),
        }
    }

    /// Finds out whether an allow rule covers a command, and everything in it that a rule must spell out.
    fn check_rules(&self, simple: &SimpleCommand) -> Result<(), AskReason> {
        let mut has_git = false;
        simple.walk(&mut |inner| {
            let program = inner.words.first().and_then(ShellWord::known_text).map(program_name);
            has_git |= program.is_some_and(|program| program.eq_ignore_ascii_case("git"));
        });
        if has_git && self.route.way >= CdScope::Inside {
            let why = "git may find another repository in that folder, whose configuration can name programs";
            return Err(Some(why.to_owned()));
        }
        let reach = simple.inner.as_ref().map_or(0, |inner| inner.at);
        let risks = find_risks(&simple.words);
        let mut why = None;
        let rules = PermissionRules::command_rules(&self.law.rules.allow)
            .map(|(_, words)| LastingCommand { words, is_whole: false, is_granted: false })
            .chain(self.grants.lasting_commands());
        for rule in rules {
            let Some(n_covered) = count_covered_words(rule.words, &simple.words) else { continue };
            let is_exceeded = (rule.is_whole && n_covered < simple.words.len())
                || (rule.is_granted && prefixes::has_more_targets(&simple.words, n_covered));
            if is_exceeded {
                continue;
            }
            let is_reached = n_covered > reach
                || simple.inner.as_ref().is_none_or(|inner| inner.through == WrapperEffect::WithMore);
            if !is_reached {
                continue;
            }
            let surprise = risks.iter().find(|risk| risk.at >= n_covered);
            let Some(risk) = surprise else {
                let outputs = output_operands(&simple.words).into_iter();
                let mut elsewhere = outputs.filter(|(at, word)| *at >= n_covered && !self.may_output(word));
                match elsewhere.next() {
                    None => return self.check_wrapped_files(simple),
                    Some((_, word)) => why = Some(format!("it writes to {}", describe_word(&word))),
                }
                continue;
            };
            why = Some(format!("{} {}", simple.words[0].text, risk.why));
        }
        Err(why)
    }

    /// A rule that spells out a wrapper covers what it runs, not what that sets or writes.
    fn check_wrapped_files(&self, simple: &SimpleCommand) -> Result<(), AskReason> {
        let inner = simple.inner.iter().flat_map(|inner| &inner.commands);
        flatten_commands(&inner.cloned().collect::<Vec<_>>())
            .into_iter()
            .try_for_each(|inner| self.check_files(inner))
    }

    /// Says when a command goes to a folder outside.
    pub(super) fn reason_for_leaving(&self, simple: &SimpleCommand) -> AskReason {
        let goes = simple.words.first().and_then(ShellWord::known_text) == Some("cd");
        (goes && self.route.way == CdScope::Anywhere)
            .then(|| "it goes to a folder that may be outside".to_owned())
    }
}

/// The words that name files a command writes to by its redirections; `tee` is one as well.
pub(super) fn output_words(simple: &SimpleCommand) -> Vec<&ShellWord> {
    let redirected =
        simple.redirections.iter().filter(|redirection| redirection.direction == RedirectDirection::Out);
    let mut words: Vec<&ShellWord> = redirected.map(|redirection| &redirection.target).collect();
    if simple
        .words
        .first()
        .and_then(ShellWord::known_text)
        .is_some_and(|program| program_name(program) == "tee")
    {
        words.extend(simple.words.iter().skip(1).filter(|word| !word.text.starts_with('-')));
    }
    words
}

pub(super) fn risky_assignment(simple: &SimpleCommand) -> Option<&str> {
    let names = simple.assignments.iter().map(|assignment| assignment.name.as_str());
    let is_for_program = !simple.words.is_empty();
    names.into_iter().find(|name| {
        let is_free = if is_for_program {
            harmless::is_harmless_variable(name)
        } else {
            harmless::is_harmless_shell_variable(name)
        };
        !is_free
    })
}

pub(super) fn describe_word(word: &ShellWord) -> String {
    if word.text.is_empty() { "a place that is not known".to_owned() } else { word.text.clone() }
}

fn known_command_text(simple: &SimpleCommand) -> String {
    simple
        .words
        .iter()
        .take_while(|word| word.known_text().is_some())
        .map(|word| word.text.as_str())
        .collect::<Vec<_>>()
        .join(" ")
}
