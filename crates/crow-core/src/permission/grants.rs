//! Grants: the user's permissions beyond one call, each by effect and target.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::prefix_table::{count_table_words, is_grantable, runs_project};
use crate::shell::{self, ShellWord};

/// A permission of the user beyond a single call.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grant {
    /// Running one command, in the form of [`crate::shell::SimpleCommand::canonical_text`], or a whole line that
    /// changes directories.
    Run(String),
    /// Running every command that begins with these words, like an allow rule.
    RunPrefix(Vec<String>),
    /// Running the command with exactly these words.
    RunExact(Vec<String>),
    /// Changing files inside the roots.
    Edits,
    /// Reading this path outside the roots.
    Read(String),
    /// Changing this path outside the roots.
    Write(String),
    /// Calling a tool of an MCP server.
    Tool {
        /// The server's name.
        server: String,
        /// The tool's name on the server.
        tool: String,
    },
    /// Fetching pages of a site.
    Site(String),
    /// Searching the web.
    WebSearch,
}

/// The tool that gives work to another agent, which is called like that of a server.
const TASK: &str = "task";

impl Grant {
    /// Describes the grant in a few words, such as "`cargo test …`" or "edits".
    pub fn description(&self) -> String {
        match self {
            Self::Run(command) => format!("`{command}`"),
            Self::RunPrefix(words) => format!("`{} …`", quote_words(words)),
            Self::RunExact(words) => format!("`{}`", quote_words(words)),
            Self::Edits => "edits".to_owned(),
            Self::Read(path) => format!("reading {path}"),
            Self::Write(path) => format!("writing {path}"),
            Self::Tool { server, tool } if tool == TASK => format!("tasks for {server}"),
            Self::Tool { server, tool } => format!("{tool} of the MCP server {server}"),
            Self::Site(site) => format!("pages of {site}"),
            Self::WebSearch => "web searches".to_owned(),
        }
    }

    /// Encodes the grant as `{"effect": …, "target": …}`.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Run(command) => json!({"effect": "run", "target": command}),
            Self::RunPrefix(words) => json!({"effect": "run_prefix", "target": quote_words(words)}),
            Self::RunExact(words) => json!({"effect": "run_whole", "target": quote_words(words)}),
            Self::Edits => json!({"effect": "edit", "target": "project"}),
            Self::Read(path) => json!({"effect": "read", "target": path}),
            Self::Write(path) => json!({"effect": "write", "target": path}),
            Self::Tool { server, tool } => json!({"effect": "call", "target": tool, "server": server}),
            Self::Site(site) => json!({"effect": "fetch", "target": site}),
            Self::WebSearch => json!({"effect": "search", "target": "web"}),
        }
    }

    /// Decodes the output of [`Grant::to_json`]; `None` for anything else, including a prefix that may no
    /// longer be one.
    pub fn from_json(value: &Value) -> Option<Self> {
        let value = value.as_object()?;
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let target = text("target")?;
        let has_keys = |n_keys: usize| value.len() == n_keys;
        match (text("effect")?.as_str(), target.as_str()) {
            ("run", _) if has_keys(2) && !target.is_empty() => Some(Self::Run(target)),
            ("run_prefix", _) if has_keys(2) => Some(Self::RunPrefix(grantable_words(&target, false)?)),
            ("run_whole", _) if has_keys(2) => Some(Self::RunExact(grantable_words(&target, true)?)),
            ("edit", "project") if has_keys(2) => Some(Self::Edits),
            ("read", _) if has_keys(2) => Some(Self::Read(target)),
            ("write", _) if has_keys(2) => Some(Self::Write(target)),
            ("call", _) if has_keys(3) => Some(Self::Tool { server: text("server")?, tool: target }),
            ("fetch", _) if has_keys(2) => Some(Self::Site(target)),
            ("search", "web") if has_keys(2) => Some(Self::WebSearch),
            _ => None,
        }
    }
}

/// Parses the words of a permanent grant.
fn grantable_words(text: &str, is_exact: bool) -> Option<Vec<String>> {
    let words = shell::parse_words(text).ok()?;
    let words: Vec<String> =
        words.iter().map(|word| word.known_text().map(str::to_owned)).collect::<Option<_>>()?;
    is_grantable(&words, is_exact).then_some(words)
}

/// Longer prefixes are a mistake.
const PREFIX_BYTES_MAX: usize = 4096;

/// Parses a prefix that the user has written; the error is the reason why it cannot be allowed permanently.
pub fn parse_prefix(text: &str) -> Result<Grant, String> {
    let text = text.trim();
    if text.len() > PREFIX_BYTES_MAX || text.contains(char::is_control) {
        return Err("a prefix is one line of a few words".to_owned());
    }
    if text.is_empty() {
        return Err("the prefix is empty".to_owned());
    }
    let words = grantable_words(text, false);
    words.map(Grant::RunPrefix).ok_or_else(|| format!("commands that begin with `{text}` always ask"))
}

fn quote_words(words: &[String]) -> String {
    words.iter().map(|word| shell::quote_word(word)).collect::<Vec<_>>().join(" ")
}

/// Limit of stored grants; further calls ask again.
const GRANTS_MAX: usize = 1_000;

/// A set of grants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrantSet(BTreeSet<Grant>);

impl GrantSet {
    /// Adds a grant; returns whether it is stored.
    pub fn add_grant(&mut self, grant: Grant) -> bool {
        if self.0.len() < GRANTS_MAX {
            self.0.insert(grant);
            true
        } else {
            self.0.contains(&grant)
        }
    }

    /// Removes a grant; returns whether it was stored.
    pub fn remove(&mut self, grant: &Grant) -> bool {
        self.0.remove(grant)
    }

