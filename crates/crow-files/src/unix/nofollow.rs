//! Opens resolved paths by descriptors, relative to the directory above, without following links.

use std::{
    ffi::OsStr,
    fs::{File, Metadata},
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::{Component, Path},
};

use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, mkdirat, openat, renameat, statat, unlinkat},
    io::Errno,
    path::Arg,
};

use super::reserved_files;
use crate::dir_entry::{EntryKind, InspectedEntry, ListedEntry, symlink_error, unresolved_path_error};

/// Mode of a new file, before the user's umask.
const FILE_MODE: Mode = Mode::from_raw_mode(0o666);

/// Mode of a new directory, before the user's umask.
const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o777);

/// Opens a directory on the way to another; on Linux it needs no read permission.
#[cfg(target_os = "linux")]
const TRAVERSE: OFlags = OFlags::PATH.union(DIRECTORY);
#[cfg(not(target_os = "linux"))]
const TRAVERSE: OFlags = OFlags::RDONLY.union(DIRECTORY);

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a file for reading. A pipe does not wait for its other end, and a terminal does not become ours.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Opens for metadata only; other systems than Linux have to open for reading.
#[cfg(target_os = "linux")]
const INSPECT: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const INSPECT: OFlags = READ;

/// Creates a new file and opens no existing one.
const CREATE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a file or a directory for reading. `path` is resolved.
pub fn open_file(path: &Path) -> io::Result<File> {
    open_with(path, READ).map(File::from)
}

/// Returns the metadata of a resolved path without opening it: opening a device may have an effect.
pub fn read_metadata(path: &Path) -> io::Result<Metadata> {
    Ok(inspect_opened(open_with(path, INSPECT)?)?.metadata)
}

/// An open directory: its entries are reached by name, even if its own path leads elsewhere by now.
#[derive(Debug)]
pub struct DirHandle(OwnedFd);

impl DirHandle {
    /// Opens a directory. `path` is resolved.
    pub fn open(path: &Path) -> io::Result<Self> {
        open_with(path, TRAVERSE).map(Self)
    }

    /// Opens a directory, creating it and its parents if missing. `path` is resolved.
    pub fn open_or_create(path: &Path) -> io::Result<Self> {
        match Self::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        let mut dir = openat(CWD, "/", TRAVERSE, Mode::empty())?;
        for name in path_components(path)? {
            dir = match open_component(&dir, name, TRAVERSE) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    match mkdirat(&dir, name, DIRECTORY_MODE) {
                        // Another process may create the same directory.
                        Ok(()) | Err(Errno::EXIST) => open_component(&dir, name, TRAVERSE)?,
                        Err(errno) => return Err(errno.into()),
                    }
                }
                opened => opened?,
            };
        }
        Ok(Self(dir))
    }

    /// Returns the metadata of an entry without opening it.
    pub fn entry_metadata(&self, name: &OsStr) -> io::Result<Metadata> {
        Ok(self.inspect_entry(name)?.metadata)
    }

    /// Opens an entry for its metadata only; a link is an error.
    pub(crate) fn inspect_entry(&self, name: &OsStr) -> io::Result<InspectedEntry> {
        inspect_opened(self.open_name(name, INSPECT)?)
    }

    /// Opens a file in the directory for reading.
    pub fn open_entry(&self, name: &OsStr) -> io::Result<File> {
        self.open_name(name, READ).map(File::from)
    }

    fn open_name(&self, name: &OsStr, flags: OFlags) -> io::Result<OwnedFd> {
        check_unreserved(&self.0, name, flags)?;
        open_component(&self.0, name, flags)
    }

    /// Creates a new file in the directory.
    pub fn create_entry(&self, name: &OsStr) -> io::Result<File> {
        Ok(openat(&self.0, name, CREATE, FILE_MODE)?.into())
    }

    /// Renames a file in the directory, replacing the target.
    pub fn rename_entry(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(renameat(&self.0, from, &self.0, to)?)
    }

    /// Deletes a file in the directory.
    pub fn remove_entry(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Writes the directory's entries to the disk, if the system supports that.
    pub fn sync(&self) {
        let readable = openat(&self.0, ".", OFlags::RDONLY | DIRECTORY, Mode::empty());
        // A system that cannot sync directories stores the entries anyway.
        let _ = readable.map(|dir| File::from(dir).sync_all());
    }

    /// Opens a directory to list it. `path` is resolved.
    pub fn open_to_list(path: &Path) -> io::Result<Self> {
        open_with(path, OFlags::RDONLY | DIRECTORY).map(Self)
    }

    /// Lists a directory that was opened for it, in the system's order.
    pub fn into_entries(self) -> io::Result<DirEntries> {
        Ok(DirEntries(Dir::new(self.0)?))
    }

    /// Names in the directory, at most `names_max`.
    pub fn entry_names(&self, names_max: usize) -> io::Result<Vec<String>> {
        let readable = openat(&self.0, ".", OFlags::RDONLY | DIRECTORY, Mode::empty())?;
        let names =
            Dir::new(readable)?.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        Ok(names.filter(|name| name != "." && name != "..").take(names_max).collect())
    }
}

