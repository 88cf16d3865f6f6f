//! The table of a child: its phases, and what each event means in each of them.

use std::time::Duration;

use super::end::{ChildTurnEnd, describe_failure, timeout_reason};
use super::{ChildAction, ChildEvent, ChildInterests, ChildProfile, ChildTimer, ProgramEnding};

const TOO_MANY_REQUESTS: &str = "it sends more requests at once than can be answered";
const NO_STEERING: &str =
    "it is running, and this agent accepts no messages meanwhile; wait for its end or cancel it";
const TURN_ENDED: &str = "its turn has just ended; send the message again";
const AGENT_ENDED: &str = "its agent has just ended; send the message again";

/// One child.
#[derive(Debug, Clone)]
pub struct ChildMachine {
    profile: ChildProfile,
    turn_time_max: Duration,
    phase: ChildPhase,
}

/// A phase of a child. In all phases but the last three a turn runs.
#[derive(Debug, Clone, PartialEq)]
enum ChildPhase {
    /// Its agent is started.
    Starting,
    /// Its agent opens the session.
    Opening,
    /// A turn is stored and the mode is set.
    Preparing,
    /// Its agent works on the prompt.
    Prompting,
    /// The prompt is cancelled; the turn ends like this.
    Stopping(ChildTurnEnd),
    /// It waits for another turn.
    Idle,
    /// Its program is ended; a turn that still runs ends like this.
    Ending(Option<LastTurnEnd>),
    /// It is over.
    Ended,
}

/// The end of the last turn, which is told after the program has ended.
#[derive(Debug, Clone, PartialEq)]
struct LastTurnEnd {
    end: ChildTurnEnd,
    /// Whether the exit of the program explains it.
    is_explained_by_exit: bool,
}

impl ChildMachine {
    /// Starts a child with its first turn.
    pub fn start(profile: ChildProfile, turn_time_max: Duration) -> (Self, Vec<ChildAction>) {
        let machine = Self { profile, turn_time_max, phase: ChildPhase::Starting };
        (machine, vec![ChildAction::StartTimer(ChildTimer::Turn, turn_time_max), ChildAction::Connect])
    }

    /// Returns the next steps after an event. An event that means nothing in a phase has none.
    pub fn handle_event(&mut self, event: ChildEvent) -> Vec<ChildAction> {
        match event {
            ChildEvent::Connected
            | ChildEvent::SessionOpened
            | ChildEvent::TurnPrepared
            | ChildEvent::PromptEnded { .. } => self.on_progress(&event),
            ChildEvent::AgentFailed(failure) => {
                let (reason, is_disconnected) = describe_failure(&failure);
                let ending = if is_disconnected { ProgramEnding::AwaitExit } else { ProgramEnding::ShutDown };
                self.on_failure(reason, ending)
            }
            ChildEvent::DriverFailed(reason) => self.on_failure(reason, ProgramEnding::ShutDown),
            ChildEvent::MessageReceived => self.on_message(),
            ChildEvent::CancelRequested => self.interrupt(ChildTurnEnd::cancelled()),
            ChildEvent::RequestsExceeded => self.interrupt(ChildTurnEnd::failed(TOO_MANY_REQUESTS)),
            ChildEvent::BudgetExhausted(reason) => self.interrupt(ChildTurnEnd::failed(reason)),
            ChildEvent::TimerFired(timer) => self.on_timer(timer),
            ChildEvent::TurnRequested { time_max } => self.on_turn_requested(time_max),
            ChildEvent::SteeringRequested { is_supported } => vec![self.steering_action(is_supported)],
            ChildEvent::ModeChanged => match self.interests().mode {
                true => vec![ChildAction::SetMode],
                false => Vec::new(),
            },
            ChildEvent::IdleSlotMissing | ChildEvent::ParentClosed => self.end_idle(),
            ChildEvent::ProgramEnded(exit) => {
                let ChildPhase::Ending(last_turn) = &mut self.phase else { return Vec::new() };
                let end = last_turn.take().map(|last| match last.is_explained_by_exit {
                    true => last.end.with_exit(&exit),
                    false => last.end,
                });
                self.phase = ChildPhase::Ended;
                let mut actions = vec![ChildAction::CloseCommands];
                actions.extend(end.map(ChildAction::FinishTurn));
                actions.push(ChildAction::Release);
                actions
            }
        }
    }

