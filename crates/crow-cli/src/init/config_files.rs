//! Writes the configuration files atomically, readable by their owner only.

use std::{fs, io, path::Path};

use crow_files::create_private_dir;

use super::{config_text, environment_scan::ProviderChoice};
use crate::{
    config::write_atomically,
    failure::{CliError, CliExitCode},
    settings::{CONFIG_FILE, ENV_FILE, SEARCH_VARIABLE},
};

/// Writes the keys, then the configuration that refers to them. `existing_variables` are those already in `.env`.
pub(super) fn write_config_files(
    dir: &Path,
    providers: &[ProviderChoice],
    search_url: Option<&str>,
    existing_variables: &[String],
) -> Result<(), CliError> {
    create_private_dir(dir).map_err(|error| write_error(dir, &error))?;
    let env_path = dir.join(ENV_FILE);
    let text_before = match fs::read_to_string(&env_path) {
        Ok(text_before) => text_before,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(write_error(&env_path, &error)),
    };
    let keys = config_text::append_env_variables(
        &text_before,
        env_variables(providers, search_url),
        existing_variables,
    );
    write_atomically(dir, ENV_FILE, &keys).map_err(|error| write_error(&env_path, &error))?;
    write_atomically(dir, CONFIG_FILE, &config_text::render_config(providers))
        .map_err(|error| write_error(&dir.join(CONFIG_FILE), &error))
}

/// Returns the variables to write to `.env`.
fn env_variables<'a>(
    providers: &'a [ProviderChoice],
    search_url: Option<&'a str>,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let keys = providers.iter().filter_map(|provider| provider.key.as_ref());
    keys.map(|(variable, key)| (variable.as_str(), key.as_str()))
        .chain(search_url.map(|url| (SEARCH_VARIABLE, url)))
}

fn write_error(path: &Path, error: &io::Error) -> CliError {
    CliError::new(CliExitCode::Failed, format!("could not write {}: {error}", path.display()))
}
