//! A figure, its promise, and how both are printed.

use serde_json::{Value, json};

/// The bound of a figure, for its median.
#[derive(Clone, Copy)]
pub(crate) enum Promise {
    AtMost(f64),
    AtLeast(f64),
}

impl Promise {
    fn is_kept(self, value: f64) -> bool {
        match self {
            Self::AtMost(bound) => value <= bound,
            Self::AtLeast(bound) => value >= bound,
        }
    }

    fn display(self) -> String {
        match self {
            Self::AtMost(bound) => format!("≤ {bound}"),
            Self::AtLeast(bound) => format!("≥ {bound}"),
        }
    }
}

/// One figure of one program, from all rounds.
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) promise: Option<Promise>,
    pub(crate) values: Vec<f64>,
}

impl Figure {
    /// A figure whose median must not be larger.
    pub(crate) fn at_most(name: &'static str, bound: f64, unit: &'static str, values: Vec<f64>) -> Self {
        Self { name, unit, promise: Some(Promise::AtMost(bound)), values }
    }

    /// A figure whose median must not be smaller.
    pub(crate) fn at_least(name: &'static str, bound: f64, unit: &'static str, values: Vec<f64>) -> Self {
        Self { name, unit, promise: Some(Promise::AtLeast(bound)), values }
    }

    pub(crate) fn median(&self) -> f64 {
        median(&self.values)
    }

    fn is_kept(&self) -> Option<bool> {
        self.promise.map(|promise| promise.is_kept(self.median()))
    }
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Adds the values of a further round.
pub(crate) fn merge_round(figures: &mut Vec<Figure>, round: Vec<Figure>) {
    for figure in round {
        match figures.iter_mut().find(|known| known.name == figure.name) {
            Some(known) => known.values.extend(figure.values),
            None => figures.push(figure),
        }
    }
}

/// Returns the ratio of each figure to the other program's, rounded as it is shown.
fn ratio_to(figure: &Figure, others: &[Figure]) -> Option<(f64, f64)> {
    let other = others.iter().find(|other| other.name == figure.name)?.median();
    Some((other, figure.median() / other))
}

/// Prints a table for people: each figure beside that of another program.
pub(crate) fn print_table(figures: &[Figure], other_name: &str, others: &[Figure]) {
    println!("{:<52} {:>10} {:>10} {:>10} {:>7}  promise", "", "minimum", "median", other_name, "ratio");
    for figure in figures {
        let minimum = figure.values.iter().copied().fold(f64::INFINITY, f64::min);
        let (other, ratio) = match ratio_to(figure, others) {
            Some((other, ratio)) => (display_value(other), format!("{ratio:.2}x")),
            None => (String::new(), String::new()),
        };
        let promise = figure.promise.map(Promise::display).unwrap_or_default();
        let verdict = if figure.is_kept() == Some(false) { "  MISSED" } else { "" };
        println!(
            "{:<52} {:>10} {:>10} {:>10} {:>7}  {promise}{verdict}",
            format!("{}, {}", figure.name, figure.unit),
            display_value(minimum),
            display_value(figure.median()),
            other,
            ratio,
        );
    }
}

/// Prints a JSON object a figure.
pub(crate) fn print_json(figures: &[Figure], other_name: &str, others: &[Figure]) {
    for figure in figures {
        let (other, ratio) = ratio_to(figure, others).unzip();
        let line: Value = json!({
            "figure": figure.name,
            "unit": figure.unit,
            "minimum": figure.values.iter().copied().reduce(f64::min),
            "median": figure.median(),
            "promise": figure.promise.map(Promise::display),
            "kept": figure.is_kept(),
            other_name: other,
            "ratio": ratio,
        });
        println!("{line}");
    }
}

fn display_value(value: f64) -> String {
    if value >= 1_000.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}
