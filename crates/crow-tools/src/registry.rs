//! The tools there are, and the one way to run one. Knows no tool's inside.

use std::{collections::HashSet, fmt, path::PathBuf, sync::Arc, time::Duration};

use crow_acp::Abilities;
use crow_core::{
    Arguments, Call, Content, Facets, Outcome, Part, SandboxSupport, ToolKind, ToolSpec, Touch, repair,
};
use crow_process::{Confine, Groups, Warden};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::{
    Tool, ToolCx, Workspace,
    edit::Edit,
    glob::Glob,
    grep::Grep,
    naming::{Renamed, free_name},
    read::Read,
    terminal::{Shell, Terminal, Terminals},
    todo::Todo,
    tool::{CANCELLED, Refusal},
    web::{self, Web, WebAccess},
    write::Write,
};

/// The title of a call that names no tool.
const NAMELESS: &str = "Unnamed call";

/// Every tool a model may call.
#[derive(Clone)]
pub struct Tools {
    tools: Vec<Arc<dyn Tool>>,
    groups: Groups,
    warden: Option<Warden>,
    web: Arc<Web>,
}

/// What the tools that Crow brings along work with.
#[derive(Debug, Clone, Default)]
pub struct Equipment {
    /// Where output goes that is too long for the model.
    pub spill_dir: PathBuf,
    /// Whose terminals commands run in.
    pub terminals: Terminals,
    /// What runs commands.
    pub shell: Shell,
    /// Who watches over the programs; nobody where there is no executable of ours to do it.
    pub warden: Option<Warden>,
    /// How long a command without a timeout is waited for before it goes on as a job; two minutes without one.
    pub soft_limit: Option<Duration>,
    /// How the web is reached.
    pub web: WebAccess,
}

/// There is a tool of that name already.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is a tool named {0} already")]
pub struct NameTaken(String);

impl Tools {
    /// The tools Crow brings along.
    pub fn builtin(equipment: Equipment) -> Self {
        let groups = Groups::new();
        let web = Arc::new(Web::new(equipment.web.clone()));
        let tools: Vec<Arc<dyn Tool>> = vec![
            Arc::new(Read::new()),
            Arc::new(Write::new()),
            Arc::new(Edit::new()),
            Arc::new(Terminal::new(groups.clone(), &equipment)),
            Arc::new(Grep::new()),
            Arc::new(Glob::new()),
            Arc::new(web::Search::new(web.clone())),
            Arc::new(web::Fetch::new(web.clone())),
            Arc::new(Todo::new()),
        ];
        Self { tools, groups, warden: equipment.warden, web }
    }

    /// These and more. A name that providers would refuse is made fit, and one that is taken gets the server's name
    /// as a prefix.
    #[must_use]
    pub fn with(&self, more: Vec<Arc<dyn Tool>>) -> Self {
        let mut with = self.clone();
        let mut taken: HashSet<String> = self.tools.iter().map(|tool| tool.spec().name.clone()).collect();
        for tool in more {
            let name = free_name(tool.as_ref(), &taken);
            taken.insert(name.clone());
            let tool = if tool.spec().name == name { tool } else { Arc::new(Renamed::new(tool, name)) };
            with.tools.push(tool);
        }
        with
    }

    /// Finds out how well commands can be held here, by trying it the first time.
    pub async fn sandbox_support(&self) -> SandboxSupport {
        match &self.warden {
            Some(warden) => warden.sandbox_support().await.clone(),
            None => SandboxSupport::None { reason: "the program that holds commands was not found".into() },
        }
    }

    /// Ends every program that a tool started, at once and for good.
    pub fn stop(&self) {
        self.groups.kill_all();
    }

    /// Tells what to start so that nothing of a program that may do everything is left.
    pub(crate) fn watched(&self, program: &str, args: &[String]) -> (String, Vec<String>) {
        match &self.warden {
            Some(warden) => warden.around(&Confine::FREE, program, args),
            None => (program.to_owned(), args.to_owned()),
        }
    }

    pub(crate) fn groups(&self) -> &Groups {
        &self.groups
    }

    #[cfg(test)]
    pub(crate) fn n_programs(&self) -> usize {
        self.groups.n_alive()
    }

