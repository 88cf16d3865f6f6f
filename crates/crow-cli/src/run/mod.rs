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

use crow_acp::{Abilities, Heard, Hello, Lines, StopReason};
use crow_core::{Failure, FailureKind, Mode, SessionId};
use tokio::sync::{mpsc, oneshot};

pub(crate) use self::replay::ReplaySpan;
use self::{
    driver::Driver,
    json::{JsonLines, Shown},
    plain::plain,
    screen::Screen,
    signals::Signals,
};
use crate::{
    agent::{self, Source},
    agents::{self, Place},
    cli::{OutputFormat, RunArgs},
    failure::{Code, Exit},
    settings::Settings,
};

/// Events between the connection and the screen; the agent is held back when the screen is behind.
const EVENTS_LEN: usize = 256;

/// Drives the agent with what the command line says.
pub(crate) fn run(mut args: RunArgs, settings: &Settings, source: Source, here: &Path) -> Result<(), Exit> {
    let other = match &args.agent {
        Some(name) => agents::named(name, settings)?,
        None => None,
    };
    let cwd = match (&args.cwd, other.and_then(|server| server.cwd.as_ref())) {
        (Some(dir), Some(_)) => far_folder(dir)?,
        (None, Some(dir)) => dir.clone(),
        (Some(dir), None) => folder(dir)?,
        (None, None) => here.to_owned(),
    };
    if other.is_none() {
        args.agent = None;
        check_mode(args.mode.as_deref())?;
    }
    let first = first_prompt(&args)?;
    if first.is_none() && !args.interactive {
        let exit = Exit::new(Code::Usage, "there is no prompt");
        return Err(exit.with_hint("give one as an argument, with -f FILE, or use -i to type"));
    }
    let speaker: Box<dyn Speaker> = match args.wishes.output_format {
        Some(OutputFormat::StreamJson) => Box::new(JsonLines::new(io::stdout(), Shown::Events)),
        Some(OutputFormat::Json) => Box::new(JsonLines::new(io::stdout(), Shown::Results)),
        None if args.json => Box::new(JsonLines::new(io::stdout(), Shown::Events)),
        Some(OutputFormat::Text) | None => screen(),
    };
    let plan = Plan { args, cwd, first, speaker, onward: Onward::Stored };
    let runtime = agent::runtime()?;
    let done = runtime.block_on(async {
        match other {
            None => drive(plan, move || source.clone().load()).await,
            Some(server) => {
                // Where nothing is said of a folder over there, that of the work is here.
                let starts_in = if server.cwd.is_some() { here.to_owned() } else { plan.cwd.clone() };
                let place = Place { env: &source.env, cwd: &starts_in };
                others::drive(plan, server, &place, settings).await
            }
        }
    });
    runtime.shutdown_background();
    done
}

/// Our own agent has these modes and no others.
fn check_mode(mode: Option<&str>) -> Result<(), Exit> {
    match mode {
        Some(mode) if Mode::parse(mode).is_none() => {
            let exit = Exit::new(Code::Usage, format!("there is no mode {mode:?}"));
            Err(exit.with_hint(format!("there is: {}", Mode::ALL.map(Mode::as_str).join(", "))))
        }
        Some(_) | None => Ok(()),
    }
}

/// Makes a person's screen.
pub(crate) fn screen() -> Box<dyn Speaker> {
    Box::new(Screen::new())
}

/// Whether the person can go on with the session later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Onward {
    /// It is in the database, or wherever the agent keeps it.
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
    /// What was said in the session before begins, without so many prompts that came earlier.
    fn replay_begins(&mut self, n_left_out: usize) -> io::Result<()>;
    /// What was said before ends.
    fn replay_ends(&mut self) -> io::Result<()>;
    /// What the agent says next is of another message.
    fn part(&mut self) -> io::Result<()>;
    /// Something the agent says.
    fn heard(&mut self, heard: Heard) -> io::Result<()>;
    /// A turn ended.
    fn result(&mut self, reason: StopReason) -> io::Result<()>;
    /// A turn failed.
    fn error(&mut self, failure: &Failure) -> io::Result<()>;
    /// Everything is over; says how to go on, with the agent's name where it is not our own.
    fn goodbye(&mut self, session: &SessionId, onward: Onward, agent: Option<&str>) -> io::Result<()>;
}

