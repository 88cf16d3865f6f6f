//! `run`: an ACP client in the terminal that starts its own agent and drives it.

mod asked;
mod between;
mod diff;
mod driver;
mod form;
mod json;
mod keyboard;
mod markdown;
mod others;
mod plain;
mod question;
mod replay;
mod screen;
#[cfg(test)]
mod seen;
mod signals;
mod speak;

use std::{
    fs,
    io::{self, IsTerminal, Read},
    path::{Path, PathBuf},
};

use crow_acp::{AcpClientCapabilities, AgentUpdate, ClientInfo, LineTransport, StopReason};
use crow_core::{ContentPart, Failure, FailureKind, Mode, SessionId};
use tokio::sync::{mpsc, oneshot};

pub(crate) use self::replay::ReplaySpan;
use self::{
    driver::RunDriver,
    json::{JsonEventFilter, JsonLines},
    plain::strip_control_chars,
    screen::TerminalScreen,
    signals::SignalListener,
};
use crate::{
    agent::{self, ConfigSource},
    agents::{self, ProgramLookup},
    cli::{OutputFormat, RunArgs},
    failure::{CliError, CliExitCode},
    settings::Settings,
};

/// Events between the connection and the screen; the agent is held back when the screen is behind.
const EVENTS_LEN: usize = 256;

/// Drives the agent with what the command line says.
pub(crate) fn run(
    mut args: RunArgs,
    settings: &Settings,
    source: ConfigSource,
    here: &Path,
) -> Result<(), CliError> {
    let other = match &args.agent {
        Some(name) => agents::find_agent(name, settings)?,
        None => None,
    };
    let cwd = match (&args.cwd, other.and_then(|server| server.cwd.as_ref())) {
        (Some(dir), Some(_)) => remote_folder(dir)?,
        (None, Some(dir)) => dir.clone(),
        (Some(dir), None) => local_folder(dir)?,
        (None, None) => here.to_owned(),
    };
    if other.is_none() {
        args.agent = None;
        check_mode(args.mode.as_deref())?;
    }
    let first = first_prompt(&args)?;
    if first.is_none() && !args.interactive {
        let exit = CliError::new(CliExitCode::Usage, "there is no prompt");
        return Err(exit.with_hint("give one as an argument, with -f FILE, or use -i to type"));
    }
    let images = args.wishes.images.iter().map(|path| read_image(here, path)).collect::<Result<_, _>>()?;
    let speaker: Box<dyn RunOutput> = match args.wishes.output_format {
        Some(OutputFormat::StreamJson) => Box::new(JsonLines::new(io::stdout(), JsonEventFilter::Events)),
        Some(OutputFormat::Json) => Box::new(JsonLines::new(io::stdout(), JsonEventFilter::Results)),
        None if args.json => Box::new(JsonLines::new(io::stdout(), JsonEventFilter::Events)),
        Some(OutputFormat::Text) | None => terminal_output(),
    };
    let plan = RunPlan { args, cwd, first, images, speaker, onward: SessionRetention::Stored };
    let runtime = agent::tokio_runtime()?;
    let done = runtime.block_on(async {
        match other {
            None => drive_own_agent(plan, move || source.clone().load_runtime()).await,
            Some(server) => {
                // Where nothing is said of a folder over there, that of the work is here.
                let starts_in = if server.cwd.is_some() { here.to_owned() } else { plan.cwd.clone() };
                let place = ProgramLookup { env: &source.env, cwd: &starts_in };
                others::drive_external_agent(plan, server, &place, settings).await
            }
        }
    });
    runtime.shutdown_background();
    done
}

/// Our own agent has these modes and no others.
fn check_mode(mode: Option<&str>) -> Result<(), CliError> {
    match mode {
        Some(mode) if Mode::parse(mode).is_none() => {
            let exit = CliError::new(CliExitCode::Usage, format!("there is no mode {mode:?}"));
            Err(exit.with_hint(format!("there is: {}", Mode::ALL.map(Mode::as_str).join(", "))))
        }
        Some(_) | None => Ok(()),
    }
}

/// Makes a person's screen.
pub(crate) fn terminal_output() -> Box<dyn RunOutput> {
    Box::new(TerminalScreen::new())
}

/// Whether the person can go on with the session later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionRetention {
    /// It is in the database, or wherever the agent keeps it.
    Stored,
    /// It goes away with the program.
    Gone,
}

