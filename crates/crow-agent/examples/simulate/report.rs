//! Runs many seeds and sums up what happened in them.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use crate::fault::Fault;
use crate::panics;
use crate::run::run_seed;
use crate::world::Journal;

/// Failing seeds that are shown in full.
const FAILURES_SHOWN: usize = 5;

/// The sum of many runs.
#[derive(Debug, Default)]
pub(crate) struct Report {
    n_seeds: u64,
    took: Duration,
    faults: BTreeMap<Fault, u64>,
    endings: BTreeMap<String, u64>,
    /// The seeds whose run broke an invariant, with the first violation.
    pub(crate) failed_seeds: BTreeMap<u64, String>,
    /// A hash of all events of all runs.
    pub(crate) fingerprint: u64,
}

impl Report {
    /// Runs seeds on all processors, each run on one thread.
    pub(crate) fn run_seeds(first: u64, n_seeds: u64) -> io::Result<Self> {
        let started_at = Instant::now();
        let n_threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
        let mut report = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..n_threads)
                .map(|thread| scope.spawn(move || run_every(first + thread, first + n_seeds, n_threads)))
                .collect();
            let mut report = Self::default();
            for thread in threads {
                let part = thread.join().map_err(|_| io::Error::other("a run panicked"))??;
                report.add_part(part);
            }
            Ok::<_, io::Error>(report)
        })?;
        report.took = started_at.elapsed();
        Ok(report)
    }

    pub(crate) fn add_run(&mut self, seed: u64, journal: Journal) {
        self.n_seeds += 1;
        self.fingerprint ^= journal.fingerprint.rotate_left((seed % 64) as u32);
        for (fault, n) in journal.faults {
            *self.faults.entry(fault).or_default() += n;
        }
        for (ending, n) in journal.endings {
            *self.endings.entry(ending).or_default() += n;
        }
        if let Some(violation) = journal.violations.into_iter().next() {
            self.failed_seeds.insert(seed, violation);
        }
    }

    fn add_part(&mut self, part: Self) {
        self.n_seeds += part.n_seeds;
        self.fingerprint ^= part.fingerprint;
        for (fault, n) in part.faults {
            *self.faults.entry(fault).or_default() += n;
        }
        for (ending, n) in part.endings {
            *self.endings.entry(ending).or_default() += n;
        }
        self.failed_seeds.extend(part.failed_seeds);
    }
}

fn run_every(first: u64, end: u64, step: u64) -> io::Result<Report> {
    let directory = tempfile::tempdir()?;
    let mut report = Report::default();
    let mut seed = first;
    while seed < end {
        let journal = run_seed(seed, directory.path(), false)?;
        report.add_run(seed, journal);
        seed += step;
    }
    drop(panics::take_panics());
    Ok(report)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.took.as_secs_f64();
        let per_second = self.n_seeds as f64 / seconds;
        writeln!(f, "{} seeds in {seconds:.1} s, {per_second:.0} per second", self.n_seeds)?;
        writeln!(f, "fingerprint {:016x}\n\nfaults", self.fingerprint)?;
        for fault in Fault::ALL {
            writeln!(f, "  {:<24}{:>10}", format!("{fault:?}"), self.faults.get(&fault).unwrap_or(&0))?;
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
