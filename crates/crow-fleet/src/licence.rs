//! Whether a worker may still run its task. Pure: time is an argument, by a clock that counts suspension.

use std::time::Duration;

/// Looks that must miss the task's message before it counts as gone: any replica may answer, also one that lags behind.
const MISSES_MAX: u32 = 2;

/// The right to run one task.
#[derive(Debug)]
pub(crate) struct TaskLicence {
    /// Time without a confirmation after which another worker may have the task.
    silence_max: Duration,
    confirmed: Duration,
    n_misses: u32,
}

/// The state of a licence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LicenceState {
    Valid,
    /// The message is gone: the parent took it back, or another worker ended the task.
    Revoked,
    /// The server has not answered for so long that it may have given the task to another worker.
    Expired,
}

impl TaskLicence {
    /// Creates the licence of a message that was just delivered, which the server gives away again after `ack_wait`.
    pub(crate) fn new(ack_wait: Duration, now: Duration) -> Self {
        Self { silence_max: ack_wait * 2 / 3, confirmed: now, n_misses: 0 }
    }

    /// Time between two heartbeats.
    pub(crate) fn heartbeat_interval(ack_wait: Duration) -> Duration {
        ack_wait / 6
    }

    /// Records that the server has answered a heartbeat that was sent at `sent`.
    pub(crate) fn confirm(&mut self, sent: Duration) {
        self.confirmed = self.confirmed.max(sent);
    }

    /// Records whether the message was there.
    pub(crate) fn record_message(&mut self, is_there: bool) {
        self.n_misses = if is_there { 0 } else { self.n_misses + 1 };
    }

    pub(crate) fn state(&self, now: Duration) -> LicenceState {
        if self.n_misses >= MISSES_MAX {
            LicenceState::Revoked
        } else if now.saturating_sub(self.confirmed) >= self.silence_max {
            LicenceState::Expired
        } else {
            LicenceState::Valid
        }
    }

    /// The time at which it expires.
    pub(crate) fn expiry(&self) -> Duration {
        self.confirmed + self.silence_max
    }
}
