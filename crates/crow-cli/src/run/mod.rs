//! `run`: an ACP client in the terminal that starts its own agent and drives it.

mod diff;
mod driver;
mod json;
mod markdown;
mod plain;
mod question;
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

use crow_acp::{Abilities, Heard, Hello, StopReason};
use crow_core::{Failure, FailureKind, SessionId};
use tokio::sync::mpsc;

use self::{
    driver::{Driver, Refused},
    json::JsonLines,
    screen::Screen,
    signals::Signals,
    speak::Typed,
};
use crate::{
    agent::{self, Source},
    cli::RunArgs,
    failure::{Code, Exit},
};

/// Events between the connection and the screen; the agent is held back when the screen is behind.
const EVENTS_LEN: usize = 256;

/// Drives the agent with what the command line says.
pub(crate) fn run(args: RunArgs, source: Source, cwd: &Path) -> Result<(), Exit> {
    let cwd = args.cwd.clone().map_or_else(|| Ok(cwd.to_owned()), |dir| folder(&dir))?;
    let first = first_prompt(&args)?;
    if first.is_none() && !args.interactive {
        let exit = Exit::new(Code::Usage, "there is no prompt");
        return Err(exit.with_hint("give one as an argument, with -f FILE, or use -i to type"));
    }
    let speaker: Box<dyn Speaker> = match args.json {
        true => Box::new(JsonLines::new(io::stdout())),
        false => screen(Onward::Stored),
    };
    let plan = Plan { args, cwd, first, speaker };
    let runtime = agent::runtime()?;
    let done = runtime.block_on(drive(plan, move || source.clone().load()));
    runtime.shutdown_background();
    done
}

/// Makes a person's screen.
pub(crate) fn screen(onward: Onward) -> Box<dyn Speaker> {
    Box::new(Screen::new(onward))
}

/// Whether the person can go on with the session later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Onward {
    /// It is in the database.
    Stored,
    /// It goes away with the program.
    Gone,
}

/// Where what is heard goes: a person's screen or a script's lines.
pub(crate) trait Speaker: Send {
    /// The session that was opened.
    fn session(&mut self, session: &SessionId) -> io::Result<()>;
    /// The person is going to type their first prompt.
    fn greet(&mut self) -> io::Result<()>;
    /// A turn begins.
    fn begin(&mut self) -> io::Result<()>;
    /// A moment passed in a turn.
    fn beat(&mut self) -> io::Result<()>;
    /// The person stopped the turn, which has not ended yet.
    fn stopping(&mut self) -> io::Result<()>;
    /// The person is going to read and type something on stderr.
    fn pause(&mut self) -> io::Result<()>;
    /// Something the agent says.
    fn heard(&mut self, heard: Heard) -> io::Result<()>;
    /// A turn ended.
    fn result(&mut self, reason: StopReason) -> io::Result<()>;
    /// A turn failed.
    fn error(&mut self, failure: &Failure) -> io::Result<()>;
    /// Everything is over; says how to go on.
    fn goodbye(&mut self, session: &SessionId) -> io::Result<()>;
}

/// What is to be done with the agent.
pub(crate) struct Plan {
    pub(crate) args: RunArgs,
    pub(crate) cwd: PathBuf,
    pub(crate) first: Option<String>,
    pub(crate) speaker: Box<dyn Speaker>,
}

/// Starts an agent in this process and drives it over the protocol, as any client would.
pub(crate) async fn drive<L, F>(plan: Plan, load: L) -> Result<(), Exit>
where
    L: Fn() -> F + Send + Sync + 'static,
    F: Future<Output = Result<crow_agent::Kit, Failure>> + Send + 'static,
{
    let signals = Signals::listen()?;
    let (client, server) = crow_acp::duplex();
    let (events, heard) = mpsc::channel(EVENTS_LEN);
    let agent = tokio::spawn(crow_agent::serve(server, agent::about(), agent::stop_signal(), load));
    let abilities = Abilities { compactions: true, ..Abilities::default() };
    let hello = Hello { version: agent::VERSION, abilities };
    let driven = crow_acp::drive(client, hello, events, async |connection| {
        let typed = Typed::default();
        Driver { connection, heard, signals, plan, typed, refused: Refused::Nothing }.run().await
    });
    let done = driven.await.map_err(|failure| exit_of(&failure))?;
    match agent.await {
        Ok(Ok(())) => done,
        Ok(Err(error)) => done.and(Err(Exit::new(Code::Failed, error.to_string()))),
        Err(error) => done.and(Err(Exit::new(Code::Failed, format!("the agent broke: {error}")))),
    }
}

fn exit_of(failure: &Failure) -> Exit {
    let code = match failure.kind {
        FailureKind::SessionNotFound => Code::NoSession,
        FailureKind::Config | FailureKind::AuthRequired => Code::Config,
        FailureKind::InvalidValue => Code::Usage,
        FailureKind::ProviderAuth
        | FailureKind::ProviderRate
        | FailureKind::ProviderOverloaded
        | FailureKind::ProviderRejected
        | FailureKind::ModelNotFound
        | FailureKind::ContextOverflow
        | FailureKind::Connection
        | FailureKind::Protocol
        | FailureKind::Store
        | FailureKind::Internal => Code::Failed,
    };
    Exit::new(code, failure.sentence.clone())
}

fn folder(dir: &Path) -> Result<PathBuf, Exit> {
    match fs::canonicalize(dir) {
        Ok(dir) if dir.is_dir() => Ok(dir),
        Ok(_) => Err(Exit::new(Code::Usage, format!("{} is not a folder", dir.display()))),
        Err(error) => Err(Exit::new(Code::Usage, format!("could not work in {}: {error}", dir.display()))),
    }
}

fn first_prompt(args: &RunArgs) -> Result<Option<String>, Exit> {
    let from_stdin = || {
        if io::stdin().is_terminal() {
            let exit = Exit::new(Code::Usage, "the prompt was to come from stdin, which is a terminal");
            return Err(exit.with_hint("pipe it in, or use -i to type"));
        }
        let mut text = String::new();
        let read = io::stdin().read_to_string(&mut text);
        read.map_err(|error| {
            Exit::new(Code::Usage, format!("could not read the prompt from stdin: {error}"))
        })?;
        Ok(Some(text))
    };
    match (&args.prompt, &args.file) {
        (Some(dash), _) if dash == "-" => from_stdin(),
        (_, Some(file)) if file == Path::new("-") => from_stdin(),
        (Some(prompt), _) => Ok(Some(prompt.clone())),
        (None, Some(file)) => match fs::read_to_string(file) {
            Ok(text) => Ok(Some(text)),
            Err(error) => Err(Exit::new(Code::Usage, format!("could not read {}: {error}", file.display()))),
        },
        (None, None) => Ok(None),
    }
}
