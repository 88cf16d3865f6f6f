//! The usage of a range of days, by day, provider, model and directory.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
    ops::RangeInclusive,
};

use crow_core::{TokenUsage, format_tokens, render_bar};
use crow_store::PeriodUsage;
use jiff::{civil::Date, tz::TimeZone};
use serde_json::{Value, json};

use crate::{inspect::usage_json, money, table};

/// Rows of a table of models or directories in text; JSON has all.
const ROWS_MAX: usize = 10;

/// Columns of a table with bars that is not shown on a terminal.
const COLUMNS: usize = 80;

/// Columns of a name that is shortened; less says nothing.
const NAME_COLUMNS_MIN: usize = 16;

/// The provider of a model that is not configured any more.
const UNKNOWN_PROVIDER: &str = "unknown";

/// Requests with their usage.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct UsageSum {
    pub(super) n_requests: u64,
    pub(super) usage: TokenUsage,
}

impl UsageSum {
    fn add_period(&mut self, period: &PeriodUsage) {
        self.n_requests += period.n_requests;
        self.usage = self.usage.saturating_add(period.usage);
    }

    pub(super) fn total_tokens(&self) -> u64 {
        self.usage.total_tokens()
    }

    /// Returns the cells after the first of a row: requests, input, share of the cache, output, cost.
    fn cells(&self) -> [String; 5] {
        let Self { n_requests, usage } = self;
        let cost = usage.cost.map_or_else(|| "-".to_owned(), money::format_dollars);
        let (input, output) = (format_tokens(usage.input), format_tokens(usage.output));
        [n_requests.to_string(), input, format_cached(*usage), output, cost]
    }

    fn to_json(self) -> Value {
        json!({"requests": self.n_requests, "usage": usage_json(self.usage)})
    }
}

/// The share of the input that was read from the provider's cache.
fn format_cached(usage: TokenUsage) -> String {
    let percent = (u128::from(usage.cached) * 100).checked_div(u128::from(usage.input));
    percent.map_or_else(|| "-".to_owned(), |percent| format!("{percent} %"))
}

/// The usage of some days, without the days that have none.
#[derive(Debug)]
pub(super) struct UsageReport {
    pub(super) dates: RangeInclusive<Date>,
    pub(super) days: BTreeMap<Date, UsageSum>,
    providers: Vec<(String, UsageSum)>,
    models: Vec<(String, UsageSum)>,
    directories: Vec<(String, UsageSum)>,
    total: UsageSum,
    n_sessions: usize,
}

