//! `crow-cli init`: from keys to a configuration that works. The only command that writes the two files.

mod chosen;
mod found;
mod local;
mod python;
mod search;
#[cfg(test)]
mod tests;
mod text;
mod wizard;
mod write;

use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    time::Duration,
};

use crow_core::Failure;
use crow_model::{ListedModel, Listing, ProviderSettings};

pub(crate) use self::local::{Place, USUAL_PLACES};
use self::{
    chosen::Chosen,
    found::{Found, Scan},
    local::Look,
    search::{Existing, Search},
};
use crate::{
    cli::InitArgs,
    failure::{Code, Exit},
    providers::LIST_WAIT,
    settings::{self, CONFIG_FILE, Environment},
};

/// A handful to switch between; a gateway has hundreds.
const MODELS_MAX: usize = 5;

/// What `init` hears from elsewhere.
pub(crate) struct Outside<'a, List> {
    /// Asks a provider for its models, and waits so long.
    pub(crate) list: &'a List,
    /// Where servers on this machine are looked for.
    pub(crate) places: &'a [Place],
}

/// Sets up, from the environment or by asking.
pub(crate) async fn run<List>(
    args: &InitArgs,
    dir: &Path,
    env: &Environment,
    outside: &Outside<'_, List>,
    log: &mut impl io::Write,
) -> Result<(), Exit>
where
    List: AsyncFn(ProviderSettings, Duration) -> Result<Listing, Failure>,
{
    if let Some(from) = &args.from {
        return python::bring_over(from, dir, env, log);
    }
    if args.yes {
        if let Some(folder) = to_bring_over(dir, env) {
            let folder = folder.display();
            writeln!(
                log,
                "note: the Python version is configured in {folder}; `--from {folder}` brings that over"
            )?;
        }
        return from_environment(dir, env, outside, log).await;
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let message = "init asks questions and there is no terminal to ask them in";
        return Err(Exit::new(Code::Usage, message)
            .with_hint("`crow-cli init -y` takes the keys from the environment"));
    }
    wizard::run(dir, env, outside).await
}

/// Tells where the Python version has a configuration that can be brought over.
pub(crate) fn to_bring_over(dir: &Path, env: &Environment) -> Option<PathBuf> {
    python::to_bring_over(dir, env)
}

async fn from_environment<List>(
    dir: &Path,
    env: &Environment,
    outside: &Outside<'_, List>,
    log: &mut impl io::Write,
) -> Result<(), Exit>
where
    List: AsyncFn(ProviderSettings, Duration) -> Result<Listing, Failure>,
{
    let config = dir.join(CONFIG_FILE);
    if config.exists() {
        let message = format!("{} exists and is left as it is", config.display());
        return Err(Exit::new(Code::Config, message)
            .with_hint("edit it, move it away, or run `crow-cli init` to be asked"));
    }
    let (whole, kept) = settings::with_env_file(dir, env)?;
    let Scan { mut providers, notes } = found::scan(&whole);
    let Look { found, notes: seen } = local::look(outside.places, &providers, outside.list).await;
    for note in notes.into_iter().chain(seen) {
        writeln!(log, "note: {note}")?;
    }
    if providers.is_empty() && found.is_empty() {
        let hint = "set OPENAI_API_KEY or OPENROUTER_API_KEY, or LLM_<NAME>_API_KEY and LLM_<NAME>_BASE_URL, \
                    or start a server such as Ollama on this machine";
        return Err(Exit::new(Code::Config, "the environment names no provider").with_hint(hint));
    }
    for provider in providers.iter_mut().filter(|provider| provider.models.is_empty()) {
        match (outside.list)(provider.settings(), LIST_WAIT).await {
            Ok(listing) => choose_models(provider, &listing, log)?,
            Err(failure) => {
                let (name, why, variable) = (&provider.name, failure.sentence, provider.model_variable());
                writeln!(log, "note: could not list the models of {name}: {why}; {variable} names one")?;
            }
        }
    }
    for (mut provider, listing) in found {
        choose_models(&mut provider, &listing, log)?;
        providers.push(provider);
    }
    if providers.iter().all(|provider| provider.models.is_empty()) {
        let variables: Vec<String> = providers.iter().map(|provider| provider.model_variable()).collect();
        let hint = format!("name a model in {} and run it again", variables.join(" or "));
        return Err(
            Exit::new(Code::Failed, "no provider named a model, so nothing was written").with_hint(hint)
        );
    }
    let search = Search::scan(&whole);
    write::both(dir, (&providers, search.remembered(&whole).as_deref()), &kept)?;
    report(&config, &providers, log)?;
    if search == Search::Own && search::write(dir, Existing::Stay)? {
        writeln!(log, "to search the web, start the SearXNG it set up: {}", search::command(dir))?;
    }
    Ok(())
}

fn choose_models(provider: &mut Found, listing: &Listing, log: &mut impl io::Write) -> io::Result<()> {
    let is_for_chat = |model: &&ListedModel| model.chats.unwrap_or(true) && found::is_for_chat(&model.id);
    let mut models: Vec<&ListedModel> = listing.models.iter().filter(is_for_chat).collect();
    models.sort_by_key(|model| model.takes_tools == Some(false));
    let (models, notes) = chosen::choose(listing, models.into_iter().take(MODELS_MAX));
    if models.is_empty() {
        writeln!(log, "note: {} lists no model that chats", provider.name)?;
    }
    provider.models = models;
    notes.iter().try_for_each(|note| writeln!(log, "note: {note}"))
}

/// Names models in one line.
fn names(models: &[Chosen]) -> String {
    models.iter().map(|model| model.name.as_str()).collect::<Vec<_>>().join(", ")
}

fn report(config: &Path, providers: &[Found], log: &mut impl io::Write) -> io::Result<()> {
    writeln!(log, "wrote {}", config.display())?;
    for provider in providers.iter().filter(|provider| !provider.models.is_empty()) {
        writeln!(log, "  {}: {}", provider.name, names(&provider.models))?;
    }
    writeln!(log, "the first model is the default; edit the file to change it")
}
