//! Sums up a run, as a table or as JSON.

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::idle::IdleResult;
use super::sample::ResourceSample;
use super::trend::{FLAT_RESOURCES, ResourceTrend};
use super::turns::WorkResult;

/// An idle agent has no timer. A busy machine may still charge it some switches for its last work.
const WAKEUPS_PER_EDITOR_MAX: u64 = 10;

/// The result of a run.
pub(crate) struct SoakReport {
    pub(crate) work: WorkResult,
    pub(crate) idle: IdleResult,
    pub(crate) took: Duration,
}

impl SoakReport {
    fn trends(&self) -> [ResourceTrend; FLAT_RESOURCES.len()] {
        FLAT_RESOURCES.map(|resource| resource.find_trend(&self.work.samples))
    }

    /// Whether idle editors do nothing.
    fn is_idle(&self) -> bool {
        let IdleResult { n_editors, n_wakeups, descriptor_growth, .. } = self.idle;
        n_wakeups <= WAKEUPS_PER_EDITOR_MAX * n_editors as u64 && descriptor_growth <= 0
    }

    pub(crate) fn has_passed(&self) -> bool {
        self.is_idle() && self.trends().iter().all(|trend| trend.is_flat)
    }

    /// Kilobytes of the database for a turn, in the first and in the second half.
    fn database_kb_per_turn(&self) -> [f64; 2] {
        let samples = &self.work.samples;
        let middle = samples.len() / 2;
        let rate = |from: Option<&ResourceSample>, to: Option<&ResourceSample>| match (from, to) {
            (Some(from), Some(to)) if to.turn > from.turn => {
                (to.database_kb as f64 - from.database_kb as f64) / (to.turn - from.turn) as f64
            }
            _ => 0.0,
        };
        [rate(samples.first(), samples.get(middle)), rate(samples.get(middle), samples.last())]
    }

    pub(crate) fn to_json(&self) -> Value {
        let WorkResult { n_turns, n_sessions, n_calls, n_compactions, output_bytes, .. } = self.work;
        let IdleResult { n_editors, seconds, cpu_ms, n_wakeups, resident_growth_kb, descriptor_growth } =
            self.idle;
        let trends: Map<String, Value> = self
            .trends()
            .into_iter()
            .map(|ResourceTrend { name, mean, growth, is_flat }| {
                let (mean, growth) = (mean.round(), growth.round());
                (name.to_owned(), json!({"mean": mean, "growth": growth, "flat": is_flat}))
            })
            .collect();
        json!({
            "n_turns": n_turns,
            "n_sessions": n_sessions,
            "n_calls": n_calls,
            "n_summary_requests": n_compactions,
            "output_bytes": output_bytes,
            "second_half": trends,
            "database_kb_per_turn": self.database_kb_per_turn(),
            "idle": {
                "n_editors": n_editors, "seconds": seconds, "cpu_ms": cpu_ms, "n_wakeups": n_wakeups,
                "resident_growth_kb": resident_growth_kb, "descriptor_growth": descriptor_growth,
            },
            "seconds": self.took.as_secs(),
            "passed": self.has_passed(),
        })
    }
}

impl fmt::Display for SoakReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WorkResult { n_turns, n_sessions, n_calls, n_compactions, output_bytes, .. } = &self.work;
        writeln!(
            f,
            "{n_turns} turns in {n_sessions} sessions, {n_calls} calls, {:.0} s",
            self.took.as_secs_f64()
        )?;
        writeln!(
            f,
            "{:.1} GB of output, {n_compactions} requests for summaries\n",
            *output_bytes as f64 / 1e9
        )?;
        writeln!(f, "{:<14}{:>10}{:>10}", "second half", "mean", "growth")?;
        for ResourceTrend { name, mean, growth, is_flat } in self.trends() {
            let verdict = if is_flat { "flat" } else { "GROWS" };
            writeln!(f, "{name:<14}{mean:>10.0}{growth:>10.0}  {verdict}")?;
        }
        let [first, second] = self.database_kb_per_turn();
        writeln!(f, "\ndatabase: {first:.1} KB a turn in the first half, {second:.1} KB in the second")?;
        let IdleResult { n_editors, seconds, cpu_ms, n_wakeups, resident_growth_kb, .. } = self.idle;
        write!(
            f,
            "{n_editors} idle editors in {seconds} s: {cpu_ms} ms of processor time, {n_wakeups} wake-ups, {resident_growth_kb} KB more resident, {}",
            if self.is_idle() { "idle" } else { "NOT IDLE" }
        )
    }
}