    /// How the model is told of them.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.tools.iter().map(|tool| tool.spec().clone()).collect()
    }

    /// Those of MCP servers: the server, the name that a tool has there, and how the model is told of it.
    pub fn served(&self) -> Vec<(String, String, ToolSpec)> {
        let served = self.tools.iter().filter_map(|tool| {
            Some((tool.server()?.to_owned(), tool.name_there()?.to_owned(), tool.spec().clone()))
        });
        served.collect()
    }

    /// Adds a tool under a name that is free.
    pub fn add(&mut self, tool: Arc<dyn Tool>) -> Result<(), NameTaken> {
        let name = &tool.spec().name;
        if self.find(name).is_some() {
            return Err(NameTaken(name.clone()));
        }
        self.tools.push(tool);
        Ok(())
    }

    /// Gives a call with its arguments as its tool reads them. One that [`Self::run`] would refuse stays as it is.
    pub fn resolved(&self, call: &Call) -> Call {
        let fitted = self.find(&call.name).and_then(|tool| fitting(tool, call).ok());
        let arguments = match (&call.arguments, fitted) {
            (Arguments::Valid(_), Some(value)) => Arguments::Valid(value),
            (Arguments::Repaired { doubt, .. }, Some(value)) => Arguments::Repaired { value, doubt: *doubt },
            (arguments, _) => arguments.clone(),
        };
        Call { arguments, ..call.clone() }
    }

    /// Says what a call would do. A call that [`Self::run`] would refuse touches nothing.
    pub fn facets(&self, call: &Call, workspace: &Workspace) -> Facets {
        let Some(tool) = self.find(&call.name) else {
            let title = crate::tool::title(&call.name);
            let title = if title.is_empty() { NAMELESS.to_owned() } else { title };
            return Facets { title, kind: ToolKind::Other, locations: Vec::new(), touch: Touch::Nothing };
        };
        match fitting(tool, call) {
            Ok(arguments) => tool.facets(&arguments, workspace),
            Err(_) => {
                let facets = tool.facets(&call.arguments.object(), workspace);
                Facets { title: crate::tool::title(&call.name), touch: Touch::Nothing, ..facets }
            }
        }
    }

    /// The folder of a call whose output comes piece by piece with such a client.
    pub fn prints_live(&self, call: &Call, workspace: &Workspace, client: Abilities) -> Option<PathBuf> {
        let tool = self.find(&call.name)?;
        let arguments = fitting(tool, call).ok()?;
        tool.prints_live(&arguments, workspace, client)
    }

    /// Tells whether a call runs a command in a terminal of such a client.
    pub fn runs_in_client(&self, call: &Call, workspace: &Workspace, client: Abilities) -> bool {
        let Some(tool) = self.find(&call.name) else { return false };
        fitting(tool, call).is_ok_and(|arguments| tool.runs_in_client(&arguments, workspace, client))
    }

    /// Shows what a call would change; a call that cannot be done at all has its outcome already.
    pub async fn preview(&self, call: &Call, cx: ToolCx<'_>) -> Result<Vec<Content>, Outcome> {
        let Some(tool) = self.find(&call.name) else { return Ok(Vec::new()) };
        match fitting(tool, call) {
            Ok(arguments) => tool.preview(&arguments, cx).await,
            Err(Refusal(sentence)) => Err(Outcome::failed(sentence)),
        }
    }

    /// Runs a call. Whatever is wrong with it is an outcome that says what to do about it.
    pub async fn run(&self, call: &Call, cx: ToolCx<'_>) -> Outcome {
        if cx.cut.is_cancelled() {
            return Outcome::failed(CANCELLED);
        }
        let Some(tool) = self.find(&call.name) else {
            let names: Vec<_> = self.tools.iter().map(|tool| tool.spec().name.as_str()).collect();
            let what = match call.name.trim() {
                "" => "the call names no tool; send it again with the name of one".to_owned(),
                _ => format!("there is no tool `{}`", call.name),
            };
            return Outcome::failed(format!("{what}; the tools are: {}", names.join(", ")));
        };
        let fitted = fitting(tool, call);
        log_arguments(tool, &call.arguments, fitted.is_ok());
        match fitted {
            Ok(arguments) => tool.run(&arguments, cx).await,
            Err(Refusal(sentence)) => Outcome::failed(sentence),
        }
    }

    /// Fetches the image at an address that `web_fetch` may fetch. The error says why there is none.
    pub async fn fetch_image(&self, url: &str, cancel: &CancellationToken) -> Result<Part, String> {
        self.web.fetch_image(url, cancel).await.map_err(|Refusal(why)| why)
    }

    fn find(&self, name: &str) -> Option<&dyn Tool> {
        self.tools.iter().find(|tool| tool.spec().name == name).map(AsRef::as_ref)
    }
}

/// Notes in the log how a model spells its calls, and nothing of what is in them.
fn log_arguments(tool: &dyn Tool, arguments: &Arguments, is_run: bool) {
    let name = tool.spec().name.as_str();
    match (arguments, is_run) {
        (Arguments::Valid(_), true) => {}
        (Arguments::Valid(_), false) => {
            tracing::warn!(tool = name, "arguments that do not fit the tool were refused");
        }
        (Arguments::Repaired { doubt: None, .. }, true) => {
            tracing::warn!(tool = name, "malformed arguments were repaired");
        }
        (Arguments::Repaired { doubt: Some(doubt), .. }, true) => {
            tracing::warn!(tool = name, doubt = ?doubt.kind, "malformed arguments were repaired, perhaps not as meant");
        }
        (Arguments::Repaired { doubt: None, .. }, false) => {
            tracing::warn!(
                tool = name,
                "malformed arguments were repaired, do not fit the tool and were refused"
            );
        }
        (Arguments::Repaired { doubt: Some(doubt), .. }, false) => {
            tracing::warn!(tool = name, doubt = ?doubt.kind, "malformed arguments were refused");
        }
        (Arguments::Unreadable { .. }, _) => {
            tracing::warn!(tool = name, "arguments that cannot be read were refused");
        }
    }
}

/// The arguments as the tool wants them, or why the call may not run.
fn fitting(tool: &dyn Tool, call: &Call) -> Result<Map<String, Value>, Refusal> {
    let refuse = |why: &dyn fmt::Display| Refusal(format!("`{}` was not run: {why}", call.name));
    let arguments = match &call.arguments {
        // Half a path or pattern reads the wrong thing at worst; half a file or command does harm.
        Arguments::Repaired { doubt: Some(doubt), .. } if !tool.only_reads() => {
            let advice = doubt.advice();
            return Err(refuse(&format_args!(
                "its arguments may not be all that was meant: {doubt}; {advice}"
            )));
        }
        Arguments::Valid(value) | Arguments::Repaired { value, .. } => value,
        Arguments::Unreadable { why } => return Err(refuse(why)),
    };
    let ToolSpec { name, parameters, .. } = tool.spec();
    let fitted = match tool.server() {
        None => repair::resolve_names(name, parameters, arguments)
            .and_then(|arguments| repair::check_against(parameters, &arguments)),
        // What a server makes of names that it did not list is its own affair.
        Some(_) => repair::check_against(parameters, arguments),
    };
    fitted.map_err(|sentence| refuse(&sentence))
}
