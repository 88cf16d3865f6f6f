//! `terminal`: runs shell commands, some of them as jobs.

mod arguments;
mod client;
mod client_sandbox;
mod input;
mod interactivity;
mod job_io;
mod jobs;
mod local;
mod report;
mod shell;
mod working_dir;

use std::{path::PathBuf, time::Duration};

use crow_acp::AcpClientCapabilities;
use crow_core::{ToolAccess, ToolCallInfo, ToolKind, ToolSpec};
use crow_process::{ProcessGroups, SandboxWrapper};
use serde_json::{Map, Value};

pub(crate) use self::jobs::JobTable;
pub use self::shell::Shell;
use self::{
    arguments::{CommandRequest, TerminalAction},
    input::JobInput,
    interactivity::TerminalNeed,
    report::TerminalReport,
};
use crate::{
    BuiltinToolConfig, PreviewFuture, Tool, ToolCx, ToolFuture, Workspace,
    tool::{ToolError, into_preview_future, into_tool_future, text_argument, to_title},
};

/// Enough for a build or a test run of a medium project; a longer command continues as a job.
const SOFT_LIMIT: Duration = Duration::from_mins(2);

/// A program that asks for a password does so within this time.
const PROMPT_SOFT_LIMIT: Duration = Duration::from_secs(10);

/// A server that is not used for longer than a working session is not needed.
const JOB_LIFETIME: Duration = Duration::from_hours(4);

/// Time to watch the start of a job: most failures happen at once, and servers print their address.
const JOB_START_WAIT: Duration = Duration::from_secs(1);

/// A program without output for this long waits for input, or computes.
const QUIET_PERIOD: Duration = Duration::from_millis(200);

/// Default time to wait for a job's output.
const READ_WAIT: Duration = Duration::from_secs(5);

/// About 4,000 tokens each: the beginning shows what was done, the end the outcome.
const HEAD_BYTES: usize = 16 * 1024;
const TAIL_BYTES: usize = 16 * 1024;

/// Whether commands run in the client's terminals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TerminalPreference {
    /// In the client's terminals if it has some, else in our own processes.
    #[default]
    ClientFirst,
    /// In the client's terminals; without them no command runs.
    ClientOnly,
    /// In our own processes.
    Local,
}

/// The way one command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommandRoute {
    Client,
    /// In our own process; the client gets its output as a stream.
    LocalStreamed,
    /// In our own process; the client gets snapshots of its output.
    Local,
    /// Not at all.
    Unavailable,
}

impl TerminalPreference {
    fn select_route(self, client: AcpClientCapabilities) -> CommandRoute {
        match self {
            Self::ClientFirst | Self::ClientOnly if client.terminals => CommandRoute::Client,
            Self::ClientOnly => CommandRoute::Unavailable,
            Self::ClientFirst | Self::Local if client.terminal_output => CommandRoute::LocalStreamed,
            Self::ClientFirst | Self::Local => CommandRoute::Local,
        }
    }
}

pub(crate) struct TerminalTool {
    spec: ToolSpec,
    groups: ProcessGroups,
    /// The directory for output that is too long for the model.
    spill_dir: PathBuf,
    terminals: TerminalPreference,
    shell: Shell,
    /// The supervisor of the commands.
    sandbox: Option<SandboxWrapper>,
    /// Time a call waits for a command without a timeout.
    soft_limit: Duration,
}

/// The error if no command can run.
const NO_TERMINAL: &str = "could not run the command: the client has no terminals, and the configuration allows no others \
                       (fallback_to_mcp_terminal)";

impl TerminalTool {
    pub(crate) fn new(groups: ProcessGroups, config: &BuiltinToolConfig) -> Self {
        let soft_limit = config.soft_limit.unwrap_or(SOFT_LIMIT);
        let spec = ToolSpec {
            name: "terminal".into(),
            description: format!(
                "Runs a command with {} in the working folder, or in `cwd`, and shows what it said. Each command has a shell \
                 of its own: what `cd` and `export` change ends with it. It gets no input, and what it leaves running in the background is ended with it: start servers, watchers and programs to type to \
                 with background=true. A command that is not done after {} s goes on as a job; with a timeout it is \
                 stopped then. Jobs are read, typed to and ended with is_input and reset. A REPL (python3, psql …) \
                 becomes a job by itself. Of long output the beginning and the end are shown and the whole goes to a \
                 file.",
                config.shell.name(),
                soft_limit.as_secs()
            ),
            parameters: arguments::parameters_schema(),
        };
        Self {
            spec,
            groups,
            spill_dir: config.spill_dir.clone(),
            terminals: config.terminals,
            shell: config.shell.clone(),
            sandbox: config.sandbox.clone(),
            soft_limit,
        }
    }
}

