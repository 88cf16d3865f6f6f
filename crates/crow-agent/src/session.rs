//! One session's life. Owns the inbox, the prompts that wait, and what the session stands at; the turn that runs
//! has the conversation and gives it back.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use crow_acp::{Answer, Client};
use crow_core::{
    Entry, Failure, FailureKind, Mode, Options, Part, Prompt, SessionId, Transcript, TurnEnd, Update,
};
use crow_store::StoreError;
use crow_tools::Workspace;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::commands::{self, Command};
use crate::kit::Kit;
use crate::open;
use crate::run_turn::{Conversation, OnDisk, TurnCx, run_turn, store_failure};
use crate::{clock, prompt};

/// People type prompts; a longer inbox is a stuck session, not a busy one.
const INBOX_LEN: usize = 16;

/// Prompts that may wait behind a turn, for the same reason.
const WAITING_MAX: usize = 16;

/// Characters of a title; clients show it on one line.
const TITLE_CHARS_MAX: usize = 60;

/// What a session stands at; changes act at once, mid-turn too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) mode: Mode,
    pub(crate) model: Option<String>,
}

/// Something a session is told.
#[derive(Debug)]
pub(crate) enum SessionMsg {
    Prompt { parts: Vec<Part>, answer: Answer<TurnEnd> },
    Cancel,
    SetOption { option: String, value: String, answer: Answer<Options> },
    ReadOptions { answer: Answer<Options> },
    TurnEnded { talk: Conversation, end: Result<TurnEnd, Failure>, answer: Answer<TurnEnd> },
}

/// The way into a session.
#[derive(Debug, Clone)]
pub(crate) struct SessionHandle {
    pub(crate) id: SessionId,
    inbox: mpsc::Sender<SessionMsg>,
}

impl SessionHandle {
    /// Tells the session something. A session lives as long as its host, so nothing told is lost.
    pub(crate) async fn tell(&self, msg: SessionMsg) {
        if self.inbox.send(msg).await.is_err() {
            tracing::debug!(session = %self.id, "the session has ended");
        }
    }
}

/// What a session is made from.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) id: SessionId,
    pub(crate) cwd: PathBuf,
    pub(crate) standing: Standing,
    pub(crate) talk: Conversation,
    pub(crate) title: Option<String>,
}

#[derive(Debug)]
struct Session {
    id: SessionId,
    kit: Arc<Kit>,
    client: Client,
    workspace: Arc<Workspace>,
    standing: watch::Sender<Standing>,
    inbox: mpsc::Receiver<SessionMsg>,
    own: mpsc::WeakSender<SessionMsg>,
    state: State,
    waiting: VecDeque<(Vec<Part>, Answer<TurnEnd>)>,
    n_notes: u64,
    cut: CancellationToken,
    turns: TaskTracker,
}

#[derive(Debug)]
enum State {
    Idle(Conversation),
    Running { cut: CancellationToken },
}

/// Starts a session's driver. It ends when the last handle goes; `cut` stops its turn.
pub(crate) fn start(
    opening: Opening,
    kit: Arc<Kit>,
    client: Client,
    cut: CancellationToken,
    turns: TaskTracker,
) -> SessionHandle {
    let (sender, inbox) = mpsc::channel(INBOX_LEN);
    let workspace = open::workspace(&kit, &opening.cwd);
    let session = Session {
        id: opening.id.clone(),
        workspace: Arc::new(workspace),
        kit,
        client,
        standing: watch::Sender::new(opening.standing),
        inbox,
        own: sender.downgrade(),
        state: State::Idle(opening.talk),
        waiting: VecDeque::new(),
        n_notes: 0,
        cut,
        turns,
    };
    tokio::spawn(session.run());
    SessionHandle { id: opening.id, inbox: sender }
}

impl Session {
    async fn run(mut self) {
        while let Some(msg) = self.inbox.recv().await {
            match msg {
                SessionMsg::Prompt { parts, answer } => self.on_prompt(parts, answer).await,
                SessionMsg::Cancel => self.on_cancel(),
                SessionMsg::SetOption { option, value, answer } => {
                    answer.give(self.set_option(&option, &value).await);
                }
                SessionMsg::ReadOptions { answer } => answer.give(Ok(self.options())),
                SessionMsg::TurnEnded { talk, end, answer } => self.on_turn_ended(talk, end, answer),
            }
        }
    }

