//! Opens files that a stranger may have laid out: never waits for a pipe, and takes no device for a file. Knows no project.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::Path;

/// What becomes of a link that stands where a file is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkPolicy {
    /// It is followed.
    Follow,
    /// It is not a file.
    Reject,
}

/// What stands where a file was looked for.
#[derive(Debug)]
pub(crate) enum OpenOutcome {
    /// A file, and what is known of it.
    File(File, Metadata),
    /// Nothing.
    Missing,
    /// A folder, a pipe, a device, or a link that is not followed.
    Other,
}

/// Opens a file for reading.
pub(crate) fn open_file(path: &Path, link_policy: LinkPolicy) -> io::Result<OpenOutcome> {
    open_with(File::options().read(true), path, link_policy)
}

/// Opens a file for reading by a path that was judged and has no link in it: one that was put in its way since is not
/// followed.
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

/// Opens a path in which there is no link; `None` where the system cannot do it or a container forbids it.
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

/// Opens a file. Looked at before it is opened, because opening a device may do something, and after it, because it may be
/// another by then.
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

/// Has a file opened without waiting for whoever is at the other end.
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
