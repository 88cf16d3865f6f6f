//! `terminal`: a shell command in the working folder, and the jobs that some of them become.

mod folder;
mod held;
mod here;
mod in_client;
mod jobs;
mod keys;
mod needs;
mod shell;
mod talk;
mod wanted;
mod words;

use std::{path::PathBuf, time::Duration};

use crow_acp::AcpClientCapabilities;
use crow_core::{ToolAccess, ToolCallInfo, ToolKind, ToolSpec};
use crow_process::{ProcessGroups, SandboxWrapper};
use serde_json::{Map, Value};

pub(crate) use self::jobs::JobTable;
pub use self::shell::Shell;
use self::{
    keys::JobInput,
    needs::TerminalNeed,
    wanted::{CommandRequest, LaunchMode, TerminalAction},
    words::TerminalReport,
};
use crate::{
    BuiltinToolConfig, PreviewFuture, Tool, ToolCx, ToolFuture, Workspace,
    tool::{ToolError, into_preview_future, into_tool_future, text_argument, to_title},
};

/// Enough for a build or a test run of a project that is not huge; what takes longer is not lost, it goes on as a job.
const SOFT_LIMIT: Duration = Duration::from_mins(2);

/// What asks for a password has asked by then.
const SOFT_LIMIT_ASKING: Duration = Duration::from_secs(10);

/// Longer than a working session nobody needs a server that nobody looks at.
const JOB_LIFE: Duration = Duration::from_hours(4);

/// How long the start of a job is watched: most that fail do so at once, and servers say where they are.
const SETTLE: Duration = Duration::from_secs(1);

/// A program that says nothing for so long waits, or computes.
const QUIET: Duration = Duration::from_millis(200);

/// How long somebody who did not say so waits for a job to say something.
const LOOK_WAIT: Duration = Duration::from_secs(5);

/// About 4,000 tokens each: the beginning says what was done, the end how it went.
const HEAD_BYTES: usize = 16 * 1024;
const TAIL_BYTES: usize = 16 * 1024;

/// Whose terminals commands run in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TerminalPreference {
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
enum CommandRoute {
    /// In a terminal of the client.
    Client,
    /// Here, and the client draws what it prints as it comes.
    HereLive,
    /// Here, and the client is shown pictures of it.
    Here,
    /// Nowhere.
    Nowhere,
}

impl TerminalPreference {
    fn select_route(self, client: AcpClientCapabilities) -> CommandRoute {
        match self {
            Self::ClientFirst | Self::ClientOnly if client.terminals => CommandRoute::Client,
            Self::ClientOnly => CommandRoute::Nowhere,
            Self::ClientFirst | Self::Own if client.shows_output => CommandRoute::HereLive,
            Self::ClientFirst | Self::Own => CommandRoute::Here,
        }
    }
}

pub(crate) struct TerminalTool {
    spec: ToolSpec,
    /// The programs alive.
    groups: ProcessGroups,
    /// Where output goes that is too long for the model.
    spill_dir: PathBuf,
    terminals: TerminalPreference,
    /// What runs the commands.
    shell: Shell,
    /// Who holds the commands.
    warden: Option<SandboxWrapper>,
    /// How long a command without a limit of its own is waited for.
    soft_limit: Duration,
}

/// Why no command can run.
const NOWHERE: &str = "could not run the command: the client has no terminals, and the configuration wants no others \
                       (fallback_to_mcp_terminal)";

impl TerminalTool {
    pub(crate) fn new(groups: ProcessGroups, equipment: &BuiltinToolConfig) -> Self {
        let soft_limit = equipment.soft_limit.unwrap_or(SOFT_LIMIT);
        let spec = ToolSpec {
            name: "terminal".into(),
            description: format!(
                "Runs a command with {} in the working folder, or in `cwd`, and shows what it said. Each command has a shell \
                 of its own: what `cd` and `export` change ends with it. It gets no input, and what it leaves running in the background is ended with it: start servers, watchers and programs to type to \
                 with background=true. A command that is not done after {} s goes on as a job; with a timeout it is \
                 stopped then. Jobs are read, typed to and ended with is_input and reset. A REPL (python3, psql …) \
                 becomes a job by itself. Of long output the beginning and the end are shown and the whole goes to a \
                 file.",
                equipment.shell.name(),
                soft_limit.as_secs()
            ),
            parameters: wanted::parameters_schema(),
        };
        Self {
            spec,
            groups,
            spill_dir: equipment.spill_dir.clone(),
            terminals: equipment.terminals,
            shell: equipment.shell.clone(),
            warden: equipment.warden.clone(),
            soft_limit,
        }
    }
}

