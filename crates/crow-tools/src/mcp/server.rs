//! One server as everybody sees it: where it stands and what it offers. Knows no transport.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;

use super::{link::McpLink, prompts::ListedPrompt, tool_list::ListedTool};

/// A server that works this long without a word hangs; progress starts the time anew.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);

/// A server, shared between its keeper and its tools.
pub(super) struct McpServerHandle {
    pub(super) name: String,
    /// How long a request may go without a word.
    pub(super) idle_timeout: Duration,
    status: watch::Sender<McpServerStatus>,
    /// Something was asked of it, so that it may remember things.
    is_used: AtomicBool,
    /// The life that somebody wants begun, counted from 1.
    requested_attempt: watch::Sender<u32>,
    catalog: Mutex<McpCatalog>,
    /// Told when commands of any server come or go.
    commands_changed: Arc<watch::Sender<()>>,
}

/// What a server has to offer.
#[derive(Clone, Default)]
pub(super) struct McpCatalog {
    pub(super) tools: Arc<[Arc<ListedTool>]>,
    pub(super) prompts: Arc<[Arc<ListedPrompt>]>,
    pub(super) has_resources: bool,
}

/// Where a server stands.
#[derive(Clone)]
pub(super) enum McpServerStatus {
    Connecting,
    Ready(Arc<McpLink>),
    /// It can be started again, for this life.
    Ended {
        exit: McpServerExit,
        next_attempt: u32,
    },
    /// It will not come, or not come again.
    Failed(McpServerExit),
}

/// Why a server is not there.
#[derive(Debug, Clone, Default)]
pub(super) struct McpServerExit {
    /// A clause that fits after "the server ended: ".
    pub(super) reason: String,
    /// The end of what it complained of.
    pub(super) stderr: String,
}

impl McpServerExit {
    pub(super) fn from_reason(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), stderr: String::new() }
    }

    /// Adds its last line for a person, who sees the rest in the log.
    pub(super) fn short_reason(&self) -> String {
        match self.stderr.lines().rfind(|line| !line.trim().is_empty()) {
            Some(line) => format!("{}: {}", self.reason, crate::tool::to_title(line)),
            None => self.reason.clone(),
        }
    }

    /// Adds all that is left of its words for a model, which may understand them.
    pub(super) fn full_reason(&self) -> String {
        if self.stderr.is_empty() {
            self.reason.clone()
        } else {
            format!("{}; the end of what it said:\n{}", self.reason, self.stderr)
        }
    }
}

impl McpServerHandle {
    pub(super) fn new(
        name: String,
        timeout: Option<Duration>,
        commands_changed: Arc<watch::Sender<()>>,
    ) -> Self {
        Self {
            name,
            idle_timeout: timeout.unwrap_or(IDLE_TIMEOUT),
            status: watch::Sender::new(McpServerStatus::Connecting),
            is_used: AtomicBool::new(false),
            requested_attempt: watch::Sender::new(1),
            catalog: Mutex::default(),
            commands_changed,
        }
    }

    pub(super) fn catalog(&self) -> McpCatalog {
        self.catalog.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_catalog(&self, catalog: McpCatalog) {
        let prompts = catalog.prompts.clone();
        let previous =
            std::mem::replace(&mut *self.catalog.lock().unwrap_or_else(PoisonError::into_inner), catalog);
        if previous.prompts != prompts {
            self.commands_changed.send_replace(());
        }
    }

    pub(super) fn set_status(&self, status: McpServerStatus) {
        if matches!(status, McpServerStatus::Failed(_)) {
            self.set_catalog(McpCatalog::default());
        }
        self.status.send_replace(status);
    }

    /// Waits until it is known whether the server is there.
    pub(super) async fn wait_until_settled(&self) {
        // The sender is ours, so it is there.
        let _ =
            self.status.subscribe().wait_for(|status| !matches!(status, McpServerStatus::Connecting)).await;
    }

    /// Waits until a life is wanted.
    pub(super) async fn wait_for_restart_request(&self, attempt: u32) {
        let _ = self.requested_attempt.subscribe().wait_for(|wanted| *wanted >= attempt).await;
    }

    /// Has a server that nothing was asked of yet stand as one that connects; tells whether it is one.
    pub(super) fn reset_if_unused(&self, link: &Arc<McpLink>) -> bool {
        self.status.send_replace(McpServerStatus::Connecting);
        // Whoever asks from here on waits, and whoever asked before has marked it.
        let is_used = self.is_used.load(Ordering::SeqCst);
        if is_used {
            self.status.send_replace(McpServerStatus::Ready(link.clone()));
        }
        !is_used
    }

    /// Gives the connection; a server that has ended is started again, once.
    pub(super) async fn acquire_link(&self) -> Result<Arc<McpLink>, McpServerExit> {
        self.is_used.store(true, Ordering::SeqCst);
        let mut status = self.status.subscribe();
        let mut requested = None;
        loop {
            let current = status.borrow_and_update().clone();
            match current {
                McpServerStatus::Ready(link) => return Ok(link),
                McpServerStatus::Failed(exit) => return Err(exit),
                McpServerStatus::Ended { exit, next_attempt }
                    if requested.is_some_and(|asked| asked < next_attempt) =>
                {
                    return Err(exit);
                }
                McpServerStatus::Ended { next_attempt, .. } => {
                    requested = Some(next_attempt);
                    self.requested_attempt.send_replace(next_attempt);
                }
                McpServerStatus::Connecting => {}
            }
            if status.changed().await.is_err() {
                return Err(McpServerExit::default());
            }
        }
    }

    /// Waits until a connection is known to be over, and says why it is.
    pub(super) async fn wait_for_exit(&self, link: &Arc<McpLink>) -> McpServerExit {
        let is_gone = |status: &McpServerStatus| match status {
            McpServerStatus::Ready(current) => !Arc::ptr_eq(current, link),
            McpServerStatus::Connecting | McpServerStatus::Ended { .. } | McpServerStatus::Failed(_) => true,
        };
        match self.status.subscribe().wait_for(is_gone).await.map(|standing| standing.clone()) {
            Ok(McpServerStatus::Ended { exit, .. } | McpServerStatus::Failed(exit)) => exit,
            Ok(McpServerStatus::Connecting | McpServerStatus::Ready(_)) | Err(_) => {
                McpServerExit::from_reason("the connection is over")
            }
        }
    }
}
