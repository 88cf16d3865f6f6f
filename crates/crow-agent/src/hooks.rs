//! Runs the person's hooks at their moments of a turn, one after the other in the order of the configuration,
//! and makes of what they say what the turn does. Must never know how a hook is started or spelled.
//!
//! Where no hook is configured nothing happens here: no process, no JSON.

use std::sync::atomic::{AtomicBool, Ordering};

use crow_core::{
    ContentPart, CrowPart, Failure, FailureKind, HookConfig, HookDecision, HookInput, HookSession, Prompt,
    SessionUpdate, ToolCall, ToolResult, Transcript, TranscriptEntry,
};

use crate::run_turn::{SessionState, TurnCx};

/// How often hooks may have the model go on in one turn: one that is never content would never end.
const GO_ONS_MAX: u32 = 3;

const CUT: &str = "not run: the turn was cancelled";
const OVER: &str = "not run: a hook ended the turn before it";

/// What the hooks of one moment came to.
#[derive(Debug, Default)]
struct HookResults {
    /// What the model should know, hook by hook.
    context: Vec<String>,
    /// What stopped the rest of them.
    objection: Option<HookObjection>,
}

#[derive(Debug)]
enum HookObjection {
    /// What they ran for may not happen; why.
    Refused(String),
    /// The turn ends; why.
    Ended(String),
    /// The turn was cut.
    Cut,
}

/// Why a prompt is not asked.
#[derive(Debug)]
pub(crate) enum PromptRejection {
    /// A hook refused it; says so.
    Refused(String),
    /// The turn was cut while hooks ran.
    Cut,
}

impl PromptRejection {
    /// Says it to whoever said something into a running turn.
    pub(crate) fn into_failure(self) -> Failure {
        let why = match self {
            Self::Refused(why) => why,
            Self::Cut => "The turn was stopped before the model read this. Send it as a prompt.".to_owned(),
        };
        Failure::new(FailureKind::InvalidValue, why)
    }
}

/// What hooks did to a turn so far.
#[derive(Debug, Default)]
pub(crate) struct TurnHookState {
    is_ended: AtomicBool,
}

impl TurnHookState {
    /// Tells whether a hook ended the turn.
    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed)
    }
}

/// Runs the hooks of a moment until one objects.
async fn run_hooks(cx: &TurnCx<'_>, moment: HookInput<'_>) -> HookResults {
    let supplies = cx.stock.current_config();
    let hooks: Vec<&HookConfig> = supplies.hooks.iter().filter(|hook| hook.applies_to(&moment)).collect();
    let mut heard = HookResults::default();
    if hooks.is_empty() {
        return heard;
    }
    let cwd = cx.workspace.cwd().display().to_string();
    let told = moment.to_json(HookSession { session: cx.session, cwd: &cwd });
    for hook in hooks {
        let said = cx.kit.own_tools.tools.run_hook(hook, &told, cx.workspace, cx.cut).await;
        heard.objection = match said {
            None => Some(HookObjection::Cut),
            Some(HookDecision::Nothing) => None,
            Some(HookDecision::Context(text)) => {
                heard.context.push(text);
                None
            }
            Some(HookDecision::Block(why)) => {
                Some(HookObjection::Refused(format!("a hook refused it: {why}")))
            }
            Some(HookDecision::GoOn(why)) => Some(HookObjection::Refused(why)),
            Some(HookDecision::End(why)) => {
                send_notice(cx, format!("A hook ended the turn: {why}"));
                cx.hook_marks.is_ended.store(true, Ordering::Relaxed);
                Some(HookObjection::Ended(why))
            }
            Some(HookDecision::Failed(why)) => {
                send_notice(cx, format!("The {} hook `{}` failed: {why}", hook.event.as_str(), hook.name()));
                let refuse = || format!("the hook `{}` has to pass it first, and failed: {why}", hook.name());
                hook.event.fails_closed().then(|| HookObjection::Refused(refuse()))
            }
        };
        if heard.objection.is_some() {
            break;
        }
    }
    heard
}

