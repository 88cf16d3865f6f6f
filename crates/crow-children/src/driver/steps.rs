//! Carries out the steps of a child. A step that takes time is kept as the step in progress; its end is an event.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crow_acp::{AcpClientCapabilities, AgentCommand, AgentConnection, ClientInfo, LineTransport, TurnScope};
use crow_core::{AgentTransport, ChildAction, ChildEvent, ContentPart, NatsServer, ProgramEnding, SessionId};
use crow_fleet::{FarmPlace, FarmTask, ResumedFarmTask, SentCode};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::driver::{ChildDriver, StepResult};
use crate::events::ChildKind;
use crate::kept_place::TaskPlaceKeeper;
use crate::link::{AgentLink, SessionTarget, child_stop_reason, end_program, open_session};
use crate::record::ChildRecorder;
use crate::shared::DEPTH_VARIABLE;
use crate::turn::{ChildCommand, ChildTurn};
use crate::view::ChildView;
use crate::worktree::AgentWorktree;

/// Time that a parent waits for a child to reject a steering message; accepting it can take until the child's next
/// step.
const STEER_WAIT_MAX: Duration = Duration::from_secs(2);

impl ChildDriver {
    pub(super) async fn carry_out(&mut self, action: ChildAction) {
        match action {
            ChildAction::Connect => self.connect(),
            ChildAction::OpenSession => self.open_session(),
            ChildAction::BeginTurn => self.begin_turn(),
            ChildAction::PrepareTurn => self.prepare_turn().await,
            ChildAction::SendPrompt => self.send_prompt(),
            ChildAction::CancelPrompt => self.cancel_prompt().await,
            ChildAction::HandleMessage => self.handle_message(),
            ChildAction::HandleQueuedMessages => {
                while let Some(message) = self.held.agent.as_mut().and_then(AgentLink::try_next_message) {
                    self.held.message = Some(message);
                    self.handle_message();
                }
            }
            ChildAction::CountMessage => {
                if let Some(message) = self.held.message.take() {
                    self.event_handler.handle_idle_event(&message);
                }
            }
            ChildAction::CountTokens(n_tokens) => self.event_handler.record_spent(n_tokens),
            ChildAction::SendSteering => self.send_steering(),
            ChildAction::RejectSteering(reason) => {
                if let Some(ChildCommand::Steer { answer, .. }) = self.held.command.take() {
                    // The requester may have been cancelled meanwhile.
                    drop(answer.send(Err(reason.to_owned())));
                }
            }
            // Dropping the request releases its slot, and the sender sees that no turn has started.
            ChildAction::RejectTurn => self.held.command = None,
            ChildAction::SetMode => self.send_mode(),
            ChildAction::StartTimer(timer, time) => self.held.timers.start(timer, time),
            ChildAction::FinishTurn(end) => self.finish_turn(end).await,
            ChildAction::WaitForTurn => self.wait_for_turn(),
            ChildAction::CloseCommands => self.commands.close(),
            ChildAction::EndProgram(ending) => self.end_program(ending),
            ChildAction::Release => self.release().await,
        }
    }

    fn set_step(&mut self, step: impl Future<Output = StepResult> + Send + 'static) {
        self.held.step = Some(Box::pin(step));
    }

    fn set_event(&mut self, event: ChildEvent) {
        self.set_step(std::future::ready(StepResult::Event(event)));
    }

