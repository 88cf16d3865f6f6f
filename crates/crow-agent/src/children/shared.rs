//! State shared by all children of a session: its client, environment, grants and budget.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crow_acp::{Client, GrantScope, SessionLocation};
use crow_core::{GrantOffer, SessionId, SessionUpdate};
use crow_store::TaskState;
use crow_tools::Workspace;
use tokio::sync::{Notify, Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::approvals::{GrantStore, project_root};
use crate::children::budget::TreeBudget;
use crate::project_config::ProjectConfigLoader;
use crate::runtime::AgentRuntime;

/// Environment variable with the depth of an agent in its tree, for the agent and everything it starts.
pub const DEPTH_VARIABLE: &str = "CROW_DEPTH";

/// The name of the agent that exists in every configuration: Crow itself.
pub const OWN_AGENT: &str = "crow";

/// Callback for a new message in the mailbox of the session.
pub(crate) type NotifyParent = Box<dyn Fn() + Send + Sync>;

/// The environment of a session, which can change.
#[derive(Clone)]
pub(crate) struct SessionEnvironment {
    pub(crate) location: SessionLocation,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) config_loader: Arc<ProjectConfigLoader>,
}

pub(crate) struct ChildrenShared {
    pub(crate) runtime: Arc<AgentRuntime>,
    pub(crate) client: Client,
    pub(crate) parent: SessionId,
    pub(crate) settings: watch::Receiver<crate::session_settings::SessionSettings>,
    pub(super) environment: watch::Receiver<SessionEnvironment>,
    pub(crate) approvals: GrantStore,
    pub(crate) budget: Arc<TreeBudget>,
    pub(super) depth: u32,
    pub(super) notify_parent: NotifyParent,
    pub(super) has_mail: AtomicBool,
    /// True if the mailbox has a message for which the model should be called without a prompt.
    pub(super) has_urgent_mail: AtomicBool,
    /// Limits the number of idle children.
    pub(super) idle_slots: Semaphore,
    /// Signals the end of a turn that is announced to the parent.
    pub(super) turn_ended: Notify,
    pub(super) question_lock: tokio::sync::Mutex<()>,
    pub(super) cancel: CancellationToken,
    pub(super) tasks: TaskTracker,
}

impl ChildrenShared {
    pub(crate) fn environment(&self) -> SessionEnvironment {
        self.environment.borrow().clone()
    }

    /// Whether this is the working directory of the session.
    pub(super) fn is_session_directory(&self, directory: &Path) -> bool {
        self.environment.borrow().location.cwd == directory
    }

    /// Stores an approval that was given to a child that is Crow; the child itself keeps it until it ends.
    pub(super) async fn remember_for_child(
        &self,
        scope: GrantScope,
        offer: &GrantOffer,
        shares_approvals: bool,
        cwd: &Path,
    ) {
        let stored = match scope {
            _ if shares_approvals => self.approvals.remember_grant(scope, offer).await,
            // It works in another directory, where the parent's grants mean something else.
            GrantScope::Session => Ok(()),
            GrantScope::Project => {
                self.approvals.remember_for_project(&project_root(cwd), &offer.project).await.map(drop)
            }
        };
        if let Err(reason) = stored {
            self.client.send_update(&self.parent, SessionUpdate::Notice(reason));
        }
    }

    /// Adds tokens that a child has used, and notifies the client if it counts them.
    pub(super) fn add_tokens(&self, n_tokens: u64) {
        self.budget.add_child_tokens(n_tokens);
        if n_tokens > 0
            && let Some(context) = self.budget.last_context()
        {
            self.client.send_update(&self.parent, self.budget.usage_update(context));
        }
    }

    /// Notifies the session of mail. A cancelled task does not start a turn.
    pub(super) fn notify_mail(&self, state: TaskState) {
        self.has_mail.store(true, Ordering::Relaxed);
        self.turn_ended.notify_waiters();
        if state == TaskState::Cancelled {
            return;
        }
        self.has_urgent_mail.store(true, Ordering::Relaxed);
        (self.notify_parent)();
    }
}
