//! Opens what a resolved path names and nothing that a link would have it name instead: between the moment a path was
//! judged and the moment it is opened, anybody may put a link in its way. Knows no tool and judges nothing.

use std::{
    ffi::{OsStr, OsString},
    fs::{File, Metadata},
    io,
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::{Component, Path},
};

use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, mkdirat, openat, renameat, statat, unlinkat},
    io::Errno,
};

/// What any new file gets, less what the person's mask takes away.
const FILE_MODE: Mode = Mode::from_raw_mode(0o666);

/// What any new folder gets, less what the person's mask takes away.
const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o777);

/// A folder as a step on the way; on Linux one that may be passed through needs not be readable.
#[cfg(target_os = "linux")]
const TRAVERSE: OFlags = OFlags::PATH.union(DIRECTORY);
#[cfg(not(target_os = "linux"))]
const STEP: OFlags = OFlags::RDONLY.union(DIRECTORY);

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// To read a file. A pipe does not wait for its other end, and a terminal does not become ours.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// To look at something; elsewhere than on Linux that means to open it.
#[cfg(target_os = "linux")]
const INSPECT: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const LOOK: OFlags = READ;

/// Makes a new file, and opens none that is there.
const CREATE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a file or a folder for reading. `path` is resolved.
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    open_with(path, READ).map(File::from)
}

/// Says what a resolved path names, without opening it: to open a device is to use it.
pub(crate) fn read_metadata(path: &Path) -> io::Result<Metadata> {
    checked_metadata(open_with(path, INSPECT)?)
}

/// A folder that is held open: what is in it is reached by the names in it, wherever its own path leads by now.
#[derive(Debug)]
pub(crate) struct DirHandle(OwnedFd);

impl DirHandle {
    /// Opens a folder. `path` is resolved.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        open_with(path, TRAVERSE).map(Self)
    }

    /// Opens a folder after it made all of them that are missing on the way. `path` is resolved.
    pub(crate) fn open_or_create(path: &Path) -> io::Result<Self> {
        match Self::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        let mut dir = openat(CWD, "/", TRAVERSE, Mode::empty())?;
        for name in path_components(path)? {
            dir = match open_component(&dir, name, TRAVERSE) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    match mkdirat(&dir, name, DIRECTORY_MODE) {
                        // Somebody else may want the same folder.
                        Ok(()) | Err(Errno::EXIST) => open_component(&dir, name, TRAVERSE)?,
                        Err(errno) => return Err(errno.into()),
                    }
                }
                opened => opened?,
            };
        }
        Ok(Self(dir))
    }

    /// Says what a name in it stands for, without opening it.
    pub(crate) fn entry_metadata(&self, name: &OsStr) -> io::Result<Metadata> {
        checked_metadata(open_component(&self.0, name, INSPECT)?)
    }

    /// Opens a file in it for reading.
    pub(crate) fn open_entry(&self, name: &OsStr) -> io::Result<File> {
        open_component(&self.0, name, READ).map(File::from)
    }

    /// Makes a new file in it.
    pub(crate) fn create_entry(&self, name: &OsStr) -> io::Result<File> {
        Ok(openat(&self.0, name, CREATE, FILE_MODE)?.into())
    }

    /// Gives a file in it another name in it, which no longer names what it named.
    pub(crate) fn rename_entry(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(renameat(&self.0, from, &self.0, to)?)
    }

    /// Takes a file out of it.
    pub(crate) fn remove_entry(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Has the names in it written to the disk, where the system can do that.
    pub(crate) fn sync(&self) {
        let readable = openat(&self.0, ".", OFlags::RDONLY | DIRECTORY, Mode::empty());
        // A system that cannot sync folders keeps the names anyway.
        let _ = readable.map(|dir| File::from(dir).sync_all());
    }

    /// Opens a folder to list it. `path` is resolved.
    pub(crate) fn open_to_list(path: &Path) -> io::Result<Self> {
        open_with(path, OFlags::RDONLY | DIRECTORY).map(Self)
    }

    /// Lists what is in a folder that was opened for it, in the order of the system.
    pub(crate) fn into_entries(self) -> io::Result<DirEntries> {
        Ok(DirEntries(Dir::new(self.0)?))
    }

    /// Names in it, at most `names_max`.
    pub(crate) fn entry_names(&self, names_max: usize) -> io::Result<Vec<String>> {
        let readable = openat(&self.0, ".", OFlags::RDONLY | DIRECTORY, Mode::empty())?;
        let names =
            Dir::new(readable)?.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        Ok(names.filter(|name| name != "." && name != "..").take(names_max).collect())
    }
}

/// What is in a folder, read as it is asked for: a folder may have millions of entries.
pub(crate) struct DirEntries(Dir);

/// One name in a folder.
pub(crate) struct ListedEntry {
    pub(crate) name: OsString,
    pub(crate) kind: EntryKind,
}

/// What a name in a folder stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    Directory,
    File,
    /// A link, a device, a pipe or a socket.
    Other,
}

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
                // Some file systems do not say it in the list.
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

/// Opens what a resolved path names.
fn open_with(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    // It would go somewhere else than it says.
    path_components(path).map(drop)?;
    match open_at_once(path, flags) {
        Some(opened) => opened.map_err(to_io_error),
        None => open_in_steps(path, flags),
    }
}

/// Opens a path in one system call; `None` where the system cannot do it or a container forbids it.
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

/// Opens a path folder by folder, each one in the one before it.
fn open_in_steps(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let mut names = path_components(path)?.peekable();
    let first = if names.peek().is_some() { TRAVERSE } else { flags };
    let mut dir = openat(CWD, "/", first, Mode::empty())?;
    while let Some(name) = names.next() {
        dir = open_component(&dir, name, if names.peek().is_some() { TRAVERSE } else { flags })?;
    }
    Ok(dir)
}

/// Opens one name in a folder, unless it is a link.
fn open_component(dir: &OwnedFd, name: &OsStr, flags: OFlags) -> io::Result<OwnedFd> {
    match openat(dir, name, flags, Mode::empty()) {
        // Systems tell a link where a folder was asked for from a file there in different ways, or not at all.
        Err(Errno::NOTDIR) if is_link(dir, name) => Err(symlink_error()),
        opened => opened.map_err(to_io_error),
    }
}

fn checked_metadata(opened: OwnedFd) -> io::Result<Metadata> {
    let metadata = File::from(opened).metadata()?;
    if metadata.is_symlink() { Err(symlink_error()) } else { Ok(metadata) }
}

fn is_link(dir: &OwnedFd, name: &OsStr) -> bool {
    statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_symlink())
}

/// The names along an absolute path that goes nowhere but down.
fn path_components(path: &Path) -> io::Result<impl Iterator<Item = &OsStr>> {
    let mut parts = path.components();
    let is_resolved = parts.next() == Some(Component::RootDir)
        && parts.clone().all(|part| matches!(part, Component::Normal(_)));
    if !is_resolved {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path is not resolved"));
    }
    Ok(parts.map(Component::as_os_str))
}

fn to_io_error(errno: Errno) -> io::Error {
    if errno == Errno::LOOP { symlink_error() } else { errno.into() }
}

fn symlink_error() -> io::Error {
    io::Error::other("a link is in its way that leads round in circles or was put there just now")
}

#[cfg(test)]
mod tests;
