//! `terminal`: a shell command in the working folder.

use std::{fmt::Write as _, path::PathBuf, time::Duration};

use crow_acp::{Abilities, ClientError, Editor, Exit, Launch};
use crow_core::{Content, Facets, Outcome, ToolKind, ToolSpec, Touch};
use crow_process::{Bounds, Command, Ended, Groups, Output, Watcher};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    Progress, Running, Tool, ToolCx, Workspace,
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

/// What a client keeps for us of a command's output; we keep the beginning and the end of it.
const CLIENT_BYTES: u64 = 1024 * 1024;

/// Whose terminals commands run in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Terminals {
    /// The client's where it has some, else none but our own processes.
    #[default]
    ClientFirst,
    /// The client's; without them no command runs.
    ClientOnly,
    /// Our own processes, whatever the client has.
    Own,
}

/// Where one command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route {
    /// In a terminal of the client.
    Client,
    /// Here, and the client draws what it prints as it comes.
    HereLive,
    /// Here, and the client is shown pictures of it.
    Here,
    /// Nowhere.
    Nowhere,
}

impl Terminals {
    fn route(self, client: Abilities) -> Route {
        match self {
            Self::ClientFirst | Self::ClientOnly if client.terminals => Route::Client,
            Self::ClientOnly => Route::Nowhere,
            Self::ClientFirst | Self::Own if client.shows_output => Route::HereLive,
            Self::ClientFirst | Self::Own => Route::Here,
        }
    }
}

pub(crate) struct Terminal {
    spec: ToolSpec,
    /// The programs alive.
    groups: Groups,
    /// Where output goes that is too long for the model.
    spill_dir: PathBuf,
    terminals: Terminals,
}

#[derive(Debug, Clone, Deserialize)]
struct Wanted {
    command: String,
    #[serde(default = "timeout_default")]
    timeout: u64,
}

impl Wanted {
    fn timeout_s(&self) -> u64 {
        self.timeout.clamp(1, TIMEOUT_S_MAX)
    }
}

fn timeout_default() -> u64 {
    TIMEOUT_S_DEFAULT
}

impl Terminal {
    pub(crate) fn new(groups: Groups, spill_dir: PathBuf, terminals: Terminals) -> Self {
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
        Self { spec, groups, spill_dir, terminals }
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

    fn prints_live(&self, client: Abilities) -> bool {
        self.terminals.route(client) == Route::HereLive
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> Running<'a> {
        answer(async move {
            let wanted: Wanted = parse(arguments)?;
            let route = self.terminals.route(cx.abilities());
            let (ended, output) = match (route, cx.editor) {
                (Route::Client, Some(editor)) => match self.run_in_client(&wanted, editor, &cx).await? {
                    Some(ran) => ran,
                    None => self.run_here(wanted.clone(), &cx, Route::Here).await?,
                },
                (Route::Nowhere, _) => {
                    let why = "could not run the command: the client has no terminals, and the configuration wants \
                               no others (fallback_to_mcp_terminal)";
                    return Err(Refusal(why.into()));
                }
                (route, _) => self.run_here(wanted.clone(), &cx, route).await?,
            };
            Ok(outcome(&ended, output, wanted.timeout_s()))
        })
    }
}

impl Terminal {
    async fn run_here(
        &self,
        wanted: Wanted,
        cx: &ToolCx<'_>,
        route: Route,
    ) -> Result<(How, Output), Refusal> {
        let bounds = Bounds {
            timeout: Duration::from_secs(wanted.timeout_s()),
            head_bytes: HEAD_BYTES,
            tail_bytes: TAIL_BYTES,
            spill: Some(self.spill_dir.clone()),
        };
        let command = shell(wanted.command, cx.workspace);
        let ran = match route {
            Route::HereLive => {
                crow_process::run(&self.groups, command, bounds, cx.cut, Live::new(cx.progress)).await
            }
            Route::Here | Route::Client | Route::Nowhere => {
                let picture =
                    |text: &str| (cx.progress)(Progress::Shows(vec![Content::Text(text.to_owned())]));
                crow_process::run(&self.groups, command, bounds, cx.cut, picture).await
            }
        };
        let ran = ran.map_err(|error| Refusal(format!("could not run the command: {error}")))?;
        if route == Route::HereLive {
            let (code, signal) = match ran.ended {
                Ended::Exited(code) => (Some(code), None),
                Ended::Signalled(signal) => (None, Some(signal)),
                Ended::TimedOut | Ended::Cancelled => (None, None),
            };
            (cx.progress)(Progress::Exited { code, signal });
        }
        Ok((ran.ended.into(), ran.output))
    }

