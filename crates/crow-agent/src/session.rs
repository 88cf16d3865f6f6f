//! One session's life. Owns the inbox, the prompts that wait, and what the session stands at; the turn that runs
//! has the conversation and gives it back.

mod listing;
mod mail;
mod options;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crow_acp::{Client, PromptBlock, PromptId, ResponseSender, SessionLocation, SteerOutcome, TurnScope};
use crow_core::{
    Compaction, ContentPart, Failure, FailureKind, Mode, SessionConfigOptions, SessionId, SessionUpdate,
    ThoughtLevel, TokenUsage, Transcript, TurnEnd,
};
use crow_store::SideRequestUsage;
use crow_tools::Workspace;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use crate::children::{self, ChildAgents, SessionEnvironment};
use crate::commands::{self, SessionCommand};
use crate::handle::{FinishedTurn, INBOX_LEN, SessionHandle, SessionMsg, SteeringInput};
use crate::kit::AgentRuntime;
use crate::open;
use crate::run_turn::{SessionState, StoredState};
use crate::speckit;
use crate::supplies::ProjectConfigLoader;
use crate::tasks::ChildAgentsCell;
use crate::toolbox::Toolbox;
use crate::turn_job::{TurnJob, TurnWork};

/// How long a session that is opened waits for the folder of its project; a disk that hangs holds nobody up.
const RECALL_WAIT_MAX: Duration = Duration::from_secs(1);

/// Time that a session that is closed gives its folders, which are read before it is stored.
const ARRIVES_WITHIN: Duration = Duration::from_secs(5);

/// Prompts that may wait behind a turn: people type them.
const WAITING_MAX: usize = 16;

/// What a session stands at; changes act at once, mid-turn too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionSettings {
    pub(crate) mode: Mode,
    pub(crate) model: Option<String>,
    pub(crate) thought_level: ThoughtLevel,
}

/// What a session is made from.
#[derive(Debug)]
pub(crate) struct SessionInit {
    pub(crate) id: SessionId,
    pub(crate) place: SessionLocation,
    pub(crate) standing: SessionSettings,
    /// With everything that was said.
    pub(crate) talk: SessionState,
    /// Those in force, oldest first.
    pub(crate) compactions: Vec<Compaction>,
    /// What questions took that are no messages.
    pub(crate) asides: Vec<SideRequestUsage>,
    /// What it has taken so far.
    pub(crate) bill: TokenUsage,
    pub(crate) title: Option<String>,
    /// What its programs are told of the feature that it works on.
    pub(crate) variables: Vec<(String, String)>,
}

struct SessionDriver {
    id: SessionId,
    kit: Arc<AgentRuntime>,
    client: Client,
    place: SessionLocation,
    workspace: Arc<Workspace>,
    toolbox: Arc<Toolbox>,
    stock: Arc<ProjectConfigLoader>,
    children: Arc<ChildAgents>,
    /// Nothing, where no tasks can be given.
    door: Option<ChildAgentsCell>,
    surroundings: watch::Sender<SessionEnvironment>,
    standing: watch::Sender<SessionSettings>,
    inbox: mpsc::Receiver<SessionMsg>,
    own: mpsc::WeakSender<SessionMsg>,
    state: DriverState,
    waiting: VecDeque<WaitingPrompt>,
    /// Who waits for the session to close.
    closing: Vec<ResponseSender<()>>,
    /// Cuts the turn that runs.
    turn: watch::Sender<CancellationToken>,
    cut: CancellationToken,
    turns: TaskTracker,
}

enum DriverState {
    Idle(Box<SessionState>),
    Running { ticket: Option<PromptId>, more_words: mpsc::Sender<SteeringInput> },
}

/// A prompt that waits behind a turn; it has no ticket when nobody waits for its end.
struct WaitingPrompt {
    ticket: Option<PromptId>,
    work: TurnWork,
    until: TurnScope,
    answer: ResponseSender<TurnEnd>,
}

