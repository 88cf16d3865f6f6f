//! Who may do what without asking. One question, one answer; asking is somebody else's work.

use std::collections::BTreeSet;
use std::path::Path;

use crate::{Facets, Touch};

/// How much the agent may do on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Reading inside the roots is free, everything else asks.
    #[default]
    Ask,
    /// Edits inside the roots are free as well.
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
            Self::AcceptEdits => "edits files of the project freely, asks before it runs anything",
            Self::Plan => "reads only",
            Self::Auto => "does everything without asking",
        }
    }
}

/// What the judge says of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Run it.
    Allow,
    /// Ask the person. `always` is what "always" would grant; `None` when it must be asked each time.
    Ask {
        /// What an "always" would be remembered as.
        always: Option<Grant>,
    },
    /// Do not run it, and say why.
    Deny(String),
}

/// Something a person allowed for the rest of a session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grant {
    /// This very command line.
    Command(String),
    /// Changing files inside the roots.
    Edits,
    /// A tool of an MCP server.
    Tool {
        /// The server's name.
        server: String,
        /// The tool's name there.
        tool: String,
    },
}

/// What a person said "always" to in a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants {
    allowed: BTreeSet<Grant>,
    refused: BTreeSet<Grant>,
}

impl Grants {
    /// Remembers an "always allow".
    pub fn allow(&mut self, grant: Grant) {
        self.refused.remove(&grant);
        self.allowed.insert(grant);
    }

    /// Remembers an "always refuse".
    pub fn refuse(&mut self, grant: Grant) {
        self.allowed.remove(&grant);
        self.refused.insert(grant);
    }
}

/// The folders a session knows, resolved through links.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roots {
    /// Where it works.
    pub work: Vec<String>,
    /// Where it may read as well, such as the output of its own commands.
    pub readable: Vec<String>,
    /// The configuration with its keys, inside the others too: changes ask each time, reading except in `auto`.
    pub protected: Vec<String>,
}

/// Judges a call by the mode, what was granted, and what it would touch.
pub fn judge(mode: Mode, grants: &Grants, roots: &Roots, facets: &Facets) -> Verdict {
    let always = match &facets.touch {
        Touch::Nothing => return Verdict::Allow,
        Touch::Reads(paths) if paths.iter().all(|path| is_readable(path, roots)) => return Verdict::Allow,
        Touch::Writes(paths) if paths.iter().any(|path| is_protected(path, roots)) => {
            return match mode {
                Mode::Plan => refuse_in_plan(),
                Mode::Ask | Mode::AcceptEdits | Mode::Auto => Verdict::Ask { always: None },
            };
        }
        Touch::Reads(_) => None,
        Touch::Writes(paths) => paths.iter().all(|path| is_inside(path, &roots.work)).then_some(Grant::Edits),
        Touch::Runs(command) => Some(Grant::Command(command.clone())),
        Touch::Calls { server, tool } => Some(Grant::Tool { server: server.clone(), tool: tool.clone() }),
    };
    if let Some(grant) = &always
        && grants.refused.contains(grant)
    {
        return Verdict::Deny("the person said to always refuse this".into());
    }
    let changes = matches!(facets.touch, Touch::Writes(_) | Touch::Runs(_) | Touch::Calls { .. });
    match mode {
        Mode::Plan if changes => refuse_in_plan(),
        Mode::Auto => Verdict::Allow,
        Mode::AcceptEdits if always == Some(Grant::Edits) => Verdict::Allow,
        Mode::Ask | Mode::AcceptEdits | Mode::Plan => match always {
            Some(grant) if grants.allowed.contains(&grant) => Verdict::Allow,
            always => Verdict::Ask { always },
        },
    }
}

fn refuse_in_plan() -> Verdict {
    Verdict::Deny("plan mode only reads; switch the mode to change or run something".into())
}

fn is_readable(path: &str, roots: &Roots) -> bool {
    // A search that begins above what is protected would look into it.
    let holds_protected = roots.protected.iter().any(|protected| Path::new(protected).starts_with(path));
    let is_work = is_inside(path, &roots.work) && !is_inside(path, &roots.protected) && !holds_protected;
    is_work || is_inside(path, &roots.readable)
}

/// Compares whole path components, so that `/a/bc` is not inside `/a/b`.
fn is_inside(path: &str, roots: &[String]) -> bool {
    let path = Path::new(path);
    roots.iter().any(|root| path.starts_with(root))
}

/// `.git` holds hooks that run later, on someone else's command.
fn is_protected(path: &str, roots: &Roots) -> bool {
    let mut parts = Path::new(path).components();
    is_inside(path, &roots.protected) || parts.any(|part| part.as_os_str().eq_ignore_ascii_case(".git"))
}

#[cfg(test)]
mod tests;
