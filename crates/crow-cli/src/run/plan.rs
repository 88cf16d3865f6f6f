//! The plan of a run: its arguments, prompts and output.

use std::path::PathBuf;

use crow_core::ContentPart;

use super::{
    interrupts::RunControl,
    output::{RunOutput, SessionRetention},
    terminal_setup::TerminalSetup,
};
use crate::cli::RunArgs;

/// Everything a run does with its agent.
pub(crate) struct RunPlan {
    pub(crate) args: RunArgs,
    pub(crate) cwd: PathBuf,
    pub(crate) first_prompt: Option<String>,
    /// Images for the first prompt.
    pub(crate) images: Vec<ContentPart>,
    pub(crate) output: Box<dyn RunOutput>,
    pub(crate) retention: SessionRetention,
    pub(crate) control: RunControl,
    /// Whether the output needs the tokens used so far with each update.
    pub(crate) counts_tokens: bool,
    /// The interactive terminal, if the run has one.
    pub(crate) terminal: Option<TerminalSetup>,
}
