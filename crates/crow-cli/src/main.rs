//! The binary: arguments in, exit code out.

mod agent;
mod agents;
mod auth;
mod batch;
mod bridge;
mod cli;
mod completion;
mod config;
mod database;
mod demo;
mod doctor;
mod failure;
mod fleet;
mod init;
mod inspect;
mod log;
mod man_pages;
mod mcp;
mod migration_notice;
mod models;
mod money;
mod permissions;
mod platform;
mod privacy;
mod providers;
mod report;
mod run;
mod sessions;
mod settings;
mod shown_warnings;
mod sign_in;
mod socket;
mod speckit;
mod table;
mod token;
mod tools;
mod trust;
mod undo;
mod usage;
mod worker;

use std::{
    io::{self, IsTerminal as _, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{CommandFactory as _, Parser};
use crow_store::{DatabaseAddress, Timestamp};
use crow_tui::SessionChoice;

use crate::{
    agent::ConfigSource,
    cli::{
        AcpArgs, AuthArgs, BatchArgs, Cli, CliCommand, InitArgs, InspectArgs, LazyArgs, ModelsArgs, RunArgs,
        SessionsSubcommand, TerminalArgs, UndoArgs, UsageArgs,
    },
    failure::{CliError, CliExitCode},
    init::{InitContext, RemoteModelServers, USUAL_SERVERS},
    log::LogVerbosity,
    migration_notice::MigrationNotice,
    run::EarlyErrorOutput,
    settings::{CONFIG_FILE, Environment, Settings},
};

fn main() -> ExitCode {
    #[expect(unsafe_code, reason = "only here it is sure that nothing else runs yet")]
    // SAFETY: the process has one thread, and the environment has not been read yet.
    unsafe {
        crow_process::hide_environment();
    }
    // Every sandboxed command goes through this path, so it is checked first.
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|word| word == crow_process::SUBCOMMAND) {
        return crow_process::run_sandbox_exec(args);
    }
    if let Some(code) = completion::answer_request() {
        return code;
    }
    crow_process::ignore_file_size_signal();
    crow_process::raise_descriptor_limit();
    match run_command(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(&mut io::stderr().lock()),
    }
}

fn run_command(cli: Cli) -> Result<(), CliError> {
    let mut out = io::BufWriter::new(io::stdout());
    let env = settings::read_environment();
    let dir = settings::config_dir(cli.config_dir, &env)?;
    let verbosity = if cli.verbose { LogVerbosity::Verbose } else { LogVerbosity::Normal };
    let load = || load_settings(&dir, &env);
    let Some(command) = choose_command(cli.command, &cli.terminal)? else {
        return start_terminal(cli.terminal, dir, env, verbosity);
    };
    match command {
        CliCommand::Auth(AuthArgs { server: Some(server), forget }) => {
            run_sign_in(&server, forget, &load()?, &mut out)?;
        }
        CliCommand::Auth(AuthArgs { server: None, .. }) | CliCommand::Acp(AcpArgs { set_up: true, .. }) => {
            match auth::run(&load()?, &mut out)? {
                auth::AuthStatus::Ready => {}
                auth::AuthStatus::NeedsSetup => run_init(&InitArgs { yes: false, from: None }, &dir, &env)?,
            }
        }
        CliCommand::Acp(AcpArgs { set_up: false, listen, token_file }) => {
            let _export = log::start_logging_and_export(&dir, &env, verbosity);
            agent::serve_agent(ConfigSource::new(dir, env), listen.as_ref(), token_file.as_deref())?;
        }
        CliCommand::AcpBridge(LazyArgs(args)) => bridge::run(args, &dir, verbosity, &env, &current_dir()?)?,
        CliCommand::Worker(LazyArgs(args)) => worker::run(args, &load()?, verbosity)?,
        CliCommand::Fleet(LazyArgs(args)) => fleet::run(args, &mut out)?,
        CliCommand::WorkerWatchdog => worker::run_watchdog(&dir, verbosity)?,
        CliCommand::Run(LazyArgs(args)) => {
            let _export = log::start_logging_and_export(&dir, &env, verbosity);
            prompt(args, None, dir, env)?;
        }
        CliCommand::Batch(LazyArgs(args)) => run_batch(args, dir, env, verbosity)?,
        CliCommand::Demo => demo::run(run::terminal_output(), demo::choose_pace(), &mut out)?,
        CliCommand::Mcp(LazyArgs(args)) => {
            log::start_logging(&dir, verbosity);
            mcp::run(&args, &load()?, &current_dir()?)?;
        }
        CliCommand::Tools(LazyArgs(args)) => tools::run(&args, &load()?, &mut out)?,
        CliCommand::Agents(LazyArgs(args)) => agents::run(&args, &load()?, &env, &current_dir()?, &mut out)?,
        CliCommand::Models(LazyArgs(args)) => run_models(&args, &load()?, &mut out)?,
        CliCommand::Inspect(LazyArgs(args)) => inspect_sessions(&args, &load()?.database, &mut out)?,
        CliCommand::Sessions { command } => change_sessions(&command, &load()?.database, &mut out)?,
        CliCommand::Usage(LazyArgs(args)) => show_usage(&args, &load()?, &mut out)?,
        CliCommand::Undo(LazyArgs(args)) => undo_changes(&args, &load()?.database, &mut out)?,
        CliCommand::Trust(LazyArgs(args)) => {
            trust::run(&args, &load()?, &current_dir()?, sessions::ask_confirmation, &mut out)?;
        }
        CliCommand::Permissions(LazyArgs(args)) => permissions::run(&args, &dir, &current_dir()?, &mut out)?,
        CliCommand::Speckit(LazyArgs(args)) => speckit::run(&args, &load()?, &current_dir()?, &mut out)?,
        CliCommand::Doctor(LazyArgs(args)) => {
            agent::tokio_runtime()?.block_on(doctor::run(&args, &dir, &env, current_dir()?, &mut out))?;
        }
        CliCommand::Report(LazyArgs(args)) => {
            agent::tokio_runtime()?.block_on(report::run(&args, &dir, &env, current_dir()?, &mut out))?;
        }
        CliCommand::Init(LazyArgs(args)) => run_init(&args, &dir, &env)?,
        CliCommand::Config { command } => config::run(&command, &dir, &env, &mut out)?,
        CliCommand::Completions(LazyArgs(args)) => completion::write_script(&args, &mut out)?,
        CliCommand::ManPages { directory } => man_pages::write_man_pages(&directory)?,
    }
    Ok(out.flush()?)
}

/// Returns the subcommand; `None` for the interactive terminal. In front of a subcommand the terminal's prompt, session
/// and options are rejected.
fn choose_command(command: Option<CliCommand>, args: &TerminalArgs) -> Result<Option<CliCommand>, CliError> {
    if command.is_some() && args.is_used() {
        let error = CliError::new(CliExitCode::Usage, "a subcommand takes its own prompt and options");
        return Err(error.with_hint("write them after the subcommand"));
    }
    let set_up = || CliCommand::Auth(AuthArgs { server: None, forget: false });
    Ok(command.or_else(|| args.set_up.then(set_up)))
}

/// Starts the interactive terminal; without a terminal and a prompt there is nothing to start.
fn start_terminal(
    args: TerminalArgs,
    dir: PathBuf,
    env: Environment,
    verbosity: LogVerbosity,
) -> Result<(), CliError> {
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    if !is_terminal && args.prompt.is_none() {
        let help = Cli::command().render_help();
        write!(io::stderr(), "{help}")?;
        return Err(CliError::without_message(CliExitCode::Usage));
    }
    if let Some(word) = args.prompt.as_deref().filter(|prompt| !prompt.contains(char::is_whitespace)) {
        check_word(word, is_terminal)?;
    }
    let is_first_start = !dir.join(CONFIG_FILE).exists() && args.options.agent.is_none();
    if is_terminal && io::stderr().is_terminal() && is_first_start {
        run_init(&InitArgs { yes: false, from: None }, &dir, &env)?;
    }
    let _export = log::start_logging_and_export(&dir, &env, verbosity);
    let run_args = RunArgs {
        interactive: is_terminal,
        prompt: args.prompt,
        options: args.options,
        ..RunArgs::default()
    };
    let target = match (args.continue_newest, args.resume) {
        (true, _) => SessionChoice::Newest,
        (false, Some(id)) if id.is_empty() => SessionChoice::Ask,
        (false, Some(id)) => SessionChoice::Stored(id),
        (false, None) => SessionChoice::New,
    };
    prompt(run_args, Some(target), dir, env)
}

/// Rejects a prompt of one word that is rather a mistyped subcommand. Without a terminal any word is: a script that
/// mistypes a subcommand must not start a turn.
fn check_word(word: &str, is_terminal: bool) -> Result<(), CliError> {
    let command = Cli::command();
    let names = command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
    let nearest = crow_core::nearest_name(word, names.map(clap::Command::get_name));
    let hint = match nearest {
        Some(nearest) => {
            format!("did you mean `crow-cli {nearest}`? `crow-cli run {word}` sends it as a prompt")
        }
        None if is_terminal => return Ok(()),
        None => format!("`crow-cli run {word}` sends it as a prompt"),
    };
    Err(CliError::new(CliExitCode::Usage, format!("unrecognized subcommand '{word}'")).with_hint(hint))
}

fn prompt(
    args: RunArgs,
    target: Option<SessionChoice>,
    dir: PathBuf,
    env: Environment,
) -> Result<(), CliError> {
    let errors = EarlyErrorOutput::new(&args);
    let start = || {
        let settings = load_settings(&dir, &env)?;
        let _migration_notice = MigrationNotice::for_database(&settings.database);
        let overrides = args.options.overrides.clone();
        let source = ConfigSource { overrides, ..ConfigSource::new(dir, env) };
        run::run(args, target, &settings, (source, &current_dir()?), &errors)
    };
    start().inspect_err(|error| errors.write_error(error))
}

fn run_batch(
    args: BatchArgs,
    dir: PathBuf,
    env: Environment,
    verbosity: LogVerbosity,
) -> Result<(), CliError> {
    let _export = log::start_logging_and_export(&dir, &env, verbosity);
    let settings = load_settings(&dir, &env)?;
    let _migration_notice = MigrationNotice::for_database(&settings.database);
    let source = ConfigSource { overrides: args.overrides.clone(), ..ConfigSource::new(dir, env) };
    batch::run(args, &settings, &source, &current_dir()?)
}

fn inspect_sessions(
    args: &InspectArgs,
    database: &DatabaseAddress,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let _migration_notice = MigrationNotice::for_database(database);
    agent::tokio_runtime()?.block_on(inspect::run(args, database, current_time(), out))
}

fn change_sessions(
    command: &SessionsSubcommand,
    database: &DatabaseAddress,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let _migration_notice = MigrationNotice::for_database(database);
    let (now, confirm) = (current_time(), sessions::ask_confirmation);
    agent::tokio_runtime()?.block_on(sessions::run(command, database, now, confirm, out))
}

fn undo_changes(args: &UndoArgs, database: &DatabaseAddress, out: &mut impl Write) -> Result<(), CliError> {
    let _migration_notice = MigrationNotice::for_database(database);
    let (cwd, mut stderr) = (current_dir()?, io::stderr());
    agent::tokio_runtime()?.block_on(undo::run(args, database, &cwd, out, &mut stderr))
}

fn show_usage(args: &UsageArgs, settings: &Settings, out: &mut impl Write) -> Result<(), CliError> {
    let _migration_notice = MigrationNotice::for_database(&settings.database);
    let cells = crow_process::terminal_size(&io::stdout()).ok().flatten();
    let columns = cells.map(|cells| usize::from(cells.columns));
    agent::tokio_runtime()?.block_on(usage::run(args, settings, &jiff::Zoned::now(), columns, out))
}

fn run_sign_in(
    server: &str,
    forget: bool,
    settings: &Settings,
    out: &mut impl Write,
) -> Result<(), CliError> {
    match forget {
        true => sign_in::sign_out(settings, server, out),
        false => agent::tokio_runtime()?.block_on(sign_in::run(settings, server, out)),
    }
}

fn current_time() -> Timestamp {
    Timestamp(jiff::Timestamp::now().as_millisecond())
}

fn run_models(args: &ModelsArgs, settings: &Settings, out: &mut impl Write) -> Result<(), CliError> {
    match args.available {
        true => agent::tokio_runtime()?.block_on(models::list_available_models(
            args,
            settings,
            out,
            &mut io::stderr(),
        )),
        false => models::run(args, settings, out),
    }
}

fn run_init(args: &InitArgs, dir: &Path, env: &Environment) -> Result<(), CliError> {
    let context = InitContext { models: &RemoteModelServers, servers: &USUAL_SERVERS };
    agent::tokio_runtime()?.block_on(init::run(args, dir, env, &context, &mut io::stderr()))
}

/// Returns the current directory, in which `run` works by default.
#[expect(clippy::disallowed_methods, reason = "asked once, before anything runs")]
fn current_dir() -> Result<PathBuf, CliError> {
    let dir = std::env::current_dir().map_err(|error| {
        CliError::new(CliExitCode::Failed, format!("could not determine the current directory: {error}"))
    })?;
    require_utf8_dir(dir)
}

/// Rejects a working directory whose path is not UTF-8: it cannot be sent to an agent.
pub(crate) fn require_utf8_dir(dir: PathBuf) -> Result<PathBuf, CliError> {
    if dir.to_str().is_some() {
        return Ok(dir);
    }
    let error = CliError::new(
        CliExitCode::Usage,
        format!("the path of the directory {} is not UTF-8", dir.display()),
    );
    Err(error.with_hint("rename it or its parent directory, or work in another one"))
}

/// Returns a directory without links; it must exist.
pub(crate) fn require_existing_dir(dir: &Path) -> Result<PathBuf, CliError> {
    if dir.is_dir() {
        return require_utf8_dir(crow_files::resolve_links(dir));
    }
    Err(CliError::new(CliExitCode::Usage, format!("the directory {} does not exist", dir.display())))
}

/// Loads the settings and prints new warnings on stderr.
fn load_settings(dir: &Path, env: &Environment) -> Result<Settings, CliError> {
    let (settings, warnings) = Settings::load(dir, env)?;
    let mut stderr = io::stderr().lock();
    for warning in shown_warnings::unseen_warnings(dir, warnings) {
        // A closed stderr is not an error.
        let _ = writeln!(stderr, "warning: {warning}");
    }
    if let Some(warning) = privacy::make_all_private(&settings) {
        let _ = writeln!(stderr, "warning: {}", table::sanitize_line(&warning));
    }
    Ok(settings)
}
