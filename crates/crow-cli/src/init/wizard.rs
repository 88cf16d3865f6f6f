//! The questions of `init`. Blocks on the terminal: nothing else runs meanwhile.

use std::{io, path::Path, time::Duration};

use crow_core::Failure;
use crow_model::{ListedModel, ModelListing, ProviderSettings};

use super::{
    InitContext, MODELS_MAX,
    chosen::{self, ModelChoice},
    find_python_config,
    found::{self, ProviderChoice},
    join_names,
    local::{self, LocalScan},
    python,
    search::{self, ExistingFiles, SearchChoice},
    write,
};
use crate::{
    failure::{CliError, CliExitCode},
    providers::LIST_WAIT,
    settings::{self, CONFIG_FILE, Environment, SEARCH_COMPOSE, SEARCH_VARIABLE},
};

/// Longer lists scroll.
const ROWS_MAX: usize = 12;
const OTHER: &str = "other";
const DONE: &str = "Done. Try: crow-cli run \"what is in this folder?\"";

/// Asks for providers, keys and models, shows what it would write, and writes it.
pub(super) async fn run_wizard<List>(
    dir: &Path,
    env: &Environment,
    outside: &InitContext<'_, List>,
) -> Result<(), CliError>
where
    List: AsyncFn(ProviderSettings, Duration) -> Result<ModelListing, Failure>,
{
    let (whole, kept) = settings::merge_env_file(dir, env)?;
    cliclack::intro("crow-cli init").map_err(prompt_error)?;
    if let Some(folder) = find_python_config(dir, env) {
        let question = format!("The Python version is configured in {}. Bring that over?", folder.display());
        if ask_yes_no(&question)? {
            let mut told = Vec::new();
            python::import_python_config(&folder, dir, env, &mut told)?;
            cliclack::note("Brought over", String::from_utf8_lossy(&told).trim_end())
                .map_err(prompt_error)?;
            return cliclack::outro(DONE).map_err(prompt_error);
        }
    }
    let config = dir.join(CONFIG_FILE);
    if config.exists() && !ask_yes_no(&format!("{} exists. Replace it?", config.display()))? {
        return cliclack::outro_cancel("Nothing was written.").map_err(prompt_error);
    }
    let here = find_local_servers(outside).await?;
    let mut providers: Vec<ProviderChoice> = Vec::new();
    loop {
        let mut provider = ask_provider(&whole, &here)?;
        provider.models = ask_models(&provider, outside.list).await?;
        providers.retain(|other| other.name != provider.name);
        providers.push(provider);
        if !ask_yes_no("Add another provider?")? {
            break;
        }
    }
    let (search, existing) = ask_search(dir, &whole)?;
    let lines = providers.iter().map(|provider| {
        let key = provider.key.as_ref().map_or("no key", |(variable, _)| variable.as_str());
        format!("{}  {}  {key}\n  {}", provider.name, provider.base_url, join_names(&provider.models))
    });
    let lines = lines.chain([format!("web search  {}", search.label())]);
    cliclack::note("Review", lines.collect::<Vec<_>>().join("\n")).map_err(prompt_error)?;
    if !ask_yes_no(&format!("Write {}?", config.display()))? {
        return cliclack::outro_cancel("Nothing was written.").map_err(prompt_error);
    }
    // A key typed just now replaces the one in the file; the last of two lines counts.
    let url = search.url_to_store(&whole);
    let is_new_url =
        |name: &str| name == SEARCH_VARIABLE && url.as_ref().is_some_and(|url| whole.get(name) != Some(url));
    let is_new = |name: &str| is_typed_key(&providers, &whole, name) || is_new_url(name);
    let kept: Vec<String> = kept.into_iter().filter(|name| !is_new(name)).collect();
    write::write_config_files(dir, (&providers, url.as_deref()), &kept)?;
    if search == SearchChoice::Own {
        search::write_search_files(dir, existing)?;
        cliclack::log::info(format!("Start the search with: {}", search::start_command(dir)))
            .map_err(prompt_error)?;
    }
    cliclack::outro(DONE).map_err(prompt_error)
}

fn is_typed_key(providers: &[ProviderChoice], env: &Environment, name: &str) -> bool {
    let mut keys = providers.iter().filter_map(|provider| provider.key.as_ref());
    keys.any(|(variable, key)| variable == name && env.get(name) != Some(key))
}

/// Asks where the web is searched.
fn ask_search(dir: &Path, env: &Environment) -> Result<(SearchChoice, ExistingFiles), CliError> {
    let known = SearchChoice::from_environment(env);
    let mut select = cliclack::select("Web search (SearXNG)");
    if let SearchChoice::At(url) = &known {
        select = select.item(known.clone(), url, "it is in SEARXNG_URL");
    }
    let other = SearchChoice::At(String::new());
    let choice = select
        .item(SearchChoice::Own, "one of your own", "in Docker; the files for it are written")
        .item(other.clone(), "another one that runs already", "")
        .item(SearchChoice::Nowhere, "none for now", "")
        .interact()
        .map_err(prompt_error)?;
    if choice == other {
        let address = cliclack::input("Its address").placeholder("http://localhost:8080");
        let url: String =
            address.validate(|address: &String| check_address(address)).interact().map_err(prompt_error)?;
        return Ok((SearchChoice::At(url), ExistingFiles::Stay));
    }
    let asks = choice == SearchChoice::Own && search::has_compose_file(dir);
    let question = format!("{} is there already. Replace it?", dir.join(SEARCH_COMPOSE).display());
    let existing =
        if asks && ask_yes_no(&question)? { ExistingFiles::AreReplaced } else { ExistingFiles::Stay };
    Ok((choice, existing))
}

