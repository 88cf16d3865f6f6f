//! Sums up a campaign, as a table or as JSON.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::checks::{Violation, ViolationKind};
use super::database::DatabaseKind;
use super::round::RoundOutcome;
use super::schedule::{PlannedKill, VictimKind};

/// Violations that are printed in full.
const VIOLATIONS_SHOWN: usize = 10;

/// The sum of all rounds.
#[derive(Debug)]
pub(crate) struct KillReport {
    seed: u64,
    kills: BTreeMap<(DatabaseKind, VictimKind), u64>,
    /// Rounds whose process was not there: nothing was killed.
    n_missed: u64,
    /// Kills before the session was stored, so that there is nothing to load.
    n_unstored: u64,
    /// Kills of an agent whose turn had ended.
    n_idle: u64,
    slowest_end: Duration,
    violations: Vec<FoundViolation>,
    pub(crate) took: Duration,
}

#[derive(Debug)]
struct FoundViolation {
    database: DatabaseKind,
    /// The number of the kill; `None` if it was found after all of them.
    index: Option<u64>,
    violation: Violation,
}

impl KillReport {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            kills: BTreeMap::new(),
            n_missed: 0,
            n_unstored: 0,
            n_idle: 0,
            slowest_end: Duration::ZERO,
            violations: Vec::new(),
            took: Duration::ZERO,
        }
    }

    pub(crate) fn add_round(&mut self, database: DatabaseKind, index: u64, outcome: RoundOutcome) {
        if outcome.was_killed {
            let victim = PlannedKill::draw(self.seed, index).victim;
            *self.kills.entry((database, victim)).or_default() += 1;
        } else {
            self.n_missed += 1;
        }
        self.n_unstored += u64::from(outcome.is_unstored);
        self.n_idle += u64::from(outcome.was_idle);
        self.slowest_end = self.slowest_end.max(outcome.slowest_end);
        for violation in outcome.violations {
            self.add_violation(database, Some(index), violation);
        }
    }

    pub(crate) fn add_violation(&mut self, database: DatabaseKind, index: Option<u64>, violation: Violation) {
        self.violations.push(FoundViolation { database, index, violation });
    }

    pub(crate) fn has_violations(&self) -> bool {
        !self.violations.is_empty()
    }

    pub(crate) fn n_kills(&self) -> u64 {
        self.kills.values().sum()
    }

    fn n_violations(&self, kind: ViolationKind) -> usize {
        self.violations.iter().filter(|found| found.violation.kind == kind).count()
    }

    fn kills_on(&self, database: DatabaseKind) -> [u64; VictimKind::ALL.len()] {
        VictimKind::ALL.map(|victim| self.kills.get(&(database, victim)).copied().unwrap_or(0))
    }

    pub(crate) fn to_json(&self) -> Value {
        let kills: Map<String, Value> = DatabaseKind::ALL
            .map(|database| {
                let counts = VictimKind::ALL.into_iter().zip(self.kills_on(database));
                let counts: Map<String, Value> =
                    counts.map(|(victim, n)| (victim.name().replace(' ', "_"), n.into())).collect();
                (database.name().to_owned(), Value::Object(counts))
            })
            .into_iter()
            .collect();
        let violations: Map<String, Value> = ViolationKind::ALL
            .map(|kind| (kind.name().to_owned(), self.n_violations(kind).into()))
            .into_iter()
            .collect();
        json!({
            "seed": self.seed,
            "n_kills": self.n_kills(),
            "kills": kills,
            "n_missed": self.n_missed,
            "n_before_stored": self.n_unstored,
            "n_after_turn": self.n_idle,
            "violations": violations,
            "failures": self.violations.iter().map(|found| self.describe(found)).collect::<Vec<_>>(),
            "slowest_end_ms": self.slowest_end.as_millis() as u64,
            "seconds": self.took.as_secs(),
            "passed": !self.has_violations(),
        })
    }

    fn describe(&self, found: &FoundViolation) -> String {
        let FoundViolation { database, index, violation } = found;
        let (seed, name, kind) = (self.seed, database.name(), violation.kind.name());
        let Some(index) = index else { return format!("{name}: {kind}: {}", violation.text) };
        format!(
            "kill {index} on {name}, {}: {kind}: {}\n  just kill --seed {seed} --database {name} --only {index}",
            PlannedKill::draw(seed, *index),
            violation.text
        )
    }
}

impl fmt::Display for KillReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}, {:.0} s\n", self.seed, self.took.as_secs_f64())?;
        write!(f, "{:<12}", "kills")?;
        for victim in VictimKind::ALL {
            write!(f, "{:>13}", victim.name())?;
        }
        writeln!(f, "{:>13}", "all")?;
        for database in DatabaseKind::ALL {
            let counts = self.kills_on(database);
            write!(f, "{:<12}", database.name())?;
            for n in counts {
                write!(f, "{n:>13}")?;
            }
            writeln!(f, "{:>13}", counts.iter().sum::<u64>())?;
        }
        writeln!(f, "\nprocesses that had ended before they could be killed: {}", self.n_missed)?;
        writeln!(f, "killed before the session was stored: {}", self.n_unstored)?;
        writeln!(f, "agents killed after their turn had ended: {}", self.n_idle)?;
        writeln!(
            f,
            "until all processes of a kill were gone, at most: {} ms\n",
            self.slowest_end.as_millis()
        )?;
        for kind in ViolationKind::ALL {
            writeln!(f, "{:<20}{:>6}", kind.name().replace('_', " "), self.n_violations(kind))?;
        }
        for found in self.violations.iter().take(VIOLATIONS_SHOWN) {
            writeln!(f, "\n{}", self.describe(found))?;
        }
        Ok(())
    }
}
