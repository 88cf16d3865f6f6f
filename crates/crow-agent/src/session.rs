//! The driver of one session. Owns the inbox, the prompt queue and the settings; a running turn owns the session state
//! and returns it.

mod mail;
mod options;
mod parent_port;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crow_acp::{Client, PromptBlock, PromptId, ResponseSender, SessionLocation, SteerOutcome, TurnScope};
use crow_children::{ChildAgents, ChildAgentsCell, ChildAgentsInit};
use crow_core::{
    ChildTimes, CommandInfo, ContentPart, Failure, FailureKind, SessionCommand, SessionConfigOptions,
    SessionId, SessionUpdate, Transcript, TurnEnd, parse_context_command, parse_session_command,
    session_commands, to_sentence,
};
use crow_tools::Workspace;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use crate::approvals::GrantStore;
use crate::builtin_tools;
use crate::config_loader::{ConfigLoaderInit, ProjectConfigLoader};
use crate::handle::{FinishedTurn, INBOX_LEN, SessionHandle, SessionMsg, SteeringInput};
use crate::runtime::AgentRuntime;
use crate::session::parent_port::{ParentSessionPort, SessionEnvironment};
use crate::session_init::{self, SessionInit};
use crate::session_settings::SessionSettings;
use crate::stored_session;
use crate::toolbox::{Toolbox, ToolboxInit};
use crate::turn_context::{SessionState, StoredState};
use crate::turn_job::{TurnJob, TurnWork};
use crate::workflow;

/// Time that opening a session waits for its project's directory, whose disk may not respond.
const RESTORE_WAIT_MAX: Duration = Duration::from_secs(1);

/// Time that closing a session waits for its directories, which are read before it is stored.
const STORE_WAIT_MAX: Duration = Duration::from_secs(5);

/// Prompts that may wait behind a turn: people type them.
const QUEUE_LEN_MAX: usize = 16;

struct SessionDriver {
    id: SessionId,
    runtime: Arc<AgentRuntime>,
    client: Client,
    location: SessionLocation,
    workspace: Arc<Workspace>,
    toolbox: Arc<Toolbox>,
    config_loader: Arc<ProjectConfigLoader>,
    children: Arc<ChildAgents>,
    grants: Arc<GrantStore>,
    /// `None` if tasks are not available.
    children_cell: Option<ChildAgentsCell>,
    environment: watch::Sender<SessionEnvironment>,
    settings: watch::Sender<SessionSettings>,
    inbox: mpsc::Receiver<SessionMsg>,
    inbox_sender: mpsc::WeakSender<SessionMsg>,
    state: DriverState,
    queue: VecDeque<WaitingPrompt>,
    close_responders: Vec<ResponseSender<()>>,
    /// Cancels the running turn.
    turn_cancel: watch::Sender<CancellationToken>,
    cancel: CancellationToken,
    turns: TaskTracker,
}

enum DriverState {
    Idle(Box<SessionState>),
    Running { prompt_id: Option<PromptId>, steering: mpsc::Sender<SteeringInput> },
}

/// A prompt that waits behind a turn; it has no id if the client does not wait for its end.
struct WaitingPrompt {
    prompt_id: Option<PromptId>,
    work: TurnWork,
    turn_scope: TurnScope,
    answer: ResponseSender<TurnEnd>,
}

/// The ends of a driver's channels that the session's handle does not have.
struct DriverChannels {
    inbox: mpsc::Receiver<SessionMsg>,
    inbox_sender: mpsc::WeakSender<SessionMsg>,
    turn_cancel: watch::Sender<CancellationToken>,
    cancel: CancellationToken,
    turns: TaskTracker,
}

/// Returns the commands of every session: those about the session itself, then those of the workflow.
pub(crate) fn available_commands() -> Vec<CommandInfo> {
    session_commands().into_iter().chain(crow_workflow::available_commands()).collect()
}

/// Starts the project configuration of a session in a directory.
fn start_config_loader(
    runtime: &Arc<AgentRuntime>,
    client: &Client,
    session: &SessionId,
    cwd: &Path,
    toolbox: &Arc<Toolbox>,
) -> Arc<ProjectConfigLoader> {
    ProjectConfigLoader::start(ConfigLoaderInit {
        runtime: runtime.clone(),
        client: client.clone(),
        session: session.clone(),
        cwd: cwd.to_owned(),
        toolbox: toolbox.clone(),
        builtin_commands: available_commands(),
    })
}

