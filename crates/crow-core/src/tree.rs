//! The book of a tree of agents, kept by its root: who works in it and what it has cost.

use std::collections::BTreeSet;

use crate::TreeLimits;

/// Who works in a tree and what it has cost.
#[derive(Debug)]
pub struct TreeUsage {
    limits: TreeLimits,
    places: BTreeSet<u64>,
    n_places: u64,
    n_tokens: u64,
}

impl TreeUsage {
    /// Begins a book: nobody works and nothing was spent.
    pub fn new(limits: TreeLimits) -> Self {
        Self { limits, places: BTreeSet::new(), n_places: 0, n_tokens: 0 }
    }

    /// Takes a place for one more child; otherwise says why there is none.
    pub fn acquire_slot(&mut self) -> Result<u64, String> {
        self.check_budget()?;
        let n_working = self.places.len();
        if n_working >= self.limits.children_max as usize {
            return Err(format!(
                "agents.max_children allows {n_working} at work at a time; wait for the end of one or cancel it"
            ));
        }
        self.n_places += 1;
        self.places.insert(self.n_places);
        Ok(self.n_places)
    }

    /// Gives a place back.
    pub fn release_slot(&mut self, place: u64) {
        self.places.remove(&place);
    }

    /// Writes down what was spent.
    pub fn add_tokens(&mut self, n_tokens: u64) {
        self.n_tokens = self.n_tokens.saturating_add(n_tokens);
    }

    /// Tells what was spent so far.
    pub fn tokens_used(&self) -> u64 {
        self.n_tokens
    }

    /// Says why nothing more may be spent.
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
    /// Tells whether an agent that stands so many levels below the root may start others.
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
        TreeUsage::new(TreeLimits { depth_max: 2, children_max, tokens_max, time_max })
    }

    #[test]
    fn a_place_given_back_is_there_for_the_next() {
        let mut tree = tree_usage(2, None);
        let first = tree.acquire_slot().unwrap();
        tree.acquire_slot().unwrap();
        let why = tree.acquire_slot().unwrap_err();
        assert!(why.starts_with("agents.max_children allows 2"), "{why}");
        // Giving a place back twice gives one back.
        tree.release_slot(first);
        tree.release_slot(first);
        tree.acquire_slot().unwrap();
        tree.acquire_slot().unwrap_err();
    }

    #[test]
    fn nobody_begins_once_everything_is_spent() {
        let mut tree = tree_usage(8, Some(100));
        tree.add_tokens(99);
        tree.acquire_slot().unwrap();
        tree.add_tokens(1);
        let why = tree.acquire_slot().unwrap_err();
        assert_eq!(why, "the agents of this session have used 100 tokens, and agents.max_tokens allows 100");
        tree.add_tokens(u64::MAX);
        assert_eq!(tree.tokens_used(), u64::MAX);
    }

    #[test]
    fn depth_counts_levels_below_the_root() {
        let limits = TreeLimits::default();
        assert_eq!([0, 1, 2, 3].map(|depth| limits.may_start(depth)), [true, true, false, false]);
    }
}
