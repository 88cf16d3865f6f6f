//! Opens resolved paths by handles, relative to the root of the drive, without following reparse points.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    fs::{File, Metadata, OpenOptions},
    io,
    os::windows::{
        ffi::{OsStrExt as _, OsStringExt as _},
        fs::{FileTypeExt as _, OpenOptionsExt as _},
        io::{AsHandle as _, OwnedHandle},
    },
    path::{Component, Path, Prefix},
};

use windows_sys::{
    Wdk::Storage::FileSystem::{
        FILE_CREATE, FILE_DELETE_ON_CLOSE, FILE_DIRECTORY_FILE, FILE_NON_DIRECTORY_FILE, FILE_OPEN,
        FILE_OPEN_IF,
    },
    Win32::Storage::FileSystem::{
        DELETE, FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_REPARSE_POINT, FILE_FLAG_BACKUP_SEMANTICS,
        FILE_GENERIC_READ, FILE_GENERIC_WRITE, FILE_LIST_DIRECTORY, FILE_READ_ATTRIBUTES, FILE_TRAVERSE,
        READ_CONTROL, SYNCHRONIZE, WRITE_DAC,
    },
};

use super::nt_calls::{self, OpenRequest};
use crate::dir_entry::{EntryKind, InspectedEntry, ListedEntry, symlink_error, unresolved_path_error};

/// Opens a file or a directory for reading.
const READ: OpenRequest = OpenRequest { access: FILE_GENERIC_READ, disposition: FILE_OPEN, options: 0 };

/// Opens for metadata only.
const INSPECT: OpenRequest =
    OpenRequest { access: FILE_READ_ATTRIBUTES | SYNCHRONIZE, disposition: FILE_OPEN, options: 0 };

/// The access to a directory on the way to its entries.
const TRAVERSE_ACCESS: u32 = FILE_TRAVERSE | FILE_READ_ATTRIBUTES | SYNCHRONIZE;

const TRAVERSE: OpenRequest =
    OpenRequest { access: TRAVERSE_ACCESS, disposition: FILE_OPEN, options: FILE_DIRECTORY_FILE };

const CREATE_DIRECTORY: OpenRequest = OpenRequest { disposition: FILE_OPEN_IF, ..TRAVERSE };

const LIST: OpenRequest = OpenRequest { access: TRAVERSE_ACCESS | FILE_LIST_DIRECTORY, ..TRAVERSE };

/// Creates a new file, which may then get the access control list of another one.
const CREATE: OpenRequest = OpenRequest {
    access: FILE_GENERIC_WRITE | FILE_READ_ATTRIBUTES | READ_CONTROL | WRITE_DAC,
    disposition: FILE_CREATE,
    options: FILE_NON_DIRECTORY_FILE,
};

const RENAME: OpenRequest =
    OpenRequest { access: DELETE | SYNCHRONIZE, disposition: FILE_OPEN, options: FILE_NON_DIRECTORY_FILE };

const REMOVE: OpenRequest = OpenRequest { options: FILE_NON_DIRECTORY_FILE | FILE_DELETE_ON_CLOSE, ..RENAME };

/// Some hundred entries at a time.
const LIST_BYTES: usize = 64 * 1024;

/// Opens a file or a directory for reading. `path` is resolved.
pub fn open_file(path: &Path) -> io::Result<File> {
    open_with(path, READ).map(File::from)
}

/// Returns the metadata of a resolved path without opening its content: opening a device may have an effect.
pub fn read_metadata(path: &Path) -> io::Result<Metadata> {
    Ok(inspect_opened(open_with(path, INSPECT)?)?.metadata)
}

/// An open directory: its entries are reached by name, even if its own path leads elsewhere by now.
#[derive(Debug)]
pub struct DirHandle(OwnedHandle);

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
        let path = ResolvedPath::parse(path)?;
        let mut dir = path.open_root()?;
        for name in path.names {
            dir = nt_calls::open_at(dir.as_handle(), name, CREATE_DIRECTORY)?;
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

    /// Creates a new file in the directory.
    pub fn create_entry(&self, name: &OsStr) -> io::Result<File> {
        self.open_name(name, CREATE).map(File::from)
    }

    /// Renames a file in the directory, replacing the target.
    pub fn rename_entry(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        check_name(to)?;
        nt_calls::rename_to(&self.open_name(from, RENAME)?, &self.0, to)
    }

    /// Deletes a file in the directory.
    pub fn remove_entry(&self, name: &OsStr) -> io::Result<()> {
        // It is deleted when this handle and those of other programs are closed.
        self.open_name(name, REMOVE).map(drop)
    }

    /// Does nothing: the file system writes the entries of directories to its journal.
    pub fn sync(&self) {}

    /// Opens a directory to list it. `path` is resolved.
    pub fn open_to_list(path: &Path) -> io::Result<Self> {
        open_with(path, LIST).map(Self)
    }

    /// Lists a directory that was opened for it, in the system's order.
    pub fn into_entries(self) -> io::Result<DirEntries> {
        Ok(DirEntries { dir: self.0, pending: VecDeque::new(), is_over: false })
    }

    /// Names in the directory, at most `names_max`.
    pub fn entry_names(&self, names_max: usize) -> io::Result<Vec<String>> {
        let dir = Self(nt_calls::open_at(self.0.as_handle(), OsStr::new(""), LIST)?);
        let names = dir.into_entries()?.flatten().map(|entry| entry.name.to_string_lossy().into_owned());
        Ok(names.take(names_max).collect())
    }

    fn open_name(&self, name: &OsStr, request: OpenRequest) -> io::Result<OwnedHandle> {
        check_name(name)?;
        nt_calls::open_at(self.0.as_handle(), name, request)
    }
}