/// Creates the set of children of a session, which is empty.
fn create_children(
    session: ParentSessionPort,
    client: &Client,
    depth: u32,
    cancel: CancellationToken,
) -> Arc<ChildAgents> {
    ChildAgents::new(ChildAgentsInit {
        launcher: Arc::new(session.runtime.launcher.clone()),
        store: session.runtime.store.clone(),
        client: client.clone(),
        parent: session.session.clone(),
        depth,
        times: ChildTimes::default(),
        cancel,
        session: Arc::new(session),
    })
}

fn build_driver(
    init: SessionInit,
    runtime: Arc<AgentRuntime>,
    client: Client,
    channels: DriverChannels,
) -> SessionDriver {
    let SessionInit { id, location, settings, mut state, compactions, usage, variables, .. } = init;
    let DriverChannels { inbox, inbox_sender, turn_cancel, cancel, turns } = channels;
    stored_session::apply_latest_compaction(&mut state.transcript, compactions);
    let depth = runtime.tree_depth(&client);
    let children_cell = runtime.config().tree_limits.may_start(depth).then(ChildAgentsCell::default);
    let workspace = Arc::new(session_init::session_workspace(&runtime, &location));
    workspace.set_variables(variables);
    let toolbox = Arc::new(Toolbox::open(ToolboxInit {
        runtime: &runtime,
        client: &client,
        session: &id,
        location: &location,
        workspace: &workspace,
        base_tools: builtin_tools::session_tools(&runtime, &id, children_cell.as_ref()),
    }));
    let config_loader = start_config_loader(&runtime, &client, &id, &location.cwd, &toolbox);
    let settings = watch::Sender::new(settings);
    let environment = watch::Sender::new(SessionEnvironment {
        workspace: workspace.clone(),
        config_loader: config_loader.clone(),
    });
    let is_child = client.capabilities().tree_depth.is_some();
    let grants = Arc::new(GrantStore::new(runtime.clone(), id.clone(), is_child));
    let port = ParentSessionPort {
        session: id.clone(),
        runtime: runtime.clone(),
        settings: settings.subscribe(),
        environment: environment.subscribe(),
        grants: grants.clone(),
        inbox_sender: inbox_sender.clone(),
    };
    let children = create_children(port, &client, depth, cancel.child_token());
    children.tree_budget().set_session_usage(usage);
    if let Some(children_cell) = &children_cell {
        children_cell.set_children(&children);
    }
    SessionDriver {
        workspace,
        toolbox,
        config_loader,
        children,
        grants,
        children_cell,
        environment,
        id,
        runtime,
        client,
        location,
        settings,
        inbox,
        inbox_sender,
        state: DriverState::Idle(Box::new(state)),
        queue: VecDeque::new(),
        close_responders: Vec::new(),
        turn_cancel,
        cancel,
        turns,
    }
}

/// Starts a session's driver. It ends when it is closed or the last handle is dropped; `cancel` stops its turn.
pub(crate) fn start_session(
    init: SessionInit,
    runtime: Arc<AgentRuntime>,
    client: Client,
    cancel: CancellationToken,
    turns: TaskTracker,
) -> SessionHandle {
    let (sender, inbox) = mpsc::channel(INBOX_LEN);
    let turn_cancel = watch::Sender::new(CancellationToken::new());
    let closed = CancellationToken::new();
    let handle = SessionHandle {
        id: init.id.clone(),
        inbox: sender.clone(),
        turn_cancel: turn_cancel.subscribe(),
        closed: closed.clone(),
    };
    let is_new = matches!(init.state.stored_state, StoredState::Pending(_));
    let inbox_sender = sender.downgrade();
    let channels = DriverChannels { inbox, inbox_sender, turn_cancel, cancel, turns };
    let mut session = build_driver(init, runtime, client, channels);
    let span = tracing::info_span!(target: crate::SESSION_SPAN, "session", session = %session.id);
    let life = async move {
        let _closed = closed.drop_guard();
        if !is_new {
            session.resume_work().await;
        }
        session.run().await;
    };
    tokio::spawn(life.instrument(span));
    handle
}

