//! Whether a child that is an agent of others may have the files and terminals of our client. What the law frees is
//! free, what the person allowed the child already is not asked again, and the rest is asked.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crow_acp::{PermissionAnswer, PermissionChoice, PermissionQuestion, Subject, Want, Wanted};
use crow_core::{Content, Facets, Grants, Sandbox, SandboxSupport, ToolKind, Touch, Verdict, shell};
use crow_tools::{PermissionPolicy, PolicySources};
use serde_json::Value;

use crate::children::Family;
use crate::session::Standing;

/// What is remembered of answers of one child; more questions than that are asked anew.
const APPROVED_MAX: usize = 1_000;

/// The names of arguments that are a command line, whatever the kind of the call.
const COMMANDS: [&str; 2] = ["command", "cmd"];

const YES: &str = "allow_once";
const NO: &str = "reject_once";

/// What a wish of a child does to its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Effect {
    Reads,
    Writes,
    Runs,
}

impl Effect {
    /// The effect of a call of this kind; nothing where the kind does not say.
    fn of(kind: ToolKind) -> Option<Self> {
        match kind {
            ToolKind::Read => Some(Self::Reads),
            ToolKind::Edit => Some(Self::Writes),
            ToolKind::Execute => Some(Self::Runs),
            ToolKind::Search | ToolKind::Think | ToolKind::Fetch | ToolKind::Other => None,
        }
    }
}

/// What the person allowed a child that runs here, by effect and target as its questions named them. The child could do all
/// of it with its own hands, so this is no right; it saves the person from being asked twice. A child on another
/// machine has no hands here, and is asked about each thing.
#[derive(Debug, Default)]
pub(super) struct ApprovalCache(Mutex<HashSet<(Effect, String)>>);

impl ApprovalCache {
    /// Remembers a yes to a question.
    pub(super) fn remember(&self, question: &PermissionQuestion, answer: &PermissionAnswer) {
        let PermissionAnswer::Chosen(id) = answer else { return };
        // One answer, and one meaning of it.
        let chosen: Vec<_> = question.choices.iter().filter(|choice| choice.id == *id).collect();
        if !matches!(chosen[..], [choice] if choice.allows) {
            return;
        }
        let input = question.input.as_ref().and_then(Value::as_object);
        let named = input.into_iter().flatten().filter_map(|(name, value)| {
            // Some agents give no kind to anything.
            let is_command = question.kind == ToolKind::Other && COMMANDS.contains(&name.as_str());
            let effect = if is_command { Some(Effect::Runs) } else { Effect::of(question.kind) };
            Some((effect?, value.as_str()?.to_owned()))
        });
        let changed = question.content.iter().filter_map(|content| match content {
            Content::Diff { path, .. } => Some((Effect::Writes, path.clone())),
            Content::Text(_) | Content::Image { .. } => None,
        });
        let mut approved = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = APPROVED_MAX.saturating_sub(approved.len());
        approved.extend(named.chain(changed).take(room));
    }

    fn holds(&self, kind: ToolKind, target: &str) -> bool {
        let approved = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Effect::of(kind).is_some_and(|effect| approved.contains(&(effect, target.to_owned())))
    }
}

/// What is decided of a wish.
#[derive(Debug)]
pub(super) enum Permit {
    /// It may have it.
    Yes,
    /// It may not.
    No(String),
    /// The person decides.
    Ask(PermissionQuestion),
}

/// Decides on a wish of a child that works in `cwd`.
pub(super) fn permit(family: &Family, cwd: &Path, approved: &ApprovalCache, wanted: &Wanted) -> Permit {
    let (facets, said) = match wanted.want() {
        Want::Terminal => return Permit::Yes,
        Want::Read(path) => of_file(cwd, path, ToolKind::Read),
        Want::Write(path) => of_file(cwd, path, ToolKind::Edit),
        Want::Run { program, args, cwd: at, env } => {
            let at = crow_tools::resolve(&cwd.join(at.unwrap_or(cwd)));
            let roots = family.surroundings().workspace.roots().to_vec();
            if !at.starts_with(crow_tools::resolve(cwd)) && !roots.iter().any(|root| at.starts_with(root)) {
                return Permit::No(format!("{} is outside the folders of this session", at.display()));
            }
            let line = match args {
                // Many agents put a whole line here.
                [] if env.is_empty() => program.to_owned(),
                [] => format!("env {} sh -c {}", quoted(&env), shell::quote(program)),
                args if !env.is_empty() => {
                    let words: Vec<String> =
                        std::iter::once(program.to_owned()).chain(args.iter().cloned()).collect();
                    format!("env {} {}", quoted(&env), quoted(&words))
                }
                args => {
                    let words = std::iter::once(program).chain(args.iter().map(String::as_str));
                    words.map(shell::quote).collect::<Vec<_>>().join(" ")
                }
            };
            let title = super::view::line(&format!("Run {line}"));
            let touch = Touch::Runs(line.clone());
            (Facets { title, kind: ToolKind::Execute, locations: Vec::new(), touch }, line)
        }
    };
    match verdict(family, cwd, &facets) {
        Verdict::Allow => Permit::Yes,
        Verdict::Deny(why) => Permit::No(why),
        Verdict::Ask { .. } if approved.holds(facets.kind, &said) => Permit::Yes,
        Verdict::Ask { .. }
            if line_of_shell(wanted).is_some_and(|line| approved.holds(facets.kind, line)) =>
        {
            Permit::Yes
        }
        Verdict::Ask { why, .. } => Permit::Ask(question(&facets, why)),
    }
}

