//! Brings over what the Python version kept in its folder. Copies and never moves, writes nothing over, and follows no
//! link that leads out of that folder.

mod files;
#[cfg(test)]
mod tests;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crow_store::{Address, StoreError, copy_python_database};

use self::files::{Copied, Folder};
use super::write;
use crate::{
    failure::{Code, Exit},
    settings::{CONFIG_FILE, DATABASE_KEYS, ENV_FILE, Environment, Settings, WarningKind, database_named},
};

/// Where later Python versions kept their folder, from the home folder; earlier ones had it where ours is.
const PLACE: &str = ".agents/crow";
/// The folder around it, with what is for every agent of the person's.
const SHARED: &str = ".agents";
const DATABASE: &str = "crow.db";
/// Folders that come over: prompts, and the images that messages of the database name.
const FOLDERS: [&str; 2] = ["prompts", "images"];
const SKILLS: &str = "skills";
const INSTRUCTIONS: &str = "AGENTS.md";

/// Tells where the Python version has a configuration, while this version has none.
pub(super) fn to_bring_over(dir: &Path, env: &Environment) -> Option<PathBuf> {
    let home = env.get("HOME").filter(|home| !home.is_empty())?;
    let folder = Path::new(home).join(PLACE);
    let is_new = !dir.join(CONFIG_FILE).exists();
    (is_new && folder.join(CONFIG_FILE).is_file()).then_some(folder)
}

/// Copies what there is and says what became of it. The configuration comes last: while it is missing, it can be
/// tried again.
pub(super) fn bring_over(
    from: &Path,
    dir: &Path,
    env: &Environment,
    log: &mut impl io::Write,
) -> Result<(), Exit> {
    let config = dir.join(CONFIG_FILE);
    if fs::symlink_metadata(&config).is_ok() {
        let message = format!("{} exists and is left as it is", config.display());
        return Err(Exit::new(Code::Config, message).with_hint("move it away, or name another --config-dir"));
    }
    let folder = Folder::at(from).map_err(|error| {
        Exit::new(Code::Config, format!("could not look into {}: {error}", from.display()))
    })?;
    let text = folder.text(CONFIG_FILE).map_err(|error| {
        let message = format!("could not read {}: {error}", from.join(CONFIG_FILE).display());
        Exit::new(Code::Config, message).with_hint("name the folder of the Python version with --from")
    })?;
    let database = database(&folder, &text, env)?;
    let text = match database {
        Database::Inside(_) => without_database(&folder, &text, env)?,
        Database::Elsewhere(_) | Database::Unknown => text,
    };
    let failed = |error: &io::Error| {
        Exit::new(Code::Failed, format!("could not write into {}: {error}", dir.display()))
    };
    write::folder(dir).map_err(|error| failed(&error))?;
    tell(log, ENV_FILE, &folder.copy(ENV_FILE, dir).map_err(|error| failed(&error))?)?;
    for name in FOLDERS {
        tell(log, name, &folder.copy_folder(name, dir).map_err(|error| failed(&error))?)?;
    }
    shared(&folder, dir, log)?;
    match database {
        Database::Inside(path) => tell(log, DATABASE, &copy_database(&folder, &path, dir)?)?,
        Database::Elsewhere(path) => {
            writeln!(log, "note: the sessions stay in {}, which db_uri names", path.display())?;
        }
        Database::Unknown => {}
    }
    write::atomically(dir, CONFIG_FILE, &text).map_err(|error| failed(&error))?;
    writeln!(log, "brought over {CONFIG_FILE}")?;
    review(dir, env, log)?;
    Ok(writeln!(log, "{} stays as it was", from.display())?)
}

/// Brings over what the Python version shared with other agents.
fn shared(folder: &Folder, dir: &Path, log: &mut impl io::Write) -> Result<(), Exit> {
    let around = folder.around().filter(|around| around.path().ends_with(SHARED));
    let failed = |error: io::Error| {
        Exit::new(Code::Failed, format!("could not write into {}: {error}", dir.display()))
    };
    for around in [Some(folder), around.as_ref()].into_iter().flatten() {
        tell(log, SKILLS, &around.copy_folder(SKILLS, dir).map_err(failed)?)?;
        tell(log, INSTRUCTIONS, &around.copy(INSTRUCTIONS, dir).map_err(failed)?)?;
    }
    Ok(())
}

/// Where the old configuration has its database.
enum Database {
    /// In the folder, or to be made there.
    Inside(PathBuf),
    /// In a place that the configuration names.
    Elsewhere(PathBuf),
    /// There is none, or it is a server's.
    Unknown,
}