/// Starts a session's driver. It ends when it is closed or the last handle goes; `cut` stops its turn.
pub(crate) fn start_session(
    opening: SessionInit,
    kit: Arc<AgentRuntime>,
    client: Client,
    cut: CancellationToken,
    turns: TaskTracker,
) -> SessionHandle {
    let (sender, inbox) = mpsc::channel(INBOX_LEN);
    let SessionInit { id, place, standing, mut talk, compactions, bill, variables, .. } = opening;
    open::apply_latest_compaction(&mut talk.transcript, compactions);
    let turn = watch::Sender::new(CancellationToken::new());
    let gone = CancellationToken::new();
    let handle =
        SessionHandle { id: id.clone(), inbox: sender.clone(), turn: turn.subscribe(), gone: gone.clone() };
    let depth = children::tree_depth(&kit, &client);
    let door = kit.config().tree_limits.may_start(depth).then(ChildAgentsCell::default);
    let workspace = Arc::new(open::session_workspace(&kit, &place));
    workspace.set_variables(variables);
    let toolbox = Arc::new(Toolbox::open(&kit, (&client, &id), (&place, &workspace), door.as_ref()));
    let source = (place.cwd.clone(), toolbox.clone());
    let stock = ProjectConfigLoader::start(kit.clone(), client.clone(), id.clone(), source);
    let standing = watch::Sender::new(standing);
    let around =
        SessionEnvironment { place: place.clone(), workspace: workspace.clone(), stock: stock.clone() };
    let surroundings = watch::Sender::new(around);
    let children = ChildAgents::new(
        (kit.clone(), client.clone(), id.clone()),
        (standing.subscribe(), surroundings.subscribe()),
        sender.downgrade(),
        cut.child_token(),
    );
    children.tree_budget().set_session_usage(bill);
    if let Some(door) = &door {
        door.set_children(&children);
    }
    let is_new = matches!(talk.on_disk, StoredState::Coming(_));
    let mut session = SessionDriver {
        workspace,
        toolbox,
        stock,
        children,
        door,
        surroundings,
        id,
        kit,
        client,
        place,
        standing,
        inbox,
        own: sender.downgrade(),
        state: DriverState::Idle(Box::new(talk)),
        waiting: VecDeque::new(),
        closing: Vec::new(),
        turn,
        cut,
        turns,
    };
    let span = tracing::info_span!(target: crate::SESSION_SPAN, "session", session = %session.id);
    let life = async move {
        let _gone = gone.drop_guard();
        if !is_new {
            session.resume_work().await;
        }
        session.run().await;
    };
    tokio::spawn(life.instrument(span));
    handle
}

impl SessionDriver {
    /// Goes on where a stored session stood: its mail, and the step of its workflow.
    async fn resume_work(&mut self) {
        self.announce_pending_mail();
        let recalled = speckit::restore_workflow(&self.kit, (&self.client, &self.id));
        if tokio::time::timeout(RECALL_WAIT_MAX, recalled).await.is_err() {
            tracing::warn!(session = %self.id, "the disk of its project does not answer");
        }
    }

    async fn run(mut self) {
        self.load_project_config();
        while let Some(msg) = self.inbox.recv().await {
            match msg {
                SessionMsg::Prompt { ticket, said, until, answer } => {
                    self.on_prompt(ticket, (said, until), answer).await;
                }
                SessionMsg::Withdraw { ticket } => self.on_withdraw(ticket),
                SessionMsg::Steer { said, answer } => self.on_steer(said, answer),
                SessionMsg::Cancel => self.on_cancel(),
                SessionMsg::Mail => self.on_mail(),
                SessionMsg::SetOption { option, value, answer } => {
                    answer.send(self.set_option(&option, &value).await);
                }
                SessionMsg::Reopen { place, answer } => {
                    self.change_location(place);
                    answer.send(Ok(self.current_options()));
                    self.load_project_config();
                }
                SessionMsg::Close { answer } => {
                    self.closing.push(answer);
                    self.on_cancel();
                }
                SessionMsg::TurnEnded { ended } => self.on_turn_ended(*ended),
            }
            if !self.closing.is_empty() && matches!(self.state, DriverState::Idle(_)) {
                break;
            }
        }
        self.shut_down().await;
    }

    /// Gives everything back, then says so.
    async fn shut_down(mut self) {
        // Whoever deletes it next must find it.
        self.wait_until_stored().await;
        let Self { closing, toolbox, stock, workspace, children, surroundings, mut inbox, id, .. } = self;
        children.end_all().await;
        drop((toolbox, stock, workspace, children, surroundings));
        inbox.close();
        while let Ok(msg) = inbox.try_recv() {
            msg.reject(&id);
        }
        for answer in closing {
            answer.send(Ok(()));
        }
    }

    /// Waits until a new session is on disk, where what is changed of it goes.
    async fn wait_until_stored(&mut self) {
        let DriverState::Idle(talk) = &mut self.state else { return };
        match std::mem::take(&mut talk.on_disk) {
            StoredState::Coming(coming) => {
                if tokio::time::timeout(ARRIVES_WITHIN, coming.wait_until_settled()).await.is_err() {
                    tracing::warn!(session = %self.id, "the session's folders do not answer");
                    talk.on_disk = StoredState::Coming(coming);
                    return;
                }
                match coming.wait_until_stored(&self.kit, &self.id, &self.standing.subscribe()).await {
                    Ok(system_prompt) => {
                        talk.transcript = Transcript::new(system_prompt);
                        talk.on_disk = StoredState::Same;
                    }
                    Err(failure) => {
                        tracing::info!(%failure, "a session is not stored yet; its first prompt says so");
                    }
                }
            }
            on_disk @ (StoredState::Same | StoredState::Unsure) => talk.on_disk = on_disk,
        }
    }

