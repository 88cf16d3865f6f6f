//! Opens untrusted paths, following links where the caller does: never blocks on a pipe and never opens a device.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::path::Path;

use crate::read::is_missing;
use crate::system::{file_modes::set_open_flags, nofollow, reserved_files};

/// The treatment of links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkPolicy {
    /// Follow them.
    Follow,
    /// Treat them as not a file.
    Reject,
}

/// The result of opening a path.
#[derive(Debug)]
pub enum OpenOutcome {
    /// A regular file with its metadata.
    File(File, Metadata),
    /// It does not exist.
    Missing,
    /// A directory, a pipe, a device, or a link that is not followed.
    Other,
}

/// Opens a file for reading.
pub fn open_guarded(path: &Path, link_policy: LinkPolicy) -> io::Result<OpenOutcome> {
    open_guarded_with(File::options().read(true), path, link_policy)
}

/// Opens a file for reading by a path that was checked and contains no links; a link created since is not followed.
pub fn open_resolved(path: &Path) -> io::Result<OpenOutcome> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.is_file() => return Ok(OpenOutcome::Other),
        Ok(_) => {}
        Err(error) if is_missing(&error) => return Ok(OpenOutcome::Missing),
        Err(error) => return Err(error),
    }
    let file = match nofollow::open_file(path) {
        Ok(file) => file,
        Err(error) if is_missing(&error) => return Ok(OpenOutcome::Missing),
        Err(error) => return Err(error),
    };
    let metadata = file.metadata()?;
    Ok(if metadata.is_file() { OpenOutcome::File(file, metadata) } else { OpenOutcome::Other })
}

/// Opens a file. Checked before opening, because opening a device may have effects, and after it, because the file may
/// have been replaced.
pub fn open_guarded_with(
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
        Ok(metadata) => reserved_files::check_unreserved(&metadata)?,
        Err(error) if is_missing(&error) => return Ok(OpenOutcome::Missing),
        Err(error) => return Err(error),
    }
    let file = match set_guarded_flags(options, link_policy).open(path) {
        Ok(file) => file,
        Err(error) if is_missing(&error) => return Ok(OpenOutcome::Missing),
        Err(error) => return Err(error),
    };
    let metadata = file.metadata()?;
    Ok(if metadata.is_file() { OpenOutcome::File(file, metadata) } else { OpenOutcome::Other })
}

/// Sets flags so that opening does not wait for the other end of a pipe.
pub fn set_guarded_flags(options: &mut OpenOptions, link_policy: LinkPolicy) -> &mut OpenOptions {
    set_open_flags(options, link_policy == LinkPolicy::Follow)
}
