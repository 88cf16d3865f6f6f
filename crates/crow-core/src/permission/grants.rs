//! What a person's answers to earlier questions allow, each an effect on a target.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::prefixes;
use crate::shell::{self, ShellWord};

/// One thing that a person allowed beyond a single call.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grant {
    /// Running one command, as [`crate::shell::SimpleCommand::canonical_text`] writes it, or a whole line that changes folders.
    Run(String),
    /// Running every command that begins with these words, as an allow rule does.
    RunPrefix(Vec<String>),
    /// Running the command of exactly these words.
    RunWhole(Vec<String>),
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
        /// The tool's name there.
        tool: String,
    },
    /// Fetching pages of a site.
    Site(String),
    /// Searching the web.
    Searches,
}

impl Grant {
    /// Names what is granted in a few words, such as "`cargo test …`" or "edits".
    pub fn description(&self) -> String {
        match self {
            Self::Run(command) => format!("`{command}`"),
            Self::RunPrefix(words) => format!("`{} …`", quote_words(words)),
            Self::RunWhole(words) => format!("`{}`", quote_words(words)),
            Self::Edits => "edits".to_owned(),
            Self::Read(path) => format!("reading {path}"),
            Self::Write(path) => format!("writing {path}"),
            Self::Tool { server, tool } => format!("{tool} of the MCP server {server}"),
            Self::Site(site) => format!("pages of {site}"),
            Self::Searches => "web searches".to_owned(),
        }
    }

    /// Encodes the grant as `{"effect": …, "target": …}`.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Run(command) => json!({"effect": "run", "target": command}),
            Self::RunPrefix(words) => json!({"effect": "run_prefix", "target": quote_words(words)}),
            Self::RunWhole(words) => json!({"effect": "run_whole", "target": quote_words(words)}),
            Self::Edits => json!({"effect": "edit", "target": "project"}),
            Self::Read(path) => json!({"effect": "read", "target": path}),
            Self::Write(path) => json!({"effect": "write", "target": path}),
            Self::Tool { server, tool } => json!({"effect": "call", "target": tool, "server": server}),
            Self::Site(site) => json!({"effect": "fetch", "target": site}),
            Self::Searches => json!({"effect": "search", "target": "web"}),
        }
    }

    /// Decodes a grant; `None` for anything that [`Grant::to_json`] does not write, which includes a prefix that is no
    /// longer offered.
    pub fn from_json(value: &Value) -> Option<Self> {
        let value = value.as_object()?;
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let target = text("target")?;
        let takes = |n_keys: usize| value.len() == n_keys;
        match (text("effect")?.as_str(), target.as_str()) {
            ("run", _) if takes(2) && !target.is_empty() => Some(Self::Run(target)),
            ("run_prefix", _) if takes(2) => Some(Self::RunPrefix(offered_words(&target, false)?)),
            ("run_whole", _) if takes(2) => Some(Self::RunWhole(offered_words(&target, true)?)),
            ("edit", "project") if takes(2) => Some(Self::Edits),
            ("read", _) if takes(2) => Some(Self::Read(target)),
            ("write", _) if takes(2) => Some(Self::Write(target)),
            ("call", _) if takes(3) => Some(Self::Tool { server: text("server")?, tool: target }),
            ("fetch", _) if takes(2) => Some(Self::Site(target)),
            ("search", "web") if takes(2) => Some(Self::Searches),
            _ => None,
        }
    }
}

/// Reads the words of a command that may be allowed for good.
fn offered_words(text: &str, is_whole: bool) -> Option<Vec<String>> {
    let words = shell::parse_words(text).ok()?;
    let words: Vec<String> =
        words.iter().map(|word| word.known_text().map(str::to_owned)).collect::<Option<_>>()?;
    prefixes::is_offered(&words, is_whole).then_some(words)
}

fn quote_words(words: &[String]) -> String {
    words.iter().map(|word| shell::quote_word(word)).collect::<Vec<_>>().join(" ")
}

/// Grants that are remembered; whatever comes on top is asked again.
const GRANTS_MAX: usize = 1_000;

/// What a person allowed beyond single calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrantSet(BTreeSet<Grant>);