    async fn on_prompt(
        &mut self,
        ticket: PromptId,
        (said, until): (Vec<PromptBlock>, TurnScope),
        answer: ResponseSender<TurnEnd>,
    ) {
        if !self.closing.is_empty() {
            return answer.send(Err(open::not_found(&self.id)));
        }
        let mut work = None;
        if let Some(asked) = speckit::parse_workflow_command(&said) {
            let work = TurnWork::Workflow { wanted: speckit::WorkflowRequest::Command(asked), said };
            return self.begin_or_wait(WaitingPrompt { ticket: Some(ticket), work, until, answer });
        }
        if let [PromptBlock::Part(ContentPart::Text(text))] = said.as_slice() {
            let command = commands::parse_command(text);
            if let Some(SessionCommand::Undo(Some(how))) = command
                && matches!(self.state, DriverState::Idle(_))
            {
                work = Some(TurnWork::Undo { message: self.kit.next_message_id(), how });
            } else if let Some(command) = command {
                let said = self.run_command(&command).await;
                return self.answer_command(said, answer);
            } else if let Some(chore) = commands::parse_context_command(text) {
                work = Some(TurnWork::Chore { chore, message: self.kit.next_message_id() });
            }
        }
        let work = work.unwrap_or(TurnWork::Prompt(said));
        self.begin_or_wait(WaitingPrompt { ticket: Some(ticket), work, until, answer });
    }

    /// Starts a turn, or has its prompt wait for the one that runs.
    fn begin_or_wait(&mut self, prompt: WaitingPrompt) {
        match &mut self.state {
            DriverState::Idle(talk) => {
                let talk = std::mem::take(&mut **talk);
                self.start_turn(talk, prompt);
            }
            DriverState::Running { .. } if self.waiting.len() < WAITING_MAX => self.waiting.push_back(prompt),
            DriverState::Running { .. } => prompt.answer.send(Err(queue_full_failure())),
        }
    }

    fn on_cancel(&mut self) {
        self.turn.borrow().cancel();
        self.children.cancel_all();
        for prompt in self.waiting.drain(..) {
            prompt.answer.send(Ok(TurnEnd::Cancelled));
        }
    }

    fn on_withdraw(&mut self, withdrawn: PromptId) {
        match &self.state {
            DriverState::Running { ticket: Some(ticket), .. } if *ticket == withdrawn => {
                self.turn.borrow().cancel();
            }
            DriverState::Running { .. } | DriverState::Idle(_) => {
                let place = self.waiting.iter().position(|prompt| prompt.ticket == Some(withdrawn));
                if let Some(prompt) = place.and_then(|place| self.waiting.remove(place)) {
                    prompt.answer.send(Ok(TurnEnd::Cancelled));
                }
            }
        }
    }

    fn on_steer(&mut self, said: Vec<PromptBlock>, answer: ResponseSender<SteerOutcome>) {
        let words = SteeringInput { said, answer };
        let words = match &self.state {
            DriverState::Running { more_words, .. } => match more_words.try_send(words) {
                Ok(()) => return,
                Err(mpsc::error::TrySendError::Closed(words)) => words,
                Err(mpsc::error::TrySendError::Full(words)) => {
                    let why = "Too many words wait for this turn. Wait until the model has read them.";
                    return words.answer.send(Err(Failure::new(FailureKind::InvalidValue, why)));
                }
            },
            DriverState::Idle(_) => words,
        };
        self.start_own_turn(words);
    }

    /// Starts a turn that nobody asked for with a prompt; its failure is told as a notice.
    fn start_own_turn(&mut self, words: SteeringInput) {
        if self.waiting.len() >= WAITING_MAX {
            return words.answer.send(Err(queue_full_failure()));
        }
        words.answer.send(Ok(SteerOutcome::StartedNewTurn));
        let (client, id) = (self.client.clone(), self.id.clone());
        let answer = ResponseSender::new(move |end| {
            if let Ok(TurnEnd::Failed(failure)) | Err(failure) = end {
                client.send_update(&id, SessionUpdate::Notice(failure.sentence));
            }
        });
        let (work, until) = (TurnWork::Prompt(words.said), TurnScope::Answered);
        self.begin_or_wait(WaitingPrompt { ticket: None, work, until, answer });
    }

