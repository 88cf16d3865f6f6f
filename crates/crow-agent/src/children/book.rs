//! Places and tokens of a tree, as one session of it sees them: its root keeps the book, everybody below asks the agent
//! above. Must never know what a child does with its place.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crow_acp::Client;
use crow_core::{SessionId, Tree, TreeLimits, Update, Usage};
use tokio::sync::Notify;

/// What children of a session take from.
#[derive(Debug)]
pub(crate) struct Book {
    /// Of what stands below this session. The root's limits count; below it they bound a part of the tree once more.
    tree: Mutex<Tree>,
    above: Option<(Client, SessionId)>,
    /// Tokens of the session itself since it was opened.
    n_own: AtomicU64,
    /// What the session itself has taken since it began.
    bill: Mutex<Usage>,
    /// How full its context was last, where somebody above wants to know what is spent.
    fill: Mutex<Option<Context>>,
    spent: Notify,
}

/// How full the context of a session was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context {
    /// Tokens in context.
    pub(crate) used: u64,
    /// The model's window.
    pub(crate) size: u64,
    /// Nobody has counted them.
    pub(crate) is_guess: bool,
}

/// A place for one child at work. Dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Seat {
    book: Arc<Book>,
    here: u64,
    above: Option<u64>,
}

impl Book {
    /// Opens the book of a session; `above` is the client when it counts the agents of its tree.
    pub(crate) fn new(limits: TreeLimits, above: Option<(Client, SessionId)>) -> Arc<Self> {
        Arc::new(Self {
            tree: Mutex::new(Tree::new(limits)),
            above,
            n_own: AtomicU64::new(0),
            bill: Mutex::default(),
            fill: Mutex::default(),
            spent: Notify::new(),
        })
    }

    /// Takes a place for one more child; otherwise says why there is none.
    pub(crate) async fn claim(self: &Arc<Self>) -> Result<Seat, String> {
        let here = self.tree().claim()?;
        // From here on it is given back by itself.
        let mut seat = Seat { book: self.clone(), here, above: None };
        if let Some((client, session)) = &self.above {
            seat.above = Some(client.claim(session).await?);
        }
        Ok(seat)
    }

    /// Writes down what a child has cost.
    pub(crate) fn spend(&self, n_tokens: u64) {
        if n_tokens > 0 {
            self.tree().spend(n_tokens);
            self.spent.notify_waiters();
        }
    }

    /// Takes over what the store knows that the session itself has taken.
    pub(crate) fn bill_is(&self, bill: Usage) {
        *self.bill.lock().unwrap_or_else(PoisonError::into_inner) = bill;
    }

    /// Puts on the bill what the session itself took, as a provider counted it.
    pub(crate) fn charge(&self, usage: Usage) {
        self.n_own.fetch_add(usage.total(), Ordering::Relaxed);
        let mut bill = self.bill.lock().unwrap_or_else(PoisonError::into_inner);
        *bill = bill.and(usage);
    }

    /// Tells how full the session's context is by now, with what it took to fill it.
    pub(crate) fn filled(&self, context: Context) -> Update {
        if self.above.is_some() {
            *self.fill.lock().unwrap_or_else(PoisonError::into_inner) = Some(context);
        }
        self.told(context)
    }

    /// What the session itself has cost since it began, in billionths of a US dollar, where that is known.
    fn cost(&self) -> Option<u64> {
        self.bill.lock().unwrap_or_else(PoisonError::into_inner).cost
    }

    /// How full the session's context was last, where what it spends is counted above.
    pub(crate) fn fill(&self) -> Option<Context> {
        *self.fill.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over what the children of a session have cost before it was opened; whoever counts above has it already.
    pub(crate) fn resume(&self, n_tokens: u64) {
        if self.above.is_none() {
            self.spend(n_tokens);
        }
    }

    /// Tells what the session and all below it have cost since it was opened.
    pub(crate) fn spent(&self) -> u64 {
        self.n_own.load(Ordering::Relaxed).saturating_add(self.tree().spent())
    }

    /// Tells how full the context was, with what everything took by now.
    pub(crate) fn told(&self, context: Context) -> Update {
        let Context { used, size, is_guess } = context;
        Update::Usage { used, size, spent: Some(self.spent()), cost: self.cost(), is_guess }
    }

    /// Waits until nothing more may be spent, and says why.
    pub(crate) async fn exhausted(&self) -> String {
        loop {
            let spent = self.spent.notified();
            tokio::pin!(spent);
            spent.as_mut().enable();
            if let Err(why) = self.tree().within_budget() {
                return why;
            }
            spent.await;
        }
    }

    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// Its number among those of this session.
    pub(crate) fn number(&self) -> u64 {
        self.here
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.book.tree().release(self.here);
        if let (Some(claim), Some((client, _))) = (self.above, &self.book.above) {
            client.release(claim);
        }
    }
}
