//! The place of a task as its row keeps it: where the task is, and the call that gave it.

use std::path::PathBuf;

use crow_core::{CallId, SessionId};
use crow_fleet::{FarmPlace, PlaceKeeper};
use crow_store::{Store, TaskPlace};
use crow_tools::RepositoryHead;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

/// A place with the call under which the questions of its task are shown.
#[derive(Debug)]
pub(crate) struct KeptPlace {
    pub(crate) call: CallId,
    pub(crate) place: FarmPlace,
    /// The repository whose code the task works on.
    pub(crate) repository: Option<KeptRepository>,
}

/// The repository to which the work of a task comes back.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct KeptRepository {
    pub(crate) root: PathBuf,
    pub(crate) n_uncommitted: usize,
}

impl From<&RepositoryHead> for KeptRepository {
    fn from(head: &RepositoryHead) -> Self {
        Self { root: head.repository.clone(), n_uncommitted: head.n_uncommitted }
    }
}

/// The stored form of a place.
#[derive(Serialize, Deserialize)]
struct StoredPlace {
    call: String,
    farm: String,
    repository: Option<KeptRepository>,
}

impl KeptPlace {
    /// Decodes a stored place; the error is the reason.
    pub(crate) fn decode(stored: &TaskPlace) -> Result<Self, String> {
        // The error of the parser would quote what it has read.
        let stored: StoredPlace =
            serde_json::from_str(stored.as_str()).map_err(|_| "its place cannot be read".to_owned())?;
        let call = CallId::parse(&stored.call).ok_or("the call that gave it is unknown")?;
        let place =
            FarmPlace::decode(&stored.farm).map_err(|reason| format!("its place is unknown: {reason}"))?;
        Ok(Self { call, place, repository: stored.repository })
    }
}

/// Keeps the place of a task with its row.
pub(crate) struct TaskPlaceKeeper {
    pub(crate) store: Store,
    pub(crate) task: SessionId,
    pub(crate) call: CallId,
    pub(crate) repository: Option<KeptRepository>,
    /// Cancelled when the end of the task is stored.
    pub(crate) end_stored: CancellationToken,
}

impl PlaceKeeper for TaskPlaceKeeper {
    fn keep_place(&self, place: String) -> BoxFuture<'static, Result<(), String>> {
        let (store, task) = (self.store.clone(), self.task.clone());
        let (call, repository) = (self.call.to_string(), self.repository.clone());
        let stored = StoredPlace { call, farm: place, repository };
        Box::pin(async move {
            let text = serde_json::to_string(&stored).map_err(|error| error.to_string())?;
            match store.keep_task_place(&task, TaskPlace::new(text)).await {
                Ok(true) => Ok(()),
                Ok(false) => Err("the task has ended".to_owned()),
                Err(error) => Err(error.to_string()),
            }
        })
    }

    fn wait_until_stored(&self) -> BoxFuture<'static, ()> {
        Box::pin(self.end_stored.clone().cancelled_owned())
    }
}
