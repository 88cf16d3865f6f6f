//! The arguments of the command.

use std::path::PathBuf;
use std::time::Duration;

pub(crate) const USAGE: &str =
    "usage: soak [--turns N] [--sessions N] [--editors N] [--idle SECONDS] [--out DIRECTORY] [--json]";

/// The amount of work and of rest.
pub(crate) struct SoakOptions {
    /// Turns of all sessions together; each has ten calls.
    pub(crate) n_turns: usize,
    pub(crate) n_sessions: usize,
    /// Idle editors, each with an agent.
    pub(crate) n_editors: usize,
    pub(crate) idle_time: Duration,
    /// The directory for the samples and the plot.
    pub(crate) directory: PathBuf,
    pub(crate) is_json: bool,
}

impl SoakOptions {
    /// Returns `None` for an unknown argument.
    pub(crate) fn parse(arguments: &[String]) -> Option<Self> {
        let mut options = Self {
            n_turns: 10_000,
            n_sessions: 200,
            n_editors: 10,
            idle_time: Duration::from_secs(60),
            directory: "target/soak".into(),
            is_json: false,
        };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--turns" => options.n_turns = arguments.next()?.parse().ok()?,
                "--sessions" => options.n_sessions = arguments.next()?.parse().ok()?,
                "--editors" => options.n_editors = arguments.next()?.parse().ok()?,
                "--idle" => options.idle_time = Duration::from_secs(arguments.next()?.parse().ok()?),
                "--out" => options.directory = arguments.next()?.into(),
                "--json" => options.is_json = true,
                // Cargo adds it.
                "--bench" => {}
                _ => return None,
            }
        }
        (options.n_sessions > 0 && options.n_turns >= options.n_sessions).then_some(options)
    }
}