    async fn on_prompt(&mut self, parts: Vec<Part>, answer: Answer<TurnEnd>) {
        if let [Part::Text(text)] = parts.as_slice()
            && let Some(command) = commands::parse(text)
        {
            let said = self.run_command(&command).await;
            self.note(said, answer);
            return;
        }
        match &mut self.state {
            State::Idle(talk) => {
                let talk = std::mem::take(talk);
                self.start_turn(talk, parts, answer);
            }
            State::Running { .. } if self.waiting.len() < WAITING_MAX => {
                self.waiting.push_back((parts, answer));
            }
            State::Running { .. } => {
                let why = "Too many prompts wait in this session. Stop the turn or wait for it.";
                answer.give(Err(Failure::new(FailureKind::InvalidValue, why)));
            }
        }
    }

    fn on_cancel(&mut self) {
        if let State::Running { cut } = &self.state {
            cut.cancel();
        }
        for (_, answer) in self.waiting.drain(..) {
            answer.give(Ok(TurnEnd::Cancelled));
        }
    }

    fn start_turn(&mut self, talk: Conversation, parts: Vec<Part>, answer: Answer<TurnEnd>) {
        let cut = self.cut.child_token();
        self.state = State::Running { cut: cut.clone() };
        let job = TurnJob {
            id: self.id.clone(),
            kit: self.kit.clone(),
            client: self.client.clone(),
            workspace: self.workspace.clone(),
            standing: self.standing.subscribe(),
            cut,
        };
        let own = self.own.clone();
        let (client, id) = (self.client.clone(), self.id.clone());
        let turn = self.turns.spawn(job.run(talk, parts));
        self.turns.spawn(async move {
            let (talk, end) = match turn.await {
                Ok(ended) => ended,
                // A turn that broke took its conversation along; what is on disk is the truth.
                Err(error) => {
                    let failure = Failure::new(FailureKind::Internal, format!("The turn broke: {error}."));
                    (Conversation::default(), Err(failure))
                }
            };
            client.flushed(&id).await;
            match own.upgrade() {
                Some(own) => {
                    if own.send(SessionMsg::TurnEnded { talk, end, answer }).await.is_err() {
                        tracing::debug!(session = %id, "the session ended before its turn");
                    }
                }
                None => answer.give(end),
            }
        });
    }

    fn on_turn_ended(&mut self, talk: Conversation, end: Result<TurnEnd, Failure>, answer: Answer<TurnEnd>) {
        answer.give(end);
        if self.cut.is_cancelled() {
            // The host ends: what waits would only be stored, never asked.
            self.on_cancel();
        }
        match self.waiting.pop_front() {
            Some((parts, answer)) => self.start_turn(talk, parts, answer),
            None => self.state = State::Idle(talk),
        }
    }

    async fn run_command(&mut self, command: &Command<'_>) -> String {
        let standing = self.standing.borrow().clone();
        let result = match command {
            Command::Help => return commands::help(),
            Command::Stop => {
                self.on_cancel();
                return "Stopped.\n".into();
            }
            Command::Mode("") => {
                return format!("The mode is {}. There are {}.\n", standing.mode.as_str(), commands::modes());
            }
            Command::Model("") => {
                let options = self.options();
                let current = options.model.unwrap_or_else(|| "not set".into());
                return format!("The model is {current}. Configured: {}.\n", options.models.join(", "));
            }
            Command::Mode(value) => self.set_option("mode", value).await,
            Command::Model(value) => self.set_option("model", value).await,
        };
        match result {
            Ok(options) => {
                let model = options.model.unwrap_or_else(|| "not set".into());
                format!("Mode {}, model {model}.\n", options.mode.as_str())
            }
            Err(failure) => format!("{failure}\n"),
        }
    }

    /// Answers a command: its words, then the end of its turn.
    fn note(&mut self, text: String, answer: Answer<TurnEnd>) {
        self.n_notes += 1;
        let message = crow_core::MessageId::new(format!("note-{}", self.n_notes));
        self.client.tell(&self.id, Update::Text { message, text });
        let (client, id) = (self.client.clone(), self.id.clone());
        self.turns.spawn(async move {
            client.flushed(&id).await;
            answer.give(Ok(TurnEnd::Done));
        });
    }

    async fn set_option(&mut self, option: &str, value: &str) -> Result<Options, Failure> {
        let invalid = |why: String| Failure::new(FailureKind::InvalidValue, why);
        match option {
            "mode" => {
                let mode = Mode::parse(value).ok_or_else(|| {
                    invalid(format!("There is no mode {value}. Modes: {}.", commands::modes()))
                })?;
                known(self.kit.store.set_mode(&self.id, mode).await)?;
                self.standing.send_modify(|standing| standing.mode = mode);
                self.client.tell(&self.id, Update::Mode(mode));
            }
            "model" => {
                let model = self.kit.model(Some(value))?.name.clone();
                known(self.kit.store.set_model(&self.id, &model).await)?;
                self.standing.send_modify(|standing| standing.model = Some(model));
            }
            _ => return Err(invalid(format!("There is no option {option}. Options: mode, model."))),
        }
        let options = self.options();
        self.client.tell(&self.id, Update::Options(options.clone()));
        Ok(options)
    }

