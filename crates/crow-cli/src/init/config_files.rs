//! Writes the configuration files atomically, readable by their owner only.

use std::{fs, io, path::Path};

use crow_files::create_private_dir;

use super::{config_text, environment_scan::ProviderChoice};
use crate::{
    config::{replace_config, write_atomically},
    failure::{CliError, CliExitCode},
    settings::{
        self, CONFIG_FILE, ENV_FILE, Environment, SEARCH_VARIABLE, Settings, find_value, insert_entry,
    },
};

/// The schema for editors, to which a new configuration refers.
const SCHEMA_FILE: &str = "config.schema.json";
/// The variable with the address of a database server.
pub(super) const DATABASE_URI_VARIABLE: &str = "CROW_DB_URI";

/// The contents of the two files.
#[derive(Clone, Copy)]
pub(super) struct ConfigDraft<'a> {
    pub(super) providers: &'a [ProviderChoice],
    pub(super) search_url: Option<&'a str>,
    /// The address of a database server, which may contain a password.
    pub(super) database_uri: Option<&'a str>,
}

/// Writes a new configuration, and appends variables to `.env` that it does not have yet. An existing configuration is
/// kept as a backup.
pub(super) fn write_config_files(
    dir: &Path,
    draft: &ConfigDraft<'_>,
    existing_variables: &[String],
) -> Result<(), CliError> {
    create_private_dir(dir).map_err(|error| write_error(dir, &error))?;
    append_env_file(dir, draft, existing_variables)?;
    let schema = format!("{:#}\n", settings::config_schema());
    write_atomically(dir, SCHEMA_FILE, &schema)
        .map_err(|error| write_error(&dir.join(SCHEMA_FILE), &error))?;
    replace_config(dir, &config_text::render_config(draft))
}

/// Adds the providers and models to the existing configuration, and their keys to `.env`. Returns the lines to add by
/// hand if the file is too unusual to be changed.
pub(super) fn extend_config_files(
    dir: &Path,
    env: &Environment,
    draft: &ConfigDraft<'_>,
    existing_variables: &[String],
) -> Result<Option<String>, CliError> {
    let text = settings::read_config_text(dir)?;
    append_env_file(dir, draft, existing_variables)?;
    let (mut edited, mut by_hand) = (Some(text.clone()), String::new());
    for (section, lines) in new_entries(&dir.join(CONFIG_FILE), &text, draft.providers)? {
        edited = edited.and_then(|text| insert_entry(&dir.join(CONFIG_FILE), &text, section, &lines).ok());
        by_hand.push_str(&format!("{section}:\n{lines}"));
    }
    match edited.filter(|edited| Settings::load_text(dir, env, edited).is_ok()) {
        Some(edited) => replace_config(dir, &edited).map(|()| None),
        None => Ok(Some(by_hand)),
    }
}

/// Returns the entries that a configuration does not have yet, each with its section.
fn new_entries(
    path: &Path,
    text: &str,
    providers: &[ProviderChoice],
) -> Result<Vec<(&'static str, String)>, CliError> {
    let mut entries = Vec::new();
    let names_in = |section: &str| -> Result<Vec<String>, CliError> {
        let map = find_value(path, text, section)?;
        Ok(map.and_then(|map| Some(map.as_object()?.keys().cloned().collect())).unwrap_or_default())
    };
    let (provider_names, mut model_names) = (names_in("providers")?, names_in("models")?);
    for provider in providers {
        let mut provider = provider.clone();
        let existing_url = find_value(path, text, &format!("providers.{}.base_url", provider.name))?;
        let url_of = |url: &serde_json::Value| url.as_str().map(|url| url.trim_end_matches('/').to_owned());
        let is_configured = existing_url.as_ref().and_then(url_of).as_ref() == Some(&provider.base_url);
        if !is_configured {
            let mut number = 2;
            let name = provider.name.clone();
            while provider_names.contains(&provider.name) {
                provider.name = format!("{name}-{number}");
                number += 1;
            }
            entries.push(("providers", config_text::render_provider(&provider)));
        }
        for model in &provider.models {
            let name = config_text::unused_model_name(&provider, model, &model_names);
            if !model_names.contains(&name) {
                entries.push(("models", config_text::render_model(&name, &provider, model)));
                model_names.push(name);
            }
        }
    }
    Ok(entries)
}

fn append_env_file(
    dir: &Path,
    draft: &ConfigDraft<'_>,
    existing_variables: &[String],
) -> Result<(), CliError> {
    let env_path = dir.join(ENV_FILE);
    let text_before = match fs::read_to_string(&env_path) {
        Ok(text_before) => text_before,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(write_error(&env_path, &error)),
    };
    let text = config_text::append_env_variables(&text_before, env_variables(draft), existing_variables);
    write_atomically(dir, ENV_FILE, &text).map_err(|error| write_error(&env_path, &error))
}

fn env_variables<'a>(draft: &ConfigDraft<'a>) -> impl Iterator<Item = (&'a str, &'a str)> {
    let keys = draft.providers.iter().filter_map(|provider| provider.key.as_ref());
    keys.map(|(variable, key)| (variable.as_str(), key.as_str()))
        .chain(draft.search_url.map(|url| (SEARCH_VARIABLE, url)))
        .chain(draft.database_uri.map(|uri| (DATABASE_URI_VARIABLE, uri)))
}

fn write_error(path: &Path, error: &io::Error) -> CliError {
    CliError::new(CliExitCode::Failed, format!("could not write {}: {error}", path.display()))
}
