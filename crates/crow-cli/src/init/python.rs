//! Imports the configuration directory of the Python version. Must not know what is in that directory besides the
//! configuration.

#[cfg(test)]
mod tests;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crow_import::{
    PythonDatabase, PythonDirectory, PythonDirectoryError, comment_out_keys, find_python_directory,
};

use crate::{
    config,
    failure::{CliError, CliExitCode},
    settings::{
        CONFIG_FILE, ConfigWarningKind, DATABASE_KEYS, Environment, Settings, find_configured_database,
    },
};

/// Returns the Python version's directory if it has a configuration and this version has none.
pub(crate) fn find_python_config(dir: &Path, env: &Environment) -> Option<PathBuf> {
    let home = env.get("HOME").filter(|home| !home.is_empty())?;
    if dir.join(CONFIG_FILE).exists() {
        return None;
    }
    find_python_directory(Path::new(home))
}

/// Copies everything and reports each result. The configuration is written last: without it the import can be repeated.
pub(super) fn import_python_config(
    from: &Path,
    dir: &Path,
    env: &Environment,
    log: &mut impl io::Write,
) -> Result<(), CliError> {
    let config = dir.join(CONFIG_FILE);
    if fs::symlink_metadata(&config).is_ok() {
        let message = format!("{} already exists", config.display());
        return Err(CliError::new(CliExitCode::Config, message)
            .with_hint("move it away, or give another --config-dir"));
    }
    let source = PythonDirectory::open(from)?;
    let configured = find_configured_database(source.path(), source.config_text(), env)?;
    let database = source.locate_database(configured.map(|(_, address)| address));
    let text = match database {
        PythonDatabase::Inside(_) => remove_database_key(&source, env)?,
        PythonDatabase::Elsewhere(_) | PythonDatabase::Unknown => source.config_text().to_owned(),
    };
    source.copy_files(&database, dir, log)?;
    config::write_atomically(dir, CONFIG_FILE, &text)
        .map_err(|source| PythonDirectoryError::WriteDirectory { path: dir.to_owned(), source })?;
    writeln!(log, "imported {CONFIG_FILE}")?;
    review_config(dir, env, log)?;
    Ok(writeln!(log, "{} is unchanged", from.display())?)
}

/// Removes the database path from a configuration, so that the copy is used. If that fails, nothing may be imported:
/// the original would be converted to this version.
fn remove_database_key(source: &PythonDirectory, env: &Environment) -> Result<String, CliError> {
    let text = comment_out_keys(source.config_text(), &DATABASE_KEYS);
    let remaining = find_configured_database(source.path(), &text, env)?;
    let Some((line, _)) = remaining else { return Ok(text) };
    let config = source.path().join(CONFIG_FILE);
    let message =
        format!("could not remove db_uri from {}, line {line}; nothing was imported", config.display());
    Err(CliError::new(CliExitCode::Config, message)
        .with_hint("put db_uri on its own line there, or remove it"))
}

/// Reports how this version reads the imported configuration.
fn review_config(dir: &Path, env: &Environment, log: &mut impl io::Write) -> io::Result<()> {
    let (settings, warnings) = match Settings::load(dir, env) {
        Ok(read) => read,
        Err(error) => return writeln!(log, "note: the configuration needs a change: {error}"),
    };
    for warning in warnings {
        match warning.kind {
            ConfigWarningKind::Suspicious => writeln!(log, "note: {warning}")?,
            ConfigWarningKind::Retired => writeln!(log, "note: {warning} has no effect in this version")?,
        }
    }
    if settings.models.is_empty() {
        writeln!(log, "note: no model is configured; `crow-cli init` sets one up")?;
    }
    Ok(())
}

impl From<PythonDirectoryError> for CliError {
    fn from(error: PythonDirectoryError) -> Self {
        let message = error.to_string();
        match error {
            PythonDirectoryError::Open { .. } => Self::new(CliExitCode::Config, message),
            PythonDirectoryError::Read { .. } => Self::new(CliExitCode::Config, message)
                .with_hint("give the directory of the Python version with --from"),
            PythonDirectoryError::WriteDirectory { .. } | PythonDirectoryError::WriteDatabase { .. } => {
                Self::new(CliExitCode::Failed, message)
            }
            PythonDirectoryError::Store(error) => error.into(),
            PythonDirectoryError::Log(error) => error.into(),
        }
    }
}
