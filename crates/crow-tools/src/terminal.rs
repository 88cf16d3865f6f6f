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

use crow_acp::Abilities;
use crow_core::{Facets, ToolKind, ToolSpec, Touch};
use crow_process::{Groups, Warden};
use serde_json::{Map, Value};

pub(crate) use self::jobs::Jobs;
pub use self::shell::Shell;
use self::{
    keys::Typed,
    needs::Need,
    wanted::{Act, Ground, Start},
    words::Said,
};
use crate::{
    Equipment, Previewing, Running, Tool, ToolCx, Workspace,
    tool::{Refusal, answer, previewed, text_of, title},
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
    /// What runs the commands.
    shell: Shell,
    /// Who holds the commands.
    warden: Option<Warden>,
    /// How long a command without a limit of its own is waited for.
    soft_limit: Duration,
}

/// Why no command can run.
const NOWHERE: &str = "could not run the command: the client has no terminals, and the configuration wants no others \
                       (fallback_to_mcp_terminal)";

impl Terminal {
    pub(crate) fn new(groups: Groups, equipment: &Equipment) -> Self {
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
            parameters: wanted::parameters(),
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

impl Tool for Terminal {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn facets(&self, arguments: &Map<String, Value>, workspace: &Workspace) -> Facets {
        let (title, touch) = match Act::read(arguments) {
            Ok(act) => (title_of(&act, workspace), touch_of(act, workspace)),
            Err(_) => (format!("`{}`", title(text_of(arguments, "command"))), Touch::Nothing),
        };
        Facets { title, kind: ToolKind::Execute, locations: Vec::new(), touch }
    }

    fn prints_live(
        &self,
        arguments: &Map<String, Value>,
        workspace: &Workspace,
        client: Abilities,
    ) -> Option<PathBuf> {
        match Act::read(arguments) {
            Ok(Act::Start(start)) if !start.is_job() && self.terminals.route(client) == Route::HereLive => {
                Some(start.folder(workspace))
            }
            Ok(_) | Err(_) => None,
        }
    }

    fn runs_in_client(
        &self,
        arguments: &Map<String, Value>,
        _workspace: &Workspace,
        client: Abilities,
    ) -> bool {
        match Act::read(arguments) {
            Ok(Act::Start(start) | Act::Reset { then: Some(start), .. }) => {
                self.route(&start, client) == Route::Client
            }
            Ok(_) | Err(_) => false,
        }
    }

    fn preview<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> Previewing<'a> {
        previewed(async move {
            match Act::read(arguments) {
                Ok(Act::Start(start) | Act::Reset { then: Some(start), .. })
                    if self.route(&start, cx.abilities()) == Route::Nowhere =>
                {
                    Err(Refusal(NOWHERE.to_owned()))
                }
                Ok(_) | Err(_) => Ok(Vec::new()),
            }
        })
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> Running<'a> {
        answer(async move {
            let jobs = cx.workspace.jobs();
            let said = match Act::read(arguments)? {
                Act::Start(start) => self.start(&start, &cx).await?,
                Act::Look { job, wait } => {
                    let entry = jobs.find(job.as_deref())?;
                    talk::look(&entry, wait, &cx).await
                }
                Act::Type { job, typed, wait, .. } => {
                    let entry = jobs.find(job.as_deref())?;
                    talk::type_to(&entry, &typed, wait, &cx).await?
                }
                Act::Reset { job, then } => {
                    let ended = talk::reset(jobs, job.as_deref()).await?;
                    match then {
                        Some(start) => self.start(&start, &cx).await?.after(&ended),
                        None => Said::done(ended),
                    }
                }
            };
            Ok(said.outcome(&jobs.news()))
        })
    }
}

impl Terminal {
    async fn start(&self, start: &Start, cx: &ToolCx<'_>) -> Result<Said, Refusal> {
        start.check_folder(cx).await?;
        let came = match (self.route(start, cx.abilities()), cx.editor) {
            (Route::Client, Some(editor)) => match self.run_in_client(start, editor, cx).await? {
                Some(came) => came,
                None => self.run_here(start, cx, Route::Here).await?,
            },
            (Route::Nowhere, _) => return Err(Refusal(NOWHERE.to_owned())),
            (route, _) => self.run_here(start, cx, route).await?,
        };
        let note = start.directory_note(&came, cx.workspace);
        Ok(came.said(start.timeout.unwrap_or(self.soft_limit)).with(note))
    }

    fn route(&self, start: &Start, client: Abilities) -> Route {
        match self.terminals.route(client) {
            // Nothing can be typed in the client's terminal from here.
            Route::Client if start.need == Need::Talking && self.terminals == Terminals::ClientFirst => {
                Route::Here
            }
            route @ (Route::Client | Route::HereLive | Route::Here | Route::Nowhere) => route,
        }
    }
}

fn title_of(act: &Act, workspace: &Workspace) -> String {
    let named = |job: &Option<String>| match workspace.jobs().find(job.as_deref()) {
        Ok(entry) => entry.name.clone(),
        Err(_) => job.clone().unwrap_or_else(|| "job".into()),
    };
    let started = |start: &Start| {
        let background = if start.ground == Ground::Back { " in the background" } else { "" };
        format!("`{}`{}{background}", title(&start.command), start.shown_folder(workspace))
    };
    match act {
        Act::Start(start) => started(start),
        Act::Type { job, text, .. } => title(&format!("{} ← {text}", named(job))),
        Act::Look { job, .. } => title(&format!("Read {}", named(job))),
        Act::Reset { job: Some(job), then: None } => title(&format!("End {job}")),
        Act::Reset { job: None, then: None } => "End all jobs".into(),
        Act::Reset { then: Some(start), .. } => started(start),
    }
}

/// What is typed may run like any command; only what stops a job, or looks at it, does nothing.
fn touch_of(act: Act, workspace: &Workspace) -> Touch {
    match act {
        Act::Start(start) | Act::Reset { then: Some(start), .. } => Touch::Runs(start.line(workspace)),
        Act::Type { typed: Typed::Key { only_stops: true, .. }, .. } => Touch::Nothing,
        Act::Type { text, .. } => Touch::Runs(text),
        Act::Look { .. } | Act::Reset { then: None, .. } => Touch::Nothing,
    }
}
