//! One program from start to end, for whoever waits for it.

use std::{path::PathBuf, time::Duration};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    CapturedOutput, CommandSpec, ExitReason, OutputLimits, OutputWatcher, ProcessGroups, ProgramResult,
    RunningProgram, SpawnError, StdioKind,
};

/// How far a program may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunLimits {
    /// How long it may run.
    pub timeout: Duration,
    /// How much of the beginning of its output is kept.
    pub head_bytes: usize,
    /// How much of the end of its output is kept.
    pub tail_bytes: usize,
    /// The folder for the whole output when that is more than both.
    pub spill: Option<PathBuf>,
}

/// Runs a program without input to its end. `watcher` sees what it says meanwhile.
///
/// Timeout and cancel ask the whole group to end, then kill it. Dropping the future kills it at once.
pub async fn run_program(
    groups: &ProcessGroups,
    command: CommandSpec,
    bounds: RunLimits,
    cut: &CancellationToken,
    mut watcher: impl OutputWatcher,
) -> Result<ProgramResult, SpawnError> {
    if !groups.is_closed() && cut.is_cancelled() {
        return Ok(ProgramResult { ended: ExitReason::Cancelled, output: CapturedOutput::default() });
    }
    let deadline = Instant::now() + bounds.timeout;
    let RunLimits { head_bytes, tail_bytes, spill, .. } = bounds;
    let kept = OutputLimits { head_bytes, tail_bytes, spill };
    let mut program = RunningProgram::start(groups, command, StdioKind::Pipe, kept).await?;
    let happened = program.wait_for_exit(cut, deadline, &mut watcher).await?;
    Ok(program.finish(happened, &mut watcher).await)
}
