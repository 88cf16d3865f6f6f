//! Runs the calls of one reply: side by side where they do not touch the same things, each one judged first,
//! each result on disk before it is shown.

use std::collections::HashSet;
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};

use crow_acp::{
    ClientTerminal, ElicitationForm, ElicitationOutcome, GrantScope, OfferedAnswers, PermissionOutcome,
    PermissionRequest, PermissionSubject,
};
use crow_core::{
    ApprovalSource, CallId, Confinement, Failure, GrantOffer, GrantSet, Mode, OutputStreaming,
    PermissionDecision, SandboxSupport, SessionUpdate, ToolAccess, ToolCall, ToolCallContent, ToolCallInfo,
    ToolCallStatus, ToolKind, ToolResult, TranscriptEntry, conflicting_earlier_calls,
};
use crow_tools::{PermissionPolicy, PolicySources, ToolCx, ToolProgress, ToolRegistry};
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::hold::{self, SandboxedCallResult, WarnedOnce};
use crate::hooks;
use crate::keeping::CallUndoRecorder;
use crate::kit::AgentConfig;
use crate::run_turn::{ClaimOutcome, SessionState, TurnCx};
use crate::speckit::{begin_watching, end_watching};

const NOT_STORED: &str = "its result could not be stored; the turn ends here";
pub(crate) const MOVED: &str = "not run: what it would touch is not what was allowed any longer; look again";
const CUT: &str = "not run: the turn was cancelled";
const REFUSED: &str = "not run: the person refused it";
const WAITS_FOR_WORDS: &str =
    "not run: the person refused a call before it, and says what to do instead with the next message";

/// Runs calls until each has its result in the transcript.
pub(crate) async fn run_calls(
    cx: &TurnCx<'_>,
    tools: &ToolRegistry,
    calls: &[ToolCall],
    talk: &mut SessionState,
) -> Result<(), Failure> {
    let facets: Vec<ToolCallInfo> = calls.iter().map(|call| tools.call_info(call, cx.workspace)).collect();
    for (call, facets) in calls.iter().zip(&facets) {
        announce_call(cx, tools, call, facets);
    }
    let runs = facets.iter().any(|facets| matches!(facets.touch, ToolAccess::Runs(_)));
    let support = if runs { tools.sandbox_support().await } else { SandboxSupport::Full };
    let gate = PermissionGate::new(cx, tools, calls, talk, support);
    let ended: Vec<CancellationToken> = calls.iter().map(|_| CancellationToken::new()).collect();
    let mut running = FuturesUnordered::new();
    for (index, call) in calls.iter().enumerate() {
        let (facets, ended, gate) = (&facets, &ended, &gate);
        running.push(async move {
            for earlier in conflicting_earlier_calls(facets, index) {
                ended[earlier].cancelled().await;
            }
            let context = match hooks::before_call(cx, call).await {
                Ok(context) => context,
                Err(outcome) => return (index, (outcome, OutputDisplay::AsContent)),
            };
            // What it waited for may have moved what it touches.
            let facets = tools.call_info(call, cx.workspace);
            let (mut outcome, shown) = run_call(cx, tools, call, &facets, gate).await;
            hooks::append_context(&mut outcome, context);
            (index, (outcome, shown))
        });
    }
    let mut stored = Ok(());
    while let Some((index, (outcome, shown))) = running.next().await {
        // After a store that failed nothing more may begin, and what runs is brought to its end.
        if stored.is_ok() {
            stored = finish_call(cx, (&calls[index], &facets[index]), outcome, &shown, talk).await;
            if stored.is_err() {
                cx.cut.cancel();
            }
        }
        if stored.is_err() {
            // Nothing will be said of it later.
            let content = Some(vec![ToolCallContent::Text(NOT_STORED.to_owned())]);
            let update =
                SessionUpdate::CallChanged { call: calls[index].id, status: ToolCallStatus::Failed, content };
            cx.client.send_update(cx.session, update);
        }
        ended[index].cancel();
        if let OutputDisplay::InTerminal(terminal) = shown {
            // Only then it is given back: its client shows the end of the call first.
            cx.client.flush_updates(cx.session).await;
            drop(terminal);
        }
    }
    drop(running);
    talk.told = gate.told;
    talk.waits_for_words |= gate.waits_for_words.into_inner();
    stored
}