impl SessionDriver {
    /// Restores the mail and the workflow step of a stored session.
    async fn resume_work(&mut self) {
        self.announce_pending_mail();
        let restore = workflow::restore_workflow(&self.runtime, &self.client, &self.id);
        if tokio::time::timeout(RESTORE_WAIT_MAX, restore).await.is_err() {
            tracing::warn!(session = %self.id, "the disk of its project does not respond");
        }
    }

    async fn run(mut self) {
        self.load_project_config();
        while let Some(msg) = self.inbox.recv().await {
            match msg {
                SessionMsg::Prompt { prompt_id, content, turn_scope, answer } => {
                    self.on_prompt(prompt_id, content, turn_scope, answer).await;
                }
                SessionMsg::Withdraw { prompt_id } => self.on_withdraw(prompt_id),
                SessionMsg::Steer { content, answer } => self.on_steer(content, answer),
                SessionMsg::Cancel => self.on_cancel(),
                SessionMsg::Mail => self.on_mail(),
                SessionMsg::SetOption { option, value, answer } => {
                    answer.send(self.set_option(&option, &value).await);
                }
                SessionMsg::Reopen { location, answer } => {
                    self.change_location(location);
                    answer.send(Ok(self.current_options()));
                    self.load_project_config();
                }
                SessionMsg::Close { answer } => {
                    self.close_responders.push(answer);
                    self.on_cancel();
                }
                SessionMsg::TurnEnded { finished } => self.on_turn_ended(*finished),
            }
            if !self.close_responders.is_empty() && matches!(self.state, DriverState::Idle(_)) {
                break;
            }
        }
        self.shut_down().await;
    }

    /// Releases everything, then confirms the close.
    async fn shut_down(mut self) {
        // A deletion that follows must find the session.
        self.wait_until_stored().await;
        let Self {
            close_responders: closing,
            toolbox,
            config_loader,
            workspace,
            children,
            environment,
            mut inbox,
            id,
            ..
        } = self;
        children.end_all().await;
        drop((toolbox, config_loader, workspace, children, environment));
        inbox.close();
        while let Ok(msg) = inbox.try_recv() {
            msg.reject(&id);
        }
        for answer in closing {
            answer.send(Ok(()));
        }
    }

    /// Waits until a new session is stored, so that changes to it can be stored.
    async fn wait_until_stored(&mut self) {
        let DriverState::Idle(state) = &mut self.state else { return };
        match std::mem::take(&mut state.stored_state) {
            StoredState::Pending(pending) => {
                if tokio::time::timeout(STORE_WAIT_MAX, pending.wait_until_settled()).await.is_err() {
                    tracing::warn!(session = %self.id, "the session's directories do not respond");
                    state.stored_state = StoredState::Pending(pending);
                    return;
                }
                match pending.wait_until_stored(&self.runtime, &self.id, &self.settings.subscribe()).await {
                    Ok(system_prompt) => {
                        state.transcript = Transcript::new(system_prompt);
                        state.stored_state = StoredState::Current;
                    }
                    Err(failure) => {
                        tracing::info!(%failure, "a session is not stored yet; its first prompt reports it");
                    }
                }
            }
            on_disk @ (StoredState::Current | StoredState::Unknown) => state.stored_state = on_disk,
        }
    }

    async fn on_prompt(
        &mut self,
        prompt_id: PromptId,
        content: Vec<PromptBlock>,
        turn_scope: TurnScope,
        answer: ResponseSender<TurnEnd>,
    ) {
        if !self.close_responders.is_empty() {
            return answer.send(Err(crate::failures::session_not_found(&self.id)));
        }
        let mut work = None;
        if let Some(request) = workflow::parse_workflow_command(&content) {
            let work = TurnWork::Workflow { request, content };
            return self.begin_or_wait(WaitingPrompt {
                prompt_id: Some(prompt_id),
                work,
                turn_scope,
                answer,
            });
        }
        if let [PromptBlock::Part(ContentPart::Text(text))] = content.as_slice() {
            let command = parse_session_command(text);
            if let Some(SessionCommand::Undo(Some(request))) = command
                && matches!(self.state, DriverState::Idle(_))
            {
                work = Some(TurnWork::Undo { message: self.runtime.next_message_id(), request });
            } else if let Some(command) = command {
                let answer_text = self.run_command(&command).await;
                return self.answer_command(answer_text, answer);
            } else if let Some(context_command) = parse_context_command(text) {
                work = Some(TurnWork::Context {
                    command: context_command,
                    message: self.runtime.next_message_id(),
                });
            }
        }
        let work = work.unwrap_or(TurnWork::Prompt(content));
        self.begin_or_wait(WaitingPrompt { prompt_id: Some(prompt_id), work, turn_scope, answer });
    }

