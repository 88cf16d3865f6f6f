//! Parses the arguments of `terminal`. Pure.

use std::time::Duration;

use crow_core::{ToolArguments, ToolCall, patch};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    input::JobInput,
    interactivity::{TerminalNeed, terminal_need},
};
use crate::{tool::parse_arguments, tool_error::ToolError};

/// A longer wait is useless; longer commands continue as a job.
pub(super) const TIMEOUT_S_MAX: u32 = 3600;

/// Linux accepts no longer argument.
pub(super) const COMMAND_BYTES_MAX: usize = 128 * 1024 - 1;

/// Answers a patch that could not be taken for a call of the tool.
const NO_PATCH_PROGRAM: &str = "`apply_patch` is a tool and no program: call it with the patch as `input`, alone, and then \
                                run the other commands";

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TerminalArgs {
    command: String,
    cwd: Option<String>,
    timeout: Option<f64>,
    is_input: bool,
    reset: bool,
    background: bool,
    job: Option<String>,
}

/// Returns a call that runs only the same command again.
pub fn command_retry(call: &ToolCall) -> ToolCall {
    let mut arguments = call.arguments.to_object();
    arguments.retain(|name, _| !["reset", "job"].contains(&name.as_str()));
    ToolCall { arguments: ToolArguments::Valid(arguments), ..call.clone() }
}

/// Whether a call starts a command: input to a running command must not be sent twice.
pub fn starts_command(call: &ToolCall) -> bool {
    call.arguments.to_object().get("is_input").and_then(Value::as_bool) != Some(true)
}

/// The action of a call.
#[derive(Debug)]
pub(super) enum TerminalAction {
    Start(CommandRequest),
    SendInput {
        job: Option<String>,
        input: JobInput,
        text: String,
        wait: Option<Duration>,
    },
    ReadJob {
        job: Option<String>,
        wait: Option<Duration>,
    },
    /// Ends a job, or all, and then runs a command if there is one.
    Reset {
        job: Option<String>,
        next_command: Option<CommandRequest>,
    },
}

/// A command to run.
#[derive(Debug, Clone)]
pub(super) struct CommandRequest {
    pub(super) command: String,
    /// The requested working directory.
    pub(super) cwd: Option<String>,
    pub(super) timeout: Option<Duration>,
    pub(super) need: TerminalNeed,
    /// Whether the call returns without waiting for the command to end.
    pub(super) is_background: bool,
}

impl CommandRequest {
    /// Whether it is a job from the beginning.
    pub(super) fn is_job(&self) -> bool {
        self.is_background || self.need == TerminalNeed::Interactive
    }
}

impl TerminalAction {
    /// Parses the arguments of a call.
    pub(super) fn parse(arguments: &Map<String, Value>) -> Result<Self, ToolError> {
        let TerminalArgs { command, cwd, timeout, is_input, reset, background, job } =
            parse_arguments(arguments)?;
        let job = job.filter(|job| !job.is_empty());
        let cwd = cwd.filter(|cwd| !cwd.is_empty());
        let wait = timeout.map(parse_timeout).transpose()?.flatten();
        if command.contains('\0') {
            return Err(ToolError("`command` contains a zero byte, which no command may".into()));
        }
        if cwd.as_ref().is_some_and(|cwd| cwd.contains('\0')) {
            return Err(ToolError("`cwd` contains a zero byte, which no path may".into()));
        }
        if command.len() > COMMAND_BYTES_MAX {
            let reason = format!(
                "`command` is longer than {COMMAND_BYTES_MAX} bytes, more than the system accepts; write the text to a \
                 file and use that"
            );
            return Err(ToolError(reason));
        }
        if !is_input && patch::shell_patch(&command).is_some() {
            return Err(ToolError(NO_PATCH_PROGRAM.into()));
        }
        let is_empty = command.trim().is_empty();
        let request = |command: String| CommandRequest {
            need: terminal_need(&command),
            command,
            cwd: cwd.clone(),
            timeout: wait,
            is_background: background,
        };
        match (is_input, reset) {
            (true, true) => Err(ToolError("is_input and reset exclude each other".into())),
            (true, false) if cwd.is_some() => {
                let reason = "`cwd` is the directory of a new command; a job stays in its own";
                Err(ToolError(reason.into()))
            }
            (true, false) if command.is_empty() => Ok(Self::ReadJob { job, wait }),
            (true, false) => {
                Ok(Self::SendInput { job, input: JobInput::parse(&command), text: command, wait })
            }
            (false, true) => {
                let next_command = (!is_empty).then(|| request(command));
                Ok(Self::Reset { job, next_command })
            }
            (false, false) if is_empty && job.is_some() => Ok(Self::ReadJob { job, wait }),
            (false, false) if is_empty => Err(ToolError("there is no command; `command` is empty".into())),
            (false, false) if job.is_some() => {
                let reason = "`job` names a job to read, type to or end: set is_input or reset, or leave `job` out to run \
                           a new command";
                Err(ToolError(reason.into()))
            }
            (false, false) => Ok(Self::Start(request(command))),
        }
    }
}

/// Parses a number of seconds; 0, which models send for a parameter that they do not need, is the default.
fn parse_timeout(seconds: f64) -> Result<Option<Duration>, ToolError> {
    let refuse = || ToolError(format!("`timeout` must be a number of seconds, not {seconds}"));
    if seconds == 0.0 {
        return Ok(None);
    }
    if seconds > f64::from(TIMEOUT_S_MAX) {
        let reason =
            format!("`timeout` is in seconds and may be at most {TIMEOUT_S_MAX}; for what takes longer");
        return Err(ToolError(format!("{reason} leave it out, or set background")));
    }
    Duration::try_from_secs_f64(seconds).map(Some).map_err(|_| refuse())
}

/// The schema of the parameters, for the model.
pub(super) fn parameters_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "command": {
                "type": "string",
                "description": "The command line. With is_input: the line to type, or one key, spelled exactly so \
                                (C-c, C-d, C-z or another letter, Enter, Tab, Esc, Backspace, Up, Down, Left, Right, \
                                Home, End, PageUp, PageDown); empty to only read what the job said"
            },
            "cwd": {
                "type": "string",
                "description": "The folder to run the command in, absolute or relative to the working folder, which it \
                                is unless given"
            },
            "timeout": {
                "type": "number", "minimum": 0, "maximum": TIMEOUT_S_MAX,
                "description": "Seconds after which the command is stopped; without it a command that takes long goes \
                                on as a job. With is_input: how long to wait, for more output when something is typed, \
                                for the end of the job when it is only read"
            },
            "is_input": {
                "type": "boolean", "default": false,
                "description": "Type `command` to a job, or read the job, instead of running a new command"
            },
            "reset": {
                "type": "boolean", "default": false,
                "description": "End the job named by `job`, or all jobs of this session"
            },
            "background": {
                "type": "boolean", "default": false,
                "description": "Run the command as a job on a terminal of its own and do not wait for its end: for \
                                servers, watchers and programs to type to"
            },
            "job": {
                "type": "string",
                "description": "Which job is meant, such as job-1; without it the one that was started last"
            }
        }
    })
}

#[cfg(test)]
mod tests;
