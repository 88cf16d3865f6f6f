//! The interactive part of `init`. Blocks on the terminal; nothing else runs meanwhile.

use std::{io, path::Path, time::Duration};

use crow_core::Failure;
use crow_model::{ListedModel, ModelListing, ProviderSettings};

use super::{
    InitContext, MODELS_MAX, config_files,
    environment_scan::{self, ProviderChoice},
    find_python_config, join_names,
    local_servers::{self, LocalScan},
    model_choice::{self, ModelChoice},
    python,
    web_search::{self, ExistingFiles, SearchChoice},
};
use crate::{
    failure::{CliError, CliExitCode},
    providers::LIST_WAIT,
    settings::{self, CONFIG_FILE, Environment, SEARCH_COMPOSE, SEARCH_VARIABLE},
};

/// Longer lists scroll.
const ROWS_MAX: usize = 12;
const OTHER: &str = "other";
const OUTRO: &str = "Done. Try: crow-cli run \"what is in this directory?\"";

/// Asks for providers, keys and models, shows a review, and writes the files.
pub(super) async fn run_wizard<List>(
    dir: &Path,
    env: &Environment,
    context: &InitContext<'_, List>,
) -> Result<(), CliError>
where
    List: AsyncFn(ProviderSettings, Duration) -> Result<ModelListing, Failure>,
{
    let (merged_env, file_variables) = settings::merge_env_file(dir, env)?;
    cliclack::intro("crow-cli init").map_err(prompt_error)?;
    if let Some(directory) = find_python_config(dir, env) {
        let question =
            format!("{} has a configuration of the Python version. Import it?", directory.display());
        if ask_yes_no(&question)? {
            let mut messages = Vec::new();
            python::import_python_config(&directory, dir, env, &mut messages)?;
            cliclack::note("Imported", String::from_utf8_lossy(&messages).trim_end())
                .map_err(prompt_error)?;
            return cliclack::outro(OUTRO).map_err(prompt_error);
        }
    }
    let config = dir.join(CONFIG_FILE);
    if config.exists() && !ask_yes_no(&format!("{} exists. Replace it?", config.display()))? {
        return cliclack::outro_cancel("Nothing was written.").map_err(prompt_error);
    }
    let servers = find_local_servers(context).await?;
    let mut providers: Vec<ProviderChoice> = Vec::new();
    loop {
        let mut provider = ask_provider(&merged_env, &servers)?;
        provider.models = ask_models(&provider, context.list).await?;
        providers.retain(|other| other.name != provider.name);
        providers.push(provider);
        if !ask_yes_no("Add another provider?")? {
            break;
        }
    }
    let (search, existing) = ask_search(dir, &merged_env)?;
    let lines = providers.iter().map(|provider| {
        let key = provider.key.as_ref().map_or("no key", |(variable, _)| variable.as_str());
        format!("{}  {}  {key}\n  {}", provider.name, provider.base_url, join_names(&provider.models))
    });
    let lines = lines.chain([format!("web search  {}", search.label())]);
    cliclack::note("Review", lines.collect::<Vec<_>>().join("\n")).map_err(prompt_error)?;
    if !ask_yes_no(&format!("Write {}?", config.display()))? {
        return cliclack::outro_cancel("Nothing was written.").map_err(prompt_error);
    }
    // A new key replaces the one in the file: of two lines for a variable, the last wins.
    let url = search.url_to_store(&merged_env);
    let is_new_url = |name: &str| {
        name == SEARCH_VARIABLE && url.as_ref().is_some_and(|url| merged_env.get(name) != Some(url))
    };
    let is_new = |name: &str| is_typed_key(&providers, &merged_env, name) || is_new_url(name);
    let file_variables: Vec<String> = file_variables.into_iter().filter(|name| !is_new(name)).collect();
    config_files::write_config_files(dir, &providers, url.as_deref(), &file_variables)?;
    if search == SearchChoice::Docker {
        web_search::write_search_files(dir, existing)?;
        cliclack::log::info(format!("Start SearXNG with: {}", web_search::start_command(dir)))
            .map_err(prompt_error)?;
    }
    cliclack::outro(OUTRO).map_err(prompt_error)
}

fn is_typed_key(providers: &[ProviderChoice], env: &Environment, name: &str) -> bool {
    let mut keys = providers.iter().filter_map(|provider| provider.key.as_ref());
    keys.any(|(variable, key)| variable == name && env.get(name) != Some(key))
}

/// Asks for the search service.
fn ask_search(dir: &Path, env: &Environment) -> Result<(SearchChoice, ExistingFiles), CliError> {
    let configured = SearchChoice::from_environment(env);
    let mut select = cliclack::select("Web search (SearXNG)");
    if let SearchChoice::Url(url) = &configured {
        select = select.item(configured.clone(), url, "from SEARXNG_URL");
    }
    let other = SearchChoice::Url(String::new());
    let choice = select
        .item(SearchChoice::Docker, "a new one in Docker", "writes its compose file")
        .item(other.clone(), "one that already runs", "")
        .item(SearchChoice::Disabled, "none for now", "")
        .interact()
        .map_err(prompt_error)?;
    if choice == other {
        let address = cliclack::input("Address").placeholder("http://localhost:8080");
        let url: String =
            address.validate(|address: &String| check_address(address)).interact().map_err(prompt_error)?;
        return Ok((SearchChoice::Url(url), ExistingFiles::Keep));
    }
    let may_replace = choice == SearchChoice::Docker && web_search::has_compose_file(dir);
    let question = format!("{} exists. Replace it?", dir.join(SEARCH_COMPOSE).display());
    let existing =
        if may_replace && ask_yes_no(&question)? { ExistingFiles::Replace } else { ExistingFiles::Keep };
    Ok((choice, existing))
}

