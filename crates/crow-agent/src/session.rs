//! One session's life. Owns the inbox, the prompts that wait, and what the session stands at; the turn that runs
//! has the conversation and gives it back.

mod listing;
mod mail;
mod options;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crow_acp::{Answer, Client, Place, Spoken, Steered, Ticket, Until};
use crow_core::{
    Compaction, Failure, FailureKind, Mode, Options, Part, SessionId, ThoughtLevel, Transcript, TurnEnd,
    Update, Usage,
};
use crow_store::Aside;
use crow_tools::Workspace;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use crate::children::{self, Children, Surroundings};
use crate::commands::{self, Command};
use crate::handle::{INBOX_LEN, MoreWords, SessionHandle, SessionMsg, TurnEnded};
use crate::kit::Kit;
use crate::open;
use crate::run_turn::{Conversation, OnDisk};
use crate::speckit;
use crate::supplies::Stock;
use crate::tasks::Door;
use crate::toolbox::Toolbox;
use crate::turn_job::{TurnJob, Work};

/// How long a session that is opened waits for the folder of its project; a disk that hangs holds nobody up.
const RECALL_WAIT_MAX: Duration = Duration::from_secs(1);

/// Time that a session that is closed gives its folders, which are read before it is stored.
const ARRIVES_WITHIN: Duration = Duration::from_secs(5);

/// Prompts that may wait behind a turn: people type them.
const WAITING_MAX: usize = 16;

/// What a session stands at; changes act at once, mid-turn too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) mode: Mode,
    pub(crate) model: Option<String>,
    pub(crate) thought_level: ThoughtLevel,
}

/// What a session is made from.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) id: SessionId,
    pub(crate) place: Place,
    pub(crate) standing: Standing,
    /// With everything that was said.
    pub(crate) talk: Conversation,
    /// Those in force, oldest first.
    pub(crate) compactions: Vec<Compaction>,
    /// What questions took that are no messages.
    pub(crate) asides: Vec<Aside>,
    /// What it has taken so far.
    pub(crate) bill: Usage,
    pub(crate) title: Option<String>,
    /// What its programs are told of the feature that it works on.
    pub(crate) variables: Vec<(String, String)>,
}

struct Session {
    id: SessionId,
    kit: Arc<Kit>,
    client: Client,
    place: Place,
    workspace: Arc<Workspace>,
    toolbox: Arc<Toolbox>,
    stock: Arc<Stock>,
    children: Arc<Children>,
    /// Nothing, where no tasks can be given.
    door: Option<Door>,
    surroundings: watch::Sender<Surroundings>,
    standing: watch::Sender<Standing>,
    inbox: mpsc::Receiver<SessionMsg>,
    own: mpsc::WeakSender<SessionMsg>,
    state: State,
    waiting: VecDeque<Waiting>,
    /// Who waits for the session to close.
    closing: Vec<Answer<()>>,
    /// Cuts the turn that runs.
    turn: watch::Sender<CancellationToken>,
    cut: CancellationToken,
    turns: TaskTracker,
}

enum State {
    Idle(Box<Conversation>),
    Running { ticket: Option<Ticket>, more_words: mpsc::Sender<MoreWords> },
}

/// A prompt that waits behind a turn; it has no ticket when nobody waits for its end.
struct Waiting {
    ticket: Option<Ticket>,
    work: Work,
    until: Until,
    answer: Answer<TurnEnd>,
}

