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
    /// Git directories other than a plain `.git`, and parts of those that a directory may become: changes always ask.
    pub repository: Vec<String>,
}

/// A link in a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirectoryLink {
    /// Its name in the directory.
    pub name: String,
    /// The path to which it leads, with all links resolved.
    pub target: PathBuf,
}

/// The file system, as far as a decision depends on it.
pub trait FileLookup {
    /// Resolves the links in a path.
    fn resolve_links(&self, path: &Path) -> PathBuf;

    /// Returns the links in a directory, not below it. `None` if the directory cannot be read or has too many entries.
    fn links_in(&self, directory: &Path) -> Option<Vec<DirectoryLink>>;

    /// Whether Git may find a repository in this very directory.
    fn may_be_repository(&self, directory: &Path) -> bool;

    /// Whether a directory may be a repository without a working tree: it has a `HEAD` that is no directory.
    fn has_git_head(&self, directory: &Path) -> bool;
}

/// A file system in which nothing exists: paths are as they are written.
#[derive(Debug, Clone, Copy)]
pub struct EmptyFileSystem;

impl FileLookup for EmptyFileSystem {
    fn resolve_links(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }

    fn links_in(&self, _directory: &Path) -> Option<Vec<DirectoryLink>> {
        Some(Vec::new())
    }

    fn may_be_repository(&self, _directory: &Path) -> bool {
        false
    }

    fn has_git_head(&self, _directory: &Path) -> bool {
        false
    }
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
    /// The file system.
    pub files: &'a dyn FileLookup,
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
