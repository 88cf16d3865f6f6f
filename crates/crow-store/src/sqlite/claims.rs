//! Who has which right, among all processes: a locked file for each, beside the database.
//!
//! The system drops a lock with its process, however that ends, so nobody waits for one that died and no clock
//! decides. The file is removed under its lock; whoever opened it before then sees that it is not the one any more.

use std::{
    collections::HashMap,
    fs::{self, File, TryLockError},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use super::from_io;
use crate::{LeaseHolder, StoreError, private, sql::LeaseKey};

/// Each time another process removed the file in between; that many in a row do not happen.
const ATTEMPTS_MAX: usize = 16;
/// Room for the words that say who has a right.
const HOLDER_BYTES_MAX: u64 = 256;

pub(super) struct LeaseFiles {
    database: PathBuf,
    folder: PathBuf,
    held: HashMap<LeaseKey, (File, PathBuf)>,
}

impl LeaseFiles {
    pub(super) fn new(database: &Path) -> Self {
        let mut folder = database.as_os_str().to_owned();
        folder.push("-writers");
        Self { database: database.to_path_buf(), folder: folder.into(), held: HashMap::new() }
    }

    pub(super) fn acquire(&mut self, right: &LeaseKey) -> Result<(), StoreError> {
        let broken = |error: &io::Error| from_io(&self.database, error);
        private::make_folder(&self.folder).map_err(|error| broken(&error))?;
        // A session that was brought over may have any name.
        let path = self.folder.join(format!("{:016x}", right.lock_id().cast_unsigned()));
        for _ in 0..ATTEMPTS_MAX {
            let mut file = private::open_file(&path).map_err(|error| broken(&error))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(right.busy_error(read_holder(&file))),
                Err(TryLockError::Error(error)) => return Err(broken(&error)),
            }
            if !private::is_file_at(&file, &path) {
                continue;
            }
            let words = own_process_label();
            // Only the words for others are missing when this fails.
            if let Err(error) = file.set_len(0).and_then(|()| file.write_all(words.as_bytes())) {
                tracing::debug!(%error, "could not say who has a right");
            }
            self.held.insert(right.clone(), (file, path));
            return Ok(());
        }
        Err(right.busy_error(LeaseHolder::Other("one that has just ended".into())))
    }

    pub(super) fn release(&mut self, right: &LeaseKey) {
        if let Some((file, path)) = self.held.remove(right) {
            if let Err(error) = fs::remove_file(&path) {
                tracing::debug!(%error, "a file that marked a right stays");
            }
            drop(file);
        }
    }
}

/// Where nobody is left to give them back, the files go all the same.
impl Drop for LeaseFiles {
    fn drop(&mut self) {
        let rights: Vec<LeaseKey> = self.held.keys().cloned().collect();
        rights.iter().for_each(|right| self.release(right));
    }
}

/// What a file says that we hold.
fn own_process_label() -> String {
    format!("process {}", std::process::id())
}

fn read_holder(file: &File) -> LeaseHolder {
    let mut words = String::new();
    match file.take(HOLDER_BYTES_MAX).read_to_string(&mut words) {
        Ok(1..) if words == own_process_label() => LeaseHolder::Ourselves,
        Ok(1..) => LeaseHolder::Other(words.chars().filter(|c| !c.is_control()).collect()),
        Ok(0) | Err(_) => LeaseHolder::Other("which one is not known".into()),
    }
}
