//! What a configuration allows and forbids for good. Reads rules and matches names and paths; commands are
//! `command`'s and `deny`'s.

use std::path::{Component, Path};
use std::sync::{Arc, OnceLock};

use crate::pattern::{BadGlob, LetterCase, PathGlob};
use crate::shell::{self, NotUnderstood, Word};

/// The rules of a configuration. Deny beats ask beats allow.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// What needs no question.
    pub allow: Vec<Rule>,
    /// What is refused in every mode.
    pub deny: Vec<Rule>,
}

/// One rule.
#[derive(Debug, Clone)]
pub struct Rule {
    text: String,
    pub(super) covers: Covers,
}

/// What a rule is about.
#[derive(Debug, Clone)]
pub(super) enum Covers {
    /// A tool by its name.
    Tool(String),
    /// All tools of an MCP server.
    Server(String),
    /// Changes of files.
    Path(Arc<Paths>),
    /// Commands that begin with these words.
    Command(Vec<String>),
}

/// Longer rules are none that anyone has written.
const RULE_BYTES_MAX: usize = 4096;

/// Files by a pattern, which is checked when it is read and compiled when it is first needed: a rule of a repository
/// that nobody trusts costs nothing.
#[derive(Debug, Clone)]
pub(super) struct Paths {
    is_relative: bool,
    pattern: String,
    strict: OnceLock<Option<PathGlob>>,
    /// Does not tell upper from lower case, as some file systems.
    lenient: OnceLock<Option<PathGlob>>,
}

impl Paths {
    /// Whether a path fits. A pattern that does not compile after all forbids everything and allows nothing.
    fn fits(&self, path: &Path, care: Care) -> bool {
        let (compiled, case) = match care {
            Care::Strict => (&self.strict, LetterCase::Exact),
            Care::Lenient => (&self.lenient, LetterCase::Either),
        };
        let compiled = compiled.get_or_init(|| PathGlob::compile(&self.pattern, case).ok());
        compiled.as_ref().map_or(care == Care::Lenient, |glob| glob.is_match(path))
    }
}

/// How closely a pattern is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Care {
    /// To allow.
    Strict,
    /// To forbid.
    Lenient,
}

/// A rule that cannot be meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRule {
    /// Nothing is named.
    #[error("names nothing")]
    Empty,
    /// It is longer than a rule can be.
    #[error("is longer than {RULE_BYTES_MAX} bytes")]
    TooLong,
    /// The pattern of a `path(…)` is broken.
    #[error("has a pattern that {0}")]
    Pattern(#[from] BadGlob),
    /// A `path(…)` that leaves its folder or begins with `~`.
    #[error("must name a path below the session's folders, or a whole path")]
    Place,
    /// It ends in the `*` that other agents' rules have.
    #[error("covers whatever follows its words as it is; leave out the *")]
    Star,
    /// The words cannot be read.
    #[error("must be the words that a command begins with; it {0}")]
    Words(NotUnderstood),
    /// A word is only known to the shell.
    #[error("must be plain words; put what the shell replaces in single quotes")]
    Unknown,
}

impl Rule {
    /// Reads a rule: `tool(NAME)`, `mcp(SERVER)`, `path(GLOB)`, or the words that a command begins with.
    pub fn parse(text: &str) -> Result<Self, BadRule> {
        let text = text.trim();
        if text.len() > RULE_BYTES_MAX {
            return Err(BadRule::TooLong);
        }
        let named = |kind: &str| {
            text.strip_prefix(kind)?.strip_prefix('(')?.strip_suffix(')').map(|name| name.trim().to_owned())
        };
        let covers = if let Some(name) = named("tool") {
            Covers::Tool(name)
        } else if let Some(name) = named("mcp") {
            Covers::Server(name)
        } else if let Some(pattern) = named("path") {
            Covers::Path(Arc::new(paths(&pattern)?))
        } else {
            Covers::Command(command(text)?)
        };
        match &covers {
            Covers::Tool(name) | Covers::Server(name) if name.is_empty() => Err(BadRule::Empty),
            Covers::Tool(_) | Covers::Server(_) | Covers::Path(_) | Covers::Command(_) => {
                Ok(Self { text: text.to_owned(), covers })
            }
        }
    }

    /// Shows the rule as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Tells whether the rule is about changing this file.
    pub(super) fn covers_path(&self, path: &str, roots: &[String], care: Care) -> bool {
        let Covers::Path(paths) = &self.covers else { return false };
        let path = Path::new(path);
        if !paths.is_relative {
            return paths.fits(path, care);
        }
        roots.iter().any(|root| path.strip_prefix(root).is_ok_and(|below| paths.fits(below, care)))
    }
}

fn paths(pattern: &str) -> Result<Paths, BadRule> {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    if pattern.is_empty() {
        return Err(BadRule::Empty);
    }
    let path = Path::new(pattern);
    if pattern.starts_with('~') || path.components().any(|part| part == Component::ParentDir) {
        return Err(BadRule::Place);
    }
    PathGlob::check(pattern)?;
    Ok(Paths {
        is_relative: path.is_relative(),
        pattern: pattern.to_owned(),
        strict: OnceLock::new(),
        lenient: OnceLock::new(),
    })
}

fn command(text: &str) -> Result<Vec<String>, BadRule> {
    if text.is_empty() {
        return Err(BadRule::Empty);
    }
    if text.ends_with(" *") || text.ends_with(":*") {
        return Err(BadRule::Star);
    }
    let words = shell::words(text).map_err(BadRule::Words)?;
    let known: Option<Vec<String>> = words.iter().map(|word| Word::whole(word).map(str::to_owned)).collect();
    let known = known.ok_or(BadRule::Unknown)?;
    if known.first().is_none_or(String::is_empty) { Err(BadRule::Empty) } else { Ok(known) }
}

impl Rules {
    /// Finds the rule that covers a tool by one of its names or its server.
    pub(super) fn tool<'a>(rules: &'a [Rule], names: &[&str], server: Option<&str>) -> Option<&'a Rule> {
        rules.iter().find(|rule| match &rule.covers {
            Covers::Tool(name) => names.contains(&name.as_str()),
            Covers::Server(name) => server == Some(name),
            Covers::Path(_) | Covers::Command(_) => false,
        })
    }

    /// Whether some file must not be changed.
    pub(super) fn denies_paths(&self) -> bool {
        self.deny.iter().any(|rule| matches!(rule.covers, Covers::Path(_)))
    }

    /// Shows the words of the rules about commands.
    pub(super) fn commands(rules: &[Rule]) -> impl Iterator<Item = (&Rule, &[String])> {
        rules.iter().filter_map(|rule| match &rule.covers {
            Covers::Command(words) => Some((rule, words.as_slice())),
            Covers::Tool(_) | Covers::Server(_) | Covers::Path(_) => None,
        })
    }
}
