//! `batch`: runs many tasks from a file, several at once, each like a `run` of its own.

mod result_file;
mod result_line;
mod runner;
mod screen;
mod tally;
mod task_dirs;
mod task_file;
mod task_line;
mod task_output;

use std::path::{Path, PathBuf};

use crow_core::{AgentTransport, BatchSchedule};
use crow_fleet::FarmConnections;
use crow_process::ProcessGroups;
use crow_tools::GitCli;
use tokio::sync::Semaphore;

use self::{
    result_file::ResultFile,
    runner::{BatchContext, BatchFiles, BatchRunner},
    task_dirs::TaskDirs,
    task_file::TaskFile,
    task_line::TaskRules,
};
use crate::{
    agent::{self, ConfigSource},
    agents,
    cli::BatchArgs,
    failure::{CliError, CliExitCode},
    run,
    settings::Settings,
};

/// Replaces the extension of the task file in the name of the result file.
const RESULTS_EXTENSION: &str = "results.jsonl";

/// Worktrees that are made or settled at once.
const WORKTREES_AT_ONCE_MAX: usize = 4;

/// Tasks that may run at once on this machine, where their agents share one thread, or behind one program or address each.
const LOCAL_PARALLEL_MAX: u16 = 256;

/// Runs the tasks of a file that have not ended yet. Nothing begins before the whole file is checked.
pub(crate) fn run(
    args: BatchArgs,
    settings: &Settings,
    source: &ConfigSource,
    current_dir: &Path,
) -> Result<(), CliError> {
    let external = match &args.agent {
        Some(name) => agents::find_agent(name, settings)?,
        None => None,
    };
    let is_farm = external.is_some_and(|server| matches!(server.transport, AgentTransport::Farm(_)));
    if !is_farm && args.parallel > LOCAL_PARALLEL_MAX {
        let error = CliError::new(
            CliExitCode::Usage,
            format!("--parallel {} is more than {LOCAL_PARALLEL_MAX}", args.parallel),
        );
        return Err(
            error.with_hint("only an agent with a queue (`agent_servers`: `nats`) takes more at once")
        );
    }
    let dirs = TaskDirs::new(args.cwd.as_deref(), external, current_dir)?;
    let models: Vec<&str> = settings.models.iter().map(|model| model.name.as_str()).collect();
    if external.is_none() {
        run::check_mode(args.mode.as_deref())?;
        settings.find_model(args.model.as_deref())?;
    }
    let rules =
        TaskRules { models: external.is_none().then_some(models.as_slice()), tokens_max: args.max_tokens };
    let output = output_path(&args)?;
    let mut tasks = TaskFile::open(&args.tasks)?;
    let ids = tasks.check_tasks(rules, |task| dirs.check(task))?;
    let (results, earlier) = ResultFile::open(&output, args.retry_failed)?;
    let survey = earlier.survey(&ids);
    drop(ids);
    let schedule = BatchSchedule::new(args.parallel.into(), args.max_tokens, earlier.tokens);
    let files = BatchFiles { tasks, results, earlier };
    let context = BatchContext {
        args,
        output,
        external,
        dirs,
        rules,
        settings,
        source,
        current_dir,
        farms: FarmConnections::default(),
        git: GitCli::new(ProcessGroups::new(), &settings.secret_variables),
        worktree_permits: Semaphore::new(WORKTREES_AT_ONCE_MAX),
    };
    let runtime = agent::tokio_runtime()?;
    run::start_exit_deadline(&runtime)?;
    let result = runtime.block_on(async {
        let runner = BatchRunner::new(&context, files, schedule, survey)?;
        Box::pin(runner.run()).await
    });
    runtime.shutdown_background();
    result
}

fn output_path(args: &BatchArgs) -> Result<PathBuf, CliError> {
    match &args.output {
        Some(path) => Ok(path.clone()),
        None if args.tasks == Path::new("-") => {
            let error = CliError::new(CliExitCode::Usage, "tasks from stdin need a file for their results");
            Err(error.with_hint("give it with -o FILE"))
        }
        None => Ok(args.tasks.with_extension(RESULTS_EXTENSION)),
    }
}
