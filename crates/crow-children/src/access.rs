//! Decides whether an external agent may use the client's files and terminals. An access is allowed if the policy
//! allows it or the user approved it for this child before; otherwise the user decides.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crow_acp::{
    AgentPermissionRequest, ClientAccess, ClientAccessRequest, PermissionAnswer, PermissionOption,
    PermissionSubject,
};
use crow_core::{PermissionDecision, ToolAccess, ToolCallContent, ToolCallInfo, ToolKind, shell};
use serde_json::Value;

use crate::shared::ChildrenShared;

/// Approvals remembered per child; a request beyond them is asked again.
const APPROVED_MAX: usize = 1_000;

/// Names of arguments that contain a command line, for any kind of call.
const COMMANDS: [&str; 2] = ["command", "cmd"];

const ALLOW_ID: &str = "allow_once";
const REJECT_ID: &str = "reject_once";

/// The effect of a request on its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ToolEffect {
    Reads,
    Writes,
    Runs,
}

impl ToolEffect {
    /// Returns the effect of a kind of call; `None` if the kind has no definite effect.
    fn from_tool_kind(kind: ToolKind) -> Option<Self> {
        match kind {
            ToolKind::Read => Some(Self::Reads),
            ToolKind::Edit => Some(Self::Writes),
            ToolKind::Execute => Some(Self::Runs),
            ToolKind::Search | ToolKind::Think | ToolKind::Fetch | ToolKind::Other => None,
        }
    }
}

/// The user's approvals for a child on this machine, by effect and target as its requests gave them. The child has
/// direct access to the machine, so this grants nothing; it avoids asking twice. A child on another machine has no
/// direct access, and each of its requests is asked.
#[derive(Debug, Default)]
pub(crate) struct ApprovalCache(Mutex<HashSet<(ToolEffect, String)>>);

impl ApprovalCache {
    /// Remembers an approval.
    pub(crate) fn remember_answer(&self, request: &AgentPermissionRequest, answer: &PermissionAnswer) {
        let PermissionAnswer::Selected(id) = answer else { return };
        // The option must be unambiguous.
        let chosen: Vec<_> = request.options.iter().filter(|choice| choice.id == *id).collect();
        if !matches!(chosen[..], [choice] if choice.allows) {
            return;
        }
        let input = request.input.as_ref().and_then(Value::as_object);
        let targets = input.into_iter().flatten().filter_map(|(name, value)| {
            // Some agents give no kind at all.
            let is_command = request.kind == ToolKind::Other && COMMANDS.contains(&name.as_str());
            let effect =
                if is_command { Some(ToolEffect::Runs) } else { ToolEffect::from_tool_kind(request.kind) };
            Some((effect?, value.as_str()?.to_owned()))
        });
        let diffs = request.content.iter().filter_map(|content| match content {
            ToolCallContent::Diff { path, .. } => Some((ToolEffect::Writes, path.clone())),
            ToolCallContent::Text(_) | ToolCallContent::Image { .. } => None,
        });
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let n_free = APPROVED_MAX.saturating_sub(entries.len());
        entries.extend(targets.chain(diffs).take(n_free));
    }

    fn is_approved(&self, kind: ToolKind, target: &str) -> bool {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ToolEffect::from_tool_kind(kind).is_some_and(|effect| entries.contains(&(effect, target.to_owned())))
    }
}

/// The decision about a request for the client.
#[derive(Debug)]
pub(crate) enum ClientAccessDecision {
    Allow,
    Deny(String),
    /// The user decides.
    Ask(AgentPermissionRequest),
}

