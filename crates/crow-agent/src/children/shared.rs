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
use crate::children::budget::TreeBudget;
use crate::handle::SessionMsg;
use crate::project_config::ProjectConfigLoader;
use crate::runtime::AgentRuntime;
use crate::session;

/// What surrounds a session, which may move.
#[derive(Clone)]
pub(crate) struct SessionEnvironment {
    pub(crate) location: SessionLocation,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) config_loader: Arc<ProjectConfigLoader>,
}

/// What all children of a session share.
pub(crate) struct ChildrenShared {
    pub(crate) runtime: Arc<AgentRuntime>,
    pub(crate) client: Client,
    pub(crate) parent: SessionId,
    pub(crate) settings: watch::Receiver<session::SessionSettings>,
    pub(super) environment: watch::Receiver<SessionEnvironment>,
    /// What the person allowed beyond single calls.
    pub(crate) approvals: GrantStore,
    pub(crate) budget: Arc<TreeBudget>,
    /// Levels between the root and the session.
    pub(super) depth: u32,
    pub(super) inbox_sender: mpsc::WeakSender<SessionMsg>,
    pub(super) has_mail: AtomicBool,
    /// Among it is something that the model should hear of without being asked.
    pub(super) has_urgent_mail: AtomicBool,
    /// Children that may be kept without work.
    pub(super) idle_slots: Semaphore,
    /// Rings when a round ends that nobody waits for.
    pub(super) turn_ended: Notify,
    /// One question at a time.
    pub(super) question_lock: tokio::sync::Mutex<()>,
    /// Ends every child.
    pub(super) cancel: CancellationToken,
    pub(super) tasks: TaskTracker,
}

impl ChildrenShared {
    pub(crate) fn environment(&self) -> SessionEnvironment {
        self.environment.borrow().clone()
    }

    /// Tells whether this is the folder that the session works in.
    pub(super) fn is_session_folder(&self, directory: &Path) -> bool {
        self.environment.borrow().location.cwd == directory
    }

    /// Remembers a yes that a child of Crow's own got; the child itself remembers it until it ends.
    pub(super) async fn remember_for_child(
        &self,
        scope: GrantScope,
        offer: &GrantOffer,
        shares_approvals: bool,
        cwd: &Path,
    ) {
        let stored = match scope {
            _ if shares_approvals => self.approvals.remember_grant(scope, offer).await,
            // It works elsewhere, where the parent's answers mean something else.
            GrantScope::Session => Ok(()),
            GrantScope::Project => {
                self.approvals.remember_for_project(&project_root(cwd), &offer.project).await.map(drop)
            }
        };
        if let Err(reason) = stored {
            self.client.send_update(&self.parent, SessionUpdate::Notice(reason));
        }
    }

    /// Writes down what a child has cost, and tells whoever counts above.
    pub(super) fn add_tokens(&self, n_tokens: u64) {
        self.budget.add_child_tokens(n_tokens);
        if n_tokens > 0
            && let Some(context) = self.budget.last_context()
        {
            self.client.send_update(&self.parent, self.budget.usage_update(context));
        }
    }

    /// Tells the session that something waits in its mailbox. What a person stopped wakes nobody.
    pub(super) fn notify_mail(&self, state: TaskState) {
        self.has_mail.store(true, Ordering::Relaxed);
        self.turn_ended.notify_waiters();
        if state == TaskState::Cancelled {
            return;
        }
        self.has_urgent_mail.store(true, Ordering::Relaxed);
        if let Some(sender) = self.inbox_sender.upgrade()
            && sender.try_send(SessionMsg::Mail).is_err()
        {
            tracing::debug!(session = %self.parent, "the mail is found at the end of the turn");
        }
    }
}
