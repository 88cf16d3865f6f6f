//! The end of a run that cannot end: a write to a full pipe, which its reader holds open, cannot be cancelled.

use std::{process, thread, time::Duration};

use crow_process::wait_for_stop_signal;

use crate::{
    agent,
    failure::{CliError, CliExitCode},
};

/// Time to end after a stop signal. Children get less to stop.
const END_WAIT_MAX: Duration = Duration::from_secs(10);

/// Ends the process some time after a stop signal, if that has not ended it.
pub(super) fn start_exit_deadline() -> Result<(), CliError> {
    let failed = |error| CliError::new(CliExitCode::Failed, format!("could not start a thread: {error}"));
    let runtime = agent::tokio_runtime()?;
    let watch = move || {
        runtime.block_on(async {
            wait_for_stop_signal().await;
            tokio::time::sleep(END_WAIT_MAX).await;
        });
        process::exit(CliExitCode::Interrupted as i32);
    };
    // The thread ends with the process.
    thread::Builder::new().name("exit".to_owned()).spawn(watch).map(drop).map_err(failed)
}
