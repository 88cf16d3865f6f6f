//! Whether a child that is an agent of others may have the files and terminals of our client. What the law frees is
//! free, what the person allowed the child already is not asked again, and the rest is asked.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crow_acp::{
    AgentPermissionRequest, ClientAccess, ClientAccessRequest, PermissionAnswer, PermissionOption,
    PermissionSubject,
};
use crow_core::{
    GrantSet, PermissionDecision, SandboxMode, SandboxSupport, ToolAccess, ToolCallContent, ToolCallInfo,
    ToolKind, shell,
};
use crow_tools::{PermissionPolicy, PolicySources};
use serde_json::Value;

use crate::children::ChildrenShared;
use crate::session::SessionSettings;

/// What is remembered of answers of one child; more questions than that are asked anew.
const APPROVED_MAX: usize = 1_000;

/// The names of arguments that are a command line, whatever the kind of the call.
const COMMANDS: [&str; 2] = ["command", "cmd"];

const YES: &str = "allow_once";
const NO: &str = "reject_once";

/// What a wish of a child does to its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ToolEffect {
    Reads,
    Writes,
    Runs,
}

impl ToolEffect {
    /// The effect of a call of this kind; nothing where the kind does not say.
    fn from_tool_kind(kind: ToolKind) -> Option<Self> {
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
pub(super) struct ApprovalCache(Mutex<HashSet<(ToolEffect, String)>>);

impl ApprovalCache {
    /// Remembers a yes to a question.
    pub(super) fn remember_answer(&self, question: &AgentPermissionRequest, answer: &PermissionAnswer) {
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
            let effect =
                if is_command { Some(ToolEffect::Runs) } else { ToolEffect::from_tool_kind(question.kind) };
            Some((effect?, value.as_str()?.to_owned()))
        });
        let changed = question.content.iter().filter_map(|content| match content {
            ToolCallContent::Diff { path, .. } => Some((ToolEffect::Writes, path.clone())),
            ToolCallContent::Text(_) | ToolCallContent::Image { .. } => None,
        });
        let mut approved = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = APPROVED_MAX.saturating_sub(approved.len());
        approved.extend(named.chain(changed).take(room));
    }

    fn is_approved(&self, kind: ToolKind, target: &str) -> bool {
        let approved = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ToolEffect::from_tool_kind(kind).is_some_and(|effect| approved.contains(&(effect, target.to_owned())))
    }
}

/// What is decided of a wish.
#[derive(Debug)]
pub(super) enum ClientAccessDecision {
    /// It may have it.
    Yes,
    /// It may not.
    No(String),
    /// The person decides.
    Ask(AgentPermissionRequest),
}

/// Decides on a wish of a child that works in `cwd`.
pub(super) fn decide_access(
    family: &ChildrenShared,
    cwd: &Path,
    approved: &ApprovalCache,
    wanted: &ClientAccessRequest,
) -> ClientAccessDecision {
    let (facets, said) = match wanted.access() {
        ClientAccess::Terminal => return ClientAccessDecision::Yes,
        ClientAccess::Read(path) => file_call_info(cwd, path, ToolKind::Read),
        ClientAccess::Write(path) => file_call_info(cwd, path, ToolKind::Edit),
        ClientAccess::Run { program, args, cwd: at, env } => {
            let at = crow_tools::resolve_links(&cwd.join(at.unwrap_or(cwd)));
            let roots = family.environment().workspace.roots().to_vec();
            if !at.starts_with(crow_tools::resolve_links(cwd))
                && !roots.iter().any(|root| at.starts_with(root))
            {
                return ClientAccessDecision::No(format!(
                    "{} is outside the folders of this session",
                    at.display()
                ));
            }
            let line = match args {
                // Many agents put a whole line here.
                [] if env.is_empty() => program.to_owned(),
                [] => format!("env {} sh -c {}", quote_command(&env), shell::quote_word(program)),
                args if !env.is_empty() => {
                    let words: Vec<String> =
                        std::iter::once(program.to_owned()).chain(args.iter().cloned()).collect();
                    format!("env {} {}", quote_command(&env), quote_command(&words))
                }
                args => {
                    let words = std::iter::once(program).chain(args.iter().map(String::as_str));
                    words.map(shell::quote_word).collect::<Vec<_>>().join(" ")
                }
            };
            let title = super::view::single_line(&format!("Run {line}"));
            let touch = ToolAccess::Runs(line.clone());
            (ToolCallInfo { title, kind: ToolKind::Execute, locations: Vec::new(), touch }, line)
        }
    };
    match evaluate_access(family, cwd, &facets) {
        PermissionDecision::Allow => ClientAccessDecision::Yes,
        PermissionDecision::Deny(why) => ClientAccessDecision::No(why),
        PermissionDecision::Ask { .. } if approved.is_approved(facets.kind, &said) => {
            ClientAccessDecision::Yes
        }
        PermissionDecision::Ask { .. }
            if line_of_shell(wanted).is_some_and(|line| approved.is_approved(facets.kind, line)) =>
        {
            ClientAccessDecision::Yes
        }
        PermissionDecision::Ask { why, .. } => ClientAccessDecision::Ask(permission_request(&facets, why)),
    }
}

