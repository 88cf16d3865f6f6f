//! The run of one task.

use tokio::sync::watch;

use super::super::{task_line::BatchTask, task_output::TaskOutput};
use super::BatchContext;
use crate::{
    agents::ProgramLookup,
    cli::{ConversationOptions, RunArgs},
    failure::CliError,
    run::{self, RunControl, RunPlan, SessionRetention},
};
use crow_process::StopRequest;

/// Runs a task as `run` would, with an agent of its own.
pub(super) async fn run_task(
    context: &BatchContext<'_>,
    task: BatchTask,
    output: TaskOutput,
    requests: watch::Receiver<Option<StopRequest>>,
) -> Result<(), CliError> {
    let plan = plan_task(context, task, output, requests)?;
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

/// Makes the plan of a run from a task.
fn plan_task(
    context: &BatchContext<'_>,
    task: BatchTask,
    output: TaskOutput,
    requests: watch::Receiver<Option<StopRequest>>,
) -> Result<RunPlan, CliError> {
    let cwd = context.dirs.resolve(&task)?;
    let args = &context.args;
    let options = ConversationOptions {
        model: task.model.or_else(|| args.model.clone()),
        mode: task.mode.or_else(|| args.mode.clone()),
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
