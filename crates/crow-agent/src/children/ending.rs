//! The end of a round: how it came to it, what is left of its process and its folder, and who is told.

use std::sync::PoisonError;
use std::time::Duration;

use crow_acp::{AgentProgram, ProgramEnded, StopReason};
use crow_store::{TaskEnd, TaskState};
use crow_tools::SettledWorktree;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::children::child::{ChildActor, ChildStatus, ChildStop, NotifyParent};
use crate::children::report::{self, ChildTurnSummary, render_report};
use crate::clock;

/// How long the end of a program is awaited whose connection has broken: they end at the same moment.
const END_WAIT_MAX: Duration = Duration::from_millis(200);

/// How a round came to its end.
#[derive(Debug)]
pub(super) struct ChildTurnEnd {
    pub(super) state: TaskState,
    pub(super) why: Option<String>,
}

impl ChildActor {
    /// Ends the round that runs, if one does: the row first, then whoever waits.
    pub(super) async fn finish_turn(&mut self, end: ChildTurnEnd) {
        let Some(round) = self.round.take() else { return };
        // Nobody answers its questions any longer.
        round.asks.cancel();
        let ChildTurnEnd { state, why } = end;
        if let Some(record) = self.hearing.record.take()
            && let Err(error) = record.end().await
        {
            tracing::warn!(%error, task = %self.task, "what a child said could not be stored");
        }
        let n_tokens = self.hearing.n_round;
        let settled = self.settle_worktree().await;
        let (branch, worktree, diff) = match settled {
            Some((settled, text)) => (settled.branch, Some(text), Some(settled.diff)),
            None => (None, None, None),
        };
        let text = {
            let view = self.hearing.view.lock().unwrap_or_else(PoisonError::into_inner);
            let ended = ChildTurnSummary {
                task: &self.task,
                who: &self.hearing.who,
                state,
                why: why.as_deref(),
                n_tokens: Some(n_tokens),
                worktree: worktree.as_deref(),
            };
            render_report(&ended, &view)
        };
        let end = TaskEnd { state, n_tokens, branch, delivery: Some(text.clone()), now: clock::now() };
        let family = self.hearing.family.clone();
        if let Err(error) = family.kit.store.end_task(&self.attending, end).await {
            tracing::error!(%error, task = %self.task, "the end of a task could not be stored");
        }
        let wake = round.wake;
        drop(round);
        self.hearing.send_child_state(false);
        self.standing.send_modify(|standing| {
            let diff = diff.filter(|diff| !diff.is_empty());
            *standing = ChildStatus { n_ended: standing.n_ended + 1, state, report: text, diff };
        });
        if wake == NotifyParent::Yes {
            family.notify_mail(state);
        }
    }

    /// Commits what stands in the child's own worktree; gives what came of it and what there is to say about it.
    async fn settle_worktree(&self) -> Option<(SettledWorktree, String)> {
        let worktree = self.worktree.as_ref()?;
        let family = &self.hearing.family;
        let git = family.kit.own_tools.tools.git_for(&family.environment().workspace);
        // It is short, and must not be left half done by whoever stopped the child.
        let settled = worktree.settle(&git, &CancellationToken::new()).await;
        let text = report::describe_worktree(worktree, &settled);
        Some((settled, text))
    }
}

/// Reads why an agent says that it stopped. Nobody here stopped it.
pub(super) fn turn_end_from(reason: StopReason) -> ChildTurnEnd {
    let done = |why: Option<&str>| ChildTurnEnd { state: TaskState::Done, why: why.map(str::to_owned) };
    match reason {
        StopReason::EndTurn => done(None),
        StopReason::MaxTokens => done(Some("its answer was cut because it became too long")),
        StopReason::MaxTurnRequests => done(Some("its turn reached a limit before it was done")),
        StopReason::Refusal => {
            ChildTurnEnd { state: TaskState::Failed, why: Some("its model refused".to_owned()) }
        }
        StopReason::Cancelled => ChildTurnEnd {
            state: TaskState::Failed,
            why: Some("it stopped by itself, as some agents do when a person refuses something".to_owned()),
        },
    }
}

/// Ends a child's program; gives what there is to say about that.
pub(super) async fn end_program(program: Option<AgentProgram>, broke: Option<&ChildStop>) -> String {
    let Some(mut program) = program else { return String::new() };
    let (by_itself, end) = match broke {
        Some(ChildStop::Gone(_)) => {
            let ended = timeout(END_WAIT_MAX, program.wait_for_exit()).await;
            (ended.ok().flatten(), program.shut_down().await)
        }
        Some(ChildStop::Deaf(_)) => (None, program.kill().await),
        Some(ChildStop::Over(_) | ChildStop::Stopped | ChildStop::Failed(_)) | None => {
            (None, program.shut_down().await)
        }
    };
    let mut text = match by_itself {
        Some(ProgramEnded::Exited(code)) => format!(" It ended with exit code {code}."),
        Some(ProgramEnded::Signalled(signal)) => format!(" It was ended by signal {signal}."),
        Some(ProgramEnded::TimedOut | ProgramEnded::Cancelled) | None => String::new(),
    };
    let is_told = |stray: &str| matches!(broke, Some(ChildStop::Failed(why)) if why.contains(stray));
    if let Some(stray) = end.stray.filter(|stray| !is_told(stray)) {
        text.push_str(&format!(" It said what is no message of the protocol: {stray}"));
    }
    if !end.stderr.is_empty() {
        text.push_str(&format!("\nThe end of what it complained of:\n{}", end.stderr));
    }
    text
}
