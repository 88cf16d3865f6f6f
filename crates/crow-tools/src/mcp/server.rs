//! One server as seen by its tools and by the session: status and catalog. Must not know its transport.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;

use super::{link::McpLink, prompt_list::ListedPrompt, tool_list::ListedTool};

/// A server that is silent for this long hangs; progress restarts the time.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);

/// A server, shared between its actor and its tools.
pub(super) struct McpServerHandle {
    pub(super) name: String,
    /// Maximum time without a response or progress.
    pub(super) idle_timeout: Duration,
    status: watch::Sender<McpServerStatus>,
    /// Whether a request was sent to it, so that it may have state.
    is_used: AtomicBool,
    /// The connection attempt that was requested, counted from 1.
    requested_attempt: watch::Sender<u32>,
    catalog: Mutex<McpCatalog>,
    /// Notified when the commands of any server change.
    commands_changed: Arc<watch::Sender<()>>,
}

/// The tools, prompts and resources of a server.
#[derive(Clone, Default)]
pub(super) struct McpCatalog {
    pub(super) tools: Arc<[Arc<ListedTool>]>,
    pub(super) prompts: Arc<[Arc<ListedPrompt>]>,
    pub(super) has_resources: bool,
}

/// State of a server.
#[derive(Clone)]
pub(super) enum McpServerStatus {
    Connecting,
    Ready(Arc<McpLink>),
    /// It can be restarted, as this attempt.
    Ended {
        exit: McpServerExit,
        next_attempt: u32,
    },
    /// It has ended too often to be restarted now.
    Paused(McpServerExit),
    /// It did not start, or the session is over.
    Failed(McpServerExit),
}

/// Reason why a server is not running.
#[derive(Debug, Clone, Default)]
pub(super) struct McpServerExit {
    /// A clause that fits after "the server ended: ".
    pub(super) reason: String,
    /// The end of its stderr.
    pub(super) stderr: String,
}

impl McpServerExit {
    pub(super) fn from_reason(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), stderr: String::new() }
    }

    /// The reason with the last line of stderr, for the user; the log has the rest.
    pub(super) fn short_reason(&self) -> String {
        match self.stderr.lines().rfind(|line| !line.trim().is_empty()) {
            Some(line) => format!("{}: {}", self.reason, crate::title::to_title(line)),
            None => self.reason.clone(),
        }
    }

    /// The reason with the stored part of stderr, for the model, which may understand it.
    pub(super) fn full_reason(&self) -> String {
        if self.stderr.is_empty() {
            self.reason.clone()
        } else {
            format!("{}; the end of its stderr:\n{}", self.reason, self.stderr)
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

    /// Whether its first answer is pending.
    pub(super) fn is_connecting(&self) -> bool {
        matches!(*self.status.borrow(), McpServerStatus::Connecting)
    }

    /// Waits until the server is ready or has failed.
    pub(super) async fn wait_until_settled(&self) {
        // The sender is a field, so the channel is open.
        let _ =
            self.status.subscribe().wait_for(|status| !matches!(status, McpServerStatus::Connecting)).await;
    }

    /// Waits until this attempt is requested.
    pub(super) async fn wait_for_restart_request(&self, attempt: u32) {
        let _ = self.requested_attempt.subscribe().wait_for(|wanted| *wanted >= attempt).await;
    }

    /// Sets the status of an unused server to connecting; returns whether it was unused.
    pub(super) fn reset_if_unused(&self, link: &Arc<McpLink>) -> bool {
        self.status.send_replace(McpServerStatus::Connecting);
        // A later request waits, and an earlier one has set the flag.
        let is_used = self.is_used.load(Ordering::SeqCst);
        if is_used {
            self.status.send_replace(McpServerStatus::Ready(link.clone()));
        }
        !is_used
    }

    /// Returns the connection; a server that has ended is restarted once.
    pub(super) async fn acquire_link(&self) -> Result<Arc<McpLink>, McpServerExit> {
        self.is_used.store(true, Ordering::SeqCst);
        let mut status = self.status.subscribe();
        let mut requested = None;
        loop {
            let current = status.borrow_and_update().clone();
            match current {
                McpServerStatus::Ready(link) => return Ok(link),
                McpServerStatus::Paused(exit) | McpServerStatus::Failed(exit) => return Err(exit),
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

    /// Waits until a connection has ended and returns the reason.
    pub(super) async fn wait_for_exit(&self, link: &Arc<McpLink>) -> McpServerExit {
        let is_gone = |status: &McpServerStatus| match status {
            McpServerStatus::Ready(current) => !Arc::ptr_eq(current, link),
            McpServerStatus::Connecting
            | McpServerStatus::Ended { .. }
            | McpServerStatus::Paused(_)
            | McpServerStatus::Failed(_) => true,
        };
        match self.status.subscribe().wait_for(is_gone).await.map(|standing| standing.clone()) {
            Ok(
                McpServerStatus::Ended { exit, .. }
                | McpServerStatus::Paused(exit)
                | McpServerStatus::Failed(exit),
            ) => exit,
            Ok(McpServerStatus::Connecting | McpServerStatus::Ready(_)) | Err(_) => {
                McpServerExit::from_reason("the connection was closed")
            }
        }
    }
}
