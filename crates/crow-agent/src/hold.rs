//! How the commands of a turn are held, and what is done when that may have been why one failed.

use std::sync::atomic::{AtomicBool, Ordering};

use crow_acp::{Answered, Answers, Question, Subject};
use crow_core::{Approval, Arguments, Call, Confinement, Facets, Mode, Outcome, Part, Status, Touch, Update};
use crow_tools::{Progress, ToolCx, Tools};

use crate::calls::{Gate, MOVED, permit};
use crate::run_turn::TurnCx;

const WHY_AGAIN: &str =
    "it failed in the sandbox, perhaps because of it; allowed, it runs again from its start, without one";
const NOT_AGAIN: &str = "(the person did not want it to run without the sandbox)";
const WAS_AGAIN: &str = "(it had failed in the sandbox and was allowed to run again without)";

/// What follows a call that was held.
pub(crate) enum After {
    /// That was all.
    Over(Outcome),
    /// It is to run again, free.
    Again,
}

/// Whether a session's person knows what the sandbox does not do.
#[derive(Debug, Default)]
pub(crate) struct Told {
    here: AtomicBool,
    in_client: AtomicBool,
}

/// How a call was held, and what came of it.
pub(crate) struct Ran {
    pub(crate) confinement: Confinement,
    pub(crate) outcome: Outcome,
}

/// Runs a call that was approved. Where a command was to be held and nothing can hold it in the client's terminals, the
/// call is judged once more, as where there is no sandbox.
pub(crate) async fn run_held(
    cx: &TurnCx<'_>,
    tools: &Tools,
    call: &Call,
    (facets, tool_cx): (&Facets, ToolCx<'_>),
    (gate, approval): (&Gate, Approval),
) -> Ran {
    let confinement = gate.confinement(cx, call, facets, approval);
    let is_unheld = AtomicBool::new(false);
    let progress = |what: Progress| {
        is_unheld.fetch_or(matches!(what, Progress::Unheld), Ordering::Relaxed);
        (tool_cx.progress)(what);
    };
    let outcome = tools.run(call, ToolCx { confinement, progress: &progress, ..tool_cx }).await;
    if !is_unheld.load(Ordering::Relaxed) {
        return Ran { confinement, outcome };
    }
    gate.tell_of_client(cx);
    let approval = match permit(cx, tools, call, (facets, tool_cx), gate).await {
        Ok(_) if tools.facets(call, cx.workspace).touch != facets.touch => Err(Outcome::failed(MOVED)),
        permitted => permitted,
    };
    let confinement = Confinement::Free;
    match approval {
        Ok(approval) => {
            let confinement = gate.confinement(cx, call, facets, approval);
            let outcome = tools.run(&afresh(call), ToolCx { confinement, ..tool_cx }).await;
            Ran { confinement, outcome }
        }
        Err(outcome) => Ran { confinement, outcome },
    }
}

impl Gate {
    /// Tells how a call is held.
    pub(crate) fn confinement(
        &self,
        cx: &TurnCx<'_>,
        call: &Call,
        facets: &Facets,
        approval: Approval,
    ) -> Confinement {
        if !matches!(facets.touch, Touch::Runs(_)) {
            return Confinement::Free;
        }
        let mode = cx.standing.borrow().mode;
        let confinement = self.policy(cx, call).confinement(mode, approval);
        tracing::debug!(call = %call.id, ?confinement, ?approval, "a command runs");
        confinement
    }

    /// Tells the person once what the sandbox does not do here, before the first command that it matters for.
    pub(crate) fn tell_support(&self, cx: &TurnCx<'_>, facets: &Facets) {
        let mode = cx.standing.borrow().mode;
        let is_held = self.settings.sandbox.confinement(mode, Approval::Law) != Confinement::Free;
        if matches!(facets.touch, Touch::Runs(_))
            && is_held
            && let Some(description) = self.local_policy.sandbox_rules().support.description()
            && !self.told.here.swap(true, Ordering::Relaxed)
        {
            let sentence = format!("Note: {description}. `crow-cli doctor` says so too.");
            cx.client.tell(cx.session, Update::Notice(sentence));
        }
    }

    /// Tells the person once that nothing can be held in the client's terminals.
    fn tell_of_client(&self, cx: &TurnCx<'_>) {
        if let Some(why) = cx.workspace.no_client_sandbox()
            && !self.told.in_client.swap(true, Ordering::Relaxed)
        {
            let sentence = format!(
                "Note: there is no sandbox for commands in this client's terminals: {why}. Unapproved commands ask first; \
                 those that only read or edit inside the project run there without it."
            );
            cx.client.tell(cx.session, Update::Notice(sentence));
        }
    }

    /// Looks at what came of a call that was held. One that may have failed because of that says so, and the person
    /// is asked whether it may run again.
    pub(crate) async fn after(
        &self,
        cx: &TurnCx<'_>,
        (call, facets): (&Call, &Facets),
        Ran { confinement: held, outcome }: Ran,
    ) -> After {
        let network = self.settings.network;
        let is_suspected = match (outcome.status, &facets.touch) {
            (Status::Failed, _) => held.is_suspected(network, &said(&outcome)),
            (Status::Done, Touch::Runs(line)) => held.is_suspected_in_part(network, line, &said(&outcome)),
            (Status::Pending | Status::Running | Status::Done, _) => false,
        };
        let Some(note) = held.note(network).filter(|_| is_suspected && !cx.is_over()) else {
            return After::Over(outcome);
        };
        let outcome = outcome.with_note(&note);
        if cx.standing.borrow().mode == Mode::Plan || !starts(call) {
            return After::Over(outcome);
        }
        let _turn_to_ask = self.asking.lock().await;
        let question = Question {
            subject: Subject::Call,
            call: call.id,
            facets,
            arguments: &call.arguments.object(),
            preview: &outcome.for_client.clone(),
            why: Some(WHY_AGAIN),
            answers: Answers::Once,
        };
        match cx.client.ask(cx.session, question, cx.cut).await {
            Answered::AllowOnce | Answered::AllowForSession | Answered::AllowInProject => After::Again,
            Answered::Reject | Answered::RejectForSession | Answered::RejectAndTell => {
                After::Over(outcome.with_note(NOT_AGAIN))
            }
            Answered::Cancelled | Answered::Nobody { .. } => After::Over(outcome),
        }
    }
}

/// Marks what came of a call that ran again.
pub(crate) fn again(outcome: Outcome) -> Outcome {
    outcome.with_note(WAS_AGAIN)
}

/// The same command once more, and nothing else that the call did.
pub(crate) fn afresh(call: &Call) -> Call {
    let mut arguments = call.arguments.object();
    arguments.retain(|name, _| !["reset", "job"].contains(&name.as_str()));
    Call { arguments: Arguments::Valid(arguments), ..call.clone() }
}

/// Tells whether a call starts a command: what was typed to one that runs already must not be typed again.
fn starts(call: &Call) -> bool {
    call.arguments.object().get("is_input").and_then(|typed| typed.as_bool()) != Some(true)
}

fn said(outcome: &Outcome) -> String {
    let texts = outcome
        .for_model
        .iter()
        .filter_map(|part| if let Part::Text(text) = part { Some(text.as_str()) } else { None });
    texts.collect::<Vec<_>>().join("\n")
}