    /// Returns the events to wait for.
    pub fn interests(&self) -> ChildInterests {
        let (interrupts, commands) = match self.phase {
            ChildPhase::Starting | ChildPhase::Opening | ChildPhase::Preparing => (true, false),
            ChildPhase::Prompting => (true, true),
            ChildPhase::Stopping(_) | ChildPhase::Idle | ChildPhase::Ending(_) => (false, true),
            ChildPhase::Ended => (false, false),
        };
        let is_prompted = matches!(self.phase, ChildPhase::Prompting | ChildPhase::Stopping(_));
        ChildInterests {
            interrupts,
            commands,
            mode: self.profile.follows_mode && is_prompted,
            idle_ends: self.phase == ChildPhase::Idle,
        }
    }

    /// Whether the child is over.
    pub fn has_ended(&self) -> bool {
        self.phase == ChildPhase::Ended
    }

    /// Continues after a step of the driver.
    fn on_progress(&mut self, event: &ChildEvent) -> Vec<ChildAction> {
        match (&self.phase, event) {
            (ChildPhase::Starting, ChildEvent::Connected) => {
                self.phase = ChildPhase::Opening;
                let timer = ChildAction::StartTimer(ChildTimer::Open, self.profile.times.open);
                vec![timer, ChildAction::OpenSession]
            }
            (ChildPhase::Opening, ChildEvent::SessionOpened) => {
                self.phase = ChildPhase::Preparing;
                vec![ChildAction::PrepareTurn]
            }
            (ChildPhase::Preparing, ChildEvent::TurnPrepared) => {
                self.phase = ChildPhase::Prompting;
                vec![ChildAction::SendPrompt]
            }
            (ChildPhase::Prompting, ChildEvent::PromptEnded { stop_reason, n_tokens }) => {
                let mut actions = vec![ChildAction::HandleQueuedMessages];
                actions.extend(n_tokens.map(ChildAction::CountTokens));
                actions.extend(self.finish_prompt(ChildTurnEnd::from_stop_reason(*stop_reason)));
                actions
            }
            (ChildPhase::Stopping(end), ChildEvent::PromptEnded { .. }) => {
                let end = end.clone();
                let mut actions = vec![ChildAction::HandleQueuedMessages];
                actions.extend(self.finish_prompt(end));
                actions
            }
            // A step that was overtaken by a stop.
            (_, _) => Vec::new(),
        }
    }

    /// Continues after the prompt has ended.
    fn finish_prompt(&mut self, end: ChildTurnEnd) -> Vec<ChildAction> {
        if self.profile.ends_with_turn {
            return self.end_program(end, ProgramEnding::ShutDown, false);
        }
        self.phase = ChildPhase::Idle;
        let timer = ChildAction::StartTimer(ChildTimer::Idle, self.profile.times.idle);
        vec![ChildAction::FinishTurn(end), timer, ChildAction::WaitForTurn]
    }

    fn on_failure(&mut self, reason: String, ending: ProgramEnding) -> Vec<ChildAction> {
        match &self.phase {
            ChildPhase::Starting | ChildPhase::Opening | ChildPhase::Preparing => {
                self.end_program(ChildTurnEnd::failed(reason), ending, true)
            }
            ChildPhase::Prompting => {
                let mut actions = vec![ChildAction::HandleQueuedMessages];
                actions.extend(self.end_program(ChildTurnEnd::failed(reason), ending, true));
                actions
            }
            // Some agents exit when they are cancelled.
            ChildPhase::Stopping(end) => {
                let end = end.clone();
                let mut actions = vec![ChildAction::HandleQueuedMessages];
                actions.extend(self.end_program(end, ProgramEnding::ShutDown, false));
                actions
            }
            ChildPhase::Idle => self.end_idle(),
            ChildPhase::Ending(_) | ChildPhase::Ended => Vec::new(),
        }
    }

    /// Stops the turn. An agent that works on it confirms; the others are ended.
    fn interrupt(&mut self, end: ChildTurnEnd) -> Vec<ChildAction> {
        match self.phase {
            ChildPhase::Starting | ChildPhase::Opening | ChildPhase::Preparing => {
                self.end_program(end, ProgramEnding::ShutDown, false)
            }
            ChildPhase::Prompting => {
                self.phase = ChildPhase::Stopping(end);
                let timer = ChildAction::StartTimer(ChildTimer::Stop, self.profile.times.stop);
                vec![ChildAction::CancelPrompt, timer]
            }
            ChildPhase::Stopping(_) | ChildPhase::Idle | ChildPhase::Ending(_) | ChildPhase::Ended => {
                Vec::new()
            }
        }
    }

