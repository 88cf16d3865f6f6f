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
const KEPT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The bits of a mode that permissions are.
const PERMISSIONS: u32 = 0o7777;

/// Names listed of one folder to look for near ones.
const NEIGHBOURS_MAX: usize = 10_000;

/// Near names worth telling.
const NEAR_NAMES_MAX: usize = 3;

/// How alike names have to be, from 0 to 1; lower ones are noise.
const NEAR_ENOUGH: f32 = 0.6;

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Nothing is there.
    #[error("it does not exist")]
    Missing,
    /// A folder.
    #[error("it is a folder")]
    Folder,
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

fn check_readable(found: &Metadata, bytes_max: u64) -> Result<(), ReadError> {
    match found.len() {
        _ if found.is_dir() => Err(ReadError::Folder),
        _ if !found.is_file() => Err(ReadError::NotAFile),
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
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Vec::new() };
    let names =
        DirHandle::open(folder).and_then(|folder| folder.entry_names(NEIGHBOURS_MAX)).unwrap_or_default();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let near =
        similar::get_close_matches(name.to_string_lossy().as_ref(), &names, NEAR_NAMES_MAX, NEAR_ENOUGH);
    near.into_iter().map(escape_hidden).collect()
}

/// Which file was at a path in which state, or that there was none: another file or another content has another mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileFingerprint(Option<[i64; 7]>);

