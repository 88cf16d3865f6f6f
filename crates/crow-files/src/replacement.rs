//! Replaces and deletes files atomically, unless they changed since they were read. Blocks.

use std::{
    ffi::{OsStr, OsString},
    fs::{File, Metadata},
    hash::{BuildHasher as _, RandomState},
    io::{self, Read as _, Write as _},
    path::Path,
};

use crow_core::undo::UndoSnapshot;

use crate::{
    dir_entry::InspectedEntry,
    read::{ReadError, check_readable, is_missing},
    system::{
        file_modes::{permission_bits, set_permission_bits},
        nofollow::{self, DirHandle},
        replaced_file,
    },
};

/// Larger files are not recorded for undo: a turn that changes a few of them would fill the database.
const SNAPSHOT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The identity and state of a file, or its absence: another file or another content has another fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFingerprint(Option<[i64; 7]>);

impl FileFingerprint {
    const MISSING: Self = Self(None);

    fn of_file(file: &File, metadata: &Metadata) -> io::Result<Self> {
        Ok(Self(Some(replaced_file::file_state(file, metadata)?)))
    }

    fn of_entry(entry: Option<&InspectedEntry>) -> io::Result<Self> {
        entry.map_or(Ok(Self::MISSING), |entry| Self::of_file(&entry.file, &entry.metadata))
    }
}

/// A file's content and state, recorded before a change.
#[derive(Debug)]
pub struct FileSnapshot {
    pub before: UndoSnapshot,
    pub fingerprint: FileFingerprint,
}

/// Reads the file at a path through one descriptor. `path` is resolved.
pub fn read_snapshot(path: &Path) -> Result<FileSnapshot, ReadError> {
    match nofollow::read_metadata(path) {
        Ok(metadata) => check_readable(&metadata, u64::MAX)?,
        Err(error) if is_missing(&error) => {
            return Ok(FileSnapshot { before: UndoSnapshot::Missing, fingerprint: FileFingerprint::MISSING });
        }
        Err(error) => return Err(error.into()),
    }
    let file = nofollow::open_file(path)?;
    let metadata = file.metadata()?;
    check_readable(&metadata, u64::MAX)?;
    let fingerprint = FileFingerprint::of_file(&file, &metadata)?;
    let mut bytes = Vec::new();
    if metadata.len() <= SNAPSHOT_BYTES_MAX {
        (&file).take(SNAPSHOT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    }
    if FileFingerprint::of_file(&file, &file.metadata()?)? != fingerprint {
        return Err(concurrent_change_error().into());
    }
    let is_complete = metadata.len().max(bytes.len() as u64) <= SNAPSHOT_BYTES_MAX;
    let mode = permission_bits(&metadata);
    let existing = if is_complete { UndoSnapshot::Content { bytes, mode } } else { UndoSnapshot::TooLarge };
    Ok(FileSnapshot { before: existing, fingerprint })
}

/// New content for a file.
#[derive(Debug, Clone, Copy)]
pub struct FileReplacement<'a> {
    pub bytes: &'a [u8],
    /// Permission bits, if they differ from those of the replaced file.
    pub mode: Option<u32>,
    /// State of the replaced file; in any other state nothing is replaced.
    pub expected: FileFingerprint,
}

