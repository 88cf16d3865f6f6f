//! Values and overrides of a conversation's options. Makes no decisions.

use std::ffi::OsStr;

use clap::{
    Arg, Args, ValueEnum,
    builder::{PossibleValue, StringValueParser, TypedValueParser},
};
use crow_core::{Mode, PermissionRule};

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
    #[arg(long, value_name = "TEXT", conflicts_with = "agent")]
    pub(crate) append_system_prompt: Option<String>,
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

/// Lists Crow's modes and accepts any: another agent has its own.
#[derive(Debug, Clone)]
pub(super) struct ModeValueParser;

impl TypedValueParser for ModeValueParser {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Mode::ALL.into_iter().map(|mode| PossibleValue::new(mode.as_str()))))
    }
}
