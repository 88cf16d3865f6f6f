//! Who may do what without asking. One question, one answer; asking is somebody else's work.

mod accepted;
mod autorun;
mod builders;
mod command;
mod denials;
mod deny;
mod equal;
mod folders;
mod grants;
mod harmless;
mod names;
mod paths;
mod prefixes;
mod programs;
mod protected;
mod readers;
mod reading;
mod risks;
mod rules;
mod sandboxed;
mod scripts;
mod variables;
mod written;

use std::path::{Path, PathBuf};

use self::accepted::CommandEffect;
use self::autorun::is_autorun;
pub use self::autorun::{
    home_autorun_files, hook_manager_files, is_autorun_entry, is_autorun_folder, may_hold_autorun,
};
pub use self::grants::{Grant, GrantOffer, GrantSet};
pub use self::paths::is_key_path;
use self::paths::{holds_protected, is_inside, is_protected, is_readable, is_secret};
use self::rules::PatternStrictness;
pub use self::rules::{PermissionRule, PermissionRules, RuleError};
pub use self::sandboxed::{approval_source_in_sandbox, evaluate_call_in_sandbox};
use crate::{ApprovalSource, SiteReach, ToolAccess, ToolCallInfo};

/// How much the agent may do on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Reading inside the roots is free, everything else asks.
    #[default]
    Ask,
    /// Edits inside the roots are free as well, and known builds and tests where a sandbox holds them.
    AcceptEdits,
    /// Reading only; whatever writes or runs is refused.
    Plan,
    /// Everything is allowed.
    Auto,
}

impl Mode {
    /// Every mode, in the order shown.
    pub const ALL: [Self; 4] = [Self::Ask, Self::AcceptEdits, Self::Plan, Self::Auto];

    /// Spells the mode.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::AcceptEdits => "accept-edits",
            Self::Plan => "plan",
            Self::Auto => "auto",
        }
    }

    /// Reads a mode.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == text)
    }

    /// Says in one line what the mode means.
    pub fn description(self) -> &'static str {
        match self {
            Self::Ask => "reads freely, asks before it changes or runs anything",
            Self::AcceptEdits => "edits, builds and tests the project freely, asks before anything else",
            Self::Plan => "reads only",
            Self::Auto => "does everything without asking",
        }
    }
}

/// What the judge says of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionDecision {
    /// Run it.
    Allow,
    /// Ask the person.
    Ask {
        /// What a yes may be remembered as beyond this call.
        offer: GrantOffer,
        /// What speaks against just running it, with the call as subject.
        why: Option<String>,
    },
    /// Do not run it, and say why.
    Deny(String),
}

/// The folders a session knows, resolved through links.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionRoots {
    /// Where it works.
    pub work: Vec<String>,
    /// Where it may read as well, such as the output of its own commands.
    pub readable: Vec<String>,
    /// The configuration with its keys, inside the others too: changes ask each time, reading except in `auto`.
    pub protected: Vec<String>,
    /// Where repositories keep themselves when that is not below a `.git`: changes ask each time.
    pub repository: Vec<String>,
}

/// What holds for a call, whoever makes it.
#[derive(Clone, Copy)]
pub struct EffectivePolicy<'a> {
    /// The session's mode.
    pub mode: Mode,
    /// The configuration's rules.
    pub rules: &'a PermissionRules,
    /// The session's folders; commands begin in the first one.
    pub roots: &'a SessionRoots,
    /// Follows the links in a path.
    pub resolve: &'a dyn Fn(&Path) -> PathBuf,
}