    /// Starts the child's program, or connects to its address.
    fn connect(&mut self) {
        let shared = self.event_handler.shared.clone();
        let failed = |reason: String| StepResult::Event(ChildEvent::DriverFailed(reason));
        match &self.parameters.transport {
            AgentTransport::Program { command, args, env } => {
                let command = self.agent_command(command, args, env);
                let agent_name = self.parameters.agent_name.clone();
                self.set_step(async move {
                    match shared.launcher.start_program(&agent_name, command).await {
                        Ok((lines, program)) => StepResult::Started(lines, program.map(Box::new)),
                        Err(reason) => failed(format!("it could not be started: {reason}")),
                    }
                });
            }
            AgentTransport::Socket { url, headers } => {
                let (url, headers) = (url.clone(), headers.clone());
                let deadline = Instant::now() + self.parameters.connect_time_max;
                self.set_step(async move {
                    // A child leaves while this process goes on; nothing waits for it.
                    let tasks = TaskTracker::new();
                    match crow_acp::connect_socket(&url, &headers, deadline, &tasks).await {
                        Ok(lines) => StepResult::Started(lines, None),
                        Err(error) => failed(format!("it could not be reached: {error}")),
                    }
                });
            }
            AgentTransport::Farm(address) => {
                let address = address.clone();
                if let Some(place) = self.parameters.place.clone() {
                    let lines = self.resume_far_task(place, address.server);
                    return self.set_step(std::future::ready(StepResult::Started(lines, None)));
                }
                let task = self.new_farm_task();
                self.set_step(async move {
                    match shared.farms.open_task(&address, task).await {
                        Ok(lines) => StepResult::Started(lines, None),
                        Err(reason) => failed(format!("its queue could not be reached: {reason}")),
                    }
                });
            }
        }
    }

    fn new_farm_task(&self) -> FarmTask {
        let shared = &self.event_handler.shared;
        FarmTask {
            mode: shared.session.settings().mode,
            depth: shared.depth + 1,
            version: env!("CARGO_PKG_VERSION"),
            keeper: Some(self.place_keeper()),
            code: self.sent_code().cloned(),
        }
    }

    fn place_keeper(&self) -> Arc<TaskPlaceKeeper> {
        Arc::new(TaskPlaceKeeper {
            store: self.event_handler.shared.store.clone(),
            task: self.parameters.task.clone(),
            call: self.event_handler.parent_call.call,
            repository: self.sent_code().map(|code| (&code.head).into()),
            end_stored: self.parameters.end_stored.clone(),
        })
    }

    /// Returns the code that the task works on elsewhere.
    fn sent_code(&self) -> Option<&SentCode> {
        self.parameters.worktree.as_ref().and_then(AgentWorktree::sent_code)
    }

    /// Takes up a task again at a server that may be away.
    fn resume_far_task(&self, place: FarmPlace, server: NatsServer) -> LineTransport {
        let shared = self.event_handler.shared.clone();
        let name = format!("task {} ({})", self.parameters.task, self.parameters.title);
        let notified = shared.clone();
        let on_unreachable = Box::new(move |reason: &str| {
            notified.show_notice(format!(
                "The server of {name} cannot be reached: {reason}. Crow keeps trying until the task is cancelled."
            ));
        });
        let (version, keeper) = (env!("CARGO_PKG_VERSION"), self.place_keeper());
        let code = self.sent_code().cloned();
        let resumed = ResumedFarmTask { place, server, version, keeper, code, on_unreachable };
        shared.farms.resume_task(resumed)
    }

    fn agent_command(&self, command: &str, args: &[String], env: &[(String, String)]) -> AgentCommand {
        let shared = &self.event_handler.shared;
        let depth = (DEPTH_VARIABLE.to_owned(), (shared.depth + 1).to_string());
        let is_configured = |name: &String| env.iter().any(|(key, _)| key == name);
        let variables = shared.session.workspace().variables();
        let removed_variables = match self.event_handler.kind {
            ChildKind::Crow => Vec::new(),
            ChildKind::External => shared.session.agents_config().secret_variables,
        };
        AgentCommand {
            program: command.to_owned(),
            args: args.to_vec(),
            cwd: self.parameters.program_cwd.clone(),
            env: variables.into_iter().chain(env.iter().cloned()).chain([depth]).collect(),
            env_removed: removed_variables.into_iter().filter(|name| !is_configured(name)).collect(),
        }
    }

    pub(super) fn begin_handshake(&mut self, lines: LineTransport) {
        let client_info = ClientInfo {
            name: "crow-cli",
            version: env!("CARGO_PKG_VERSION"),
            capabilities: self.client_capabilities(),
            agent_name: None,
            wants_raw_updates: self.event_handler.shared.client.capabilities().children,
        };
        let (agent, connected) = AgentLink::new(lines, client_info);
        self.held.agent = Some(agent);
        self.set_step(async move {
            match connected.await {
                Ok(connection) => StepResult::Connected(Box::new(connection)),
                // The link reports why.
                Err(_) => std::future::pending().await,
            }
        });
    }

