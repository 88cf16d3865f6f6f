//! `crow-cli init`: creates a working configuration from keys. The only command that writes the configuration files.

mod config_files;
mod config_text;
mod environment_scan;
mod local_servers;
mod model_choice;
mod python;
#[cfg(test)]
mod tests;
mod web_search;
mod wizard;

use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    time::Duration,
};

use crow_core::Failure;
use crow_model::{ListedModel, ModelListing, ProviderSettings};

pub(crate) use self::local_servers::{LocalModelServer, USUAL_SERVERS};
use self::{
    environment_scan::{EnvironmentScan, ProviderChoice},
    local_servers::{LocalScan, ScannedServer},
    model_choice::ModelChoice,
    web_search::{ExistingFiles, SearchChoice},
};
use crate::{
    cli::InitArgs,
    failure::{CliError, CliExitCode},
    providers::LIST_WAIT,
    settings::{self, CONFIG_FILE, Environment},
};

/// Enough to switch between; a gateway has hundreds.
const MODELS_MAX: usize = 5;

/// The parts of the outside world that `init` uses.
pub(crate) struct InitContext<'a, List> {
    /// Requests the models of a provider, with a timeout.
    pub(crate) list: &'a List,
    /// The local servers to look for.
    pub(crate) servers: &'a [LocalModelServer],
}

/// Sets up from the environment or interactively.
pub(crate) async fn run<List>(
    args: &InitArgs,
    dir: &Path,
    env: &Environment,
    context: &InitContext<'_, List>,
    log: &mut impl io::Write,
) -> Result<(), CliError>
where
    List: AsyncFn(ProviderSettings, Duration) -> Result<ModelListing, Failure>,
{
    if let Some(from) = &args.from {
        return python::import_python_config(from, dir, env, log);
    }
    if args.yes {
        if let Some(directory) = find_python_config(dir, env) {
            let directory = directory.display();
            writeln!(
                log,
                "note: {directory} has a configuration of the Python version; import it with `--from {directory}`"
            )?;
        }
        return init_from_environment(dir, env, context, log).await;
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let message = "init asks questions, but there is no terminal";
        return Err(CliError::new(CliExitCode::Usage, message)
            .with_hint("`crow-cli init -y` takes the keys from the environment"));
    }
    wizard::run_wizard(dir, env, context).await
}

/// Returns the directory of a Python configuration that can be imported.
pub(crate) fn find_python_config(dir: &Path, env: &Environment) -> Option<PathBuf> {
    python::find_python_config(dir, env)
}

async fn init_from_environment<List>(
    dir: &Path,
    env: &Environment,
    context: &InitContext<'_, List>,
    log: &mut impl io::Write,
) -> Result<(), CliError>
where
    List: AsyncFn(ProviderSettings, Duration) -> Result<ModelListing, Failure>,
{
    let config = dir.join(CONFIG_FILE);
    if config.exists() {
        let message = format!("{} already exists", config.display());
        return Err(CliError::new(CliExitCode::Config, message)
            .with_hint("edit it, move it away, or replace it with `crow-cli init`"));
    }
    let (merged_env, file_variables) = settings::merge_env_file(dir, env)?;
    let EnvironmentScan { mut providers, notes } = environment_scan::scan_environment(&merged_env);
    let LocalScan { servers, notes: local_notes } =
        local_servers::scan_local_servers(context.servers, &providers, context.list).await;
    for note in notes.into_iter().chain(local_notes) {
        writeln!(log, "note: {note}")?;
    }
    if providers.is_empty() && servers.is_empty() {
        let hint = "set OPENAI_API_KEY or OPENROUTER_API_KEY, or LLM_<NAME>_API_KEY and LLM_<NAME>_BASE_URL, \
                    or start a server such as Ollama on this machine";
        return Err(
            CliError::new(CliExitCode::Config, "no provider was found in the environment").with_hint(hint)
        );
    }
    for provider in providers.iter_mut().filter(|provider| provider.models.is_empty()) {
        match (context.list)(provider.to_settings(), LIST_WAIT).await {
            Ok(listing) => choose_models(provider, &listing, log)?,
            Err(failure) => {
                let (name, reason, variable) = (&provider.name, failure.message, provider.model_variable());
                writeln!(
                    log,
                    "note: could not list the models of {name}: {reason}; choose one with {variable}"
                )?;
            }
        }
    }
    for ScannedServer { mut provider, listing } in servers {
        choose_models(&mut provider, &listing, log)?;
        providers.push(provider);
    }
    if providers.iter().all(|provider| provider.models.is_empty()) {
        let variables: Vec<String> = providers.iter().map(|provider| provider.model_variable()).collect();
        let hint = format!("set {} to a model and run it again", variables.join(" or "));
        return Err(
            CliError::new(CliExitCode::Failed, "no model was found, so nothing was written").with_hint(hint)
        );
    }
    let search = SearchChoice::from_environment(&merged_env);
    config_files::write_config_files(
        dir,
        &providers,
        search.url_to_store(&merged_env).as_deref(),
        &file_variables,
    )?;
    report_written(&config, &providers, log)?;
    if search == SearchChoice::Docker && web_search::write_search_files(dir, ExistingFiles::Keep)? {
        writeln!(log, "to search the web, start SearXNG: {}", web_search::start_command(dir))?;
    }
    Ok(())
}

fn choose_models(
    provider: &mut ProviderChoice,
    listing: &ModelListing,
    log: &mut impl io::Write,
) -> io::Result<()> {
    let is_for_chat =
        |model: &&ListedModel| model.chats.unwrap_or(true) && environment_scan::is_chat_model(&model.id);
    let mut models: Vec<&ListedModel> = listing.models.iter().filter(is_for_chat).collect();
    models.sort_by_key(|model| model.takes_tools == Some(false));
    let (models, notes) = model_choice::select_models(listing, models.into_iter().take(MODELS_MAX));
    if models.is_empty() {
        writeln!(log, "note: {} lists no chat model", provider.name)?;
    }
    provider.models = models;
    notes.iter().try_for_each(|note| writeln!(log, "note: {note}"))
}

/// Joins the names of models into one line.
fn join_names(models: &[ModelChoice]) -> String {
    models.iter().map(|model| model.name.as_str()).collect::<Vec<_>>().join(", ")
}

fn report_written(config: &Path, providers: &[ProviderChoice], log: &mut impl io::Write) -> io::Result<()> {
    writeln!(log, "wrote {}", config.display())?;
    for provider in providers.iter().filter(|provider| !provider.models.is_empty()) {
        writeln!(log, "  {}: {}", provider.name, join_names(&provider.models))?;
    }
    writeln!(log, "the first model is the default; edit the file to change it")
}
