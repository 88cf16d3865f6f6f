//! Sums up a run, as a table or as JSON.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crow_acp::StopReason;
use serde_json::{Value, json};

use crate::killer::KillCounts;
use crate::options::FleetOptions;
use crate::tasks::TaskResult;
use crate::world::FleetWorld;

/// The sum of a run.
pub(crate) struct FleetReport {
    n_tasks: usize,
    n_calls: usize,
    n_workers: usize,
    n_slots: usize,
    n_servers: usize,
    seed: u64,
    kills: KillCounts,
    n_done: usize,
    /// Tasks without exactly one end.
    n_wrong: usize,
    /// Conversations that were begun beyond one for each task.
    n_begun_again: usize,
    /// Messages that are left in the queue.
    n_left: u64,
    failures: BTreeMap<String, usize>,
    median_end: Duration,
    last_end: Duration,
    took: Duration,
}

impl FleetReport {
    pub(crate) fn new(
        options: &FleetOptions,
        results: &[TaskResult],
        world: &FleetWorld,
        kills: KillCounts,
        took: Duration,
    ) -> Self {
        let mut n_ends: BTreeMap<&str, usize> = BTreeMap::new();
        let mut failures: BTreeMap<String, usize> = BTreeMap::new();
        for result in results {
            *n_ends.entry(&result.task).or_default() += 1;
            match &result.end {
                Ok(StopReason::EndTurn) => {}
                Ok(other) => *failures.entry(format!("{other:?}")).or_default() += 1,
                // The names of workers differ.
                Err(reason) => {
                    let reason = reason.split_once(": w").map_or(reason.as_str(), |(reason, _)| reason);
                    *failures.entry(reason.to_owned()).or_default() += 1;
                }
            }
        }
        let n_once = n_ends.values().filter(|n_ends| **n_ends == 1).count();
        let mut ends: Vec<Duration> = results.iter().map(|result| result.ended_after).collect();
        ends.sort();
        let begun = world.begun();
        Self {
            n_tasks: options.n_tasks,
            n_calls: options.n_calls,
            n_workers: options.n_workers,
            n_slots: options.n_slots,
            n_servers: if options.has_cluster { 3 } else { 1 },
            seed: options.seed,
            kills,
            n_done: results.len() - failures.values().sum::<usize>(),
            n_wrong: options.n_tasks - n_once,
            n_begun_again: begun.values().sum::<usize>() - begun.len(),
            n_left: world.n_left(),
            failures,
            median_end: ends.get(ends.len() / 2).copied().unwrap_or_default(),
            last_end: ends.last().copied().unwrap_or_default(),
            took,
        }
    }

    /// Whether each task ended exactly once and none is left to run.
    pub(crate) fn has_passed(&self) -> bool {
        self.n_wrong == 0 && self.n_left == 0
    }

    fn tasks_per_minute(&self) -> f64 {
        60.0 * self.n_tasks as f64 / self.last_end.as_secs_f64().max(0.001)
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "n_tasks": self.n_tasks, "n_calls": self.n_calls, "n_workers": self.n_workers,
            "n_slots": self.n_slots, "n_servers": self.n_servers, "seed": self.seed,
            "n_workers_killed": self.kills.n_workers, "n_servers_killed": self.kills.n_servers,
            "n_done": self.n_done, "failures": self.failures, "n_without_one_end": self.n_wrong,
            "n_begun_again": self.n_begun_again, "n_left": self.n_left,
            "median_end_seconds": self.median_end.as_secs_f64(),
            "last_end_seconds": self.last_end.as_secs_f64(),
            "tasks_per_minute": self.tasks_per_minute(),
            "seconds": self.took.as_secs_f64(), "passed": self.has_passed(),
        })
    }
}

impl fmt::Display for FleetReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} tasks of {} calls, {} workers of {} slots, {} servers, seed {}",
            self.n_tasks, self.n_calls, self.n_workers, self.n_slots, self.n_servers, self.seed
        )?;
        writeln!(f, "workers killed            {:>6}", self.kills.n_workers)?;
        writeln!(f, "servers killed            {:>6}", self.kills.n_servers)?;
        writeln!(f, "tasks done                {:>6}", self.n_done)?;
        for (reason, n_tasks) in &self.failures {
            writeln!(f, "tasks failed              {n_tasks:>6}  {reason}")?;
        }
        writeln!(f, "tasks without one end     {:>6}", self.n_wrong)?;
        writeln!(f, "begun again               {:>6}", self.n_begun_again)?;
        writeln!(f, "messages left             {:>6}", self.n_left)?;
        writeln!(
            f,
            "median, last end        {:>8.1} s, {:.1} s",
            self.median_end.as_secs_f64(),
            self.last_end.as_secs_f64()
        )?;
        writeln!(f, "tasks a minute          {:>8.1}", self.tasks_per_minute())?;
        write!(f, "{}", if self.has_passed() { "passed" } else { "FAILED" })
    }
}
