//! Drives one child: waits for what happens to it, asks [`ChildMachine`] what that means, and carries out the steps. Owns
//! the child's process and its connection; everything else sends it a command. Decides nothing itself.

mod finish;
mod steps;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crow_acp::{AgentConnection, AgentProgram, Client, ClientEvent, LineTransport};
use crow_core::{AgentTransport, ChildAction, ChildEvent, ChildMachine, Mode, SessionId};
use crow_fleet::FarmPlace;
use crow_store::TaskLease;
use futures_util::future::BoxFuture;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::child_status::SharedChildStatus;
use crate::events::ChildEventHandler;
use crate::link::{AgentLink, ChildSessionStart, LinkEvent};
use crate::timers::ChildTimers;
use crate::turn::{ChildCommand, ChildTurn};
use crate::worktree::AgentWorktree;

/// The parameters of a child.
pub(crate) struct ChildParameters {
    pub(crate) task: SessionId,
    pub(crate) title: String,
    pub(crate) agent_name: String,
    pub(crate) transport: AgentTransport,
    /// Working directory of its session, perhaps on another machine.
    pub(crate) cwd: PathBuf,
    /// Working directory of its program.
    pub(crate) program_cwd: PathBuf,
    pub(crate) worktree: Option<AgentWorktree>,
    /// The place where its turn, which an earlier process began, goes on.
    pub(crate) place: Option<FarmPlace>,
    /// Cancelled when the end of its turn is stored, if that is its last one.
    pub(crate) end_stored: CancellationToken,
    /// Its agent has, or may have, a session from an earlier turn.
    pub(crate) has_stored_session: bool,
    /// Time that connecting to an address may take.
    pub(crate) connect_time_max: Duration,
}

/// The driver of one child.
pub(crate) struct ChildDriver {
    pub(crate) machine: ChildMachine,
    pub(crate) parameters: ChildParameters,
    pub(crate) event_handler: ChildEventHandler,
    pub(crate) commands: mpsc::Receiver<ChildCommand>,
    pub(crate) status: Arc<SharedChildStatus>,
    pub(crate) lease: Option<TaskLease>,
    /// Signals that another process may drive the task.
    pub(crate) stopped: Option<DropGuard>,
    pub(crate) start: Option<ChildSessionStart>,
    pub(crate) turn: Option<ChildTurn>,
    pub(crate) held: HeldState,
}

/// The state of a driver while its child runs.
#[derive(Default)]
pub(crate) struct HeldState {
    /// The step in progress.
    step: Option<BoxFuture<'static, StepResult>>,
    program: Option<Box<AgentProgram>>,
    agent: Option<AgentLink>,
    /// The name of the session at the agent.
    session: Option<SessionId>,
    /// The mode that the agent has.
    mode: Mode,
    timers: ChildTimers,
    /// The right to be idle.
    idle_slot: Option<OwnedSemaphorePermit>,
    /// The message that an event is about.
    message: Option<ClientEvent>,
    /// The command that an event is about.
    command: Option<ChildCommand>,
}

/// The result of a step.
enum StepResult {
    /// The program is started, or its address reached; the handshake follows.
    Started(LineTransport, Option<Box<AgentProgram>>),
    Connected(Box<AgentConnection>),
    SessionOpened(SessionId),
    Event(ChildEvent),
}

impl ChildDriver {
    /// Drives the child to its end, from the first steps on.
    pub(crate) async fn run(mut self, mut actions: Vec<ChildAction>) {
        loop {
            for action in actions {
                self.carry_out(action).await;
            }
            // Dropping a request rejects it.
            (self.held.message, self.held.command) = (None, None);
            if self.machine.has_ended() {
                return;
            }
            let event = self.next_event().await;
            actions = self.machine.handle_event(event);
        }
    }

