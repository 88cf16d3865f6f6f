//! Reading a file with a bound and replacing one in a single step. Blocks; knows no tool.

use std::{
    ffi::{OsStr, OsString},
    fs::{File, Metadata, Permissions},
    hash::{BuildHasher as _, RandomState},
    io::{self, Read as _, Write as _},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown},
    path::Path,
};

use crow_core::{escape_hidden, undo::UndoSnapshot};

use crate::nofollow::{self, DirHandle};

/// Larger files are not for reading: they are searched, or looked at in parts with a command.
pub(crate) const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Larger files are not kept before they are changed: a turn that changes a few would fill the database.
const SNAPSHOT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The bits of a mode that permissions are.
const PERMISSION_BITS: u32 = 0o7777;

/// Names listed of one folder to look for near ones.
const LISTED_NAMES_MAX: usize = 10_000;

/// Near names worth telling.
const SIMILAR_NAMES_MAX: usize = 3;

/// How alike names have to be, from 0 to 1; lower ones are noise.
const SIMILARITY_MIN: f32 = 0.6;

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Nothing is there.
    #[error("it does not exist")]
    Missing,
    /// A folder.
    #[error("it is a folder")]
    Directory,
    /// A device, a pipe or a socket.
    #[error("it is a device or a pipe, not a file")]
    NotAFile,
    /// More bytes than are read.
    #[error("it is too large ({n_bytes} bytes, the limit is {bytes_max})")]
    TooLarge {
        /// As many as it has, at least.
        n_bytes: u64,
        /// As many as are read.
        bytes_max: u64,
    },
    /// What the system says.
    #[error("{0}")]
    System(#[from] io::Error),
}

/// Lists the names in a folder, sorted, at most `n_max`; those that are no UTF-8 are left out. `path` is resolved.
pub fn list_names(path: &Path, n_max: usize) -> io::Result<Vec<String>> {
    let entries = DirHandle::open_to_list(path)?.into_entries()?.take(n_max);
    let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.name.into_string().ok()).collect();
    names.sort();
    Ok(names)
}

/// Reads a whole file of at most `bytes_max` that a stranger may have laid out. `path` is resolved: a link that is there by
/// now is not followed, and neither a device nor a pipe is opened.
pub fn read_file(path: &Path, bytes_max: u64) -> Result<Vec<u8>, ReadError> {
    let file = open_bounded(path, bytes_max)?;
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    // It may have grown, and some files of the system say that they are empty.
    let n_bytes = bytes.len() as u64;
    if n_bytes > bytes_max { Err(ReadError::TooLarge { n_bytes, bytes_max }) } else { Ok(bytes) }
}

/// Opens a file of any size for reading. `path` is resolved.
pub(crate) fn open_file(path: &Path) -> Result<File, ReadError> {
    open_bounded(path, u64::MAX)
}

fn open_bounded(path: &Path, bytes_max: u64) -> Result<File, ReadError> {
    let missing = |error: io::Error| if is_missing(&error) { ReadError::Missing } else { error.into() };
    // Looked at before it is opened: a device may do something then.
    check_readable(&nofollow::read_metadata(path).map_err(missing)?, bytes_max)?;
    let file = nofollow::open_file(path).map_err(missing)?;
    check_readable(&file.metadata()?, bytes_max)?;
    Ok(file)
}

fn check_readable(metadata: &Metadata, bytes_max: u64) -> Result<(), ReadError> {
    match metadata.len() {
        _ if metadata.is_dir() => Err(ReadError::Directory),
        _ if !metadata.is_file() => Err(ReadError::NotAFile),
        n_bytes if n_bytes > bytes_max => Err(ReadError::TooLarge { n_bytes, bytes_max }),
        _ => Ok(()),
    }
}

/// As far as Git looks for a zero byte before it calls a file binary.
const SNIFFED_BYTES: usize = 8000;

