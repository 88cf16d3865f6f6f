//! Runs the calls of one reply: side by side where they do not touch the same things, each one judged first,
//! each result on disk before it is shown.

use std::sync::PoisonError;

use crow_acp::{Answered, OfferAlways, Question};
use crow_core::{
    Call, Content, Entry, Facets, Failure, Grants, Outcome, Roots, Status, Update, Verdict, judge, waits_for,
};
use crow_tools::ToolCx;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::run_turn::{Conversation, TurnCx};

const CUT: &str = "not run: the turn was cancelled";

/// Runs calls until each has its result in the transcript.
pub(crate) async fn run_calls(
    cx: &TurnCx<'_>,
    calls: &[Call],
    talk: &mut Conversation,
) -> Result<(), Failure> {
    let facets: Vec<Facets> = calls.iter().map(|call| cx.kit.tools.facets(call, cx.workspace)).collect();
    for (call, facets) in calls.iter().zip(&facets) {
        announce(cx, call, facets);
    }
    let gate = Gate {
        asking: Mutex::default(),
        grants: std::sync::Mutex::new(std::mem::take(&mut talk.grants)),
        roots: Roots {
            work: cx.workspace.roots().iter().map(|root| root.display().to_string()).collect(),
            readable: vec![cx.kit.settings.spill_dir.display().to_string()],
            protected: vec![cx.kit.settings.config_dir.display().to_string()],
        },
    };
    let ended: Vec<CancellationToken> = calls.iter().map(|_| CancellationToken::new()).collect();
    let mut running = FuturesUnordered::new();
    for (index, call) in calls.iter().enumerate() {
        let (facets, ended, gate) = (&facets, &ended, &gate);
        running.push(async move {
            for earlier in waits_for(facets, index) {
                ended[earlier].cancelled().await;
            }
            // What it waited for may have moved what it touches.
            let facets = cx.kit.tools.facets(call, cx.workspace);
            (index, run_call(cx, call, &facets, gate).await)
        });
    }
    let mut stored = Ok(());
    while let Some((index, outcome)) = running.next().await {
        // After a store that failed nothing more may begin, and what runs is brought to its end.
        if stored.is_ok() {
            stored = settle(cx, &calls[index], &facets[index], outcome, talk).await;
            if stored.is_err() {
                cx.cut.cancel();
            }
        }
        ended[index].cancel();
    }
    drop(running);
    talk.grants = gate.grants.into_inner().unwrap_or_else(PoisonError::into_inner);
    stored
}

fn announce(cx: &TurnCx<'_>, call: &Call, facets: &Facets) {
    let update = Update::Call {
        call: call.id,
        name: call.name.clone(),
        facets: facets.clone(),
        arguments: call.arguments.object(),
        status: Status::Pending,
        content: Vec::new(),
    };
    cx.client.tell(cx.session, update);
}

async fn settle(
    cx: &TurnCx<'_>,
    call: &Call,
    facets: &Facets,
    outcome: Outcome,
    talk: &mut Conversation,
) -> Result<(), Failure> {
    let (status, content, plan) = (outcome.status, outcome.for_client.clone(), outcome.plan.clone());
    let entry = Entry::Result { call: call.id, facets: facets.clone(), outcome };
    cx.append(talk, entry).await?;
    cx.client.tell(cx.session, Update::CallChanged { call: call.id, status, content: Some(content) });
    if let Some(plan) = plan {
        cx.client.tell(cx.session, Update::Plan(plan));
    }
    Ok(())
}

async fn run_call(cx: &TurnCx<'_>, call: &Call, facets: &Facets, gate: &Gate) -> Outcome {
    if cx.cut.is_cancelled() {
        return Outcome::failed(CUT);
    }
    if let Err(why) = permit(cx, call, facets, gate).await {
        return Outcome::failed(why);
    }
    cx.client.tell(cx.session, Update::CallChanged { call: call.id, status: Status::Running, content: None });
    let progress = |content: Vec<Content>| {
        let update = Update::CallChanged { call: call.id, status: Status::Running, content: Some(content) };
        cx.client.tell(cx.session, update);
    };
    let tool_cx = ToolCx { workspace: cx.workspace, cut: cx.cut, progress: &progress };
    cx.kit.tools.run(call, tool_cx).await
}

/// What the calls of one reply share when they need permission.
struct Gate {
    /// One question at a time: an "always" may answer the next one.
    asking: Mutex<()>,
    grants: std::sync::Mutex<Grants>,
    roots: Roots,
}

impl Gate {
    fn grants(&self) -> std::sync::MutexGuard<'_, Grants> {
        self.grants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn judge(&self, cx: &TurnCx<'_>, facets: &Facets) -> Verdict {
        let mode = cx.standing.borrow().mode;
        judge(mode, &self.grants(), &self.roots, facets)
    }
}

/// Finds out whether a call may run; the error is what the model reads instead of a result.
async fn permit(cx: &TurnCx<'_>, call: &Call, facets: &Facets, gate: &Gate) -> Result<(), String> {
    match gate.judge(cx, facets) {
        Verdict::Allow => return Ok(()),
        Verdict::Deny(why) => return Err(format!("not run: {why}")),
        Verdict::Ask { .. } => {}
    }
    let _turn_to_ask = gate.asking.lock().await;
    let always = match gate.judge(cx, facets) {
        Verdict::Allow => return Ok(()),
        Verdict::Deny(why) => return Err(format!("not run: {why}")),
        Verdict::Ask { always } => always,
    };
    let arguments = call.arguments.object();
    let offer_always = if always.is_some() { OfferAlways::Yes } else { OfferAlways::No };
    let question = Question { call: call.id, facets, arguments: &arguments, offer_always };
    match cx.client.ask(cx.session, question, cx.cut).await {
        Answered::AllowOnce => Ok(()),
        Answered::AllowAlways => {
            always.into_iter().for_each(|grant| gate.grants().allow(grant));
            Ok(())
        }
        Answered::RejectOnce => Err("not run: the person refused it".into()),
        Answered::RejectAlways => {
            always.into_iter().for_each(|grant| gate.grants().refuse(grant));
            Err("not run: the person refused it and does not want it asked again".into())
        }
        Answered::Cancelled if cx.cut.is_cancelled() => Err(CUT.into()),
        Answered::Cancelled => Err("not run: the question was closed without an answer".into()),
        Answered::Nobody { why } => {
            Err(format!("not run: it needs permission and nobody could be asked ({why})"))
        }
    }
}