/// Starts a session's driver. It ends when it is closed or the last handle goes; `cut` stops its turn.
pub(crate) fn start(
    opening: Opening,
    kit: Arc<Kit>,
    client: Client,
    cut: CancellationToken,
    turns: TaskTracker,
) -> SessionHandle {
    let (sender, inbox) = mpsc::channel(INBOX_LEN);
    let Opening { id, place, standing, mut talk, compactions, bill, variables, .. } = opening;
    open::shorten(&mut talk.transcript, compactions);
    let turn = watch::Sender::new(CancellationToken::new());
    let gone = CancellationToken::new();
    let handle =
        SessionHandle { id: id.clone(), inbox: sender.clone(), turn: turn.subscribe(), gone: gone.clone() };
    let depth = children::depth(&kit, &client);
    let door = kit.settings().tree_limits.may_start(depth).then(Door::default);
    let workspace = Arc::new(open::workspace(&kit, &place));
    workspace.set_variables(variables);
    let toolbox = Arc::new(Toolbox::open(&kit, (&client, &id), (&place, &workspace), door.as_ref()));
    let stock = Stock::start(kit.clone(), client.clone(), id.clone(), (place.cwd.clone(), toolbox.clone()));
    let standing = watch::Sender::new(standing);
    let around = Surroundings { place: place.clone(), workspace: workspace.clone(), stock: stock.clone() };
    let surroundings = watch::Sender::new(around);
    let children = Children::new(
        (kit.clone(), client.clone(), id.clone()),
        (standing.subscribe(), surroundings.subscribe()),
        sender.downgrade(),
        cut.child_token(),
    );
    children.book().bill_is(bill);
    if let Some(door) = &door {
        door.open(&children);
    }
    let is_new = matches!(talk.on_disk, OnDisk::Coming(_));
    let session = Session {
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
        state: State::Idle(Box::new(talk)),
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
            session.look_for_mail();
            recall(&session.kit, (&session.client, &session.id)).await;
        }
        session.run().await;
    };
    tokio::spawn(life.instrument(span));
    handle
}

/// Takes up the workflow that a session was in.
async fn recall(kit: &Kit, (client, id): (&Client, &SessionId)) {
    let recalled = speckit::recall(kit, (client, id));
    if tokio::time::timeout(RECALL_WAIT_MAX, recalled).await.is_err() {
        tracing::warn!(session = %id, "the disk of its project does not answer");
    }
}

