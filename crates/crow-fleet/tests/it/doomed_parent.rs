//! A parent that is killed in the middle of its task.

use std::sync::Arc;

use crow_core::FarmAddress;
use crow_fleet::{FarmConnections, PlaceKeeper};
use futures_util::future::{BoxFuture, pending, ready};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::world::{RunningTask, run, soon};

/// The fate of a place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PlaceFate {
    Kept,
    Refused,
    /// It is kept, and the process stops there.
    KeptForever,
}

/// Keeps one place.
pub(crate) struct TestKeeper {
    fate: PlaceFate,
    places: mpsc::Sender<String>,
    /// Cancelled when the end of the task is stored.
    stored: CancellationToken,
}

impl PlaceKeeper for TestKeeper {
    fn keep_place(&self, place: String) -> BoxFuture<'static, Result<(), String>> {
        if self.fate == PlaceFate::Refused {
            return Box::pin(ready(Err("no space".to_owned())));
        }
        self.places.try_send(place).expect("it is kept once");
        match self.fate {
            PlaceFate::Kept | PlaceFate::Refused => Box::pin(ready(Ok(()))),
            PlaceFate::KeptForever => Box::pin(pending()),
        }
    }

    fn wait_until_stored(&self) -> BoxFuture<'static, ()> {
        Box::pin(self.stored.clone().cancelled_owned())
    }
}

impl TestKeeper {
    /// Creates one that keeps nothing.
    pub(crate) fn full() -> Self {
        let (places, stored) = (mpsc::channel(1).0, CancellationToken::new());
        Self { fate: PlaceFate::Refused, places, stored }
    }

    /// Creates one of a place that was kept before; the token says that the end of the task is stored.
    pub(crate) fn of_kept_place() -> (Self, CancellationToken) {
        let (places, stored) = (mpsc::channel(1).0, CancellationToken::new());
        (Self { fate: PlaceFate::Kept, places, stored: stored.clone() }, stored)
    }
}

/// A parent that can be killed: it has a runtime of its own, as if it were a process.
pub(crate) struct DoomedParent {
    crash: CancellationToken,
    thread: std::thread::JoinHandle<()>,
    place: String,
}

impl DoomedParent {
    /// Begins a task, and waits until the client has seen a text of it.
    pub(crate) async fn start(farm: FarmAddress, prompt: &'static str, text: &'static str) -> Self {
        Self::start_with(farm, prompt, text, PlaceFate::Kept).await
    }

    /// Begins a task of which nothing is seen.
    pub(crate) async fn start_unseen(farm: FarmAddress, prompt: &'static str) -> Self {
        Self::start_with(farm, prompt, "", PlaceFate::Kept).await
    }

    /// Begins a task whose place is kept, and which is not published any more.
    pub(crate) async fn start_stuck(farm: FarmAddress, prompt: &'static str) -> Self {
        Self::start_with(farm, prompt, "", PlaceFate::KeptForever).await
    }

    async fn start_with(
        farm: FarmAddress,
        prompt: &'static str,
        text: &'static str,
        fate: PlaceFate,
    ) -> Self {
        let (place_sender, mut places) = mpsc::channel(1);
        let keeper = Arc::new(TestKeeper { fate, places: place_sender, stored: CancellationToken::new() });
        let crash = CancellationToken::new();
        let crashed = crash.clone();
        let (seen_sender, seen) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            run(async move {
                let farms = FarmConnections::default();
                let task = RunningTask::start_kept(&farms, &farm, prompt, Some(keeper)).await;
                let mut task = task.expect("the server is reached");
                task.until(text, None).await;
                seen_sender.send(()).expect("the test waits");
                crashed.cancelled().await;
            });
        });
        soon("the parent sees its task", seen).await.expect("the thread does not panic");
        let place = soon("the place is kept", places.recv()).await.expect("the keeper has the sender");
        Self { crash, thread, place }
    }

    /// Ends it without a word to the server; returns the place of its task.
    pub(crate) async fn kill(self) -> String {
        self.crash.cancel();
        let joined = tokio::task::spawn_blocking(move || self.thread.join());
        soon("the parent ends", joined).await.expect("it is waited for").expect("it does not panic");
        self.place
    }
}
