//! One server as everybody sees it: where it stands and what it offers. Knows no transport.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;

use super::{link::Link, listing::Listed, prompts::ListedPrompt};

/// A server that works this long without a word hangs; progress starts the time anew.
const SILENCE_MAX: Duration = Duration::from_secs(600);

/// A server, shared between its keeper and its tools.
pub(super) struct Server {
    pub(super) name: String,
    /// How long a request may go without a word.
    pub(super) silence_max: Duration,
    standing: watch::Sender<Standing>,
    /// Something was asked of it, so that it may remember things.
    is_used: AtomicBool,
    /// The life that somebody wants begun, counted from 1.
    wanted: watch::Sender<u32>,
    offer: Mutex<Offer>,
    /// Told when commands of any server come or go.
    commands: Arc<watch::Sender<()>>,
}

/// What a server has to offer.
#[derive(Clone, Default)]
pub(super) struct Offer {
    pub(super) tools: Arc<[Arc<Listed>]>,
    pub(super) prompts: Arc<[Arc<ListedPrompt>]>,
    pub(super) has_resources: bool,
}

/// Where a server stands.
#[derive(Clone)]
pub(super) enum Standing {
    Connecting,
    Ready(Arc<Link>),
    /// It can be started again, for this life.
    Ended {
        end: End,
        next_life: u32,
    },
    /// It will not come, or not come again.
    Failed(End),
}

/// Why a server is not there.
#[derive(Debug, Clone, Default)]
pub(super) struct End {
    /// A clause that fits after "the server ended: ".
    pub(super) why: String,
    /// The end of what it complained of.
    pub(super) said: String,
}

impl End {
    pub(super) fn of(why: impl Into<String>) -> Self {
        Self { why: why.into(), said: String::new() }
    }

    /// Adds its last line for a person, who sees the rest in the log.
    pub(super) fn in_short(&self) -> String {
        match self.said.lines().rfind(|line| !line.trim().is_empty()) {
            Some(line) => format!("{}: {}", self.why, crate::tool::title(line)),
            None => self.why.clone(),
        }
    }

    /// Adds all that is left of its words for a model, which may understand them.
    pub(super) fn in_full(&self) -> String {
        if self.said.is_empty() {
            self.why.clone()
        } else {
            format!("{}; the end of what it said:\n{}", self.why, self.said)
        }
    }
}

impl Server {
    pub(super) fn new(name: String, timeout: Option<Duration>, commands: Arc<watch::Sender<()>>) -> Self {
        Self {
            name,
            silence_max: timeout.unwrap_or(SILENCE_MAX),
            standing: watch::Sender::new(Standing::Connecting),
            is_used: AtomicBool::new(false),
            wanted: watch::Sender::new(1),
            offer: Mutex::default(),
            commands,
        }
    }

    pub(super) fn offer(&self) -> Offer {
        self.offer.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_offer(&self, offer: Offer) {
        let prompts = offer.prompts.clone();
        let before =
            std::mem::replace(&mut *self.offer.lock().unwrap_or_else(PoisonError::into_inner), offer);
        if before.prompts != prompts {
            self.commands.send_replace(());
        }
    }

    pub(super) fn stand(&self, standing: Standing) {
        if matches!(standing, Standing::Failed(_)) {
            self.set_offer(Offer::default());
        }
        self.standing.send_replace(standing);
    }

    /// Waits until it is known whether the server is there.
    pub(super) async fn settled(&self) {
        // The sender is ours, so it is there.
        let _ =
            self.standing.subscribe().wait_for(|standing| !matches!(standing, Standing::Connecting)).await;
    }

    /// Waits until a life is wanted.
    pub(super) async fn wanted(&self, life: u32) {
        let _ = self.wanted.subscribe().wait_for(|wanted| *wanted >= life).await;
    }

    /// Has a server that nothing was asked of yet stand as one that connects; tells whether it is one.
    pub(super) fn stand_again(&self, link: &Arc<Link>) -> bool {
        self.standing.send_replace(Standing::Connecting);
        // Whoever asks from here on waits, and whoever asked before has marked it.
        let is_used = self.is_used.load(Ordering::SeqCst);
        if is_used {
            self.standing.send_replace(Standing::Ready(link.clone()));
        }
        !is_used
    }

    /// Gives the connection; a server that has ended is started again, once.
    pub(super) async fn link(&self) -> Result<Arc<Link>, End> {
        self.is_used.store(true, Ordering::SeqCst);
        let mut standing = self.standing.subscribe();
        let mut asked = None;
        loop {
            let now = standing.borrow_and_update().clone();
            match now {
                Standing::Ready(link) => return Ok(link),
                Standing::Failed(end) => return Err(end),
                Standing::Ended { end, next_life } if asked.is_some_and(|asked| asked < next_life) => {
                    return Err(end);
                }
                Standing::Ended { next_life, .. } => {
                    asked = Some(next_life);
                    self.wanted.send_replace(next_life);
                }
                Standing::Connecting => {}
            }
            if standing.changed().await.is_err() {
                return Err(End::default());
            }
        }
    }

    /// Waits until a connection is known to be over, and says why it is.
    pub(super) async fn end_of(&self, link: &Arc<Link>) -> End {
        let is_over = |standing: &Standing| match standing {
            Standing::Ready(current) => !Arc::ptr_eq(current, link),
            Standing::Connecting | Standing::Ended { .. } | Standing::Failed(_) => true,
        };
        match self.standing.subscribe().wait_for(is_over).await.map(|standing| standing.clone()) {
            Ok(Standing::Ended { end, .. } | Standing::Failed(end)) => end,
            Ok(Standing::Connecting | Standing::Ready(_)) | Err(_) => End::of("the connection is over"),
        }
    }
}