    /// Starts a turn, or queues its prompt behind the running one.
    fn begin_or_wait(&mut self, prompt: WaitingPrompt) {
        match &mut self.state {
            DriverState::Idle(state) => {
                let state = std::mem::take(&mut **state);
                self.start_turn(state, prompt);
            }
            DriverState::Running { .. } if self.queue.len() < QUEUE_LEN_MAX => self.queue.push_back(prompt),
            DriverState::Running { .. } => prompt.answer.send(Err(queue_full_failure())),
        }
    }

    fn on_cancel(&mut self) {
        self.turn_cancel.borrow().cancel();
        self.children.cancel_all();
        for prompt in self.queue.drain(..) {
            prompt.answer.send(Ok(TurnEnd::Cancelled));
        }
    }

    fn on_withdraw(&mut self, withdrawn: PromptId) {
        match &self.state {
            DriverState::Running { prompt_id: Some(prompt_id), .. } if *prompt_id == withdrawn => {
                self.turn_cancel.borrow().cancel();
            }
            DriverState::Running { .. } | DriverState::Idle(_) => {
                let index = self.queue.iter().position(|prompt| prompt.prompt_id == Some(withdrawn));
                if let Some(prompt) = index.and_then(|index| self.queue.remove(index)) {
                    prompt.answer.send(Ok(TurnEnd::Cancelled));
                }
            }
        }
    }

    fn on_steer(&mut self, content: Vec<PromptBlock>, answer: ResponseSender<SteerOutcome>) {
        let input = SteeringInput { content, answer };
        let input = match &self.state {
            DriverState::Running { steering, .. } => match steering.try_send(input) {
                Ok(()) => return,
                Err(mpsc::error::TrySendError::Closed(input)) => input,
                Err(mpsc::error::TrySendError::Full(input)) => {
                    let reason = "too many messages wait for this turn; wait until the model has read them";
                    return input.answer.send(Err(Failure::new(FailureKind::InvalidValue, reason)));
                }
            },
            DriverState::Idle(_) => input,
        };
        self.start_own_turn(input);
    }

    /// Starts a turn from steering input; its failure is shown as a notice.
    fn start_own_turn(&mut self, input: SteeringInput) {
        if self.queue.len() >= QUEUE_LEN_MAX {
            return input.answer.send(Err(queue_full_failure()));
        }
        input.answer.send(Ok(SteerOutcome::StartedNewTurn));
        let (client, id) = (self.client.clone(), self.id.clone());
        let answer = ResponseSender::new(move |end| {
            if let Ok(TurnEnd::Failed(failure)) | Err(failure) = end {
                client.send_update(&id, SessionUpdate::Notice(to_sentence(&failure.message)));
            }
        });
        let (work, turn_scope) = (TurnWork::Prompt(input.content), TurnScope::WithoutTasks);
        self.begin_or_wait(WaitingPrompt { prompt_id: None, work, turn_scope, answer });
    }

