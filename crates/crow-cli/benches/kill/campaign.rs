//! Many kills: several lanes at once, each with one process after the other, on databases that all of them share.

mod checks;
mod database;
mod killer;
mod options;
mod process_table;
mod report;
mod round;
mod scene;
mod schedule;

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use checks::{Violation, ViolationKind};
use database::CampaignDatabase;
use options::{KillOptions, USAGE};
use report::KillReport;
use round::RoundOutcome;
use schedule::PlannedKill;

/// Sessions at once: more than the processors of a small machine, so that processes are preempted anywhere.
const N_LANES: u64 = 4;

/// The kills to make with a program.
struct CampaignPlan {
    program: PathBuf,
    options: KillOptions,
}

/// The text that the command prints, and its exit code.
pub(crate) struct CommandOutput {
    pub(crate) text: String,
    pub(crate) exit_code: u8,
}

/// Runs the command with these arguments: 1 is a violation, 2 a campaign that does not begin.
pub(crate) fn run_command(arguments: &[String], program: PathBuf) -> CommandOutput {
    let Some(options) = KillOptions::parse(arguments) else {
        return CommandOutput { text: USAGE.to_owned(), exit_code: 2 };
    };
    let plan = CampaignPlan { program, options };
    if plan.options.prints_schedule {
        return CommandOutput { text: plan.render_schedule(), exit_code: 0 };
    }
    match run_campaign(&plan) {
        Ok(report) => CommandOutput {
            text: if plan.options.is_json { report.to_json().to_string() } else { report.to_string() },
            exit_code: u8::from(report.has_violations()),
        },
        Err(error) => CommandOutput { text: format!("error: {error}"), exit_code: 2 },
    }
}

impl CampaignPlan {
    fn kills_per_database(&self) -> u64 {
        self.options.n_kills.div_ceil(self.options.databases.len() as u64)
    }

    /// Renders the kills that are planned for each database, one in a line.
    fn render_schedule(&self) -> String {
        let lines = (0..self.kills_per_database())
            .map(|index| format!("{index:>6}  {}", PlannedKill::draw(self.options.seed, index)));
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// Runs the plan on each of its databases; fails if one cannot be prepared.
fn run_campaign(plan: &CampaignPlan) -> io::Result<KillReport> {
    let started_at = Instant::now();
    let mut report = KillReport::new(plan.options.seed);
    for kind in &plan.options.databases {
        let database = CampaignDatabase::start(*kind)?;
        match plan.options.only {
            Some(index) => report.add_round(*kind, index, run_one(plan, &database, index)),
            None => run_lanes(plan, &database, &mut report)?,
        }
        for damage in database.find_damage() {
            report.add_violation(*kind, None, Violation::new(ViolationKind::Damaged, damage));
        }
    }
    report.took = started_at.elapsed();
    Ok(report)
}

fn run_lanes(plan: &CampaignPlan, database: &CampaignDatabase, report: &mut KillReport) -> io::Result<()> {
    let next_index = AtomicU64::new(0);
    let n_missing = AtomicU64::new(plan.kills_per_database());
    let run_lane = || {
        let mut rounds = Vec::new();
        while n_missing.load(Ordering::SeqCst) > 0 {
            let index = next_index.fetch_add(1, Ordering::SeqCst);
            let outcome = run_one(plan, database, index);
            if outcome.was_killed {
                // Another lane may have made the last one meanwhile.
                let _ = n_missing.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
            }
            let is_hopeless = index > plan.kills_per_database() * 2 + N_LANES;
            rounds.push((index, outcome));
            if is_hopeless {
                break;
            }
        }
        rounds
    };
    let lanes = std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..N_LANES).map(|_| scope.spawn(run_lane)).collect();
        lanes.into_iter().map(std::thread::ScopedJoinHandle::join).collect::<Vec<_>>()
    });
    for lane in lanes {
        for (index, outcome) in lane.map_err(|_| io::Error::other("a lane panicked"))? {
            report.add_round(database.kind(), index, outcome);
        }
    }
    Ok(())
}

/// Runs one kill; a check of the test kit that fails is a violation as well.
fn run_one(plan: &CampaignPlan, database: &CampaignDatabase, index: u64) -> RoundOutcome {
    let kill = PlannedKill::draw(plan.options.seed, index);
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map(|runtime| runtime.block_on(round::run_round(&kill, database, &plan.program)))
    };
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => RoundOutcome::broken(error.to_string()),
        Err(panic) => RoundOutcome::broken(panic_text(panic.as_ref())),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message").to_owned()
}
