//! Decides whether an external agent may use the client's files and terminals. An access is allowed if the policy
//! allows it or the user approved it for this child before; otherwise the user decides.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crow_acp::{
    AgentPermissionRequest, ClientAccess, ClientAccessRequest, PermissionAnswer, PermissionOption,
    PermissionSubject,
};
use crow_core::{PermissionDecision, ToolAccess, ToolCallContent, ToolCallInfo, ToolKind, shell};
use serde_json::Value;

use crate::shared::ChildrenShared;

/// Approvals remembered per child; a request beyond them is asked again.
const APPROVED_MAX: usize = 1_000;

/// Targets of one approval; a request names a few files.
const TARGETS_MAX: usize = 64;

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

/// An approval that no request has used yet.
#[derive(Debug)]
struct PendingApproval {
    /// The files, or the spellings of one command.
    targets: Vec<(ToolEffect, String)>,
    /// The user chose an answer for later calls as well.
    is_lasting: bool,
}

/// The user's approvals for a child on this machine, by effect and target as its requests gave them. Each is used once,
/// within its turn, by the request that follows from it; a lasting answer of the user stays. The child has direct access
/// to the machine, so this grants nothing; it avoids asking twice. A child on another machine has no direct access, and
/// each of its requests is asked.
#[derive(Debug, Default)]
pub(crate) struct ApprovalCache(Mutex<VecDeque<PendingApproval>>);

impl ApprovalCache {
    /// Remembers an approval of a child that works in `cwd`.
    pub(crate) fn remember_answer(
        &self,
        cwd: &Path,
        request: &AgentPermissionRequest,
        answer: &PermissionAnswer,
    ) {
        let PermissionAnswer::Selected(id) = answer else { return };
        // The option must be unambiguous.
        let chosen: Vec<_> = request.options.iter().filter(|choice| choice.id == *id).collect();
        let [choice] = chosen[..] else { return };
        let targets = request_targets(cwd, request);
        if !choice.allows || targets.is_empty() {
            return;
        }
        let mut approvals = self.lock_approvals();
        approvals.push_back(PendingApproval { targets, is_lasting: choice.always });
        if approvals.len() > APPROVED_MAX {
            approvals.pop_front();
        }
    }

    /// Forgets the approvals of a turn, whose calls have ended.
    pub(crate) fn end_turn(&self) {
        self.lock_approvals().retain(|approval| approval.is_lasting);
    }

    /// Uses an approval for this effect on this target, if there is one.
    fn take_approval(&self, effect: ToolEffect, target: &str) -> bool {
        let mut approvals = self.lock_approvals();
        let is_target = |(known, name): &(ToolEffect, String)| *known == effect && name == target;
        let Some(approval) = approvals.iter_mut().find(|approval| approval.targets.iter().any(is_target))
        else {
            return false;
        };
        if !approval.is_lasting {
            match effect {
                ToolEffect::Runs => approval.targets.retain(|(known, _)| *known != effect),
                ToolEffect::Reads | ToolEffect::Writes => approval.targets.retain(|known| !is_target(known)),
            }
        }
        approvals.retain(|approval| !approval.targets.is_empty());
        true
    }

