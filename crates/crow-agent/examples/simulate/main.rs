//! Runs the kernel in a simulated world: host, sessions, turns and store on one thread, under virtual time, with an
//! order of events and faults that a seed decides.
//!
//! `simulate [SEEDS [FIRST]]` runs seeds and reports; `simulate --seed N` prints the events of one.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for developers that reports")]

mod child;
mod client;
mod fault;
mod launcher;
mod panics;
mod part_process;
mod process;
mod provider;
mod random_bytes;
mod report;
mod run;
mod stored;
#[cfg(test)]
mod tests;
mod tools;
mod world;

use std::io;
use std::process::ExitCode;

use mimalloc::MiMalloc;
use part_process::PART;
use report::Report;
use run::SeedRunner;

/// Replaces that of the C library, SQLite's included.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Seeds of a run without arguments.
const N_SEEDS: u64 = 1000;

fn main() -> io::Result<ExitCode> {
    panics::record_panics();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (option, words) = match arguments.split_first() {
        Some((option, words)) if option.starts_with('-') => (option.as_str(), words),
        _ => ("", arguments.as_slice()),
    };
    let numbers: Option<Vec<u64>> = words.iter().map(|word| word.parse().ok()).collect();
    let (first, n_seeds) = match (option, numbers.as_deref()) {
        ("--seed", Some([seed])) => return print_trace(*seed),
        (PART, Some([first, end])) => return run_part(*first, *end),
        ("", Some([])) => (0, N_SEEDS),
        ("", Some([n_seeds])) => (0, *n_seeds),
        ("", Some([n_seeds, first])) => (*first, *n_seeds),
        (_, _) => {
            eprintln!("usage: simulate [SEEDS [FIRST]] | --seed SEED");
            return Ok(ExitCode::from(2));
        }
    };
    let report = Report::run_parts(first, n_seeds)?;
    println!("{report}");
    Ok(if report.failed_seeds.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the seeds of one of the processes that [`Report::run_parts`] starts.
fn run_part(first: u64, end: u64) -> io::Result<ExitCode> {
    println!("{}", Report::run_seeds(first..end)?.encode_part()?);
    Ok(ExitCode::SUCCESS)
}

fn print_trace(seed: u64) -> io::Result<ExitCode> {
    let journal = SeedRunner::create()?.run_seed(seed, true)?;
    for event in &journal.trace {
        println!("{event}");
    }
    println!("fingerprint {:016x}", journal.fingerprint);
    for violation in &journal.violations {
        println!("violation: {violation}");
    }
    Ok(if journal.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
