//! The binary: arguments in, exit code out.

mod agent;
mod agents;
mod auth;
mod bridge;
mod came_over;
mod cli;
mod demo;
mod doctor;
mod failure;
mod init;
mod inspect;
mod log;
mod mcp;
mod models;
mod money;
mod permissions;
mod privacy;
mod providers;
mod run;
mod sessions;
mod settings;
mod sign_in;
mod socket;
mod speckit;
mod table;
mod token;
mod tools;
mod trust;
mod undo;
mod warned;

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{CommandFactory, Parser};
use crow_model::{Http, list_models};
use crow_store::Timestamp;

use crate::{
    agent::Source,
    came_over::Copies,
    cli::{AcpArgs, AuthArgs, Cli, Command, InitArgs, ModelsArgs, RunArgs},
    failure::{Code, Exit},
    init::{Outside, USUAL_PLACES},
    log::Volume,
    settings::{Environment, Settings},
};

fn main() -> ExitCode {
    #[expect(unsafe_code, reason = "only here it is sure that nothing else runs yet")]
    // SAFETY: the process has one thread, and nobody has asked for a variable.
    unsafe {
        crow_process::hide_environment();
    }
    // Every command of a session comes through here, so it is looked at before anything else is made.
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == crow_process::WORD) {
        return crow_process::watch(words);
    }
    crow_process::survive_large_files();
    crow_process::allow_many_descriptors();
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(exit) => exit.report(&mut io::stderr().lock()),
    }
}

fn run(cli: Cli) -> Result<(), Exit> {
    let mut out = io::BufWriter::new(io::stdout());
    let env = settings::environment();
    let dir = settings::config_dir(cli.config_dir, &env)?;
    let volume = if cli.verbose { Volume::Verbose } else { Volume::Normal };
    match cli.command {
        Command::Auth(AuthArgs { server: Some(server), forget }) => {
            sign_in_to(&server, forget, &load(&dir, &env)?, &mut out)?;
        }
        Command::Auth(AuthArgs { server: None, .. }) | Command::Acp(AcpArgs { set_up: true, .. }) => {
            match auth::run(&load(&dir, &env)?, &mut out)? {
                auth::Standing::Usable => {}
                auth::Standing::ToSetUp => set_up(&InitArgs { yes: false, from: None }, &dir, &env)?,
            }
        }
        Command::Acp(AcpArgs { set_up: false, listen, token_file }) => {
            log::start(&dir, volume);
            agent::serve(Source::of(dir, env), listen.as_ref(), token_file.as_deref())?;
        }
        Command::AcpBridge(args) => bridge::run(args, (&dir, volume), &env, &current_dir()?)?,
        Command::Run(args) => {
            log::start(&dir, volume);
            prompt(args, dir, env)?;
        }
        Command::Demo => demo::run(run::screen(), demo::pace(), &mut out)?,
        Command::Mcp(args) => {
            log::start(&dir, volume);
            mcp::run(&args, &load(&dir, &env)?, &current_dir()?)?;
        }
        Command::Tools(args) => tools::run(&args, &load(&dir, &env)?, &mut out)?,
        Command::Agents(args) => agents::run(&args, &load(&dir, &env)?, &env, &current_dir()?, &mut out)?,
        Command::Models(args) => list_them(&args, &load(&dir, &env)?, &mut out)?,
        Command::Inspect(args) => {
            let settings = load(&dir, &env)?;
            let _copies = Copies::beside(&settings.database);
            agent::runtime()?.block_on(inspect::run(&args, &settings.database, now(), &mut out))?;
        }
        Command::Sessions { command } => {
            let settings = load(&dir, &env)?;
            let (_copies, at) = (Copies::beside(&settings.database), (&settings.database, now()));
            agent::runtime()?.block_on(sessions::run(&command, at, sessions::ask_person, &mut out))?;
        }
        Command::Undo(args) => {
            let (settings, cwd) = (load(&dir, &env)?, current_dir()?);
            let (_copies, at) = (Copies::beside(&settings.database), (&settings.database, cwd.as_path()));
            agent::runtime()?.block_on(undo::run(&args, at, &mut out, &mut io::stderr()))?;
        }
        Command::Trust(args) => {
            trust::run(&args, &load(&dir, &env)?, &current_dir()?, sessions::ask_person, &mut out)?;
        }
        Command::Permissions(args) => permissions::run(&args, &dir, &current_dir()?, &mut out)?,
        Command::Speckit(args) => speckit::run(&args, &load(&dir, &env)?, &current_dir()?, &mut out)?,
        Command::Doctor(args) => {
            agent::runtime()?.block_on(doctor::run(&args, (&dir, &env), current_dir()?, &mut out))?;
        }
        Command::Init(args) => set_up(&args, &dir, &env)?,
        Command::Completions { shell } => completions(shell, &mut out)?,
    }
    Ok(out.flush()?)
}