/// Looks at this machine; says what is there and what is not.
async fn find_local_servers<List>(outside: &InitContext<'_, List>) -> Result<Vec<ProviderChoice>, CliError>
where
    List: AsyncFn(ProviderSettings, Duration) -> Result<ModelListing, Failure>,
{
    let spinner = cliclack::spinner();
    spinner.start("Looking for servers of models on this machine");
    let LocalScan { found, notes } = local::scan_local_servers(outside.places, &[], outside.list).await;
    spinner.stop(format!("Servers of models on this machine: {}", found.len()));
    for note in notes {
        cliclack::log::info(note).map_err(prompt_error)?;
    }
    Ok(found.into_iter().map(|(provider, _)| provider).collect())
}

fn ask_provider(env: &Environment, here: &[ProviderChoice]) -> Result<ProviderChoice, CliError> {
    let mut select = cliclack::select("Provider");
    for found in here {
        select =
            select.item(found.base_url.as_str(), &found.name, format!("{}, needs no key", found.base_url));
    }
    for (name, url) in found::WELL_KNOWN {
        select = select.item(name, name, url.to_owned());
    }
    let choice = select
        .item(OTHER, "another OpenAI-compatible server", String::new())
        .interact()
        .map_err(prompt_error)?;
    if let Some(found) = here.iter().find(|found| found.base_url == choice) {
        return Ok(found.clone());
    }
    let known = found::WELL_KNOWN.iter().find(|(name, _)| *name == choice);
    let (name, base_url, variable) = match known {
        Some((name, url)) => {
            ((*name).to_owned(), (*url).to_owned(), format!("{}_API_KEY", found::variable_part(name)))
        }
        None => {
            let name: String =
                cliclack::input("Its name").placeholder("local").interact().map_err(prompt_error)?;
            let address = cliclack::input("Its address, up to and including /v1")
                .placeholder("http://localhost:11434/v1");
            let url: String = address
                .validate(|address: &String| check_address(address))
                .interact()
                .map_err(prompt_error)?;
            let variable = format!("LLM_{}_API_KEY", found::variable_part(&name));
            (name, url, variable)
        }
    };
    let key = ask_key(&variable, env)?.map(|key| (variable, key));
    Ok(ProviderChoice { name, base_url, key, models: Vec::new() })
}

fn check_address(address: &str) -> Result<(), &'static str> {
    let is_web = address.starts_with("http://") || address.starts_with("https://");
    is_web.then_some(()).ok_or("an address starts with https:// or http://")
}

/// Takes the key from the environment if it is there and wanted, else from the person, hidden.
fn ask_key(variable: &str, env: &Environment) -> Result<Option<String>, CliError> {
    if let Some(key) = env.get(variable).filter(|key| !key.is_empty())
        && ask_yes_no(&format!("Use the key in {variable}?"))?
    {
        return Ok(Some(key.clone()));
    }
    let question = "Key (hidden; leave it empty when none is needed)";
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
    spinner.start("Asking for the models");
    let listing = match list(provider.to_settings(), LIST_WAIT).await {
        Ok(listing) => {
            spinner.stop(format!("{} models", listing.models.len()));
            listing
        }
        Err(failure) => {
            spinner.error(format!("could not list the models: {}", failure.sentence));
            ModelListing::default()
        }
    };
    if listing.models.is_empty() {
        let name: String =
            cliclack::input("The model's name at the provider").interact().map_err(prompt_error)?;
        return Ok(vec![ModelChoice::from_name(name.trim())]);
    }
    let question =
        format!("Models (space chooses, typing filters; {MODELS_MAX} or fewer are easy to switch between)");
    let mut select = cliclack::multiselect(question).filter_mode().max_rows(ROWS_MAX);
    for (n, model) in listing.models.iter().enumerate() {
        select = select.item(n, &model.id, model_hint(model));
    }
    let picked: Vec<usize> = select.interact().map_err(prompt_error)?;
    let picked = picked.into_iter().filter_map(|n| listing.models.get(n));
    let (models, notes) = chosen::select_models(&listing, picked);
    for note in notes {
        cliclack::log::warning(note).map_err(prompt_error)?;
    }
    Ok(models)
}

/// What helps to choose a model.
fn model_hint(model: &ListedModel) -> String {
    let window = match (model.window, model.window_max) {
        (Some(window), _) => Some(format!("{window} tokens")),
        (None, max) => max.map(|max| format!("up to {max} tokens")),
    };
    let price = model.price.map(|price| format!("{} / {} USD a million", price.input, price.output));
    let tools = (model.takes_tools == Some(false)).then(|| "takes no tools".to_owned());
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
    CliError::new(CliExitCode::Failed, format!("could not ask: {error}"))
}
