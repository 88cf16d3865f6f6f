//! Arguments of `usage`.

use clap::Args;

/// Arguments of `usage`.
#[derive(Debug, Args)]
pub(crate) struct UsageArgs {
    /// Show this many days, today included
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..=3660))]
    pub(crate) days: u16,
    /// Print a chart of the days as SVG
    #[arg(long, conflicts_with = "json")]
    pub(crate) svg: bool,
    /// Print JSON
    #[arg(short, long)]
    pub(crate) json: bool,
}