fn prompt(args: RunArgs, dir: PathBuf, env: Environment) -> Result<(), Exit> {
    let settings = load(&dir, &env)?;
    let _copies = Copies::beside(&settings.database);
    let source = Source { wishes: args.wishes.clone(), ..Source::of(dir, env) };
    run::run(args, &settings, source, &current_dir()?)
}

fn sign_in_to(server: &str, forget: bool, settings: &Settings, out: &mut impl Write) -> Result<(), Exit> {
    match forget {
        true => sign_in::forget(settings, server, out),
        false => agent::runtime()?.block_on(sign_in::run(settings, server, out)),
    }
}

fn now() -> Timestamp {
    Timestamp(jiff::Timestamp::now().as_millisecond())
}

fn list_them(args: &ModelsArgs, settings: &Settings, out: &mut impl Write) -> Result<(), Exit> {
    match args.available {
        true => agent::runtime()?.block_on(models::available(args, settings, out, &mut io::stderr())),
        false => models::run(args, settings, out),
    }
}

fn set_up(args: &InitArgs, dir: &Path, env: &Environment) -> Result<(), Exit> {
    let list = async |provider, wait| list_models(&Http::new()?, &provider, wait).await;
    let outside = Outside { list: &list, places: &USUAL_PLACES };
    agent::runtime()?.block_on(init::run(args, dir, env, &outside, &mut io::stderr()))
}

fn completions(shell: clap_complete::Shell, out: &mut impl Write) -> io::Result<()> {
    // The generator panics when it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "crow-cli", &mut script);
    out.write_all(&script)
}

/// The folder the person stands in; `run` works there unless told otherwise.
#[expect(clippy::disallowed_methods, reason = "asked once, before anything runs")]
fn current_dir() -> Result<PathBuf, Exit> {
    let here = std::env::current_dir()
        .map_err(|error| Exit::new(Code::Failed, format!("could not find the current folder: {error}")))?;
    text_folder(here)
}

/// Takes a folder to work in: one whose name is no text cannot be told to an agent.
pub(crate) fn text_folder(folder: PathBuf) -> Result<PathBuf, Exit> {
    if folder.to_str().is_some() {
        return Ok(folder);
    }
    let exit = Exit::new(Code::Usage, format!("the name of the folder {} is not UTF-8", folder.display()));
    Err(exit.with_hint("rename it, or the one above it that is not, or work in another"))
}

/// Reads the settings and says on stderr what is odd in them, once until something changes.
fn load(dir: &Path, env: &Environment) -> Result<Settings, Exit> {
    let (settings, warnings) = Settings::load(dir, env)?;
    let mut stderr = io::stderr().lock();
    for warning in warned::not_shown_yet(dir, warnings) {
        // When stderr is gone there is nobody left to tell.
        let _ = writeln!(stderr, "warning: {warning}");
    }
    if let Some(notice) = privacy::make_all_private(&settings) {
        let _ = writeln!(stderr, "warning: {}", table::plain(&notice));
    }
    Ok(settings)
}
