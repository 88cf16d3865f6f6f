//! State shared by all children of a session: its client, environment, grants and budget.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crow_acp::Client;
use crow_core::{CallId, ChildTimes, GrantOffer, GrantScope, SessionId, SessionUpdate, TreeLimits};
use crow_fleet::FarmConnections;
use crow_store::{Store, TaskState};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::budget::TreeBudget;
use crate::ports::{ChildLauncher, ParentSession};

/// Environment variable with the depth of an agent in its tree, for the agent and everything it starts.
pub const DEPTH_VARIABLE: &str = "CROW_DEPTH";

/// The name of the agent that exists in every configuration: Crow itself.
pub const OWN_AGENT: &str = "crow";

/// Failed calls that are remembered; the earliest are forgotten first.
const FAILED_CALLS_MAX: usize = 64;

/// State shared by all children of a session.
pub(crate) struct ChildrenShared {
    pub(crate) session: Arc<dyn ParentSession>,
    pub(crate) launcher: Arc<dyn ChildLauncher>,
    pub(crate) farms: FarmConnections,
    pub(crate) store: Store,
    pub(crate) client: Client,
    pub(crate) parent: SessionId,
    pub(crate) budget: Arc<TreeBudget>,
    pub(crate) depth: u32,
    pub(crate) times: ChildTimes,
    pub(crate) has_mail: AtomicBool,
    /// True if the mailbox has a message for which the model should be called without a prompt.
    pub(crate) has_urgent_mail: AtomicBool,
    /// Limits the number of idle children.
    pub(crate) idle_slots: Arc<Semaphore>,
    /// Signals the end of a turn that is announced to the parent.
    pub(crate) turn_ended: Notify,
    pub(crate) question_lock: tokio::sync::Mutex<()>,
    /// The reasons of calls that are shown as failed although their tasks go on.
    pub(crate) failed_calls: Mutex<BTreeMap<CallId, String>>,
    pub(crate) cancel: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

impl ChildrenShared {
    /// Returns the working directory of the session.
    pub(crate) fn session_cwd(&self) -> PathBuf {
        self.session.workspace().cwd().to_owned()
    }

    /// Returns the current limits of the tree of agents.
    pub(crate) fn tree_limits(&self) -> TreeLimits {
        self.session.agents_config().tree_limits
    }

    /// Records that a call is shown as failed, such as one whose result could not be stored.
    pub(crate) fn record_failed_call(&self, call: CallId, reason: &str) {
        let mut failed_calls = self.failed_calls.lock().unwrap_or_else(PoisonError::into_inner);
        failed_calls.insert(call, reason.to_owned());
        if failed_calls.len() > FAILED_CALLS_MAX {
            failed_calls.pop_first();
        }
    }

    /// Returns why a call is shown as failed.
    pub(crate) fn failure_of_call(&self, call: CallId) -> Option<String> {
        self.failed_calls.lock().unwrap_or_else(PoisonError::into_inner).get(&call).cloned()
    }

    /// Shows the user a notice in the session.
    pub(crate) fn show_notice(&self, text: String) {
        self.client.send_update(&self.parent, SessionUpdate::Notice(text));
    }

    /// Stores an approval that was given to a child that is Crow; the child itself keeps it until it ends.
    pub(crate) async fn remember_for_child(
        &self,
        scope: GrantScope,
        offer: &GrantOffer,
        shares_approvals: bool,
        cwd: &Path,
    ) {
        let stored = match scope {
            _ if shares_approvals => self.session.remember_grant(scope, offer).await,
            // It works in another directory, where the parent's grants mean something else.
            GrantScope::Session => Ok(()),
            GrantScope::Project => self.session.remember_for_project(cwd, &offer.project).await,
        };
        if let Err(reason) = stored {
            self.show_notice(reason);
        }
    }

    /// Adds tokens that a child has used, and notifies the client if it counts them.
    pub(crate) fn add_tokens(&self, n_tokens: u64) {
        self.budget.add_child_tokens(n_tokens);
        if n_tokens > 0
            && let Some(context) = self.budget.last_context()
        {
            self.client.send_update(&self.parent, self.budget.usage_update(context));
        }
    }

    /// Notifies the session of mail. A cancelled task does not start a turn.
    pub(crate) fn notify_mail(&self, state: TaskState) {
        self.has_mail.store(true, Ordering::Relaxed);
        self.turn_ended.notify_waiters();
        if state == TaskState::Cancelled {
            return;
        }
        self.has_urgent_mail.store(true, Ordering::Relaxed);
        self.session.on_mail();
    }
}