    fn start_turn(&mut self, state: SessionState, prompt: WaitingPrompt) {
        let WaitingPrompt { prompt_id, work, turn_scope, answer } = prompt;
        let cancel = self.cancel.child_token();
        self.turn_cancel.send_replace(cancel.clone());
        let (input, steering) = mpsc::channel(QUEUE_LEN_MAX);
        self.state = DriverState::Running { prompt_id, steering: input };
        let job = TurnJob {
            id: self.id.clone(),
            runtime: self.runtime.clone(),
            client: self.client.clone(),
            location: self.location.clone(),
            workspace: self.workspace.clone(),
            toolbox: self.toolbox.clone(),
            config_loader: self.config_loader.clone(),
            children: self.children.clone(),
            grants: self.grants.clone(),
            settings: self.settings.subscribe(),
            turn_scope,
            cancel,
        };
        let inbox_sender = self.inbox_sender.clone();
        let (client, id) = (self.client.clone(), self.id.clone());
        let turn = self.turns.spawn(job.run(state, work, steering).in_current_span());
        self.turns.spawn(async move {
            let (state, end, steering) = match turn.await {
                Ok(finished) => finished,
                // A panicking turn loses its state; the next one reloads it from disk.
                Err(error) => {
                    let failure =
                        Failure::new(FailureKind::Internal, format!("the turn failed unexpectedly: {error}"));
                    (SessionState::default(), Err(failure), mpsc::channel(1).1)
                }
            };
            client.flush_updates(&id).await;
            let finished = Box::new(FinishedTurn { state, end, answer, steering });
            match inbox_sender.upgrade() {
                Some(inbox_sender) => {
                    if inbox_sender.send(SessionMsg::TurnEnded { finished }).await.is_err() {
                        tracing::debug!(session = %id, "the session ended before its turn");
                    }
                }
                None => finished.answer.send(finished.end),
            }
        });
    }

    fn on_turn_ended(&mut self, finished: FinishedTurn) {
        let FinishedTurn { state, end, answer, mut steering } = finished;
        let was_cancelled = matches!(end, Ok(TurnEnd::Cancelled));
        // A failed turn is not repeated automatically: the next prompt finds the mail.
        let is_success = !was_cancelled && !matches!(end, Ok(TurnEnd::Failed(_)) | Err(_));
        answer.send(end);
        self.state = DriverState::Idle(Box::new(state));
        while let Ok(input) = steering.try_recv() {
            if was_cancelled {
                let reason = "the turn was cancelled before the model read this; send it as a prompt";
                input.answer.send(Err(Failure::new(FailureKind::InvalidValue, reason)));
            } else {
                self.start_own_turn(input);
            }
        }
        if self.cancel.is_cancelled() || !self.close_responders.is_empty() {
            // Waiting prompts would be stored and never sent.
            self.on_cancel();
        }
        if let DriverState::Idle(state) = &mut self.state
            && let Some(prompt) = self.queue.pop_front()
        {
            let state = std::mem::take(&mut **state);
            self.start_turn(state, prompt);
        }
        if is_success {
            self.on_mail();
        }
    }

    /// Changes the directories of the session from the next turn on.
    fn change_location(&mut self, location: SessionLocation) {
        if location == self.location {
            return;
        }
        if (&location.cwd, &location.additional_directories)
            != (&self.location.cwd, &self.location.additional_directories)
        {
            let workspace = session_init::session_workspace(&self.runtime, &location);
            self.workspace = Arc::new(workspace.with_shared_jobs(&self.workspace));
        }
        self.toolbox = Arc::new(Toolbox::open(ToolboxInit {
            runtime: &self.runtime,
            client: &self.client,
            session: &self.id,
            location: &location,
            workspace: &self.workspace,
            base_tools: builtin_tools::session_tools(&self.runtime, &self.id, self.children_cell.as_ref()),
        }));
        self.config_loader =
            start_config_loader(&self.runtime, &self.client, &self.id, &location.cwd, &self.toolbox);
        self.location = location;
        self.environment.send_replace(SessionEnvironment {
            workspace: self.workspace.clone(),
            config_loader: self.config_loader.clone(),
        });
    }

    /// Loads trusted project configuration in the background.
    fn load_project_config(&self) {
        let config_loader = self.config_loader.clone();
        tokio::spawn(async move { config_loader.load_trusted().await });
    }

    /// Sends the answer of a command, then the end of its turn.
    fn answer_command(&mut self, text: String, answer: ResponseSender<TurnEnd>) {
        let message = self.runtime.next_message_id();
        self.client.send_update(&self.id, SessionUpdate::Text { message, text });
        let (client, id) = (self.client.clone(), self.id.clone());
        self.turns.spawn(async move {
            client.flush_updates(&id).await;
            answer.send(Ok(TurnEnd::Completed));
        });
    }

    fn current_options(&self) -> SessionConfigOptions {
        session_init::session_options(&self.runtime, &self.settings.borrow())
    }
}

fn queue_full_failure() -> Failure {
    let reason = "too many prompts wait in this session; cancel the turn or wait for it";
    Failure::new(FailureKind::InvalidValue, reason)
}
