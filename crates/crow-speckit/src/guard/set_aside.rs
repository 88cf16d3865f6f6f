//! Stores the replaced version of a restored file. Never follows a link or overwrites a file.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::{SET_ASIDE_DIR, resolve_path};
use crow_files::{LinkPolicy, OpenOutcome};

use crate::init::ensure_crow_dir;
use crate::{SpeckitError, SpeckitProject};

/// The number of versions with one name.
const VERSIONS_MAX: usize = 1_000;

/// The length of a name; file systems allow 255 bytes including the version.
const NAME_BYTES_MAX: usize = 200;

/// Returns the directory for replaced versions, creating it if it is missing.
pub(super) fn ensure_set_aside_dir(project: &SpeckitProject) -> Result<PathBuf, SpeckitError> {
    ensure_crow_dir(project)?;
    let directory = project.specify_path(SET_ASIDE_DIR);
    project.create_dir(&directory)?;
    let canonical =
        resolve_path(project.root(), &directory).map_err(|error| SpeckitError::io(&directory, error))?;
    match canonical == directory && is_real_dir(&directory) {
        true => Ok(directory),
        false => Err(SpeckitError::invalid_file(&directory, "it is a link now; replace it with a directory")),
    }
}

/// Whether a directory exists and is not a link.
pub(super) fn is_real_dir(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

/// Moves what is at a path, or the link itself, to a free name; does nothing if the path does not exist.
pub(super) fn move_aside(path: &Path, directory: &Path, relative: &Path) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if crow_files::is_missing(&error) => return Ok(()),
        Err(error) => return Err(error),
    };
    let name = aside_name(relative);
    for version in 1..=VERSIONS_MAX {
        let target = directory.join(if version == 1 { name.clone() } else { format!("{name}.{version}") });
        // The reserved file is ours and may be replaced.
        let reserved = match metadata.is_dir() {
            true => fs::create_dir(&target).map(|()| None),
            false => File::create_new(&target).map(Some),
        };
        let mut target_file = match reserved {
            Ok(target_file) => target_file,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        };
        let result = match (fs::rename(path, &target), target_file.as_mut()) {
            (Err(error), Some(target_file)) if error.kind() == ErrorKind::CrossesDevices => {
                move_contents(path, target_file)
            }
            (result, _) => result,
        };
        if result.is_err() {
            let _still_there =
                if metadata.is_dir() { fs::remove_dir(&target) } else { fs::remove_file(&target) };
        }
        return result;
    }
    Err(io::Error::other("too many versions of it are set aside already"))
}

/// Moves a file to another file system.
fn move_contents(path: &Path, target: &mut File) -> io::Result<()> {
    match crow_files::open_guarded(path, LinkPolicy::Reject)? {
        OpenOutcome::File(mut file, _) => {
            io::copy(&mut file, target)?;
            target.sync_all()?;
            fs::remove_file(path)
        }
        OpenOutcome::Missing => Ok(()),
        OpenOutcome::Other => Err(io::Error::other("it is not a regular file and is on another file system")),
    }
}

/// Returns a name that is unique for files of the same name in different directories.
fn aside_name(relative: &Path) -> String {
    let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
    let name = parts.join("-");
    let n_excess = name.len().saturating_sub(NAME_BYTES_MAX);
    let start = (n_excess..=name.len()).find(|index| name.is_char_boundary(*index)).unwrap_or(n_excess);
    name[start..].to_owned()
}
