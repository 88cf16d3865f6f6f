//! Counts of a batch: kept while it runs, and shown at its end.

#[cfg(test)]
mod tests;

use std::{
    io::{self, Write},
    time::Duration,
};

use crow_core::format_tokens;
use crow_tui::text::format_elapsed;
use serde_json::{Value, json};

use super::{
    result_line::{BatchTaskState, TaskResult},
    task_file::TaskSurvey,
};
use crate::table;

/// Failures that are listed at the end; the file of results has all.
const FAILURES_MAX: usize = 10;

/// Columns of an ID in that list, at most, and its share of the terminal.
const ID_COLUMNS: usize = 30;
const ID_SHARE: usize = 4;

/// Columns of a table that is not shown on a terminal.
pub(super) const COLUMNS: usize = 100;

/// The ended tasks of a run.
#[derive(Debug)]
pub(super) struct BatchTally {
    survey: TaskSurvey,
    states: [StateTotal; BatchTaskState::ALL.len()],
    /// The first failures.
    failures: Vec<TaskFailure>,
}

/// The tasks that ended in one state.
#[derive(Debug, Default, Clone, Copy)]
struct StateTotal {
    n_tasks: u64,
    tokens: u64,
    seconds: f64,
}

#[derive(Debug)]
struct TaskFailure {
    id: String,
    reason: String,
}

impl BatchTally {
    pub(super) fn new(survey: TaskSurvey) -> Self {
        Self { survey, states: Default::default(), failures: Vec::new() }
    }

    /// Counts a result.
    pub(super) fn add(&mut self, result: &TaskResult) {
        let total = &mut self.states[result.state as usize];
        total.n_tasks += 1;
        total.tokens = total.tokens.saturating_add(result.tokens.unwrap_or(0));
        total.seconds += result.seconds;
        if let Some(reason) = result.error.as_ref().filter(|_| result.state == BatchTaskState::Failed)
            && self.failures.len() < FAILURES_MAX
        {
            self.failures.push(TaskFailure { id: result.id.clone(), reason: reason.clone() });
        }
    }

    pub(super) fn n_tasks(&self, state: BatchTaskState) -> u64 {
        self.states[state as usize].n_tasks
    }

    /// Returns the tasks that ended in this run.
    pub(super) fn n_ended(&self) -> u64 {
        self.states.iter().map(|total| total.n_tasks).sum()
    }

    /// Whether a task failed, now or in an earlier run.
    pub(super) fn has_failures(&self) -> bool {
        self.n_tasks(BatchTaskState::Failed) + self.survey.n_failed > 0
    }

    /// Returns the tasks that this run has to do.
    pub(super) fn n_open(&self) -> u64 {
        self.survey.n_tasks.saturating_sub(self.survey.n_done + self.survey.n_failed)
    }

    /// Returns the tasks that were not started.
    pub(super) fn n_left(&self) -> u64 {
        self.n_open().saturating_sub(self.n_ended())
    }

    /// Whether a further run has something to do.
    pub(super) fn is_incomplete(&self) -> bool {
        self.n_left() + self.n_tasks(BatchTaskState::Cancelled) > 0
    }

    /// Writes the tables of states and failures.
    pub(super) fn write_tables(&self, out: &mut impl Write, columns: usize) -> io::Result<()> {
        let header = ["STATE", "TASKS", "TOKENS", "TIME"].map(str::to_owned);
        let states = BatchTaskState::ALL.into_iter().filter(|state| self.n_tasks(*state) > 0);
        let states = states.map(|state| {
            let StateTotal { n_tasks, tokens, seconds } = self.states[state as usize];
            let time = format_elapsed(Duration::from_secs_f64(seconds));
            [state.as_str().to_owned(), n_tasks.to_string(), format_tokens(tokens), time]
        });
        let TaskSurvey { n_done, n_failed, .. } = self.survey;
        let others = [("done before", n_done), ("failed before", n_failed), ("not started", self.n_left())];
        let others = others.into_iter().filter(|(_, n_tasks)| *n_tasks > 0);
        let others = others
            .map(|(name, n_tasks)| [name.to_owned(), n_tasks.to_string(), String::new(), String::new()]);
        table::write_table(out, std::iter::once(header).chain(states).chain(others))?;
        if self.failures.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        let rows = self.failures.iter().map(|failure| {
            let id = table::shorten_middle(&failure.id, ID_COLUMNS.min(columns / ID_SHARE));
            [id, table::sanitize_line(&failure.reason)]
        });
        let header = ["FAILED", "REASON"].map(str::to_owned);
        let mut rows: Vec<[String; 2]> = std::iter::once(header).chain(rows).collect();
        let room = columns.saturating_sub(table::width_before_last(&rows));
        for row in &mut rows {
            row[1] = console::truncate_str(&row[1], room, "…").into_owned();
        }
        table::write_table(out, rows.into_iter())?;
        let n_more = self.n_tasks(BatchTaskState::Failed) - self.failures.len() as u64;
        if n_more > 0 {
            writeln!(out, "… and {n_more} more")?;
        }
        Ok(())
    }

    /// Returns the last event.
    pub(super) fn to_json(&self) -> Value {
        let mut event = json!({"type": "summary"});
        for state in BatchTaskState::ALL {
            event[state.as_str()] = self.n_tasks(state).into();
        }
        event["done_before"] = self.survey.n_done.into();
        event["failed_before"] = self.survey.n_failed.into();
        event["not_started"] = self.n_left().into();
        event["tokens"] = self.states.iter().map(|total| total.tokens).sum::<u64>().into();
        event
    }
}
