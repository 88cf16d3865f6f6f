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

use self::accepted::Effect;
use self::autorun::is_autorun;
pub use self::autorun::{
    autorun_of_home, hook_managers, is_autorun_entry, is_autorun_folder, may_hold_autorun,
};
pub use self::grants::{Grant, GrantOffer, Grants};
pub use self::paths::is_key;
use self::paths::{holds_protected, is_inside, is_protected, is_readable, is_secret};
use self::rules::Care;
pub use self::rules::{BadRule, Rule, Rules};
pub use self::sandboxed::{approval_sandboxed, judge_sandboxed};
use crate::{Approval, Facets, Reach, Touch};

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
pub enum Verdict {
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
pub struct Roots {
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
pub struct Law<'a> {
    /// The session's mode.
    pub mode: Mode,
    /// The configuration's rules.
    pub rules: &'a Rules,
    /// The session's folders; commands begin in the first one.
    pub roots: &'a Roots,
    /// Follows the links in a path.
    pub resolve: &'a dyn Fn(&Path) -> PathBuf,
}

/// Judges a call of a tool by the law, what was granted, and what it would touch.
pub fn judge(law: &Law<'_>, grants: &Grants, tool: &str, facets: &Facets) -> Verdict {
    let (server, own_name) = match &facets.touch {
        Touch::Calls { server, tool } => (Some(server.as_str()), tool.as_str()),
        Touch::Nothing | Touch::Reads(_) | Touch::Writes(_) | Touch::Runs(_) => (None, tool),
        Touch::Fetches { .. } | Touch::Searches => (None, tool),
    };
    // To forbid, the name that the server itself gives counts as well. To allow, only what the model sees does: a
    // server may call its tools by any name.
    if let Some(rule) = Rules::tool(&law.rules.deny, &[tool, own_name], server) {
        return forbidden(rule);
    }
    let is_allowed = Rules::tool(&law.rules.allow, &[tool], server).is_some();
    match &facets.touch {
        Touch::Nothing => Verdict::Allow,
        Touch::Reads(paths) => {
            let is_free = |path: &String| {
                law.mode == Mode::Auto
                    || is_readable(path, law.roots)
                    || (is_allowed && !is_secret(path, law.roots))
                    || grants.allows(&Grant::Read(path.clone()))
            };
            let asked: Vec<&String> = paths.iter().filter(|path| !is_free(path)).collect();
            let Some(first) = asked.first() else { return Verdict::Allow };
            let holds_keys = |path: &&String| is_secret(path, law.roots) || holds_protected(path, law.roots);
            let offer = match asked.iter().any(holds_keys) {
                true => GrantOffer::default(),
                false => GrantOffer::session(asked.iter().map(|path| Grant::Read((*path).clone())).collect()),
            };
            Verdict::Ask { offer, why: protects(first, law.roots) }
        }
        Touch::Writes(paths) => writes(law, grants, paths, is_allowed),
        Touch::Runs(line) => command::judge(law, grants, tool, line),
        Touch::Calls { server, tool } => {
            let grant = Grant::Tool { server: server.clone(), tool: tool.clone() };
            match law.mode {
                _ if is_allowed => Verdict::Allow,
                Mode::Plan => refuse_in_plan(),
                Mode::Auto => Verdict::Allow,
                Mode::Ask | Mode::AcceptEdits if grants.allows(&grant) => Verdict::Allow,
                Mode::Ask | Mode::AcceptEdits => Verdict::Ask { offer: GrantOffer::both(grant), why: None },
            }
        }
        Touch::Fetches { site, reach: Reach::Private } => {
            // What a page in the web said must not reach services that trust whoever is near.
            let grant = Grant::Site(site.clone());
            if grants.allows(&grant) {
                return Verdict::Allow;
            }
            let why = format!("{site} is not on the public internet");
            Verdict::Ask { offer: GrantOffer::session(vec![grant]), why: Some(why) }
        }
        Touch::Fetches { site, reach: Reach::Public } => {
            looks_up(law, grants, Grant::Site(site.clone()), is_allowed)
        }
        Touch::Searches => looks_up(law, grants, Grant::Searches, is_allowed),
    }
}

/// Returns who approved a call that may run. A grant of what runs the project's code frees it from the question and not
/// from the sandbox.
pub fn approval(law: &Law<'_>, grants: &Grants, tool: &str, facets: &Facets) -> Approval {
    let effect = match &facets.touch {
        Touch::Runs(line) => command::effect(law, line),
        Touch::Nothing | Touch::Reads(_) | Touch::Writes(_) => None,
        Touch::Calls { .. } | Touch::Fetches { .. } | Touch::Searches => None,
    };
    let held = grants.sandboxed();
    let is_allowed = |mode| judge(&Law { mode, ..*law }, &held, tool, facets) == Verdict::Allow;
    let by = |mode| {
        let no_grants = Grants::default();
        let is_ruled =
            held.is_empty() || judge(&Law { mode, ..*law }, &no_grants, tool, facets) == Verdict::Allow;
        if is_ruled { Approval::Law } else { Approval::Lasting }
    };
    match effect {
        Some(Effect::Reads) => Approval::Reading,
        // What a rule allows runs as the rule has it.
        Some(_) if law.mode == Mode::AcceptEdits && is_allowed(Mode::Ask) => by(Mode::Ask),
        _ if !is_allowed(law.mode) => Approval::Person,
        Some(Effect::Edits) if law.mode == Mode::AcceptEdits => Approval::Editing,
        Some(Effect::Builds) if law.mode == Mode::AcceptEdits => Approval::Building,
        Some(Effect::Edits | Effect::Builds) | None => by(law.mode),
    }
}

/// Judges what only reads, but tells the outside what is read: `plan` asks as well.
fn looks_up(law: &Law<'_>, grants: &Grants, grant: Grant, is_allowed: bool) -> Verdict {
    if is_allowed || law.mode == Mode::Auto || grants.allows(&grant) {
        return Verdict::Allow;
    }
    Verdict::Ask { offer: GrantOffer::both(grant), why: None }
}

fn writes(law: &Law<'_>, grants: &Grants, paths: &[String], is_allowed: bool) -> Verdict {
    if let Some(rule) = paths.iter().find_map(|path| denied_path(law, path)) {
        return forbidden(rule);
    }
    let are_inside = paths.iter().all(|path| is_inside(path, &law.roots.work));
    if law.mode == Mode::Plan {
        return refuse_in_plan();
    }
    if let Some(path) = paths.iter().find(|path| is_protected(path, law.roots)) {
        return Verdict::Ask { offer: GrantOffer::default(), why: protects(path, law.roots) };
    }
    if is_allowed || paths.iter().all(|path| may_change(law, grants, path)) {
        return Verdict::Allow;
    }
    let why = paths.iter().find(|path| is_autorun(path)).map(|path| runs_by_itself(path));
    let offer = match why {
        Some(_) => GrantOffer::default(),
        None if are_inside => GrantOffer::both(Grant::Edits),
        None => GrantOffer::session(paths.iter().map(|path| Grant::Write(path.clone())).collect()),
    };
    Verdict::Ask { offer, why }
}

/// Tells whether a file that is not protected may be changed without a question.
fn may_change(law: &Law<'_>, grants: &Grants, path: &str) -> bool {
    let edits_are_free = law.mode == Mode::AcceptEdits || grants.allows(&Grant::Edits);
    law.mode == Mode::Auto
        || (edits_are_free && is_inside(path, &law.roots.work) && !is_autorun(path))
        || grants.allows(&Grant::Write(path.to_owned()))
        || law.rules.allow.iter().any(|rule| rule.covers_path(path, &law.roots.work, Care::Strict))
}

fn runs_by_itself(path: &str) -> String {
    format!("other programs run what is in {path} by themselves")
}

fn denied_path<'a>(law: &Law<'a>, path: &str) -> Option<&'a Rule> {
    law.rules.deny.iter().find(|rule| rule.covers_path(path, &law.roots.work, Care::Lenient))
}

fn protects(path: &str, roots: &Roots) -> Option<String> {
    is_protected(path, roots).then(|| format!("{path} is protected"))
}

fn forbidden(rule: &Rule) -> Verdict {
    Verdict::Deny(format!("the configuration forbids it with the deny rule `{}`", rule.as_str()))
}

fn refuse_in_plan() -> Verdict {
    Verdict::Deny("plan mode only reads; switch the mode to change or run something".into())
}

#[cfg(test)]
mod tests;
