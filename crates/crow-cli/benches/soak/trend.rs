//! Whether a resource grows: the slope of its samples in the second half of a run, when caches are full and each session
//! has been compacted.

use super::sample::ResourceSample;

/// Growth in the second half, as a part of the mean, that is noise.
const RELATIVE_TOLERANCE: f64 = 0.05;

/// A resource that must not grow with the number of turns.
pub(crate) struct TrackedResource {
    pub(crate) name: &'static str,
    pub(crate) value: fn(&ResourceSample) -> u64,
    /// Growth that is noise, however small the mean is.
    tolerance: f64,
}

/// The resources that must be flat. The database is not: it keeps the history.
pub(crate) const FLAT_RESOURCES: [TrackedResource; 5] = [
    TrackedResource { name: "resident_kb", value: |sample| sample.resident_kb, tolerance: 2_048.0 },
    TrackedResource { name: "private_kb", value: |sample| sample.private_kb, tolerance: 2_048.0 },
    TrackedResource { name: "descriptors", value: |sample| sample.n_descriptors, tolerance: 4.0 },
    TrackedResource { name: "threads", value: |sample| sample.n_threads, tolerance: 4.0 },
    TrackedResource { name: "processes", value: |sample| sample.n_processes, tolerance: 4.0 },
];

/// The course of a resource in the second half.
pub(crate) struct ResourceTrend {
    pub(crate) name: &'static str,
    pub(crate) mean: f64,
    pub(crate) growth: f64,
    pub(crate) is_flat: bool,
}

impl TrackedResource {
    pub(crate) fn find_trend(&self, samples: &[ResourceSample]) -> ResourceTrend {
        let half = &samples[samples.len() / 2..];
        let points: Vec<(f64, f64)> =
            half.iter().map(|sample| (sample.turn as f64, (self.value)(sample) as f64)).collect();
        let mean = points.iter().map(|(_, value)| value).sum::<f64>() / points.len().max(1) as f64;
        let n_turns = points.last().map_or(0.0, |(turn, _)| turn - points[0].0);
        let growth = fit_slope(&points) * n_turns;
        let is_flat = growth <= self.tolerance.max(mean * RELATIVE_TOLERANCE);
        ResourceTrend { name: self.name, mean, growth, is_flat }
    }
}

/// Returns the slope of the line through the points with the least squares.
fn fit_slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len().max(1) as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / n;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / n;
    let covariance: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let variance: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    if variance > 0.0 { covariance / variance } else { 0.0 }
}