/// Decides on a request of a child that works in `cwd`.
pub(crate) fn decide_access(
    shared: &ChildrenShared,
    cwd: &Path,
    approvals: &ApprovalCache,
    request: &ClientAccessRequest,
) -> ClientAccessDecision {
    let (info, target) = match request.access() {
        ClientAccess::Terminal => return ClientAccessDecision::Allow,
        ClientAccess::Read(path) => file_call_info(cwd, path, ToolKind::Read),
        ClientAccess::Write(path) => file_call_info(cwd, path, ToolKind::Edit),
        ClientAccess::Run { program, args, cwd: directory, env } => {
            let directory = crow_files::resolve_links(&cwd.join(directory.unwrap_or(cwd)));
            let roots = shared.session.workspace().roots().to_vec();
            if !directory.starts_with(crow_files::resolve_links(cwd))
                && !roots.iter().any(|root| directory.starts_with(root))
            {
                return ClientAccessDecision::Deny(format!(
                    "{} is outside the directories of this session",
                    directory.display()
                ));
            }
            let command_line = match args {
                // Many agents put a whole command line here.
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
            let title = crate::view::single_line(&format!("Run {command_line}"));
            let access = ToolAccess::Runs(command_line.clone());
            (ToolCallInfo { title, kind: ToolKind::Execute, locations: Vec::new(), access }, command_line)
        }
    };
    match shared.session.evaluate_access(cwd, &info) {
        PermissionDecision::Allow => ClientAccessDecision::Allow,
        PermissionDecision::Deny(reason) => ClientAccessDecision::Deny(reason),
        PermissionDecision::Ask { .. } if approvals.is_approved(info.kind, &target) => {
            ClientAccessDecision::Allow
        }
        PermissionDecision::Ask { .. }
            if line_of_shell(request)
                .is_some_and(|command_line| approvals.is_approved(info.kind, command_line)) =>
        {
            ClientAccessDecision::Allow
        }
        PermissionDecision::Ask { reason, .. } => {
            ClientAccessDecision::Ask(permission_request(&info, reason))
        }
    }
}

/// Returns the command line that a request passes to a plain shell: many agents ask for permission for the command line
/// alone.
fn line_of_shell(request: &ClientAccessRequest) -> Option<&str> {
    let ClientAccess::Run { program, args: [option, command_line], cwd: _, env } = request.access() else {
        return None;
    };
    let name = ["/bin/", "/usr/bin/"]
        .iter()
        .find_map(|directory| program.strip_prefix(directory))
        .unwrap_or(program);
    let is_plain = ["sh", "bash", "zsh", "dash"].contains(&name) && ["-c", "-lc"].contains(&option.as_str());
    (is_plain && env.is_empty()).then_some(command_line)
}

fn quote_command(words: &[String]) -> String {
    words.iter().map(|word| shell::quote_word(word)).collect::<Vec<_>>().join(" ")
}

fn file_call_info(cwd: &Path, path: &Path, kind: ToolKind) -> (ToolCallInfo, String) {
    let target = path.display().to_string();
    let resolved = crow_files::resolve_links(&cwd.join(path)).display().to_string();
    let (verb, access) = match kind {
        ToolKind::Read => ("Read", ToolAccess::Reads(vec![resolved])),
        ToolKind::Edit
        | ToolKind::Search
        | ToolKind::Execute
        | ToolKind::Think
        | ToolKind::Fetch
        | ToolKind::Other => ("Write", ToolAccess::Writes(vec![resolved])),
    };
    let title = crate::view::single_line(&format!("{verb} {target}"));
    (ToolCallInfo { title, kind, locations: Vec::new(), access }, target)
}

fn permission_request(info: &ToolCallInfo, reason: Option<String>) -> AgentPermissionRequest {
    let choice = |id: &str, name: &str| PermissionOption {
        id: id.to_owned(),
        name: name.to_owned(),
        allows: id == ALLOW_ID,
        always: false,
        prefix: None,
    };
    AgentPermissionRequest {
        subject: PermissionSubject::Call,
        call: String::new(),
        title: info.title.clone(),
        kind: info.kind,
        input: None,
        content: reason
            .map(|reason| ToolCallContent::Text(format!("Reason: {reason}.")))
            .into_iter()
            .collect(),
        options: vec![choice(ALLOW_ID, "Allow once"), choice(REJECT_ID, "Reject")],
        offer: None,
    }
}

/// Whether an answer to one of our questions is an approval.
pub(crate) fn is_allowed(answer: Option<&PermissionAnswer>) -> bool {
    matches!(answer, Some(PermissionAnswer::Selected(id)) if id == ALLOW_ID)
}
