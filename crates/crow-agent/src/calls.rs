//! Runs the calls of one reply: side by side where they do not touch the same things, each one judged first,
//! each result on disk before it is shown.

use std::collections::HashSet;
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};

use crow_acp::{Answered, Answers, ClientTerminal, Form, Formed, Lasting, Question, Subject};
use crow_core::{
    Approval, Call, CallId, Confinement, Content, Entry, Facets, Failure, GrantOffer, Grants, Mode, Outcome,
    Prints, SandboxSupport, Status, ToolKind, Touch, Update, Verdict, waits_for,
};
use crow_tools::{PermissionPolicy, PolicySources, Progress, ToolCx, Tools};
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::hold::{self, After, Told};
use crate::hooks;
use crate::keeping::CallKeeper;
use crate::kit::KitSettings;
use crate::run_turn::{Claimed, Conversation, TurnCx};
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
    tools: &Tools,
    calls: &[Call],
    talk: &mut Conversation,
) -> Result<(), Failure> {
    let facets: Vec<Facets> = calls.iter().map(|call| tools.facets(call, cx.workspace)).collect();
    for (call, facets) in calls.iter().zip(&facets) {
        announce(cx, tools, call, facets);
    }
    let runs = facets.iter().any(|facets| matches!(facets.touch, Touch::Runs(_)));
    let support = if runs { tools.sandbox_support().await } else { SandboxSupport::Full };
    let gate = Gate::new(cx, tools, calls, talk, support);
    let ended: Vec<CancellationToken> = calls.iter().map(|_| CancellationToken::new()).collect();
    let mut running = FuturesUnordered::new();
    for (index, call) in calls.iter().enumerate() {
        let (facets, ended, gate) = (&facets, &ended, &gate);
        running.push(async move {
            for earlier in waits_for(facets, index) {
                ended[earlier].cancelled().await;
            }
            let context = match hooks::before_call(cx, call).await {
                Ok(context) => context,
                Err(outcome) => return (index, (outcome, Shown::AsContent)),
            };
            // What it waited for may have moved what it touches.
            let facets = tools.facets(call, cx.workspace);
            let (mut outcome, shown) = run_call(cx, tools, call, &facets, gate).await;
            hooks::add(&mut outcome, context);
            (index, (outcome, shown))
        });
    }
    let mut stored = Ok(());
    while let Some((index, (outcome, shown))) = running.next().await {
        // After a store that failed nothing more may begin, and what runs is brought to its end.
        if stored.is_ok() {
            stored = settle(cx, (&calls[index], &facets[index]), outcome, &shown, talk).await;
            if stored.is_err() {
                cx.cut.cancel();
            }
        }
        if stored.is_err() {
            // Nothing will be said of it later.
            let content = Some(vec![Content::Text(NOT_STORED.to_owned())]);
            let update = Update::CallChanged { call: calls[index].id, status: Status::Failed, content };
            cx.client.tell(cx.session, update);
        }
        ended[index].cancel();
        if let Shown::InTerminal(terminal) = shown {
            // Only then it is given back: its client shows the end of the call first.
            cx.client.flushed(cx.session).await;
            drop(terminal);
        }
    }
    drop(running);
    talk.told = gate.told;
    talk.waits_for_words |= gate.waits_for_words.into_inner();
    stored
}

pub(crate) fn announce(cx: &TurnCx<'_>, tools: &Tools, call: &Call, facets: &Facets) {
    let prints = match tools.prints_live(call, cx.workspace, cx.client.abilities()) {
        Some(folder) => Prints::Live { cwd: folder.display().to_string() },
        None => Prints::Nothing,
    };
    let update = Update::Call {
        call: call.id,
        name: call.name.clone(),
        facets: facets.clone(),
        arguments: call.arguments.object(),
        status: Status::Pending,
        content: Vec::new(),
        prints,
    };
    cx.client.tell(cx.session, update);
}

async fn settle(
    cx: &TurnCx<'_>,
    (call, facets): (&Call, &Facets),
    outcome: Outcome,
    shown: &Shown,
    talk: &mut Conversation,
) -> Result<(), Failure> {
    let (status, plan) = (outcome.status, outcome.plan.clone());
    let content = match shown {
        Shown::AsContent => Some(outcome.for_client.clone()),
        // What it printed is there already.
        Shown::AsPrinted | Shown::InTerminal(_) => None,
    };
    let claims = cx.children.claims(call.id);
    let entry = Entry::Result { call: call.id, facets: facets.clone(), outcome };
    if cx.append_claiming(talk, entry.clone(), &claims).await? == Claimed::BySomebodyElse {
        cx.append(talk, entry).await?;
    }
    cx.client.tell(cx.session, Update::CallChanged { call: call.id, status, content });
    if let Some(plan) = plan {
        cx.client.tell(cx.session, Update::Plan(plan));
    }
    Ok(())
}

