//! The arguments of the command.

use std::time::Duration;

pub(crate) const USAGE: &str = "usage: fleet [TASKS] [--calls N] [--workers N] [--slots N] [--servers 1|3] \
     [--kill-worker-every SECONDS] [--kill-server-every SECONDS] [--postgresql URI] [--seed SEED] [--json]";

/// The tasks to run, and what is killed meanwhile.
pub(crate) struct FleetOptions {
    pub(crate) n_tasks: usize,
    /// Calls of a tool in each task, one after the other.
    pub(crate) n_calls: usize,
    pub(crate) n_workers: usize,
    pub(crate) n_slots: usize,
    pub(crate) has_cluster: bool,
    /// `None` kills none.
    pub(crate) worker_interval: Option<Duration>,
    pub(crate) server_interval: Option<Duration>,
    /// The database of all workers, each of which then has a home of its own, as on a machine of its own.
    pub(crate) postgresql: Option<String>,
    pub(crate) seed: u64,
    pub(crate) is_json: bool,
}

impl FleetOptions {
    /// Returns `None` for an unknown argument.
    pub(crate) fn parse(arguments: &[String]) -> Option<Self> {
        let mut options = Self {
            n_tasks: 100,
            n_calls: 20,
            n_workers: 4,
            n_slots: 1,
            has_cluster: false,
            worker_interval: None,
            server_interval: None,
            postgresql: None,
            seed: 1,
            is_json: false,
        };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            if argument == "--postgresql" {
                options.postgresql = Some(arguments.next()?.clone());
                continue;
            }
            let mut number = || arguments.next()?.parse::<usize>().ok();
            match argument.as_str() {
                "--calls" => options.n_calls = number()?,
                "--workers" => options.n_workers = number().filter(|number| *number > 0)?,
                "--slots" => options.n_slots = number()?,
                "--servers" => {
                    options.has_cluster = match number()? {
                        1 => false,
                        3 => true,
                        _ => return None,
                    }
                }
                "--kill-worker-every" => options.worker_interval = Some(to_interval(number()?)?),
                "--kill-server-every" => options.server_interval = Some(to_interval(number()?)?),
                "--seed" => options.seed = u64::try_from(number()?).ok()?,
                "--json" => options.is_json = true,
                // Cargo adds it.
                "--bench" => {}
                number => options.n_tasks = number.parse().ok()?,
            }
        }
        Some(options)
    }
}

fn to_interval(seconds: usize) -> Option<Duration> {
    (seconds > 0).then(|| Duration::from_secs(seconds as u64))
}