    /// Returns the client capabilities that are declared to the child.
    fn client_capabilities(&self) -> AcpClientCapabilities {
        let users_client = self.event_handler.shared.client.capabilities();
        let client = match self.event_handler.parent_client {
            Some(_) => users_client,
            None => AcpClientCapabilities::default(),
        };
        let AcpClientCapabilities { reads_files, writes_files, terminals, .. } = client;
        // The sessions of another agent may have any names, those of others as well.
        let shows_children = self.event_handler.kind == ChildKind::Crow && users_client.children;
        AcpClientCapabilities {
            reads_files,
            writes_files,
            terminals,
            children: shows_children,
            forms: users_client.forms,
            tree_depth: Some(self.event_handler.shared.depth + 1),
            ..AcpClientCapabilities::default()
        }
    }

    /// Returns the connection and the name of the session, once both exist.
    fn open_connection(&self) -> Option<(AgentConnection, SessionId)> {
        let connection = self.held.agent.as_ref()?.connection.clone()?;
        Some((connection, self.held.session.clone()?))
    }

    fn open_session(&mut self) {
        let connection = self.held.agent.as_ref().and_then(|agent| agent.connection.clone());
        let (Some(connection), Some(start)) = (connection, self.start.take()) else { return };
        let target = SessionTarget {
            task: self.parameters.task.clone(),
            cwd: self.parameters.cwd.clone(),
            store: self.event_handler.shared.store.clone(),
        };
        self.set_step(async move {
            match open_session(connection, target, start).await {
                Ok(session) => StepResult::SessionOpened(session),
                Err(failure) => StepResult::Event(ChildEvent::AgentFailed(failure)),
            }
        });
    }

    /// Takes over the requested turn. From here on it is always finished properly.
    fn begin_turn(&mut self) {
        self.event_handler.approvals.end_turn();
        let Some(ChildCommand::Turn(request)) = self.held.command.take() else { return };
        self.held.idle_slot = None;
        *self.event_handler.view.lock().unwrap_or_else(PoisonError::into_inner) = ChildView::default();
        self.event_handler.n_turn_tokens = 0;
        self.event_handler.parent_call = request.parent_call.clone();
        self.turn = Some(ChildTurn::new(*request, false));
        self.event_handler.send_child_state(true);
    }

    /// Stores the beginning of the turn, then sets the mode of a child that is Crow.
    async fn prepare_turn(&mut self) {
        if let Err(reason) = self.store_turn().await {
            return self.set_event(ChildEvent::DriverFailed(reason));
        }
        self.held.mode = self.event_handler.shared.session.settings().mode;
        let crow_connection = self.open_connection().filter(|_| self.event_handler.kind == ChildKind::Crow);
        let Some((connection, session)) = crow_connection else {
            return self.set_event(ChildEvent::TurnPrepared);
        };
        let mode = self.held.mode;
        self.set_step(async move {
            StepResult::Event(match connection.set_option(&session, "mode", mode.as_str()).await {
                Ok(_) => ChildEvent::TurnPrepared,
                Err(failure) => ChildEvent::AgentFailed(failure),
            })
        });
    }

    /// Stores the beginning of the turn, and the prompt of an external agent; Crow stores its own.
    async fn store_turn(&mut self) -> Result<(), String> {
        let shared = &self.event_handler.shared;
        let (Some(turn), Some(lease)) = (&mut self.turn, &self.lease) else { return Ok(()) };
        if !std::mem::replace(&mut turn.is_stored, true) {
            let begin_result = shared.store.begin_task(lease, &self.parameters.title, shared.session.now());
            begin_result.await.map_err(|error| error.to_string())?;
        }
        if self.parameters.place.is_some() {
            let (recorder, said) = ChildRecorder::resume(shared, &self.parameters.task)
                .await
                .map_err(|error| error.to_string())?;
            self.event_handler.recorder = Some(recorder);
            self.event_handler.restore_text(said);
        } else if self.event_handler.kind == ChildKind::External {
            let recorder = ChildRecorder::begin(shared, &self.parameters.task, &turn.request.text).await;
            self.event_handler.recorder = Some(recorder.map_err(|error| error.to_string())?);
        }
        Ok(())
    }

