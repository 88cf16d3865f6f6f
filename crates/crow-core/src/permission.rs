//! Evaluates what may run without asking: from mode, rules, grants, roots and access to a decision. Requesting
//! permission is the caller's task.

mod accept_edits;
mod autorun;
mod build_programs;
mod cd_route;
mod command;
mod denials;
mod deny_match;
mod grants;
mod harmless;
mod paths;
mod prefixes;
mod protected_names;
mod protected_paths;
mod read_only;
mod readers;
mod risk_table;
mod risks;
mod rules;
mod sandbox_gaps;
mod scripts;
mod synonyms;
mod variables;
mod written_files;

use std::path::{Path, PathBuf};

use self::accept_edits::CommandEffect;
use self::autorun::is_autorun;
pub use self::autorun::{
    home_autorun_files, hook_manager_files, is_autorun_dir, is_autorun_entry, may_hold_autorun,
};
pub use self::grants::{Grant, GrantOffer, GrantSet};
pub use self::paths::is_key_path;
use self::paths::{holds_protected, is_inside, is_protected, is_readable, is_secret};
use self::rules::PatternStrictness;
pub use self::rules::{PermissionRule, PermissionRules, RuleError};
pub use self::sandbox_gaps::{approval_source_in_sandbox, evaluate_call_in_sandbox};
use crate::{ApprovalSource, SiteReach, ToolAccess, ToolCallInfo};

/// The agent's rights without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Reading inside the roots is free, everything else asks.
    #[default]
    Ask,
    /// Edits inside the roots are also free, and known builds and tests in a sandbox.
    AcceptEdits,
    /// Reading only; writing and running is denied.
    Plan,
    /// Everything is allowed.
    Auto,
}

impl Mode {
    /// All modes, in display order.
    pub const ALL: [Self; 4] = [Self::Ask, Self::AcceptEdits, Self::Plan, Self::Auto];

    /// Returns the configuration word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::AcceptEdits => "accept-edits",
            Self::Plan => "plan",
            Self::Auto => "auto",
        }
    }

    /// Parses a configuration word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == text)
    }

    /// Describes the mode in one line.
    pub fn description(self) -> &'static str {
        match self {
            Self::Ask => "reads freely, asks before it changes or runs anything",
            Self::AcceptEdits => "edits, builds and tests the project freely, asks before anything else",
            Self::Plan => "reads only",
            Self::Auto => "does everything without asking",
        }
    }
}

/// The decision about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionDecision {
    /// Run the call.
    Allow,
    /// Ask the user.
    Ask {
        /// The grants offered beyond this call.
        offer: GrantOffer,
        /// The reason to ask, with the call as its subject.
        reason: Option<String>,
    },
    /// Do not run the call, with the reason.
    Deny(String),
}

/// The directories of a session, with links resolved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionRoots {
    /// The working directories.
    pub work: Vec<String>,
    /// Other readable directories, such as the output of its own commands.
    pub readable: Vec<String>,
    /// Crow's configuration with its keys, also inside other roots: changes always ask, reading asks except in
    /// `auto`.
    pub protected: Vec<String>,
    /// Git directories outside a `.git`: changes always ask.
    pub repository: Vec<String>,
}

/// The policy for a call.
#[derive(Clone, Copy)]
pub struct EffectivePolicy<'a> {
    /// The session's mode.
    pub mode: Mode,
    /// The configuration's rules.
    pub rules: &'a PermissionRules,
    /// The session's directories; commands start in the first one.
    pub roots: &'a SessionRoots,
    /// Resolves the links in a path.
    pub resolve: &'a dyn Fn(&Path) -> PathBuf,
}

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
            PermissionDecision::Ask { offer, reason: protection_reason(first, policy.roots) }
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

fn evaluate_writes(
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
    if let Some(path) = paths.iter().find(|path| is_protected(path, policy.roots)) {
        return PermissionDecision::Ask {
            offer: GrantOffer::default(),
            reason: protection_reason(path, policy.roots),
        };
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
fn may_change(policy: &EffectivePolicy<'_>, grants: &GrantSet, path: &str) -> bool {
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

fn autorun_reason(path: &str) -> String {
    format!("other programs run {path} automatically")
}

fn denying_path_rule<'a>(policy: &EffectivePolicy<'a>, path: &str) -> Option<&'a PermissionRule> {
    policy
        .rules
        .deny
        .iter()
        .find(|rule| rule.covers_path(path, &policy.roots.work, PatternStrictness::Lenient))
}

fn protection_reason(path: &str, roots: &SessionRoots) -> Option<String> {
    is_protected(path, roots).then(|| format!("{path} is protected"))
}

fn deny_by_rule(rule: &PermissionRule) -> PermissionDecision {
    PermissionDecision::Deny(format!("the configuration forbids it with the deny rule `{}`", rule.as_str()))
}

fn deny_in_plan_mode() -> PermissionDecision {
    PermissionDecision::Deny("plan mode only reads; switch the mode to change or run something".into())
}

#[cfg(test)]
mod tests;