pub(crate) fn announce_call(cx: &TurnCx<'_>, tools: &ToolRegistry, call: &ToolCall, facets: &ToolCallInfo) {
    let prints = match tools.live_output_dir(call, cx.workspace, cx.client.capabilities()) {
        Some(folder) => OutputStreaming::Live { cwd: folder.display().to_string() },
        None => OutputStreaming::Nothing,
    };
    let update = SessionUpdate::Call {
        call: call.id,
        name: call.name.clone(),
        facets: facets.clone(),
        arguments: call.arguments.to_object(),
        status: ToolCallStatus::Pending,
        content: Vec::new(),
        prints,
    };
    cx.client.send_update(cx.session, update);
}

async fn finish_call(
    cx: &TurnCx<'_>,
    (call, facets): (&ToolCall, &ToolCallInfo),
    outcome: ToolResult,
    shown: &OutputDisplay,
    talk: &mut SessionState,
) -> Result<(), Failure> {
    let (status, plan) = (outcome.status, outcome.plan.clone());
    let content = match shown {
        OutputDisplay::AsContent => Some(outcome.for_client.clone()),
        // What it printed is there already.
        OutputDisplay::AsPrinted | OutputDisplay::InTerminal(_) => None,
    };
    let claims = cx.children.deliveries_for_call(call.id);
    let entry = TranscriptEntry::Result { call: call.id, facets: facets.clone(), outcome };
    if cx.append_with_claims(talk, entry.clone(), &claims).await? == ClaimOutcome::BySomebodyElse {
        cx.append_entry(talk, entry).await?;
    }
    cx.client.send_update(cx.session, SessionUpdate::CallChanged { call: call.id, status, content });
    if let Some(plan) = plan {
        cx.client.send_update(cx.session, SessionUpdate::Plan(plan));
    }
    Ok(())
}

/// Where the client sees what a call came to.
#[derive(Debug, Default)]
enum OutputDisplay {
    /// In the content of the call.
    #[default]
    AsContent,
    /// In what it printed.
    AsPrinted,
    /// In a terminal of the client, which is kept until then.
    InTerminal(Arc<ClientTerminal>),
}

fn running_update(call: &ToolCall, content: Option<Vec<ToolCallContent>>) -> SessionUpdate {
    SessionUpdate::CallChanged { call: call.id, status: ToolCallStatus::Running, content }
}

