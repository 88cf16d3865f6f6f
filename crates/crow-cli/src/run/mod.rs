//! `run`: an ACP client in the terminal that starts its own agent and drives it.

mod json;
mod markdown;
mod screen;
mod speak;

use std::{
    fs,
    io::{self, IsTerminal, Read},
    path::{Path, PathBuf},
};

use crow_acp::{ClientEvent, Connection, Heard, PermissionQuestion, StopReason};
use crow_core::{Failure, FailureKind, SessionId};
use tokio::sync::mpsc;

use self::{
    json::JsonLines,
    screen::Screen,
    speak::{Listen, Spoken},
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
        false => screen(),
    };
    let plan = Plan { args, cwd, first, speaker };
    let runtime = agent::runtime()?;
    let done = runtime.block_on(drive(plan, move || source.clone().load()));
    runtime.shutdown_background();
    done
}

/// Makes a person's screen.
pub(crate) fn screen() -> Box<dyn Speaker> {
    Box::new(Screen::new(io::stdout(), io::stderr()))
}

/// Where what is heard goes: a person's screen or a script's lines.
pub(crate) trait Speaker: Send {
    /// The session that was opened.
    fn session(&mut self, session: &SessionId) -> io::Result<()>;
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
    let (client, server) = crow_acp::duplex();
    let (events, heard) = mpsc::channel(EVENTS_LEN);
    let agent = tokio::spawn(crow_agent::serve(server, agent::VERSION, agent::stop_signal(), load));
    let driven = crow_acp::drive(client, agent::VERSION, events, async |connection| {
        Driver { connection, heard, plan, refused: Refused::Nothing }.run().await
    });
    let done = driven.await.map_err(|failure| exit_of(&failure))?;
    match agent.await {
        Ok(Ok(())) => done,
        Ok(Err(error)) => done.and(Err(Exit::new(Code::Failed, error.to_string()))),
        Err(error) => done.and(Err(Exit::new(Code::Failed, format!("the agent broke: {error}")))),
    }
}

/// Whether a call was refused because nobody could be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refused {
    Nothing,
    Something,
}

struct Driver {
    connection: Connection,
    heard: mpsc::Receiver<ClientEvent>,
    plan: Plan,
    refused: Refused,
}

impl Driver {
    async fn run(mut self) -> Result<(), Exit> {
        let session = self.open().await?;
        self.plan.speaker.session(&session)?;
        let done = self.prompts(&session).await;
        let bye = self.plan.speaker.goodbye(&session);
        done?;
        Ok(bye?)
    }

    async fn open(&mut self) -> Result<SessionId, Exit> {
        let connection = self.connection.clone();
        let session = match self.plan.args.session.clone() {
            Some(id) => {
                let session = SessionId::new(id);
                let cwd = self.plan.cwd.clone();
                let loading = connection.load_session(&session, &cwd);
                // What was said before is the person's already; it is read to make room and not shown again.
                let loaded = drain_until(&mut self.heard, loading).await;
                loaded.map_err(|failure| exit_of(&failure))?;
                session
            }
            None => connection.new_session(&self.plan.cwd).await.map_err(|failure| exit_of(&failure))?,
        };
        let mode = self.plan.args.mode.map(|mode| ("mode", mode.as_str().to_owned()));
        let model = self.plan.args.model.clone().map(|model| ("model", model));
        for (option, value) in mode.into_iter().chain(model) {
            let set = connection.set_option(&session, option, &value).await;
            set.map_err(|failure| exit_of(&failure))?;
        }
        Ok(session)
    }

    async fn prompts(&mut self, session: &SessionId) -> Result<(), Exit> {
        let mut last = Ok(());
        if let Some(prompt) = self.plan.first.take() {
            last = self.turn(session, &prompt).await;
        }
        if !self.plan.args.interactive {
            return last;
        }
        report(last);
        while let Spoken::Line(prompt) = speak::read_prompt().await? {
            report(self.turn(session, &prompt).await);
        }
        Ok(())
    }

