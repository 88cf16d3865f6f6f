//! Scheduling of a batch: when a task may start, and which tasks have to stop. Times are measured from the beginning of
//! the batch.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fmt::{self, Display, Formatter},
    time::Duration,
};

use crate::format_tokens;

/// Time that an agent has to end a cancelled turn: it stores what it has, and ends its commands.
const CANCEL_GRACE: Duration = Duration::from_secs(30);

/// The position of a task among those that were started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchSlot(pub u64);

/// The limits of one task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BatchTaskLimits {
    pub tokens_max: Option<u64>,
    pub time_max: Option<Duration>,
}

/// Whether the next task may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchAdmission {
    Start,
    /// A running task has to end first.
    Wait,
    /// No task starts any more.
    Closed,
}

/// The reason why a task or the batch is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchStopCause {
    Interrupted,
    /// The tokens for all tasks are used.
    BudgetExhausted {
        tokens_max: u64,
    },
    /// The task used its tokens.
    TokenLimit {
        tokens: u64,
        tokens_max: u64,
    },
    /// The task used its time.
    TimeLimit {
        time_max: Duration,
    },
    /// No task can succeed, or no result can be stored.
    Aborted,
}

/// The way in which a task is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchStopStep {
    /// Its turn is cancelled, and ends in order.
    Cancel,
    /// It did not end in time, or the user does not wait for it.
    Quit,
}

/// An order to stop a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchStopOrder {
    pub slot: BatchSlot,
    pub step: BatchStopStep,
}

/// The state of a batch.
#[derive(Debug)]
pub struct BatchSchedule {
    parallel_max: usize,
    /// Tokens for all tasks.
    tokens_max: Option<u64>,
    /// Tokens of the tasks that have ended.
    settled: u64,
    running: BTreeMap<BatchSlot, RunningBatchTask>,
    n_started: u64,
    stop_cause: Option<BatchStopCause>,
}

#[derive(Debug)]
struct RunningBatchTask {
    limits: BatchTaskLimits,
    started: Duration,
    tokens: u64,
    stop: Option<TaskStop>,
}

#[derive(Debug)]
struct TaskStop {
    cause: BatchStopCause,
    /// `None` after the order to quit.
    quit_at: Option<Duration>,
}

impl BatchSchedule {
    /// Creates the schedule of a batch whose earlier tasks used `settled` tokens.
    pub fn new(parallel_max: usize, tokens_max: Option<u64>, settled: u64) -> Self {
        Self { parallel_max, tokens_max, settled, running: BTreeMap::new(), n_started: 0, stop_cause: None }
    }

    /// Returns whether a task may start. The tokens of its limit have to be free; without a limit, at least one token.
    /// A batch in which nothing runs and nothing may start is over.
    pub fn admit(&mut self, limits: BatchTaskLimits) -> BatchAdmission {
        if self.stop_cause.is_some() {
            return BatchAdmission::Closed;
        }
        if self.running.len() >= self.parallel_max {
            return BatchAdmission::Wait;
        }
        let Some(tokens_max) = self.tokens_max else { return BatchAdmission::Start };
        let reserved = |task: &RunningBatchTask| task.tokens.max(task.limits.tokens_max.unwrap_or(0));
        let committed = self.sum_tokens(reserved);
        if committed.saturating_add(limits.tokens_max.unwrap_or(1)) <= tokens_max {
            return BatchAdmission::Start;
        }
        if !self.running.is_empty() {
            return BatchAdmission::Wait;
        }
        self.stop_cause = Some(BatchStopCause::BudgetExhausted { tokens_max });
        BatchAdmission::Closed
    }

    /// Adds a task that was admitted.
    pub fn start(&mut self, limits: BatchTaskLimits, now: Duration) -> BatchSlot {
        let slot = BatchSlot(self.n_started);
        self.n_started += 1;
        self.running.insert(slot, RunningBatchTask { limits, started: now, tokens: 0, stop: None });
        slot
    }

    /// Counts the tokens that a task has used so far.
    pub fn on_tokens(&mut self, slot: BatchSlot, tokens: u64, now: Duration) -> Vec<BatchStopOrder> {
        let Some(task) = self.running.get_mut(&slot) else { return Vec::new() };
        task.tokens = task.tokens.max(tokens);
        let (tokens, limit) = (task.tokens, task.limits.tokens_max);
        let mut orders = Vec::new();
        if let Some(tokens_max) = limit.filter(|tokens_max| tokens >= *tokens_max) {
            orders.extend(self.cancel(slot, BatchStopCause::TokenLimit { tokens, tokens_max }, now));
        }
        let Some(tokens_max) = self.tokens_max else { return orders };
        if self.sum_tokens(|task| task.tokens) >= tokens_max {
            orders.extend(self.stop_all(BatchStopCause::BudgetExhausted { tokens_max }, now));
        }
        orders
    }

