//! The interactive part of `init`. Blocks on the terminal; nothing else runs meanwhile.

mod providers;

use std::{io, path::Path};

use crow_store::PostgresAddress;

use self::providers::ask_providers;
use super::{
    config_files::{self, ConfigDraft, DATABASE_URI_VARIABLE},
    environment_scan::ProviderChoice,
    model_choice::join_names,
    model_servers::{InitContext, ModelServers},
    python,
    web_search::{self, ExistingFiles, SearchChoice},
};
use crate::{
    config::BACKUP_FILE,
    failure::{CliError, CliExitCode},
    settings::{self, CONFIG_FILE, Environment, SEARCH_COMPOSE, SEARCH_VARIABLE},
};

const OUTRO: &str = "Done. Try: crow-cli run \"what is in this directory?\"";

/// Asks for providers, keys and models, shows a review, and writes the files.
pub(super) async fn run_wizard(
    dir: &Path,
    env: &Environment,
    context: &InitContext<'_, impl ModelServers>,
) -> Result<(), CliError> {
    cliclack::intro("crow-cli init").map_err(prompt_error)?;
    if import_python_config(dir, env)? {
        return cliclack::outro(OUTRO).map_err(prompt_error);
    }
    let config = dir.join(CONFIG_FILE);
    let existing = if config.exists() { ask_existing_config(&config)? } else { ExistingConfig::Replace };
    if existing == ExistingConfig::Keep {
        return cliclack::outro_cancel("Nothing was written.").map_err(prompt_error);
    }
    let (merged_env, _) = settings::merge_env_file(dir, env)?;
    let mut answers = WizardAnswers {
        providers: ask_providers(&merged_env, context).await?,
        search: SearchChoice::from_environment(&merged_env),
        existing_search: ExistingFiles::Keep,
        database_uri: None,
    };
    if existing == ExistingConfig::Replace {
        (answers.search, answers.existing_search) = ask_search(dir, &merged_env)?;
        answers.database_uri = ask_database(dir)?;
    }
    show_review(&answers, existing)?;
    if !ask_yes_no(&format!("Write {}?", config.display()), Answer::Yes)? {
        return cliclack::outro_cancel("Nothing was written.").map_err(prompt_error);
    }
    write_files(dir, env, &answers, existing)?;
    cliclack::outro(OUTRO).map_err(prompt_error)
}

/// The choices of the user.
struct WizardAnswers {
    providers: Vec<ProviderChoice>,
    search: SearchChoice,
    /// The handling of existing files of the search service.
    existing_search: ExistingFiles,
    /// The address of a database server.
    database_uri: Option<String>,
}

/// Offers to import a configuration of the Python version; returns whether it was imported.
fn import_python_config(dir: &Path, env: &Environment) -> Result<bool, CliError> {
    let Some(directory) = python::find_python_config(dir, env) else { return Ok(false) };
    let question = format!("{} has a configuration of the Python version. Import it?", directory.display());
    if !ask_yes_no(&question, Answer::Yes)? {
        return Ok(false);
    }
    let mut messages = Vec::new();
    python::import_python_config(&directory, dir, env, &mut messages)?;
    cliclack::note("Imported", String::from_utf8_lossy(&messages).trim_end()).map_err(prompt_error)?;
    Ok(true)
}

