//! Copies a database of another program: the original is unchanged, and may be in use.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
    time::Duration,
};

use rusqlite::{Connection, OpenFlags};

use super::{
    errors::{display_path, from_io, from_sqlite},
    foreign_format::ForeignFormat,
    schema::immutable_uri,
};
use crate::StoreError;

/// A program locks its file only for moments.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The offset of the write version in the header, and its value for a database with a log.
const WRITTEN: (usize, u8) = (18, 2);

/// Copies a database of another program, with what is still in its log, to a file that is missing or empty and that
/// only its owner may read.
pub fn copy_foreign_database(format: &ForeignFormat, from: &Path, to: &Path) -> Result<(), StoreError> {
    let is_idle = is_idle(from).map_err(|error| from_io(from, &error))?;
    let uri = if is_idle { immutable_uri(from) } else { from.to_path_buf() };
    copy_database(format, &uri, from, to)
}

/// Copies a database that this process has locked. Only SQLite may open it then: when other code closes the file, the
/// system drops all locks of the process on it.
pub(super) fn copy_locked(format: &ForeignFormat, from: &Path, to: &Path) -> Result<(), StoreError> {
    copy_database(format, from, from, to)
}

fn copy_database(format: &ForeignFormat, uri: &Path, from: &Path, to: &Path) -> Result<(), StoreError> {
    let in_source = |error| from_sqlite(from, &error);
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let source = Connection::open_with_flags(uri, flags).map_err(in_source)?;
    source.busy_timeout(BUSY_TIMEOUT).map_err(in_source)?;
    if !(format.recognizes)(&source).map_err(in_source)? {
        return Err(StoreError::OtherProgram { database: display_path(from) });
    }
    let Some(target) = to.to_str() else {
        let reason = "its name is not text".to_owned();
        return Err(StoreError::CannotOpen { database: display_path(to), reason });
    };
    if !to.exists() {
        crow_files::create_private_file(to).map_err(|error| from_io(to, &error))?;
    }
    source.execute("VACUUM INTO ?1", [target]).map_err(|error| from_sqlite(to, &error))?;
    crow_files::restrict_permissions(to).map_err(|error| from_io(to, &error))
}

/// Whether a database that has a log while in use has none now. Such a file is read as immutable: otherwise reading
/// it would leave a log behind.
fn is_idle(path: &Path) -> io::Result<bool> {
    let mut header = [0; WRITTEN.0 + 1];
    let has_header = match File::open(path)?.read_exact(&mut header) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => false,
        Err(error) => return Err(error),
    };
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    Ok(has_header && header[WRITTEN.0] == WRITTEN.1 && !Path::new(&log).exists())
}