/// The line that a wish has a plain shell run, and nothing else: many agents ask about the line alone.
fn line_of_shell(wanted: &ClientAccessRequest) -> Option<&str> {
    let ClientAccess::Run { program, args: [option, line], cwd: _, env } = wanted.access() else {
        return None;
    };
    let name =
        ["/bin/", "/usr/bin/"].iter().find_map(|folder| program.strip_prefix(folder)).unwrap_or(program);
    let is_plain = ["sh", "bash", "zsh", "dash"].contains(&name) && ["-c", "-lc"].contains(&option.as_str());
    (is_plain && env.is_empty()).then_some(line)
}

fn quote_command(words: &[String]) -> String {
    words.iter().map(|word| shell::quote_word(word)).collect::<Vec<_>>().join(" ")
}

fn file_call_info(cwd: &Path, path: &Path, kind: ToolKind) -> (ToolCallInfo, String) {
    let said = path.display().to_string();
    let resolved = crow_tools::resolve_links(&cwd.join(path)).display().to_string();
    let (verb, touch) = match kind {
        ToolKind::Read => ("Read", ToolAccess::Reads(vec![resolved])),
        ToolKind::Edit
        | ToolKind::Search
        | ToolKind::Execute
        | ToolKind::Think
        | ToolKind::Fetch
        | ToolKind::Other => ("Write", ToolAccess::Writes(vec![resolved])),
    };
    let title = super::view::single_line(&format!("{verb} {said}"));
    (ToolCallInfo { title, kind, locations: Vec::new(), touch }, said)
}

fn evaluate_access(family: &ChildrenShared, cwd: &Path, facets: &ToolCallInfo) -> PermissionDecision {
    let surroundings = family.environment();
    let settings = family.kit.config();
    let policy = PermissionPolicy::new(PolicySources {
        workspace: &surroundings.workspace,
        cwd: Some(cwd),
        readable: vec![settings.spill_dir.clone()],
        config_dir: &settings.config_dir,
        rules: surroundings.stock.current_config().rules.clone(),
        // Its commands run in the client's terminals, where there is none; with its own hands it needs no question.
        sandbox: SandboxMode::Off,
        support: SandboxSupport::Full,
    });
    let SessionSettings { mode, .. } = *family.standing.borrow();
    let tool = match facets.touch {
        ToolAccess::Reads(_) => "read",
        ToolAccess::Runs(_) => "terminal",
        ToolAccess::Nothing
        | ToolAccess::Writes(_)
        | ToolAccess::Calls { .. }
        | ToolAccess::Fetches { .. }
        | ToolAccess::Searches => "write",
    };
    // The same words in another folder are another command.
    let grants =
        if cwd == surroundings.place.cwd { family.approvals.all_grants() } else { GrantSet::default() };
    policy.evaluate(mode, &grants, tool, facets)
}

fn permission_request(facets: &ToolCallInfo, why: Option<String>) -> AgentPermissionRequest {
    let choice = |id: &str, name: &str| PermissionOption {
        id: id.to_owned(),
        name: name.to_owned(),
        allows: id == YES,
        always: false,
    };
    AgentPermissionRequest {
        subject: PermissionSubject::Call,
        call: String::new(),
        title: facets.title.clone(),
        kind: facets.kind,
        input: None,
        content: why
            .map(|why| ToolCallContent::Text(format!("Why this is asked: {why}.")))
            .into_iter()
            .collect(),
        choices: vec![choice(YES, "Allow once"), choice(NO, "Reject")],
        offer: None,
    }
}

/// Tells whether an answer to a question of ours is a yes.
pub(super) fn is_allowed(answer: Option<&PermissionAnswer>) -> bool {
    matches!(answer, Some(PermissionAnswer::Chosen(id)) if id == YES)
}
