//! A child as others see it: where its orders go, and what it has come to.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crow_core::Content;
use crow_store::TaskState;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::children::child::{Order, Standing};
use crate::children::view::View;

/// A child with all that can be had of it.
#[derive(Clone)]
pub(super) struct Living {
    pub(super) orders: mpsc::Sender<Order>,
    pub(super) standing: Arc<watch::Sender<Standing>>,
    pub(super) view: Arc<Mutex<View>>,
    pub(super) seen: Arc<watch::Sender<()>>,
    /// Cancelled when it has ended and somebody else may drive its task.
    pub(super) gone: CancellationToken,
    /// Stops the round that runs.
    pub(super) round: Arc<Mutex<CancellationToken>>,
}

impl Living {
    pub(super) fn is_working(&self) -> bool {
        !self.gone.is_cancelled() && self.standing.borrow().state == TaskState::Running
    }

    pub(super) fn cancel(&self) {
        self.round.lock().unwrap_or_else(PoisonError::into_inner).cancel();
    }

    pub(super) fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A round that somebody waits for.
#[derive(Clone)]
pub(crate) struct Awaited {
    pub(super) living: Living,
    pub(super) standing: watch::Receiver<Standing>,
    pub(super) n_ended: u32,
}

impl Awaited {
    /// Waits for the end of the round; gives what the parent is told of it.
    pub(crate) async fn ended(&mut self) -> String {
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
    pub(crate) fn state(&self) -> TaskState {
        self.standing.borrow().state
    }

    /// Stops the round.
    pub(crate) fn cancel(&self) {
        self.living.cancel();
    }

    /// Rings whenever there is something else to see.
    pub(crate) fn seen(&self) -> watch::Receiver<()> {
        self.living.seen.subscribe()
    }

    /// What is seen of the child.
    pub(crate) fn shown(&self) -> String {
        self.living.view().shown()
    }

    /// What the child did to files, for a client.
    pub(crate) fn diffs(&self) -> Vec<Content> {
        let diff = self.standing.borrow().diff.clone();
        match diff {
            Some(diff) => vec![Content::Text(format!("```diff\n{diff}\n```"))],
            None => self.living.view().diffs().collect(),
        }
    }
}
