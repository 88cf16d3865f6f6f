//! Opens untrusted paths: never blocks on a pipe and never opens a device. Knows no projects.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::Path;

/// The treatment of links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkPolicy {
    /// Follow them.
    Follow,
    /// Treat them as not a file.
    Reject,
}

/// The result of opening a path.
#[derive(Debug)]
pub(crate) enum OpenOutcome {
    /// A regular file with its metadata.
    File(File, Metadata),
    /// It does not exist.
    Missing,
    /// A directory, a pipe, a device, or a link that is not followed.
    Other,
}

/// Opens a file for reading.
pub(crate) fn open_file(path: &Path, link_policy: LinkPolicy) -> io::Result<OpenOutcome> {
    open_with(File::options().read(true), path, link_policy)
}

/// Opens a file for reading by a path that was checked and contains no links; a link created since is not followed.
pub(crate) fn open_resolved(path: &Path) -> io::Result<OpenOutcome> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.is_file() => return Ok(OpenOutcome::Other),
        Ok(_) => {}
        Err(error) if is_missing(&error) => return Ok(OpenOutcome::Missing),
        Err(error) => return Err(error),
    }
    let Some(result) = open_without_links(path) else { return open_file(path, LinkPolicy::Reject) };
    let file = match result {
        Ok(file) => file,
        Err(error) if is_missing(&error) => return Ok(OpenOutcome::Missing),
        Err(error) => return Err(error),
    };
    let metadata = file.metadata()?;
    Ok(if metadata.is_file() { OpenOutcome::File(file, metadata) } else { OpenOutcome::Other })
}

/// Opens a path that contains no links; `None` if the system does not support it or a container forbids it.
#[cfg(target_os = "linux")]
fn open_without_links(path: &Path) -> Option<io::Result<File>> {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    use rustix::io::Errno;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS) {
        Err(Errno::NOSYS | Errno::PERM) => None,
        result => Some(result.map(File::from).map_err(io::Error::from)),
    }
}

#[cfg(not(target_os = "linux"))]
fn open_without_links(_path: &Path) -> Option<io::Result<File>> {
    None
}

/// Opens a file. Checked before opening, because opening a device may have effects, and after it, because the file may
/// have been replaced.
pub(crate) fn open_with(
    options: &mut OpenOptions,
    path: &Path,
    link_policy: LinkPolicy,
) -> io::Result<OpenOutcome> {
    let metadata = match link_policy {
        LinkPolicy::Follow => fs::metadata(path),
        LinkPolicy::Reject => fs::symlink_metadata(path),
    };
    match metadata {
        Ok(metadata) if !metadata.is_file() => return Ok(OpenOutcome::Other),
        Ok(_) => {}
        Err(error) if is_missing(&error) => return Ok(OpenOutcome::Missing),
        Err(error) => return Err(error),
    }
    let file = match set_safe_flags(options, link_policy).open(path) {
        Ok(file) => file,
        Err(error) if is_missing(&error) => return Ok(OpenOutcome::Missing),
        Err(error) => return Err(error),
    };
    let metadata = file.metadata()?;
    Ok(if metadata.is_file() { OpenOutcome::File(file, metadata) } else { OpenOutcome::Other })
}

/// Sets flags so that opening does not wait for the other end of a pipe.
pub(crate) fn set_safe_flags(options: &mut OpenOptions, link_policy: LinkPolicy) -> &mut OpenOptions {
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt as _;
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let flags = match link_policy {
            LinkPolicy::Follow => flags,
            LinkPolicy::Reject => flags | OFlags::NOFOLLOW,
        };
        options.custom_flags(flags.bits().cast_signed());
    }
    #[cfg(not(unix))]
    let _ = link_policy;
    options
}

pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}