/// The entries of a directory, read on demand: there may be millions.
pub struct DirEntries(Dir);

impl Iterator for DirEntries {
    type Item = io::Result<ListedEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let entry = match self.0.read()? {
                Ok(entry) => entry,
                Err(errno) => return Some(Err(errno.into())),
            };
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let mut kind = entry.file_type();
            if kind == FileType::Unknown {
                // Some file systems do not return the type with the entry.
                let stat =
                    self.0.fd().and_then(|dir| statat(dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW));
                kind = stat.map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode));
            }
            let kind = if kind.is_dir() {
                EntryKind::Directory
            } else if kind.is_file() {
                EntryKind::File
            } else {
                EntryKind::Other
            };
            return Some(Ok(ListedEntry { name: name.to_owned(), kind }));
        }
    }
}

/// Opens a resolved path.
fn open_with(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    // An unresolved path could lead somewhere else.
    path_components(path).map(drop)?;
    check_unreserved(CWD, path, flags)?;
    match open_at_once(path, flags) {
        Some(opened) => opened.map_err(to_io_error),
        None => open_in_steps(path, flags),
    }
}

/// Checks that a file is not reserved. Once it is open it is too late: closing it ends the locks.
#[cfg_attr(
    target_os = "linux",
    expect(clippy::useless_conversion, reason = "other systems have other types")
)]
fn check_unreserved(dir: impl AsFd, path: impl Arg, flags: OFlags) -> io::Result<()> {
    let only_inspects = cfg!(target_os = "linux") && flags == INSPECT;
    if only_inspects || flags.contains(OFlags::DIRECTORY) {
        return Ok(());
    }
    reserved_files::check_identity(|| {
        let stat = statat(dir, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some((stat.st_dev.try_into().ok()?, stat.st_ino))
    })
}

/// Whether something exists at an absolute path that is sure to have no link and no `..`, in one system call; `None` if
/// the path may have some.
#[cfg(target_os = "linux")]
pub(super) fn exists_without_links(path: &Path) -> Option<bool> {
    path_components(path).map(drop).ok()?;
    match open_at_once(path, OFlags::PATH | OFlags::CLOEXEC)? {
        Ok(_) => Some(true),
        Err(Errno::NOENT | Errno::NOTDIR) => Some(false),
        Err(_) => None,
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn exists_without_links(_path: &Path) -> Option<bool> {
    None
}

/// Opens a path in one system call; `None` if the system does not support it or a container forbids it.
#[cfg(target_os = "linux")]
fn open_at_once(path: &Path, flags: OFlags) -> Option<Result<OwnedFd, Errno>> {
    use rustix::fs::{ResolveFlags, openat2};
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(CWD, path, flags, Mode::empty(), resolve) {
        Err(Errno::NOSYS | Errno::PERM) => None,
        opened => Some(opened),
    }
}

#[cfg(not(target_os = "linux"))]
fn open_at_once(_path: &Path, _flags: OFlags) -> Option<Result<OwnedFd, Errno>> {
    None
}

/// Opens a path directory by directory, each one relative to its parent.
fn open_in_steps(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let mut names = path_components(path)?.peekable();
    let first = if names.peek().is_some() { TRAVERSE } else { flags };
    let mut dir = openat(CWD, "/", first, Mode::empty())?;
    while let Some(name) = names.next() {
        dir = open_component(&dir, name, if names.peek().is_some() { TRAVERSE } else { flags })?;
    }
    Ok(dir)
}

/// Opens one entry of a directory, unless it is a link.
fn open_component(dir: &OwnedFd, name: &OsStr, flags: OFlags) -> io::Result<OwnedFd> {
    match openat(dir, name, flags, Mode::empty()) {
        // Systems report a link in place of a directory in different ways, or like a file.
        Err(Errno::NOTDIR) if is_link(dir, name) => Err(symlink_error()),
        opened => opened.map_err(to_io_error),
    }
}

fn inspect_opened(opened: OwnedFd) -> io::Result<InspectedEntry> {
    let file = File::from(opened);
    let metadata = file.metadata()?;
    if metadata.is_symlink() { Err(symlink_error()) } else { Ok(InspectedEntry { file, metadata }) }
}

fn is_link(dir: &OwnedFd, name: &OsStr) -> bool {
    statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_symlink())
}

/// The components of an absolute path without `..`.
fn path_components(path: &Path) -> io::Result<impl Iterator<Item = &OsStr>> {
    let mut parts = path.components();
    let is_resolved = parts.next() == Some(Component::RootDir)
        && parts.clone().all(|part| matches!(part, Component::Normal(_)));
    if !is_resolved {
        return Err(unresolved_path_error());
    }
    Ok(parts.map(Component::as_os_str))
}

fn to_io_error(errno: Errno) -> io::Error {
    if errno == Errno::LOOP { symlink_error() } else { errno.into() }
}

#[cfg(test)]
mod tests;
