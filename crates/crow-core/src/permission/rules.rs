//! What a configuration allows and forbids for good. Reads rules and matches names and paths; commands are
//! `command`'s and `deny`'s.

use std::path::{Component, Path};
use std::sync::{Arc, OnceLock};

use crate::pattern::{GlobError, LetterCase, PathGlob};
use crate::shell::{self, ShellParseError, ShellWord};

/// The rules of a configuration. Deny beats ask beats allow.
#[derive(Debug, Clone, Default)]
pub struct PermissionRules {
    /// What needs no question.
    pub allow: Vec<PermissionRule>,
    /// What is refused in every mode.
    pub deny: Vec<PermissionRule>,
}

/// One rule.
#[derive(Debug, Clone)]
pub struct PermissionRule {
    text: String,
    pub(super) covers: RuleSubject,
}

/// What a rule is about.
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

/// Longer rules are none that anyone has written.
const RULE_BYTES_MAX: usize = 4096;

/// Files by a pattern, which is checked when it is read and compiled when it is first needed: a rule of a repository
/// that nobody trusts costs nothing.
#[derive(Debug, Clone)]
pub(super) struct PathRulePattern {
    is_relative: bool,
    pattern: String,
    strict: OnceLock<Option<PathGlob>>,
    /// Does not tell upper from lower case, as some file systems.
    lenient: OnceLock<Option<PathGlob>>,
}

impl PathRulePattern {
    /// Whether a path fits. A pattern that does not compile after all forbids everything and allows nothing.
    fn matches_path(&self, path: &Path, care: PatternStrictness) -> bool {
        let (compiled, case) = match care {
            PatternStrictness::Strict => (&self.strict, LetterCase::Exact),
            PatternStrictness::Lenient => (&self.lenient, LetterCase::Either),
        };
        let compiled = compiled.get_or_init(|| PathGlob::compile(&self.pattern, case).ok());
        compiled.as_ref().map_or(care == PatternStrictness::Lenient, |glob| glob.is_match(path))
    }
}

/// How closely a pattern is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PatternStrictness {
    /// To allow.
    Strict,
    /// To forbid.
    Lenient,
}

/// A rule that cannot be meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// Nothing is named.
    #[error("names nothing")]
    Empty,
    /// It is longer than a rule can be.
    #[error("is longer than {RULE_BYTES_MAX} bytes")]
    TooLong,
    /// The pattern of a `path(…)` is broken.
    #[error("has a pattern that {0}")]
    Pattern(#[from] GlobError),
    /// A `path(…)` that leaves its folder or begins with `~`.
    #[error("must name a path below the session's folders, or a whole path")]
    Place,
    /// It ends in the `*` that other agents' rules have.
    #[error("covers whatever follows its words as it is; leave out the *")]
    Star,
    /// The words cannot be read.
    #[error("must be the words that a command begins with; it {0}")]
    Words(ShellParseError),
    /// A word is only known to the shell.
    #[error("must be plain words; put what the shell replaces in single quotes")]
    Unknown,
}

impl PermissionRule {
    /// Reads a rule: `tool(NAME)`, `mcp(SERVER)`, `path(GLOB)`, or the words that a command begins with.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let text = text.trim();
        if text.len() > RULE_BYTES_MAX {
            return Err(RuleError::TooLong);
        }
        let named = |kind: &str| {
            text.strip_prefix(kind)?.strip_prefix('(')?.strip_suffix(')').map(|name| name.trim().to_owned())
        };
        let covers = if let Some(name) = named("tool") {
            RuleSubject::Tool(name)
        } else if let Some(name) = named("mcp") {
            RuleSubject::Server(name)
        } else if let Some(pattern) = named("path") {
            RuleSubject::Path(Arc::new(parse_path_pattern(&pattern)?))
        } else {
            RuleSubject::Command(parse_command_words(text)?)
        };
        match &covers {
            RuleSubject::Tool(name) | RuleSubject::Server(name) if name.is_empty() => Err(RuleError::Empty),
            RuleSubject::Tool(_)
            | RuleSubject::Server(_)
            | RuleSubject::Path(_)
            | RuleSubject::Command(_) => Ok(Self { text: text.to_owned(), covers }),
        }
    }

    /// Shows the rule as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Tells whether the rule is about changing this file.
    pub(super) fn covers_path(&self, path: &str, roots: &[String], care: PatternStrictness) -> bool {
        let RuleSubject::Path(paths) = &self.covers else { return false };
        let path = Path::new(path);
        if !paths.is_relative {
            return paths.matches_path(path, care);
        }
        roots.iter().any(|root| path.strip_prefix(root).is_ok_and(|below| paths.matches_path(below, care)))
    }
}

fn parse_path_pattern(pattern: &str) -> Result<PathRulePattern, RuleError> {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    if pattern.is_empty() {
        return Err(RuleError::Empty);
    }
    let path = Path::new(pattern);
    if pattern.starts_with('~') || path.components().any(|part| part == Component::ParentDir) {
        return Err(RuleError::Place);
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
        return Err(RuleError::Star);
    }
    let words = shell::parse_words(text).map_err(RuleError::Words)?;
    let known: Option<Vec<String>> =
        words.iter().map(|word| ShellWord::known_text(word).map(str::to_owned)).collect();
    let known = known.ok_or(RuleError::Unknown)?;
    if known.first().is_none_or(String::is_empty) { Err(RuleError::Empty) } else { Ok(known) }
}

impl PermissionRules {
    /// Finds the rule that covers a tool by one of its names or its server.
    pub(super) fn find_tool_rule<'a>(
        rules: &'a [PermissionRule],
        names: &[&str],
        server: Option<&str>,
    ) -> Option<&'a PermissionRule> {
        rules.iter().find(|rule| match &rule.covers {
            RuleSubject::Tool(name) => names.contains(&name.as_str()),
            RuleSubject::Server(name) => server == Some(name),
            RuleSubject::Path(_) | RuleSubject::Command(_) => false,
        })
    }

    /// Whether some file must not be changed.
    pub(super) fn denies_paths(&self) -> bool {
        self.deny.iter().any(|rule| matches!(rule.covers, RuleSubject::Path(_)))
    }

    /// Shows the words of the rules about commands.
    pub(super) fn command_rules(
        rules: &[PermissionRule],
    ) -> impl Iterator<Item = (&PermissionRule, &[String])> {
        rules.iter().filter_map(|rule| match &rule.covers {
            RuleSubject::Command(words) => Some((rule, words.as_slice())),
            RuleSubject::Tool(_) | RuleSubject::Server(_) | RuleSubject::Path(_) => None,
        })
    }
}
