//! A child as others see it: where its orders go, and what it has come to.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crow_core::ToolCallContent;
use crow_store::TaskState;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::children::child::{ChildCommand, ChildStatus};
use crate::children::view::ChildView;

/// A child with all that can be had of it.
#[derive(Clone)]
pub(super) struct ChildHandle {
    pub(super) orders: mpsc::Sender<ChildCommand>,
    pub(super) standing: Arc<watch::Sender<ChildStatus>>,
    pub(super) view: Arc<Mutex<ChildView>>,
    pub(super) seen: Arc<watch::Sender<()>>,
    /// Cancelled when it has ended and somebody else may drive its task.
    pub(super) gone: CancellationToken,
    /// Stops the round that runs.
    pub(super) round: Arc<Mutex<CancellationToken>>,
}

impl ChildHandle {
    pub(super) fn is_working(&self) -> bool {
        !self.gone.is_cancelled() && self.standing.borrow().state == TaskState::Running
    }

    pub(super) fn cancel_turn(&self) {
        self.round.lock().unwrap_or_else(PoisonError::into_inner).cancel();
    }

    pub(super) fn lock_view(&self) -> MutexGuard<'_, ChildView> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A round that somebody waits for.
#[derive(Clone)]
pub(crate) struct AwaitedTurn {
    pub(super) living: ChildHandle,
    pub(super) standing: watch::Receiver<ChildStatus>,
    pub(super) n_ended: u32,
}

impl AwaitedTurn {
    /// Waits for the end of the round; gives what the parent is told of it.
    pub(crate) async fn wait_for_end(&mut self) -> String {
        let n_ended = self.n_ended;
        let gone = self.living.gone.clone();
        // When it is gone it ended as its last round did, or it broke.
        drop(gone.run_until_cancelled(self.standing.wait_for(|standing| standing.n_ended > n_ended)).await);
        let standing = self.standing.borrow();
        match standing.n_ended > n_ended {
            true => standing.report.clone(),
            false => "the task broke; the log of Crow says more".to_owned(),
        }
    }

    /// How the round ended.
    pub(crate) fn task_state(&self) -> TaskState {
        self.standing.borrow().state
    }

    /// Stops the round.
    pub(crate) fn cancel_turn(&self) {
        self.living.cancel_turn();
    }

    /// Rings whenever there is something else to see.
    pub(crate) fn subscribe_view(&self) -> watch::Receiver<()> {
        self.living.seen.subscribe()
    }

    /// What is seen of the child.
    pub(crate) fn render_view(&self) -> String {
        self.living.lock_view().render_view()
    }

    /// What the child did to files, for a client.
    pub(crate) fn file_diffs(&self) -> Vec<ToolCallContent> {
        let diff = self.standing.borrow().diff.clone();
        match diff {
            Some(diff) => vec![ToolCallContent::Text(format!("```diff\n{diff}\n```"))],
            None => self.living.lock_view().file_diffs().collect(),
        }
    }
}
