//! Runs the kernel in a simulated world: host, sessions, turns and store on one thread, under virtual time, with an
//! order of events and faults that a seed decides.
//!
//! `simulate [SEEDS] [FIRST]` runs seeds and reports; `simulate --seed N` prints the events of one.
#![expect(clippy::print_stdout, reason = "a program for developers that reports")]

mod child;
mod client;
mod fault;
mod launcher;
mod panics;
mod process;
mod provider;
mod random;
mod report;
mod run;
mod shown;
mod stored;
#[cfg(test)]
mod tests;
mod tools;
mod world;

use std::io;
use std::process::ExitCode;

use report::Report;

fn main() -> io::Result<ExitCode> {
    panics::record_panics();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<u64> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    if arguments.first().is_some_and(|argument| argument == "--seed") {
        return print_trace(numbers.first().copied().unwrap_or_default());
    }
    let n_seeds = numbers.first().copied().unwrap_or(1000);
    let first = numbers.get(1).copied().unwrap_or_default();
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