/// What is to be done with the agent.
pub(crate) struct Plan {
    pub(crate) args: RunArgs,
    pub(crate) cwd: PathBuf,
    pub(crate) first: Option<String>,
    pub(crate) speaker: Box<dyn Speaker>,
    pub(crate) onward: Onward,
}

/// Starts an agent in this process and drives it over the protocol, as any client would.
pub(crate) async fn drive<L, F>(plan: Plan, load: L) -> Result<(), Exit>
where
    L: Fn() -> F + Send + Sync + 'static,
    F: Future<Output = Result<crow_agent::Kit, Failure>> + Send + 'static,
{
    let early = Signals::listen()?;
    let (client, server) = crow_acp::duplex();
    // It ends when we hang up: were it to hear signals as well, both of us would act on them.
    let stop = std::future::pending();
    let agent = tokio::spawn(crow_agent::serve(server, agent::about(), stop, load));
    let done = match talk(plan, client, early).await? {
        Talked::Through(done) => done,
        Talked::Broken(broken) => Err(exit_of(broken.failure())),
    };
    match agent.await {
        Ok(Ok(())) => done,
        Ok(Err(error)) => done.and(Err(Exit::new(Code::Failed, error.to_string()))),
        Err(error) => done.and(Err(Exit::new(Code::Failed, format!("the agent broke: {error}")))),
    }
}

/// How a conversation with an agent went.
enum Talked {
    /// Through to its end.
    Through(Result<(), Exit>),
    /// The agent went, or never was one.
    Broken(Broken),
}

/// When a conversation broke.
enum Broken {
    /// There was no hello.
    Hello(Failure),
    /// There was one.
    Later(Failure),
}

impl Broken {
    fn when(&self) -> &'static str {
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
async fn talk(plan: Plan, lines: Lines, early: Signals) -> Result<Talked, Exit> {
    let signals = Signals::listen()?;
    let (events, heard) = mpsc::channel(EVENTS_LEN);
    let (greeted, greeting) = oneshot::channel();
    let abilities = Abilities { compactions: true, forms: speak::somebody(), ..Abilities::default() };
    let hello = Hello { version: agent::VERSION, abilities, keeps_words: false };
    let driven = crow_acp::drive(lines, hello, events, async |connection| {
        // Whoever waits for it waits below.
        let _ = greeted.send(());
        let agent = connection.clone();
        let done = Driver::new(connection, heard, signals, plan).run().await;
        (done, agent.gone())
    });
    tokio::pin!(driven);
    let mut is_greeted = false;
    let driven = tokio::select! {
        biased;
        driven = &mut driven => driven,
        () = interrupted(early, greeting, &mut is_greeted) => {
            return Ok(Talked::Through(Err(Exit::quiet(Code::Interrupted))));
        }
    };
    Ok(match driven {
        Ok((Err(_), Some(gone))) => Talked::Broken(Broken::Later(gone)),
        Ok((done, _)) => Talked::Through(done),
        Err(failure) if is_greeted => Talked::Broken(Broken::Later(failure)),
        Err(failure) => Talked::Broken(Broken::Hello(failure)),
    })
}

/// Waits for an interrupt before the hello; those after it are the driver's.
async fn interrupted(mut signals: Signals, greeting: oneshot::Receiver<()>, is_greeted: &mut bool) {
    tokio::select! {
        biased;
        said = greeting => {
            *is_greeted = said.is_ok();
            std::future::pending::<()>().await;
        }
        _ = signals.next() => {}
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
    // Another agent may say anything.
    Exit::new(code, plain(&failure.sentence))
}

/// Takes a folder of another machine, where nobody here can look.
fn far_folder(dir: &Path) -> Result<PathBuf, Exit> {
    if dir.is_absolute() {
        return crate::text_folder(dir.to_owned());
    }
    let exit = Exit::new(Code::Usage, format!("{} is not an absolute path", dir.display()));
    Err(exit.with_hint("the agent has a cwd in agent_servers, so -c names a folder of its machine"))
}

fn folder(dir: &Path) -> Result<PathBuf, Exit> {
    match fs::canonicalize(dir) {
        Ok(dir) if dir.is_dir() => crate::text_folder(dir),
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