    fn send_prompt(&mut self) {
        let (Some((connection, session)), Some(turn)) = (self.open_connection(), &self.turn) else { return };
        let prompt = vec![ContentPart::Text(turn.request.text.clone())];
        // Crow reports all that is spent below it in its updates.
        let is_counted = self.event_handler.kind == ChildKind::External;
        self.set_step(async move {
            StepResult::Event(match connection.send_prompt(&session, prompt, TurnScope::WithTasks).await {
                Ok(outcome) => ChildEvent::PromptEnded {
                    stop_reason: child_stop_reason(outcome.stop_reason),
                    n_tokens: outcome.tokens_spent.filter(|_| is_counted),
                },
                Err(failure) => ChildEvent::AgentFailed(failure),
            })
        });
    }

    async fn cancel_prompt(&mut self) {
        if let Some((connection, session)) = self.open_connection() {
            connection.cancel_turn(&session);
        }
        if let Some(turn) = &self.turn {
            turn.questions.cancel();
        }
        let (shared, task) = (&self.event_handler.shared, &self.parameters.task);
        // A later process would give the task again, as one that its queue has lost.
        if self.event_handler.is_farm
            && let Err(error) = shared.store.forget_task_place(task).await
        {
            tracing::warn!(%error, %task, "a later process may take up a cancelled task again");
        }
    }

    fn handle_message(&mut self) {
        let questions = self.turn.as_ref().map_or_else(CancellationToken::new, |turn| turn.questions.clone());
        if let Some(message) = self.held.message.take() {
            self.event_handler.handle_event(message, &questions);
        }
    }

    fn send_steering(&mut self) {
        let Some(ChildCommand::Steer { text, answer }) = self.held.command.take() else { return };
        if let Some((connection, session)) = self.open_connection() {
            tokio::spawn(steer_child(connection, session, text, answer));
        }
    }

    /// Sets the mode of a child that is Crow to that of its parent.
    fn send_mode(&self) {
        let Some((connection, session)) = self.open_connection() else { return };
        let mode = self.held.mode;
        tokio::spawn(async move {
            if let Err(failure) = connection.set_option(&session, "mode", mode.as_str()).await {
                tracing::warn!(%failure, "a child did not change its mode");
            }
        });
    }

    /// Takes an idle slot. A child without one ends, and is started again when it is needed.
    fn wait_for_turn(&mut self) {
        match self.event_handler.shared.idle_slots.clone().try_acquire_owned() {
            Ok(slot) => self.held.idle_slot = Some(slot),
            Err(_) => self.set_event(ChildEvent::IdleSlotMissing),
        }
    }

    /// Closes the connection, then ends the program. A step in progress is dropped.
    fn end_program(&mut self, ending: ProgramEnding) {
        self.held.idle_slot = None;
        let (agent, program) = (self.held.agent.take(), self.held.program.take().map(|program| *program));
        self.set_step(async move {
            if let Some(agent) = agent {
                agent.close().await;
            }
            StepResult::Event(ChildEvent::ProgramEnded(end_program(program, ending).await))
        });
    }

    /// Releases the task, so that another process may drive it.
    async fn release(&mut self) {
        if let Some(lease) = self.lease.take() {
            self.event_handler.shared.store.release_task_lease(lease).await;
        }
        self.stopped = None;
    }
}

/// Sends a steering message into the running turn.
async fn steer_child(
    connection: AgentConnection,
    session: SessionId,
    text: String,
    answer: oneshot::Sender<Result<(), String>>,
) {
    let steering = connection.send_steering(&session, &text);
    tokio::pin!(steering);
    let result = timeout(STEER_WAIT_MAX, &mut steering).await;
    let is_pending = result.is_err();
    let assume_accepted = |_| Ok(());
    let result = result.map_or_else(assume_accepted, |result| result.map_err(|failure| failure.message));
    // The requester may have been cancelled meanwhile.
    drop(answer.send(result));
    if is_pending && let Err(failure) = steering.await {
        tracing::info!(%failure, "a child rejected a steering message");
    }
}
