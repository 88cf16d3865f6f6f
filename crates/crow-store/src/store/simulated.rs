//! A store without a thread of its own: its requests run on a task, after the waits of a simulated disk.

use std::{
    collections::HashSet,
    path::Path,
    sync::{Arc, atomic::AtomicU64},
};

use crow_core::SessionId;
use tokio::sync::mpsc;

use super::{REQUESTS_MAX, Store, actor::StoreActor, leases::ReleasedLeases};
use crate::{
    SimulatedDisk, StoreError,
    database::Database,
    invent_name,
    simulated_disk::{StoreSimulation, next_session_name},
};

impl Store {
    /// Starts a store on a task of the current runtime.
    pub(crate) fn start_simulated<F>(
        drafts: Arc<Path>,
        names: Arc<AtomicU64>,
        disk: Arc<dyn SimulatedDisk>,
        open: F,
    ) -> Self
    where
        F: Fn() -> Result<Database, StoreError> + Send + 'static,
    {
        let (requests, inbox) = mpsc::channel(REQUESTS_MAX);
        let released = ReleasedLeases::default();
        let actor = StoreActor {
            open,
            inbox,
            released: released.clone(),
            lost_leases: HashSet::new(),
            state: None,
            opening_failure: None,
        };
        tokio::spawn(actor.run_simulated(disk.clone()));
        Self { requests, released, drafts, simulation: Some(StoreSimulation { disk, names }) }
    }

    /// Generates the ID of a new session; see [`invent_name`].
    pub fn new_session_id(&self) -> SessionId {
        match &self.simulation {
            Some(simulation) => next_session_name(&simulation.names),
            None => invent_name(),
        }
    }

    /// Waits until the answer to a request has arrived.
    pub(super) async fn wait_for_answer(&self) {
        if let Some(simulation) = &self.simulation {
            simulation.disk.wait().await;
        }
    }
}

impl<F: Fn() -> Result<Database, StoreError>> StoreActor<F> {
    async fn run_simulated(mut self, disk: Arc<dyn SimulatedDisk>) {
        while let Some(request) = self.inbox.recv().await {
            disk.wait().await;
            if self.handle_request(request).is_break() {
                return;
            }
        }
    }
}
