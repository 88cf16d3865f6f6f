//! The parent of all tasks: gives them to the queue at once and waits for their ends.

use crow_acp::{AcpClientCapabilities, ClientInfo, StopReason, TurnScope, drive_agent};
use crow_core::{ContentPart, FarmAddress, Mode};
use crow_fleet::{FarmConnections, FarmTask};
use tokio::sync::mpsc;
use tokio::time::{Duration, Instant};

use crate::options::FleetOptions;

/// The end of one task.
pub(crate) struct TaskResult {
    /// The number of the task, as its prompt has it.
    pub(crate) task: String,
    /// The end that its parent was told; the error is the reason of a failure.
    pub(crate) end: Result<StopReason, String>,
    /// The time from the beginning of the run.
    pub(crate) ended_after: Duration,
}

/// Runs all tasks; returns one result for each end that was told.
pub(crate) fn run_tasks(options: &FleetOptions, farm: &FarmAddress) -> Vec<TaskResult> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (farms, begin) = (FarmConnections::default(), Instant::now());
        let tasks = (0..options.n_tasks).map(|number| {
            let farms = &farms;
            async move {
                let task = number.to_string();
                let end = run_task(farms, farm, format!("Do task {task}.")).await;
                TaskResult { task, end, ended_after: begin.elapsed() }
            }
        });
        let results = futures_util::future::join_all(tasks).await;
        farms.close().await;
        results
    })
}

async fn run_task(farms: &FarmConnections, farm: &FarmAddress, prompt: String) -> Result<StopReason, String> {
    let task = FarmTask { mode: Mode::Auto, depth: 1, version: "bench", keeper: None, code: None };
    let lines = farms.open_task(farm, task).await?;
    let client_info = ClientInfo {
        name: "bench",
        version: "0",
        capabilities: AcpClientCapabilities::default(),
        agent_name: None,
        wants_raw_updates: false,
    };
    let (event_sender, mut events) = mpsc::channel(64);
    let driven = drive_agent(lines, client_info, event_sender, async |connection| {
        let opened = connection.new_session("/".as_ref()).await.map_err(|failure| failure.message)?;
        let content = vec![ContentPart::Text(prompt)];
        let outcome = connection.send_prompt(&opened.session, content, TurnScope::WithTasks).await;
        outcome.map(|outcome| outcome.stop_reason).map_err(|failure| failure.message)
    });
    let seen = async { while events.recv().await.is_some() {} };
    let (ended, ()) = tokio::join!(driven, seen);
    ended.map_err(|failure| failure.message)?
}
