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
mod process;
mod provider;
mod report;
mod run;
mod stored;
#[cfg(test)]
mod tests;
mod tools;
mod world;

use std::io;
use std::process::ExitCode;

use report::Report;

/// Seeds of a run without arguments.
const N_SEEDS: u64 = 1000;

fn main() -> io::Result<ExitCode> {
    panics::record_panics();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Option<Vec<u64>> =
        arguments.iter().filter(|word| *word != "--seed").map(|word| word.parse().ok()).collect();
    let is_trace = arguments.first().is_some_and(|word| word == "--seed");
    let (first, n_seeds) = match (is_trace, numbers.as_deref()) {
        (true, Some([seed])) => return print_trace(*seed),
        (false, Some([])) => (0, N_SEEDS),
        (false, Some([n_seeds])) => (0, *n_seeds),
        (false, Some([n_seeds, first])) => (*first, *n_seeds),
        (_, _) => {
            eprintln!("usage: simulate [SEEDS [FIRST]] | --seed SEED");
            return Ok(ExitCode::from(2));
        }
    };
    let report = Report::run_seeds(first, n_seeds)?;
    println!("{report}");
    Ok(if report.failed_seeds.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print_trace(seed: u64) -> io::Result<ExitCode> {
    let directory = tempfile::tempdir()?;
    let journal = run::run_seed(seed, directory.path(), true)?;
    for event in &journal.trace {
        println!("{event}");
    }
    println!("fingerprint {:016x}", journal.fingerprint);
    for violation in &journal.violations {
        println!("violation: {violation}");
    }
    Ok(if journal.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
