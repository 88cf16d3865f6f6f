//! The ports of a simulation: the provider, the programs of children, and the threads that wait for disks.

use std::fmt;
use std::sync::Arc;

use crow_children::ChildLauncher;
use crow_model::HttpClients;
use crow_store::SimulatedDisk;
use tokio::task::JoinHandle;

use crate::runtime::AgentRuntime;

/// The ports of a simulated process. Its store is a `crow_store::MemoryDatabase`.
#[derive(Clone)]
pub struct SimulatedPorts {
    pub http: HttpClients,
    pub child_launcher: Arc<dyn ChildLauncher>,
    /// The disk with the directories of sessions.
    pub disk: Arc<dyn SimulatedDisk>,
}

impl fmt::Debug for SimulatedPorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedPorts").finish_non_exhaustive()
    }
}

impl AgentRuntime {
    /// Runs blocking work on a thread; in a simulation on the thread of the caller, after a wait.
    pub(crate) fn spawn_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        match self.simulated_ports.as_ref().map(|ports| ports.disk.clone()) {
            None => tokio::task::spawn_blocking(work),
            Some(disk) => tokio::spawn(async move {
                disk.wait().await;
                work()
            }),
        }
    }

    /// Returns what starts the programs of children.
    pub(crate) fn child_launcher(&self) -> Arc<dyn ChildLauncher> {
        match &self.simulated_ports {
            None => Arc::new(self.launcher.clone()),
            Some(ports) => ports.child_launcher.clone(),
        }
    }
}