impl Tool for TerminalTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call_info(&self, arguments: &Map<String, Value>, workspace: &Workspace) -> ToolCallInfo {
        let (title, touch) = match TerminalAction::parse(arguments) {
            Ok(act) => (action_title(&act, workspace), action_access(act, workspace)),
            Err(_) => (format!("`{}`", to_title(text_argument(arguments, "command"))), ToolAccess::Nothing),
        };
        ToolCallInfo { title, kind: ToolKind::Execute, locations: Vec::new(), touch }
    }

    fn live_output_dir(
        &self,
        arguments: &Map<String, Value>,
        workspace: &Workspace,
        client: AcpClientCapabilities,
    ) -> Option<PathBuf> {
        match TerminalAction::parse(arguments) {
            Ok(TerminalAction::Start(start))
                if !start.is_job() && self.terminals.select_route(client) == CommandRoute::HereLive =>
            {
                Some(start.working_dir(workspace))
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
            Ok(TerminalAction::Start(start) | TerminalAction::Reset { then: Some(start), .. }) => {
                self.command_route(&start, client) == CommandRoute::Client
            }
            Ok(_) | Err(_) => false,
        }
    }

    fn preview<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> PreviewFuture<'a> {
        into_preview_future(async move {
            match TerminalAction::parse(arguments) {
                Ok(TerminalAction::Start(start) | TerminalAction::Reset { then: Some(start), .. })
                    if self.command_route(&start, cx.client_capabilities()) == CommandRoute::Nowhere =>
                {
                    Err(ToolError(NOWHERE.to_owned()))
                }
                Ok(_) | Err(_) => Ok(Vec::new()),
            }
        })
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> ToolFuture<'a> {
        into_tool_future(async move {
            let jobs = cx.workspace.jobs();
            let said = match TerminalAction::parse(arguments)? {
                TerminalAction::Start(start) => self.start_command(&start, &cx).await?,
                TerminalAction::Look { job, wait } => {
                    let entry = jobs.find_job(job.as_deref())?;
                    talk::read_job(&entry, wait, &cx).await
                }
                TerminalAction::Type { job, typed, wait, .. } => {
                    let entry = jobs.find_job(job.as_deref())?;
                    talk::send_input(&entry, &typed, wait, &cx).await?
                }
                TerminalAction::Reset { job, then } => {
                    let ended = talk::reset_jobs(jobs, job.as_deref()).await?;
                    match then {
                        Some(start) => self.start_command(&start, &cx).await?.with_prefix(&ended),
                        None => TerminalReport::success(ended),
                    }
                }
            };
            Ok(said.into_tool_result(&jobs.take_ended_jobs()))
        })
    }
}

impl TerminalTool {
    async fn start_command(
        &self,
        start: &CommandRequest,
        cx: &ToolCx<'_>,
    ) -> Result<TerminalReport, ToolError> {
        start.check_working_dir(cx).await?;
        let came = match (self.command_route(start, cx.client_capabilities()), cx.editor) {
            (CommandRoute::Client, Some(editor)) => match self.run_in_client(start, editor, cx).await? {
                Some(came) => came,
                None => self.run_locally(start, cx, CommandRoute::Here).await?,
            },
            (CommandRoute::Nowhere, _) => return Err(ToolError(NOWHERE.to_owned())),
            (route, _) => self.run_locally(start, cx, route).await?,
        };
        let note = start.directory_note(&came, cx.workspace);
        Ok(came.into_report(start.timeout.unwrap_or(self.soft_limit)).with_line(note))
    }

    fn command_route(&self, start: &CommandRequest, client: AcpClientCapabilities) -> CommandRoute {
        match self.terminals.select_route(client) {
            // Nothing can be typed in the client's terminal from here.
            CommandRoute::Client
                if start.need == TerminalNeed::Talking
                    && self.terminals == TerminalPreference::ClientFirst =>
            {
                CommandRoute::Here
            }
            route @ (CommandRoute::Client
            | CommandRoute::HereLive
            | CommandRoute::Here
            | CommandRoute::Nowhere) => route,
        }
    }
}

fn action_title(act: &TerminalAction, workspace: &Workspace) -> String {
    let named = |job: &Option<String>| match workspace.jobs().find_job(job.as_deref()) {
        Ok(entry) => entry.name.clone(),
        Err(_) => job.clone().unwrap_or_else(|| "job".into()),
    };
    let started = |start: &CommandRequest| {
        let background = if start.ground == LaunchMode::Back { " in the background" } else { "" };
        format!("`{}`{}{background}", to_title(&start.command), start.working_dir_suffix(workspace))
    };
    match act {
        TerminalAction::Start(start) => started(start),
        TerminalAction::Type { job, text, .. } => to_title(&format!("{} ← {text}", named(job))),
        TerminalAction::Look { job, .. } => to_title(&format!("Read {}", named(job))),
        TerminalAction::Reset { job: Some(job), then: None } => to_title(&format!("End {job}")),
        TerminalAction::Reset { job: None, then: None } => "End all jobs".into(),
        TerminalAction::Reset { then: Some(start), .. } => started(start),
    }
}

/// What is typed may run like any command; only what stops a job, or looks at it, does nothing.
fn action_access(act: TerminalAction, workspace: &Workspace) -> ToolAccess {
    match act {
        TerminalAction::Start(start) | TerminalAction::Reset { then: Some(start), .. } => {
            ToolAccess::Runs(start.evaluated_line(workspace))
        }
        TerminalAction::Type { typed: JobInput::Key { only_stops: true, .. }, .. } => ToolAccess::Nothing,
        TerminalAction::Type { text, .. } => ToolAccess::Runs(text),
        TerminalAction::Look { .. } | TerminalAction::Reset { then: None, .. } => ToolAccess::Nothing,
    }
}