/// Runs the hooks before a call; gives what they add to its result, or its outcome when it may not run.
pub(crate) async fn before_call(cx: &TurnCx<'_>, call: &ToolCall) -> Result<Vec<String>, ToolResult> {
    if cx.hook_marks.is_ended() {
        return Err(ToolResult::failure(OVER));
    }
    let heard = run_hooks(cx, HookInput::BeforeCall(call)).await;
    match heard.objection {
        None => Ok(heard.context),
        Some(HookObjection::Refused(why)) => Err(ToolResult::failure(format!("not run: {why}"))),
        Some(HookObjection::Ended(why)) => {
            Err(ToolResult::failure(format!("not run: a hook ended the turn here: {why}")))
        }
        Some(HookObjection::Cut) => Err(ToolResult::failure(CUT)),
    }
}

/// Runs the hooks after a call and adds what they say to what the model reads. What ran stays done.
pub(crate) async fn after_call(cx: &TurnCx<'_>, call: &ToolCall, mut outcome: ToolResult) -> ToolResult {
    let heard = run_hooks(cx, HookInput::AfterCall { call, outcome: &outcome }).await;
    append_context(&mut outcome, heard.context);
    outcome
}

/// Adds what hooks say to what the model reads of a call.
pub(crate) fn append_context(outcome: &mut ToolResult, context: Vec<String>) {
    let added = context.into_iter().map(|text| ContentPart::Text(format!("(a hook says) {text}")));
    outcome.for_model.extend(added);
}

/// Runs the hooks on what the person said; gives it with what they add.
pub(crate) async fn on_prompt(
    cx: &TurnCx<'_>,
    mut parts: Vec<ContentPart>,
) -> Result<Vec<ContentPart>, PromptRejection> {
    let heard = run_hooks(cx, HookInput::Prompt { parts: &parts }).await;
    match heard.objection {
        None => {}
        Some(HookObjection::Refused(why) | HookObjection::Ended(why)) => {
            return Err(PromptRejection::Refused(format!("Not asked: {why}")));
        }
        Some(HookObjection::Cut) => return Err(PromptRejection::Cut),
    }
    let added = heard.context.into_iter();
    parts.extend(added.map(|text| ContentPart::FromCrow { what: CrowPart::PromptHook, text }));
    Ok(parts)
}

/// Runs the hooks when the model has nothing more to do. Tells whether the turn is not over yet: one of them has
/// the model go on, or it was cut meanwhile.
pub(crate) async fn run_stop_hooks(
    cx: &TurnCx<'_>,
    talk: &mut SessionState,
    n_gone_on: &mut u32,
) -> Result<bool, Failure> {
    let moment = HookInput::Stop { reply: last_reply_text(&talk.transcript), n_gone_on: *n_gone_on };
    let why = match run_hooks(cx, moment).await.objection {
        None | Some(HookObjection::Ended(_)) => return Ok(false),
        Some(HookObjection::Cut) => return Ok(cx.cut.is_cancelled()),
        Some(HookObjection::Refused(why)) => why,
    };
    if *n_gone_on == GO_ONS_MAX {
        send_notice(
            cx,
            format!("A hook wants the model to go on once more; {GO_ONS_MAX} times are enough: {why}"),
        );
        return Ok(false);
    }
    *n_gone_on += 1;
    let text = format!("A hook asks you to go on: {why}");
    send_notice(cx, text.clone());
    let prompt = Prompt { id: talk.transcript.next_message_id(), parts: vec![ContentPart::Text(text)] };
    cx.append_entry(talk, TranscriptEntry::Prompt(prompt)).await?;
    Ok(true)
}

fn last_reply_text(transcript: &Transcript) -> &str {
    let last = transcript.entries().iter().rev().find_map(|entry| match entry {
        TranscriptEntry::Reply(reply) => Some(reply.text.as_str()),
        TranscriptEntry::Prompt(_) | TranscriptEntry::Result { .. } => None,
    });
    last.unwrap_or_default()
}

fn send_notice(cx: &TurnCx<'_>, text: String) {
    cx.client.send_update(cx.session, SessionUpdate::Notice(text));
}
