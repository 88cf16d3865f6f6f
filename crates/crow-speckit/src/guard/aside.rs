//! Where the other version of a file goes that is put back. Nothing that is there is followed or overwritten.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::{SET_ASIDE, resolve_path};
use crate::init::ensure_crow_folder;
use crate::open::{self, LinkPolicy, OpenOutcome};
use crate::{SpeckitError, SpeckitProject};

/// Versions of one name that are kept; whoever makes so many has lost none of them by accident.
const VERSIONS_MAX: usize = 1_000;

/// Bytes of a name, which file systems hold to 255 with the version.
const NAME_BYTES_MAX: usize = 200;

/// The folder for what is set aside, made where it is missing.
pub(super) fn ensure_aside_folder(project: &SpeckitProject) -> Result<PathBuf, SpeckitError> {
    ensure_crow_folder(project)?;
    let folder = project.specify_path(SET_ASIDE);
    project.create_folder(&folder)?;
    let real = resolve_path(project.root(), &folder).map_err(|error| SpeckitError::io(&folder, error))?;
    match real == folder && is_folder(&folder) {
        true => Ok(folder),
        false => Err(SpeckitError::broken(&folder, "it has become a link; put a folder in its place")),
    }
}

/// Tells whether a folder is there, and not a link to one.
pub(super) fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Moves what is at a path, a link as the link it is, to a free name; nothing there is nothing to move.
pub(super) fn move_aside(path: &Path, folder: &Path, within: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if open::is_missing(&error) => return Ok(()),
        Err(error) => return Err(error),
    };
    let name = aside_name(within);
    for version in 1..=VERSIONS_MAX {
        let to = folder.join(if version == 1 { name.clone() } else { format!("{name}.{version}") });
        // What was just made is ours to be replaced.
        let reserved = match found.is_dir() {
            true => fs::create_dir(&to).map(|()| None),
            false => File::create_new(&to).map(Some),
        };
        let mut place = match reserved {
            Ok(place) => place,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        };
        let moved = match (fs::rename(path, &to), place.as_mut()) {
            (Err(error), Some(place)) if error.kind() == ErrorKind::CrossesDevices => {
                move_contents(path, place)
            }
            (moved, _) => moved,
        };
        if moved.is_err() {
            let _still_there = if found.is_dir() { fs::remove_dir(&to) } else { fs::remove_file(&to) };
        }
        return moved;
    }
    Err(io::Error::other("too many versions of it are set aside already"))
}

/// Moves a file to another disk.
fn move_contents(path: &Path, to: &mut File) -> io::Result<()> {
    match open::open_file(path, LinkPolicy::Refused)? {
        OpenOutcome::File(mut file, _) => {
            io::copy(&mut file, to)?;
            to.sync_all()?;
            fs::remove_file(path)
        }
        OpenOutcome::Missing => Ok(()),
        OpenOutcome::Other => Err(io::Error::other("it is no file, and on another disk")),
    }
}

/// A name that tells files of one name in different folders apart.
fn aside_name(within: &Path) -> String {
    let parts: Vec<_> = within.iter().map(|part| part.to_string_lossy()).collect();
    let name = parts.join("-");
    let beyond = name.len().saturating_sub(NAME_BYTES_MAX);
    let start = (beyond..=name.len()).find(|at| name.is_char_boundary(*at)).unwrap_or(beyond);
    name[start..].to_owned()
}
