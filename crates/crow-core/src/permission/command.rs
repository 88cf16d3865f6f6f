//! Evaluates a command line: each simple command in it, including those run by others.

use std::collections::BTreeSet;

use super::accept_edits::CommandEffect;
use super::autorun::is_autorun;
use super::cd_route::CdScope;
use super::command_evaluation::{
    AskReason, CommandEvaluation, SHELLS, describe_word, flatten_commands, output_words, risky_assignment,
    runs_commands_from_input,
};
use super::file_writes::{autorun_reason, may_change};
use super::grants::{Grant, GrantOffer, GrantSet, LastingCommand};
use super::paths::{WordTarget, is_inside};
use super::policy::{EffectivePolicy, Mode, PermissionDecision, deny_in_plan_mode};
use super::program_names::program_name;
use super::protected_paths::roughly_protected_name;
use super::risks::{count_covered_words, find_risks, reads_program};
use super::rules::PermissionRules;
use super::scripts::is_interpreter;
use super::written_files::output_operands;
use super::{harmless, prefixes};
use crate::shell::{
    self, RedirectDirection, Redirection, ShellParseError, ShellWord, SimpleCommand, WrapperEffect,
};

/// Whether a command may run a text as a program, from its input or a word.
fn runs_texts(simple: &SimpleCommand) -> bool {
    let program = simple.words.first().and_then(ShellWord::known_text).map(program_name);
    program.is_none_or(|program| SHELLS.contains(&program) || program == "eval" || is_interpreter(program))
        && !simple.words.is_empty()
        || reads_program(&simple.words)
}

const MAY_BE_FORBIDDEN: &str = "it may run what a deny rule forbids";
/// Programs that may create a link: a later command may read through it.
const LINK_PROGRAMS: &[&str] =
    &["ln", "link", "cp", "mv", "install", "rsync", "tar", "bsdtar", "unzip", "cpio"];

/// Evaluates a command line of `tool` by a policy.
pub(super) fn evaluate_line(
    policy: &EffectivePolicy<'_>,
    grants: &GrantSet,
    tool: &str,
    line: &str,
) -> PermissionDecision {
    let has_denials =
        PermissionRules::command_rules(&policy.rules.deny).next().is_some() || policy.rules.denies_paths();
    let is_free = policy.mode == Mode::Auto
        || PermissionRules::find_tool_rule(&policy.rules.allow, &[tool], None).is_some();
    let commands = match shell::parse_line(line) {
        Ok(commands) => commands,
        Err(_) if policy.mode == Mode::Plan => return deny_in_plan_mode(),
        Err(reason) => return evaluate_extended_line(policy, grants, tool, line, reason),
    };
    let evaluation = CommandEvaluation::new(policy, grants, &commands);
    let possible_denial = match evaluation.check_denials() {
        Err(decision) => return decision,
        Ok(possible_denial) => possible_denial,
    };
    if possible_denial.is_none() && evaluation.only_reads(&commands) {
        return PermissionDecision::Allow;
    }
    if policy.mode == Mode::Plan {
        return deny_in_plan_mode();
    }
    if let Some(reason) = evaluation.protected_reason(is_free) {
        return PermissionDecision::Ask { offer: GrantOffer::default(), reason: Some(reason) };
    }
    if policy.mode == Mode::AcceptEdits
        && possible_denial.is_none()
        && evaluation.max_effect(&commands).is_some()
    {
        return PermissionDecision::Allow;
    }
    let is_allowed = is_free && !(has_denials && (possible_denial.is_some() || evaluation.hides_program()));
    if is_allowed {
        return PermissionDecision::Allow;
    }
    let (offer, reason) = match possible_denial {
        // A possibly forbidden command always asks.
        Some(reason) => (GrantOffer::default(), Some(reason)),
        None => match evaluation.check_allowed(&commands, line) {
            Ok(()) => return PermissionDecision::Allow,
            Err(reason) => (evaluation.grant_offer(&commands, line), reason),
        },
    };
    let may_hide_denied = || is_free.then(|| MAY_BE_FORBIDDEN.to_owned());
    PermissionDecision::Ask { offer, reason: reason.or_else(may_hide_denied) }
}

