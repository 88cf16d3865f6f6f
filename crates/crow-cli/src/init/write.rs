//! Puts the two files in place: whole or not at all, readable by their owner only.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use super::{found::Found, text};
use crate::{
    failure::{Code, Exit},
    settings::{CONFIG_FILE, ENV_FILE, SEARCH_VARIABLE},
};

/// Writes the keys, then the configuration that names them. `kept` are the variables the file has already.
pub(super) fn both(
    dir: &Path,
    (providers, search_url): (&[Found], Option<&str>),
    kept: &[String],
) -> Result<(), Exit> {
    folder(dir).map_err(|error| failed(dir, &error))?;
    let env_path = dir.join(ENV_FILE);
    let before = match fs::read_to_string(&env_path) {
        Ok(before) => before,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(failed(&env_path, &error)),
    };
    let keys = text::env_file(&before, variables(providers, search_url), kept);
    atomically(dir, ENV_FILE, &keys).map_err(|error| failed(&env_path, &error))?;
    atomically(dir, CONFIG_FILE, &text::config(providers))
        .map_err(|error| failed(&dir.join(CONFIG_FILE), &error))
}

/// What `.env` remembers.
fn variables<'a>(
    providers: &'a [Found],
    search_url: Option<&'a str>,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let keys = providers.iter().filter_map(|provider| provider.key.as_ref());
    keys.map(|(variable, key)| (variable.as_str(), key.as_str()))
        .chain(search_url.map(|url| (SEARCH_VARIABLE, url)))
}

fn failed(path: &Path, error: &io::Error) -> Exit {
    Exit::new(Code::Failed, format!("could not write {}: {error}", path.display()))
}

/// Makes the folder for its owner only; one that is there stays as it is.
pub(super) fn folder(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

/// A temporary file is made for its owner only, and keeps that when it takes its name.
pub(super) fn atomically(dir: &Path, name: &str, text: &str) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(dir.join(name))?;
    Ok(())
}
