//! `crow-cli fleet`: what the queues of a NATS server hold, once or again and again.

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use crow_fleet::{FleetObserver, FleetOverview, TaskOverview, WorkerStatus};
use crow_tui::text::format_elapsed;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    agent,
    cli::FleetArgs,
    failure::{CliError, CliExitCode},
    table,
    worker::nats_server,
};

/// Pause between two looks.
const WATCH_INTERVAL: Duration = Duration::from_secs(2);

/// Letters of a task's name that are shown; they differ from the start.
const TASK_LETTERS: usize = 8;

/// Columns of a prompt.
const PROMPT_COLUMNS: usize = 40;

/// Moves the cursor to the top and clears what is below.
const CLEAR: &str = "\x1b[H\x1b[J";

/// Shows the queues.
pub(crate) fn run(args: FleetArgs, out: &mut impl Write) -> Result<(), CliError> {
    let FleetArgs { nats, queue, watch, json, credentials } = args;
    let server = nats_server(nats, credentials)?;
    let failed = |reason: String| {
        let error = CliError::new(CliExitCode::Failed, format!("the queues cannot be read: {reason}"));
        error.with_hint("check the address and the credentials; a worker makes its queue when it starts")
    };
    agent::tokio_runtime()?.block_on(async {
        let observer = FleetObserver::connect(&server).await.map_err(failed)?;
        loop {
            let overview = observer.read_overview(queue.as_deref()).await.map_err(failed)?;
            match json {
                true => writeln!(out, "{}", overview_json(&overview))?,
                false => {
                    if watch && io::stdout().is_terminal() {
                        write!(out, "{CLEAR}")?;
                    }
                    write_overview(&overview, Timestamp::now(), out)?;
                }
            }
            out.flush()?;
            if !watch {
                return Ok(());
            }
            tokio::time::sleep(WATCH_INTERVAL).await;
        }
    })
}

fn write_overview(overview: &FleetOverview, now: Timestamp, out: &mut impl Write) -> Result<(), CliError> {
    let header = ["queue", "waiting", "running", "free workers"].map(str::to_owned);
    let rows = overview.queues.iter().map(|queue| {
        let counts = [queue.n_waiting, queue.n_running, queue.n_free_workers].map(|count| count.to_string());
        let [waiting, running, free] = counts;
        [queue.name.clone(), waiting, running, free]
    });
    table::write_table(out, std::iter::once(header).chain(rows))?;
    if !overview.workers.is_empty() {
        writeln!(out)?;
        let header = ["worker", "queue", "running", "slots", "ended", "tokens", "system"].map(str::to_owned);
        let rows = overview.workers.iter().map(worker_row);
        table::write_table(out, std::iter::once(header).chain(rows))?;
    }
    if overview.tasks.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let header = ["task", "queue", "parent", "age", "worker", "prompt"].map(str::to_owned);
    let rows = overview.tasks.iter().map(|task| task_row(task, now));
    table::write_table(out, std::iter::once(header).chain(rows))?;
    match overview.n_more_tasks {
        0 => Ok(()),
        n_more => Ok(writeln!(out, "and {n_more} newer ones")?),
    }
}

fn worker_row(worker: &WorkerStatus) -> [String; 7] {
    [
        worker.worker.clone(),
        worker.queue.clone(),
        worker.running.to_string(),
        worker.slots.to_string(),
        worker.ended.to_string(),
        worker.tokens.to_string(),
        format!("{} {}", worker.os, worker.arch),
    ]
}

fn task_row(task: &TaskOverview, now: Timestamp) -> [String; 6] {
    let age = Duration::try_from(now.duration_since(task.queued_at)).unwrap_or_default();
    let worker = match &task.holder {
        None => "-".to_owned(),
        Some(holder) if holder.delivery > 1 => format!("{} (try {})", holder.worker, holder.delivery),
        Some(holder) => holder.worker.clone(),
    };
    let prompt = task.prompt.lines().next().unwrap_or_default();
    [
        task.task.chars().take(TASK_LETTERS).collect(),
        task.queue.clone(),
        task.parent.clone(),
        format_elapsed(age),
        worker,
        table::shorten_middle(prompt, PROMPT_COLUMNS),
    ]
}

fn overview_json(overview: &FleetOverview) -> Value {
    let queues = overview.queues.iter().map(|queue| {
        json!({
            "queue": queue.name,
            "waiting": queue.n_waiting,
            "running": queue.n_running,
            "free_workers": queue.n_free_workers,
        })
    });
    let tasks = overview.tasks.iter().map(|task| {
        json!({
            "task": task.task,
            "queue": task.queue,
            "parent": task.parent,
            "prompt": task.prompt,
            "queued_at": task.queued_at.to_string(),
            "worker": task.holder.as_ref().map(|holder| &holder.worker),
            "delivery": task.holder.as_ref().map(|holder| holder.delivery),
        })
    });
    json!({
        "queues": queues.collect::<Vec<_>>(),
        "workers": overview.workers,
        "tasks": tasks.collect::<Vec<_>>(),
        "more_tasks": overview.n_more_tasks,
    })
}
