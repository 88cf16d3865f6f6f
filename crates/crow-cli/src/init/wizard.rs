//! The questions of `init`. Blocks on the terminal: nothing else runs meanwhile.

use std::{io, path::Path, time::Duration};

use crow_core::Failure;
use crow_model::{ListedModel, Listing, ProviderSettings};

use super::{
    MODELS_MAX, Outside,
    chosen::{self, Chosen},
    found::{self, Found},
    local::{self, Look},
    names, python,
    search::{self, Existing, Search},
    to_bring_over, write,
};
use crate::{
    failure::{Code, Exit},
    providers::LIST_WAIT,
    settings::{self, CONFIG_FILE, Environment, SEARCH_COMPOSE, SEARCH_VARIABLE},
};

/// Longer lists scroll.
const ROWS_MAX: usize = 12;
const OTHER: &str = "other";
const DONE: &str = "Done. Try: crow-cli run \"what is in this folder?\"";

/// Asks for providers, keys and models, shows what it would write, and writes it.
pub(super) async fn run<List>(dir: &Path, env: &Environment, outside: &Outside<'_, List>) -> Result<(), Exit>
where
    List: AsyncFn(ProviderSettings, Duration) -> Result<Listing, Failure>,
{
    let (whole, kept) = settings::with_env_file(dir, env)?;
    cliclack::intro("crow-cli init").map_err(stopped)?;
    if let Some(folder) = to_bring_over(dir, env) {
        let question = format!("The Python version is configured in {}. Bring that over?", folder.display());
        if confirmed(&question)? {
            let mut told = Vec::new();
            python::bring_over(&folder, dir, env, &mut told)?;
            cliclack::note("Brought over", String::from_utf8_lossy(&told).trim_end()).map_err(stopped)?;
            return cliclack::outro(DONE).map_err(stopped);
        }
    }
    let config = dir.join(CONFIG_FILE);
    if config.exists() && !confirmed(&format!("{} exists. Replace it?", config.display()))? {
        return cliclack::outro_cancel("Nothing was written.").map_err(stopped);
    }
    let here = local(outside).await?;
    let mut providers: Vec<Found> = Vec::new();
    loop {
        let mut provider = provider(&whole, &here)?;
        provider.models = models(&provider, outside.list).await?;
        providers.retain(|other| other.name != provider.name);
        providers.push(provider);
        if !confirmed("Add another provider?")? {
            break;
        }
    }
    let (search, existing) = search(dir, &whole)?;
    let lines = providers.iter().map(|provider| {
        let key = provider.key.as_ref().map_or("no key", |(variable, _)| variable.as_str());
        format!("{}  {}  {key}\n  {}", provider.name, provider.base_url, names(&provider.models))
    });
    let lines = lines.chain([format!("web search  {}", search.shown())]);
    cliclack::note("Review", lines.collect::<Vec<_>>().join("\n")).map_err(stopped)?;
    if !confirmed(&format!("Write {}?", config.display()))? {
        return cliclack::outro_cancel("Nothing was written.").map_err(stopped);
    }
    // A key typed just now replaces the one in the file; the last of two lines counts.
    let url = search.remembered(&whole);
    let is_new_url =
        |name: &str| name == SEARCH_VARIABLE && url.as_ref().is_some_and(|url| whole.get(name) != Some(url));
    let is_new = |name: &str| is_typed(&providers, &whole, name) || is_new_url(name);
    let kept: Vec<String> = kept.into_iter().filter(|name| !is_new(name)).collect();
    write::both(dir, (&providers, url.as_deref()), &kept)?;
    if search == Search::Own {
        search::write(dir, existing)?;
        cliclack::log::info(format!("Start the search with: {}", search::command(dir))).map_err(stopped)?;
    }
    cliclack::outro(DONE).map_err(stopped)
}

fn is_typed(providers: &[Found], env: &Environment, name: &str) -> bool {
    let mut keys = providers.iter().filter_map(|provider| provider.key.as_ref());
    keys.any(|(variable, key)| variable == name && env.get(name) != Some(key))
}

/// Asks where the web is searched.
fn search(dir: &Path, env: &Environment) -> Result<(Search, Existing), Exit> {
    let known = Search::scan(env);
    let mut select = cliclack::select("Web search (SearXNG)");
    if let Search::At(url) = &known {
        select = select.item(known.clone(), url, "it is in SEARXNG_URL");
    }
    let other = Search::At(String::new());
    let choice = select
        .item(Search::Own, "one of your own", "in Docker; the files for it are written")
        .item(other.clone(), "another one that runs already", "")
        .item(Search::Nowhere, "none for now", "")
        .interact()
        .map_err(stopped)?;
    if choice == other {
        let address = cliclack::input("Its address").placeholder("http://localhost:8080");
        let url: String =
            address.validate(|address: &String| check_address(address)).interact().map_err(stopped)?;
        return Ok((Search::At(url), Existing::Stay));
    }
    let asks = choice == Search::Own && search::is_written(dir);
    let question = format!("{} is there already. Replace it?", dir.join(SEARCH_COMPOSE).display());
    let existing = if asks && confirmed(&question)? { Existing::AreReplaced } else { Existing::Stay };
    Ok((choice, existing))
}

/// Looks at this machine; says what is there and what is not.
async fn local<List>(outside: &Outside<'_, List>) -> Result<Vec<Found>, Exit>
where
    List: AsyncFn(ProviderSettings, Duration) -> Result<Listing, Failure>,
{
    let spinner = cliclack::spinner();
    spinner.start("Looking for servers of models on this machine");
    let Look { found, notes } = local::look(outside.places, &[], outside.list).await;
    spinner.stop(format!("Servers of models on this machine: {}", found.len()));
    for note in notes {
        cliclack::log::info(note).map_err(stopped)?;
    }
    Ok(found.into_iter().map(|(provider, _)| provider).collect())
}

fn provider(env: &Environment, here: &[Found]) -> Result<Found, Exit> {
    let mut select = cliclack::select("Provider");
    for found in here {
        select =
            select.item(found.base_url.as_str(), &found.name, format!("{}, needs no key", found.base_url));
    }
    for (name, url) in found::WELL_KNOWN {
        select = select.item(name, name, url.to_owned());
    }
    let choice =
        select.item(OTHER, "another OpenAI-compatible server", String::new()).interact().map_err(stopped)?;
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
                cliclack::input("Its name").placeholder("local").interact().map_err(stopped)?;
            let address = cliclack::input("Its address, up to and including /v1")
                .placeholder("http://localhost:11434/v1");
            let url: String =
                address.validate(|address: &String| check_address(address)).interact().map_err(stopped)?;
            let variable = format!("LLM_{}_API_KEY", found::variable_part(&name));
            (name, url, variable)
        }
    };
    let key = key(&variable, env)?.map(|key| (variable, key));
    Ok(Found { name, base_url, key, models: Vec::new() })
}

