//! The run of one task.

use crow_children::AgentWorktree;
use crow_core::{AgentTransport, FarmAddress};
use crow_process::StopRequest;
use tokio::sync::watch;

use super::super::{task_line::BatchTask, task_output::TaskOutput};
use super::BatchContext;
use super::task_worktree::{begin_worktree, settle_worktree};
use crate::{
    agents::ProgramLookup,
    cli::{ConversationOptions, RunArgs},
    failure::{CliError, CliExitCode},
    run::{self, RunControl, RunPlan, SessionRetention},
};

/// Runs a task as `run` would, with an agent of its own. Thousands may wait in a queue, so each step of that has a box of its
/// own, which is gone with it.
pub(super) async fn run_task(
    context: &BatchContext<'_>,
    task: BatchTask,
    output: TaskOutput,
    requests: watch::Receiver<Option<StopRequest>>,
) -> Result<(), CliError> {
    match context.external.map(|server| &server.transport) {
        Some(AgentTransport::Farm(address)) => {
            Box::pin(run_queued_task(context, address, task, output, requests)).await
        }
        Some(AgentTransport::Program { .. } | AgentTransport::Socket { .. }) | None => {
            Box::pin(run_direct_task(context, task, output, requests)).await
        }
    }
}

async fn run_direct_task(
    context: &BatchContext<'_>,
    mut task: BatchTask,
    output: TaskOutput,
    mut requests: watch::Receiver<Option<StopRequest>>,
) -> Result<(), CliError> {
    let beginning = Box::pin(begin_worktree(context, &task));
    let worktree = unless_stopped(&mut requests, beginning).await??;
    let record = output.record.clone();
    // Those of the task, or those for all.
    let model = task.model.take().or_else(|| context.args.model.clone());
    let mode = task.mode.take().or_else(|| context.args.mode.clone());
    let mut plan = plan_task(context, task, output, requests)?;
    (plan.args.options.model, plan.args.options.mode) = (model, mode);
    if let Some(path) = worktree.as_ref().and_then(AgentWorktree::local_path) {
        plan.cwd = path.to_owned();
    }
    let result = run_plan(context, plan).await;
    Box::pin(settle_worktree(context, worktree, &record, result)).await
}

async fn run_plan(context: &BatchContext<'_>, plan: RunPlan) -> Result<(), CliError> {
    match context.external {
        None => {
            let source = context.source.clone();
            Box::pin(run::drive_own_agent(plan, move || source.clone().load_runtime())).await
        }
        Some(server) => {
            let program_cwd =
                if server.cwd.is_some() { context.current_dir.to_owned() } else { plan.cwd.clone() };
            let lookup = ProgramLookup { env: &context.source.env, cwd: &program_cwd };
            let (settings, farms) = (context.settings, &context.farms);
            Box::pin(run::drive_external_agent(plan, server, &lookup, settings, farms)).await
        }
    }
}

/// Waits in a queue for a worker, then runs the task.
async fn run_queued_task(
    context: &BatchContext<'_>,
    address: &FarmAddress,
    mut task: BatchTask,
    output: TaskOutput,
    mut requests: watch::Receiver<Option<StopRequest>>,
) -> Result<(), CliError> {
    let (settings, args) = (context.settings, &context.args);
    let model = task.model.take().or_else(|| args.model.clone());
    let mode = task.mode.as_deref().or(args.mode.as_deref());
    let mut farm_task = run::farm_task(mode, settings)?;
    let beginning = Box::pin(begin_worktree(context, &task));
    let worktree = unless_stopped(&mut requests, beginning).await??;
    farm_task.code = worktree.as_ref().and_then(AgentWorktree::sent_code).cloned();
    let record = output.record.clone();
    let name = context.external.map_or("", |server| &server.name);
    let unreachable = |reason: String| run::unreachable_error(name, &reason);
    // One copy of it waits: there may be thousands.
    let prompt = std::mem::take(&mut task.prompt);
    let preparation = Box::pin(context.farms.prepare_task(address, &farm_task, prompt, model));
    let mut queued = preparation.await.map_err(unreachable)?;
    let waited = tokio::select! {
        biased;
        _ = requests.wait_for(Option::is_some) => {
            queued.withdraw();
            return Err(CliError::without_message(CliExitCode::Interrupted));
        }
        waited = queued.wait() => waited,
    };
    waited.map_err(unreachable)?;
    // The queue has its model and mode.
    let task = BatchTask { prompt: queued.prompt().to_owned(), ..task };
    let plan = plan_task(context, task, output, requests)?;
    let result = Box::pin(run::drive_queued_agent(plan, queued)).await;
    Box::pin(settle_worktree(context, worktree, &record, result)).await
}

/// Waits for a step before a task begins, unless it must stop.
async fn unless_stopped<T>(
    requests: &mut watch::Receiver<Option<StopRequest>>,
    step: impl Future<Output = T>,
) -> Result<T, CliError> {
    tokio::select! {
        biased;
        _ = requests.wait_for(Option::is_some) => Err(CliError::without_message(CliExitCode::Interrupted)),
        done = step => Ok(done),
    }
}

/// Makes the plan of a run from a task, without its model and mode.
fn plan_task(
    context: &BatchContext<'_>,
    task: BatchTask,
    output: TaskOutput,
    requests: watch::Receiver<Option<StopRequest>>,
) -> Result<RunPlan, CliError> {
    let cwd = context.dirs.resolve(&task)?;
    let args = &context.args;
    let options = ConversationOptions {
        agent: context.external.map(|server| server.name.clone()),
        yes: args.yes,
        ..ConversationOptions::default()
    };
    Ok(RunPlan {
        args: RunArgs { options, ..RunArgs::default() },
        cwd,
        first_prompt: Some(task.prompt),
        images: Vec::new(),
        output: Box::new(output),
        retention: SessionRetention::Stored,
        control: RunControl::Program(requests),
        counts_tokens: true,
        terminal: None,
    })
}
