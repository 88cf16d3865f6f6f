//! `crow-cli worker`: runs tasks of queues, each with an agent of its own.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use crow_acp::{AgentCommand, AgentLauncher};
use crow_children::DEPTH_VARIABLE;
use crow_core::{Mode, NatsCredentials, NatsServer};
use crow_fleet::{AbandonedTasks, FleetWorker, QueueOptions, TaskBeginning, WorkerEvent, WorkerOptions};
use crow_process::ProcessGroups;
use crow_store::DatabaseAddress;
use crow_tools::GitCli;
use tokio_util::sync::CancellationToken;

use crate::{
    agent,
    cli::{NatsCredentialArgs, WorkerArgs},
    failure::{CliError, CliExitCode},
    log::{self, LogVerbosity},
    settings::Settings,
};

/// Directory of the tasks' directories, beside that of worktrees: what writes in the configuration directory always asks.
const WORKSPACES_DIR: &str = "worker";

/// The hidden subcommand of a worker's watchdog.
pub(crate) const WATCHDOG_SUBCOMMAND: &str = "worker-watchdog";

/// Returns the tasks of a worker that was killed to their queue. Its input is the worker's end of a pipe.
pub(crate) fn run_watchdog(dir: &Path, verbosity: LogVerbosity) -> Result<(), CliError> {
    crow_process::outlive_parent();
    let failed = |reason: String| CliError::new(CliExitCode::Failed, reason);
    let Some(tasks) = AbandonedTasks::wait_for(io::stdin().lock()).map_err(failed)? else { return Ok(()) };
    log::start_logging(dir, verbosity);
    match agent::tokio_runtime()?.block_on(tasks.give_back()) {
        Ok(n_tasks) => tracing::warn!(n_tasks, "a worker was killed; its tasks were given back"),
        Err(reason) => tracing::warn!(%reason, "a worker was killed; its tasks are begun again later"),
    }
    Ok(())
}

/// Runs tasks until the process is told to stop.
pub(crate) fn run(args: WorkerArgs, settings: &Settings, verbosity: LogVerbosity) -> Result<(), CliError> {
    log::start_logging(&settings.dir, verbosity);
    let queues = match args.queues.as_slice() {
        [queue] => format!("queue {queue}"),
        queues => format!("queues {}", queues.join(", ")),
    };
    let n_slots = args.slots;
    let options = worker_options(args, settings)?;
    let (name, launcher) = (options.name.clone(), options.launcher.clone());
    let runtime = agent::tokio_runtime()?;
    let result = runtime.block_on(async {
        let connected = FleetWorker::connect(options, |event| print_line(&describe_event(&event))).await;
        let worker = connected.map_err(|reason| {
            let error = CliError::new(CliExitCode::Failed, format!("the {queues} cannot be used: {reason}"));
            error.with_hint(
                "check the address, the credentials, and that the server has JetStream (`nats-server -js`)",
            )
        })?;
        let stop = CancellationToken::new();
        print_line(&format!("worker {name} runs tasks of the {queues}, {n_slots} at a time"));
        let serving = worker.run(stop.clone());
        let serving = Box::pin(async {
            serving.await;
            Ok(())
        });
        agent::serve_until_stopped(serving, &stop).await
    });
    launcher.kill_all();
    runtime.shutdown_background();
    result
}

fn worker_options(args: WorkerArgs, settings: &Settings) -> Result<WorkerOptions, CliError> {
    let failed = |reason: String| CliError::new(CliExitCode::Failed, reason);
    let server = nats_server(args.nats, args.credentials)?;
    let program = agent::agent_info().program.and_then(|program| program.to_str().map(str::to_owned));
    let (Some(program), Some(dir)) = (program, settings.dir.to_str()) else {
        return Err(failed("the path of this program or of its configuration is not UTF-8".to_owned()));
    };
    let workspaces_dir = workspaces_dir(args.workspaces, settings)
        .map_err(|error| failed(format!("could not make the directory for the tasks: {error}")))?;
    let own_program = |subcommand: &str| AgentCommand {
        program: program.clone(),
        args: vec!["-d".to_owned(), dir.to_owned(), subcommand.to_owned()],
        cwd: workspaces_dir.clone(),
        env: Vec::new(),
        env_removed: Vec::new(),
    };
    Ok(WorkerOptions {
        server,
        queues: args.queues.into_iter().map(|queue| QueueOptions::new(queue, args.replicas.into())).collect(),
        name: match args.name {
            Some(name) => name,
            None => random_name().map_err(|error| failed(format!("no random numbers: {error}")))?,
        },
        n_slots: usize::from(args.slots),
        agent: own_program("acp"),
        watchdog: Some(own_program(WATCHDOG_SUBCOMMAND)),
        depth_variable: DEPTH_VARIABLE,
        launcher: AgentLauncher::new(agent::sandbox_wrapper(settings)),
        workspaces_dir: workspaces_dir.clone(),
        git: GitCli::new(ProcessGroups::new(), &settings.secret_variables),
        shares_sessions: matches!(settings.database, DatabaseAddress::Server { .. }),
        mode_max: args.mode.as_deref().and_then(Mode::parse).unwrap_or(settings.mode),
        task_time_max: settings.tree_limits.task_timeout,
        drain_time_max: Duration::from_secs(args.drain),
        version: agent::VERSION,
    })
}

/// Returns the servers of an address with what logs in there.
pub(crate) fn nats_server(urls: String, args: NatsCredentialArgs) -> Result<NatsServer, CliError> {
    let credentials = match (args.token_file, args.user.zip(args.password_file)) {
        (Some(file), _) => NatsCredentials::Token(read_secret(&file)?),
        (None, Some((user, file))) => NatsCredentials::Password { user, password: read_secret(&file)? },
        (None, None) => match (args.creds_file, args.nkey_file) {
            (Some(file), _) => NatsCredentials::CredentialsFile(file),
            (None, Some(file)) => NatsCredentials::NkeyFile(file),
            (None, None) => NatsCredentials::None,
        },
    };
    Ok(NatsServer { urls, credentials, tls_ca_file: args.ca_file })
}

/// Makes the directory for the tasks, which only this user can read.
fn workspaces_dir(chosen: Option<PathBuf>, settings: &Settings) -> io::Result<PathBuf> {
    let dir = chosen.unwrap_or_else(|| settings.worktrees_dir.with_file_name(WORKSPACES_DIR));
    crow_files::create_private_dir(&dir)?;
    Ok(crow_files::resolve_links(&dir))
}

fn read_secret(file: &Path) -> Result<String, CliError> {
    let text = fs::read_to_string(file).map_err(|error| {
        CliError::new(CliExitCode::Failed, format!("could not read {}: {error}", file.display()))
    })?;
    Ok(text.trim().to_owned())
}

fn random_name() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes)?;
    Ok(format!("worker-{:08x}", u32::from_be_bytes(bytes)))
}

fn describe_event(event: &WorkerEvent) -> String {
    match event {
        WorkerEvent::QueueUnavailable { reason } => format!("{reason}; trying again"),
        WorkerEvent::Taken { task, delivery, beginning } => match beginning {
            TaskBeginning::First => format!("task {task}: begins"),
            TaskBeginning::Again => format!("task {task}: begins again, delivery {delivery}"),
            TaskBeginning::Continued => format!("task {task}: goes on, delivery {delivery}"),
        },
        WorkerEvent::Ended { task, outcome } => format!("task {task}: {outcome}"),
    }
}

/// Prints a line for the operator, who may have closed stdout.
fn print_line(line: &str) {
    let mut out = io::stdout().lock();
    if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
        tracing::info!(line, "stdout is closed");
    }
}
