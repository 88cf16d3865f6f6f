//! What a configuration allows and forbids for good. Reads rules and matches names and paths; commands are
//! `command`'s and `deny`'s.

use std::path::{Component, Path};

use globset::{GlobBuilder, GlobMatcher};

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
    Path(Box<Paths>),
    /// Commands that begin with these words.
    Command(Vec<String>),
}

/// Files by a pattern.
#[derive(Debug, Clone)]
pub(super) struct Paths {
    is_relative: bool,
    strict: GlobMatcher,
    /// Does not tell upper from lower case, as some file systems.
    lenient: GlobMatcher,
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
    /// The pattern of a `path(…)` is broken.
    #[error("has a pattern that cannot be read: {0}")]
    Pattern(String),
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
        let named = |kind: &str| {
            text.strip_prefix(kind)?.strip_prefix('(')?.strip_suffix(')').map(|name| name.trim().to_owned())
        };
        let covers = if let Some(name) = named("tool") {
            Covers::Tool(name)
        } else if let Some(name) = named("mcp") {
            Covers::Server(name)
        } else if let Some(pattern) = named("path") {
            Covers::Path(Box::new(paths(&pattern)?))
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
        let glob = if care == Care::Strict { &paths.strict } else { &paths.lenient };
        if !paths.is_relative {
            return glob.is_match(path);
        }
        roots.iter().any(|root| Path::new(path).strip_prefix(root).is_ok_and(|below| glob.is_match(below)))
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
    let build = |care| {
        let mut builder = GlobBuilder::new(pattern);
        builder.literal_separator(true).backslash_escape(true).case_insensitive(care == Care::Lenient);
        let glob = builder.build().map_err(|error| BadRule::Pattern(error.kind().to_string()))?;
        Ok(glob.compile_matcher())
    };
    Ok(Paths {
        is_relative: path.is_relative(),
        strict: build(Care::Strict)?,
        lenient: build(Care::Lenient)?,
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
    /// Finds the rule that covers a tool by its name or its server.
    pub(super) fn tool<'a>(rules: &'a [Rule], tool: &str, called: Option<(&str, &str)>) -> Option<&'a Rule> {
        rules.iter().find(|rule| match &rule.covers {
            Covers::Tool(name) => name == tool || called.is_some_and(|(_, tool)| name == tool),
            Covers::Server(name) => called.is_some_and(|(server, _)| name == server),
            Covers::Path(_) | Covers::Command(_) => false,
        })
    }

    /// Shows the words of the rules about commands.
    pub(super) fn commands(rules: &[Rule]) -> impl Iterator<Item = (&Rule, &[String])> {
        rules.iter().filter_map(|rule| match &rule.covers {
            Covers::Command(words) => Some((rule, words.as_slice())),
            Covers::Tool(_) | Covers::Server(_) | Covers::Path(_) => None,
        })
    }
}