fn database(folder: &Folder, text: &str, env: &Environment) -> Result<Database, Exit> {
    let path = match database_named(folder.path(), text, env)? {
        Some((_, Address::File(path))) => path,
        Some((_, Address::Server { .. })) => return Ok(Database::Unknown),
        None => folder.path().join(DATABASE),
    };
    let parent = path.parent().and_then(|parent| fs::canonicalize(parent).ok());
    Ok(match parent.zip(path.file_name()) {
        Some((parent, name)) if parent.starts_with(folder.path()) => Database::Inside(parent.join(name)),
        None if path.starts_with(folder.path()) => Database::Inside(path),
        _ if path.exists() => Database::Elsewhere(path),
        _ => Database::Unknown,
    })
}

/// Copies the database under its usual name.
fn copy_database(folder: &Folder, path: &Path, dir: &Path) -> Result<Copied, Exit> {
    let to = dir.join(DATABASE);
    let source = match folder.find(path) {
        Ok(Some(source)) => source,
        Ok(None) => return Ok(Copied::Missing),
        Err(error) => return Ok(Copied::Refused(error.to_string())),
    };
    if fs::symlink_metadata(&to).is_ok() {
        return Ok(Copied::there_already());
    }
    let failed =
        |error: io::Error| Exit::new(Code::Failed, format!("could not write {}: {error}", to.display()));
    let copy = tempfile::NamedTempFile::new_in(dir).map_err(failed)?;
    match copy_python_database(&source, copy.path()) {
        Ok(()) => {}
        Err(error @ (StoreError::OtherProgram { .. } | StoreError::NotADatabase { .. })) => {
            return Ok(Copied::Refused(error.to_string()));
        }
        Err(error) => return Err(error.into()),
    }
    copy.persist_noclobber(&to).map_err(|error| failed(error.error))?;
    Ok(Copied::Whole)
}

/// Takes the place of the database out of a configuration, so that the copy is used and not the original. Where that
/// does not work out, nothing may come over: the original would become a database of this version.
fn without_database(folder: &Folder, text: &str, env: &Environment) -> Result<String, Exit> {
    let text = commented(text);
    let left = database_named(folder.path(), &text, env)?;
    let Some((line, _)) = left else { return Ok(text) };
    let config = folder.path().join(CONFIG_FILE);
    let message =
        format!("could not take db_uri out of {}, line {line}; nothing was brought over", config.display());
    Err(Exit::new(Code::Config, message).with_hint("write db_uri on a line of its own there, or take it out"))
}

/// Makes comments of the lines that name the database.
fn commented(text: &str) -> String {
    let mut is_inside = false;
    let lines = text.split_inclusive('\n').map(|line| {
        let key = line.split_once(':').map(|(key, _)| key.trim_end().trim_matches(['"', '\'']));
        // A long value goes on in lines that are indented.
        is_inside = key.is_some_and(|key| DATABASE_KEYS.contains(&key))
            || (is_inside && line.starts_with([' ', '\t']));
        if is_inside { format!("# {line}") } else { line.to_owned() }
    });
    lines.collect()
}

/// Says what this version makes of the configuration.
fn review(dir: &Path, env: &Environment, log: &mut impl io::Write) -> io::Result<()> {
    let (settings, warnings) = match Settings::load(dir, env) {
        Ok(read) => read,
        Err(error) => return writeln!(log, "note: it needs a change: {error}"),
    };
    for warning in warnings {
        match warning.kind {
            WarningKind::Odd => writeln!(log, "note: {warning}")?,
            WarningKind::Retired => writeln!(log, "note: {warning} has no effect in this version")?,
        }
    }
    if settings.models.is_empty() {
        writeln!(log, "note: it names no model; `crow-cli init` sets one up")?;
    }
    Ok(())
}

fn tell(log: &mut impl io::Write, name: &str, copied: &Copied) -> io::Result<()> {
    match copied {
        Copied::Missing => Ok(()),
        Copied::Whole => writeln!(log, "brought over {name}"),
        Copied::Left { n_others: 0, n_left: 1, unread } if unread.is_empty() => {
            writeln!(log, "note: {name} is there already and is left as it is")
        }
        Copied::Left { n_others, n_left, unread } => {
            let n_files = n_others + n_left;
            writeln!(log, "brought over {n_others} of the {n_files} files of {name}")?;
            for why in unread {
                writeln!(log, "note: left {why}")?;
            }
            match *n_left > unread.len() as u64 {
                true if unread.is_empty() => {
                    writeln!(log, "note: the others are there already, or they are links")
                }
                true => writeln!(log, "note: others are there already, are links, or cannot be read either"),
                false => Ok(()),
            }
        }
        Copied::Refused(why) => writeln!(log, "note: {name} was left: {why}"),
    }
}
