//! Options of `crow-cli run` that override the configuration. Makes no decisions.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use crow_core::PermissionRule;

/// Overrides of the configuration for one run.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RunOverrides {
    /// Allow tool calls that match this rule, as `permissions.allow` does; can be repeated
    #[arg(long, value_name = "RULE", value_parser = parse_rule, conflicts_with = "agent")]
    pub(crate) allow: Vec<PermissionRule>,
    /// End a turn after this many model requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "agent")]
    pub(crate) max_turns: Option<u32>,
    /// Append this text to the system prompt of the new session
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["agent", "session"])]
    pub(crate) append_system_prompt: Option<String>,
    /// Send this image with the first prompt; can be repeated
    #[arg(long = "image", value_name = "FILE")]
    pub(crate) images: Vec<PathBuf>,
    /// Set the output format; `stream-json` is the same as --json
    #[arg(long, value_name = "FORMAT", conflicts_with = "json")]
    pub(crate) output_format: Option<OutputFormat>,
}

/// Output format of `run`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Text for a terminal
    Text,
    /// One JSON document with the result of each turn
    Json,
    /// One JSON event per line
    StreamJson,
}

fn parse_rule(text: &str) -> Result<PermissionRule, String> {
    PermissionRule::parse(text).map_err(|bad| format!("the rule {bad}"))
}