    fn options(&self) -> Options {
        open::options(&self.kit, &self.standing.borrow())
    }
}

/// A session that nobody spoke in has no row; its first prompt stores what it stands at.
fn known(changed: Result<(), StoreError>) -> Result<(), Failure> {
    match changed {
        Ok(()) | Err(StoreError::NoSession(_)) => Ok(()),
        Err(error) => Err(store_failure(error)),
    }
}

/// One turn with all it needs, on a task of its own.
struct TurnJob {
    id: SessionId,
    kit: Arc<Kit>,
    client: Client,
    workspace: Arc<Workspace>,
    standing: watch::Receiver<Standing>,
    cut: CancellationToken,
}

impl TurnJob {
    async fn run(self, mut talk: Conversation, parts: Vec<Part>) -> (Conversation, Result<TurnEnd, Failure>) {
        tracing::info!(session = %self.id, "a turn begins");
        let end = self.turn(&mut talk, parts).await;
        match &end {
            // Sentences may hold what a server said; the kind is enough here.
            Ok(TurnEnd::Failed(failure)) | Err(failure) => {
                tracing::warn!(session = %self.id, kind = %failure.kind, "a turn failed");
            }
            Ok(end) => tracing::info!(session = %self.id, ?end, "a turn ended"),
        }
        if let Err(error) = self.kit.store.sync().await {
            tracing::warn!(session = %self.id, %error, "the end of the turn may not survive a power cut");
        }
        (talk, end)
    }

    async fn turn(&self, talk: &mut Conversation, parts: Vec<Part>) -> Result<TurnEnd, Failure> {
        let cx = TurnCx {
            session: &self.id,
            kit: &self.kit,
            client: &self.client,
            workspace: &self.workspace,
            standing: &self.standing,
            cut: &self.cut,
        };
        // Whatever fails from here on leaves it in doubt.
        match std::mem::take(&mut talk.on_disk) {
            OnDisk::Nothing(rendering) => store_new(&cx, talk, rendering).await?,
            OnDisk::Same => {}
            OnDisk::Unsure => read_again(&cx, talk).await?,
        }
        let prompt = Prompt { id: talk.transcript.next_message(), parts };
        cx.append(talk, Entry::Prompt(prompt)).await?;
        let end = run_turn(&cx, talk).await?;
        if !talk.is_titled
            && let Some(title) = talk.transcript.entries().iter().find_map(title_of)
        {
            self.kit.store.set_title(&self.id, &title).await.map_err(store_failure)?;
            talk.is_titled = true;
            self.client.tell(&self.id, Update::Title(title));
        }
        talk.on_disk = OnDisk::Same;
        Ok(end)
    }
}

/// Stores a session that is new, once its system prompt is rendered.
async fn store_new(cx: &TurnCx<'_>, talk: &mut Conversation, rendering: Rendering) -> Result<(), Failure> {
    let rendered = rendering.await.map_err(|error| Failure::new(FailureKind::Internal, error.to_string()))?;
    let system = rendered?;
    open::store_new(cx, &system).await?;
    talk.transcript = Transcript::new(system);
    Ok(())
}

/// Reads again what is on disk, whatever was in memory; a session that never got there is stored now.
async fn read_again(cx: &TurnCx<'_>, talk: &mut Conversation) -> Result<(), Failure> {
    let was_spoken_in = !talk.transcript.entries().is_empty();
    match open::recover(cx.kit, cx.session, cx.workspace).await {
        Ok(transcript) => talk.transcript = transcript,
        Err(failure) if failure.kind == FailureKind::SessionNotFound && !was_spoken_in => {
            let rendering = render_system_prompt(cx.kit, cx.workspace.cwd().to_owned());
            store_new(cx, talk, rendering).await?;
        }
        Err(failure) => return Err(failure),
    }
    Ok(())
}

/// A system prompt on its way.
pub(crate) type Rendering = JoinHandle<Result<String, Failure>>;

/// Renders a session's system prompt off the loop.
pub(crate) fn render_system_prompt(kit: &Kit, cwd: PathBuf) -> Rendering {
    let prompts_dir = kit.settings.prompts_dir.clone();
    tokio::task::spawn_blocking(move || prompt::render(&cwd, &prompts_dir, &clock::today()))
}

/// Makes a title of a prompt: its first line that says something.
fn title_of(entry: &Entry) -> Option<String> {
    let Entry::Prompt(prompt) = entry else { return None };
    let text = prompt.text();
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("(no text)");
    match line.char_indices().nth(TITLE_CHARS_MAX) {
        Some((cut, _)) => Some(format!("{}…", line[..cut].trim_end())),
        None => Some(line.to_owned()),
    }
}
