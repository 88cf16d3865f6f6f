//! Imports the configuration directory of the Python version. Copies and never moves, overwrites nothing, and follows
//! no link out of that directory.

mod files;
#[cfg(test)]
mod tests;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crow_store::{DatabaseAddress, StoreError, copy_python_database};

use self::files::{CopyOutcome, SourceDirectory};
use super::config_files;
use crate::{
    failure::{CliError, CliExitCode},
    settings::{
        CONFIG_FILE, ConfigWarningKind, DATABASE_KEYS, ENV_FILE, Environment, Settings,
        find_configured_database,
    },
};

/// The directory of later Python versions, below the home directory; earlier ones used ours.
const PYTHON_DIR: &str = ".agents/crow";
/// Its parent, which all of the user's agents share.
const SHARED_DIR: &str = ".agents";
const DATABASE: &str = "crow.db";
/// Directories that are copied: prompts, and the images that messages in the database refer to.
const COPIED_DIRS: [&str; 2] = ["prompts", "images"];
const SKILLS: &str = "skills";
const INSTRUCTIONS: &str = "AGENTS.md";

/// Returns the Python version's directory if it has a configuration and this version has none.
pub(super) fn find_python_config(dir: &Path, env: &Environment) -> Option<PathBuf> {
    let home = env.get("HOME").filter(|home| !home.is_empty())?;
    let source = Path::new(home).join(PYTHON_DIR);
    let is_new = !dir.join(CONFIG_FILE).exists();
    (is_new && source.join(CONFIG_FILE).is_file()).then_some(source)
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
    let source = SourceDirectory::open(from).map_err(|error| {
        CliError::new(CliExitCode::Config, format!("could not open {}: {error}", from.display()))
    })?;
    let text = source.read_text(CONFIG_FILE).map_err(|error| {
        let message = format!("could not read {}: {error}", from.join(CONFIG_FILE).display());
        CliError::new(CliExitCode::Config, message)
            .with_hint("give the directory of the Python version with --from")
    })?;
    let database = locate_database(&source, &text, env)?;
    let text = match database {
        OldDatabase::Inside(_) => remove_database_key(&source, &text, env)?,
        OldDatabase::Elsewhere(_) | OldDatabase::Unknown => text,
    };
    let failed = |error: &io::Error| {
        CliError::new(CliExitCode::Failed, format!("could not write to {}: {error}", dir.display()))
    };
    config_files::create_private_dir(dir).map_err(|error| failed(&error))?;
    report_copy(log, ENV_FILE, &source.copy_file(ENV_FILE, dir).map_err(|error| failed(&error))?)?;
    for name in COPIED_DIRS {
        report_copy(log, name, &source.copy_dir(name, dir).map_err(|error| failed(&error))?)?;
    }
    import_shared_files(&source, dir, log)?;
    match database {
        OldDatabase::Inside(path) => report_copy(log, DATABASE, &copy_database(&source, &path, dir)?)?,
        OldDatabase::Elsewhere(path) => {
            writeln!(log, "note: the sessions stay in {}, as configured in db_uri", path.display())?;
        }
        OldDatabase::Unknown => {}
    }
    config_files::write_atomically(dir, CONFIG_FILE, &text).map_err(|error| failed(&error))?;
    writeln!(log, "imported {CONFIG_FILE}")?;
    review_config(dir, env, log)?;
    Ok(writeln!(log, "{} is unchanged", from.display())?)
}

/// Copies the files that the Python version shared with other agents.
fn import_shared_files(
    source: &SourceDirectory,
    dir: &Path,
    log: &mut impl io::Write,
) -> Result<(), CliError> {
    let parent = source.parent().filter(|around| around.path().ends_with(SHARED_DIR));
    let failed = |error: io::Error| {
        CliError::new(CliExitCode::Failed, format!("could not write to {}: {error}", dir.display()))
    };
    for parent in [Some(source), parent.as_ref()].into_iter().flatten() {
        report_copy(log, SKILLS, &parent.copy_dir(SKILLS, dir).map_err(failed)?)?;
        report_copy(log, INSTRUCTIONS, &parent.copy_file(INSTRUCTIONS, dir).map_err(failed)?)?;
    }
    Ok(())
}

/// Location of the old database.
enum OldDatabase {
    /// In the directory, existing or not.
    Inside(PathBuf),
    /// At a path that the configuration gives.
    Elsewhere(PathBuf),
    /// There is none, or it is on a server.
    Unknown,
}

