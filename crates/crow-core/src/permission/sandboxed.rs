//! Which commands that need no question by themselves need one because of what the sandbox cannot do here.

use super::paths::{PathResolver, WordTarget, is_inside};
use super::risks::program_name;
use super::{
    EffectivePolicy, GrantSet, Mode, PermissionDecision, PermissionRules, approval_source, evaluate_call,
};
use crate::shell::{self, ShellWord, SimpleCommand};
use crate::{ApprovalSource, PartialSandbox, SandboxPolicy, ToolAccess, ToolCallInfo};

/// Programs that change modes, owners, times and other attributes of the files they name.
const ATTRIBUTE_PROGRAMS: &[&str] =
    &["chmod", "chown", "chgrp", "touch", "setfacl", "setfattr", "chattr", "setcap"];

/// Programs that send signals to the programs they name.
const SIGNAL_PROGRAMS: &[&str] =
    &["kill", "pkill", "killall", "killall5", "skill", "snice", "fuser", "xkill", "slay"];

/// Judges a call as [`evaluate_call`] does. A command that no person approved is asked about where the sandbox cannot hold it.
pub fn evaluate_call_in_sandbox(
    law: &EffectivePolicy<'_>,
    grants: &GrantSet,
    tool: &str,
    facets: &ToolCallInfo,
    sandbox: &SandboxPolicy<'_>,
) -> PermissionDecision {
    let verdict = evaluate_call(law, grants, tool, facets);
    if verdict != PermissionDecision::Allow {
        return verdict;
    }
    let approval = approval_source(law, grants, tool, facets);
    let Some(why) = reason_to_ask(law, approval, facets, sandbox) else { return PermissionDecision::Allow };
    match evaluate_by_grants(law, grants, tool, facets) {
        PermissionDecision::Allow => PermissionDecision::Allow,
        PermissionDecision::Ask { offer, .. } => PermissionDecision::Ask { offer, why: Some(why) },
        PermissionDecision::Deny(why) => PermissionDecision::Deny(why),
    }
}

/// Tells who approved a call that [`evaluate_call_in_sandbox`] lets run.
pub fn approval_source_in_sandbox(
    law: &EffectivePolicy<'_>,
    grants: &GrantSet,
    tool: &str,
    facets: &ToolCallInfo,
    sandbox: &SandboxPolicy<'_>,
) -> ApprovalSource {
    let approval = approval_source(law, grants, tool, facets);
    match reason_to_ask(law, approval, facets, sandbox) {
        Some(_) => ApprovalSource::Person,
        None => approval,
    }
}

/// Returns what speaks against running what the law alone allows; `None` also for what a person approved.
fn reason_to_ask(
    law: &EffectivePolicy<'_>,
    approval: ApprovalSource,
    facets: &ToolCallInfo,
    sandbox: &SandboxPolicy<'_>,
) -> Option<String> {
    let ToolAccess::Runs(line) = &facets.touch else { return None };
    match approval {
        ApprovalSource::Person | ApprovalSource::Reading | ApprovalSource::Editing => None,
        ApprovalSource::Building => {
            sandbox.reason_to_ask_for_build(law.mode, |partial| describe_gap_use(law, line, partial))
        }
        ApprovalSource::Law | ApprovalSource::Lasting => {
            sandbox.reason_to_ask(law.mode, |partial| describe_gap_use(law, line, partial))
        }
    }
}

/// Judges by what a person granted in the session alone: no mode and no rule allows anything.
fn evaluate_by_grants(
    law: &EffectivePolicy<'_>,
    grants: &GrantSet,
    tool: &str,
    facets: &ToolCallInfo,
) -> PermissionDecision {
    let denials = PermissionRules { allow: Vec::new(), deny: law.rules.deny.clone() };
    evaluate_call(&EffectivePolicy { mode: Mode::Ask, rules: &denials, ..*law }, grants, tool, facets)
}

/// Returns how a command line could use what a partial sandbox leaves open, as far as its words tell.
fn describe_gap_use(law: &EffectivePolicy<'_>, line: &str, partial: &PartialSandbox) -> Option<String> {
    let commands = match shell::parse_line(line) {
        Ok(commands) => commands,
        Err(why) => {
            return Some(format!("it {why}, so it may change files or end programs outside the project"));
        }
    };
    let place = PathResolver { cwd: law.roots.work.first().map(String::as_str), resolve: law.resolve };
    let goes = |simple: &SimpleCommand| {
        simple
            .words
            .first()
            .and_then(ShellWord::known_text)
            .is_some_and(|program| ["cd", "pushd", "popd"].contains(&program))
    };
    let mut all = Vec::new();
    commands.iter().for_each(|command| command.walk(&mut |simple| all.push(simple)));
    let place =
        if all.iter().any(|simple| goes(simple)) { PathResolver { cwd: None, ..place } } else { place };
    all.iter().find_map(|simple| {
        let program = program_name(simple.words.first()?.known_text()?);
        let changes = partial.no_namespace.is_some() && ATTRIBUTE_PROGRAMS.contains(&program);
        if changes && simple.words.iter().skip(1).any(|word| may_be_outside(word, &place, law)) {
            return Some(format!("{program} may change modes or times of files outside the project"));
        }
        let ends = partial.signals_open && SIGNAL_PROGRAMS.contains(&program);
        (ends && !simple.words.iter().skip(1).all(is_option_or_job))
            .then(|| format!("{program} may end your other programs"))
    })
}

fn may_be_outside(word: &ShellWord, place: &PathResolver<'_>, law: &EffectivePolicy<'_>) -> bool {
    if word.known_text().is_some_and(|text| text.starts_with('-') && !text.contains('/')) {
        return false;
    }
    match place.resolve_word(word) {
        WordTarget::Nowhere => false,
        WordTarget::At(path) => !is_inside(&path, &law.roots.work),
        WordTarget::Unknown(_) => true,
    }
}

/// An option, or a job of the shell that the line is run by.
fn is_option_or_job(word: &ShellWord) -> bool {
    word.known_text().is_some_and(|text| text.starts_with('%') || (text.starts_with('-') && text != "-1"))
}
