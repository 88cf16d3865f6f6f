//! Places and tokens of a tree, as one session of it sees them: its root keeps the book, everybody below asks the agent
//! above. Must never know what a child does with its place.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crow_acp::Client;
use crow_core::{SessionId, SessionUpdate, TokenUsage, TreeLimits, TreeUsage};
use tokio::sync::Notify;

/// What children of a session take from.
#[derive(Debug)]
pub(crate) struct TreeBudget {
    /// Of what stands below this session. The root's limits count; below it they bound a part of the tree once more.
    usage: Mutex<TreeUsage>,
    upstream: Option<(Client, SessionId)>,
    /// Tokens of the session itself since it was opened.
    n_session_tokens: AtomicU64,
    /// What the session itself has taken since it began.
    session_usage: Mutex<TokenUsage>,
    /// How full its context was last, where somebody above wants to know what is spent.
    last_context: Mutex<Option<ContextUsage>>,
    tokens_added: Notify,
}

/// How full the context of a session was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ContextUsage {
    /// Tokens in context.
    pub(crate) used: u64,
    /// The model's window.
    pub(crate) size: u64,
    /// Nobody has counted them.
    pub(crate) is_estimate: bool,
}

/// A place for one child at work. Dropping it gives it back.
#[derive(Debug)]
pub(crate) struct BudgetSlot {
    budget: Arc<TreeBudget>,
    number: u64,
    upstream_slot: Option<u64>,
}

impl TreeBudget {
    /// Opens the book of a session; `above` is the client when it counts the agents of its tree.
    pub(crate) fn new(limits: TreeLimits, upstream: Option<(Client, SessionId)>) -> Arc<Self> {
        Arc::new(Self {
            usage: Mutex::new(TreeUsage::new(limits)),
            upstream,
            n_session_tokens: AtomicU64::new(0),
            session_usage: Mutex::default(),
            last_context: Mutex::default(),
            tokens_added: Notify::new(),
        })
    }

    /// Takes a place for one more child; otherwise says why there is none.
    pub(crate) async fn acquire_slot(self: &Arc<Self>) -> Result<BudgetSlot, String> {
        let number = self.lock_tree().acquire_slot()?;
        // From here on it is given back by itself.
        let mut slot = BudgetSlot { budget: self.clone(), number, upstream_slot: None };
        if let Some((client, session)) = &self.upstream {
            slot.upstream_slot = Some(client.acquire_budget_slot(session).await?);
        }
        Ok(slot)
    }

    /// Writes down what a child has cost.
    pub(crate) fn add_child_tokens(&self, n_tokens: u64) {
        if n_tokens > 0 {
            self.lock_tree().add_tokens(n_tokens);
            self.tokens_added.notify_waiters();
        }
    }

    /// Takes over what the store knows that the session itself has taken.
    pub(crate) fn set_session_usage(&self, session_usage: TokenUsage) {
        *self.session_usage.lock().unwrap_or_else(PoisonError::into_inner) = session_usage;
    }

    /// Puts on the bill what the session itself took, as a provider counted it.
    pub(crate) fn add_session_usage(&self, usage: TokenUsage) {
        self.n_session_tokens.fetch_add(usage.total_tokens(), Ordering::Relaxed);
        let mut session_usage = self.session_usage.lock().unwrap_or_else(PoisonError::into_inner);
        *session_usage = session_usage.saturating_add(usage);
    }

    /// Tells how full the session's context is by now, with what it took to fill it.
    pub(crate) fn record_context(&self, context: ContextUsage) -> SessionUpdate {
        if self.upstream.is_some() {
            *self.last_context.lock().unwrap_or_else(PoisonError::into_inner) = Some(context);
        }
        self.usage_update(context)
    }

    /// What the session itself has cost since it began, in billionths of a US dollar, where that is known.
    fn session_cost(&self) -> Option<u64> {
        self.session_usage.lock().unwrap_or_else(PoisonError::into_inner).cost
    }

    /// How full the session's context was last, where what it spends is counted above.
    pub(crate) fn last_context(&self) -> Option<ContextUsage> {
        *self.last_context.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over what the children of a session have cost before it was opened; whoever counts above has it already.
    pub(crate) fn restore_child_tokens(&self, n_tokens: u64) {
        if self.upstream.is_none() {
            self.add_child_tokens(n_tokens);
        }
    }

    /// Tells what the session and all below it have cost since it was opened.
    pub(crate) fn tokens_spent(&self) -> u64 {
        self.n_session_tokens.load(Ordering::Relaxed).saturating_add(self.lock_tree().tokens_used())
    }

    /// Tells how full the context was, with what everything took by now.
    pub(crate) fn usage_update(&self, context: ContextUsage) -> SessionUpdate {
        let ContextUsage { used, size, is_estimate } = context;
        SessionUpdate::Usage {
            used,
            size,
            spent: Some(self.tokens_spent()),
            cost: self.session_cost(),
            is_guess: is_estimate,
        }
    }

    /// Waits until nothing more may be spent, and says why.
    pub(crate) async fn wait_until_exhausted(&self) -> String {
        loop {
            let tokens_added = self.tokens_added.notified();
            tokio::pin!(tokens_added);
            tokens_added.as_mut().enable();
            if let Err(reason) = self.lock_tree().check_budget() {
                return reason;
            }
            tokens_added.await;
        }
    }

    fn lock_tree(&self) -> MutexGuard<'_, TreeUsage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BudgetSlot {
    /// Its number among those of this session.
    pub(crate) fn slot_number(&self) -> u64 {
        self.number
    }
}

impl Drop for BudgetSlot {
    fn drop(&mut self) {
        self.budget.lock_tree().release_slot(self.number);
        if let (Some(slot), Some((client, _))) = (self.upstream_slot, &self.budget.upstream) {
            client.release_budget_slot(slot);
        }
    }
}