/// Where what is heard goes: a person's screen or a script's lines.
pub(crate) trait RunOutput: Send {
    /// The session that was opened.
    fn on_session_opened(&mut self, session: &SessionId) -> io::Result<()>;
    /// The person is going to type their first prompt.
    fn on_first_prompt(&mut self) -> io::Result<()>;
    /// A turn begins.
    fn on_turn_start(&mut self) -> io::Result<()>;
    /// A moment passed in a turn.
    fn on_tick(&mut self) -> io::Result<()>;
    /// The person stopped the turn, which has not ended yet.
    fn on_stopping(&mut self) -> io::Result<()>;
    /// The person is going to read and type something on stderr.
    fn prepare_for_input(&mut self) -> io::Result<()>;
    /// What was said in the session before begins, without so many prompts that came earlier.
    fn replay_begins(&mut self, n_left_out: usize) -> io::Result<()>;
    /// What was said before ends.
    fn replay_ends(&mut self) -> io::Result<()>;
    /// What the agent says next is of another message.
    fn on_new_message(&mut self) -> io::Result<()>;
    /// Something the agent says.
    fn on_update(&mut self, heard: AgentUpdate) -> io::Result<()>;
    /// A turn ended.
    fn on_turn_end(&mut self, reason: StopReason) -> io::Result<()>;
    /// A turn failed.
    fn on_turn_failed(&mut self, failure: &Failure) -> io::Result<()>;
    /// Everything is over; says how to go on, with the agent's name where it is not our own.
    fn on_session_end(
        &mut self,
        session: &SessionId,
        onward: SessionRetention,
        agent: Option<&str>,
    ) -> io::Result<()>;
}

/// What is to be done with the agent.
pub(crate) struct RunPlan {
    pub(crate) args: RunArgs,
    pub(crate) cwd: PathBuf,
    pub(crate) first: Option<String>,
    /// What goes with the first prompt.
    pub(crate) images: Vec<ContentPart>,
    pub(crate) speaker: Box<dyn RunOutput>,
    pub(crate) onward: SessionRetention,
}

/// Starts an agent in this process and drives it over the protocol, as any client would.
pub(crate) async fn drive_own_agent<L, F>(plan: RunPlan, load: L) -> Result<(), CliError>
where
    L: Fn() -> F + Send + Sync + 'static,
    F: Future<Output = Result<crow_agent::AgentRuntime, Failure>> + Send + 'static,
{
    let early = SignalListener::listen()?;
    let (client, server) = crow_acp::duplex_transport();
    // It ends when we hang up: were it to hear signals as well, both of us would act on them.
    let stop = std::future::pending();
    let agent = tokio::spawn(crow_agent::serve_sessions(server, agent::agent_info(), stop, load));
    let done = match run_conversation(plan, client, early).await? {
        ConversationEnd::Through(done) => done,
        ConversationEnd::Broken(broken) => Err(exit_for_failure(broken.failure())),
    };
    match agent.await {
        Ok(Ok(())) => done,
        Ok(Err(error)) => done.and(Err(CliError::new(CliExitCode::Failed, error.to_string()))),
        Err(error) => done.and(Err(CliError::new(CliExitCode::Failed, format!("the agent broke: {error}")))),
    }
}

/// How a conversation with an agent went.
enum ConversationEnd {
    /// Through to its end.
    Through(Result<(), CliError>),
    /// The agent went, or never was one.
    Broken(ConnectionLoss),
}

/// When a conversation broke.
enum ConnectionLoss {
    /// There was no hello.
    Hello(Failure),
    /// There was one.
    Later(Failure),
}

impl ConnectionLoss {
    fn phase(&self) -> &'static str {
        match self {
            Self::Hello(_) => "before it said hello",
            Self::Later(_) => "while it was needed",
        }
    }

    fn failure(&self) -> &Failure {
        match self {
            Self::Hello(failure) | Self::Later(failure) => failure,
        }
    }
}