/// Replaces or creates a file atomically: a reader sees the old or the new content, never a part. `path` is resolved,
/// so that a link stays a link; one that is there by now is not followed.
pub fn replace_file(path: &Path, replacement: FileReplacement<'_>) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let dir = open_or_create_parent(path)?;
    let existing = inspect_entry(&dir, name)?;
    if let Some(existing) = &existing {
        check_replaceable(&existing.metadata)?;
    }
    if FileFingerprint::of_entry(existing.as_ref())? != replacement.expected {
        return Err(concurrent_change_error());
    }
    let existing = existing.map(|entry| entry.metadata);
    let mut temp_file = TempFile::new(&dir)?;
    if let Some(existing) = &existing {
        let has_same_group = replaced_file::keep_owner(&temp_file.file, existing)?;
        replaced_file::keep_permissions(&temp_file.file, existing, None, has_same_group)?;
        replaced_file::keep_attributes(&dir, name, &temp_file.file, has_same_group);
        if replacement.mode.is_some() {
            replaced_file::keep_permissions(&temp_file.file, existing, replacement.mode, has_same_group)?;
        }
    } else if let Some(mode) = replacement.mode {
        set_permission_bits(&temp_file.file, mode)?;
    }
    temp_file.file.write_all(replacement.bytes)?;
    temp_file.file.sync_all()?;
    // The file may have changed while the new content was written.
    verify_unchanged(&dir, name, replacement.expected)?;
    temp_file.persist_as(name)?;
    dir.sync();
    Ok(())
}

/// Deletes a file. `path` is resolved.
pub fn remove_file(path: &Path, expected: FileFingerprint) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::IsADirectory.into());
    };
    let dir = DirHandle::open(parent)?;
    verify_unchanged(&dir, name, expected)?;
    dir.remove_entry(name)?;
    dir.sync();
    Ok(())
}

/// Opens a directory entry for its metadata, if it exists.
fn inspect_entry(dir: &DirHandle, name: &OsStr) -> io::Result<Option<InspectedEntry>> {
    match dir.inspect_entry(name) {
        Ok(entry) => Ok(Some(entry)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Verifies that the file has not changed since it was read.
fn verify_unchanged(dir: &DirHandle, name: &OsStr, expected: FileFingerprint) -> io::Result<()> {
    let entry = inspect_entry(dir, name)?;
    if FileFingerprint::of_entry(entry.as_ref())? == expected {
        Ok(())
    } else {
        Err(concurrent_change_error())
    }
}

fn concurrent_change_error() -> io::Error {
    io::Error::other("it was changed at the same time; read it again")
}

/// Opens a file's directory, creating it and its parents if missing.
pub fn open_or_create_parent(path: &Path) -> io::Result<DirHandle> {
    let dir = path.parent().ok_or(io::ErrorKind::IsADirectory)?;
    DirHandle::open_or_create(dir).map_err(|error| {
        io::Error::new(error.kind(), format!("the directory {} could not be created: {error}", dir.display()))
    })
}

fn check_replaceable(existing: &Metadata) -> io::Result<()> {
    match existing {
        _ if existing.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        _ if !existing.is_file() => Err(io::Error::other(ReadError::NotAFile)),
        _ if existing.permissions().readonly() => {
            Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is read-only"))
        }
        _ => Ok(()),
    }
}

/// Attempts to find an unused temporary name; the first one succeeds except by chance.
const TEMP_NAMES_MAX: usize = 8;

/// A temporary file, deleted on drop unless it was renamed.
struct TempFile<'a> {
    dir: &'a DirHandle,
    name: OsString,
    file: File,
}

impl<'a> TempFile<'a> {
    fn new(dir: &'a DirHandle) -> io::Result<Self> {
        let mut last_error = io::Error::from(io::ErrorKind::AlreadyExists);
        for _ in 0..TEMP_NAMES_MAX {
            let name = OsString::from(format!(".crow-{:016x}", RandomState::new().hash_one(0)));
            match dir.create_entry(&name) {
                Ok(file) => return Ok(Self { dir, name, file }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last_error = error,
                Err(error) => return Err(error),
            }
        }
        Err(last_error)
    }

    /// Renames it to its final name.
    fn persist_as(mut self, name: &OsStr) -> io::Result<()> {
        self.dir.rename_entry(&self.name, name)?;
        self.name.clear();
        Ok(())
    }
}

impl Drop for TempFile<'_> {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            // A leftover temporary file cannot be handled any further.
            let _ = self.dir.remove_entry(&self.name);
        }
    }
}

#[cfg(test)]
mod tests;
