//! The commands that must ask because of gaps in the sandbox.

use super::paths::{PathResolver, WordTarget, is_inside};
use super::program_names::program_name;
use super::{
    EffectivePolicy, GrantSet, Mode, PermissionDecision, PermissionRules, approval_source, evaluate_call,
};
use crate::shell::{self, ShellWord, SimpleCommand};
use crate::{ApprovalSource, PartialSandbox, SandboxPolicy, ToolAccess, ToolCallInfo};

/// Programs that change modes, owners, times and other attributes of files.
const ATTRIBUTE_PROGRAMS: &[&str] =
    &["chmod", "chown", "chgrp", "touch", "setfacl", "setfattr", "chattr", "setcap"];

/// Programs that send signals to others.
const SIGNAL_PROGRAMS: &[&str] =
    &["kill", "pkill", "killall", "killall5", "skill", "snice", "fuser", "xkill", "slay"];

/// Evaluates a call like [`evaluate_call`]. An unapproved command asks if the sandbox cannot confine it.
pub fn evaluate_call_in_sandbox(
    policy: &EffectivePolicy<'_>,
    grants: &GrantSet,
    tool: &str,
    info: &ToolCallInfo,
    sandbox: &SandboxPolicy<'_>,
) -> PermissionDecision {
    let decision = evaluate_call(policy, grants, tool, info);
    if decision != PermissionDecision::Allow {
        return decision;
    }
    let approval = approval_source(policy, grants, tool, info);
    let Some(reason) = reason_to_ask(policy, approval, info, sandbox) else {
        return PermissionDecision::Allow;
    };
    match evaluate_by_grants(policy, grants, tool, info) {
        PermissionDecision::Allow => PermissionDecision::Allow,
        PermissionDecision::Ask { offer, .. } => PermissionDecision::Ask { offer, reason: Some(reason) },
        PermissionDecision::Deny(reason) => PermissionDecision::Deny(reason),
    }
}

/// Returns the approval source of a call that [`evaluate_call_in_sandbox`] allows.
pub fn approval_source_in_sandbox(
    policy: &EffectivePolicy<'_>,
    grants: &GrantSet,
    tool: &str,
    info: &ToolCallInfo,
    sandbox: &SandboxPolicy<'_>,
) -> ApprovalSource {
    let approval = approval_source(policy, grants, tool, info);
    match reason_to_ask(policy, approval, info, sandbox) {
        Some(_) => ApprovalSource::User,
        None => approval,
    }
}

/// Returns the reason against running a command that only the policy allows; `None` also for a command that the user
/// approved.
fn reason_to_ask(
    policy: &EffectivePolicy<'_>,
    approval: ApprovalSource,
    info: &ToolCallInfo,
    sandbox: &SandboxPolicy<'_>,
) -> Option<String> {
    let ToolAccess::Runs(line) = &info.access else { return None };
    match approval {
        ApprovalSource::User | ApprovalSource::ReadOnlyCommand | ApprovalSource::EditCommand => None,
        ApprovalSource::BuildCommand => {
            sandbox.reason_to_ask_for_build(policy.mode, |partial| describe_gap_use(policy, line, partial))
        }
        ApprovalSource::Policy | ApprovalSource::ProjectCodeGrant => {
            sandbox.reason_to_ask(policy.mode, |partial| describe_gap_use(policy, line, partial))
        }
    }
}

/// Evaluates by the session's grants alone, without mode and allow rules.
fn evaluate_by_grants(
    policy: &EffectivePolicy<'_>,
    grants: &GrantSet,
    tool: &str,
    info: &ToolCallInfo,
) -> PermissionDecision {
    let denials = PermissionRules { allow: Vec::new(), deny: policy.rules.deny.clone() };
    evaluate_call(&EffectivePolicy { mode: Mode::Ask, rules: &denials, ..*policy }, grants, tool, info)
}

/// Describes how a command line could use a gap in a partial sandbox, as far as its words show.
fn describe_gap_use(policy: &EffectivePolicy<'_>, line: &str, partial: &PartialSandbox) -> Option<String> {
    let commands = match shell::parse_line(line) {
        Ok(commands) => commands,
        Err(reason) => {
            return Some(format!("it {reason}, so it may change files or end programs outside the project"));
        }
    };
    let resolver = PathResolver { cwd: policy.roots.work.first().map(String::as_str), files: policy.files };
    let changes_directory = |simple: &SimpleCommand| {
        simple
            .words
            .first()
            .and_then(ShellWord::known_text)
            .is_some_and(|program| ["cd", "pushd", "popd"].contains(&program))
    };
    let mut all_commands = Vec::new();
    commands.iter().for_each(|command| command.walk(&mut |simple| all_commands.push(simple)));
    let resolver = if all_commands.iter().any(|simple| changes_directory(simple)) {
        PathResolver { cwd: None, ..resolver }
    } else {
        resolver
    };
    all_commands.iter().find_map(|simple| {
        let program = program_name(simple.words.first()?.known_text()?);
        let changes = partial.namespace_problem.is_some() && ATTRIBUTE_PROGRAMS.contains(&program);
        if changes && simple.words.iter().skip(1).any(|word| may_be_outside(word, &resolver, policy)) {
            return Some(format!("{program} may change modes or times of files outside the project"));
        }
        let ends = partial.signals_unconfined && SIGNAL_PROGRAMS.contains(&program);
        (ends && !simple.words.iter().skip(1).all(is_option_or_job))
            .then(|| format!("{program} may end your other programs"))
    })
}

fn may_be_outside(word: &ShellWord, resolver: &PathResolver<'_>, policy: &EffectivePolicy<'_>) -> bool {
    if word.known_text().is_some_and(|text| text.starts_with('-') && !text.contains('/')) {
        return false;
    }
    match resolver.resolve_word(word) {
        WordTarget::Device => false,
        WordTarget::Path(path) => !is_inside(&path, &policy.roots.work),
        WordTarget::Unknown(_) => true,
    }
}

/// Whether a word is an option, or a job of the shell.
fn is_option_or_job(word: &ShellWord) -> bool {
    word.known_text().is_some_and(|text| text.starts_with('%') || (text.starts_with('-') && text != "-1"))
}
