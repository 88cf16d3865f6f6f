//! Child slots and tokens of a session tree, as seen by one of its sessions: the root owns the budget, every other
//! session requests slots from its parent. Must not know what a child does with its slot.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crow_acp::Client;
use crow_core::{SessionId, SessionUpdate, TokenUsage, TreeLimits, TreeUsage};
use tokio::sync::Notify;

/// The budget from which the children of a session are paid.
#[derive(Debug)]
pub struct TreeBudget {
    /// Usage below this session. The root's limits are decisive; below it they limit a subtree once more.
    usage: Mutex<TreeUsage>,
    upstream: Option<(Client, SessionId)>,
    /// Tokens of the session itself since it was opened.
    n_session_tokens: AtomicU64,
    /// Usage of the session itself since it was created.
    session_usage: Mutex<TokenUsage>,
    /// The last context usage, if a parent wants to know what is spent.
    last_context: Mutex<Option<ContextUsage>>,
    tokens_added: Notify,
}

/// The context usage of a session.
#[derive(Debug, Clone, Copy)]
pub struct ContextUsage {
    /// Tokens in the context.
    pub used: u64,
    /// The model's context window.
    pub size: u64,
    /// True if the tokens are an estimate.
    pub is_estimate: bool,
}

/// The slot of one running child. Dropping it releases it.
#[derive(Debug)]
pub(crate) struct BudgetSlot {
    budget: Arc<TreeBudget>,
    number: u64,
    upstream_slot: Option<u64>,
}

impl TreeBudget {
    /// Creates the budget of a session; `upstream` is the client if it counts the agents of its tree.
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

    /// Acquires a slot for one more child, or returns the reason why there is none.
    pub(crate) async fn acquire_slot(self: &Arc<Self>) -> Result<BudgetSlot, String> {
        let number = self.lock_tree().acquire_slot()?;
        // Dropping the slot releases what was acquired so far.
        let mut slot = BudgetSlot { budget: self.clone(), number, upstream_slot: None };
        if let Some((client, session)) = &self.upstream {
            slot.upstream_slot = Some(client.acquire_budget_slot(session).await?);
        }
        Ok(slot)
    }

    /// Adds tokens that a child has used.
    pub(crate) fn add_child_tokens(&self, n_tokens: u64) {
        if n_tokens > 0 {
            self.lock_tree().add_tokens(n_tokens);
            self.tokens_added.notify_waiters();
        }
    }

    /// Sets the usage of the session itself, as the store has it.
    pub fn set_session_usage(&self, session_usage: TokenUsage) {
        *self.session_usage.lock().unwrap_or_else(PoisonError::into_inner) = session_usage;
    }

    /// Adds usage of the session itself, as the provider counted it.
    pub fn add_session_usage(&self, usage: TokenUsage) {
        self.n_session_tokens.fetch_add(usage.total_tokens(), Ordering::Relaxed);
        let mut session_usage = self.session_usage.lock().unwrap_or_else(PoisonError::into_inner);
        *session_usage = session_usage.saturating_add(usage);
    }

    /// Stores the current context usage and returns it as an update.
    pub fn record_context(&self, context: ContextUsage) -> SessionUpdate {
        if self.upstream.is_some() {
            *self.last_context.lock().unwrap_or_else(PoisonError::into_inner) = Some(context);
        }
        self.usage_update(context)
    }

    /// Returns the usage of the session itself since it was created; `None` if nothing was counted.
    pub fn session_usage(&self) -> Option<TokenUsage> {
        let usage = *self.session_usage.lock().unwrap_or_else(PoisonError::into_inner);
        (usage != TokenUsage::default()).then_some(usage)
    }

    /// Returns the cost of the session itself since it was created, in billionths of a US dollar, if it is known.
    fn session_cost(&self) -> Option<u64> {
        self.session_usage.lock().unwrap_or_else(PoisonError::into_inner).cost
    }

    /// Returns the last context usage, if a parent counts what is spent.
    pub(crate) fn last_context(&self) -> Option<ContextUsage> {
        *self.last_context.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds tokens that children used before the session was opened; a parent has counted them already.
    pub(crate) fn restore_child_tokens(&self, n_tokens: u64) {
        if self.upstream.is_none() {
            self.add_child_tokens(n_tokens);
        }
    }

    /// Returns the tokens of the session and everything below it since it was opened.
    pub(crate) fn tokens_spent(&self) -> u64 {
        self.n_session_tokens.load(Ordering::Relaxed).saturating_add(self.lock_tree().tokens_used())
    }

    /// Returns an update with a context usage and the current totals.
    pub(crate) fn usage_update(&self, context: ContextUsage) -> SessionUpdate {
        let ContextUsage { used, size, is_estimate } = context;
        SessionUpdate::Usage {
            used,
            size,
            tokens_spent: Some(self.tokens_spent()),
            cost: self.session_cost(),
            is_estimate,
        }
    }

    /// Waits until the token limit is reached and returns the reason to stop.
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
    /// Returns the slot's number within this session.
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
