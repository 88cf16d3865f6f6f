//! Whether a session can have its roots in directories.

use std::path::{Path, PathBuf};

use crow_files::resolve_links;

/// Additional directories of a session; every path is compared with each of them.
const ROOTS_MAX: usize = 64;

/// A path that is not UTF-8 cannot be sent to a client or a model, or stored.
const NOT_TEXT: &str = "whose name is not UTF-8; rename the directory or one above it, or choose another";

/// Checks that the directories of a session are absolute, exist and have names that are text; the error is a sentence.
/// Blocks.
pub fn check_directories(cwd: &Path, additional: &[PathBuf]) -> Result<(), String> {
    let n_additional = additional.len();
    if n_additional > ROOTS_MAX {
        return Err(format!("there are {n_additional} additional directories, and the limit is {ROOTS_MAX}"));
    }
    check_directory("cwd", cwd)?;
    additional.iter().try_for_each(|root| check_directory("an additional directory", root))
}

fn check_directory(label: &str, path: &Path) -> Result<(), String> {
    if path.to_str().is_none() {
        return Err(format!("{label} is {}, {NOT_TEXT}", path.display()));
    }
    if !path.is_absolute() {
        return Err(format!("{label} is {}, which is not an absolute path", path.display()));
    }
    if !path.is_dir() {
        let shown = path.display();
        return Err(format!("{label} is {shown}, which is not a directory; create it or choose another"));
    }
    let resolved = resolve_links(path);
    match resolved.to_str() {
        Some(_) => Ok(()),
        None => Err(format!("{label} is {}, {NOT_TEXT}", resolved.display())),
    }
}
