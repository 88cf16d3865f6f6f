//! `crow-cli init`: from keys to a configuration that works. The only command that writes the two files.

mod found;
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
};

use crow_model::ProviderSettings;

use self::{
    found::{Found, Scan},
    search::{Existing, Search},
};
use crate::{
    cli::InitArgs,
    failure::{Code, Exit},
    settings::{self, CONFIG_FILE, Environment},
};

/// A handful to switch between; a gateway has hundreds.
const MODELS_MAX: usize = 5;

/// Sets up, from the environment or by asking. `list` asks a provider for its models' names.
pub(crate) async fn run(
    args: &InitArgs,
    dir: &Path,
    env: &Environment,
    list: &impl AsyncFn(ProviderSettings) -> Result<Vec<String>, String>,
    log: &mut impl io::Write,
) -> Result<(), Exit> {
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
        return from_environment(dir, env, list, log).await;
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let message = "init asks questions and there is no terminal to ask them in";
        return Err(Exit::new(Code::Usage, message)
            .with_hint("`crow-cli init -y` takes the keys from the environment"));
    }
    wizard::run(dir, env, list).await
}

/// Tells where the Python version has a configuration that can be brought over.
pub(crate) fn to_bring_over(dir: &Path, env: &Environment) -> Option<PathBuf> {
    python::to_bring_over(dir, env)
}

async fn from_environment(
    dir: &Path,
    env: &Environment,
    list: &impl AsyncFn(ProviderSettings) -> Result<Vec<String>, String>,
    log: &mut impl io::Write,
) -> Result<(), Exit> {
    let config = dir.join(CONFIG_FILE);
    if config.exists() {
        let message = format!("{} exists and is left as it is", config.display());
        return Err(Exit::new(Code::Config, message)
            .with_hint("edit it, move it away, or run `crow-cli init` to be asked"));
    }
    let (whole, kept) = settings::with_env_file(dir, env)?;
    let Scan { mut providers, notes } = found::scan(&whole);
    for note in notes {
        writeln!(log, "note: {note}")?;
    }
    if providers.is_empty() {
        let hint = "set OPENAI_API_KEY or OPENROUTER_API_KEY, or LLM_<NAME>_API_KEY and LLM_<NAME>_BASE_URL";
        return Err(Exit::new(Code::Config, "the environment names no provider").with_hint(hint));
    }
    for provider in &mut providers {
        if provider.models.is_empty() {
            choose_models(provider, list, log).await?;
        }
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

async fn choose_models(
    provider: &mut Found,
    list: &impl AsyncFn(ProviderSettings) -> Result<Vec<String>, String>,
    log: &mut impl io::Write,
) -> io::Result<()> {
    match list(provider.settings()).await {
        Ok(names) => {
            provider.models =
                names.into_iter().filter(|name| found::is_for_chat(name)).take(MODELS_MAX).collect();
            if provider.models.is_empty() {
                writeln!(log, "note: {} lists no model that chats", provider.name)?;
            }
        }
        Err(why) => {
            let variable = provider.model_variable();
            writeln!(
                log,
                "note: could not list the models of {}: {why}; {variable} names one",
                provider.name
            )?;
        }
    }
    Ok(())
}

fn report(config: &Path, providers: &[Found], log: &mut impl io::Write) -> io::Result<()> {
    writeln!(log, "wrote {}", config.display())?;
    for provider in providers.iter().filter(|provider| !provider.models.is_empty()) {
        writeln!(log, "  {}: {}", provider.name, provider.models.join(", "))?;
    }
    writeln!(log, "the first model is the default; edit the file to change it")
}