    fn lock_approvals(&self) -> MutexGuard<'_, VecDeque<PendingApproval>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Decides on a child's question by the policy for what the question names: a denied effect is denied whatever the user
/// would say, and effects that are all allowed need no question. `None` if the user decides.
pub(crate) fn judge_question(
    shared: &ChildrenShared,
    cwd: &Path,
    is_local: bool,
    request: &AgentPermissionRequest,
) -> Option<PermissionAnswer> {
    let commands = input_commands(request);
    let targets = if commands.is_empty() {
        request_targets(cwd, request)
    } else {
        commands.into_iter().map(|line| (ToolEffect::Runs, line)).collect()
    };
    let decisions = targets.into_iter().map(|(effect, target)| {
        let (kind, access) = match effect {
            ToolEffect::Reads => (ToolKind::Read, ToolAccess::Reads(vec![target])),
            ToolEffect::Writes => (ToolKind::Edit, ToolAccess::Writes(vec![target])),
            ToolEffect::Runs => (ToolKind::Execute, ToolAccess::Runs(target)),
        };
        let info = ToolCallInfo { title: String::new(), kind, locations: Vec::new(), access };
        shared.session.evaluate_access(cwd, &info)
    });
    // The policy speaks for this machine and for the child's directory.
    let has_directory = ["cwd", "workdir", "directory"]
        .iter()
        .any(|name| request.input.as_ref().is_some_and(|input| input.get(name).is_some()));
    let mut is_allowed = is_local && !has_directory;
    let mut n_decisions = 0;
    for decision in decisions {
        n_decisions += 1;
        match decision {
            PermissionDecision::Deny(_) => return request.reject(),
            PermissionDecision::Ask { .. } => is_allowed = false,
            PermissionDecision::Allow => {}
        }
    }
    if is_allowed && n_decisions > 0 { request.allow_once() } else { None }
}

/// Returns what a request asks for, as far as it can be recognised.
fn request_targets(cwd: &Path, request: &AgentPermissionRequest) -> Vec<(ToolEffect, String)> {
    let effect = ToolEffect::from_tool_kind(request.kind);
    let commands = match (input_commands(request), effect, request.kind) {
        (commands, _, _) if !commands.is_empty() => commands,
        (_, Some(ToolEffect::Runs), _) | (_, None, ToolKind::Other) => text_commands(request),
        (_, _, _) => Vec::new(),
    };
    let mut targets: Vec<_> = commands.into_iter().map(|line| (ToolEffect::Runs, line)).collect();
    let mut add_file = |effect, path: &str| {
        let target = (effect, resolve_target(cwd, Path::new(path)));
        if !targets.contains(&target) && targets.len() < TARGETS_MAX {
            targets.push(target);
        }
    };
    if let Some(effect @ (ToolEffect::Reads | ToolEffect::Writes)) = effect {
        let input = request.input.as_ref().and_then(Value::as_object);
        for (name, value) in input.into_iter().flatten() {
            let name = name.to_lowercase();
            if let Some(path) = value.as_str().filter(|_| name.contains("path") || name.contains("file")) {
                add_file(effect, path);
            }
        }
    }
    for content in &request.content {
        if let ToolCallContent::Diff { path, .. } = content {
            add_file(ToolEffect::Writes, path);
        }
    }
    targets
}

/// Returns the command line that the arguments of a request contain.
fn input_commands(request: &AgentPermissionRequest) -> Vec<String> {
    if !matches!(request.kind, ToolKind::Execute | ToolKind::Other) {
        return Vec::new();
    }
    request.input.as_ref().and_then(command_of_input).into_iter().collect()
}

/// Returns the command of arguments: a line, or words.
fn command_of_input(input: &Value) -> Option<String> {
    match COMMANDS.iter().find_map(|name| input.get(name))? {
        Value::String(line) => Some(line.clone()),
        Value::Array(words) => {
            let words: Option<Vec<String>> =
                words.iter().map(|word| word.as_str().map(str::to_owned)).collect();
            Some(quote_command(&words?))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Returns the possible spellings of a request's command where only its texts name it: some agents give no arguments.
/// The user sees these texts.
fn text_commands(request: &AgentPermissionRequest) -> Vec<String> {
    let mut commands = vec![request.title.clone()];
    commands.extend(request.title.split_once(": ").map(|(_, line)| line.to_owned()));
    for content in &request.content {
        let ToolCallContent::Text(text) = content else { continue };
        let input = serde_json::from_str::<Value>(text).ok();
        commands.extend(input.as_ref().and_then(command_of_input));
        let quoted = text.split_once('`').and_then(|(_, rest)| rest.rsplit_once('`'));
        commands.extend(quoted.map(|(line, _)| line.to_owned()));
    }
    commands.retain(|line| !line.trim().is_empty());
    commands.truncate(TARGETS_MAX);
    commands
}

fn resolve_target(cwd: &Path, path: &Path) -> String {
    crow_files::resolve_links(&cwd.join(path)).display().to_string()
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
            let resolved_cwd = crow_files::resolve_links(cwd);
            let directory = crow_files::resolve_links(&cwd.join(directory.unwrap_or(cwd)));
            let roots = shared.session.workspace().roots().to_vec();
            if !directory.starts_with(&resolved_cwd) && !roots.iter().any(|root| directory.starts_with(root))
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
            // It is evaluated where it runs.
            let line_in_cwd = match directory == resolved_cwd {
                true => command_line.clone(),
                false => {
                    format!("cd {} && {command_line}", quote_command(&[directory.display().to_string()]))
                }
            };
            let title = crate::view::single_line(&format!("Run {line_in_cwd}"));
            let access = ToolAccess::Runs(line_in_cwd);
            (ToolCallInfo { title, kind: ToolKind::Execute, locations: Vec::new(), access }, command_line)
        }
    };
    match shared.session.evaluate_access(cwd, &info) {
        PermissionDecision::Allow => ClientAccessDecision::Allow,
        PermissionDecision::Deny(reason) => ClientAccessDecision::Deny(reason),
        PermissionDecision::Ask { .. } if uses_approval(approvals, request, info.kind, &target) => {
            ClientAccessDecision::Allow
        }
        PermissionDecision::Ask { reason, .. } => {
            ClientAccessDecision::Ask(permission_request(&info, reason))
        }
    }
}

/// Whether the user approved this in a question of the agent that has not been used.
fn uses_approval(
    approvals: &ApprovalCache,
    request: &ClientAccessRequest,
    kind: ToolKind,
    target: &str,
) -> bool {
    ToolEffect::from_tool_kind(kind).is_some_and(|effect| {
        approvals.take_approval(effect, target)
            || line_of_shell(request).is_some_and(|line| approvals.take_approval(effect, line))
    })
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
    let resolved = resolve_target(cwd, path);
    let (verb, access) = match kind {
        ToolKind::Read => ("Read", ToolAccess::Reads(vec![resolved.clone()])),
        ToolKind::Edit
        | ToolKind::Search
        | ToolKind::Execute
        | ToolKind::Think
        | ToolKind::Fetch
        | ToolKind::Other => ("Write", ToolAccess::Writes(vec![resolved.clone()])),
    };
    let title = crate::view::single_line(&format!("{verb} {}", path.display()));
    (ToolCallInfo { title, kind, locations: Vec::new(), access }, resolved)
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
