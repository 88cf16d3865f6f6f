//! `crow-cli usage`: tokens and cost by day, provider, model and directory. Only reads the database.

mod chart;
mod report;
#[cfg(test)]
mod tests;

use std::io::Write;

use crow_store::{PeriodUsage, Timestamp};
use jiff::{ToSpan as _, Zoned};

use self::report::UsageReport;
use crate::{cli::UsageArgs, database::store_options, failure::CliError, settings::Settings, table};

/// Shows the usage of the days up to `now`, in its time zone. `columns` is the width of a terminal.
pub(crate) async fn run(
    args: &UsageArgs,
    settings: &Settings,
    now: &Zoned,
    columns: Option<usize>,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let last = now.date();
    let first = last.saturating_sub((i64::from(args.days) - 1).days());
    let since =
        first.to_zoned(now.time_zone().clone()).map_or(i64::MIN, |start| start.timestamp().as_millisecond());
    let periods: Vec<PeriodUsage> = match store_options().open_existing(&settings.database).await? {
        Some(store) => store.usage_since(Timestamp(since)).await?,
        None => Vec::new(),
    };
    let provider_of = |model: &str| {
        let model = settings.models.iter().find(|configured| configured.name == model)?;
        Some(model.provider.name.as_str())
    };
    let report = UsageReport::new(first..=last, periods, now.time_zone(), provider_of);
    match (args.json, args.svg) {
        (true, _) => writeln!(out, "{}", table::json_line(&report.to_json()))?,
        (false, true) => write!(out, "{}", chart::render_svg(&report))?,
        (false, false) => report.write_text(columns, out)?,
    }
    Ok(())
}
