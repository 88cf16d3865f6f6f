//! Visitors of a listening socket: as many as there is room for, and none that stays without saying what it wants.

use std::{collections::VecDeque, convert::Infallible, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// Visitors at the same time that have not been let in; one more, and whoever has waited for the longest is shown out.
pub(super) const KNOCKERS_MAX: usize = 64;

/// When the system has no descriptor left, clients have to leave first.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// How long visitors may take.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    /// To say what they want.
    pub knock: Duration,
    /// To end when everything ends.
    pub goodbye: Duration,
}

impl ConnectionLimits {
    /// For a visitor to say what it wants: a request's head is one packet.
    pub const KNOCK: Duration = Duration::from_secs(5);
}

/// A visitor's turn to say what it wants. Dropped, it is let in, and no other visitor's coming shows it out.
#[derive(Debug)]
pub struct PendingConnection {
    shown_out: oneshot::Receiver<Infallible>,
    patience: Duration,
}

impl PendingConnection {
    /// Hears what a visitor wants; nothing when it took too long, or another one needed its place.
    pub async fn await_request<T>(mut self, words: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            heard = timeout(self.patience, words) => heard.ok(),
            _ = &mut self.shown_out => None,
        }
    }
}

/// Receives everybody who comes, until `cut` says so, and waits for those who are left.
pub async fn accept_connections<F>(
    listener: TcpListener,
    cut: &CancellationToken,
    limits: ConnectionLimits,
    visit: impl Fn(TcpStream, PendingConnection) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let mut visits = JoinSet::new();
    // Each one's is closed once it is let in, and shows it out when it is dropped before.
    let mut knockers: VecDeque<oneshot::Sender<Infallible>> = VecDeque::new();
    loop {
        tokio::select! {
            () = cut.cancelled() => break,
            Some(visited) = visits.join_next() => {
                if let Err(error) = visited {
                    tracing::error!(%error, "a connection ended in a fault of ours");
                }
            }
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    knockers.retain(|knocker| !knocker.is_closed());
                    if knockers.len() == KNOCKERS_MAX {
                        knockers.pop_front();
                    }
                    let (knocker, shown_out) = oneshot::channel();
                    knockers.push_back(knocker);
                    visits.spawn(visit(stream, PendingConnection { shown_out, patience: limits.knock }));
                }
                Err(error) => {
                    tracing::warn!(%error, "could not let a client in");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    // Those who are left are shown out with the end of this.
    let _ = timeout(limits.goodbye, async { while visits.join_next().await.is_some() {} }).await;
}