fn check_address(address: &str) -> Result<(), &'static str> {
    let is_web = address.starts_with("http://") || address.starts_with("https://");
    is_web.then_some(()).ok_or("an address starts with https:// or http://")
}

/// Takes the key from the environment if it is there and wanted, else from the person, hidden.
fn key(variable: &str, env: &Environment) -> Result<Option<String>, Exit> {
    if let Some(key) = env.get(variable).filter(|key| !key.is_empty())
        && confirmed(&format!("Use the key in {variable}?"))?
    {
        return Ok(Some(key.clone()));
    }
    let question = "Key (hidden; leave it empty when none is needed)";
    let key: String = cliclack::password(question).mask('•').allow_empty().interact().map_err(stopped)?;
    let key = key.trim().to_owned();
    Ok(Some(key).filter(|key| !key.is_empty()))
}

async fn models(
    provider: &Found,
    list: &impl AsyncFn(ProviderSettings, Duration) -> Result<Listing, Failure>,
) -> Result<Vec<Chosen>, Exit> {
    let spinner = cliclack::spinner();
    spinner.start("Asking for the models");
    let listing = match list(provider.settings(), LIST_WAIT).await {
        Ok(listing) => {
            spinner.stop(format!("{} models", listing.models.len()));
            listing
        }
        Err(failure) => {
            spinner.error(format!("could not list the models: {}", failure.sentence));
            Listing::default()
        }
    };
    if listing.models.is_empty() {
        let name: String = cliclack::input("The model's name at the provider").interact().map_err(stopped)?;
        return Ok(vec![Chosen::named(name.trim())]);
    }
    let question =
        format!("Models (space chooses, typing filters; {MODELS_MAX} or fewer are easy to switch between)");
    let mut select = cliclack::multiselect(question).filter_mode().max_rows(ROWS_MAX);
    for (n, model) in listing.models.iter().enumerate() {
        select = select.item(n, &model.id, hint(model));
    }
    let picked: Vec<usize> = select.interact().map_err(stopped)?;
    let picked = picked.into_iter().filter_map(|n| listing.models.get(n));
    let (models, notes) = chosen::choose(&listing, picked);
    for note in notes {
        cliclack::log::warning(note).map_err(stopped)?;
    }
    Ok(models)
}

/// What helps to choose a model.
fn hint(model: &ListedModel) -> String {
    let window = match (model.window, model.window_max) {
        (Some(window), _) => Some(format!("{window} tokens")),
        (None, max) => max.map(|max| format!("up to {max} tokens")),
    };
    let price = model.price.map(|price| format!("{} / {} USD a million", price.input, price.output));
    let tools = (model.takes_tools == Some(false)).then(|| "takes no tools".to_owned());
    [window, price, tools].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn confirmed(question: &str) -> Result<bool, Exit> {
    cliclack::confirm(question).interact().map_err(stopped)
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` hands the error over")]
fn stopped(error: io::Error) -> Exit {
    if error.kind() == io::ErrorKind::Interrupted {
        return Exit::quiet(Code::Interrupted);
    }
    Exit::new(Code::Failed, format!("could not ask: {error}"))
}
