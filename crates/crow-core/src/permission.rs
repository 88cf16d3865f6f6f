//! Evaluates what may run without asking: from mode, rules, grants, roots and access to a decision. Requesting
//! permission is the caller's task.

mod accept_edits;
mod autorun;
mod build_programs;
mod cd_route;
mod command;
mod command_evaluation;
mod conditions;
mod denials;
mod deny_match;
mod file_lists;
mod file_writes;
mod found_reads;
mod grants;
mod harmless;
mod key_patterns;
mod paths;
mod policy;
mod prefix_table;
mod prefixes;
mod program_names;
mod protected_names;
mod protected_paths;
mod read_only;
mod reader_words;
mod readers;
mod repository_removal;
mod risk_table;
mod risks;
mod rules;
mod sandbox_gaps;
mod scripts;
mod session_grants;
mod synonyms;
mod variables;
mod written_files;

use self::accept_edits::CommandEffect;
pub use self::autorun::{
    autorun_path_ends, home_autorun_files, hook_manager_files, is_autorun_dir, is_autorun_entry,
    may_hold_autorun,
};
use self::file_writes::{evaluate_writes, protection_reason};
pub use self::grants::{Grant, GrantOffer, GrantSet, parse_prefix};
pub use self::paths::is_key_path;
use self::paths::{holds_protected, is_readable, is_secret};
pub use self::policy::{
    DirectoryLink, EffectivePolicy, EmptyFileSystem, FileLookup, Mode, PermissionDecision, SessionRoots,
};
use self::policy::{deny_by_rule, deny_in_plan_mode};
pub use self::rules::{PermissionRule, PermissionRules, RuleError};
pub use self::sandbox_gaps::{approval_source_in_sandbox, evaluate_call_in_sandbox};
pub use self::session_grants::{GrantRemoval, GrantScope, SessionGrants};
use crate::{ApprovalSource, SiteReach, ToolAccess, ToolCallInfo};

/// Evaluates a tool call by the policy, the grants and the call's access.
pub fn evaluate_call(
    policy: &EffectivePolicy<'_>,
    grants: &GrantSet,
    tool: &str,
    info: &ToolCallInfo,
) -> PermissionDecision {
    let (server, own_name) = match &info.access {
        ToolAccess::Calls { server, tool } => (Some(server.as_str()), tool.as_str()),
        ToolAccess::Nothing | ToolAccess::Reads(_) | ToolAccess::Writes(_) | ToolAccess::Runs(_) => {
            (None, tool)
        }
        ToolAccess::Fetches { .. } | ToolAccess::Searches => (None, tool),
    };
    // A deny rule also matches the server's own name of a tool. An allow rule matches only the name that the model
    // sees, since a server may use any name.
    if let Some(rule) = PermissionRules::find_tool_rule(&policy.rules.deny, &[tool, own_name], server) {
        return deny_by_rule(rule);
    }
    let is_allowed = PermissionRules::find_tool_rule(&policy.rules.allow, &[tool], server).is_some();
    match &info.access {
        ToolAccess::Nothing => PermissionDecision::Allow,
        ToolAccess::Reads(paths) => {
            let is_free = |path: &String| {
                policy.mode == Mode::Auto
                    || is_readable(path, policy.roots)
                    || (is_allowed && !is_secret(path, policy.roots))
                    || grants.contains(&Grant::Read(path.clone()))
            };
            let unapproved_paths: Vec<&String> = paths.iter().filter(|path| !is_free(path)).collect();
            let Some(first) = unapproved_paths.first() else { return PermissionDecision::Allow };
            let holds_keys =
                |path: &&String| is_secret(path, policy.roots) || holds_protected(path, policy.roots);
            let offer = match unapproved_paths.iter().any(holds_keys) {
                true => GrantOffer::default(),
                false => GrantOffer::for_session(
                    unapproved_paths.iter().map(|path| Grant::Read((*path).clone())).collect(),
                ),
            };
            PermissionDecision::Ask { offer, reason: protection_reason(first, policy) }
        }
        ToolAccess::Writes(paths) => evaluate_writes(policy, grants, paths, is_allowed),
        ToolAccess::Runs(line) => command::evaluate_line(policy, grants, tool, line),
        ToolAccess::Calls { server, tool } => {
            let grant = Grant::Tool { server: server.clone(), tool: tool.clone() };
            match policy.mode {
                _ if is_allowed => PermissionDecision::Allow,
                Mode::Plan => deny_in_plan_mode(),
                Mode::Auto => PermissionDecision::Allow,
                Mode::Ask | Mode::AcceptEdits if grants.contains(&grant) => PermissionDecision::Allow,
                Mode::Ask | Mode::AcceptEdits => {
                    PermissionDecision::Ask { offer: GrantOffer::for_both(grant), reason: None }
                }
            }
        }
        ToolAccess::Fetches { site, reach: SiteReach::Private } => {
            // Content of a web page must not reach local services that trust their network.
            let grant = Grant::Site(site.clone());
            if grants.contains(&grant) {
                return PermissionDecision::Allow;
            }
            let reason = format!("{site} is not on the public internet");
            PermissionDecision::Ask { offer: GrantOffer::for_session(vec![grant]), reason: Some(reason) }
        }
        ToolAccess::Fetches { site, reach: SiteReach::Public } => {
            evaluate_lookup(policy, grants, Grant::Site(site.clone()), is_allowed)
        }
        ToolAccess::Searches => evaluate_lookup(policy, grants, Grant::WebSearch, is_allowed),
    }
}

