//! Leases among all processes: a locked file for each, next to the database.
//!
//! The system drops a lock with its process, however that ends, so no clock decides. A child of a killed process may have
//! a copy of the lock until it runs its program. The file is removed under its lock; a process that opened it before then
//! notices that it is no longer the same file.

use std::{
    collections::HashMap,
    fs::{self, File, TryLockError},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use super::errors::from_io;
use crate::{LeaseHolder, StoreError, sql::LeaseKey};

/// Each time another process removed the file in between; that many in a row do not happen.
const ATTEMPTS_MAX: usize = 16;
/// The description of a holder is this and its process ID.
const LABEL_PREFIX: &str = "process ";
/// Room for the description of a holder.
const HOLDER_BYTES_MAX: u64 = 256;

pub(super) struct LeaseFiles {
    database: PathBuf,
    directory: PathBuf,
    held: HashMap<LeaseKey, (File, PathBuf)>,
}

impl LeaseFiles {
    pub(super) fn new(database: &Path) -> Self {
        let mut directory = database.as_os_str().to_owned();
        directory.push("-writers");
        Self { database: database.to_path_buf(), directory: directory.into(), held: HashMap::new() }
    }

    pub(super) fn acquire(&mut self, key: &LeaseKey) -> Result<(), StoreError> {
        let to_error = |error: &io::Error| from_io(&self.database, error);
        crow_files::create_private_dir(&self.directory).map_err(|error| to_error(&error))?;
        // An imported session may have any name.
        let path = self.directory.join(format!("{:016x}", key.lock_id().cast_unsigned()));
        for _ in 0..ATTEMPTS_MAX {
            let mut file = crow_files::open_private_file(&path).map_err(|error| to_error(&error))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(key.busy_error(read_holder(&file))),
                Err(TryLockError::Error(error)) => return Err(to_error(&error)),
            }
            if !crow_files::is_file_at(&file, &path) {
                continue;
            }
            let label = format!("{LABEL_PREFIX}{}", std::process::id());
            // If this fails, only the description for others is missing.
            if let Err(error) = file.set_len(0).and_then(|()| file.write_all(label.as_bytes())) {
                tracing::debug!(%error, "could not describe the holder of a lease");
            }
            self.held.insert(key.clone(), (file, path));
            return Ok(());
        }
        Err(key.busy_error(LeaseHolder::unknown_process("one that has just ended")))
    }

    /// Whether a process holds a lease. The file of one that was killed is unlocked.
    pub(super) fn is_any_held(&self) -> bool {
        let Ok(entries) = fs::read_dir(&self.directory) else { return false };
        let is_locked = |path: &Path| match crow_files::open_to_read(path) {
            Ok(file) => file.try_lock_shared().is_err(),
            // It was released meanwhile, or is no lease.
            Err(_) => false,
        };
        entries.flatten().any(|entry| is_locked(&entry.path()))
    }

    pub(super) fn release(&mut self, key: &LeaseKey) {
        if let Some((file, path)) = self.held.remove(key) {
            if let Err(error) = fs::remove_file(&path) {
                tracing::debug!(%error, "could not remove the file of a lease");
            }
            drop(file);
        }
    }
}

/// If no holder is left to release them, the files are removed all the same.
impl Drop for LeaseFiles {
    fn drop(&mut self) {
        let keys: Vec<LeaseKey> = self.held.keys().cloned().collect();
        keys.iter().for_each(|key| self.release(key));
    }
}

fn read_holder(file: &File) -> LeaseHolder {
    let mut label = String::new();
    match file.take(HOLDER_BYTES_MAX).read_to_string(&mut label) {
        Ok(1..) => {
            let pid = label.strip_prefix(LABEL_PREFIX).and_then(|pid| pid.parse().ok());
            if pid == Some(std::process::id()) {
                return LeaseHolder::ThisProcess;
            }
            LeaseHolder::OtherProcess {
                description: label.chars().filter(|c| !c.is_control()).collect(),
                pid,
            }
        }
        Ok(0) | Err(_) => LeaseHolder::unknown_process("an unknown one"),
    }
}