/// Scans this machine for model servers and shows the result.
async fn find_local_servers<List>(context: &InitContext<'_, List>) -> Result<Vec<ProviderChoice>, CliError>
where
    List: AsyncFn(ProviderSettings, Duration) -> Result<ModelListing, Failure>,
{
    let spinner = cliclack::spinner();
    spinner.start("Looking for model servers on this machine");
    let LocalScan { servers, notes } =
        local_servers::scan_local_servers(context.servers, &[], context.list).await;
    spinner.stop(format!("Model servers on this machine: {}", servers.len()));
    for note in notes {
        cliclack::log::info(crow_core::to_sentence(&note)).map_err(prompt_error)?;
    }
    Ok(servers.into_iter().map(|server| server.provider).collect())
}

fn ask_provider(env: &Environment, servers: &[ProviderChoice]) -> Result<ProviderChoice, CliError> {
    let mut select = cliclack::select("Provider");
    for server in servers {
        select = select.item(
            server.base_url.as_str(),
            &server.name,
            format!("{}, no key required", server.base_url),
        );
    }
    for (name, url) in environment_scan::WELL_KNOWN {
        select = select.item(name, name, url.to_owned());
    }
    let choice = select
        .item(OTHER, "another OpenAI-compatible server", String::new())
        .interact()
        .map_err(prompt_error)?;
    if let Some(server) = servers.iter().find(|found| found.base_url == choice) {
        return Ok(server.clone());
    }
    let known = environment_scan::WELL_KNOWN.iter().find(|(name, _)| *name == choice);
    let (name, base_url, variable) = match known {
        Some((name, url)) => (
            (*name).to_owned(),
            (*url).to_owned(),
            format!("{}_API_KEY", environment_scan::variable_part(name)),
        ),
        None => {
            let name: String =
                cliclack::input("Name").placeholder("local").interact().map_err(prompt_error)?;
            let address =
                cliclack::input("Base URL, up to and including /v1").placeholder("http://localhost:11434/v1");
            let url: String = address
                .validate(|address: &String| check_address(address))
                .interact()
                .map_err(prompt_error)?;
            let variable = format!("LLM_{}_API_KEY", environment_scan::variable_part(&name));
            (name, url, variable)
        }
    };
    let key = ask_key(&variable, env)?.map(|key| (variable, key));
    Ok(ProviderChoice { name, base_url, key, models: Vec::new() })
}

fn check_address(address: &str) -> Result<(), &'static str> {
    let is_http = address.starts_with("http://") || address.starts_with("https://");
    is_http.then_some(()).ok_or("the address must start with https:// or http://")
}

/// Takes the key from the environment if the user agrees, else asks for it with hidden input.
fn ask_key(variable: &str, env: &Environment) -> Result<Option<String>, CliError> {
    if let Some(key) = env.get(variable).filter(|key| !key.is_empty())
        && ask_yes_no(&format!("Use the key in {variable}?"))?
    {
        return Ok(Some(key.clone()));
    }
    let question = "API key (hidden; leave empty if none is required)";
    let key: String =
        cliclack::password(question).mask('•').allow_empty().interact().map_err(prompt_error)?;
    let key = key.trim().to_owned();
    Ok(Some(key).filter(|key| !key.is_empty()))
}

async fn ask_models(
    provider: &ProviderChoice,
    list: &impl AsyncFn(ProviderSettings, Duration) -> Result<ModelListing, Failure>,
) -> Result<Vec<ModelChoice>, CliError> {
    let spinner = cliclack::spinner();
    spinner.start("Fetching the model list");
    let listing = match list(provider.to_settings(), LIST_WAIT).await {
        Ok(listing) => {
            spinner.stop(format!("{} models", listing.models.len()));
            listing
        }
        Err(failure) => {
            spinner.error(crow_core::to_sentence(&format!("could not list the models: {}", failure.message)));
            ModelListing::default()
        }
    };
    if listing.models.is_empty() {
        let name: String = cliclack::input("Model name at the provider").interact().map_err(prompt_error)?;
        return Ok(vec![ModelChoice::from_name(name.trim())]);
    }
    let question =
        format!("Models (space selects, typing filters; {MODELS_MAX} or fewer are easy to switch between)");
    let mut select = cliclack::multiselect(question).filter_mode().max_rows(ROWS_MAX);
    for (n, model) in listing.models.iter().enumerate() {
        select = select.item(n, &model.id, model_hint(model));
    }
    let selected: Vec<usize> = select.interact().map_err(prompt_error)?;
    let selected = selected.into_iter().filter_map(|n| listing.models.get(n));
    let (models, notes) = model_choice::select_models(&listing, selected);
    for note in notes {
        cliclack::log::warning(crow_core::to_sentence(&note)).map_err(prompt_error)?;
    }
    Ok(models)
}

/// Describes a model in the selection list.
fn model_hint(model: &ListedModel) -> String {
    let window = match (model.window, model.window_max) {
        (Some(window), _) => Some(format!("{window} tokens")),
        (None, max) => max.map(|max| format!("up to {max} tokens")),
    };
    let price = model.price.map(|price| format!("{} / {} USD per million", price.input, price.output));
    let tools = (model.takes_tools == Some(false)).then(|| "no tool support".to_owned());
    [window, price, tools].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn ask_yes_no(question: &str) -> Result<bool, CliError> {
    cliclack::confirm(question).interact().map_err(prompt_error)
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` hands the error over")]
fn prompt_error(error: io::Error) -> CliError {
    if error.kind() == io::ErrorKind::Interrupted {
        return CliError::without_message(CliExitCode::Interrupted);
    }
    CliError::new(CliExitCode::Failed, format!("could not read the answer: {error}"))
}
