//! The inputs of an evaluation and its decision, as values.

use std::path::{Path, PathBuf};

use super::grants::GrantOffer;
use super::rules::{PatternStrictness, PermissionRule, PermissionRules};

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

    /// Returns the one of two modes that allows less.
    pub fn stricter(self, other: Self) -> Self {
        let rank = |mode| match mode {
            Self::Plan => 0,
            Self::Ask => 1,
            Self::AcceptEdits => 2,
            Self::Auto => 3,
        };
        if rank(other) < rank(self) { other } else { self }
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

pub(super) fn denying_path_rule<'a>(policy: &EffectivePolicy<'a>, path: &str) -> Option<&'a PermissionRule> {
    policy
        .rules
        .deny
        .iter()
        .find(|rule| rule.covers_path(path, &policy.roots.work, PatternStrictness::Lenient))
}

pub(super) fn deny_by_rule(rule: &PermissionRule) -> PermissionDecision {
    PermissionDecision::Deny(format!("the configuration forbids it with the deny rule `{}`", rule.as_str()))
}

pub(super) fn deny_in_plan_mode() -> PermissionDecision {
    PermissionDecision::Deny("plan mode only reads; switch the mode to change or run something".into())
}