/// Judges a call of a tool by the law, what was granted, and what it would touch.
pub fn evaluate_call(
    law: &EffectivePolicy<'_>,
    grants: &GrantSet,
    tool: &str,
    facets: &ToolCallInfo,
) -> PermissionDecision {
    let (server, own_name) = match &facets.touch {
        ToolAccess::Calls { server, tool } => (Some(server.as_str()), tool.as_str()),
        ToolAccess::Nothing | ToolAccess::Reads(_) | ToolAccess::Writes(_) | ToolAccess::Runs(_) => {
            (None, tool)
        }
        ToolAccess::Fetches { .. } | ToolAccess::Searches => (None, tool),
    };
    // To forbid, the name that the server itself gives counts as well. To allow, only what the model sees does: a
    // server may call its tools by any name.
    if let Some(rule) = PermissionRules::find_tool_rule(&law.rules.deny, &[tool, own_name], server) {
        return deny_by_rule(rule);
    }
    let is_allowed = PermissionRules::find_tool_rule(&law.rules.allow, &[tool], server).is_some();
    match &facets.touch {
        ToolAccess::Nothing => PermissionDecision::Allow,
        ToolAccess::Reads(paths) => {
            let is_free = |path: &String| {
                law.mode == Mode::Auto
                    || is_readable(path, law.roots)
                    || (is_allowed && !is_secret(path, law.roots))
                    || grants.contains(&Grant::Read(path.clone()))
            };
            let asked: Vec<&String> = paths.iter().filter(|path| !is_free(path)).collect();
            let Some(first) = asked.first() else { return PermissionDecision::Allow };
            let holds_keys = |path: &&String| is_secret(path, law.roots) || holds_protected(path, law.roots);
            let offer = match asked.iter().any(holds_keys) {
                true => GrantOffer::default(),
                false => {
                    GrantOffer::for_session(asked.iter().map(|path| Grant::Read((*path).clone())).collect())
                }
            };
            PermissionDecision::Ask { offer, why: protection_reason(first, law.roots) }
        }
        ToolAccess::Writes(paths) => evaluate_writes(law, grants, paths, is_allowed),
        ToolAccess::Runs(line) => command::evaluate_line(law, grants, tool, line),
        ToolAccess::Calls { server, tool } => {
            let grant = Grant::Tool { server: server.clone(), tool: tool.clone() };
            match law.mode {
                _ if is_allowed => PermissionDecision::Allow,
                Mode::Plan => deny_in_plan_mode(),
                Mode::Auto => PermissionDecision::Allow,
                Mode::Ask | Mode::AcceptEdits if grants.contains(&grant) => PermissionDecision::Allow,
                Mode::Ask | Mode::AcceptEdits => {
                    PermissionDecision::Ask { offer: GrantOffer::for_both(grant), why: None }
                }
            }
        }
        ToolAccess::Fetches { site, reach: SiteReach::Private } => {
            // What a page in the web said must not reach services that trust whoever is near.
            let grant = Grant::Site(site.clone());
            if grants.contains(&grant) {
                return PermissionDecision::Allow;
            }
            let why = format!("{site} is not on the public internet");
            PermissionDecision::Ask { offer: GrantOffer::for_session(vec![grant]), why: Some(why) }
        }
        ToolAccess::Fetches { site, reach: SiteReach::Public } => {
            evaluate_lookup(law, grants, Grant::Site(site.clone()), is_allowed)
        }
        ToolAccess::Searches => evaluate_lookup(law, grants, Grant::Searches, is_allowed),
    }
}

