//! The time limits of a child: one of its turn and one of its current phase.

use std::time::Duration;

use crow_core::ChildTimer;
use tokio::time::{Instant, sleep_until};

/// The running time limits.
#[derive(Debug, Default)]
pub(crate) struct ChildTimers {
    turn: Option<Instant>,
    phase: Option<(ChildTimer, Instant)>,
}

impl ChildTimers {
    /// Starts a time limit in place of an earlier one.
    pub(crate) fn start(&mut self, timer: ChildTimer, time: Duration) {
        let deadline = Instant::now() + time;
        match timer {
            ChildTimer::Turn => self.turn = Some(deadline),
            ChildTimer::Open | ChildTimer::Stop | ChildTimer::Idle => self.phase = Some((timer, deadline)),
        }
    }

    /// Waits until a time limit has passed, and removes it.
    pub(crate) async fn wait_for_next(&mut self) -> ChildTimer {
        let turn = self.turn.map(|deadline| (ChildTimer::Turn, deadline));
        let next = turn.into_iter().chain(self.phase).min_by_key(|(_, deadline)| *deadline);
        let Some((timer, deadline)) = next else { return std::future::pending().await };
        sleep_until(deadline).await;
        match timer {
            ChildTimer::Turn => self.turn = None,
            ChildTimer::Open | ChildTimer::Stop | ChildTimer::Idle => self.phase = None,
        }
        timer
    }
}
