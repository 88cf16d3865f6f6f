//! The driver of one session. Owns the inbox, the prompt queue and the settings; a running turn owns the session state
//! and returns it.

mod mail;
mod options;
mod parent_port;
pub(crate) mod start;
mod turn_queue;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crow_acp::{Client, PromptBlock, PromptId, PromptResult, ResponseSender, SessionLocation, TurnScope};
use crow_children::{ChildAgents, ChildAgentsCell};
use crow_core::{
    CommandInfo, ContentPart, SessionCommand, SessionConfigOptions, SessionId, SessionUpdate, TurnEnd,
    parse_context_command, parse_session_command, session_commands,
};
use crow_project::{GrantStore, ProjectConfigLoader};
use crow_tools::{Toolbox, Workspace};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::handle::{SessionMsg, SteeringInput};
use crate::live_replays::LiveReplays;
use crate::runtime::AgentRuntime;
use crate::session::parent_port::SessionEnvironment;
use crate::session_init;
use crate::session_settings::SessionSettings;
use crate::turn_context::{SessionState, StoredState};
use crate::turn_job::TurnWork;
use crate::workflow;

/// Time that opening a session waits for its project's directory, whose disk may not respond.
const RESTORE_WAIT_MAX: Duration = Duration::from_secs(1);

/// Time that closing a session waits for its directories, which are read before it is stored.
const STORE_WAIT_MAX: Duration = Duration::from_secs(5);

struct SessionDriver {
    id: SessionId,
    runtime: Arc<AgentRuntime>,
    client: Client,
    location: SessionLocation,
    workspace: Arc<Workspace>,
    toolbox: Arc<Toolbox>,
    config_loader: Arc<ProjectConfigLoader<AgentRuntime>>,
    children: Arc<ChildAgents>,
    grants: Arc<GrantStore<AgentRuntime>>,
    /// `None` if tasks are not available.
    children_cell: Option<ChildAgentsCell>,
    environment: watch::Sender<SessionEnvironment>,
    settings: watch::Sender<SessionSettings>,
    inbox: mpsc::Receiver<SessionMsg>,
    inbox_sender: mpsc::WeakSender<SessionMsg>,
    state: DriverState,
    queue: VecDeque<WaitingPrompt>,
    close_responders: Vec<ResponseSender<()>>,
    replays: LiveReplays,
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
    answer: ResponseSender<PromptResult>,
}

/// Returns the commands of every session: those about the session itself, then those of the workflow.
pub(crate) fn available_commands() -> Vec<CommandInfo> {
    session_commands().into_iter().chain(crow_workflow::available_commands()).collect()
}

impl SessionDriver {
    /// Restores the workflow step of a stored session, then announces what its tasks left.
    async fn resume_work(&mut self) {
        let restore = workflow::restore_workflow(&self.runtime, &self.client, &self.id);
        if tokio::time::timeout(RESTORE_WAIT_MAX, restore).await.is_err() {
            tracing::warn!(session = %self.id, "the disk of its project does not respond");
        }
        self.announce_pending_mail();
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
                    // A client that begins its view anew has none.
                    let commands = self.config_loader.offered_commands();
                    self.client.send_update(&self.id, SessionUpdate::Commands(commands));
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
                    Ok(context) => {
                        state.begin(context);
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
        answer: ResponseSender<PromptResult>,
    ) {
        if !self.close_responders.is_empty() {
            return answer.send(Err(crate::failures::session_not_open(&self.id)));
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

    /// Loads trusted project configuration in the background.
    fn load_project_config(&self) {
        let config_loader = self.config_loader.clone();
        tokio::spawn(async move { config_loader.load_trusted().await });
    }

    /// Sends the answer of a command, then the end of its turn.
    fn answer_command(&mut self, text: String, answer: ResponseSender<PromptResult>) {
        let message = self.runtime.next_message_id();
        self.client.send_update(&self.id, SessionUpdate::Text { message, text });
        let (client, id) = (self.client.clone(), self.id.clone());
        self.turns.spawn(async move {
            client.flush_updates(&id).await;
            answer.send(Ok(TurnEnd::Completed.into()));
        });
    }

    fn current_options(&self) -> SessionConfigOptions {
        session_init::session_options(&self.runtime, &self.settings.borrow())
    }
}
