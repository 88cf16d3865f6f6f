//! Evaluates calls and other accesses by the current policy of a session, its grants and the running step. Asks no
//! question and runs nothing.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crow_core::{
    ApprovalSource, CallId, GrantOffer, GrantSet, Mode, PermissionDecision, SandboxSupport, ToolAccess,
    ToolCall, ToolCallInfo, ToolKind,
};
use crow_tools::{PermissionPolicy, PolicySources, ToolRegistry};
use tokio::sync::Mutex;

use crate::call_approval::PreparedCall;
use crate::runtime::AgentConfig;
use crate::turn_context::{SessionState, TurnCx, WarnedOnce};

/// State shared by the permission checks of one reply's calls.
pub(crate) struct PermissionGate {
    /// One question at a time: an answer may cover the next question.
    pub(crate) question_lock: Mutex<()>,
    /// The policy for commands on this machine.
    pub(crate) local_policy: PermissionPolicy,
    /// The policy without a sandbox, created when the client's terminals turn out to have none.
    policy_without_sandbox: OnceLock<PermissionPolicy>,
    /// The calls that run commands in the client's terminals.
    client_terminal_calls: HashSet<CallId>,
    pub(crate) warned: WarnedOnce,
    pub(crate) config: Arc<AgentConfig>,
    /// True if the user rejected a call and gives instructions with the next prompt.
    pub(crate) awaits_instructions: AtomicBool,
    /// Sequence number of the turn's prompt.
    pub(crate) turn: u64,
}

impl PermissionGate {
    pub(crate) fn new(
        cx: &TurnCx<'_>,
        tools: &ToolRegistry,
        calls: &[ToolCall],
        state: &mut SessionState,
        support: SandboxSupport,
    ) -> Self {
        let client = cx.client.capabilities();
        let client_terminal_calls =
            calls.iter().filter(|call| tools.runs_in_client(call, cx.workspace, client));
        Self {
            client_terminal_calls: client_terminal_calls.map(|call| call.id).collect(),
            policy_without_sandbox: OnceLock::new(),
            question_lock: Mutex::default(),
            warned: std::mem::take(&mut state.warned),
            local_policy: policy(cx, support),
            config: cx.runtime.config(),
            awaits_instructions: AtomicBool::new(false),
            turn: state.turn,
        }
    }

    /// Returns the policy that applies to a call. There may be no sandbox where its command runs.
    pub(crate) fn permission_policy(&self, cx: &TurnCx<'_>, call: &ToolCall) -> &PermissionPolicy {
        match cx.workspace.no_client_sandbox() {
            Some(reason) if self.client_terminal_calls.contains(&call.id) => {
                self.policy_without_sandbox.get_or_init(|| {
                    let reason = format!("the client's terminal has none: {reason}");
                    policy(cx, SandboxSupport::Unavailable { reason })
                })
            }
            Some(_) | None => &self.local_policy,
        }
    }

    /// Whether a call only changes files in the session's directories.
    pub(crate) fn is_inside(&self, info: &ToolCallInfo) -> bool {
        let ToolAccess::Writes(paths) = &info.access else { return false };
        let is_in_root = |path: &String| {
            self.local_policy.work_roots().iter().any(|root| Path::new(path).starts_with(root))
        };
        paths.iter().all(is_in_root)
    }

    /// Whether the model may read the files that a call writes without a question.
    pub(crate) fn may_read_written(&self, cx: &TurnCx<'_>, info: &ToolCallInfo) -> bool {
        let ToolAccess::Writes(paths) = &info.access else { return false };
        self.local_policy.allows_reads(cx.settings.borrow().mode, paths)
    }

    /// Waits until the session's mode allows a call.
    pub(crate) async fn until_allowed_by_mode(&self, cx: &TurnCx<'_>, call: &ToolCall, info: &ToolCallInfo) {
        let mut settings = cx.settings.clone();
        while settings.changed().await.is_ok() {
            if self.evaluate_call(cx, call, info) == PermissionDecision::Allow {
                return;
            }
        }
        std::future::pending::<()>().await;
    }

    pub(crate) fn evaluate_call(
        &self,
        cx: &TurnCx<'_>,
        call: &ToolCall,
        info: &ToolCallInfo,
    ) -> PermissionDecision {
        self.evaluate_with_grants(cx, call, info, &cx.approvals.all_grants())
    }

