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
    pub(super) commands: mpsc::Sender<ChildCommand>,
    pub(super) status: Arc<watch::Sender<ChildStatus>>,
    pub(super) view: Arc<Mutex<ChildView>>,
    pub(super) view_changed: Arc<watch::Sender<()>>,
    /// Cancelled when it has ended and somebody else may drive its task.
    pub(super) stopped: CancellationToken,
    /// Stops the round that runs.
    pub(super) turn_cancel: Arc<Mutex<CancellationToken>>,
}

impl ChildHandle {
    pub(super) fn is_working(&self) -> bool {
        !self.stopped.is_cancelled() && self.status.borrow().state == TaskState::Running
    }

    pub(super) fn cancel_turn(&self) {
        self.turn_cancel.lock().unwrap_or_else(PoisonError::into_inner).cancel();
    }

    pub(super) fn lock_view(&self) -> MutexGuard<'_, ChildView> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A round that somebody waits for.
#[derive(Clone)]
pub(crate) struct AwaitedTurn {
    pub(super) child: ChildHandle,
    pub(super) status: watch::Receiver<ChildStatus>,
    pub(super) n_ended: u32,
}

impl AwaitedTurn {
    /// Waits for the end of the round; gives what the parent is told of it.
    pub(crate) async fn wait_for_end(&mut self) -> String {
        let n_ended = self.n_ended;
        let stopped = self.child.stopped.clone();
        // When it is gone it ended as its last round did, or it broke.
        drop(stopped.run_until_cancelled(self.status.wait_for(|status| status.n_ended > n_ended)).await);
        let status = self.status.borrow();
        match status.n_ended > n_ended {
            true => status.report.clone(),
            false => "the task broke; the log of Crow says more".to_owned(),
        }
    }

    /// How the round ended.
    pub(crate) fn task_state(&self) -> TaskState {
        self.status.borrow().state
    }

    /// Stops the round.
    pub(crate) fn cancel_turn(&self) {
        self.child.cancel_turn();
    }

    /// Rings whenever there is something else to see.
    pub(crate) fn subscribe_view(&self) -> watch::Receiver<()> {
        self.child.view_changed.subscribe()
    }

    /// What is seen of the child.
    pub(crate) fn render_view(&self) -> String {
        self.child.lock_view().render_view()
    }

    /// What the child did to files, for a client.
    pub(crate) fn file_diffs(&self) -> Vec<ToolCallContent> {
        let diff = self.status.borrow().diff.clone();
        match diff {
            Some(diff) => vec![ToolCallContent::Text(format!("```diff\n{diff}\n```"))],
            None => self.child.lock_view().file_diffs().collect(),
        }
    }
}