    /// Waits for the next event.
    async fn next_event(&mut self) -> ChildEvent {
        loop {
            let interests = self.machine.interests();
            let Self { event_handler, commands, turn, held, .. } = self;
            let (shared, is_flooded, mode) =
                (event_handler.shared.clone(), event_handler.is_flooded(), held.mode);
            let result = tokio::select! {
                biased;
                () = wait_for_cancel(turn.as_ref()), if interests.interrupts => return ChildEvent::CancelRequested,
                () = std::future::ready(()), if interests.interrupts && is_flooded => {
                    return ChildEvent::RequestsExceeded;
                }
                () = shared.cancel.cancelled(), if interests.idle_ends => return ChildEvent::ParentClosed,
                timer = held.timers.wait_for_next() => return ChildEvent::TimerFired(timer),
                reason = shared.budget.wait_until_exhausted(), if interests.interrupts => {
                    return ChildEvent::BudgetExhausted(reason);
                }
                result = wait_for_step(&mut held.step) => result,
                event = next_link_event(held.agent.as_mut(), &shared.client, interests.idle_ends) => match event {
                    LinkEvent::Message(message) => {
                        held.message = Some(message);
                        return ChildEvent::MessageReceived;
                    }
                    LinkEvent::Failed(failure) => return ChildEvent::AgentFailed(failure),
                },
                Some(command) = commands.recv(), if interests.commands => return self.hold_command(command),
                mode = async { shared.session.wait_for_mode_change(mode).await }, if interests.mode => {
                    held.mode = mode;
                    return ChildEvent::ModeChanged;
                }
            };
            if let Some(event) = self.event_from_step(result) {
                return event;
            }
        }
    }

    /// Keeps the results of a step; returns its event unless another step follows.
    fn event_from_step(&mut self, result: StepResult) -> Option<ChildEvent> {
        match result {
            StepResult::Started(lines, program) => {
                self.held.program = program;
                self.begin_handshake(lines);
                None
            }
            StepResult::Connected(connection) => {
                if let Some(agent) = &mut self.held.agent {
                    agent.connection = Some(*connection);
                }
                Some(ChildEvent::Connected)
            }
            StepResult::SessionOpened(session) => {
                self.held.session = Some(session);
                Some(ChildEvent::SessionOpened)
            }
            StepResult::Event(event @ ChildEvent::ProgramEnded(_)) => match self.commands.try_recv() {
                // A command that was sent before the queue was closed comes first.
                Ok(command) => {
                    self.held.step = Some(Box::pin(std::future::ready(StepResult::Event(event))));
                    Some(self.hold_command(command))
                }
                Err(_) => Some(event),
            },
            StepResult::Event(event) => Some(event),
        }
    }

    /// Keeps a command until it is carried out or rejected.
    fn hold_command(&mut self, command: ChildCommand) -> ChildEvent {
        let event = match &command {
            ChildCommand::Turn(_) => {
                ChildEvent::TurnRequested { time_max: self.event_handler.shared.tree_limits().task_timeout }
            }
            ChildCommand::Steer { .. } => {
                let connection = self.held.agent.as_ref().and_then(|agent| agent.connection.as_ref());
                let is_supported = connection.is_some_and(|connection| connection.capabilities().steering);
                ChildEvent::SteeringRequested { is_supported }
            }
        };
        self.held.command = Some(command);
        event
    }
}

async fn wait_for_cancel(turn: Option<&ChildTurn>) {
    match turn {
        Some(turn) => turn.request.cancel.cancelled().await,
        None => std::future::pending().await,
    }
}

async fn wait_for_step(step: &mut Option<BoxFuture<'static, StepResult>>) -> StepResult {
    let Some(running) = step else { return std::future::pending().await };
    let result = running.await;
    *step = None;
    result
}

async fn next_link_event(agent: Option<&mut AgentLink>, client: &Client, is_idle: bool) -> LinkEvent {
    match agent {
        Some(agent) => agent.next(client, is_idle).await,
        None => std::future::pending().await,
    }
}
