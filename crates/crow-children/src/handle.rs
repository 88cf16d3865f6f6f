//! A child as seen by its session: a queue for commands and its state.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crow_core::ToolCallContent;
use crow_store::TaskState;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::child_status::SharedChildStatus;
use crate::turn::ChildCommand;
use crate::view::ChildView;

/// A handle to a child.
#[derive(Clone)]
pub(crate) struct ChildHandle {
    pub(crate) commands: mpsc::Sender<ChildCommand>,
    pub(crate) status: Arc<SharedChildStatus>,
    pub(crate) view: Arc<Mutex<ChildView>>,
    pub(crate) view_changed: Arc<watch::Sender<()>>,
    /// Cancelled when the child has ended and another process may drive its task.
    pub(crate) stopped: CancellationToken,
    /// Cancels the running turn.
    pub(crate) turn_cancel: Arc<Mutex<CancellationToken>>,
}

impl ChildHandle {
    pub(crate) fn is_working(&self) -> bool {
        !self.stopped.is_cancelled() && self.status.state() == TaskState::Running
    }

    pub(crate) fn cancel_turn(&self) {
        self.turn_cancel.lock().unwrap_or_else(PoisonError::into_inner).cancel();
    }

    pub(crate) fn lock_view(&self) -> MutexGuard<'_, ChildView> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A turn whose end is awaited.
#[derive(Clone)]
pub struct AwaitedTurn {
    pub(crate) child: ChildHandle,
    pub(crate) n_ended: u32,
}

impl AwaitedTurn {
    /// Waits for the end of the turn; returns its report.
    pub(crate) async fn wait_for_end(&self) -> String {
        let (n_ended, status) = (self.n_ended, &self.child.status);
        // If the child has ended without a report, it crashed.
        self.child.stopped.run_until_cancelled(status.wait_for_end(n_ended)).await;
        let status = status.lock();
        match status.n_ended > n_ended {
            true => status.report.clone(),
            false => "the task failed unexpectedly; Crow's log has the error".to_owned(),
        }
    }

    /// Returns the state of the task.
    pub(crate) fn task_state(&self) -> TaskState {
        self.child.status.state()
    }

    pub(crate) fn cancel_turn(&self) {
        self.child.cancel_turn();
    }

    /// Subscribes to changes of the view.
    pub(crate) fn subscribe_view(&self) -> watch::Receiver<()> {
        self.child.view_changed.subscribe()
    }

    /// Returns the view if it has changed since the last time and is not hidden.
    pub(crate) fn changed_view(&self, view_changed: &mut watch::Receiver<()>) -> Option<String> {
        let view = self.child.lock_view();
        if view.is_hidden || !view_changed.has_changed().unwrap_or(false) {
            return None;
        }
        view_changed.mark_unchanged();
        Some(view.render_view())
    }

    /// Returns the child's changes of files, for a client.
    pub(crate) fn file_diffs(&self) -> Vec<ToolCallContent> {
        let diff = self.child.status.lock().diff.clone();
        match diff {
            Some(diff) => vec![ToolCallContent::Text(format!("```diff\n{diff}\n```"))],
            None => self.child.lock_view().file_diffs().collect(),
        }
    }
}