fn write_files(
    dir: &Path,
    env: &Environment,
    answers: &WizardAnswers,
    existing: ExistingConfig,
) -> Result<(), CliError> {
    let WizardAnswers { providers, search, existing_search, database_uri } = answers;
    let (merged_env, mut file_variables) = settings::merge_env_file(dir, env)?;
    let url = search.url_to_store(&merged_env);
    let is_new_url = url.as_ref().is_some_and(|url| merged_env.get(SEARCH_VARIABLE) != Some(url));
    // A new key replaces the one in the file: of two lines for a variable, the last wins.
    file_variables.retain(|name| match name.as_str() {
        SEARCH_VARIABLE => !is_new_url,
        DATABASE_URI_VARIABLE => database_uri.is_none(),
        name => !is_typed_key(providers, &merged_env, name),
    });
    let draft = ConfigDraft { providers, search_url: url.as_deref(), database_uri: database_uri.as_deref() };
    match existing {
        ExistingConfig::Extend => {
            if let Some(lines) = config_files::extend_config_files(dir, env, &draft, &file_variables)? {
                let config = dir.join(CONFIG_FILE);
                let title = format!("{} is unchanged. Add these lines to it", config.display());
                cliclack::note(title, lines).map_err(prompt_error)?;
            }
        }
        ExistingConfig::Replace => config_files::write_config_files(dir, &draft, &file_variables)?,
        ExistingConfig::Keep => {}
    }
    if *search == SearchChoice::Docker {
        web_search::write_search_files(dir, *existing_search)?;
        cliclack::log::info(format!("Start SearXNG with: {}", web_search::start_command(dir)))
            .map_err(prompt_error)?;
    }
    Ok(())
}

/// The handling of an existing configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExistingConfig {
    /// Provider and models are added.
    Extend,
    Replace,
    Keep,
}

fn ask_existing_config(config: &Path) -> Result<ExistingConfig, CliError> {
    cliclack::select(format!("{} exists", config.display()))
        .item(ExistingConfig::Extend, "add a provider to it", "the rest stays as it is")
        .item(ExistingConfig::Replace, "replace it", format!("the old one becomes {BACKUP_FILE}"))
        .item(ExistingConfig::Keep, "leave it", "")
        .interact()
        .map_err(prompt_error)
}

fn show_review(answers: &WizardAnswers, existing: ExistingConfig) -> Result<(), CliError> {
    let lines = answers.providers.iter().map(|provider| {
        let key = provider.key.as_ref().map_or("no key", |(variable, _)| variable.as_str());
        format!("{}  {}  {key}\n  {}", provider.name, provider.base_url, join_names(&provider.models))
    });
    let mut lines: Vec<String> = lines.collect();
    if existing == ExistingConfig::Replace {
        lines.push(format!("web search  {}", answers.search.label()));
        lines.push(format!(
            "sessions  {}",
            if answers.database_uri.is_some() { "PostgreSQL" } else { "a file" }
        ));
    }
    cliclack::note("Review", lines.join("\n")).map_err(prompt_error)
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
        .item(SearchChoice::Disabled, "none for now", "")
        .item(SearchChoice::Docker, "a new one in Docker", "writes its compose file")
        .item(other.clone(), "one that already runs", "")
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
    let existing = if may_replace && ask_yes_no(&question, Answer::No)? {
        ExistingFiles::Replace
    } else {
        ExistingFiles::Keep
    };
    Ok((choice, existing))
}

/// Asks where to keep sessions; returns the address of a database server.
fn ask_database(dir: &Path) -> Result<Option<String>, CliError> {
    let is_server = cliclack::select("Sessions")
        .item(false, "a file", format!("in {}", dir.display()))
        .item(true, "PostgreSQL", "several machines can share it")
        .interact()
        .map_err(prompt_error)?;
    if !is_server {
        return Ok(None);
    }
    let uri: String = cliclack::password("Address (hidden), such as postgres://USER:PASSWORD@HOST/NAME")
        .mask('•')
        .validate_on_enter(|uri: &String| PostgresAddress::parse(uri.trim()).map(drop))
        .interact()
        .map_err(prompt_error)?;
    Ok(Some(uri.trim().to_owned()))
}

fn check_address(address: &str) -> Result<(), &'static str> {
    let is_http = address.starts_with("http://") || address.starts_with("https://");
    is_http.then_some(()).ok_or("the address must start with https:// or http://")
}

/// The answer of a user who only presses Enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Yes,
    No,
}

fn ask_yes_no(question: &str, default: Answer) -> Result<bool, CliError> {
    cliclack::confirm(question).initial_value(default == Answer::Yes).interact().map_err(prompt_error)
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` hands the error over")]
fn prompt_error(error: io::Error) -> CliError {
    if error.kind() == io::ErrorKind::Interrupted {
        return CliError::without_message(CliExitCode::Interrupted);
    }
    CliError::new(CliExitCode::Failed, format!("could not read the answer: {error}"))
}