impl UsageReport {
    /// Sums up periods by their day in a time zone. Days outside of the range do not count. `provider_of` returns the
    /// provider of a model that is still configured.
    pub(super) fn new<'a>(
        dates: RangeInclusive<Date>,
        periods: Vec<PeriodUsage>,
        zone: &TimeZone,
        provider_of: impl Fn(&str) -> Option<&'a str>,
    ) -> Self {
        let (mut days, mut total) = (BTreeMap::<Date, UsageSum>::new(), UsageSum::default());
        let (mut providers, mut models, mut directories) =
            (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut sessions = BTreeSet::new();
        for period in periods {
            let Ok(start) = jiff::Timestamp::from_millisecond(period.start.0) else { continue };
            let day = zone.to_datetime(start).date();
            if !dates.contains(&day) {
                continue;
            }
            total.add_period(&period);
            days.entry(day).or_default().add_period(&period);
            let provider = provider_of(&period.model).unwrap_or(UNKNOWN_PROVIDER).to_owned();
            providers.entry(provider).or_insert_with(UsageSum::default).add_period(&period);
            models.entry(period.model.clone()).or_insert_with(UsageSum::default).add_period(&period);
            directories.entry(period.cwd.clone()).or_insert_with(UsageSum::default).add_period(&period);
            sessions.insert(period.session);
        }
        Self {
            dates,
            days,
            providers: by_tokens(providers),
            models: by_tokens(models),
            directories: by_tokens(directories),
            total,
            n_sessions: sessions.len(),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let named = |key: &str, rows: &[(String, UsageSum)]| {
            let rows = rows.iter().map(|(name, sum)| {
                let mut row = sum.to_json();
                row[key] = name.as_str().into();
                row
            });
            rows.collect::<Vec<_>>()
        };
        let days: Vec<(String, UsageSum)> =
            self.days.iter().map(|(day, sum)| (day.to_string(), *sum)).collect();
        let mut total = self.total.to_json();
        total["sessions"] = self.n_sessions.into();
        json!({
            "from": self.dates.start().to_string(), "to": self.dates.end().to_string(), "total": total,
            "days": named("date", &days), "providers": named("provider", &self.providers), "models": named("model", &self.models),
            "directories": named("cwd", &self.directories),
        })
    }

    /// Describes the whole range in one line.
    pub(super) fn summary(&self) -> String {
        let (first, last) = (self.dates.start(), self.dates.end());
        let range = if first == last { first.to_string() } else { format!("{first} to {last}") };
        let count = |n: u64, noun: &str| format!("{n} {noun}{}", if n == 1 { "" } else { "s" });
        let [_, input, cached, output, cost] = self.total.cells();
        let cached = if self.total.usage.cached > 0 { format!(" ({cached} cached)") } else { String::new() };
        let cost = if self.total.usage.cost.is_some() { format!(", {cost}") } else { String::new() };
        format!(
            "{range}: {} in {}, {input} tokens in{cached}, {output} out{cost}",
            count(self.total.n_requests, "request"),
            count(self.n_sessions as u64, "session"),
        )
    }

    /// Writes the summary and a table for days, providers, models and directories.
    pub(super) fn write_text(&self, columns: Option<usize>, out: &mut impl Write) -> io::Result<()> {
        if self.days.is_empty() {
            let (first, last) = (self.dates.start(), self.dates.end());
            return writeln!(out, "no requests with token counts from {first} to {last}");
        }
        writeln!(out, "{}\n", self.summary())?;
        let days = self.days.iter().map(|(day, sum)| (day.to_string(), *sum));
        let days: Vec<(String, UsageSum)> = days.collect();
        write_sums("DAY", &days, columns, out)?;
        let tables =
            [("PROVIDER", &self.providers), ("MODEL", &self.models), ("DIRECTORY", &self.directories)];
        for (title, rows) in tables {
            writeln!(out)?;
            write_sums(title, &rows[..rows.len().min(ROWS_MAX)], columns, out)?;
            if rows.len() > ROWS_MAX {
                writeln!(out, "and {} more", rows.len() - ROWS_MAX)?;
            }
        }
        Ok(())
    }
}

fn by_tokens(sums: BTreeMap<String, UsageSum>) -> Vec<(String, UsageSum)> {
    let mut sums: Vec<(String, UsageSum)> = sums.into_iter().collect();
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.total_tokens()));
    sums
}

/// Writes a table, with a bar for the tokens of each row where the width allows one. On a terminal with this number of
/// columns, names that are too long are shortened.
fn write_sums(
    title: &str,
    rows: &[(String, UsageSum)],
    columns: Option<usize>,
    out: &mut impl Write,
) -> io::Result<()> {
    let row = |name: &str, [requests, input, cached, output, cost]: [String; 5], bar: String| {
        [name.to_owned(), requests, input, cached, output, cost, bar]
    };
    let head = row(title, ["REQUESTS", "IN", "CACHED", "OUT", "COST"].map(str::to_owned), String::new());
    let without_bars = rows.iter().map(|(name, sum)| row(name, sum.cells(), String::new()));
    let mut cells: Vec<[String; 7]> = std::iter::once(head).chain(without_bars).collect();
    let n_over =
        columns.map_or(0, |columns| table::width_before_last(&cells).saturating_sub(columns + table::GAP));
    let name_width = cells.iter().map(|row| table::text_width(&row[0])).max().unwrap_or_default();
    for [name, ..] in cells.iter_mut().filter(|_| n_over > 0) {
        *name = table::shorten_middle(name, name_width.saturating_sub(n_over).max(NAME_COLUMNS_MIN));
    }
    let largest = rows.iter().map(|(_, sum)| sum.total_tokens()).max().unwrap_or_default();
    let bar_width = columns.unwrap_or(COLUMNS).saturating_sub(table::width_before_last(&cells));
    let bars = std::iter::once(String::new())
        .chain(rows.iter().map(|(_, sum)| render_bar(sum.total_tokens(), largest, bar_width)));
    let cells = cells.into_iter().zip(bars).map(|([name, requests, input, cached, output, cost, _], bar)| {
        [name, requests, input, cached, output, cost, bar]
    });
    table::write_table(out, cells)
}
