//! `terminal`: a shell command in the working folder.

use std::{fmt::Write as _, path::PathBuf, time::Duration};

use crow_core::{Content, Facets, Outcome, ToolKind, ToolSpec, Touch};
use crow_process::{Bounds, Command, Ended, Groups, Ran};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    Running, Tool, ToolCx, Workspace,
    tool::{CANCELLED, Refusal, answer, parse, text_of, title},
};

/// Every system with a shell has this one.
const SHELL: &str = "/bin/sh";

/// Enough for a build or a test run of a project that is not huge.
const TIMEOUT_S_DEFAULT: u64 = 120;

/// Longer than this nobody watches, and a model waits in vain.
const TIMEOUT_S_MAX: u64 = 600;

/// About 4,000 tokens each: the beginning says what was done, the end how it went.
const HEAD_BYTES: usize = 16 * 1024;
const TAIL_BYTES: usize = 16 * 1024;

pub(crate) struct Terminal {
    spec: ToolSpec,
    /// The programs alive.
    groups: Groups,
    /// Where output goes that is too long for the model.
    spill_dir: PathBuf,
}

#[derive(Deserialize)]
struct Wanted {
    command: String,
    #[serde(default = "timeout_default")]
    timeout: u64,
}

fn timeout_default() -> u64 {
    TIMEOUT_S_DEFAULT
}

impl Terminal {
    pub(crate) fn new(groups: Groups, spill_dir: PathBuf) -> Self {
        let spec = ToolSpec {
            name: "terminal".into(),
            description: format!(
                "Runs a command with {SHELL} in the working folder and shows what it said. It gets no input and no \
                 terminal. When it ends, whatever it left running in the background is ended too. Of long output \
                 the beginning and the end are shown and the whole goes to a file."
            ),
            parameters: json!({
                "type": "object",
                "properties": {
                    "command": {"type": "string", "minLength": 1, "description": "The command line"},
                    "timeout": {
                        "type": "integer", "minimum": 1, "maximum": TIMEOUT_S_MAX, "default": TIMEOUT_S_DEFAULT,
                        "description": "Seconds after which it is stopped"
                    }
                },
                "required": ["command"]
            }),
        };
        Self { spec, groups, spill_dir }
    }
}

impl Tool for Terminal {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn facets(&self, arguments: &Map<String, Value>, _workspace: &Workspace) -> Facets {
        let command = text_of(arguments, "command");
        Facets {
            title: format!("`{}`", title(command)),
            kind: ToolKind::Execute,
            locations: Vec::new(),
            touch: Touch::Runs(command.to_owned()),
        }
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> Running<'a> {
        answer(async move {
            let wanted: Wanted = parse(arguments)?;
            let timeout_s = wanted.timeout.clamp(1, TIMEOUT_S_MAX);
            let bounds = Bounds {
                timeout: Duration::from_secs(timeout_s),
                head_bytes: HEAD_BYTES,
                tail_bytes: TAIL_BYTES,
                spill: Some(self.spill_dir.clone()),
            };
            let progress = |text: &str| (cx.progress)(vec![Content::Text(text.to_owned())]);
            let command = shell(wanted.command, cx.workspace);
            let ran = crow_process::run(&self.groups, command, bounds, cx.cut, progress).await;
            let ran = ran.map_err(|error| Refusal(format!("could not run the command: {error}")))?;
            Ok(outcome(ran, timeout_s))
        })
    }
}

fn shell(command: String, workspace: &Workspace) -> Command {
    Command {
        program: SHELL.into(),
        args: vec!["-c".into(), command],
        cwd: workspace.cwd().to_owned(),
        env: Vec::new(),
        env_removed: workspace.secret_variables().to_vec(),
    }
}

fn outcome(ran: Ran, timeout_s: u64) -> Outcome {
    let mut text = ran.output.text;
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    if let Some(spilled) = &ran.output.spilled {
        let extent = if spilled.n_bytes == ran.output.n_bytes { "all" } else { "the beginning" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "({extent} of the output is in {})", spilled.path.display());
    }
    let how = match ran.ended {
        Ended::Exited(0) if text.is_empty() => return Outcome::done("(no output)"),
        Ended::Exited(0) => return Outcome::done(text),
        Ended::Exited(code) => format!("exit code {code}"),
        Ended::Signalled(signal) => format!("ended by signal {signal}"),
        Ended::TimedOut => format!("stopped: it ran longer than {timeout_s} s"),
        Ended::Cancelled => CANCELLED.to_owned(),
    };
    Outcome::failed(text + &how)
}
