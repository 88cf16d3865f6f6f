//! The state machine of one child, from its start to its end. Pure: a driver turns what happened into a [`ChildEvent`]
//! and carries out the [`ChildAction`]s. It knows no connection, process, store or clock.

mod end;
mod machine;

use std::time::Duration;

use crate::Failure;

pub use end::{ChildExit, ChildExitStatus, ChildOutcome, ChildStopReason, ChildTurnEnd};
pub use machine::ChildMachine;

/// Time that an agent may take to open a session after the handshake; one that contacts a server first takes seconds.
const OPEN_TIME_MAX: Duration = Duration::from_secs(60);

/// Time that a cancelled child may take to confirm. Together with the time of a kill, the whole tree ends within the
/// promised two seconds: all levels count from the same moment.
const STOP_TIME_MAX: Duration = Duration::from_secs(1);

/// Time that an idle child stays alive: follow-up prompts come within minutes or not at all.
const IDLE_TIME_MAX: Duration = Duration::from_secs(300);

/// The properties of a child on which its course depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChildProfile {
    /// True if it ends with its turn, because its directory is removed.
    pub ends_with_turn: bool,
    /// True if it gets the mode of its parent.
    pub follows_mode: bool,
    /// True if it replays an earlier session when it opens; that was seen when it happened.
    pub replays_session: bool,
    pub times: ChildTimes,
}

/// The limits of the times in which a child must do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChildTimes {
    pub open: Duration,
    pub stop: Duration,
    pub idle: Duration,
}

impl Default for ChildTimes {
    fn default() -> Self {
        Self { open: OPEN_TIME_MAX, stop: STOP_TIME_MAX, idle: IDLE_TIME_MAX }
    }
}

/// A time limit of a child. A child has one limit of its turn and one of its current phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildTimer {
    /// The limit of a turn.
    Turn,
    /// The limit for opening a session.
    Open,
    /// The limit for stopping after a cancellation.
    Stop,
    /// The limit for being idle.
    Idle,
}

/// Something that happened to a child.
#[derive(Debug, Clone, PartialEq)]
pub enum ChildEvent {
    /// The agent has answered the handshake.
    Connected,
    /// The agent has opened the session.
    SessionOpened,
    /// The turn is stored, and the agent has the mode of its parent.
    TurnPrepared,
    /// The agent has ended the turn.
    PromptEnded {
        stop_reason: ChildStopReason,
        /// The tokens that the agent has used, if it says so.
        n_tokens: Option<u64>,
    },
    /// The agent failed a request, or the connection broke.
    AgentFailed(Failure),
    /// The agent could not be started, or an error occurred on this side.
    DriverFailed(String),
    /// The agent sent an update or a request.
    MessageReceived,
    /// The agent sends more requests than can be answered.
    RequestsExceeded,
    /// The parent requests another turn.
    TurnRequested { time_max: Duration },
    /// The parent sends a message into the running turn.
    SteeringRequested { is_supported: bool },
    /// The parent cancels the turn.
    CancelRequested,
    /// The mode of the parent has changed.
    ModeChanged,
    /// The token limit of the tree is reached.
    BudgetExhausted(String),
    /// A time limit has passed.
    TimerFired(ChildTimer),
    /// Too many children are idle already.
    IdleSlotMissing,
    /// The session of the parent ends.
    ParentClosed,
    /// The connection is closed and the program, if there is one, has ended.
    ProgramEnded(ChildExit),
}

/// The driver's next step. Steps that take time end with an event.
#[derive(Debug, Clone, PartialEq)]
pub enum ChildAction {
    /// Start the program or connect to its address, and initialize.
    Connect,
    /// Open the session.
    OpenSession,
    /// Take over the requested turn.
    BeginTurn,
    /// Drop the requested turn.
    RejectTurn,
    /// Store the beginning of the turn and set the mode.
    PrepareTurn,
    /// Send the prompt.
    SendPrompt,
    /// Cancel the prompt, then close its questions: a child whose question is withdrawn first would take that for the
    /// end of its own turn.
    CancelPrompt,
    /// Handle the received message.
    HandleMessage,
    /// Handle the messages that arrived before the end of the turn.
    HandleQueuedMessages,
    /// Count usage and released slots of the received message; reject its request.
    CountMessage,
    /// Count the tokens that the agent has used in total.
    CountTokens(u64),
    /// Send the message into the running turn.
    SendSteering,
    /// Reject the message into the running turn.
    RejectSteering(&'static str),
    /// Set the mode of the parent.
    SetMode,
    /// Start a time limit; it replaces an earlier one of the turn or of the phase.
    StartTimer(ChildTimer, Duration),
    /// End the turn: store it, then tell the parent.
    FinishTurn(ChildTurnEnd),
    /// Take an idle slot and wait for another turn.
    WaitForTurn,
    /// Accept no more commands: a sender starts the child again.
    CloseCommands,
    /// Close the connection and end the program.
    EndProgram(ProgramEnding),
    /// Release the task; the child is over.
    Release,
}

/// The way to end a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramEnding {
    /// It gets its time to exit.
    ShutDown,
    /// It has probably exited by itself, which says why the connection broke.
    AwaitExit,
    /// It did not stop when it was asked.
    Kill,
}

/// The events that a driver waits for at the moment; others would be ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChildInterests {
    /// Events that stop a turn: a cancellation, the budget, too many requests.
    pub interrupts: bool,
    /// Commands of the parent; until then they stay in their queue.
    pub commands: bool,
    /// A change of the parent's mode.
    pub mode: bool,
    /// The end of the parent's session, and of the connection while nothing is requested on it.
    pub idle_ends: bool,
}

#[cfg(test)]
mod tests;
