//! `run`: an ACP client in the terminal that starts its own agent and drives it.

mod agent_failure;
mod answer_text;
mod between_turns;
mod clipboard;
mod conversation;
mod driver;
mod exit_deadline;
mod external_agent;
#[cfg(test)]
mod fake_terminal;
mod form;
mod interrupts;
mod json;
mod keyboard;
mod markdown;
mod output;
mod output_forwarder;
mod pending_question;
mod plain;
mod plan;
mod question;
mod replay;
mod screen;
mod terminal_client;
mod terminal_host;
mod terminal_setup;
mod terminal_size;
mod typed_input;

use std::{
    fs,
    io::{self, IsTerminal, Read},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use crow_core::{ContentPart, Failure, Mode};
use crow_fleet::FarmConnections;
use crow_tui::SessionChoice;

use self::{
    agent_failure::exit_for_failure,
    conversation::{ConversationEnd, run_conversation},
    json::{JsonEventFilter, JsonLines},
    screen::TerminalScreen,
    terminal_setup::TerminalSetup,
};
pub(crate) use self::{
    answer_text::AnswerText,
    exit_deadline::start_exit_deadline,
    external_agent::{drive_external_agent, drive_queued_agent, farm_task, unreachable_error},
    interrupts::{RunControl, listen_for_signals},
    output::{ContinuationHint, RunOutput, SessionRetention},
    plain::{PaintMode, THEME},
    plan::RunPlan,
};
use crate::{
    agent::{self, ConfigSource},
    agents::{self, ProgramLookup},
    cli::RunArgs,
    failure::{CliError, CliExitCode},
    settings::Settings,
};

/// Prints the error that ended a run before its first turn as an event, if the run prints events.
pub(crate) struct EarlyErrorOutput {
    filter: Option<JsonEventFilter>,
    has_turn_end: Arc<AtomicBool>,
}

impl EarlyErrorOutput {
    pub(crate) fn new(args: &RunArgs) -> Self {
        Self { filter: JsonEventFilter::for_args(args), has_turn_end: Arc::default() }
    }

    fn run_output(&self) -> Box<dyn RunOutput> {
        match self.filter {
            Some(filter) => Box::new(JsonLines::new(io::stdout(), filter, Arc::clone(&self.has_turn_end))),
            None => terminal_output(),
        }
    }

    /// Prints the error, unless a turn has ended.
    pub(crate) fn write_error(&self, error: &CliError) {
        if self.filter.is_some() && !self.has_turn_end.load(Ordering::Relaxed) {
            // The exit code and stderr tell of the error as well.
            let _ = json::write_early_error(&mut io::stdout().lock(), error);
        }
    }
}

/// Runs the command line's prompts.
pub(crate) fn run(
    mut args: RunArgs,
    target: Option<SessionChoice>,
    settings: &Settings,
    (source, current_dir): (ConfigSource, &Path),
    errors: &EarlyErrorOutput,
) -> Result<(), CliError> {
    let external = match &args.options.agent {
        Some(name) => agents::find_agent(name, settings)?,
        None => None,
    };
    let cwd = match (&args.options.cwd, external.and_then(|server| server.cwd.as_ref())) {
        (Some(dir), Some(_)) => remote_dir(dir)?,
        (None, Some(dir)) => dir.clone(),
        (Some(dir), None) => local_dir(dir)?,
        (None, None) => current_dir.to_owned(),
    };
    if external.is_none() {
        args.options.agent = None;
        check_mode(args.options.mode.as_deref())?;
    }
    let first_prompt = read_first_prompt(&args)?;
    if first_prompt.is_none() && !args.interactive {
        let error = CliError::new(CliExitCode::Usage, "no prompt was given");
        return Err(error.with_hint("pass it as an argument or with -f FILE, or type prompts with -i"));
    }
    let images =
        args.options.images.iter().map(|path| read_image(current_dir, path)).collect::<Result<_, _>>()?;
    let terminal = TerminalSetup::detect(&args, target, settings, &source.env, &cwd)?;
    let plan = RunPlan {
        args,
        cwd,
        first_prompt,
        images,
        output: errors.run_output(),
        retention: SessionRetention::Stored,
        control: RunControl::User,
        counts_tokens: false,
        terminal,
    };
    let runtime = agent::tokio_runtime()?;
    start_exit_deadline(&runtime)?;
    let result = runtime.block_on(async {
        match external {
            None => drive_own_agent(plan, move || source.clone().load_runtime()).await,
            Some(server) => {
                // If the agent's directory is on another machine, its program starts in ours.
                let program_cwd =
                    if server.cwd.is_some() { current_dir.to_owned() } else { plan.cwd.clone() };
                let lookup = ProgramLookup { env: &source.env, cwd: &program_cwd };
                let farms = FarmConnections::default();
                let result = Box::pin(drive_external_agent(plan, server, &lookup, settings, &farms)).await;
                farms.close().await;
                result
            }
        }
    });
    runtime.shutdown_background();
    result
}

/// Crow's modes; another agent has its own.
pub(crate) fn check_mode(mode: Option<&str>) -> Result<(), CliError> {
    match mode {
        Some(mode) if Mode::parse(mode).is_none() => {
            let error = CliError::new(CliExitCode::Usage, format!("unknown mode {mode:?}"));
            Err(error.with_hint(format!("known modes: {}", Mode::ALL.map(Mode::as_str).join(", "))))
        }
        Some(_) | None => Ok(()),
    }
}

pub(crate) fn terminal_output() -> Box<dyn RunOutput> {
    Box::new(TerminalScreen::new())
}

/// Starts an agent in this process and drives it over the protocol, as any client would.
pub(crate) async fn drive_own_agent<L, F>(plan: RunPlan, load: L) -> Result<(), CliError>
where
    L: Fn() -> F + Send + Sync + 'static,
    F: Future<Output = Result<crow_agent::AgentRuntime, Failure>> + Send + 'static,
{
    let early_signals = plan.control.listen()?;
    let (client, server) = crow_acp::duplex_transport();
    // The agent ends when we disconnect; if it handled signals too, both sides would act on them.
    let stop = std::future::pending();
    let agent = tokio::spawn(crow_agent::serve_sessions(server, agent::agent_info(), stop, load));
    let result = match Box::pin(run_conversation(plan, client, early_signals)).await? {
        ConversationEnd::Completed(result) => result,
        ConversationEnd::Disconnected(loss) => Err(exit_for_failure(loss.failure())),
    };
    match agent.await {
        Ok(Ok(())) => result,
        Ok(Err(error)) => result.and(Err(CliError::new(CliExitCode::Failed, error.to_string()))),
        Err(error) => {
            result.and(Err(CliError::new(CliExitCode::Failed, format!("the agent crashed: {error}"))))
        }
    }
}

/// Checks a directory on another machine, which may not exist here.
pub(crate) fn remote_dir(dir: &Path) -> Result<PathBuf, CliError> {
    if dir.is_absolute() {
        return crate::require_utf8_dir(dir.to_owned());
    }
    let error = CliError::new(CliExitCode::Usage, format!("{} is not an absolute path", dir.display()));
    Err(error.with_hint("the agent has a cwd in agent_servers, so -c is a directory on its machine"))
}

pub(crate) fn local_dir(dir: &Path) -> Result<PathBuf, CliError> {
    match crow_files::resolve_existing(dir) {
        Ok(dir) if dir.is_dir() => crate::require_utf8_dir(dir),
        Ok(_) => Err(CliError::new(CliExitCode::Usage, format!("{} is not a directory", dir.display()))),
        Err(error) => {
            Err(CliError::new(CliExitCode::Usage, format!("could not work in {}: {error}", dir.display())))
        }
    }
}

fn read_image(current_dir: &Path, path: &Path) -> Result<ContentPart, CliError> {
    crow_tools::read_image(&current_dir.join(path)).map_err(|reason| {
        CliError::new(CliExitCode::Usage, format!("could not attach the image {}: {reason}", path.display()))
    })
}

fn read_first_prompt(args: &RunArgs) -> Result<Option<String>, CliError> {
    let from_stdin = || {
        if io::stdin().is_terminal() {
            let error = CliError::new(
                CliExitCode::Usage,
                "the prompt should come from stdin, but stdin is a terminal",
            );
            return Err(error.with_hint("pipe it in, or type prompts with -i"));
        }
        let mut text = String::new();
        let result = io::stdin().read_to_string(&mut text);
        result.map_err(|error| {
            CliError::new(CliExitCode::Usage, format!("could not read the prompt from stdin: {error}"))
        })?;
        Ok(Some(text))
    };
    match (&args.prompt, &args.file) {
        (Some(prompt), _) if prompt == "-" => from_stdin(),
        (_, Some(file)) if file == Path::new("-") => from_stdin(),
        (Some(prompt), _) => Ok(Some(prompt.clone())),
        (None, Some(file)) => match fs::read_to_string(file) {
            Ok(text) => Ok(Some(text)),
            Err(error) => {
                Err(CliError::new(CliExitCode::Usage, format!("could not read {}: {error}", file.display())))
            }
        },
        (None, None) => Ok(None),
    }
}