fn locate_database(source: &SourceDirectory, text: &str, env: &Environment) -> Result<OldDatabase, CliError> {
    let path = match find_configured_database(source.path(), text, env)? {
        Some((_, DatabaseAddress::File(path))) => path,
        Some((_, DatabaseAddress::Server { .. })) => return Ok(OldDatabase::Unknown),
        None => source.path().join(DATABASE),
    };
    let parent = path.parent().and_then(|parent| fs::canonicalize(parent).ok());
    Ok(match parent.zip(path.file_name()) {
        Some((parent, name)) if parent.starts_with(source.path()) => OldDatabase::Inside(parent.join(name)),
        None if path.starts_with(source.path()) => OldDatabase::Inside(path),
        _ if path.exists() => OldDatabase::Elsewhere(path),
        _ => OldDatabase::Unknown,
    })
}

/// Copies the database under its default name.
fn copy_database(source: &SourceDirectory, path: &Path, dir: &Path) -> Result<CopyOutcome, CliError> {
    let target = dir.join(DATABASE);
    let original = match source.find_file(path) {
        Ok(Some(original)) => original,
        Ok(None) => return Ok(CopyOutcome::Missing),
        Err(error) => return Ok(CopyOutcome::Skipped(error.to_string())),
    };
    if fs::symlink_metadata(&target).is_ok() {
        return Ok(CopyOutcome::already_present());
    }
    let failed = |error: io::Error| {
        CliError::new(CliExitCode::Failed, format!("could not write {}: {error}", target.display()))
    };
    let copy = tempfile::NamedTempFile::new_in(dir).map_err(failed)?;
    match copy_python_database(&original, copy.path()) {
        Ok(()) => {}
        Err(error @ (StoreError::OtherProgram { .. } | StoreError::NotADatabase { .. })) => {
            return Ok(CopyOutcome::Skipped(error.to_string()));
        }
        Err(error) => return Err(error.into()),
    }
    copy.persist_noclobber(&target).map_err(|error| failed(error.error))?;
    Ok(CopyOutcome::Copied)
}

/// Removes the database path from a configuration, so that the copy is used. If that fails, nothing may be imported:
/// the original would be converted to this version.
fn remove_database_key(source: &SourceDirectory, text: &str, env: &Environment) -> Result<String, CliError> {
    let text = comment_out_database(text);
    let remaining = find_configured_database(source.path(), &text, env)?;
    let Some((line, _)) = remaining else { return Ok(text) };
    let config = source.path().join(CONFIG_FILE);
    let message =
        format!("could not remove db_uri from {}, line {line}; nothing was imported", config.display());
    Err(CliError::new(CliExitCode::Config, message)
        .with_hint("put db_uri on its own line there, or remove it"))
}

/// Comments out the lines that give the database.
fn comment_out_database(text: &str) -> String {
    let mut is_database_value = false;
    let lines = text.split_inclusive('\n').map(|line| {
        let key = line.split_once(':').map(|(key, _)| key.trim_end().trim_matches(['"', '\'']));
        // A long value continues on indented lines.
        is_database_value = key.is_some_and(|key| DATABASE_KEYS.contains(&key))
            || (is_database_value && line.starts_with([' ', '\t']));
        if is_database_value { format!("# {line}") } else { line.to_owned() }
    });
    lines.collect()
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

fn report_copy(log: &mut impl io::Write, name: &str, outcome: &CopyOutcome) -> io::Result<()> {
    match outcome {
        CopyOutcome::Missing => Ok(()),
        CopyOutcome::Copied => writeln!(log, "imported {name}"),
        CopyOutcome::Partial { n_copied: 0, n_skipped: 1, unreadable } if unreadable.is_empty() => {
            writeln!(log, "note: {name} already exists and is unchanged")
        }
        CopyOutcome::Partial { n_copied, n_skipped, unreadable } => {
            let n_files = n_copied + n_skipped;
            writeln!(log, "imported {n_copied} of the {n_files} files of {name}")?;
            for reason in unreadable {
                writeln!(log, "note: skipped {reason}")?;
            }
            match *n_skipped > unreadable.len() as u64 {
                true if unreadable.is_empty() => {
                    writeln!(log, "note: the others already exist or are links")
                }
                true => writeln!(log, "note: others already exist, are links, or cannot be read either"),
                false => Ok(()),
            }
        }
        CopyOutcome::Skipped(reason) => writeln!(log, "note: {name} was skipped: {reason}"),
    }
}