/// Returns the approval source of an allowed call. A grant for commands that run the project's code replaces the
/// question, not the sandbox.
pub fn approval_source(
    policy: &EffectivePolicy<'_>,
    grants: &GrantSet,
    tool: &str,
    info: &ToolCallInfo,
) -> ApprovalSource {
    let effect = match &info.access {
        ToolAccess::Runs(line) => command::line_effect(policy, line),
        ToolAccess::Nothing | ToolAccess::Reads(_) | ToolAccess::Writes(_) => None,
        ToolAccess::Calls { .. } | ToolAccess::Fetches { .. } | ToolAccess::Searches => None,
    };
    let sandboxed_grants = grants.sandboxed_only();
    let is_allowed = |mode| {
        evaluate_call(&EffectivePolicy { mode, ..*policy }, &sandboxed_grants, tool, info)
            == PermissionDecision::Allow
    };
    let policy_source = |mode| {
        let no_grants = GrantSet::default();
        let is_allowed_by_policy = sandboxed_grants.is_empty()
            || evaluate_call(&EffectivePolicy { mode, ..*policy }, &no_grants, tool, info)
                == PermissionDecision::Allow;
        if is_allowed_by_policy { ApprovalSource::Policy } else { ApprovalSource::ProjectCodeGrant }
    };
    match effect {
        Some(CommandEffect::Reads) => ApprovalSource::ReadOnlyCommand,
        // A rule applies before the mode.
        Some(_) if policy.mode == Mode::AcceptEdits && is_allowed(Mode::Ask) => policy_source(Mode::Ask),
        _ if !is_allowed(policy.mode) => ApprovalSource::User,
        Some(CommandEffect::Edits) if policy.mode == Mode::AcceptEdits => ApprovalSource::EditCommand,
        Some(CommandEffect::Builds) if policy.mode == Mode::AcceptEdits => ApprovalSource::BuildCommand,
        Some(CommandEffect::Edits | CommandEffect::Builds) | None => policy_source(policy.mode),
    }
}

/// Evaluates a call that only reads but sends a query outside: `plan` also asks.
fn evaluate_lookup(
    policy: &EffectivePolicy<'_>,
    grants: &GrantSet,
    grant: Grant,
    is_allowed: bool,
) -> PermissionDecision {
    if is_allowed || policy.mode == Mode::Auto || grants.contains(&grant) {
        return PermissionDecision::Allow;
    }
    PermissionDecision::Ask { offer: GrantOffer::for_both(grant), reason: None }
}

#[cfg(test)]
mod tests;