/// Where the client sees what a call came to.
#[derive(Debug, Default)]
enum Shown {
    /// In the content of the call.
    #[default]
    AsContent,
    /// In what it printed.
    AsPrinted,
    /// In a terminal of the client, which is kept until then.
    InTerminal(Arc<ClientTerminal>),
}

async fn run_call(
    cx: &TurnCx<'_>,
    tools: &Tools,
    call: &Call,
    facets: &Facets,
    gate: &Gate,
) -> (Outcome, Shown) {
    let shown = std::sync::Mutex::new(Shown::AsContent);
    let show = |now: Shown| *shown.lock().unwrap_or_else(PoisonError::into_inner) = now;
    let progress = |progress: Progress| match progress {
        Progress::Shows(content) => {
            let update =
                Update::CallChanged { call: call.id, status: Status::Running, content: Some(content) };
            cx.client.tell(cx.session, update);
        }
        Progress::Printed(text) => cx.client.tell(cx.session, Update::Output { call: call.id, text }),
        Progress::Exited { code, signal } => {
            cx.client.tell(cx.session, Update::Exited { call: call.id, code, signal });
            show(Shown::AsPrinted);
        }
        Progress::Terminal(terminal) => {
            let id = terminal.id().to_owned();
            cx.client.tell(cx.session, Update::Terminal { call: call.id, id });
            show(Shown::InTerminal(terminal));
        }
        Progress::Unheld => show(Shown::AsContent),
    };
    let keeper = CallKeeper::new(cx, gate.turn, call.id);
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
    let outcome = match permit(cx, tools, call, (facets, tool_cx), gate).await {
        // A person takes their time, and a link may lead elsewhere by now.
        Ok(_) if tools.facets(call, cx.workspace).touch != facets.touch => Outcome::failed(MOVED),
        Ok(approval) => {
            let begins = || Update::CallChanged { call: call.id, status: Status::Running, content: None };
            cx.client.tell(cx.session, begins());
            let watching = begin_watching(cx, call, facets).await;
            let ran = hold::run_held(cx, tools, call, (facets, tool_cx), (gate, approval)).await;
            let outcome = match gate.after(cx, (call, facets), ran).await {
                After::Over(outcome) => outcome,
                After::Again => {
                    cx.client.tell(cx.session, begins());
                    // What it printed the first time has ended for the client.
                    show(Shown::AsContent);
                    let progress = |what: Progress| match what {
                        Progress::Shows(_) | Progress::Terminal(_) | Progress::Unheld => progress(what),
                        Progress::Printed(_) | Progress::Exited { .. } => {}
                    };
                    let again = ToolCx { progress: &progress, ..tool_cx };
                    hold::again(tools.run(&hold::afresh(call), again).await)
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
pub(crate) struct Gate {
    /// One question at a time: an answer may cover the next one.
    pub(crate) asking: Mutex<()>,
    /// The policy for what runs on this machine.
    pub(crate) local_policy: PermissionPolicy,
    /// The same where nothing can be held, made when it turns out that nothing can in the client's terminals.
    policy_without_sandbox: OnceLock<PermissionPolicy>,
    /// Calls that run commands in those.
    in_client: HashSet<CallId>,
    pub(crate) told: Told,
    pub(crate) settings: Arc<KitSettings>,
    /// The person rejected a call and says what to do instead with the next prompt.
    waits_for_words: AtomicBool,
    /// Place of the prompt whose turn it is.
    turn: u64,
}

impl Gate {
    pub(crate) fn new(
        cx: &TurnCx<'_>,
        tools: &Tools,
        calls: &[Call],
        talk: &mut Conversation,
        support: SandboxSupport,
    ) -> Self {
        let client = cx.client.abilities();
        let in_client = calls.iter().filter(|call| tools.runs_in_client(call, cx.workspace, client));
        Self {
            in_client: in_client.map(|call| call.id).collect(),
            policy_without_sandbox: OnceLock::new(),
            asking: Mutex::default(),
            told: std::mem::take(&mut talk.told),
            local_policy: policy(cx, support),
            settings: cx.kit.settings(),
            waits_for_words: AtomicBool::new(false),
            turn: talk.turn,
        }
    }

    /// The policy that a call is judged by: where its command runs, nothing may be able to hold it.
    pub(crate) fn policy(&self, cx: &TurnCx<'_>, call: &Call) -> &PermissionPolicy {
        match cx.workspace.no_client_sandbox() {
            Some(why) if self.in_client.contains(&call.id) => self.policy_without_sandbox.get_or_init(|| {
                let reason = format!("in the client's terminal there is none: {why}");
                policy(cx, SandboxSupport::None { reason })
            }),
            Some(_) | None => &self.local_policy,
        }
    }

    /// Tells whether a call changes files of the session's folders and nothing else.
    fn is_inside(&self, facets: &Facets) -> bool {
        let Touch::Writes(paths) = &facets.touch else { return false };
        let is_in_root = |path: &String| {
            self.local_policy.work_roots().iter().any(|root| Path::new(path).starts_with(root))
        };
        paths.iter().all(is_in_root)
    }

    /// Waits until the session's mode frees a call.
    async fn freed(&self, cx: &TurnCx<'_>, call: &Call, facets: &Facets) {
        let mut standing = cx.standing.clone();
        while standing.changed().await.is_ok() {
            if self.judge(cx, call, facets) == Verdict::Allow {
                return;
            }
        }
        std::future::pending::<()>().await;
    }

    pub(crate) fn judge(&self, cx: &TurnCx<'_>, call: &Call, facets: &Facets) -> Verdict {
        let policy = self.policy(cx, call);
        let verdict = policy.evaluate(mode(cx, facets), &cx.approvals.granted(), &call.name, facets);
        match cx.scope {
            Some(scope) => scope.narrowed(verdict, (call, &facets.touch)),
            None => verdict,
        }
    }

    /// Tells who approved a call that needs no question.
    fn approval(&self, cx: &TurnCx<'_>, call: &Call, facets: &Facets) -> Approval {
        self.policy(cx, call).approval(mode(cx, facets), &cx.approvals.granted(), &call.name, facets)
    }

    fn waits_for_words(&self) -> bool {
        self.waits_for_words.load(Ordering::Relaxed)
    }
}

/// The mode that a call is judged in: the session's, or that of the step at work.
fn mode(cx: &TurnCx<'_>, facets: &Facets) -> Mode {
    let mode = cx.standing.borrow().mode;
    cx.scope.map_or(mode, |scope| scope.mode(mode, &facets.touch))
}

/// The policy of a session as it stands.
fn policy(cx: &TurnCx<'_>, support: SandboxSupport) -> PermissionPolicy {
    let (settings, supplies) = (cx.kit.settings(), cx.stock.now());
    let readable = supplies.folders().map(Path::to_owned).chain([settings.spill_dir.clone()]);
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
pub(crate) fn forbidden_write(cx: &TurnCx<'_>, path: &Path) -> Option<String> {
    let touch = Touch::Writes(vec![crow_tools::resolve(path).display().to_string()]);
    match judged(cx, Mode::Auto, "write", touch) {
        Verdict::Deny(why) => Some(format!("{} is not written: {why}", path.display())),
        Verdict::Ask { why, .. } => Some(format!(
            "{} is not written: {}",
            path.display(),
            why.unwrap_or_else(|| "it is protected".to_owned())
        )),
        Verdict::Allow => None,
    }
}

/// Whether the model might read a file by itself; the other side says what speaks against it. `path` is resolved.
pub(crate) fn may_read(cx: &TurnCx<'_>, path: &Path) -> Result<(), String> {
    let mode = cx.standing.borrow().mode;
    match judged(cx, mode, "read", Touch::Reads(vec![path.display().to_string()])) {
        Verdict::Allow => Ok(()),
        Verdict::Deny(why) => Err(why),
        Verdict::Ask { why, .. } => Err(why.unwrap_or_else(|| "it needs permission".to_owned())),
    }
}

/// Judges something that no call of the model asks for.
fn judged(cx: &TurnCx<'_>, mode: Mode, tool: &str, touch: Touch) -> Verdict {
    let facets = Facets { title: String::new(), kind: ToolKind::Edit, locations: Vec::new(), touch };
    policy(cx, SandboxSupport::Full).evaluate(mode, &Grants::default(), tool, &facets)
}

/// Finds out whether a call may run, and who says so; the other side is what came of it instead.
pub(crate) async fn permit(
    cx: &TurnCx<'_>,
    tools: &Tools,
    call: &Call,
    (facets, tool_cx): (&Facets, ToolCx<'_>),
    gate: &Gate,
) -> Result<Approval, Outcome> {
    if cx.is_over() {
        return Err(Outcome::failed(CUT));
    }
    let decided = |verdict: Verdict| match verdict {
        Verdict::Allow => Ok(None),
        Verdict::Deny(why) => Err(Outcome::failed(format!("not run: {why}"))),
        Verdict::Ask { offer, why } => Ok(Some((offer, why))),
    };
    gate.tell_support(cx, facets);
    if decided(gate.judge(cx, call, facets))?.is_none() {
        return Ok(gate.approval(cx, call, facets));
    }
    let _turn_to_ask = gate.asking.lock().await;
    let Some((offer, why)) = decided(gate.judge(cx, call, facets))? else {
        return Ok(gate.approval(cx, call, facets));
    };
    if gate.waits_for_words() {
        return Err(Outcome::failed(WAITS_FOR_WORDS));
    }
    // Nobody is asked about what cannot be done.
    let preview = match tools.preview(call, tool_cx).await {
        Ok(preview) => preview,
        // Why it cannot be done would say what is there, so outside the roots it is asked first.
        Err(_) if matches!(facets.touch, Touch::Writes(_)) && !gate.is_inside(facets) => Vec::new(),
        Err(outcome) => return Err(outcome),
    };
    let arguments = call.arguments.object();
    let abilities = cx.client.abilities();
    let question = Question {
        subject: Subject::Call,
        call: call.id,
        facets,
        arguments: &arguments,
        preview: &preview,
        why: why.as_deref(),
        // The words of a child's question would be lost with its turn.
        answers: Answers::Remembered {
            offer: &offer,
            can_tell: abilities.forms || abilities.depth.is_none(),
        },
    };
    let asked = cx.client.ask(cx.session, question, cx.cut);
    let answered = match select(pin!(asked), pin!(gate.freed(cx, call, facets))).await {
        Either::Left((answered, _)) => answered,
        // The question is taken back by itself.
        Either::Right(((), _)) => return Ok(gate.approval(cx, call, facets)),
    };
    decide(cx, gate, answered, &offer).await
}

/// Makes a decision of an answer, and remembers a yes that holds longer.
async fn decide(
    cx: &TurnCx<'_>,
    gate: &Gate,
    answered: Answered,
    offer: &GrantOffer,
) -> Result<Approval, Outcome> {
    let remembered = match answered {
        Answered::AllowOnce => Ok(()),
        Answered::AllowForSession => cx.approvals.remember(Lasting::Session, offer).await,
        Answered::AllowInProject => cx.approvals.remember(Lasting::Project, offer).await,
        Answered::RejectAndTell => return Err(Outcome::failed(words_instead(cx, gate).await)),
        Answered::Cancelled if cx.is_over() => return Err(Outcome::failed(CUT)),
        Answered::Cancelled => {
            return Err(Outcome::failed("not run: the question was closed without an answer"));
        }
        Answered::Nobody { why } => {
            let why = format!("not run: it needs permission and nobody could be asked ({why})");
            return Err(Outcome::failed(why));
        }
        Answered::Reject | Answered::RejectForSession => return Err(Outcome::failed(REFUSED)),
    };
    if let Err(why) = remembered {
        cx.client.tell(cx.session, Update::Notice(why));
    }
    Ok(Approval::Person)
}

/// Hears what the person wants instead of a call: in a form where the client has them, else with the next prompt, for
/// which the turn ends.
async fn words_instead(cx: &TurnCx<'_>, gate: &Gate) -> String {
    let form = Form {
        message: "What should be done instead?".to_owned(),
        options: Vec::new(),
        free_text: true,
        is_about_trust: false,
    };
    match cx.client.elicit(cx.session, &form, cx.cut).await {
        Formed::Chosen(words) if !words.trim().is_empty() => {
            format!("{REFUSED}, and says: {}", words.trim())
        }
        Formed::Chosen(_) | Formed::Declined => REFUSED.into(),
        Formed::Cancelled => CUT.into(),
        Formed::Nobody { .. } => {
            gate.waits_for_words.store(true, Ordering::Relaxed);
            format!("{REFUSED}, and says what to do instead with the next message")
        }
    }
}
