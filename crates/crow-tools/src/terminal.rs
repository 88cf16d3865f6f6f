//! `terminal`: a shell command in the working folder.

use std::{fmt::Write as _, time::Duration};

use crow_core::{Content, Facets, Outcome, ToolKind, ToolSpec, Touch};
use crow_process::{Bounds, Command, Ended, Ran};
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

/// Providers' keys are named like this; no command needs the one that pays for the model.
const SECRET_SUFFIX: &str = "_API_KEY";

pub(crate) struct Terminal {
    spec: ToolSpec,
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
    pub(crate) fn new() -> Self {
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
        Self { spec }
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
                spill: Some(cx.spill_dir.to_owned()),
            };
            let progress = |text: &str| (cx.progress)(vec![Content::Text(text.to_owned())]);
            let command = shell(wanted.command, cx.workspace);
            let ran = crow_process::run(cx.groups, command, bounds, cx.cut, progress).await;
            let ran = ran.map_err(|error| Refusal(format!("could not run the command: {error}")))?;
            Ok(outcome(ran, timeout_s))
        })
    }
}

fn shell(command: String, workspace: &Workspace) -> Command {
    #[expect(
        clippy::disallowed_methods,
        reason = "only the names, and a key nobody thought of is kept back too"
    )]
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let secrets = names.filter(|name| is_key(name));
    Command {
        program: SHELL.into(),
        args: vec!["-c".into(), command],
        cwd: workspace.cwd().to_owned(),
        env: Vec::new(),
        env_removed: secrets.chain(workspace.secret_variables().iter().cloned()).collect(),
    }
}

fn is_key(name: &str) -> bool {
    name.to_ascii_uppercase().ends_with(SECRET_SUFFIX)
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

#[cfg(test)]
#[test]
fn keys_by_name() {
    let keys = ["ANTHROPIC_API_KEY", "my_api_key", "API_KEYS", "KEY", "PATH"].map(is_key);
    assert_eq!(keys, [true, true, false, false, false]);
}