/// Tells whether an editor would open it: images and programs have zero bytes at their beginning.
pub(crate) fn may_be_text(bytes: &[u8]) -> bool {
    !bytes.iter().take(SNIFFED_BYTES).any(|&byte| byte == 0)
}

/// Tells whether an error says that there is nothing at a path.
pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Names in the same folder that look like the one that is missing.
pub(crate) fn similar_names(path: &Path) -> Vec<String> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return Vec::new() };
    let names =
        DirHandle::open(dir).and_then(|folder| folder.entry_names(LISTED_NAMES_MAX)).unwrap_or_default();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let similar = similar::get_close_matches(
        name.to_string_lossy().as_ref(),
        &names,
        SIMILAR_NAMES_MAX,
        SIMILARITY_MIN,
    );
    similar.into_iter().map(escape_hidden).collect()
}

/// Which file was at a path in which state, or that there was none: another file or another content has another mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileFingerprint(Option<[i64; 7]>);

impl FileFingerprint {
    fn from_metadata(metadata: Option<&Metadata>) -> Self {
        Self(metadata.map(|found| {
            let times = [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()];
            let [dev, ino, size] = [found.dev(), found.ino(), found.size()].map(u64::cast_signed);
            let [mtime, mtime_nsec, ctime, ctime_nsec] = times;
            [dev, ino, size, mtime, mtime_nsec, ctime, ctime_nsec]
        }))
    }
}

/// A file as it is, to be kept before it is changed.
#[derive(Debug)]
pub(crate) struct FileSnapshot {
    pub(crate) before: UndoSnapshot,
    pub(crate) fingerprint: FileFingerprint,
}

/// Reads what is at a path, through one descriptor. `path` is resolved.
pub(crate) fn read_snapshot(path: &Path) -> Result<FileSnapshot, ReadError> {
    match nofollow::read_metadata(path) {
        Ok(metadata) => check_readable(&metadata, u64::MAX)?,
        Err(error) if is_missing(&error) => {
            return Ok(FileSnapshot {
                before: UndoSnapshot::Missing,
                fingerprint: FileFingerprint::from_metadata(None),
            });
        }
        Err(error) => return Err(error.into()),
    }
    let file = nofollow::open_file(path)?;
    let metadata = file.metadata()?;
    check_readable(&metadata, u64::MAX)?;
    let fingerprint = FileFingerprint::from_metadata(Some(&metadata));
    let mut bytes = Vec::new();
    if metadata.len() <= SNAPSHOT_BYTES_MAX {
        (&file).take(SNAPSHOT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    }
    if FileFingerprint::from_metadata(Some(&file.metadata()?)) != fingerprint {
        return Err(concurrent_change_error().into());
    }
    let is_complete = metadata.len().max(bytes.len() as u64) <= SNAPSHOT_BYTES_MAX;
    let mode = Some(metadata.mode() & PERMISSION_BITS);
    let existing = if is_complete { UndoSnapshot::Content { bytes, mode } } else { UndoSnapshot::Unknown };
    Ok(FileSnapshot { before: existing, fingerprint })
}

/// What a file becomes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileReplacement<'a> {
    pub(crate) bytes: &'a [u8],
    /// Its permission bits, where they are not those of the file that it replaces.
    pub(crate) mode: Option<u32>,
    /// What it replaces; anything else that is there stays.
    pub(crate) expected: FileFingerprint,
}

/// Replaces a file or makes a new one: whoever reads it finds the old or the new, never a part.
/// `path` is resolved, so that a link stays a link; one that is there by now is not followed.
pub(crate) fn replace_file(path: &Path, replacement: FileReplacement<'_>) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let dir = open_or_create_parent(path)?;
    let existing = lookup_metadata(&dir, name)?;
    if let Some(existing) = &existing {
        check_replaceable(existing)?;
    }
    if FileFingerprint::from_metadata(existing.as_ref()) != replacement.expected {
        return Err(concurrent_change_error());
    }
    let mut temp_file = TempFile::new(&dir)?;
    if let Some(existing) = &existing {
        keep_owner(&temp_file.file, existing);
        temp_file.file.set_permissions(existing.permissions())?;
        keep_attributes(&dir, name, &temp_file.file);
    }
    if let Some(mode) = replacement.mode {
        temp_file.file.set_permissions(Permissions::from_mode(mode & PERMISSION_BITS))?;
    }
    temp_file.file.write_all(replacement.bytes)?;
    temp_file.file.sync_all()?;
    // Writing took its time.
    verify_unchanged(&dir, name, replacement.expected)?;
    temp_file.persist_as(name)?;
    dir.sync();
    Ok(())
}

