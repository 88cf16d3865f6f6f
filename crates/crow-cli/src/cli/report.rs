//! Arguments of `report`.

use clap::Args;
use clap_complete::ArgValueCandidates;

use crate::completion;

/// Arguments of `report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Also describe this session: the order, size, state and cost of its messages, not their text
    #[arg(short, long, value_name = "ID", add = ArgValueCandidates::new(completion::list_sessions))]
    pub(crate) session: Option<String>,
    /// Leave out the checks of `doctor`, which contact providers and MCP servers
    #[arg(long)]
    pub(crate) offline: bool,
}