    /// Runs a command in a terminal of the client; `None` when it opens none.
    async fn run_in_client(
        &self,
        wanted: &Wanted,
        editor: &Editor,
        cx: &ToolCx<'_>,
    ) -> Result<Option<(How, Output)>, Refusal> {
        let launch = Launch {
            program: SHELL.into(),
            args: vec!["-c".into(), wanted.command.clone()],
            env: Vec::new(),
            cwd: cx.workspace.cwd().to_owned(),
            output_bytes_max: CLIENT_BYTES,
        };
        let terminal = match editor.open_terminal(launch, cx.cut).await {
            Ok(terminal) => terminal,
            Err(ClientError::Cut) => return Ok(Some((How::Here(Ended::Cancelled), Output::default()))),
            // A client that is merely slow may run it yet.
            Err(error @ ClientError::Refused(_)) if self.terminals == Terminals::ClientFirst => {
                tracing::warn!(%error, "the client opens no terminal; the command runs here");
                return Ok(None);
            }
            Err(error) => return Err(Refusal(format!("could not open a terminal: {error}"))),
        };
        (cx.progress)(Progress::Terminal(terminal.clone()));
        let ended = match terminal.wait(Duration::from_secs(wanted.timeout_s()), cx.cut).await {
            Ok(exit) => How::of_client(exit),
            Err(ClientError::Silent(_)) => How::Here(Ended::TimedOut),
            Err(ClientError::Cut) => How::Here(Ended::Cancelled),
            Err(error @ ClientError::Refused(_)) => How::Lost(error.to_string()),
        };
        if !matches!(ended, How::Here(Ended::Exited(_)) | How::InClient { .. }) {
            match terminal.kill(cx.cut).await {
                Ok(()) => terminal.gone().await,
                Err(error) => tracing::warn!(%error, "the client may not have ended a command"),
            }
        }
        let said = match terminal.output(cx.cut).await {
            Ok(output) if output.is_cut => format!("(the client dropped the beginning)\n{}", output.text),
            Ok(output) => output.text,
            Err(error) => format!("(the output is lost: {error})\n"),
        };
        let output = Output::of(&said, HEAD_BYTES, TAIL_BYTES, Some(self.spill_dir.clone())).await;
        Ok(Some((ended, output)))
    }
}

/// How a command ended, whoever ran it.
#[derive(Debug)]
enum How {
    /// As we know it.
    Here(Ended),
    /// By a signal, as the client names it.
    InClient { signal: String },
    /// Nobody knows.
    Lost(String),
}

impl From<Ended> for How {
    fn from(ended: Ended) -> Self {
        Self::Here(ended)
    }
}

impl How {
    fn of_client(exit: Exit) -> Self {
        match exit {
            Exit { code: Some(code), .. } => {
                Self::Here(Ended::Exited(i32::try_from(code).unwrap_or(i32::MAX)))
            }
            Exit { signal: Some(signal), .. } => Self::InClient { signal },
            Exit { code: None, signal: None } => Self::Lost("the client does not say how it ended".into()),
        }
    }
}

/// Hands output on as text while it comes, whole characters only.
struct Live<'a> {
    progress: &'a (dyn Fn(Progress) + Send + Sync),
    begun: Vec<u8>,
}

impl<'a> Live<'a> {
    fn new(progress: &'a (dyn Fn(Progress) + Send + Sync)) -> Self {
        Self { progress, begun: Vec::new() }
    }
}

impl Watcher for Live<'_> {
    fn piece(&mut self, bytes: &[u8]) {
        self.begun.extend_from_slice(bytes);
        let n_whole = match std::str::from_utf8(&self.begun) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Ok(_) | Err(_) => self.begun.len(),
        };
        let whole: Vec<u8> = self.begun.drain(..n_whole).collect();
        if !whole.is_empty() {
            (self.progress)(Progress::Printed(String::from_utf8_lossy(&whole).into_owned()));
        }
    }

    fn picture(&mut self, _text: &dyn Fn() -> String) {}
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

fn outcome(how: &How, output: Output, timeout_s: u64) -> Outcome {
    let mut text = output.text;
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    if let Some(spilled) = &output.spilled {
        let extent = if spilled.n_bytes == output.n_bytes { "all" } else { "the beginning" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "({extent} of the output is in {})", spilled.path.display());
    }
    let how = match how {
        How::Here(Ended::Exited(0)) if text.is_empty() => return Outcome::done("(no output)"),
        How::Here(Ended::Exited(0)) => return Outcome::done(text),
        How::Here(Ended::Exited(code)) => format!("exit code {code}"),
        How::Here(Ended::Signalled(signal)) => format!("ended by signal {signal}"),
        How::Here(Ended::TimedOut) => format!("stopped: it ran longer than {timeout_s} s"),
        How::Here(Ended::Cancelled) => CANCELLED.to_owned(),
        How::InClient { signal } => format!("ended by signal {signal}"),
        How::Lost(why) => format!("how it ended is not known: {why}"),
    };
    Outcome::failed(text + &how)
}
