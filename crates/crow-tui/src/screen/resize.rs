//! A resize as a process in time: wait until it is over, ask where the cursor is, decide where the next frame begins.
//!
//! Pure: times and replies in, queries and places out.

use std::time::{Duration, Instant};

use super::ScreenSize;

/// A resize is over after this long without another one.
const QUIET: Duration = Duration::from_millis(60);

/// A user who keeps dragging still sees the program redraw.
const QUIET_MAX: Duration = Duration::from_millis(300);

/// A terminal that replies at all does so earlier, also over ssh.
const REPLY_MAX: Duration = Duration::from_millis(500);

/// A reply that took longer than this was lost.
const LOST_AFTER: Duration = Duration::from_secs(3);

/// Unanswered queries in a row after which none is sent any more.
const UNANSWERED_MAX: u32 = 2;

/// The place where the next frame begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameOrigin {
    /// The top of the drawn live region, above the parked cursor.
    Parked,
    /// The row of the cursor's place is known.
    Reported { row: u16 },
    /// Unknown: below everything on the screen.
    Below,
}

/// A step that the screen carries out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResizeAction {
    None,
    /// Send the query for the cursor's position.
    AskPosition,
}

#[derive(Debug)]
pub(super) struct ResizeProcess {
    step: ResizeStep,
    /// Queries whose reply may still come.
    n_pending: u32,
    last_asked: Option<Instant>,
    n_unanswered: u32,
}

#[derive(Debug, Clone, Copy)]
enum ResizeStep {
    Over(FrameOrigin),
    Waiting { first: Instant, last: Instant },
    Asked { size: ScreenSize, at: Instant },
}

impl ResizeProcess {
    pub(super) fn new() -> Self {
        Self { step: ResizeStep::Over(FrameOrigin::Parked), n_pending: 0, last_asked: None, n_unanswered: 0 }
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.step, ResizeStep::Over(_))
    }

    /// Ends the process: the cursor is where it was parked.
    pub(super) fn settle(&mut self) {
        self.step = ResizeStep::Over(FrameOrigin::Parked);
    }

    /// Returns the origin of the next frame, once; the frames after it begin at the parked cursor.
    pub(super) fn take_origin(&mut self) -> Option<FrameOrigin> {
        let ResizeStep::Over(origin) = self.step else { return None };
        self.step = ResizeStep::Over(FrameOrigin::Parked);
        Some(origin)
    }

    /// The time at which [`on_deadline`](Self::on_deadline) has to be called.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.step {
            ResizeStep::Over(_) => None,
            ResizeStep::Waiting { first, last } => Some((last + QUIET).min(first + QUIET_MAX)),
            ResizeStep::Asked { at, .. } => Some(at + REPLY_MAX),
        }
    }

    /// The window has another size, or is being dragged.
    pub(super) fn on_resized(&mut self, now: Instant) {
        let first = match self.step {
            ResizeStep::Waiting { first, .. } => first,
            ResizeStep::Over(_) | ResizeStep::Asked { .. } => now,
        };
        self.step = ResizeStep::Waiting { first, last: now };
    }

    /// A deadline may have passed. `can_ask` is whether reported positions last.
    pub(super) fn on_deadline(&mut self, now: Instant, size: ScreenSize, can_ask: bool) -> ResizeAction {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return ResizeAction::None;
        }
        match self.step {
            ResizeStep::Over(_) => ResizeAction::None,
            ResizeStep::Waiting { .. } if can_ask && self.n_unanswered < UNANSWERED_MAX => {
                self.ask(size, now)
            }
            ResizeStep::Asked { .. } | ResizeStep::Waiting { .. } => {
                self.n_unanswered += u32::from(matches!(self.step, ResizeStep::Asked { .. }));
                self.step = ResizeStep::Over(FrameOrigin::Below);
                ResizeAction::None
            }
        }
    }

    /// A position arrived; `size` is the size now.
    pub(super) fn on_position(&mut self, row: u16, size: ScreenSize, now: Instant) -> ResizeAction {
        self.n_pending = self.n_pending.saturating_sub(1);
        self.n_unanswered = 0;
        match self.step {
            // Replies come in the order of their queries: this one belongs to a later query.
            ResizeStep::Asked { size: asked, .. } if self.n_pending == 0 => {
                if asked == size {
                    self.step = ResizeStep::Over(FrameOrigin::Reported { row });
                    return ResizeAction::None;
                }
                self.ask(size, now)
            }
            ResizeStep::Asked { .. } | ResizeStep::Over(_) | ResizeStep::Waiting { .. } => ResizeAction::None,
        }
    }

    fn ask(&mut self, size: ScreenSize, now: Instant) -> ResizeAction {
        if self.last_asked.is_some_and(|at| now > at + LOST_AFTER) {
            self.n_pending = 0;
        }
        self.last_asked = Some(now);
        self.n_pending += 1;
        self.step = ResizeStep::Asked { size, at: now };
        ResizeAction::AskPosition
    }
}

#[cfg(test)]
mod tests;