/// Takes a file away. `path` is resolved.
pub(crate) fn remove_file(path: &Path, expected: FileFingerprint) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::IsADirectory.into());
    };
    let dir = DirHandle::open(parent)?;
    verify_unchanged(&dir, name, expected)?;
    dir.remove_entry(name)?;
    dir.sync();
    Ok(())
}

/// Says what a name in a folder stands for, if anything.
fn lookup_metadata(dir: &DirHandle, name: &OsStr) -> io::Result<Option<Metadata>> {
    match dir.entry_metadata(name) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Looks once more at what is about to go, which has to be what it was.
fn verify_unchanged(dir: &DirHandle, name: &OsStr, expected: FileFingerprint) -> io::Result<()> {
    let metadata = lookup_metadata(dir, name)?;
    if FileFingerprint::from_metadata(metadata.as_ref()) == expected {
        Ok(())
    } else {
        Err(concurrent_change_error())
    }
}

fn concurrent_change_error() -> io::Error {
    io::Error::other("somebody changed it at the same moment; read it again")
}

/// Opens the folder of a file, made with all that are missing above it.
pub(crate) fn open_or_create_parent(path: &Path) -> io::Result<DirHandle> {
    let dir = path.parent().ok_or(io::ErrorKind::IsADirectory)?;
    DirHandle::open_or_create(dir).map_err(|error| {
        io::Error::new(error.kind(), format!("the folder {} could not be made: {error}", dir.display()))
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

/// How often a name for a draft may be taken; by chance it is not even once.
const TEMP_NAMES_MAX: usize = 8;

/// A file that is not finished and goes away unless it gets its name.
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

    /// Gives it the name of what it replaces.
    fn persist_as(mut self, name: &OsStr) -> io::Result<()> {
        self.dir.rename_entry(&self.name, name)?;
        self.name.clear();
        Ok(())
    }
}

impl Drop for TempFile<'_> {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            // Nothing is left to be done about it.
            let _ = self.dir.remove_entry(&self.name);
        }
    }
}

/// Only root can give a file away, and only root has the need to: its edits must not take files over.
fn keep_owner(file: &File, existing: &Metadata) {
    let _ = fchown(file, Some(existing.uid()), Some(existing.gid()));
}

/// As long as Linux lets a list of attributes, or the value of one, be.
#[cfg(target_os = "linux")]
const ATTRIBUTE_BYTES_MAX: usize = 64 * 1024;

/// Keeps what a person attached to a file and whom they gave access to it, as far as the new file takes it.
#[cfg(target_os = "linux")]
fn keep_attributes(dir: &DirHandle, name: &OsStr, file: &File) {
    use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr};
    let Ok(existing) = dir.open_entry(name) else { return };
    let mut list = vec![0; ATTRIBUTE_BYTES_MAX];
    let Ok(n_bytes) = flistxattr(&existing, &mut list) else { return };
    let mut value = vec![0; ATTRIBUTE_BYTES_MAX];
    for attribute in list[..n_bytes].split(|&byte| byte == 0) {
        if !attribute.starts_with(b"user.") && attribute != b"system.posix_acl_access" {
            continue;
        }
        if let Ok(n_bytes) = fgetxattr(&existing, attribute, &mut value) {
            let _ = fsetxattr(file, attribute, &value[..n_bytes], XattrFlags::empty());
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn keep_attributes(_folder: &DirHandle, _name: &OsStr, _file: &File) {}
