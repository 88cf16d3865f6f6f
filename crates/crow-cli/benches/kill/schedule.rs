//! The schedule: a seed and a number decide which process is killed, in which scene, and when.

use std::fmt;
use std::time::Duration;

use crow_testkit::SeededRandom;

use super::scene::Scene;

/// The kind of the process to kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum VictimKind {
    /// The agent that the client has started.
    Agent,
    /// A child agent.
    Child,
    /// One of the two processes of a command's supervisor.
    Supervisor,
    /// A process of a command.
    Command,
}

impl VictimKind {
    pub(crate) const ALL: [Self; 4] = [Self::Agent, Self::Child, Self::Supervisor, Self::Command];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Child => "child agent",
            Self::Supervisor => "supervisor",
            Self::Command => "command",
        }
    }

    /// The scenes that have such a process.
    fn scenes(self) -> &'static [Scene] {
        match self {
            Self::Agent => &[
                Scene::Start,
                Scene::Speech,
                Scene::Speech,
                Scene::Tools,
                Scene::Tools,
                Scene::Compaction,
                Scene::Commands,
                Scene::Terminals,
                Scene::Children,
            ],
            Self::Child => &[Scene::Children],
            Self::Supervisor | Self::Command => &[Scene::Commands, Scene::Terminals],
        }
    }
}

/// The event after which a process is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// The client has received so many messages of the turn.
    Messages(u64),
    /// The model has sent so many bytes.
    ModelBytes(u64),
    /// The process is there.
    Appearance,
}

/// A kill.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlannedKill {
    pub(crate) victim: VictimKind,
    pub(crate) scene: Scene,
    pub(crate) trigger: Trigger,
    /// The time from the event to the kill: most steps make no event.
    pub(crate) delay: Duration,
    /// Chooses one of several processes of the kind.
    pub(crate) choice: u64,
    pub(crate) has_sandbox: bool,
}

impl PlannedKill {
    /// Draws a kill of the schedule of a seed.
    pub(crate) fn draw(seed: u64, index: u64) -> Self {
        let mut random = SeededRandom::new(seed.wrapping_mul(1 << 32).wrapping_add(index));
        let victim = match random.below(100) {
            0..60 => VictimKind::Agent,
            60..74 => VictimKind::Child,
            74..87 => VictimKind::Supervisor,
            _ => VictimKind::Command,
        };
        let scene = random.choose(victim.scenes());
        let trigger = match (victim, scene, random.is_chosen(50)) {
            (VictimKind::Child | VictimKind::Supervisor | VictimKind::Command, _, _)
            | (_, Scene::Start, _) => Trigger::Appearance,
            (VictimKind::Agent, _, true) => Trigger::Messages(random.below(scene.n_messages())),
            (VictimKind::Agent, _, false) => Trigger::ModelBytes(random.below(scene.n_model_bytes())),
        };
        let delays_us: &[u64] = match trigger {
            Trigger::Appearance => &[2_000, 20_000, 60_000, 200_000],
            Trigger::Messages(_) | Trigger::ModelBytes(_) => &[1, 300, 2_000, 10_000, 40_000],
        };
        let delay_max_us = random.choose(delays_us);
        let delay = Duration::from_micros(random.below(delay_max_us));
        // A client's terminal has a supervisor only in the sandbox.
        let needs_sandbox = victim == VictimKind::Supervisor && scene == Scene::Terminals;
        let (choice, has_sandbox) = (random.next_number(), random.is_chosen(30) || needs_sandbox);
        Self { victim, scene, trigger, delay, choice, has_sandbox }
    }
}

impl fmt::Display for PlannedKill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { victim, scene, trigger, delay, choice: _, has_sandbox } = self;
        let sandbox = if *has_sandbox { ", sandbox" } else { "" };
        let event = match trigger {
            Trigger::Messages(n) => format!("{n} messages"),
            Trigger::ModelBytes(n) => format!("{n} bytes of the model"),
            Trigger::Appearance => "its appearance".to_owned(),
        };
        write!(f, "{} in {scene:?}{sandbox}, {} µs after {event}", victim.name(), delay.as_micros())
    }
}
