//! The questions about providers, keys and models.

use crow_core::FailureKind;
use crow_model::{ListedModel, ModelListing, ModelSettings};

use super::{
    super::{
        environment_scan::{self, ProviderChoice},
        known_providers::{KNOWN_PROVIDERS, KnownProvider},
        local_servers::{self, LocalScan},
        model_choice::{self, ModelChoice, chat_models},
        model_servers::{InitContext, ModelServers},
        trial::{TEXT_ONLY, TrialOutcome},
    },
    Answer, ask_yes_no, check_address, prompt_error,
};
use crate::{failure::CliError, providers::LIST_WAIT, settings::Environment};

/// Longer lists scroll.
const ROWS_MAX: usize = 12;
const OTHER: &str = "other";

/// Asks for providers until the user is done.
pub(super) async fn ask_providers(
    env: &Environment,
    context: &InitContext<'_, impl ModelServers>,
) -> Result<Vec<ProviderChoice>, CliError> {
    let servers = find_local_servers(context).await?;
    let mut providers: Vec<ProviderChoice> = Vec::new();
    loop {
        let provider = set_up_provider(env, &servers, context.models).await?;
        providers.retain(|other| other.name != provider.name);
        providers.push(provider);
        if !ask_yes_no("Add another provider?", Answer::No)? {
            return Ok(providers);
        }
    }
}

/// Asks for a provider, its key and a model until the model answers or the user is content.
async fn set_up_provider(
    env: &Environment,
    servers: &[ProviderChoice],
    models: &impl ModelServers,
) -> Result<ProviderChoice, CliError> {
    let mut provider = ask_provider(env, servers)?;
    loop {
        let spinner = cliclack::spinner();
        spinner.start("Fetching the model list");
        let listing = match models.list(provider.to_settings(), LIST_WAIT).await {
            Ok(listing) => {
                spinner.stop(format!("{} models", listing.models.len()));
                listing
            }
            Err(failure) => {
                spinner.error(crow_core::to_sentence(&format!(
                    "could not list the models: {}",
                    failure.message
                )));
                if failure.kind == FailureKind::ProviderAuth {
                    provider.key = ask_new_key(&key_variable(&provider))?;
                    continue;
                }
                ModelListing::default()
            }
        };
        let model = ask_model(&provider, &listing)?;
        let settings = model.to_settings(provider.to_settings());
        provider.models = vec![model];
        let spinner = cliclack::spinner();
        spinner.start(format!("Asking {} to call a tool", settings.model));
        match models.try_model(&settings).await {
            Ok(TrialOutcome::CalledTool) => {
                spinner.stop(format!("{} answered and called a tool", settings.model));
                return Ok(provider);
            }
            Ok(TrialOutcome::TextOnly) => {
                spinner.stop(format!("{} {TEXT_ONLY}", settings.model));
                return Ok(provider);
            }
            Err(failure) => {
                spinner.error(crow_core::to_sentence(&failure.message));
                if failure.kind == FailureKind::ProviderAuth {
                    provider.key = ask_new_key(&key_variable(&provider))?;
                } else if ask_yes_no("Keep this model anyway?", Answer::No)? {
                    return Ok(provider);
                }
            }
        }
    }
}

