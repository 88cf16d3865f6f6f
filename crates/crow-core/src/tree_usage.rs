//! The budget of a tree of agents, owned by its root: running children and used tokens.

use std::collections::BTreeSet;

use crate::TreeLimits;

/// The running children and used tokens of a tree.
#[derive(Debug)]
pub struct TreeUsage {
    limits: TreeLimits,
    slots: BTreeSet<u64>,
    last_slot: u64,
    n_tokens: u64,
}

impl TreeUsage {
    /// Creates a budget without usage.
    pub fn new(limits: TreeLimits) -> Self {
        Self { limits, slots: BTreeSet::new(), last_slot: 0, n_tokens: 0 }
    }

    /// Acquires a slot for one more child, or returns the reason why there is none.
    pub fn acquire_slot(&mut self) -> Result<u64, String> {
        self.check_budget()?;
        let n_running = self.slots.len();
        if n_running >= self.limits.children_max as usize {
            let n_allowed = match n_running {
                1 => "1 child".to_owned(),
                n => format!("{n} children"),
            };
            return Err(format!(
                "agents.max_children allows {n_allowed} at a time; wait for one to finish or cancel it"
            ));
        }
        self.last_slot += 1;
        self.slots.insert(self.last_slot);
        Ok(self.last_slot)
    }

    /// Releases a slot.
    pub fn release_slot(&mut self, slot: u64) {
        self.slots.remove(&slot);
    }

    /// Adds used tokens.
    pub fn add_tokens(&mut self, n_tokens: u64) {
        self.n_tokens = self.n_tokens.saturating_add(n_tokens);
    }

    /// Returns the used tokens.
    pub fn tokens_used(&self) -> u64 {
        self.n_tokens
    }

    /// Returns the reason if the token budget is exhausted.
    pub fn check_budget(&self) -> Result<(), String> {
        match self.limits.tokens_max {
            Some(max) if self.n_tokens >= max => Err(format!(
                "the agents of this session have used {} tokens, and agents.max_tokens allows {max}",
                self.n_tokens
            )),
            Some(_) | None => Ok(()),
        }
    }
}

impl TreeLimits {
    /// Whether an agent so many levels below the root may start children.
    pub fn may_start(&self, depth: u32) -> bool {
        depth < self.depth_max
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn tree_usage(children_max: u32, tokens_max: Option<u64>) -> TreeUsage {
        let time_max = Duration::from_secs(1);
        TreeUsage::new(TreeLimits { depth_max: 2, children_max, tokens_max, task_timeout: time_max })
    }

    #[test]
    fn slot_is_reusable_after_release() {
        let mut tree = tree_usage(2, None);
        let first = tree.acquire_slot().unwrap();
        tree.acquire_slot().unwrap();
        let reason = tree.acquire_slot().unwrap_err();
        assert!(reason.starts_with("agents.max_children allows 2"), "{reason}");
        // A second release has no effect.
        tree.release_slot(first);
        tree.release_slot(first);
        tree.acquire_slot().unwrap();
        tree.acquire_slot().unwrap_err();
    }

    #[test]
    fn slot_is_refused_after_token_budget() {
        let mut tree = tree_usage(8, Some(100));
        tree.add_tokens(99);
        tree.acquire_slot().unwrap();
        tree.add_tokens(1);
        let reason = tree.acquire_slot().unwrap_err();
        assert_eq!(
            reason,
            "the agents of this session have used 100 tokens, and agents.max_tokens allows 100"
        );
        tree.add_tokens(u64::MAX);
        assert_eq!(tree.tokens_used(), u64::MAX);
    }

    #[test]
    fn depth_counts_levels_below_root() {
        let limits = TreeLimits::default();
        assert_eq!([0, 1, 2, 3].map(|depth| limits.may_start(depth)), [true, true, false, false]);
    }
}