impl FileFingerprint {
    fn from_metadata(found: Option<&Metadata>) -> Self {
        Self(found.map(|found| {
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
    pub(crate) mark: FileFingerprint,
}

/// Reads what is at a path, through one descriptor. `path` is resolved.
pub(crate) fn read_snapshot(path: &Path) -> Result<FileSnapshot, ReadError> {
    match nofollow::read_metadata(path) {
        Ok(found) => check_readable(&found, u64::MAX)?,
        Err(error) if is_missing(&error) => {
            return Ok(FileSnapshot {
                before: UndoSnapshot::Missing,
                mark: FileFingerprint::from_metadata(None),
            });
        }
        Err(error) => return Err(error.into()),
    }
    let file = nofollow::open_file(path)?;
    let found = file.metadata()?;
    check_readable(&found, u64::MAX)?;
    let mark = FileFingerprint::from_metadata(Some(&found));
    let mut bytes = Vec::new();
    if found.len() <= KEPT_BYTES_MAX {
        (&file).take(KEPT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    }
    if FileFingerprint::from_metadata(Some(&file.metadata()?)) != mark {
        return Err(concurrent_change_error().into());
    }
    let is_whole = found.len().max(bytes.len() as u64) <= KEPT_BYTES_MAX;
    let mode = Some(found.mode() & PERMISSIONS);
    let before = if is_whole { UndoSnapshot::Content { bytes, mode } } else { UndoSnapshot::Unknown };
    Ok(FileSnapshot { before, mark })
}

/// What a file becomes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileReplacement<'a> {
    pub(crate) bytes: &'a [u8],
    /// Its permission bits, where they are not those of the file that it replaces.
    pub(crate) mode: Option<u32>,
    /// What it replaces; anything else that is there stays.
    pub(crate) over: FileFingerprint,
}

/// Replaces a file or makes a new one: whoever reads it finds the old or the new, never a part.
/// `path` is resolved, so that a link stays a link; one that is there by now is not followed.
pub(crate) fn replace_file(path: &Path, new: FileReplacement<'_>) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let folder = open_or_create_parent(path)?;
    let before = lookup_metadata(&folder, name)?;
    if let Some(before) = &before {
        check_replaceable(before)?;
    }
    if FileFingerprint::from_metadata(before.as_ref()) != new.over {
        return Err(concurrent_change_error());
    }
    let mut draft = TempFile::new(&folder)?;
    if let Some(before) = &before {
        keep_owner(&draft.file, before);
        draft.file.set_permissions(before.permissions())?;
        keep_attributes(&folder, name, &draft.file);
    }
    if let Some(mode) = new.mode {
        draft.file.set_permissions(Permissions::from_mode(mode & PERMISSIONS))?;
    }
    draft.file.write_all(new.bytes)?;
    draft.file.sync_all()?;
    // Writing took its time.
    verify_unchanged(&folder, name, new.over)?;
    draft.persist_as(name)?;
    folder.sync();
    Ok(())
}

/// Takes a file away. `path` is resolved.
pub(crate) fn remove_file(path: &Path, over: FileFingerprint) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::IsADirectory.into());
    };
    let folder = DirHandle::open(parent)?;
    verify_unchanged(&folder, name, over)?;
    folder.remove_entry(name)?;
    folder.sync();
    Ok(())
}

/// Says what a name in a folder stands for, if anything.
fn lookup_metadata(folder: &DirHandle, name: &OsStr) -> io::Result<Option<Metadata>> {
    match folder.entry_metadata(name) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Looks once more at what is about to go, which has to be what it was.
fn verify_unchanged(folder: &DirHandle, name: &OsStr, over: FileFingerprint) -> io::Result<()> {
    let found = lookup_metadata(folder, name)?;
    if FileFingerprint::from_metadata(found.as_ref()) == over {
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
    let folder = path.parent().ok_or(io::ErrorKind::IsADirectory)?;
    DirHandle::open_or_create(folder).map_err(|error| {
        io::Error::new(error.kind(), format!("the folder {} could not be made: {error}", folder.display()))
    })
}

fn check_replaceable(before: &Metadata) -> io::Result<()> {
    match before {
        _ if before.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        _ if !before.is_file() => Err(io::Error::other(ReadError::NotAFile)),
        _ if before.permissions().readonly() => {
            Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is read-only"))
        }
        _ => Ok(()),
    }
}

/// How often a name for a draft may be taken; by chance it is not even once.
const DRAFT_NAMES_MAX: usize = 8;

/// A file that is not finished and goes away unless it gets its name.
struct TempFile<'a> {
    folder: &'a DirHandle,
    name: OsString,
    file: File,
}

impl<'a> TempFile<'a> {
    fn new(folder: &'a DirHandle) -> io::Result<Self> {
        let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
        for _ in 0..DRAFT_NAMES_MAX {
            let name = OsString::from(format!(".crow-{:016x}", RandomState::new().hash_one(0)));
            match folder.create_entry(&name) {
                Ok(file) => return Ok(Self { folder, name, file }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    /// Gives it the name of what it replaces.
    fn persist_as(mut self, name: &OsStr) -> io::Result<()> {
        self.folder.rename_entry(&self.name, name)?;
        self.name.clear();
        Ok(())
    }
}

impl Drop for TempFile<'_> {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            // Nothing is left to be done about it.
            let _ = self.folder.remove_entry(&self.name);
        }
    }
}

/// Only root can give a file away, and only root has the need to: its edits must not take files over.
fn keep_owner(file: &File, before: &Metadata) {
    let _ = fchown(file, Some(before.uid()), Some(before.gid()));
}

/// As long as Linux lets a list of attributes, or the value of one, be.
#[cfg(target_os = "linux")]
const ATTRIBUTE_BYTES_MAX: usize = 64 * 1024;

/// Keeps what a person attached to a file and whom they gave access to it, as far as the new file takes it.
#[cfg(target_os = "linux")]
fn keep_attributes(folder: &DirHandle, name: &OsStr, file: &File) {
    use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr};
    let Ok(before) = folder.open_entry(name) else { return };
    let mut list = vec![0; ATTRIBUTE_BYTES_MAX];
    let Ok(n_bytes) = flistxattr(&before, &mut list) else { return };
    let mut value = vec![0; ATTRIBUTE_BYTES_MAX];
    for attribute in list[..n_bytes].split(|&byte| byte == 0) {
        if !attribute.starts_with(b"user.") && attribute != b"system.posix_acl_access" {
            continue;
        }
        if let Ok(n_bytes) = fgetxattr(&before, attribute, &mut value) {
            let _ = fsetxattr(file, attribute, &value[..n_bytes], XattrFlags::empty());
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn keep_attributes(_folder: &DirHandle, _name: &OsStr, _file: &File) {}