impl Session {
    async fn run(mut self) {
        self.open_stock();
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
                    answer.give(self.set_option(&option, &value).await);
                }
                SessionMsg::Reopen { place, answer } => {
                    self.move_to(place);
                    answer.give(Ok(self.options()));
                    self.open_stock();
                }
                SessionMsg::Close { answer } => {
                    self.closing.push(answer);
                    self.on_cancel();
                }
                SessionMsg::TurnEnded { ended } => self.on_turn_ended(*ended),
            }
            if !self.closing.is_empty() && matches!(self.state, State::Idle(_)) {
                break;
            }
        }
        self.end().await;
    }

    /// Gives everything back, then says so.
    async fn end(mut self) {
        // Whoever deletes it next must find it.
        self.arrive().await;
        let Self { closing, toolbox, stock, workspace, children, surroundings, mut inbox, id, .. } = self;
        children.end().await;
        drop((toolbox, stock, workspace, children, surroundings));
        inbox.close();
        while let Ok(msg) = inbox.try_recv() {
            msg.refuse(&id);
        }
        for answer in closing {
            answer.give(Ok(()));
        }
    }

    /// Waits until a new session is on disk, where what is changed of it goes.
    async fn arrive(&mut self) {
        let State::Idle(talk) = &mut self.state else { return };
        match std::mem::take(&mut talk.on_disk) {
            OnDisk::Coming(coming) => {
                if tokio::time::timeout(ARRIVES_WITHIN, coming.over()).await.is_err() {
                    tracing::warn!(session = %self.id, "the session's folders do not answer");
                    talk.on_disk = OnDisk::Coming(coming);
                    return;
                }
                match coming.arrived(&self.kit, &self.id, &self.standing.subscribe()).await {
                    Ok(system_prompt) => {
                        talk.transcript = Transcript::new(system_prompt);
                        talk.on_disk = OnDisk::Same;
                    }
                    Err(failure) => {
                        tracing::info!(%failure, "a session is not stored yet; its first prompt says so");
                    }
                }
            }
            on_disk @ (OnDisk::Same | OnDisk::Unsure) => talk.on_disk = on_disk,
        }
    }

    async fn on_prompt(
        &mut self,
        ticket: Ticket,
        (said, until): (Vec<Spoken>, Until),
        answer: Answer<TurnEnd>,
    ) {
        if !self.closing.is_empty() {
            return answer.give(Err(open::not_found(&self.id)));
        }
        let mut work = None;
        if let Some(asked) = speckit::read(&said) {
            let work = Work::Workflow { wanted: speckit::Wanted::Command(asked), said };
            return self.begin_or_wait(Waiting { ticket: Some(ticket), work, until, answer });
        }
        if let [Spoken::Part(Part::Text(text))] = said.as_slice() {
            let command = commands::parse(text);
            if let Some(Command::Undo(Some(how))) = command
                && matches!(self.state, State::Idle(_))
            {
                work = Some(Work::Undo { message: self.kit.next_note(), how });
            } else if let Some(command) = command {
                let said = self.run_command(&command).await;
                return self.note(said, answer);
            } else if let Some(chore) = commands::chore(text) {
                work = Some(Work::Chore { chore, message: self.kit.next_note() });
            }
        }
        let work = work.unwrap_or(Work::Prompt(said));
        self.begin_or_wait(Waiting { ticket: Some(ticket), work, until, answer });
    }

    /// Starts a turn, or has its prompt wait for the one that runs.
    fn begin_or_wait(&mut self, prompt: Waiting) {
        match &mut self.state {
            State::Idle(talk) => {
                let talk = std::mem::take(&mut **talk);
                self.start_turn(talk, prompt);
            }
            State::Running { .. } if self.waiting.len() < WAITING_MAX => self.waiting.push_back(prompt),
            State::Running { .. } => prompt.answer.give(Err(too_many())),
        }
    }

    fn on_cancel(&mut self) {
        self.turn.borrow().cancel();
        self.children.cancel_all();
        for prompt in self.waiting.drain(..) {
            prompt.answer.give(Ok(TurnEnd::Cancelled));
        }
    }

    fn on_withdraw(&mut self, withdrawn: Ticket) {
        match &self.state {
            State::Running { ticket: Some(ticket), .. } if *ticket == withdrawn => {
                self.turn.borrow().cancel();
            }
            State::Running { .. } | State::Idle(_) => {
                let place = self.waiting.iter().position(|prompt| prompt.ticket == Some(withdrawn));
                if let Some(prompt) = place.and_then(|place| self.waiting.remove(place)) {
                    prompt.answer.give(Ok(TurnEnd::Cancelled));
                }
            }
        }
    }

    fn on_steer(&mut self, said: Vec<Spoken>, answer: Answer<Steered>) {
        let words = MoreWords { said, answer };
        let words = match &self.state {
            State::Running { more_words, .. } => match more_words.try_send(words) {
                Ok(()) => return,
                Err(mpsc::error::TrySendError::Closed(words)) => words,
                Err(mpsc::error::TrySendError::Full(words)) => {
                    let why = "Too many words wait for this turn. Wait until the model has read them.";
                    return words.answer.give(Err(Failure::new(FailureKind::InvalidValue, why)));
                }
            },
            State::Idle(_) => words,
        };
        self.start_own_turn(words);
    }

    /// Starts a turn that nobody asked for with a prompt; its failure is told as a notice.
    fn start_own_turn(&mut self, words: MoreWords) {
        if self.waiting.len() >= WAITING_MAX {
            return words.answer.give(Err(too_many()));
        }
        words.answer.give(Ok(Steered::StartedNewTurn));
        let (client, id) = (self.client.clone(), self.id.clone());
        let answer = Answer::new(move |end| {
            if let Ok(TurnEnd::Failed(failure)) | Err(failure) = end {
                client.tell(&id, Update::Notice(failure.sentence));
            }
        });
        let (work, until) = (Work::Prompt(words.said), Until::Answered);
        self.begin_or_wait(Waiting { ticket: None, work, until, answer });
    }

    fn start_turn(&mut self, talk: Conversation, prompt: Waiting) {
        let Waiting { ticket, work, until, answer } = prompt;
        let cut = self.cut.child_token();
        self.turn.send_replace(cut.clone());
        let (words, more_words) = mpsc::channel(WAITING_MAX);
        self.state = State::Running { ticket, more_words: words };
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
                    (Conversation::default(), Err(failure), mpsc::channel(1).1)
                }
            };
            client.flushed(&id).await;
            let ended = Box::new(TurnEnded { talk, end, answer, more_words });
            match own.upgrade() {
                Some(own) => {
                    if own.send(SessionMsg::TurnEnded { ended }).await.is_err() {
                        tracing::debug!(session = %id, "the session ended before its turn");
                    }
                }
                None => ended.answer.give(ended.end),
            }
        });
    }

    fn on_turn_ended(&mut self, ended: TurnEnded) {
        let TurnEnded { talk, end, answer, mut more_words } = ended;
        let was_cut = matches!(end, Ok(TurnEnd::Cancelled));
        // What could not be done now is not tried again by itself: the next prompt finds the mail.
        let goes_on = !was_cut && !matches!(end, Ok(TurnEnd::Failed(_)) | Err(_));
        answer.give(end);
        self.state = State::Idle(Box::new(talk));
        while let Ok(words) = more_words.try_recv() {
            if was_cut {
                let why = "The turn was stopped before the model read this. Send it as a prompt.";
                words.answer.give(Err(Failure::new(FailureKind::InvalidValue, why)));
            } else {
                self.start_own_turn(words);
            }
        }
        if self.cut.is_cancelled() || !self.closing.is_empty() {
            // What waits would only be stored, never asked.
            self.on_cancel();
        }
        if let State::Idle(talk) = &mut self.state
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
    fn move_to(&mut self, place: Place) {
        if place == self.place {
            return;
        }
        if (&place.cwd, &place.more_roots) != (&self.place.cwd, &self.place.more_roots) {
            let workspace = open::workspace(&self.kit, &place);
            self.workspace = Arc::new(workspace.with_jobs_of(&self.workspace));
        }
        let (told, within) = ((&self.client, &self.id), (&place, &*self.workspace));
        self.toolbox = Arc::new(Toolbox::open(&self.kit, told, within, self.door.as_ref()));
        let (kit, client, id) = (self.kit.clone(), self.client.clone(), self.id.clone());
        self.stock = Stock::start(kit, client, id, (place.cwd.clone(), self.toolbox.clone()));
        self.place = place;
        self.surroundings.send_replace(Surroundings {
            place: self.place.clone(),
            workspace: self.workspace.clone(),
            stock: self.stock.clone(),
        });
    }

    /// Takes in what the person trusts already, while they type.
    fn open_stock(&self) {
        let stock = self.stock.clone();
        tokio::spawn(async move { stock.open().await });
    }

    /// Answers a command: its words, then the end of its turn.
    fn note(&mut self, text: String, answer: Answer<TurnEnd>) {
        let message = self.kit.next_note();
        self.client.tell(&self.id, Update::Text { message, text });
        let (client, id) = (self.client.clone(), self.id.clone());
        self.turns.spawn(async move {
            client.flushed(&id).await;
            answer.give(Ok(TurnEnd::Done));
        });
    }

    fn options(&self) -> Options {
        open::options(&self.kit, &self.standing.borrow())
    }
}

fn too_many() -> Failure {
    let why = "Too many prompts wait in this session. Stop the turn or wait for it.";
    Failure::new(FailureKind::InvalidValue, why)
}