    fn on_timer(&mut self, timer: ChildTimer) -> Vec<ChildAction> {
        match (timer, &self.phase) {
            (ChildTimer::Turn, _) => self.interrupt(ChildTurnEnd::failed(timeout_reason(self.turn_time_max))),
            (ChildTimer::Open, ChildPhase::Opening) => {
                let seconds = self.profile.times.open.as_secs();
                let reason = format!("it did not open a session within {seconds} s");
                self.on_failure(reason, ProgramEnding::ShutDown)
            }
            (ChildTimer::Stop, ChildPhase::Stopping(end)) => {
                let end = end.clone();
                self.end_program(end, ProgramEnding::Kill, false)
            }
            (ChildTimer::Idle, ChildPhase::Idle) => self.end_idle(),
            // The phase has ended before its limit.
            (ChildTimer::Open | ChildTimer::Stop | ChildTimer::Idle, _) => Vec::new(),
        }
    }

    fn on_message(&self) -> Vec<ChildAction> {
        match self.phase {
            ChildPhase::Starting | ChildPhase::Opening if self.profile.replays_session => Vec::new(),
            ChildPhase::Starting
            | ChildPhase::Opening
            | ChildPhase::Preparing
            | ChildPhase::Prompting
            | ChildPhase::Stopping(_) => vec![ChildAction::HandleMessage],
            ChildPhase::Idle => vec![ChildAction::CountMessage],
            ChildPhase::Ending(_) | ChildPhase::Ended => Vec::new(),
        }
    }

    fn on_turn_requested(&mut self, time_max: Duration) -> Vec<ChildAction> {
        match &mut self.phase {
            ChildPhase::Idle => {
                self.turn_time_max = time_max;
                self.phase = ChildPhase::Preparing;
                let timer = ChildAction::StartTimer(ChildTimer::Turn, time_max);
                vec![ChildAction::BeginTurn, timer, ChildAction::PrepareTurn]
            }
            // It was sent before the commands were closed.
            ChildPhase::Ending(last_turn @ None) => {
                let end = ChildTurnEnd::failed(AGENT_ENDED);
                *last_turn = Some(LastTurnEnd { end, is_explained_by_exit: false });
                vec![ChildAction::BeginTurn]
            }
            ChildPhase::Starting
            | ChildPhase::Opening
            | ChildPhase::Preparing
            | ChildPhase::Prompting
            | ChildPhase::Stopping(_)
            | ChildPhase::Ending(Some(_))
            | ChildPhase::Ended => vec![ChildAction::RejectTurn],
        }
    }

    fn steering_action(&self, is_supported: bool) -> ChildAction {
        match self.phase {
            ChildPhase::Prompting | ChildPhase::Stopping(_) if is_supported => ChildAction::SendSteering,
            ChildPhase::Starting
            | ChildPhase::Opening
            | ChildPhase::Preparing
            | ChildPhase::Prompting
            | ChildPhase::Stopping(_) => ChildAction::RejectSteering(NO_STEERING),
            ChildPhase::Idle | ChildPhase::Ending(_) | ChildPhase::Ended => {
                ChildAction::RejectSteering(TURN_ENDED)
            }
        }
    }

    /// Ends an idle child. From here on, a sender waits for the end and starts the child again.
    fn end_idle(&mut self) -> Vec<ChildAction> {
        if self.phase != ChildPhase::Idle {
            return Vec::new();
        }
        self.phase = ChildPhase::Ending(None);
        vec![ChildAction::CloseCommands, ChildAction::EndProgram(ProgramEnding::ShutDown)]
    }

    fn end_program(
        &mut self,
        end: ChildTurnEnd,
        ending: ProgramEnding,
        is_explained_by_exit: bool,
    ) -> Vec<ChildAction> {
        self.phase = ChildPhase::Ending(Some(LastTurnEnd { end, is_explained_by_exit }));
        vec![ChildAction::EndProgram(ending)]
    }
}