    /// Whether the set contains a grant.
    pub fn contains(&self, grant: &Grant) -> bool {
        self.0.contains(grant)
    }

    /// Returns the grants, ordered by effect.
    pub fn iter(&self) -> impl Iterator<Item = &Grant> {
        self.0.iter()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Encodes the grants as a JSON array.
    pub fn to_json(&self) -> Value {
        self.0.iter().map(Grant::to_json).collect()
    }

    /// Decodes the output of [`GrantSet::to_json`]. Invalid grants are omitted.
    pub fn from_json(value: &Value) -> Self {
        let grants = value.as_array().into_iter().flatten().filter_map(Grant::from_json);
        Self(grants.take(GRANTS_MAX).collect())
    }

    /// Returns the permanently allowed commands.
    pub(super) fn lasting_commands(&self) -> impl Iterator<Item = LastingCommand<'_>> {
        self.0.iter().filter_map(|grant| match grant {
            Grant::RunPrefix(words) => Some(LastingCommand { words, is_exact: false, is_granted: true }),
            Grant::RunExact(words) => Some(LastingCommand { words, is_exact: true, is_granted: true }),
            Grant::Run(_)
            | Grant::Edits
            | Grant::Read(_)
            | Grant::Write(_)
            | Grant::Tool { .. }
            | Grant::Site(_)
            | Grant::WebSearch => None,
        })
    }

    /// Returns the grants that replace the question but not the sandbox: edits, and programs that run the project's
    /// own code. The user saw neither that code nor the whole command.
    pub(super) fn sandboxed_only(&self) -> Self {
        let is_sandboxed = |grant: &&Grant| match grant {
            Grant::RunPrefix(words) | Grant::RunExact(words) => runs_project(words),
            Grant::Edits => true,
            Grant::Run(_)
            | Grant::Read(_)
            | Grant::Write(_)
            | Grant::Tool { .. }
            | Grant::Site(_)
            | Grant::WebSearch => false,
        };
        Self(self.0.iter().filter(is_sandboxed).cloned().collect())
    }
}

/// A permanently allowed command.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastingCommand<'a> {
    /// Its first words.
    pub(super) words: &'a [String],
    /// Whether no further words may follow.
    pub(super) is_exact: bool,
    /// Whether a grant allows it, not a rule.
    pub(super) is_granted: bool,
}

impl LastingCommand<'_> {
    /// Returns the words that approve what they do. Words that the user added to a prefix of the table only narrow it.
    pub(super) fn approving_words(&self) -> &[String] {
        let n_words = if self.is_granted && !self.is_exact { count_table_words(self.words) } else { None };
        n_words.and_then(|n_words| self.words.get(..n_words)).unwrap_or(self.words)
    }
}

impl Extend<Grant> for GrantSet {
    fn extend<T: IntoIterator<Item = Grant>>(&mut self, grants: T) {
        grants.into_iter().for_each(|grant| {
            self.add_grant(grant);
        });
    }
}

impl FromIterator<Grant> for GrantSet {
    fn from_iter<T: IntoIterator<Item = Grant>>(grants: T) -> Self {
        let mut set = Self::default();
        set.extend(grants);
        set
    }
}

/// The grants that a permission request offers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrantOffer {
    /// The grants of "allow for this session"; empty if each call asks.
    pub session: Vec<Grant>,
    /// The grants of "always allow in this project"; empty if that is not offered.
    pub project: Vec<Grant>,
}

impl GrantOffer {
    /// Offers the same grant for both.
    pub(super) fn for_both(grant: Grant) -> Self {
        Self { session: vec![grant.clone()], project: vec![grant] }
    }

    /// Offers grants for the session only.
    pub(super) fn for_session(grants: Vec<Grant>) -> Self {
        Self { session: grants, project: Vec::new() }
    }

    /// Returns the prefix that the user may edit: the only one among the permanent grants.
    pub fn editable_prefix(&self) -> Option<String> {
        let mut prefixes = self.project.iter().filter_map(|grant| {
            let Grant::RunPrefix(words) = grant else { return None };
            Some(quote_words(words))
        });
        prefixes.next().filter(|_| prefixes.next().is_none())
    }

    /// Returns the offer with another prefix than [`Self::editable_prefix`]; the error is the reason why that cannot be
    /// allowed permanently.
    pub fn with_prefix(&self, prefix: &str) -> Result<Self, String> {
        let prefix = parse_prefix(prefix)?;
        if self.editable_prefix().is_none() {
            return Err("there is no prefix to change".to_owned());
        }
        let replace =
            |grant: &Grant| if matches!(grant, Grant::RunPrefix(_)) { &prefix } else { grant }.clone();
        let replace_all = |grants: &[Grant]| grants.iter().map(replace).collect();
        Ok(Self { session: replace_all(&self.session), project: replace_all(&self.project) })
    }

    /// Encodes the offer, for a parent that asks on behalf of a child.
    pub fn to_json(&self) -> Value {
        let list = |grants: &[Grant]| Value::from_iter(grants.iter().map(Grant::to_json));
        json!({"session": list(&self.session), "project": list(&self.project)})
    }

    /// Decodes the output of [`GrantOffer::to_json`]; `None` if any part is invalid.
    pub fn from_json(value: &Map<String, Value>) -> Option<Self> {
        let list = |key: &str| -> Option<Vec<Grant>> {
            let grants = value.get(key)?.as_array()?;
            if grants.len() > GRANTS_MAX {
                return None;
            }
            grants.iter().map(Grant::from_json).collect()
        };
        Some(Self { session: list("session")?, project: list("project")? })
    }
}

/// Returns the leading words that are known.
pub(super) fn known_words(words: &[ShellWord]) -> Vec<&str> {
    words.iter().map_while(ShellWord::known_text).collect()
}