/// Evaluates a line that shells read differently: no allow rule applies, but deny rules apply to every reading.
fn evaluate_extended_line(
    policy: &EffectivePolicy<'_>,
    grants: &GrantSet,
    tool: &str,
    line: &str,
    reason: ShellParseError,
) -> PermissionDecision {
    let has_denials =
        PermissionRules::command_rules(&policy.rules.deny).next().is_some() || policy.rules.denies_paths();
    let is_free = policy.mode == Mode::Auto
        || PermissionRules::find_tool_rule(&policy.rules.allow, &[tool], None).is_some();
    let ask = |reason| PermissionDecision::Ask { offer: GrantOffer::default(), reason: Some(reason) };
    let commands = shell::parse_extended(line).ok();
    let mut text = line.to_owned();
    if let Some(commands) = &commands {
        let evaluation = CommandEvaluation::new(policy, grants, commands);
        match evaluation.check_denials() {
            Err(decision) => return decision,
            Ok(Some(reason)) => return ask(reason),
            Ok(None) if !is_free => {}
            Ok(None) => {
                if let Some(reason) = evaluation.protected_reason(true) {
                    return ask(reason);
                }
                if has_denials && evaluation.hides_program() {
                    return ask(MAY_BE_FORBIDDEN.into());
                }
            }
        }
        // Data for a program names nothing, unless a command may run it.
        if !evaluation.all_commands.iter().any(|simple| runs_texts(simple)) {
            for document in evaluation.all_commands.iter().flat_map(|simple| &simple.documents) {
                text = text.replacen(document.as_str(), "", 1);
            }
        }
    }
    match roughly_protected_name(policy, &text) {
        Some(name) => ask(format!("it {reason}, and names {name}, which is protected")),
        None if is_free && (!has_denials || commands.is_some()) => PermissionDecision::Allow,
        None => ask(format!("it {reason}, so no rule can be applied")),
    }
}

/// Returns the maximum effect of a line, if the tables know all of it.
pub(super) fn line_effect(policy: &EffectivePolicy<'_>, line: &str) -> Option<CommandEffect> {
    let commands = shell::parse_line(line).ok()?;
    CommandEvaluation::new(policy, &GrantSet::default(), &commands).max_effect(&commands)
}

impl<'a> CommandEvaluation<'a> {
    fn output_targets(&self) -> impl Iterator<Item = WordTarget> {
        let words = self.all_commands.iter().flat_map(|simple| output_words(simple));
        words.map(|word| self.resolver.resolve_word(word))
    }

    /// Returns the same evaluation with other grants.
    fn with_grants<'b>(&'b self, grants: &'b GrantSet) -> CommandEvaluation<'b> {
        CommandEvaluation { grants, ..self.clone() }
    }

    /// Checks whether rules and grants allow the line.
    fn check_allowed(&self, commands: &[SimpleCommand], line: &str) -> Result<(), AskReason> {
        let edits = || self.max_effect(commands).is_some_and(|effect| effect <= CommandEffect::Edits);
        if self.grants.contains(&Grant::Edits) && edits() {
            return Ok(());
        }
        let is_granted =
            || self.exact_grants(commands, line).first().is_some_and(|whole| self.grants.contains(whole));
        if self.cd_route.scope != CdScope::Unchanged && is_granted() {
            Ok(())
        } else {
            self.check_commands(commands)
        }
    }

    /// Returns the grants for exactly these commands; in another directory the same words are a different command.
    fn exact_grants(&self, commands: &[SimpleCommand], line: &str) -> Vec<Grant> {
        let canonical: Option<BTreeSet<String>> =
            commands.iter().map(SimpleCommand::canonical_text).collect();
        match canonical {
            Some(_)
                if self.leaves_roots()
                    || commands.iter().any(|command| runs_commands_from_input(command, false)) =>
            {
                Vec::new()
            }
            Some(canonical) if self.cd_route.scope == CdScope::Unchanged => {
                canonical.into_iter().map(Grant::Run).collect()
            }
            Some(_) => vec![Grant::Run(line.trim().to_owned())],
            None => Vec::new(),
        }
    }

    /// Returns the grants to offer: only those that would allow this line.
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

    /// Checks whether every command may run without asking.
    fn check_commands(&self, commands: &[SimpleCommand]) -> Result<(), AskReason> {
        for command in commands {
            let named_reason = |reason: AskReason| {
                // A single command is visible in the question.
                reason.or_else(|| {
                    (commands.len() > 1).then(|| format!("no rule covers `{}`", known_command_text(command)))
                })
            };
            self.check_command(command).map_err(named_reason)?;
        }
        // A harmless command beside an allowed one is no reason to run it alone.
        if self.is_partly_allowed() { Ok(()) } else { Err(None) }
    }

    /// Whether the line goes or writes outside the roots, or to autorun files: this always asks.
    fn leaves_roots(&self) -> bool {
        let is_outside = |target: WordTarget| match target {
            WordTarget::Device => false,
            WordTarget::Path(path) => !is_inside(&path, &self.policy.roots.work) || is_autorun(&path),
            WordTarget::Unknown(_) => true,
        };
        self.output_targets().any(is_outside)
            || self.all_commands.iter().any(|simple| self.reason_for_leaving(simple).is_some())
    }

    /// Whether a rule or a grant allows a part of the line.
    fn is_partly_allowed(&self) -> bool {
        self.all_commands.iter().any(|simple| self.is_granted(simple) || self.check_rules(simple).is_ok())
    }

    fn is_granted(&self, simple: &SimpleCommand) -> bool {
        self.cd_route.scope == CdScope::Unchanged
            && simple.canonical_text().is_some_and(|text| self.grants.contains(&Grant::Run(text)))
    }