    /// Replaces the prefix of an offer by one that the user has written; the error is the reason why it cannot be.
    pub(crate) fn change_prefix(
        &self,
        cx: &TurnCx<'_>,
        PreparedCall { call, info, .. }: PreparedCall<'_>,
        offer: &GrantOffer,
        prefix: &str,
    ) -> Result<GrantOffer, String> {
        let changed = offer.with_prefix(prefix)?;
        let mut grants = cx.approvals.all_grants();
        grants.extend(changed.project.iter().cloned());
        match self.evaluate_with_grants(cx, call, info, &grants) {
            PermissionDecision::Allow => Ok(changed),
            PermissionDecision::Ask { .. } | PermissionDecision::Deny(_) => {
                Err(format!("`{prefix}` does not cover this command"))
            }
        }
    }

    fn evaluate_with_grants(
        &self,
        cx: &TurnCx<'_>,
        call: &ToolCall,
        info: &ToolCallInfo,
        grants: &GrantSet,
    ) -> PermissionDecision {
        let policy = self.permission_policy(cx, call);
        let decision = policy.evaluate(effective_mode(cx, info), grants, &call.name, info);
        match cx.step_policy {
            Some(step_policy) => step_policy.narrow_decision(decision, call, &info.access),
            None => decision,
        }
    }

    /// Returns the source of the approval for a call that needs no question.
    pub(crate) fn call_approval(
        &self,
        cx: &TurnCx<'_>,
        call: &ToolCall,
        info: &ToolCallInfo,
    ) -> ApprovalSource {
        self.permission_policy(cx, call).approval(
            effective_mode(cx, info),
            &cx.approvals.all_grants(),
            &call.name,
            info,
        )
    }

    pub(crate) fn is_waiting_for_prompt(&self) -> bool {
        self.awaits_instructions.load(Ordering::Relaxed)
    }
}

/// Returns the mode in which a call is evaluated: that of the session, or that of the running step.
fn effective_mode(cx: &TurnCx<'_>, info: &ToolCallInfo) -> Mode {
    let mode = cx.settings.borrow().mode;
    cx.step_policy.map_or(mode, |step_policy| step_policy.effective_mode(mode, &info.access))
}

/// Returns the current policy of a session.
fn policy(cx: &TurnCx<'_>, support: SandboxSupport) -> PermissionPolicy {
    let (config, project_config) = (cx.runtime.config(), cx.config_loader.current_config());
    let readable_paths = project_config.skill_folders().map(Path::to_owned).chain([config.spill_dir.clone()]);
    PermissionPolicy::new(PolicySources {
        workspace: cx.workspace,
        cwd: None,
        readable: readable_paths.collect(),
        config_dir: &config.config_dir,
        rules: project_config.rules.clone(),
        sandbox: config.sandbox,
        support,
    })
}

/// Returns the reason why Crow itself may not write a file, if there is one: deny rules apply to Crow as well.
pub(crate) fn forbidden_write_reason(cx: &TurnCx<'_>, path: &Path) -> Option<String> {
    let access = ToolAccess::Writes(vec![crow_files::resolve_links(path).display().to_string()]);
    match evaluate_access(cx, Mode::Auto, "write", access) {
        PermissionDecision::Deny(reason) => Some(format!("{} is not written: {reason}", path.display())),
        PermissionDecision::Ask { reason, .. } => Some(format!(
            "{} is not written: {}",
            path.display(),
            reason.unwrap_or_else(|| "it is protected".to_owned())
        )),
        PermissionDecision::Allow => None,
    }
}

/// Whether the model might read a file without a question; otherwise the reason. `path` is resolved.
pub(crate) fn check_read_allowed(cx: &TurnCx<'_>, path: &Path) -> Result<(), String> {
    let mode = cx.settings.borrow().mode;
    match evaluate_access(cx, mode, "read", ToolAccess::Reads(vec![path.display().to_string()])) {
        PermissionDecision::Allow => Ok(()),
        PermissionDecision::Deny(reason) => Err(reason),
        PermissionDecision::Ask { reason, .. } => {
            Err(reason.unwrap_or_else(|| "it needs permission".to_owned()))
        }
    }
}

/// Evaluates an access that no call of the model requests.
fn evaluate_access(cx: &TurnCx<'_>, mode: Mode, tool: &str, access: ToolAccess) -> PermissionDecision {
    let info = ToolCallInfo { title: String::new(), kind: ToolKind::Edit, locations: Vec::new(), access };
    policy(cx, SandboxSupport::Full).evaluate(mode, &GrantSet::default(), tool, &info)
}
