//! One agent works for a long time in many sessions, then editors are idle; what they use must not grow.

#[path = "../common/client.rs"]
#[expect(dead_code, reason = "the other benchmarks need more of it")]
mod client;
mod idle;
#[path = "../common/model.rs"]
#[expect(dead_code, reason = "the other benchmarks need more of it")]
mod model;
mod options;
mod plot;
#[path = "../common/process_tree.rs"]
#[expect(dead_code, reason = "the other benchmarks need more of it")]
mod process_tree;
mod report;
mod sample;
mod trend;
mod turns;

use std::fs;
use std::io;
use std::time::Instant;

use options::{SoakOptions, USAGE};
use report::SoakReport;
use turns::WorkResult;

/// The text that the command prints, and its exit code.
pub(crate) struct CommandOutput {
    pub(crate) text: String,
    pub(crate) exit_code: u8,
}

/// Runs the command with these arguments: 1 says that something grows, 2 that it did not run.
pub(crate) fn run_command(arguments: &[String]) -> CommandOutput {
    let Some(options) = SoakOptions::parse(arguments) else {
        return CommandOutput { text: USAGE.to_owned(), exit_code: 2 };
    };
    let started_at = Instant::now();
    let work = turns::run_turns(&options);
    if let Err(error) = write_files(&options, &work) {
        return CommandOutput { text: format!("error: {error}"), exit_code: 2 };
    }
    let idle = idle::measure_idle_editors(options.n_editors, options.idle_time);
    let report = SoakReport { work, idle, took: started_at.elapsed() };
    CommandOutput {
        text: if options.is_json { report.to_json().to_string() } else { report.to_string() },
        exit_code: u8::from(!report.has_passed()),
    }
}

/// Writes the samples and their plot.
fn write_files(options: &SoakOptions, work: &WorkResult) -> io::Result<()> {
    fs::create_dir_all(&options.directory)?;
    fs::write(options.directory.join("soak.csv"), sample::to_csv(&work.samples))?;
    fs::write(options.directory.join("soak.svg"), plot::render_plot(&work.samples))
}
