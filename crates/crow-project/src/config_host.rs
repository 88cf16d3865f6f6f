//! The process around a session, as its project configuration and its grants need it.

use std::path::PathBuf;

use tokio::task::JoinHandle;

use crate::survey::ConfigSources;

/// The process that a session runs in.
pub trait ConfigHost: Send + Sync + 'static {
    /// Returns the directory of the user's configuration.
    fn config_dir(&self) -> PathBuf;

    /// Returns the places of the project configuration as they are now.
    fn config_sources(&self) -> ConfigSources;

    /// Returns the notices that no session has shown to the user yet.
    fn take_notices(&self) -> Vec<String>;

    /// Runs work that waits for a disk, on a thread of its own.
    fn spawn_blocking<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T>;
}