/// Says hello to an agent and goes through the plan with it. `early` hears of what is asked of us before the hello.
async fn run_conversation(
    plan: RunPlan,
    lines: LineTransport,
    early: SignalListener,
) -> Result<ConversationEnd, CliError> {
    let signals = SignalListener::listen()?;
    let (events, heard) = mpsc::channel(EVENTS_LEN);
    let (greeted, greeting) = oneshot::channel();
    let abilities = AcpClientCapabilities {
        compactions: true,
        forms: speak::has_person(),
        ..AcpClientCapabilities::default()
    };
    let hello = ClientInfo { version: agent::VERSION, abilities, keeps_words: false };
    let driven = crow_acp::drive_agent(lines, hello, events, async |connection| {
        // Whoever waits for it waits below.
        let _ = greeted.send(());
        let agent = connection.clone();
        let done = RunDriver::new(connection, heard, signals, plan).run().await;
        (done, agent.disconnect_failure())
    });
    tokio::pin!(driven);
    let mut is_greeted = false;
    let driven = tokio::select! {
        biased;
        driven = &mut driven => driven,
        () = wait_for_interrupt(early, greeting, &mut is_greeted) => {
            return Ok(ConversationEnd::Through(Err(CliError::without_message(CliExitCode::Interrupted))));
        }
    };
    Ok(match driven {
        Ok((Err(_), Some(gone))) => ConversationEnd::Broken(ConnectionLoss::Later(gone)),
        Ok((done, _)) => ConversationEnd::Through(done),
        Err(failure) if is_greeted => ConversationEnd::Broken(ConnectionLoss::Later(failure)),
        Err(failure) => ConversationEnd::Broken(ConnectionLoss::Hello(failure)),
    })
}

/// Waits for an interrupt before the hello; those after it are the driver's.
async fn wait_for_interrupt(
    mut signals: SignalListener,
    greeting: oneshot::Receiver<()>,
    is_greeted: &mut bool,
) {
    tokio::select! {
        biased;
        said = greeting => {
            *is_greeted = said.is_ok();
            std::future::pending::<()>().await;
        }
        _ = signals.next_request() => {}
    }
}

fn exit_for_failure(failure: &Failure) -> CliError {
    let code = match failure.kind {
        FailureKind::SessionNotFound => CliExitCode::NoSession,
        FailureKind::Config | FailureKind::AuthRequired => CliExitCode::Config,
        FailureKind::InvalidValue => CliExitCode::Usage,
        FailureKind::ProviderAuth
        | FailureKind::ProviderRate
        | FailureKind::ProviderOverloaded
        | FailureKind::ProviderRejected
        | FailureKind::ModelNotFound
        | FailureKind::ContextOverflow
        | FailureKind::Connection
        | FailureKind::Protocol
        | FailureKind::Store
        | FailureKind::Internal => CliExitCode::Failed,
    };
    // Another agent may say anything.
    CliError::new(code, strip_control_chars(&failure.sentence))
}

/// Takes a folder of another machine, where nobody here can look.
fn remote_folder(dir: &Path) -> Result<PathBuf, CliError> {
    if dir.is_absolute() {
        return crate::require_utf8_folder(dir.to_owned());
    }
    let exit = CliError::new(CliExitCode::Usage, format!("{} is not an absolute path", dir.display()));
    Err(exit.with_hint("the agent has a cwd in agent_servers, so -c names a folder of its machine"))
}

fn local_folder(dir: &Path) -> Result<PathBuf, CliError> {
    match fs::canonicalize(dir) {
        Ok(dir) if dir.is_dir() => crate::require_utf8_folder(dir),
        Ok(_) => Err(CliError::new(CliExitCode::Usage, format!("{} is not a folder", dir.display()))),
        Err(error) => {
            Err(CliError::new(CliExitCode::Usage, format!("could not work in {}: {error}", dir.display())))
        }
    }
}

fn read_image(here: &Path, path: &Path) -> Result<ContentPart, CliError> {
    crow_tools::read_image(&here.join(path))
        .map_err(|why| CliError::new(CliExitCode::Usage, format!("could not send {}: {why}", path.display())))
}

fn first_prompt(args: &RunArgs) -> Result<Option<String>, CliError> {
    let from_stdin = || {
        if io::stdin().is_terminal() {
            let exit =
                CliError::new(CliExitCode::Usage, "the prompt was to come from stdin, which is a terminal");
            return Err(exit.with_hint("pipe it in, or use -i to type"));
        }
        let mut text = String::new();
        let read = io::stdin().read_to_string(&mut text);
        read.map_err(|error| {
            CliError::new(CliExitCode::Usage, format!("could not read the prompt from stdin: {error}"))
        })?;
        Ok(Some(text))
    };
    match (&args.prompt, &args.file) {
        (Some(dash), _) if dash == "-" => from_stdin(),
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