impl Tool for TerminalTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call_info(&self, arguments: &Map<String, Value>, workspace: &Workspace) -> ToolCallInfo {
        let (title, access) = match TerminalAction::parse(arguments) {
            Ok(action) => (action_title(&action, workspace), action_access(action, workspace)),
            Err(_) => (format!("`{}`", to_title(text_argument(arguments, "command"))), ToolAccess::Nothing),
        };
        ToolCallInfo { title, kind: ToolKind::Execute, locations: Vec::new(), access }
    }

    fn live_output_dir(
        &self,
        arguments: &Map<String, Value>,
        workspace: &Workspace,
        client: AcpClientCapabilities,
    ) -> Option<PathBuf> {
        match TerminalAction::parse(arguments) {
            Ok(TerminalAction::Start(request))
                if !request.is_job()
                    && self.terminals.select_route(client) == CommandRoute::LocalStreamed =>
            {
                Some(request.working_dir(workspace))
            }
            Ok(_) | Err(_) => None,
        }
    }

    fn runs_in_client(
        &self,
        arguments: &Map<String, Value>,
        _workspace: &Workspace,
        client: AcpClientCapabilities,
    ) -> bool {
        match TerminalAction::parse(arguments) {
            Ok(
                TerminalAction::Start(request) | TerminalAction::Reset { next_command: Some(request), .. },
            ) => self.command_route(&request, client) == CommandRoute::Client,
            Ok(_) | Err(_) => false,
        }
    }

    fn preview<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> PreviewFuture<'a> {
        into_preview_future(async move {
            match TerminalAction::parse(arguments) {
                Ok(
                    TerminalAction::Start(request)
                    | TerminalAction::Reset { next_command: Some(request), .. },
                ) if self.command_route(&request, cx.client_capabilities()) == CommandRoute::Unavailable => {
                    Err(ToolError(NO_TERMINAL.to_owned()))
                }
                Ok(_) | Err(_) => Ok(Vec::new()),
            }
        })
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> ToolFuture<'a> {
        into_tool_future(async move {
            let jobs = cx.workspace.jobs();
            let report = match TerminalAction::parse(arguments)? {
                TerminalAction::Start(request) => self.start_command(&request, &cx).await?,
                TerminalAction::ReadJob { job, wait } => {
                    let entry = jobs.find_job(job.as_deref())?;
                    job_io::read_job(&entry, wait, &cx).await
                }
                TerminalAction::SendInput { job, input, wait, .. } => {
                    let entry = jobs.find_job(job.as_deref())?;
                    job_io::send_input(&entry, &input, wait, &cx).await?
                }
                TerminalAction::Reset { job, next_command } => {
                    let ended_text = job_io::reset_jobs(jobs, job.as_deref()).await?;
                    match next_command {
                        Some(request) => self.start_command(&request, &cx).await?.with_prefix(&ended_text),
                        None => TerminalReport::success(ended_text),
                    }
                }
            };
            Ok(report.into_tool_result(&jobs.take_ended_jobs()))
        })
    }
}

impl TerminalTool {
    async fn start_command(
        &self,
        request: &CommandRequest,
        cx: &ToolCx<'_>,
    ) -> Result<TerminalReport, ToolError> {
        request.check_working_dir(cx).await?;
        let outcome = match (self.command_route(request, cx.client_capabilities()), cx.editor) {
            (CommandRoute::Client, Some(editor)) => match self.run_in_client(request, editor, cx).await? {
                Some(outcome) => outcome,
                None => self.run_locally(request, cx, CommandRoute::Local).await?,
            },
            (CommandRoute::Unavailable, _) => return Err(ToolError(NO_TERMINAL.to_owned())),
            (route, _) => self.run_locally(request, cx, route).await?,
        };
        let note = request.directory_note(&outcome, cx.workspace);
        Ok(outcome.into_report(request.timeout.unwrap_or(self.soft_limit)).with_line(note))
    }

    fn command_route(&self, request: &CommandRequest, client: AcpClientCapabilities) -> CommandRoute {
        match self.terminals.select_route(client) {
            // Crow cannot type into a terminal of the client.
            CommandRoute::Client
                if request.need == TerminalNeed::Interactive
                    && self.terminals == TerminalPreference::ClientFirst =>
            {
                CommandRoute::Local
            }
            route @ (CommandRoute::Client
            | CommandRoute::LocalStreamed
            | CommandRoute::Local
            | CommandRoute::Unavailable) => route,
        }
    }
}

fn action_title(action: &TerminalAction, workspace: &Workspace) -> String {
    let job_name = |job: &Option<String>| match workspace.jobs().find_job(job.as_deref()) {
        Ok(entry) => entry.name.clone(),
        Err(_) => job.clone().unwrap_or_else(|| "job".into()),
    };
    let run_title = |request: &CommandRequest| {
        let background = if request.is_background { " in the background" } else { "" };
        format!("`{}`{}{background}", to_title(&request.command), request.working_dir_suffix(workspace))
    };
    match action {
        TerminalAction::Start(request) => run_title(request),
        TerminalAction::SendInput { job, text, .. } => to_title(&format!("{} ← {text}", job_name(job))),
        TerminalAction::ReadJob { job, .. } => to_title(&format!("Read {}", job_name(job))),
        TerminalAction::Reset { job: Some(job), next_command: None } => to_title(&format!("End {job}")),
        TerminalAction::Reset { job: None, next_command: None } => "End all jobs".into(),
        TerminalAction::Reset { next_command: Some(request), .. } => run_title(request),
    }
}

/// Typed text may run like any command; stopping or reading a job accesses nothing.
fn action_access(action: TerminalAction, workspace: &Workspace) -> ToolAccess {
    match action {
        TerminalAction::Start(request) | TerminalAction::Reset { next_command: Some(request), .. } => {
            ToolAccess::Runs(request.evaluated_line(workspace))
        }
        TerminalAction::SendInput { input: JobInput::Key { only_stops: true, .. }, .. } => {
            ToolAccess::Nothing
        }
        TerminalAction::SendInput { text, .. } => ToolAccess::Runs(text),
        TerminalAction::ReadJob { .. } | TerminalAction::Reset { next_command: None, .. } => {
            ToolAccess::Nothing
        }
    }
}
