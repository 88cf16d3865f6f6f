//! Runs one program from start to end for a caller that waits.

use std::{path::PathBuf, time::Duration};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    CapturedOutput, CommandSpec, ExitReason, OutputLimits, OutputWatcher, ProcessGroups, ProgramResult,
    RunningProgram, SpawnError, StdioKind,
};

/// The limits of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunLimits {
    pub timeout: Duration,
    /// Bytes of output to keep, from the beginning.
    pub head_bytes: usize,
    /// Bytes of output to keep, from the end.
    pub tail_bytes: usize,
    /// The directory for the whole output when that exceeds both.
    pub spill_dir: Option<PathBuf>,
}

/// Runs a program without input until it ends. `watcher` observes its output.
///
/// A timeout or a cancellation sends SIGTERM to the whole group, then SIGKILL. Dropping the future kills it at once.
pub async fn run_program(
    groups: &ProcessGroups,
    command: CommandSpec,
    limits: RunLimits,
    cancel: &CancellationToken,
    mut watcher: impl OutputWatcher,
) -> Result<ProgramResult, SpawnError> {
    if !groups.is_closed() && cancel.is_cancelled() {
        return Ok(ProgramResult { exit: ExitReason::Cancelled, output: CapturedOutput::default() });
    }
    let deadline = Instant::now() + limits.timeout;
    let RunLimits { head_bytes, tail_bytes, spill_dir, .. } = limits;
    let output_limits = OutputLimits { head_bytes, tail_bytes, spill_dir };
    let mut program = RunningProgram::start(groups, command, StdioKind::Pipe, output_limits).await?;
    let outcome = program.wait_for_exit(cancel, deadline, &mut watcher).await?;
    Ok(program.finish(outcome, &mut watcher).await)
}