/// The entries of a directory, read on demand: there may be millions.
pub struct DirEntries {
    dir: OwnedHandle,
    pending: VecDeque<ListedEntry>,
    is_over: bool,
}

impl Iterator for DirEntries {
    type Item = io::Result<ListedEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.pending.is_empty() && !self.is_over {
            let mut buffer = vec![0; LIST_BYTES / size_of::<u64>()];
            match nt_calls::read_dir_entries(&self.dir, &mut buffer) {
                Ok(true) => {
                    let bytes: Vec<u8> = buffer.iter().flat_map(|word| word.to_ne_bytes()).collect();
                    self.pending = parse_entries(&bytes);
                }
                Ok(false) => self.is_over = true,
                Err(error) => {
                    self.is_over = true;
                    return Some(Err(error));
                }
            }
        }
        self.pending.pop_front().map(Ok)
    }
}

/// Parses a list of `FILE_FULL_DIR_INFO`, without `.` and `..`.
fn parse_entries(bytes: &[u8]) -> VecDeque<ListedEntry> {
    // Offsets of fields in each entry; the first field is the distance to the next entry.
    const ATTRIBUTES: usize = 56;
    const NAME_BYTES: usize = 60;
    const NAME: usize = 68;
    let number_at = |offset: usize| {
        let field = bytes.get(offset..offset + size_of::<u32>())?;
        Some(u32::from_ne_bytes(field.try_into().ok()?))
    };
    let mut entries = VecDeque::new();
    let mut start = 0;
    loop {
        let (Some(next), Some(attributes), Some(name_bytes)) =
            (number_at(start), number_at(start + ATTRIBUTES), number_at(start + NAME_BYTES))
        else {
            return entries;
        };
        let name_start = start + NAME;
        let Some(name) = bytes.get(name_start..name_start + name_bytes as usize) else { return entries };
        let name: Vec<u16> =
            name.chunks_exact(2).map(|pair| u16::from_ne_bytes([pair[0], pair[1]])).collect();
        let name = OsString::from_wide(&name);
        if name != "." && name != ".." {
            let kind = match attributes {
                _ if attributes & FILE_ATTRIBUTE_REPARSE_POINT != 0 => EntryKind::Other,
                _ if attributes & FILE_ATTRIBUTE_DIRECTORY != 0 => EntryKind::Directory,
                _ => EntryKind::File,
            };
            entries.push_back(ListedEntry { name, kind });
        }
        if next == 0 {
            return entries;
        }
        start += next as usize;
    }
}

/// Opens a resolved path.
fn open_with(path: &Path, request: OpenRequest) -> io::Result<OwnedHandle> {
    let path = ResolvedPath::parse(path)?;
    let root = path.open_root()?;
    // An empty name is the root itself.
    nt_calls::open_at(root.as_handle(), &path.names.join(OsStr::new("\\")), request)
}

fn inspect_opened(opened: OwnedHandle) -> io::Result<InspectedEntry> {
    let file = File::from(opened);
    let metadata = file.metadata()?;
    let file_type = metadata.file_type();
    if file_type.is_symlink() || file_type.is_symlink_dir() || file_type.is_symlink_file() {
        return Err(symlink_error());
    }
    Ok(InspectedEntry { file, metadata })
}

/// A path from the root of a drive or of a network share, without `..`.
struct ResolvedPath<'a> {
    root: OsString,
    names: Vec<&'a OsStr>,
}

impl<'a> ResolvedPath<'a> {
    fn parse(path: &'a Path) -> io::Result<Self> {
        let mut components = path.components();
        let Some(Component::Prefix(prefix)) = components.next() else { return Err(unresolved_path_error()) };
        let is_file_system = matches!(
            prefix.kind(),
            Prefix::Disk(_) | Prefix::VerbatimDisk(_) | Prefix::UNC(..) | Prefix::VerbatimUNC(..)
        );
        if !is_file_system || components.next() != Some(Component::RootDir) {
            return Err(unresolved_path_error());
        }
        let mut root = prefix.as_os_str().to_owned();
        root.push("\\");
        let names: Vec<&OsStr> = components
            .map(|component| match component {
                Component::Normal(name) => check_name(name).map(|()| name),
                Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => {
                    Err(unresolved_path_error())
                }
            })
            .collect::<io::Result<_>>()?;
        Ok(Self { root, names })
    }

    fn open_root(&self) -> io::Result<OwnedHandle> {
        let mut options = OpenOptions::new();
        options.access_mode(TRAVERSE_ACCESS).custom_flags(FILE_FLAG_BACKUP_SEMANTICS);
        options.open(&self.root).map(OwnedHandle::from)
    }
}

/// Rejects names that other programs read differently: `file:stream` is another content of `file`, and a dot or a space
/// at the end of a name is usually dropped.
fn check_name(name: &OsStr) -> io::Result<()> {
    let is_special = |unit: u16| unit < 0x20 || [b':', b'\\', b'/'].map(u16::from).contains(&unit);
    let is_dropped = |unit: u16| [b'.', b' '].map(u16::from).contains(&unit);
    if name.encode_wide().any(is_special) || name.encode_wide().last().is_none_or(is_dropped) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidFilename,
            "a name with a colon or a control character, or with a dot or a space at its end, is not opened",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
