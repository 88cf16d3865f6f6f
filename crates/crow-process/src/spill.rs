//! The folder of files with whole outputs: only we may read them, and they go when they are old or too many.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// Whoever comes back to a session does so within days.
const AGE_MAX: Duration = Duration::from_hours(7 * 24);

/// Files beyond this go, the oldest first; a disk has room for it, and some sessions at once for theirs.
const FOLDER_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;

/// Only files named so are ours to remove.
const PREFIX: &str = "output-";

/// Makes a new file that only we may read, for output holds whatever the program knows, and sweeps the folder.
pub(crate) async fn create_spill_file(folder: &Path) -> io::Result<(tokio::fs::File, PathBuf)> {
    let folder = folder.to_owned();
    let created = tokio::task::spawn_blocking(move || {
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let file = tempfile::Builder::new().prefix(PREFIX).suffix(".txt").tempfile_in(&folder)?;
        // The time of the file system is the one that files are dated by.
        let now = file.as_file().metadata()?.modified()?;
        if let Err(error) = remove_old_files(&folder, now, FOLDER_BYTES_MAX) {
            tracing::warn!(%error, "could not remove old outputs of commands");
        }
        file.keep().map_err(io::Error::from)
    });
    let (file, path) = created.await.map_err(io::Error::other)??;
    Ok((tokio::fs::File::from_std(file), path))
}

/// Removes what is too old, then the oldest until the rest is no more than `bytes_max`.
fn remove_old_files(folder: &Path, now: SystemTime, bytes_max: u64) -> io::Result<()> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // One that another process removes meanwhile is gone as well.
        if let Ok(found) = entry.metadata()
            && found.is_file()
            && entry.file_name().to_string_lossy().starts_with(PREFIX)
        {
            files.push((found.modified()?, found.len(), entry.path()));
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

#[cfg(test)]
mod tests;
