//! Options of a conversation, the same for `crow-cli run` and for `crow-cli` without a subcommand. Makes no decisions.

use std::{ffi::OsStr, path::PathBuf};

use clap::{
    Arg, Args, ValueEnum,
    builder::{PossibleValue, StringValueParser, TypedValueParser},
};
use clap_complete::ArgValueCandidates;
use crow_core::{Mode, PermissionRule};

use crate::completion;

/// Options of a conversation.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ConversationOptions {
    /// Work in this directory instead of the current one
    #[arg(short = 'c', long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Use this configured model, or a model of the agent given with --agent
    #[arg(short, long, value_name = "MODEL", add = ArgValueCandidates::new(completion::list_models))]
    pub(crate) model: Option<String>,
    /// Set the permission mode; an agent given with --agent may have other modes
    #[arg(long, value_name = "MODE", value_parser = ModeValueParser)]
    pub(crate) mode: Option<String>,
    /// Drive this agent from `agent_servers` instead of Crow
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(completion::list_agents))]
    pub(crate) agent: Option<String>,
    /// Approve every permission request
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Send this image with the first prompt; can be repeated
    #[arg(long = "image", value_name = "FILE")]
    pub(crate) images: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) overrides: RunOverrides,
}

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

impl ConversationOptions {
    /// Whether any of them was given.
    pub(super) fn is_used(&self) -> bool {
        let Self { cwd, model, mode, agent, yes, images, overrides } = self;
        let RunOverrides { allow, max_turns, append_system_prompt } = overrides;
        let has_text = [model, mode, agent, append_system_prompt].into_iter().any(Option::is_some);
        has_text || *yes || cwd.is_some() || max_turns.is_some() || !images.is_empty() || !allow.is_empty()
    }
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
struct ModeValueParser;

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