    fn start_turn(&mut self, talk: SessionState, prompt: WaitingPrompt) {
        let WaitingPrompt { ticket, work, until, answer } = prompt;
        let cut = self.cut.child_token();
        self.turn.send_replace(cut.clone());
        let (words, more_words) = mpsc::channel(WAITING_MAX);
        self.state = DriverState::Running { ticket, more_words: words };
        let job = TurnJob {
            id: self.id.clone(),
            kit: self.kit.clone(),
            client: self.client.clone(),
            place: self.place.clone(),
            workspace: self.workspace.clone(),
            toolbox: self.toolbox.clone(),
            stock: self.stock.clone(),
            children: self.children.clone(),
            standing: self.standing.subscribe(),
            until,
            cut,
        };
        let own = self.own.clone();
        let (client, id) = (self.client.clone(), self.id.clone());
        let turn = self.turns.spawn(job.run(talk, work, more_words).in_current_span());
        self.turns.spawn(async move {
            let (talk, end, more_words) = match turn.await {
                Ok(ended) => ended,
                // A turn that broke took its conversation along; what is on disk is the truth.
                Err(error) => {
                    let failure = Failure::new(FailureKind::Internal, format!("The turn broke: {error}."));
                    (SessionState::default(), Err(failure), mpsc::channel(1).1)
                }
            };
            client.flush_updates(&id).await;
            let ended = Box::new(FinishedTurn { talk, end, answer, more_words });
            match own.upgrade() {
                Some(own) => {
                    if own.send(SessionMsg::TurnEnded { ended }).await.is_err() {
                        tracing::debug!(session = %id, "the session ended before its turn");
                    }
                }
                None => ended.answer.send(ended.end),
            }
        });
    }

    fn on_turn_ended(&mut self, ended: FinishedTurn) {
        let FinishedTurn { talk, end, answer, mut more_words } = ended;
        let was_cut = matches!(end, Ok(TurnEnd::Cancelled));
        // What could not be done now is not tried again by itself: the next prompt finds the mail.
        let goes_on = !was_cut && !matches!(end, Ok(TurnEnd::Failed(_)) | Err(_));
        answer.send(end);
        self.state = DriverState::Idle(Box::new(talk));
        while let Ok(words) = more_words.try_recv() {
            if was_cut {
                let why = "The turn was stopped before the model read this. Send it as a prompt.";
                words.answer.send(Err(Failure::new(FailureKind::InvalidValue, why)));
            } else {
                self.start_own_turn(words);
            }
        }
        if self.cut.is_cancelled() || !self.closing.is_empty() {
            // What waits would only be stored, never asked.
            self.on_cancel();
        }
        if let DriverState::Idle(talk) = &mut self.state
            && let Some(prompt) = self.waiting.pop_front()
        {
            let talk = std::mem::take(&mut **talk);
            self.start_turn(talk, prompt);
        }
        if goes_on {
            self.on_mail();
        }
    }

    /// Works somewhere else from the next turn on.
    fn change_location(&mut self, place: SessionLocation) {
        if place == self.place {
            return;
        }
        if (&place.cwd, &place.more_roots) != (&self.place.cwd, &self.place.more_roots) {
            let workspace = open::session_workspace(&self.kit, &place);
            self.workspace = Arc::new(workspace.with_shared_jobs(&self.workspace));
        }
        let (told, within) = ((&self.client, &self.id), (&place, &*self.workspace));
        self.toolbox = Arc::new(Toolbox::open(&self.kit, told, within, self.door.as_ref()));
        let (kit, client, id) = (self.kit.clone(), self.client.clone(), self.id.clone());
        self.stock = ProjectConfigLoader::start(kit, client, id, (place.cwd.clone(), self.toolbox.clone()));
        self.place = place;
        self.surroundings.send_replace(SessionEnvironment {
            place: self.place.clone(),
            workspace: self.workspace.clone(),
            stock: self.stock.clone(),
        });
    }

    /// Takes in what the person trusts already, while they type.
    fn load_project_config(&self) {
        let stock = self.stock.clone();
        tokio::spawn(async move { stock.load_trusted().await });
    }

    /// Answers a command: its words, then the end of its turn.
    fn answer_command(&mut self, text: String, answer: ResponseSender<TurnEnd>) {
        let message = self.kit.next_message_id();
        self.client.send_update(&self.id, SessionUpdate::Text { message, text });
        let (client, id) = (self.client.clone(), self.id.clone());
        self.turns.spawn(async move {
            client.flush_updates(&id).await;
            answer.send(Ok(TurnEnd::Done));
        });
    }

    fn current_options(&self) -> SessionConfigOptions {
        open::session_options(&self.kit, &self.standing.borrow())
    }
}

fn queue_full_failure() -> Failure {
    let why = "Too many prompts wait in this session. Stop the turn or wait for it.";
    Failure::new(FailureKind::InvalidValue, why)
}
