//! Runs many seeds and sums up what happened in them.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::num::NonZero;
use std::ops::Range;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::fault::Fault;
use crate::panics;
use crate::part_process::PartProcess;
use crate::run::SeedRunner;
use crate::world::Journal;

/// Seeds of a process, which starts in 30 ms: few enough that all processors end at about the same time.
const PART_SEEDS: usize = 200;

const BETWEEN_PROGRESS: Duration = Duration::from_secs(10);

/// Failing seeds that are shown in full.
const FAILURES_SHOWN: usize = 5;

/// The sum of many runs.
#[derive(Debug, Default)]
pub(crate) struct Report {
    n_seeds: u64,
    took: Duration,
    /// By name.
    faults: BTreeMap<String, u64>,
    endings: BTreeMap<String, u64>,
    /// The seeds whose run broke an invariant, with the first violation.
    pub(crate) failed_seeds: BTreeMap<u64, String>,
    /// A hash of all events of all runs.
    pub(crate) fingerprint: u64,
}

impl Report {
    /// Runs seeds on all processors, each part in a process: threads would wait for each other in the allocators of Rust
    /// and SQLite. Progress and failing seeds go to stderr.
    pub(crate) fn run_parts(first: u64, n_seeds: u64) -> io::Result<Self> {
        let n_processors = thread::available_parallelism().map_or(1, NonZero::get);
        let starts = Mutex::new((first..first + n_seeds).step_by(PART_SEEDS));
        let (sender, parts) = mpsc::sync_channel(n_processors);
        let run_remaining_parts = |sender: SyncSender<_>| {
            while let Some(start) = { starts.lock().unwrap_or_else(PoisonError::into_inner).next() } {
                let end = (start + PART_SEEDS as u64).min(first + n_seeds);
                // Another part could not be run, and the receiver is gone.
                if sender.send(Self::run_part_process(start, end)).is_err() {
                    return;
                }
            }
        };
        thread::scope(|scope| {
            let run_remaining_parts = &run_remaining_parts;
            for sender in vec![sender; n_processors] {
                scope.spawn(move || run_remaining_parts(sender));
            }
            Self::add_parts(parts, n_seeds)
        })
    }

    fn run_part_process(first: u64, end: u64) -> io::Result<Self> {
        Self::decode_part(&PartProcess::start(first, end)?.wait_for_output()?)
    }

    fn add_parts(parts: Receiver<io::Result<Self>>, n_seeds: u64) -> io::Result<Self> {
        let started_at = Instant::now();
        let (mut report, mut printed_at) = (Self::default(), started_at);
        for part in parts {
            let part = part?;
            for (seed, violation) in &part.failed_seeds {
                eprintln!("seed {seed}: {violation}");
            }
            report.add_part(part);
            report.took = started_at.elapsed();
            if printed_at.elapsed() >= BETWEEN_PROGRESS {
                printed_at = Instant::now();
                let (n_run, n_failed) = (report.n_seeds, report.failed_seeds.len());
                eprintln!(
                    "{n_run} of {n_seeds} seeds, {:.0} per second, {n_failed} failed",
                    report.seeds_per_second()
                );
            }
        }
        Ok(report)
    }

    fn seeds_per_second(&self) -> f64 {
        self.n_seeds as f64 / self.took.as_secs_f64()
    }

    /// Runs seeds on this thread.
    pub(crate) fn run_seeds(seeds: Range<u64>) -> io::Result<Self> {
        let mut runner = SeedRunner::create()?;
        let mut report = Self::default();
        for seed in seeds {
            let journal = runner.run_seed(seed, false)?;
            report.add_run(seed, journal);
        }
        drop(panics::take_panics());
        Ok(report)
    }

    fn add_run(&mut self, seed: u64, journal: Journal) {
        self.n_seeds += 1;
        self.fingerprint ^= journal.fingerprint.rotate_left((seed % 64) as u32);
        for (fault, n) in journal.faults {
            *self.faults.entry(format!("{fault:?}")).or_default() += n;
        }
        add_counts(&mut self.endings, journal.endings);
        if let Some(violation) = journal.violations.into_iter().next() {
            self.failed_seeds.insert(seed, violation);
        }
    }

    fn add_part(&mut self, part: Self) {
        self.n_seeds += part.n_seeds;
        self.fingerprint ^= part.fingerprint;
        add_counts(&mut self.faults, part.faults);
        add_counts(&mut self.endings, part.endings);
        self.failed_seeds.extend(part.failed_seeds);
    }

    /// Writes the report of a part for [`Self::decode_part`].
    pub(crate) fn encode_part(&self) -> io::Result<String> {
        let Self { n_seeds, took: _, faults, endings, failed_seeds, fingerprint } = self;
        Ok(serde_json::to_string(&(n_seeds, fingerprint, faults, endings, failed_seeds))?)
    }

    fn decode_part(text: &[u8]) -> io::Result<Self> {
        let (n_seeds, fingerprint, faults, endings, failed_seeds) = serde_json::from_slice(text)?;
        Ok(Self { n_seeds, took: Duration::ZERO, faults, endings, failed_seeds, fingerprint })
    }
}

fn add_counts(counts: &mut BTreeMap<String, u64>, added: BTreeMap<String, u64>) {
    for (name, n) in added {
        *counts.entry(name).or_default() += n;
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (n_seeds, seconds) = (self.n_seeds, self.took.as_secs_f64());
        writeln!(f, "{n_seeds} seeds in {seconds:.1} s, {:.0} per second", self.seeds_per_second())?;
        writeln!(f, "fingerprint {:016x}\n\nfaults", self.fingerprint)?;
        for fault in Fault::ALL {
            let name = format!("{fault:?}");
            writeln!(f, "  {name:<24}{:>10}", self.faults.get(&name).unwrap_or(&0))?;
        }
        writeln!(f, "\nendings of turns")?;
        for (ending, n) in &self.endings {
            writeln!(f, "  {ending:<24}{n:>10}")?;
        }
        writeln!(f, "\n{} seeds failed", self.failed_seeds.len())?;
        for (seed, violation) in self.failed_seeds.iter().take(FAILURES_SHOWN) {
            writeln!(f, "\nseed {seed}: {violation}")?;
            writeln!(f, "  cargo run -p crow-agent --example simulate -- --seed {seed}")?;
        }
        Ok(())
    }
}
