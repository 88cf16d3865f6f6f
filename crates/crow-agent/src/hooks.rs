//! Runs the person's hooks at their moments of a turn, one after the other in the order of the configuration,
//! and makes of what they say what the turn does. Must never know how a hook is started or spelled.
//!
//! Where no hook is configured nothing happens here: no process, no JSON.

use std::sync::atomic::{AtomicBool, Ordering};

use crow_core::{
    Call, CrowPart, Entry, Failure, FailureKind, Hook, Moment, Outcome, Part, Prompt, Said, Situation,
    Transcript, Update,
};

use crate::run_turn::{Conversation, TurnCx};

/// How often hooks may have the model go on in one turn: one that is never content would never end.
const GO_ONS_MAX: u32 = 3;

const CUT: &str = "not run: the turn was cancelled";
const OVER: &str = "not run: a hook ended the turn before it";

/// What the hooks of one moment came to.
#[derive(Debug, Default)]
struct Heard {
    /// What the model should know, hook by hook.
    context: Vec<String>,
    /// What stopped the rest of them.
    objection: Option<Objection>,
}

#[derive(Debug)]
enum Objection {
    /// What they ran for may not happen; why.
    Refused(String),
    /// The turn ends; why.
    Ended(String),
    /// The turn was cut.
    Cut,
}

/// Why a prompt is not asked.
#[derive(Debug)]
pub(crate) enum NotAsked {
    /// A hook refused it; says so.
    Refused(String),
    /// The turn was cut while hooks ran.
    Cut,
}

impl NotAsked {
    /// Says it to whoever said something into a running turn.
    pub(crate) fn failure(self) -> Failure {
        let why = match self {
            Self::Refused(why) => why,
            Self::Cut => "The turn was stopped before the model read this. Send it as a prompt.".to_owned(),
        };
        Failure::new(FailureKind::InvalidValue, why)
    }
}

/// What hooks did to a turn so far.
#[derive(Debug, Default)]
pub(crate) struct HookMarks {
    is_ended: AtomicBool,
}

impl HookMarks {
    /// Tells whether a hook ended the turn.
    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed)
    }
}

/// Runs the hooks of a moment until one objects.
async fn hear(cx: &TurnCx<'_>, moment: Moment<'_>) -> Heard {
    let supplies = cx.stock.now();
    let hooks: Vec<&Hook> = supplies.hooks.iter().filter(|hook| hook.is_for(&moment)).collect();
    let mut heard = Heard::default();
    if hooks.is_empty() {
        return heard;
    }
    let cwd = cx.workspace.cwd().display().to_string();
    let told = moment.spell(Situation { session: cx.session, cwd: &cwd });
    for hook in hooks {
        let said = cx.kit.own_tools.tools.run_hook(hook, &told, cx.workspace, cx.cut).await;
        heard.objection = match said {
            None => Some(Objection::Cut),
            Some(Said::Nothing) => None,
            Some(Said::Context(text)) => {
                heard.context.push(text);
                None
            }
            Some(Said::Block(why)) => Some(Objection::Refused(format!("a hook refused it: {why}"))),
            Some(Said::GoOn(why)) => Some(Objection::Refused(why)),
            Some(Said::End(why)) => {
                notice(cx, format!("A hook ended the turn: {why}"));
                cx.hook_marks.is_ended.store(true, Ordering::Relaxed);
                Some(Objection::Ended(why))
            }
            Some(Said::Failed(why)) => {
                notice(cx, format!("The {} hook `{}` failed: {why}", hook.event.as_str(), hook.name()));
                let refuse = || format!("the hook `{}` has to pass it first, and failed: {why}", hook.name());
                hook.event.guards().then(|| Objection::Refused(refuse()))
            }
        };
        if heard.objection.is_some() {
            break;
        }
    }
    heard
}

/// Runs the hooks before a call; gives what they add to its result, or its outcome when it may not run.
pub(crate) async fn before_call(cx: &TurnCx<'_>, call: &Call) -> Result<Vec<String>, Outcome> {
    if cx.hook_marks.is_ended() {
        return Err(Outcome::failed(OVER));
    }
    let heard = hear(cx, Moment::BeforeCall(call)).await;
    match heard.objection {
        None => Ok(heard.context),
        Some(Objection::Refused(why)) => Err(Outcome::failed(format!("not run: {why}"))),
        Some(Objection::Ended(why)) => {
            Err(Outcome::failed(format!("not run: a hook ended the turn here: {why}")))
        }
        Some(Objection::Cut) => Err(Outcome::failed(CUT)),
    }
}

/// Runs the hooks after a call and adds what they say to what the model reads. What ran stays done.
pub(crate) async fn after_call(cx: &TurnCx<'_>, call: &Call, mut outcome: Outcome) -> Outcome {
    let heard = hear(cx, Moment::AfterCall { call, outcome: &outcome }).await;
    add(&mut outcome, heard.context);
    outcome
}

/// Adds what hooks say to what the model reads of a call.
pub(crate) fn add(outcome: &mut Outcome, context: Vec<String>) {
    let added = context.into_iter().map(|text| Part::Text(format!("(a hook says) {text}")));
    outcome.for_model.extend(added);
}

/// Runs the hooks on what the person said; gives it with what they add.
pub(crate) async fn on_prompt(cx: &TurnCx<'_>, mut parts: Vec<Part>) -> Result<Vec<Part>, NotAsked> {
    let heard = hear(cx, Moment::Prompt { parts: &parts }).await;
    match heard.objection {
        None => {}
        Some(Objection::Refused(why) | Objection::Ended(why)) => {
            return Err(NotAsked::Refused(format!("Not asked: {why}")));
        }
        Some(Objection::Cut) => return Err(NotAsked::Cut),
    }
    let added = heard.context.into_iter();
    parts.extend(added.map(|text| Part::FromCrow { what: CrowPart::PromptHook, text }));
    Ok(parts)
}

/// Runs the hooks when the model has nothing more to do. Tells whether the turn is not over yet: one of them has
/// the model go on, or it was cut meanwhile.
pub(crate) async fn keep_from_ending(
    cx: &TurnCx<'_>,
    talk: &mut Conversation,
    n_gone_on: &mut u32,
) -> Result<bool, Failure> {
    let moment = Moment::Stop { reply: last_words(&talk.transcript), n_gone_on: *n_gone_on };
    let why = match hear(cx, moment).await.objection {
        None | Some(Objection::Ended(_)) => return Ok(false),
        Some(Objection::Cut) => return Ok(cx.cut.is_cancelled()),
        Some(Objection::Refused(why)) => why,
    };
    if *n_gone_on == GO_ONS_MAX {
        notice(
            cx,
            format!("A hook wants the model to go on once more; {GO_ONS_MAX} times are enough: {why}"),
        );
        return Ok(false);
    }
    *n_gone_on += 1;
    let text = format!("A hook asks you to go on: {why}");
    notice(cx, text.clone());
    let prompt = Prompt { id: talk.transcript.next_message(), parts: vec![Part::Text(text)] };
    cx.append(talk, Entry::Prompt(prompt)).await?;
    Ok(true)
}

fn last_words(transcript: &Transcript) -> &str {
    let last = transcript.entries().iter().rev().find_map(|entry| match entry {
        Entry::Reply(reply) => Some(reply.text.as_str()),
        Entry::Prompt(_) | Entry::Result { .. } => None,
    });
    last.unwrap_or_default()
}

fn notice(cx: &TurnCx<'_>, text: String) {
    cx.client.tell(cx.session, Update::Notice(text));
}
