//! Permission rules of the configuration. Parses rules and matches names and paths; `command` and `deny_match` match
//! commands.

use std::path::{Component, Path};
use std::sync::{Arc, OnceLock};

use crate::pattern::{GlobError, LetterCase, PathGlob};
use crate::shell::{self, ShellParseError, ShellWord};

/// The rules of a configuration. A denial takes precedence.
#[derive(Debug, Clone, Default)]
pub struct PermissionRules {
    /// Rules that allow without asking.
    pub allow: Vec<PermissionRule>,
    /// Rules that deny in every mode.
    pub deny: Vec<PermissionRule>,
}

/// A permission rule.
#[derive(Debug, Clone)]
pub struct PermissionRule {
    text: String,
    pub(super) subject: RuleSubject,
}

/// The subject of a rule.
#[derive(Debug, Clone)]
pub(super) enum RuleSubject {
    /// A tool by its name.
    Tool(String),
    /// All tools of an MCP server.
    Server(String),
    /// Changes of files.
    Path(Arc<PathRulePattern>),
    /// Commands that begin with these words.
    Command(Vec<String>),
}

/// Longer than any handwritten rule.
const RULE_BYTES_MAX: usize = 4096;

/// A path pattern, checked when parsed and compiled when first used: rules of an untrusted repository cost nothing.
#[derive(Debug, Clone)]
pub(super) struct PathRulePattern {
    is_relative: bool,
    pattern: String,
    strict: OnceLock<Option<PathGlob>>,
    /// Case-insensitive, as some file systems.
    lenient: OnceLock<Option<PathGlob>>,
}

impl PathRulePattern {
    /// Whether a path matches. A pattern that fails to compile denies everything and allows nothing.
    fn matches_path(&self, path: &Path, strictness: PatternStrictness) -> bool {
        let (compiled, case) = match strictness {
            PatternStrictness::Strict => (&self.strict, LetterCase::Sensitive),
            PatternStrictness::Lenient => (&self.lenient, LetterCase::Insensitive),
        };
        let compiled = compiled.get_or_init(|| PathGlob::compile(&self.pattern, case).ok());
        compiled.as_ref().map_or(strictness == PatternStrictness::Lenient, |glob| glob.is_match(path))
    }
}

/// The strictness of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PatternStrictness {
    /// For allow rules.
    Strict,
    /// For deny rules.
    Lenient,
}

/// An invalid rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// An empty name.
    #[error("names nothing")]
    Empty,
    /// It is longer than any rule.
    #[error("is longer than {RULE_BYTES_MAX} bytes")]
    TooLong,
    /// The pattern of a `path(…)` is invalid.
    #[error("has a pattern that {0}")]
    InvalidPattern(#[from] GlobError),
    /// A `path(…)` that leaves its directory or begins with `~`.
    #[error("must be a path below the session's directories, or an absolute path")]
    PathOutside,
    /// It ends in `*`, as rules of other agents do.
    #[error("already covers any further words; remove the *")]
    TrailingStar,
    /// The words cannot be parsed.
    #[error("must be the first words of a command; it {0}")]
    InvalidCommand(ShellParseError),
    /// A word needs expansion by the shell.
    #[error("must be literal words; put text that the shell expands in single quotes")]
    ShellExpansion,
}

impl PermissionRule {
    /// Parses a rule: `tool(NAME)`, `mcp(SERVER)`, `path(GLOB)`, or the first words of a command.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let text = text.trim();
        if text.len() > RULE_BYTES_MAX {
            return Err(RuleError::TooLong);
        }
        let argument_of = |kind: &str| {
            text.strip_prefix(kind)?.strip_prefix('(')?.strip_suffix(')').map(|name| name.trim().to_owned())
        };
        let subject = if let Some(name) = argument_of("tool") {
            RuleSubject::Tool(name)
        } else if let Some(name) = argument_of("mcp") {
            RuleSubject::Server(name)
        } else if let Some(pattern) = argument_of("path") {
            RuleSubject::Path(Arc::new(parse_path_pattern(&pattern)?))
        } else {
            RuleSubject::Command(parse_command_words(text)?)
        };
        match &subject {
            RuleSubject::Tool(name) | RuleSubject::Server(name) if name.is_empty() => Err(RuleError::Empty),
            RuleSubject::Tool(_)
            | RuleSubject::Server(_)
            | RuleSubject::Path(_)
            | RuleSubject::Command(_) => Ok(Self { text: text.to_owned(), subject }),
        }
    }

    /// Returns the rule as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the rule covers a change of this file.
    pub(super) fn covers_path(&self, path: &str, roots: &[String], strictness: PatternStrictness) -> bool {
        let RuleSubject::Path(paths) = &self.subject else { return false };
        let path = Path::new(path);
        if !paths.is_relative {
            return paths.matches_path(path, strictness);
        }
        roots
            .iter()
            .any(|root| path.strip_prefix(root).is_ok_and(|below| paths.matches_path(below, strictness)))
    }
}

fn parse_path_pattern(pattern: &str) -> Result<PathRulePattern, RuleError> {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    if pattern.is_empty() {
        return Err(RuleError::Empty);
    }
    let path = Path::new(pattern);
    if pattern.starts_with('~') || path.components().any(|part| part == Component::ParentDir) {
        return Err(RuleError::PathOutside);
    }
    PathGlob::check_pattern(pattern)?;
    Ok(PathRulePattern {
        is_relative: path.is_relative(),
        pattern: pattern.to_owned(),
        strict: OnceLock::new(),
        lenient: OnceLock::new(),
    })
}

fn parse_command_words(text: &str) -> Result<Vec<String>, RuleError> {
    if text.is_empty() {
        return Err(RuleError::Empty);
    }
    if text.ends_with(" *") || text.ends_with(":*") {
        return Err(RuleError::TrailingStar);
    }
    let words = shell::parse_words(text).map_err(RuleError::InvalidCommand)?;
    let known: Option<Vec<String>> =
        words.iter().map(|word| ShellWord::known_text(word).map(str::to_owned)).collect();
    let known = known.ok_or(RuleError::ShellExpansion)?;
    if known.first().is_none_or(String::is_empty) { Err(RuleError::Empty) } else { Ok(known) }
}

impl PermissionRules {
    /// Finds a rule that covers a tool by one of its names or its server.
    pub(super) fn find_tool_rule<'a>(
        rules: &'a [PermissionRule],
        names: &[&str],
        server: Option<&str>,
    ) -> Option<&'a PermissionRule> {
        rules.iter().find(|rule| match &rule.subject {
            RuleSubject::Tool(name) => names.contains(&name.as_str()),
            RuleSubject::Server(name) => server == Some(name),
            RuleSubject::Path(_) | RuleSubject::Command(_) => false,
        })
    }

    /// Whether any rule denies changes of files.
    pub(super) fn denies_paths(&self) -> bool {
        self.deny.iter().any(|rule| matches!(rule.subject, RuleSubject::Path(_)))
    }

    /// Returns the command rules with their words.
    pub(super) fn command_rules(
        rules: &[PermissionRule],
    ) -> impl Iterator<Item = (&PermissionRule, &[String])> {
        rules.iter().filter_map(|rule| match &rule.subject {
            RuleSubject::Command(words) => Some((rule, words.as_slice())),
            RuleSubject::Tool(_) | RuleSubject::Server(_) | RuleSubject::Path(_) => None,
        })
    }
}
