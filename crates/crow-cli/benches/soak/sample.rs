//! The resources that an agent uses at a moment.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::process_tree::{below, descriptors_and_threads};

/// The resources of an agent after a number of turns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResourceSample {
    pub(crate) turn: usize,
    pub(crate) seconds: f64,
    pub(crate) resident_kb: u64,
    /// Memory that is not a file's.
    pub(crate) private_kb: u64,
    pub(crate) n_descriptors: u64,
    pub(crate) n_threads: u64,
    /// The agent and its descendants.
    pub(crate) n_processes: u64,
    /// The database and its log.
    pub(crate) database_kb: u64,
    /// Whole outputs of commands, of which Crow keeps two gigabytes.
    pub(crate) outputs_kb: u64,
}

impl ResourceSample {
    pub(crate) fn take(pid: u32, config_dir: &Path, turn: usize, seconds: f64) -> Self {
        let (n_descriptors, n_threads) = descriptors_and_threads(pid);
        let files = |is_chosen: fn(&str) -> bool| directory_kb(config_dir, is_chosen);
        Self {
            turn,
            seconds,
            resident_kb: status_kb(pid, "VmRSS:"),
            private_kb: status_kb(pid, "RssAnon:"),
            n_descriptors: n_descriptors as u64,
            n_threads: n_threads as u64,
            n_processes: below(pid).len() as u64 + 1,
            database_kb: files(|name| name.starts_with("crow.db")),
            outputs_kb: files(|name| name.starts_with("output-")),
        }
    }
}

fn status_kb(pid: u32, field: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(field)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Sums up the files below a directory whose names are chosen.
fn directory_kb(directory: &Path, is_chosen: fn(&str) -> bool) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => directory_kb(&entry.path(), is_chosen),
            Ok(metadata) if is_chosen(&entry.file_name().to_string_lossy()) => metadata.len() / 1024,
            // A temporary file may go at any time.
            Ok(_) | Err(_) => 0,
        })
        .sum()
}

/// Renders the samples, one in a line.
pub(crate) fn to_csv(samples: &[ResourceSample]) -> String {
    let mut text =
        "turn,seconds,resident_kb,private_kb,descriptors,threads,processes,database_kb,outputs_kb\n"
            .to_owned();
    for sample in samples {
        let ResourceSample { turn, seconds, resident_kb, private_kb, .. } = sample;
        let ResourceSample { n_descriptors, n_threads, n_processes, database_kb, outputs_kb, .. } = sample;
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{turn},{seconds:.1},{resident_kb},{private_kb},{n_descriptors},{n_threads},{n_processes},{database_kb},{outputs_kb}"
        );
    }
    text
}