    /// Stops the tasks whose time is over.
    pub fn on_time(&mut self, now: Duration) -> Vec<BatchStopOrder> {
        let mut orders = Vec::new();
        for slot in self.running.keys().copied().collect::<Vec<_>>() {
            let Some(task) = self.running.get_mut(&slot) else { continue };
            match &mut task.stop {
                Some(stop) if stop.quit_at.is_some_and(|at| at <= now) => {
                    stop.quit_at = None;
                    orders.push(BatchStopOrder { slot, step: BatchStopStep::Quit });
                }
                Some(_) => {}
                None => {
                    let limit = task.limits.time_max.filter(|time_max| task.started + *time_max <= now);
                    if let Some(time_max) = limit {
                        orders.extend(self.cancel(slot, BatchStopCause::TimeLimit { time_max }, now));
                    }
                }
            }
        }
        orders
    }

    /// Returns when `on_time` has something to do.
    pub fn next_deadline(&self) -> Option<Duration> {
        let deadlines = self.running.values().filter_map(|task| match &task.stop {
            Some(stop) => stop.quit_at,
            None => task.limits.time_max.map(|time_max| task.started + time_max),
        });
        deadlines.min()
    }

    /// Cancels all tasks; no other starts.
    pub fn stop_all(&mut self, cause: BatchStopCause, now: Duration) -> Vec<BatchStopOrder> {
        self.stop_cause.get_or_insert(cause);
        let slots: Vec<_> = self.running.keys().copied().collect();
        slots.into_iter().filter_map(|slot| self.cancel(slot, cause, now)).collect()
    }

    /// Ends all tasks at once; no other starts.
    pub fn quit_all(&mut self, cause: BatchStopCause, now: Duration) -> Vec<BatchStopOrder> {
        drop(self.stop_all(cause, now));
        let mut orders = Vec::new();
        for (slot, task) in &mut self.running {
            if task.stop.as_mut().is_some_and(|stop| stop.quit_at.take().is_some()) {
                orders.push(BatchStopOrder { slot: *slot, step: BatchStopStep::Quit });
            }
        }
        orders
    }

    /// Removes a task that has ended, and returns why it was stopped. If its agent did not say how many tokens it used,
    /// those of its limit count.
    pub fn on_end(&mut self, slot: BatchSlot, tokens: Option<u64>) -> Option<BatchStopCause> {
        let task = self.running.remove(&slot)?;
        let tokens = tokens.or(task.limits.tokens_max).unwrap_or(0).max(task.tokens);
        self.settled = self.settled.saturating_add(tokens);
        task.stop.map(|stop| stop.cause)
    }

    /// Returns why no task starts any more.
    pub fn stop_cause(&self) -> Option<BatchStopCause> {
        self.stop_cause
    }

    /// Returns the number of tasks that run.
    pub fn n_running(&self) -> usize {
        self.running.len()
    }

    /// Returns the tokens used so far, with those of earlier tasks.
    pub fn tokens(&self) -> u64 {
        self.sum_tokens(|task| task.tokens)
    }

    fn sum_tokens(&self, tokens: impl Fn(&RunningBatchTask) -> u64) -> u64 {
        self.running.values().map(tokens).fold(self.settled, u64::saturating_add)
    }

    /// Cancels a task that was not stopped yet.
    fn cancel(&mut self, slot: BatchSlot, cause: BatchStopCause, now: Duration) -> Option<BatchStopOrder> {
        let task = self.running.get_mut(&slot).filter(|task| task.stop.is_none())?;
        task.stop = Some(TaskStop { cause, quit_at: Some(now + CANCEL_GRACE) });
        Some(BatchStopOrder { slot, step: BatchStopStep::Cancel })
    }
}

impl BatchStopCause {
    /// Whether the task itself is to blame, so that it is not run again.
    pub fn is_task_limit(self) -> bool {
        match self {
            Self::TokenLimit { .. } | Self::TimeLimit { .. } => true,
            Self::Interrupted | Self::BudgetExhausted { .. } | Self::Aborted => false,
        }
    }
}

impl Display for BatchStopCause {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => f.write_str("the batch was interrupted"),
            Self::BudgetExhausted { tokens_max } => {
                write!(f, "the {} tokens for all tasks are used", format_tokens(*tokens_max))
            }
            Self::TokenLimit { tokens, tokens_max } => {
                write!(f, "the task used {tokens} tokens; its max_tokens is {tokens_max}")
            }
            Self::TimeLimit { time_max } => {
                let minutes = (time_max.as_secs_f64() / 0.6).round() / 100.0;
                write!(f, "the task did not end within its max_minutes, {minutes}")
            }
            Self::Aborted => f.write_str("the batch was stopped"),
        }
    }
}
