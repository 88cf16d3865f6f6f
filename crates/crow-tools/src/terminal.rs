//! `terminal`: runs shell commands, some of them as jobs.

mod arguments;
mod client;
mod client_job;
mod client_sandbox;
mod command_exit;
mod command_runner;
mod input;
mod interactivity;
mod job_io;
mod jobs;
mod limits;
mod local;
mod report;
mod shell;
mod working_dir;

use std::path::PathBuf;

use crow_acp::AcpClientCapabilities;
use crow_core::{ToolAccess, ToolCallInfo, ToolKind, ToolSpec};
use crow_process::ProcessGroups;
use serde_json::{Map, Value};

pub(crate) use self::jobs::JobTable;
use self::{
    arguments::{CommandRequest, TerminalAction},
    command_runner::{CommandRoute, CommandRunner},
    input::JobInput,
    report::TerminalReport,
};
pub use self::{
    arguments::{command_retry, starts_command},
    command_runner::TerminalPreference,
    shell::Shell,
};
use crate::{
    BuiltinToolConfig, PreviewFuture, Tool, ToolCx, ToolFuture, Workspace,
    title::to_title,
    tool::{into_preview_future, into_tool_future, text_argument},
    tool_error::ToolError,
};

pub(crate) struct TerminalTool {
    spec: ToolSpec,
    runner: CommandRunner,
}

/// The error if no command can run.
const NO_TERMINAL: &str = "could not run the command: there is no terminal that the configuration allows (use_acp_terminal, \
                       fallback_to_mcp_terminal)";

impl TerminalTool {
    pub(crate) fn new(groups: ProcessGroups, config: &BuiltinToolConfig) -> Self {
        let runner = CommandRunner::new(groups, config);
        let spec = ToolSpec {
            name: "terminal".into(),
            description: format!(
                "Runs a command with {} in the working folder, or in `cwd`: builds, tests, git. For files use `read`, `edit`, \
                 `grep` and `glob`. Each command has a shell of its own, so `cd` and `export` end with it: write \
                 `cd a && make`. It gets no input. Start servers, watchers and programs to type to with \
                 background=true; what a command leaves in the background is ended with it. After {} s it goes on as a \
                 job, with a timeout it is stopped then. Jobs are read, typed to and ended with is_input and reset; a \
                 REPL (python3, psql …) becomes one by itself. Of long output the beginning and the end are shown; the \
                 whole goes to a file.",
                config.shell.name(),
                runner.soft_limit.as_secs()
            ),
            parameters: arguments::parameters_schema(),
        };
        Self { spec, runner }
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
                    && self.runner.terminals.select_route(client) == CommandRoute::LocalStreamed =>
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
            ) => self.runner.command_route(&request, client) == CommandRoute::Client,
            Ok(_) | Err(_) => false,
        }
    }

    fn preview<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> PreviewFuture<'a> {
        into_preview_future(async move {
            match TerminalAction::parse(arguments) {
                Ok(
                    TerminalAction::Start(request)
                    | TerminalAction::Reset { next_command: Some(request), .. },
                ) if self.runner.command_route(&request, cx.client_capabilities())
                    == CommandRoute::Unavailable =>
                {
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
        let outcome = match (self.runner.command_route(request, cx.client_capabilities()), cx.editor) {
            (CommandRoute::Client, Some(editor)) => {
                match self.runner.run_in_client(request, editor, cx).await? {
                    Some(outcome) => outcome,
                    None => self.runner.run_locally(request, cx, CommandRoute::Local).await?,
                }
            }
            (CommandRoute::Unavailable, _) => return Err(ToolError(NO_TERMINAL.to_owned())),
            (route, _) => self.runner.run_locally(request, cx, route).await?,
        };
        let note = request.directory_note(&outcome, cx.workspace);
        Ok(outcome.into_report(request.timeout.unwrap_or(self.runner.soft_limit)).with_line(note))
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