/// The line that a wish has a plain shell run, and nothing else: many agents ask about the line alone.
fn line_of_shell(wanted: &Wanted) -> Option<&str> {
    let Want::Run { program, args: [option, line], cwd: _, env } = wanted.want() else { return None };
    let name =
        ["/bin/", "/usr/bin/"].iter().find_map(|folder| program.strip_prefix(folder)).unwrap_or(program);
    let is_plain = ["sh", "bash", "zsh", "dash"].contains(&name) && ["-c", "-lc"].contains(&option.as_str());
    (is_plain && env.is_empty()).then_some(line)
}

fn quoted(words: &[String]) -> String {
    words.iter().map(|word| shell::quote(word)).collect::<Vec<_>>().join(" ")
}

fn of_file(cwd: &Path, path: &Path, kind: ToolKind) -> (Facets, String) {
    let said = path.display().to_string();
    let resolved = crow_tools::resolve(&cwd.join(path)).display().to_string();
    let (verb, touch) = match kind {
        ToolKind::Read => ("Read", Touch::Reads(vec![resolved])),
        ToolKind::Edit
        | ToolKind::Search
        | ToolKind::Execute
        | ToolKind::Think
        | ToolKind::Fetch
        | ToolKind::Other => ("Write", Touch::Writes(vec![resolved])),
    };
    let title = super::view::line(&format!("{verb} {said}"));
    (Facets { title, kind, locations: Vec::new(), touch }, said)
}

fn verdict(family: &Family, cwd: &Path, facets: &Facets) -> Verdict {
    let surroundings = family.surroundings();
    let settings = family.kit.settings();
    let policy = PermissionPolicy::new(PolicySources {
        workspace: &surroundings.workspace,
        cwd: Some(cwd),
        readable: vec![settings.spill_dir.clone()],
        config_dir: &settings.config_dir,
        rules: surroundings.stock.now().rules.clone(),
        // Its commands run in the client's terminals, where there is none; with its own hands it needs no question.
        sandbox: Sandbox::Off,
        support: SandboxSupport::Full,
    });
    let Standing { mode, .. } = *family.standing.borrow();
    let tool = match facets.touch {
        Touch::Reads(_) => "read",
        Touch::Runs(_) => "terminal",
        Touch::Nothing | Touch::Writes(_) | Touch::Calls { .. } | Touch::Fetches { .. } | Touch::Searches => {
            "write"
        }
    };
    // The same words in another folder are another command.
    let grants = if cwd == surroundings.place.cwd { family.approvals.granted() } else { Grants::default() };
    policy.evaluate(mode, &grants, tool, facets)
}

fn question(facets: &Facets, why: Option<String>) -> PermissionQuestion {
    let choice = |id: &str, name: &str| PermissionChoice {
        id: id.to_owned(),
        name: name.to_owned(),
        allows: id == YES,
        always: false,
    };
    PermissionQuestion {
        subject: Subject::Call,
        call: String::new(),
        title: facets.title.clone(),
        kind: facets.kind,
        input: None,
        content: why.map(|why| Content::Text(format!("Why this is asked: {why}."))).into_iter().collect(),
        choices: vec![choice(YES, "Allow once"), choice(NO, "Reject")],
        offer: None,
    }
}

/// Tells whether an answer to a question of ours is a yes.
pub(super) fn is_yes(answer: Option<&PermissionAnswer>) -> bool {
    matches!(answer, Some(PermissionAnswer::Chosen(id)) if id == YES)
}
