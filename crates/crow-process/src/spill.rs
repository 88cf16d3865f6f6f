//! The directory of files with whole outputs: readable by their owner only, and removed when they are old or too
//! many.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// A user returns to a session within days.
const AGE_MAX: Duration = Duration::from_hours(7 * 24);

/// Files beyond this are removed, the oldest first; a disk has room for it, and for several sessions at once.
const DIRECTORY_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;

/// Only files with this prefix are removed.
const PREFIX: &str = "output-";

/// Creates a file that only its owner may read, because output contains what the program knows, and sweeps the
/// directory.
pub(crate) async fn create_spill_file(directory: &Path) -> io::Result<(tokio::fs::File, PathBuf)> {
    let directory = directory.to_owned();
    let task = tokio::task::spawn_blocking(move || {
        crow_files::create_private_dir(&directory)?;
        let file = tempfile::Builder::new().prefix(PREFIX).suffix(".txt").tempfile_in(&directory)?;
        // Files are dated by the file system's clock.
        let now = file.as_file().metadata()?.modified()?;
        if let Err(error) = remove_old_files(&directory, now, DIRECTORY_BYTES_MAX) {
            tracing::warn!(%error, "could not remove old outputs of commands");
        }
        file.keep().map_err(io::Error::from)
    });
    let (file, path) = task.await.map_err(io::Error::other)??;
    Ok((tokio::fs::File::from_std(file), path))
}

/// Removes files that are too old, then the oldest until the rest is at most `bytes_max`.
fn remove_old_files(directory: &Path, now: SystemTime, bytes_max: u64) -> io::Result<()> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        // A file that another process removes meanwhile is gone as well.
        if let Ok(metadata) = entry.metadata()
            && metadata.is_file()
            && entry.file_name().to_string_lossy().starts_with(PREFIX)
        {
            files.push((metadata.modified()?, metadata.len(), entry.path()));
        }
    }
    files.sort();
    let mut n_bytes: u64 = files.iter().map(|(_, length, _)| length).sum();
    for (modified, length, path) in files {
        let is_old = now.duration_since(modified).is_ok_and(|age| age > AGE_MAX);
        if !is_old && n_bytes <= bytes_max {
            break;
        }
        match fs::remove_file(&path) {
            Ok(()) => n_bytes -= length,
            Err(error) if error.kind() == io::ErrorKind::NotFound => n_bytes -= length,
            Err(error) => tracing::warn!(%error, "could not remove an old output of a command"),
        }
    }
    Ok(())
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
