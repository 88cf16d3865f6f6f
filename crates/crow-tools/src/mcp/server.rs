//! One server as everybody sees it: where it stands and what it offers. Knows no transport.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;

use super::{link::McpLink, listing::ListedTool, prompts::ListedPrompt};

/// A server that works this long without a word hangs; progress starts the time anew.
const SILENCE_MAX: Duration = Duration::from_secs(600);

/// A server, shared between its keeper and its tools.
pub(super) struct McpServerHandle {
    pub(super) name: String,
    /// How long a request may go without a word.
    pub(super) silence_max: Duration,
    standing: watch::Sender<McpServerStatus>,
    /// Something was asked of it, so that it may remember things.
    is_used: AtomicBool,
    /// The life that somebody wants begun, counted from 1.
    wanted: watch::Sender<u32>,
    offer: Mutex<McpCatalog>,
    /// Told when commands of any server come or go.
    commands: Arc<watch::Sender<()>>,
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
        end: McpServerExit,
        next_life: u32,
    },
    /// It will not come, or not come again.
    Failed(McpServerExit),
}

/// Why a server is not there.
#[derive(Debug, Clone, Default)]
pub(super) struct McpServerExit {
    /// A clause that fits after "the server ended: ".
    pub(super) why: String,
    /// The end of what it complained of.
    pub(super) said: String,
}

impl McpServerExit {
    pub(super) fn from_reason(why: impl Into<String>) -> Self {
        Self { why: why.into(), said: String::new() }
    }

    /// Adds its last line for a person, who sees the rest in the log.
    pub(super) fn short_reason(&self) -> String {
        match self.said.lines().rfind(|line| !line.trim().is_empty()) {
            Some(line) => format!("{}: {}", self.why, crate::tool::to_title(line)),
            None => self.why.clone(),
        }
    }

    /// Adds all that is left of its words for a model, which may understand them.
    pub(super) fn full_reason(&self) -> String {
        if self.said.is_empty() {
            self.why.clone()
        } else {
            format!("{}; the end of what it said:\n{}", self.why, self.said)
        }
    }
}

impl McpServerHandle {
    pub(super) fn new(name: String, timeout: Option<Duration>, commands: Arc<watch::Sender<()>>) -> Self {
        Self {
            name,
            silence_max: timeout.unwrap_or(SILENCE_MAX),
            standing: watch::Sender::new(McpServerStatus::Connecting),
            is_used: AtomicBool::new(false),
            wanted: watch::Sender::new(1),
            offer: Mutex::default(),
            commands,
        }
    }

    pub(super) fn catalog(&self) -> McpCatalog {
        self.offer.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_catalog(&self, offer: McpCatalog) {
        let prompts = offer.prompts.clone();
        let before =
            std::mem::replace(&mut *self.offer.lock().unwrap_or_else(PoisonError::into_inner), offer);
        if before.prompts != prompts {
            self.commands.send_replace(());
        }
    }

    pub(super) fn set_status(&self, standing: McpServerStatus) {
        if matches!(standing, McpServerStatus::Failed(_)) {
            self.set_catalog(McpCatalog::default());
        }
        self.standing.send_replace(standing);
    }

    /// Waits until it is known whether the server is there.
    pub(super) async fn wait_until_settled(&self) {
        // The sender is ours, so it is there.
        let _ = self
            .standing
            .subscribe()
            .wait_for(|standing| !matches!(standing, McpServerStatus::Connecting))
            .await;
    }

    /// Waits until a life is wanted.
    pub(super) async fn wait_for_restart_request(&self, life: u32) {
        let _ = self.wanted.subscribe().wait_for(|wanted| *wanted >= life).await;
    }

    /// Has a server that nothing was asked of yet stand as one that connects; tells whether it is one.
    pub(super) fn stand_again(&self, link: &Arc<McpLink>) -> bool {
        self.standing.send_replace(McpServerStatus::Connecting);
        // Whoever asks from here on waits, and whoever asked before has marked it.
        let is_used = self.is_used.load(Ordering::SeqCst);
        if is_used {
            self.standing.send_replace(McpServerStatus::Ready(link.clone()));
        }
        !is_used
    }

    /// Gives the connection; a server that has ended is started again, once.
    pub(super) async fn acquire_link(&self) -> Result<Arc<McpLink>, McpServerExit> {
        self.is_used.store(true, Ordering::SeqCst);
        let mut standing = self.standing.subscribe();
        let mut asked = None;
        loop {
            let now = standing.borrow_and_update().clone();
            match now {
                McpServerStatus::Ready(link) => return Ok(link),
                McpServerStatus::Failed(end) => return Err(end),
                McpServerStatus::Ended { end, next_life } if asked.is_some_and(|asked| asked < next_life) => {
                    return Err(end);
                }
                McpServerStatus::Ended { next_life, .. } => {
                    asked = Some(next_life);
                    self.wanted.send_replace(next_life);
                }
                McpServerStatus::Connecting => {}
            }
            if standing.changed().await.is_err() {
                return Err(McpServerExit::default());
            }
        }
    }

    /// Waits until a connection is known to be over, and says why it is.
    pub(super) async fn wait_for_exit(&self, link: &Arc<McpLink>) -> McpServerExit {
        let is_over = |standing: &McpServerStatus| match standing {
            McpServerStatus::Ready(current) => !Arc::ptr_eq(current, link),
            McpServerStatus::Connecting | McpServerStatus::Ended { .. } | McpServerStatus::Failed(_) => true,
        };
        match self.standing.subscribe().wait_for(is_over).await.map(|standing| standing.clone()) {
            Ok(McpServerStatus::Ended { end, .. } | McpServerStatus::Failed(end)) => end,
            Ok(McpServerStatus::Connecting | McpServerStatus::Ready(_)) | Err(_) => {
                McpServerExit::from_reason("the connection is over")
            }
        }
    }
}
