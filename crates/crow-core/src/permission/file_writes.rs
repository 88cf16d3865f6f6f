//! Evaluates changes of files by their paths.

use super::autorun::is_autorun;
use super::grants::{Grant, GrantOffer, GrantSet};
use super::paths::{is_git_head, is_inside, is_protected};
use super::policy::{
    EffectivePolicy, Mode, PermissionDecision, deny_by_rule, deny_in_plan_mode, denying_path_rule,
};
use super::rules::PatternStrictness;

pub(super) fn evaluate_writes(
    policy: &EffectivePolicy<'_>,
    grants: &GrantSet,
    paths: &[String],
    is_allowed: bool,
) -> PermissionDecision {
    if let Some(rule) = paths.iter().find_map(|path| denying_path_rule(policy, path)) {
        return deny_by_rule(rule);
    }
    let are_inside = paths.iter().all(|path| is_inside(path, &policy.roots.work));
    if policy.mode == Mode::Plan {
        return deny_in_plan_mode();
    }
    let protection = |path: &String| protection_reason(path, policy).or_else(|| git_head_reason(path));
    if let Some(reason) = paths.iter().find_map(protection) {
        return PermissionDecision::Ask { offer: GrantOffer::default(), reason: Some(reason) };
    }
    if is_allowed || paths.iter().all(|path| may_change(policy, grants, path)) {
        return PermissionDecision::Allow;
    }
    let reason = paths.iter().find(|path| is_autorun(path)).map(|path| autorun_reason(path));
    let offer = match reason {
        Some(_) => GrantOffer::default(),
        None if are_inside => GrantOffer::for_both(Grant::Edits),
        None => GrantOffer::for_session(paths.iter().map(|path| Grant::Write(path.clone())).collect()),
    };
    PermissionDecision::Ask { offer, reason }
}

/// Whether an unprotected file may be changed without asking.
pub(super) fn may_change(policy: &EffectivePolicy<'_>, grants: &GrantSet, path: &str) -> bool {
    let edits_are_free = policy.mode == Mode::AcceptEdits || grants.contains(&Grant::Edits);
    policy.mode == Mode::Auto
        || (edits_are_free && is_inside(path, &policy.roots.work) && !is_autorun(path))
        || grants.contains(&Grant::Write(path.to_owned()))
        || policy
            .rules
            .allow
            .iter()
            .any(|rule| rule.covers_path(path, &policy.roots.work, PatternStrictness::Strict))
}

pub(super) fn autorun_reason(path: &str) -> String {
    format!("other programs run {path} automatically")
}

pub(super) fn protection_reason(path: &str, policy: &EffectivePolicy<'_>) -> Option<String> {
    is_protected(path, policy.roots, policy.files).then(|| format!("{path} is protected"))
}

fn git_head_reason(path: &str) -> Option<String> {
    is_git_head(path).then(|| {
        format!("{path} may make its directory a Git repository, whose configuration names programs")
    })
}
