//! What all children of a session share: its client, its place, its rules, its book.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crow_acp::{Client, GrantScope, SessionLocation};
use crow_core::{GrantOffer, SessionId, SessionUpdate};
use crow_store::TaskState;
use crow_tools::Workspace;
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::approvals::{GrantStore, project_root};
use crate::children::book::TreeBudget;
use crate::handle::SessionMsg;
use crate::kit::AgentRuntime;
use crate::session;
use crate::supplies::ProjectConfigLoader;

/// What surrounds a session, which may move.
#[derive(Clone)]
pub(crate) struct SessionEnvironment {
    pub(crate) place: SessionLocation,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) stock: Arc<ProjectConfigLoader>,
}

/// What all children of a session share.
pub(crate) struct ChildrenShared {
    pub(crate) kit: Arc<AgentRuntime>,
    pub(crate) client: Client,
    pub(crate) parent: SessionId,
    pub(crate) standing: watch::Receiver<session::SessionSettings>,
    pub(super) surroundings: watch::Receiver<SessionEnvironment>,
    /// What the person allowed beyond single calls.
    pub(crate) approvals: GrantStore,
    pub(crate) book: Arc<TreeBudget>,
    /// Levels between the root and the session.
    pub(super) depth: u32,
    pub(super) own: mpsc::WeakSender<SessionMsg>,
    pub(super) has_mail: AtomicBool,
    /// Among it is something that the model should hear of without being asked.
    pub(super) wakes: AtomicBool,
    /// Children that may be kept without work.
    pub(super) idle: Semaphore,
    /// Rings when a round ends that nobody waits for.
    pub(super) ended: Notify,
    /// One question at a time.
    pub(super) asking: tokio::sync::Mutex<()>,
    /// Ends every child.
    pub(super) cut: CancellationToken,
    pub(super) lives: TaskTracker,
}

impl ChildrenShared {
    pub(crate) fn environment(&self) -> SessionEnvironment {
        self.surroundings.borrow().clone()
    }

    /// Tells whether this is the folder that the session works in.
    pub(super) fn is_session_folder(&self, folder: &Path) -> bool {
        self.surroundings.borrow().place.cwd == folder
    }

    /// Remembers a yes that a child of Crow's own got; the child itself remembers it until it ends.
    pub(super) async fn remember_for_child(
        &self,
        lasting: GrantScope,
        offer: &GrantOffer,
        shares: bool,
        cwd: &Path,
    ) {
        let remembered = match lasting {
            _ if shares => self.approvals.remember_grant(lasting, offer).await,
            // It works elsewhere, where the parent's answers mean something else.
            GrantScope::Session => Ok(()),
            GrantScope::Project => {
                self.approvals.remember_for_project(&project_root(cwd), &offer.project).await.map(drop)
            }
        };
        if let Err(why) = remembered {
            self.client.send_update(&self.parent, SessionUpdate::Notice(why));
        }
    }

    /// Writes down what a child has cost, and tells whoever counts above.
    pub(super) fn add_tokens(&self, n_tokens: u64) {
        self.book.add_child_tokens(n_tokens);
        if n_tokens > 0
            && let Some(context) = self.book.last_context()
        {
            self.client.send_update(&self.parent, self.book.usage_update(context));
        }
    }

    /// Tells the session that something waits in its mailbox. What a person stopped wakes nobody.
    pub(super) fn notify_mail(&self, state: TaskState) {
        self.has_mail.store(true, Ordering::Relaxed);
        self.ended.notify_waiters();
        if state == TaskState::Cancelled {
            return;
        }
        self.wakes.store(true, Ordering::Relaxed);
        if let Some(own) = self.own.upgrade()
            && own.try_send(SessionMsg::Mail).is_err()
        {
            tracing::debug!(session = %self.parent, "the mail is found at the end of the turn");
        }
    }
}