/// Scans this machine for model servers and shows the result.
async fn find_local_servers(
    context: &InitContext<'_, impl ModelServers>,
) -> Result<Vec<ProviderChoice>, CliError> {
    let spinner = cliclack::spinner();
    spinner.start("Looking for model servers on this machine");
    let LocalScan { servers, notes } =
        local_servers::scan_local_servers(context.servers, &[], context.models).await;
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
    let key_in_env = |known: &KnownProvider| {
        let mut variables = known.key_variables.iter();
        variables.find(|name| env.get(**name).is_some_and(|key| !key.trim().is_empty()))
    };
    let mut known_providers: Vec<&KnownProvider> = KNOWN_PROVIDERS.iter().collect();
    known_providers.sort_by_key(|known| key_in_env(known).is_none());
    for known in known_providers {
        let hint =
            key_in_env(known).map_or(known.base_url.to_owned(), |variable| format!("{variable} is set"));
        select = select.item(known.name, known.name, hint);
    }
    let choice = select
        .item(OTHER, "another OpenAI-compatible server", String::new())
        .interact()
        .map_err(prompt_error)?;
    if let Some(server) = servers.iter().find(|found| found.base_url == choice) {
        return Ok(server.clone());
    }
    let Some(known) = KnownProvider::find(choice) else {
        let name: String = cliclack::input("Name").placeholder("local").interact().map_err(prompt_error)?;
        let address =
            cliclack::input("Base URL, up to and including /v1").placeholder("http://localhost:11434/v1");
        let url: String =
            address.validate(|address: &String| check_address(address)).interact().map_err(prompt_error)?;
        let mut provider = ProviderChoice::new(name, &url, None);
        provider.key = ask_key(&key_variable(&provider), env)?;
        return Ok(provider);
    };
    let mut provider = ProviderChoice::new(known.name.to_owned(), known.base_url, None);
    let variable = key_in_env(known).map_or_else(|| key_variable(&provider), |&name| name.to_owned());
    provider.key = ask_key(&variable, env)?;
    Ok(provider)
}

/// Returns the name of the variable for the key of a provider.
fn key_variable(provider: &ProviderChoice) -> String {
    if let Some((variable, _)) = &provider.key {
        return variable.clone();
    }
    let known = KnownProvider::find(&provider.name).and_then(|known| known.key_variables.first());
    let own = || format!("LLM_{}_API_KEY", environment_scan::variable_part(&provider.name));
    known.map_or_else(own, |variable| (*variable).to_owned())
}

/// Takes the key from the environment if the user agrees, else asks for it. Returns it with its variable.
fn ask_key(variable: &str, env: &Environment) -> Result<Option<(String, String)>, CliError> {
    if let Some(key) = env.get(variable).map(|key| key.trim()).filter(|key| !key.is_empty())
        && ask_yes_no(&format!("Use the key in {variable}?"), Answer::Yes)?
    {
        return Ok(Some((variable.to_owned(), key.to_owned())));
    }
    ask_new_key(variable)
}

/// Asks for a key with hidden input.
fn ask_new_key(variable: &str) -> Result<Option<(String, String)>, CliError> {
    let question = "API key (hidden; leave empty if none is required)";
    let key: String =
        cliclack::password(question).mask('•').allow_empty().interact().map_err(prompt_error)?;
    let key = key.trim();
    Ok((!key.is_empty()).then(|| (variable.to_owned(), key.to_owned())))
}

/// Asks for a model of a provider; the best-known one comes first.
fn ask_model(provider: &ProviderChoice, listing: &ModelListing) -> Result<ModelChoice, CliError> {
    let mut listed = chat_models(listing);
    if let Some(newest) = KnownProvider::at(&provider.base_url).and_then(|known| known.newest_model(&listed))
    {
        listed.sort_by_key(|model| model.id != newest.id);
    }
    let mut model = if listed.is_empty() {
        let name: String = cliclack::input("Model name at the provider").interact().map_err(prompt_error)?;
        ModelChoice::from_name(name.trim()).with_known_facts(&provider.base_url)
    } else {
        let mut select = cliclack::select("Model (typing filters)").filter_mode().max_rows(ROWS_MAX);
        for (n, model) in listed.iter().enumerate() {
            select = select.item(n, &model.id, model_hint(model));
        }
        let selected: usize = select.interact().map_err(prompt_error)?;
        let selected = listed.get(selected).copied().into_iter();
        let (models, notes) = model_choice::select_models(listing, selected, &provider.base_url);
        for note in notes {
            cliclack::log::warning(crow_core::to_sentence(&note)).map_err(prompt_error)?;
        }
        models.into_iter().next().unwrap_or_default()
    };
    if model.window.is_none() {
        let default = ModelSettings::CONTEXT_WINDOW.to_string();
        let window: u64 = cliclack::input("Context window in tokens")
            .default_input(&default)
            .interact()
            .map_err(prompt_error)?;
        model.window = Some(window).filter(|window| *window > 0);
    }
    Ok(model)
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
