//! Times and sizes of commands and jobs.

use std::time::Duration;

/// Enough for a build or a test run of a medium project; a longer command continues as a job.
pub(super) const SOFT_LIMIT: Duration = Duration::from_mins(2);

/// A program that asks for a password does so within this time.
pub(super) const PROMPT_SOFT_LIMIT: Duration = Duration::from_secs(10);

/// A server that is not used for longer than a working session is not needed.
pub(super) const JOB_LIFETIME: Duration = Duration::from_hours(4);

/// Time to watch the start of a job: most failures happen at once, and servers print their address.
pub(super) const JOB_START_WAIT: Duration = Duration::from_secs(1);

/// A program without output for this long waits for input, or computes.
pub(super) const QUIET_PERIOD: Duration = Duration::from_millis(200);

/// Default time to wait for a job's output.
pub(super) const READ_WAIT: Duration = Duration::from_secs(5);

/// About 4,000 tokens each: the beginning shows what was done, the end the outcome.
pub(super) const HEAD_BYTES: usize = 16 * 1024;
pub(super) const TAIL_BYTES: usize = 16 * 1024;