async fn run_call(
    cx: &TurnCx<'_>,
    tools: &ToolRegistry,
    call: &ToolCall,
    facets: &ToolCallInfo,
    gate: &PermissionGate,
) -> (ToolResult, OutputDisplay) {
    let shown = std::sync::Mutex::new(OutputDisplay::AsContent);
    let show = |now: OutputDisplay| *shown.lock().unwrap_or_else(PoisonError::into_inner) = now;
    let progress = |progress: ToolProgress| match progress {
        ToolProgress::Shows(content) => {
            cx.client.send_update(cx.session, running_update(call, Some(content)));
        }
        ToolProgress::Printed(text) => {
            cx.client.send_update(cx.session, SessionUpdate::Output { call: call.id, text });
        }
        ToolProgress::Exited { code, signal } => {
            cx.client.send_update(cx.session, SessionUpdate::Exited { call: call.id, code, signal });
            show(OutputDisplay::AsPrinted);
        }
        ToolProgress::Terminal(terminal) => {
            let id = terminal.id().to_owned();
            cx.client.send_update(cx.session, SessionUpdate::Terminal { call: call.id, id });
            show(OutputDisplay::InTerminal(terminal));
        }
        ToolProgress::Unheld => show(OutputDisplay::AsContent),
    };
    let keeper = CallUndoRecorder::new(cx, gate.turn, call.id);
    let tool_cx = ToolCx {
        workspace: cx.workspace,
        editor: Some(cx.editor),
        touch: &facets.touch,
        call: Some(call.id),
        confinement: Confinement::Free,
        cut: cx.cut,
        progress: &progress,
        keeper: Some(&keeper),
    };
    let outcome = match approve_call(cx, tools, call, (facets, tool_cx), gate).await {
        // A person takes their time, and a link may lead elsewhere by now.
        Ok(_) if tools.call_info(call, cx.workspace).touch != facets.touch => ToolResult::failure(MOVED),
        Ok(approval) => {
            cx.client.send_update(cx.session, running_update(call, None));
            let watching = begin_watching(cx, call, facets).await;
            let ran = hold::run_held(cx, tools, call, (facets, tool_cx), (gate, approval)).await;
            let outcome = match gate.check_sandboxed_call(cx, (call, facets), ran).await {
                SandboxedCallResult::Over(outcome) => outcome,
                SandboxedCallResult::Again => {
                    cx.client.send_update(cx.session, running_update(call, None));
                    // What it printed the first time has ended for the client.
                    show(OutputDisplay::AsContent);
                    let progress = |what: ToolProgress| {
                        if !matches!(what, ToolProgress::Printed(_) | ToolProgress::Exited { .. }) {
                            progress(what);
                        }
                    };
                    let again = ToolCx { progress: &progress, ..tool_cx };
                    hold::mark_retried(tools.run_call(&hold::retry_call(call), again).await)
                }
            };
            let outcome = end_watching(cx, (watching, call, facets), outcome).await;
            hooks::after_call(cx, call, outcome).await
        }
        Err(outcome) => outcome,
    };
    (outcome, shown.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// What the calls of one reply share when they need permission.
pub(crate) struct PermissionGate {
    /// One question at a time: an answer may cover the next one.
    pub(crate) asking: Mutex<()>,
    /// The policy for what runs on this machine.
    pub(crate) local_policy: PermissionPolicy,
    /// The same where nothing can be held, made when it turns out that nothing can in the client's terminals.
    policy_without_sandbox: OnceLock<PermissionPolicy>,
    /// Calls that run commands in those.
    in_client: HashSet<CallId>,
    pub(crate) told: WarnedOnce,
    pub(crate) settings: Arc<AgentConfig>,
    /// The person rejected a call and says what to do instead with the next prompt.
    waits_for_words: AtomicBool,
    /// Place of the prompt whose turn it is.
    turn: u64,
}

impl PermissionGate {
    pub(crate) fn new(
        cx: &TurnCx<'_>,
        tools: &ToolRegistry,
        calls: &[ToolCall],
        talk: &mut SessionState,
        support: SandboxSupport,
    ) -> Self {
        let client = cx.client.capabilities();
        let in_client = calls.iter().filter(|call| tools.runs_in_client(call, cx.workspace, client));
        Self {
            in_client: in_client.map(|call| call.id).collect(),
            policy_without_sandbox: OnceLock::new(),
            asking: Mutex::default(),
            told: std::mem::take(&mut talk.told),
            local_policy: policy(cx, support),
            settings: cx.kit.config(),
            waits_for_words: AtomicBool::new(false),
            turn: talk.turn,
        }
    }

    /// The policy that a call is judged by: where its command runs, nothing may be able to hold it.
    pub(crate) fn permission_policy(&self, cx: &TurnCx<'_>, call: &ToolCall) -> &PermissionPolicy {
        match cx.workspace.no_client_sandbox() {
            Some(why) if self.in_client.contains(&call.id) => self.policy_without_sandbox.get_or_init(|| {
                let reason = format!("in the client's terminal there is none: {why}");
                policy(cx, SandboxSupport::None { reason })
            }),
            Some(_) | None => &self.local_policy,
        }
    }

    /// Tells whether a call changes files of the session's folders and nothing else.
    fn is_inside(&self, facets: &ToolCallInfo) -> bool {
        let ToolAccess::Writes(paths) = &facets.touch else { return false };
        let is_in_root = |path: &String| {
            self.local_policy.work_roots().iter().any(|root| Path::new(path).starts_with(root))
        };
        paths.iter().all(is_in_root)
    }

    /// Waits until the session's mode frees a call.
    async fn until_allowed_by_mode(&self, cx: &TurnCx<'_>, call: &ToolCall, facets: &ToolCallInfo) {
        let mut standing = cx.standing.clone();
        while standing.changed().await.is_ok() {
            if self.evaluate_call(cx, call, facets) == PermissionDecision::Allow {
                return;
            }
        }
        std::future::pending::<()>().await;
    }

    pub(crate) fn evaluate_call(
        &self,
        cx: &TurnCx<'_>,
        call: &ToolCall,
        facets: &ToolCallInfo,
    ) -> PermissionDecision {
        let policy = self.permission_policy(cx, call);
        let verdict =
            policy.evaluate(effective_mode(cx, facets), &cx.approvals.all_grants(), &call.name, facets);
        match cx.scope {
            Some(scope) => scope.narrow_decision(verdict, (call, &facets.touch)),
            None => verdict,
        }
    }

    /// Tells who approved a call that needs no question.
    fn call_approval(&self, cx: &TurnCx<'_>, call: &ToolCall, facets: &ToolCallInfo) -> ApprovalSource {
        self.permission_policy(cx, call).approval(
            effective_mode(cx, facets),
            &cx.approvals.all_grants(),
            &call.name,
            facets,
        )
    }

    fn is_waiting_for_prompt(&self) -> bool {
        self.waits_for_words.load(Ordering::Relaxed)
    }
}

/// The mode that a call is judged in: the session's, or that of the step at work.
fn effective_mode(cx: &TurnCx<'_>, facets: &ToolCallInfo) -> Mode {
    let mode = cx.standing.borrow().mode;
    cx.scope.map_or(mode, |scope| scope.effective_mode(mode, &facets.touch))
}

/// The policy of a session as it stands.
fn policy(cx: &TurnCx<'_>, support: SandboxSupport) -> PermissionPolicy {
    let (settings, supplies) = (cx.kit.config(), cx.stock.current_config());
    let readable = supplies.skill_folders().map(Path::to_owned).chain([settings.spill_dir.clone()]);
    PermissionPolicy::new(PolicySources {
        workspace: cx.workspace,
        cwd: None,
        readable: readable.collect(),
        config_dir: &settings.config_dir,
        rules: supplies.rules.clone(),
        sandbox: settings.sandbox,
        support,
    })
}

/// Says why Crow itself may not write a file for the person: what is forbidden for good holds for it too.
pub(crate) fn forbidden_write_reason(cx: &TurnCx<'_>, path: &Path) -> Option<String> {
    let touch = ToolAccess::Writes(vec![crow_tools::resolve_links(path).display().to_string()]);
    match evaluate_access(cx, Mode::Auto, "write", touch) {
        PermissionDecision::Deny(why) => Some(format!("{} is not written: {why}", path.display())),
        PermissionDecision::Ask { why, .. } => Some(format!(
            "{} is not written: {}",
            path.display(),
            why.unwrap_or_else(|| "it is protected".to_owned())
        )),
        PermissionDecision::Allow => None,
    }
}

/// Whether the model might read a file by itself; the other side says what speaks against it. `path` is resolved.
pub(crate) fn check_read_allowed(cx: &TurnCx<'_>, path: &Path) -> Result<(), String> {
    let mode = cx.standing.borrow().mode;
    match evaluate_access(cx, mode, "read", ToolAccess::Reads(vec![path.display().to_string()])) {
        PermissionDecision::Allow => Ok(()),
        PermissionDecision::Deny(why) => Err(why),
        PermissionDecision::Ask { why, .. } => Err(why.unwrap_or_else(|| "it needs permission".to_owned())),
    }
}

/// Judges something that no call of the model asks for.
fn evaluate_access(cx: &TurnCx<'_>, mode: Mode, tool: &str, touch: ToolAccess) -> PermissionDecision {
    let facets = ToolCallInfo { title: String::new(), kind: ToolKind::Edit, locations: Vec::new(), touch };
    policy(cx, SandboxSupport::Full).evaluate(mode, &GrantSet::default(), tool, &facets)
}

/// Finds out whether a call may run, and who says so; the other side is what came of it instead.
pub(crate) async fn approve_call(
    cx: &TurnCx<'_>,
    tools: &ToolRegistry,
    call: &ToolCall,
    (facets, tool_cx): (&ToolCallInfo, ToolCx<'_>),
    gate: &PermissionGate,
) -> Result<ApprovalSource, ToolResult> {
    if cx.is_over() {
        return Err(ToolResult::failure(CUT));
    }
    let decided = |verdict: PermissionDecision| match verdict {
        PermissionDecision::Allow => Ok(None),
        PermissionDecision::Deny(why) => Err(ToolResult::failure(format!("not run: {why}"))),
        PermissionDecision::Ask { offer, why } => Ok(Some((offer, why))),
    };
    gate.warn_sandbox_limits(cx, facets);
    if decided(gate.evaluate_call(cx, call, facets))?.is_none() {
        return Ok(gate.call_approval(cx, call, facets));
    }
    let _turn_to_ask = gate.asking.lock().await;
    let Some((offer, why)) = decided(gate.evaluate_call(cx, call, facets))? else {
        return Ok(gate.call_approval(cx, call, facets));
    };
    if gate.is_waiting_for_prompt() {
        return Err(ToolResult::failure(WAITS_FOR_WORDS));
    }
    // Nobody is asked about what cannot be done.
    let preview = match tools.preview_call(call, tool_cx).await {
        Ok(preview) => preview,
        // Why it cannot be done would say what is there, so outside the roots it is asked first.
        Err(_) if matches!(facets.touch, ToolAccess::Writes(_)) && !gate.is_inside(facets) => Vec::new(),
        Err(outcome) => return Err(outcome),
    };
    let arguments = call.arguments.to_object();
    let abilities = cx.client.capabilities();
    let question = PermissionRequest {
        subject: PermissionSubject::Call,
        call: call.id,
        facets,
        arguments: &arguments,
        preview: &preview,
        why: why.as_deref(),
        // The words of a child's question would be lost with its turn.
        answers: OfferedAnswers::Remembered {
            offer: &offer,
            can_tell: abilities.forms || abilities.depth.is_none(),
        },
    };
    let asked = cx.client.request_permission(cx.session, question, cx.cut);
    let answered = match select(pin!(asked), pin!(gate.until_allowed_by_mode(cx, call, facets))).await {
        Either::Left((answered, _)) => answered,
        // The question is taken back by itself.
        Either::Right(((), _)) => return Ok(gate.call_approval(cx, call, facets)),
    };
    apply_permission_outcome(cx, gate, answered, &offer).await
}

/// Makes a decision of an answer, and remembers a yes that holds longer.
async fn apply_permission_outcome(
    cx: &TurnCx<'_>,
    gate: &PermissionGate,
    answered: PermissionOutcome,
    offer: &GrantOffer,
) -> Result<ApprovalSource, ToolResult> {
    let remembered = match answered {
        PermissionOutcome::AllowOnce => Ok(()),
        PermissionOutcome::AllowForSession => cx.approvals.remember_grant(GrantScope::Session, offer).await,
        PermissionOutcome::AllowInProject => cx.approvals.remember_grant(GrantScope::Project, offer).await,
        PermissionOutcome::RejectAndTell => {
            return Err(ToolResult::failure(ask_for_instructions(cx, gate).await));
        }
        PermissionOutcome::Cancelled if cx.is_over() => return Err(ToolResult::failure(CUT)),
        PermissionOutcome::Cancelled => {
            return Err(ToolResult::failure("not run: the question was closed without an answer"));
        }
        PermissionOutcome::Nobody { why } => {
            let why = format!("not run: it needs permission and nobody could be asked ({why})");
            return Err(ToolResult::failure(why));
        }
        PermissionOutcome::Reject | PermissionOutcome::RejectForSession => {
            return Err(ToolResult::failure(REFUSED));
        }
    };
    if let Err(why) = remembered {
        cx.client.send_update(cx.session, SessionUpdate::Notice(why));
    }
    Ok(ApprovalSource::Person)
}

/// Hears what the person wants instead of a call: in a form where the client has them, else with the next prompt, for
/// which the turn ends.
async fn ask_for_instructions(cx: &TurnCx<'_>, gate: &PermissionGate) -> String {
    let form = ElicitationForm {
        message: "What should be done instead?".to_owned(),
        options: Vec::new(),
        free_text: true,
        is_about_trust: false,
    };
    match cx.client.elicit_form(cx.session, &form, cx.cut).await {
        ElicitationOutcome::Chosen(words) if !words.trim().is_empty() => {
            format!("{REFUSED}, and says: {}", words.trim())
        }
        ElicitationOutcome::Chosen(_) | ElicitationOutcome::Declined => REFUSED.into(),
        ElicitationOutcome::Cancelled => CUT.into(),
        ElicitationOutcome::Nobody { .. } => {
            gate.waits_for_words.store(true, Ordering::Relaxed);
            format!("{REFUSED}, and says what to do instead with the next message")
        }
    }
}
