//! The arguments of the command.

use super::database::DatabaseKind;

/// Kills of a run without arguments, on all databases together.
const N_KILLS: u64 = 2_000;

/// The seed of a run without arguments.
const SEED: u64 = 1;

pub(crate) const USAGE: &str =
    "usage: kill [KILLS] [--seed SEED] [--database sqlite|postgres] [--only KILL] [--schedule] [--json]";

/// The kills to make, and how they are reported.
pub(crate) struct KillOptions {
    pub(crate) seed: u64,
    /// Kills on all databases together.
    pub(crate) n_kills: u64,
    pub(crate) databases: Vec<DatabaseKind>,
    /// Repeats one kill of the schedule.
    pub(crate) only: Option<u64>,
    /// Prints the schedule and kills nothing.
    pub(crate) prints_schedule: bool,
    pub(crate) is_json: bool,
}

impl KillOptions {
    /// Returns `None` for an unknown argument.
    pub(crate) fn parse(arguments: &[String]) -> Option<Self> {
        let mut options = Self {
            seed: SEED,
            n_kills: N_KILLS,
            databases: DatabaseKind::ALL.into(),
            only: None,
            prints_schedule: false,
            is_json: false,
        };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--seed" => options.seed = arguments.next()?.parse().ok()?,
                "--only" => options.only = Some(arguments.next()?.parse().ok()?),
                "--database" => options.databases = vec![DatabaseKind::parse(arguments.next()?)?],
                "--schedule" => options.prints_schedule = true,
                "--json" => options.is_json = true,
                // Cargo adds it.
                "--bench" => {}
                number => options.n_kills = number.parse().ok()?,
            }
        }
        Some(options)
    }
}