    async fn turn(&mut self, session: &SessionId, prompt: &str) -> Result<(), Exit> {
        let connection = self.connection.clone();
        let ended = connection.prompt(session, prompt);
        tokio::pin!(ended);
        let mut interrupts = Interrupts::Cancel;
        let ended = loop {
            tokio::select! {
                biased;
                event = self.heard.recv() => match event {
                    Some(event) => self.on_event(event).await?,
                    None => break ended.await,
                },
                ended = &mut ended => break ended,
                pressed = tokio::signal::ctrl_c() => match (pressed, interrupts) {
                    (Ok(()), Interrupts::Cancel) => {
                        connection.cancel(session);
                        interrupts = Interrupts::Leave;
                    }
                    (Ok(()), Interrupts::Leave) => return Err(Exit::quiet(Code::Interrupted)),
                    (Err(error), _) => return Err(Exit::new(Code::Failed, format!("could not wait for keys: {error}"))),
                },
            }
        };
        while let Ok(event) = self.heard.try_recv() {
            self.on_event(event).await?;
        }
        self.settle(ended)
    }

    fn settle(&mut self, ended: Result<StopReason, Failure>) -> Result<(), Exit> {
        let reason = match ended {
            Ok(reason) => reason,
            Err(failure) => {
                self.plan.speaker.error(&failure)?;
                return Err(exit_of(&failure));
            }
        };
        self.plan.speaker.result(reason)?;
        match (reason, self.refused) {
            (StopReason::Cancelled, _) => Err(Exit::quiet(Code::Interrupted)),
            (StopReason::MaxTurnRequests, _) => {
                let exit = Exit::new(Code::Limit, "the limit of model calls in one turn was reached");
                Err(exit.with_hint("go on with the same session, or raise max_turn_requests"))
            }
            (_, Refused::Something) => {
                let exit = Exit::new(Code::Denied, "a call needed permission and nobody could be asked");
                Err(exit.with_hint("allow it with -y, or choose a --mode"))
            }
            (StopReason::EndTurn, Refused::Nothing) => Ok(()),
            (StopReason::MaxTokens, Refused::Nothing) => {
                Err(Exit::new(Code::Failed, "the model's output limit cut the answer"))
            }
            (StopReason::Refusal, Refused::Nothing) => Err(Exit::new(Code::Failed, "the model refused")),
        }
    }

    async fn on_event(&mut self, event: ClientEvent) -> Result<(), Exit> {
        match event {
            ClientEvent::Heard { heard, .. } => self.plan.speaker.heard(heard)?,
            ClientEvent::Permission { question, answer, .. } => {
                // An agent that no longer waits for the answer has ended the turn by itself.
                let _ = answer.send(self.decide(question).await?);
            }
        }
        Ok(())
    }

    async fn decide(&mut self, question: PermissionQuestion) -> Result<String, Exit> {
        let first = |allows: bool| {
            let fits = question.choices.iter().find(|choice| choice.allows == allows && !choice.always);
            fits.map(|choice| choice.id.clone()).unwrap_or_default()
        };
        if self.plan.args.yes {
            return Ok(first(true));
        }
        match speak::ask(&question).await? {
            Listen::Chosen(id) => Ok(id),
            Listen::Nobody => {
                self.refused = Refused::Something;
                Ok(first(false))
            }
        }
    }
}

/// What the next interrupt does.
#[derive(Debug, Clone, Copy)]
enum Interrupts {
    Cancel,
    Leave,
}

async fn drain_until<T>(heard: &mut mpsc::Receiver<ClientEvent>, done: impl Future<Output = T>) -> T {
    tokio::pin!(done);
    loop {
        tokio::select! {
            biased;
            Some(_) = heard.recv() => {}
            done = &mut done => return done,
        }
    }
}

/// Tells the person how a turn failed and lets them type on.
fn report(ended: Result<(), Exit>) {
    if let Err(exit) = ended {
        exit.report(&mut io::stderr().lock());
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