    /// Checks whether a command may run without asking.
    fn check_command(&self, simple: &SimpleCommand) -> Result<(), AskReason> {
        if self.is_granted(simple) {
            return Ok(());
        }
        self.check_files(simple)?;
        if let Some(reason) = self.reason_for_leaving(simple) {
            return Err(Some(reason));
        }
        if simple.words.is_empty() || harmless::needs_no_rule(simple) || self.is_free_beside(simple) {
            return Ok(());
        }
        match self.check_rules(simple) {
            Ok(()) => Ok(()),
            Err(reason) => match &simple.inner {
                Some(inner) if inner.effect == WrapperEffect::Transparent => {
                    inner.commands.iter().try_for_each(|command| self.check_command(command))
                }
                _ => Err(reason),
            },
        }
    }

    /// Whether a command needs no rule beside allowed ones: it only reads files that exist before the line runs, or
    /// edits where edits are free.
    fn is_free_beside(&self, simple: &SimpleCommand) -> bool {
        let places_links = |simple: &&SimpleCommand| {
            simple
                .words
                .first()
                .and_then(ShellWord::known_text)
                .is_some_and(|program| LINK_PROGRAMS.contains(&program_name(program)))
        };
        match self.max_effect(std::slice::from_ref(simple)) {
            Some(CommandEffect::Reads) => !self.all_commands.iter().any(places_links),
            Some(CommandEffect::Edits) => {
                self.policy.mode == Mode::AcceptEdits || self.grants.contains(&Grant::Edits)
            }
            Some(CommandEffect::Builds) | None => false,
        }
    }

    /// Checks whether the assignments and redirections of a command are free.
    fn check_files(&self, simple: &SimpleCommand) -> Result<(), AskReason> {
        if let Some(name) = risky_assignment(simple) {
            return Err(Some(format!("it sets {name}, which may change what runs")));
        }
        for word in output_words(simple) {
            match self.resolver.resolve_word(word) {
                WordTarget::Device => {}
                WordTarget::Path(path) if may_change(self.policy, self.grants, &path) => {}
                WordTarget::Path(path) if is_autorun(&path) => {
                    return Err(Some(autorun_reason(&path)));
                }
                WordTarget::Path(_) | WordTarget::Unknown(_) => {
                    return Err(Some(format!("it writes to {}", describe_word(word))));
                }
            }
        }
        let mut inputs =
            simple.redirections.iter().filter(|redirection| redirection.direction == RedirectDirection::In);
        // Some shells open a network connection for these names.
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

    /// Checks whether an allow rule covers a command, and every word that a rule must state explicitly.
    fn check_rules(&self, simple: &SimpleCommand) -> Result<(), AskReason> {
        let mut has_git = false;
        simple.walk(&mut |inner| {
            let program = inner.words.first().and_then(ShellWord::known_text).map(program_name);
            has_git |= program.is_some_and(|program| program.eq_ignore_ascii_case("git"));
        });
        if has_git && self.cd_route.scope >= CdScope::InsideRoots {
            let reason =
                "git may find another repository in that directory, whose configuration can name programs";
            return Err(Some(reason.to_owned()));
        }
        let first_inner_word = simple.inner.as_ref().map_or(0, |inner| inner.first_word);
        let risks = find_risks(&simple.words);
        let mut reason = None;
        let rules = PermissionRules::command_rules(&self.policy.rules.allow)
            .map(|(_, words)| LastingCommand { words, is_exact: false, is_granted: false })
            .chain(self.grants.lasting_commands());
        for rule in rules {
            if count_covered_words(rule.words, &simple.words).is_none() {
                continue;
            }
            let Some(n_covered) = count_covered_words(rule.approving_words(), &simple.words) else {
                continue;
            };
            let is_exceeded = (rule.is_exact && n_covered < simple.words.len())
                || (rule.is_granted && prefixes::has_more_targets(&simple.words, n_covered));
            if is_exceeded {
                continue;
            }
            let covers_inner = n_covered > first_inner_word
                || simple.inner.as_ref().is_none_or(|inner| inner.effect == WrapperEffect::Opaque);
            if !covers_inner {
                continue;
            }
            let uncovered_risk = risks.iter().find(|risk| risk.word_index >= n_covered);
            let Some(risk) = uncovered_risk else {
                let outputs = output_operands(&simple.words).into_iter();
                let mut uncovered_outputs =
                    outputs.filter(|(at, word)| *at >= n_covered && !self.may_output(word));
                match uncovered_outputs.next() {
                    None => return self.check_wrapped_files(simple),
                    Some((_, word)) => reason = Some(format!("it writes to {}", describe_word(&word))),
                }
                continue;
            };
            reason = Some(format!("{} {}", simple.words[0].text, risk.reason));
        }
        Err(reason)
    }

    /// A rule that states a wrapper covers its command, not that command's assignments and files.
    fn check_wrapped_files(&self, simple: &SimpleCommand) -> Result<(), AskReason> {
        let inner = simple.inner.iter().flat_map(|inner| &inner.commands);
        flatten_commands(&inner.cloned().collect::<Vec<_>>())
            .into_iter()
            .try_for_each(|inner| self.check_files(inner))
    }
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