/// Returns who approved a call that may run. A grant of what runs the project's code frees it from the question and not
/// from the sandbox.
pub fn approval_source(
    law: &EffectivePolicy<'_>,
    grants: &GrantSet,
    tool: &str,
    facets: &ToolCallInfo,
) -> ApprovalSource {
    let effect = match &facets.touch {
        ToolAccess::Runs(line) => command::line_effect(law, line),
        ToolAccess::Nothing | ToolAccess::Reads(_) | ToolAccess::Writes(_) => None,
        ToolAccess::Calls { .. } | ToolAccess::Fetches { .. } | ToolAccess::Searches => None,
    };
    let held = grants.sandboxed_only();
    let is_allowed = |mode| {
        evaluate_call(&EffectivePolicy { mode, ..*law }, &held, tool, facets) == PermissionDecision::Allow
    };
    let by = |mode| {
        let no_grants = GrantSet::default();
        let is_ruled = held.is_empty()
            || evaluate_call(&EffectivePolicy { mode, ..*law }, &no_grants, tool, facets)
                == PermissionDecision::Allow;
        if is_ruled { ApprovalSource::Law } else { ApprovalSource::Lasting }
    };
    match effect {
        Some(CommandEffect::Reads) => ApprovalSource::Reading,
        // What a rule allows runs as the rule has it.
        Some(_) if law.mode == Mode::AcceptEdits && is_allowed(Mode::Ask) => by(Mode::Ask),
        _ if !is_allowed(law.mode) => ApprovalSource::Person,
        Some(CommandEffect::Edits) if law.mode == Mode::AcceptEdits => ApprovalSource::Editing,
        Some(CommandEffect::Builds) if law.mode == Mode::AcceptEdits => ApprovalSource::Building,
        Some(CommandEffect::Edits | CommandEffect::Builds) | None => by(law.mode),
    }
}

/// Judges what only reads, but tells the outside what is read: `plan` asks as well.
fn evaluate_lookup(
    law: &EffectivePolicy<'_>,
    grants: &GrantSet,
    grant: Grant,
    is_allowed: bool,
) -> PermissionDecision {
    if is_allowed || law.mode == Mode::Auto || grants.contains(&grant) {
        return PermissionDecision::Allow;
    }
    PermissionDecision::Ask { offer: GrantOffer::for_both(grant), why: None }
}

fn evaluate_writes(
    law: &EffectivePolicy<'_>,
    grants: &GrantSet,
    paths: &[String],
    is_allowed: bool,
) -> PermissionDecision {
    if let Some(rule) = paths.iter().find_map(|path| denying_path_rule(law, path)) {
        return deny_by_rule(rule);
    }
    let are_inside = paths.iter().all(|path| is_inside(path, &law.roots.work));
    if law.mode == Mode::Plan {
        return deny_in_plan_mode();
    }
    if let Some(path) = paths.iter().find(|path| is_protected(path, law.roots)) {
        return PermissionDecision::Ask {
            offer: GrantOffer::default(),
            why: protection_reason(path, law.roots),
        };
    }
    if is_allowed || paths.iter().all(|path| may_change(law, grants, path)) {
        return PermissionDecision::Allow;
    }
    let why = paths.iter().find(|path| is_autorun(path)).map(|path| autorun_reason(path));
    let offer = match why {
        Some(_) => GrantOffer::default(),
        None if are_inside => GrantOffer::for_both(Grant::Edits),
        None => GrantOffer::for_session(paths.iter().map(|path| Grant::Write(path.clone())).collect()),
    };
    PermissionDecision::Ask { offer, why }
}

/// Tells whether a file that is not protected may be changed without a question.
fn may_change(law: &EffectivePolicy<'_>, grants: &GrantSet, path: &str) -> bool {
    let edits_are_free = law.mode == Mode::AcceptEdits || grants.contains(&Grant::Edits);
    law.mode == Mode::Auto
        || (edits_are_free && is_inside(path, &law.roots.work) && !is_autorun(path))
        || grants.contains(&Grant::Write(path.to_owned()))
        || law
            .rules
            .allow
            .iter()
            .any(|rule| rule.covers_path(path, &law.roots.work, PatternStrictness::Strict))
}

fn autorun_reason(path: &str) -> String {
    format!("other programs run what is in {path} by themselves")
}

fn denying_path_rule<'a>(law: &EffectivePolicy<'a>, path: &str) -> Option<&'a PermissionRule> {
    law.rules.deny.iter().find(|rule| rule.covers_path(path, &law.roots.work, PatternStrictness::Lenient))
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