impl GrantSet {
    /// Adds a grant; returns whether it is there afterwards.
    pub fn add_grant(&mut self, grant: Grant) -> bool {
        if self.0.len() < GRANTS_MAX {
            self.0.insert(grant);
            true
        } else {
            self.0.contains(&grant)
        }
    }

    /// Takes a grant back; returns whether it was there.
    pub fn remove(&mut self, grant: &Grant) -> bool {
        self.0.remove(grant)
    }

    /// Tells whether there is a grant.
    pub fn contains(&self, grant: &Grant) -> bool {
        self.0.contains(grant)
    }

    /// Lists the grants, those of one effect together.
    pub fn iter(&self) -> impl Iterator<Item = &Grant> {
        self.0.iter()
    }

    /// Tells whether nothing is granted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Encodes the grants as a JSON array.
    pub fn to_json(&self) -> Value {
        self.0.iter().map(Grant::to_json).collect()
    }

    /// Decodes what [`GrantSet::to_json`] writes. What is no grant is left out: it allows nothing.
    pub fn from_json(value: &Value) -> Self {
        let grants = value.as_array().into_iter().flatten().filter_map(Grant::from_json);
        Self(grants.take(GRANTS_MAX).collect())
    }

    /// The commands that are allowed for good.
    pub(super) fn lasting_commands(&self) -> impl Iterator<Item = LastingCommand<'_>> {
        self.0.iter().filter_map(|grant| match grant {
            Grant::RunPrefix(words) => Some(LastingCommand { words, is_whole: false, is_granted: true }),
            Grant::RunWhole(words) => Some(LastingCommand { words, is_whole: true, is_granted: true }),
            Grant::Run(_)
            | Grant::Edits
            | Grant::Read(_)
            | Grant::Write(_)
            | Grant::Tool { .. }
            | Grant::Site(_)
            | Grant::Searches => None,
        })
    }

    /// Keeps what frees a command from the question and not from the sandbox: edits, and programs that run the project's own
    /// code. The person saw neither that code nor the whole command.
    pub(super) fn sandboxed_only(&self) -> Self {
        let is_held = |grant: &&Grant| match grant {
            Grant::RunPrefix(words) | Grant::RunWhole(words) => prefixes::runs_project(words),
            Grant::Edits => true,
            Grant::Run(_)
            | Grant::Read(_)
            | Grant::Write(_)
            | Grant::Tool { .. }
            | Grant::Site(_)
            | Grant::Searches => false,
        };
        Self(self.0.iter().filter(is_held).cloned().collect())
    }
}

/// A command that is allowed for good.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastingCommand<'a> {
    /// The words it begins with.
    pub(super) words: &'a [String],
    /// Nothing may follow.
    pub(super) is_whole: bool,
    /// A person allowed it, no rule.
    pub(super) is_granted: bool,
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
        let mut all = Self::default();
        all.extend(grants);
        all
    }
}

/// What a question may remember of a yes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrantOffer {
    /// What "allow for this session" grants; empty when each call is asked about.
    pub session: Vec<Grant>,
    /// What "always allow in this project" grants; empty when that is not offered.
    pub project: Vec<Grant>,
}

impl GrantOffer {
    /// Offers the same for both.
    pub(super) fn for_both(grant: Grant) -> Self {
        Self { session: vec![grant.clone()], project: vec![grant] }
    }

    /// Offers something for the session only.
    pub(super) fn for_session(grants: Vec<Grant>) -> Self {
        Self { session: grants, project: Vec::new() }
    }

    /// Encodes the offer, for a parent that asks in the place of a child.
    pub fn to_json(&self) -> Value {
        let list = |grants: &[Grant]| Value::from_iter(grants.iter().map(Grant::to_json));
        json!({"session": list(&self.session), "project": list(&self.project)})
    }

    /// Decodes what [`GrantOffer::to_json`] writes; `None` when any part of it is something else.
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

/// The words of a command as far as each is known.
pub(super) fn known_words(words: &[ShellWord]) -> Vec<&str> {
    words.iter().map_while(ShellWord::known_text).collect()
}
