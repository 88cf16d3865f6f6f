//! `crow-cli init`: creates a working configuration from keys.

mod config_files;
mod config_text;
mod environment_scan;
mod known_providers;
mod local_servers;
mod model_choice;
mod model_servers;
mod python;
#[cfg(test)]
mod tests;
mod trial;
mod web_search;
mod wizard;

use std::{
    io::{self, IsTerminal},
    path::Path,
};

use crow_model::ModelListing;

use self::{
    config_files::ConfigDraft,
    environment_scan::{EnvironmentScan, ProviderChoice},
    known_providers::KnownProvider,
    local_servers::{LocalScan, ScannedServer},
    model_servers::ModelServers,
    trial::{TEXT_ONLY, TrialOutcome},
    web_search::{ExistingFiles, SearchChoice},
};
pub(crate) use self::{
    local_servers::USUAL_SERVERS,
    model_servers::{InitContext, RemoteModelServers},
    python::find_python_config,
};
use crate::{
    cli::InitArgs,
    failure::{CliError, CliExitCode},
    providers::LIST_WAIT,
    settings::{self, CONFIG_FILE, Environment},
};

/// Enough to switch between; a gateway has hundreds.
const MODELS_MAX: usize = 5;

/// Sets up from the environment or interactively.
pub(crate) async fn run(
    args: &InitArgs,
    dir: &Path,
    env: &Environment,
    context: &InitContext<'_, impl ModelServers>,
    log: &mut impl io::Write,
) -> Result<(), CliError> {
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

async fn init_from_environment(
    dir: &Path,
    env: &Environment,
    context: &InitContext<'_, impl ModelServers>,
    log: &mut impl io::Write,
) -> Result<(), CliError> {
    let config = dir.join(CONFIG_FILE);
    if config.exists() {
        let message = format!("{} already exists", config.display());
        return Err(CliError::new(CliExitCode::Config, message)
            .with_hint("add to it or replace it with `crow-cli init` on a terminal, or edit it with `crow-cli config edit`"));
    }
    let (merged_env, file_variables) = settings::merge_env_file(dir, env)?;
    let EnvironmentScan { mut providers, notes } = environment_scan::scan_environment(&merged_env);
    let LocalScan { servers, notes: local_notes } =
        local_servers::scan_local_servers(context.servers, &providers, context.models).await;
    for note in notes.into_iter().chain(local_notes) {
        writeln!(log, "note: {note}")?;
    }
    if providers.is_empty() && servers.is_empty() {
        let hint = "set the key of a provider, such as ANTHROPIC_API_KEY or OPENAI_API_KEY, or LLM_<NAME>_API_KEY and \
                    LLM_<NAME>_BASE_URL, or start a server such as Ollama on this machine";
        return Err(
            CliError::new(CliExitCode::Config, "no provider was found in the environment").with_hint(hint)
        );
    }
    for provider in providers.iter_mut().filter(|provider| provider.models.is_empty()) {
        match context.models.list(provider.to_settings(), LIST_WAIT).await {
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
    let search_url = search.url_to_store(&merged_env);
    let draft = ConfigDraft { providers: &providers, search_url: search_url.as_deref(), database_uri: None };
    config_files::write_config_files(dir, &draft, &file_variables)?;
    report_written(&config, &providers, log)?;
    report_trial(&providers, context.models, log).await?;
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
    let models = model_choice::chat_models(listing);
    let models = match KnownProvider::at(&provider.base_url) {
        Some(known) => {
            let newest = known.newest_model(&models);
            if newest.is_none() && !models.is_empty() {
                let (name, families, variable) = (
                    &provider.name,
                    known.families.join(" or ").replace("{version}", "*"),
                    provider.model_variable(),
                );
                writeln!(log, "note: {name} lists no {families}; choose a model with {variable}")?;
                return Ok(());
            }
            newest.into_iter().collect()
        }
        None => models.into_iter().take(MODELS_MAX).collect::<Vec<_>>(),
    };
    let (models, notes) = model_choice::select_models(listing, models.into_iter(), &provider.base_url);
    if models.is_empty() {
        writeln!(log, "note: {} lists no chat model", provider.name)?;
    }
    provider.models = models;
    notes.iter().try_for_each(|note| writeln!(log, "note: {note}"))
}

/// Asks the default model for a tool call and reports the outcome.
async fn report_trial(
    providers: &[ProviderChoice],
    servers: &impl ModelServers,
    log: &mut impl io::Write,
) -> io::Result<()> {
    let models =
        providers.iter().flat_map(|provider| provider.models.iter().map(move |model| (provider, model)));
    let Some((provider, model)) = models.into_iter().next() else { return Ok(()) };
    match servers.try_model(&model.to_settings(provider.to_settings())).await {
        Ok(TrialOutcome::CalledTool) => writeln!(log, "{} answered and called a tool", model.name),
        Ok(TrialOutcome::TextOnly) => writeln!(log, "note: {} {TEXT_ONLY}", model.name),
        Err(failure) => {
            let message = failure.message.trim_end_matches('.');
            writeln!(log, "note: {} did not answer: {message}; `crow-cli doctor` checks it again", model.name)
        }
    }
}

fn report_written(config: &Path, providers: &[ProviderChoice], log: &mut impl io::Write) -> io::Result<()> {
    writeln!(log, "wrote {}", config.display())?;
    for provider in providers.iter().filter(|provider| !provider.models.is_empty()) {
        writeln!(log, "  {}: {}", provider.name, model_choice::join_names(&provider.models))?;
    }
    writeln!(log, "the first model is the default; edit the file to change it")
}
