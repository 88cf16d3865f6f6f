//! Runs the supervisor program as a probe: it confines a process of its own and prints what happened.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::{
    CommandSpec, ExitReason, FilterLimits, ProcessGroups,
    launch_spec::{PROBE_FLAG, SUBCOMMAND},
    run_filter,
};

/// A probe takes milliseconds; a machine that needs longer is not awaited.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// A report is one line.
pub(super) const REPORT_BYTES_MAX: usize = 4096;

/// Returns the report of a probe, or the reason why there is none.
pub(super) async fn run_probe(program: String) -> Result<String, String> {
    let command = CommandSpec {
        program,
        args: vec![SUBCOMMAND.into(), PROBE_FLAG.into()],
        cwd: "/".into(),
        env: Vec::new(),
        env_removed: Vec::new(),
    };
    let limits = FilterLimits {
        timeout: PROBE_TIMEOUT,
        stdout_bytes: REPORT_BYTES_MAX,
        stderr_bytes: REPORT_BYTES_MAX,
    };
    let result =
        run_filter(&ProcessGroups::new(), command, Vec::new(), limits, &CancellationToken::new()).await;
    match result {
        Ok(result) if result.exit == ExitReason::Exited(0) => Ok(result.stdout.text),
        Ok(result) => Err(format!("the probe failed ({:?}) {}", result.exit, result.stderr.text.trim())),
        Err(error) => Err(format!("the probe failed: {error}")),
    }
}
