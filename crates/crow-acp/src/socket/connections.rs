//! New connections of a listening socket: a bounded number, and none that stays without sending a request.

use std::{collections::VecDeque, convert::Infallible, pin::Pin, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// Simultaneous connections that were not accepted yet; with one more, the oldest is dropped.
pub(super) const PENDING_MAX: usize = 64;

/// If the system has no descriptor left, clients must disconnect first.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Time limits of connections.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    /// For sending the request.
    pub handshake_timeout: Duration,
    /// For closing at shutdown.
    pub shutdown_timeout: Duration,
}

impl ConnectionLimits {
    /// For sending the request: its head is one packet.
    pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
}

/// The handshake phase of a connection. Once this is dropped, the connection is accepted and no longer dropped for a
/// newer one.
#[derive(Debug)]
pub struct PendingConnection {
    evicted: oneshot::Receiver<Infallible>,
    timeout: Duration,
}

impl PendingConnection {
    /// Serves the requests of a connection until it ends. `None` if the first one was not admitted in time or before
    /// `cancel`; afterwards, `cancel` lets `shut_down` ask the connection to end after the current request.
    pub async fn serve_requests<C: Future>(
        mut self,
        mut connection: Pin<&mut C>,
        is_admitted: &CancellationToken,
        cancel: &CancellationToken,
        shut_down: impl FnOnce(Pin<&mut C>),
    ) -> Option<C::Output> {
        tokio::select! {
            biased;
            () = is_admitted.cancelled() => {}
            served = &mut connection => return Some(served),
            () = cancel.cancelled() => return None,
            () = sleep(self.timeout) => return None,
            _ = &mut self.evicted => return None,
        }
        drop(self);
        tokio::select! {
            served = &mut connection => Some(served),
            () = cancel.cancelled() => {
                shut_down(connection.as_mut());
                Some(connection.await)
            }
        }
    }
}

/// Accepts connections until `cancel`, and waits for those that are left.
pub async fn accept_connections<F>(
    listener: TcpListener,
    cancel: &CancellationToken,
    limits: ConnectionLimits,
    handle: impl Fn(TcpStream, PendingConnection) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    // Each connection's sender is closed once it is accepted; dropping it earlier drops the connection.
    let mut pending: VecDeque<oneshot::Sender<Infallible>> = VecDeque::new();
    loop {
        tokio::select! {
            () = cancel.cancelled() => break,
            Some(visited) = connections.join_next() => {
                if let Err(error) = visited {
                    tracing::error!(%error, "a connection ended with an internal error");
                }
            }
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    pending.retain(|keep| !keep.is_closed());
                    if pending.len() == PENDING_MAX {
                        pending.pop_front();
                    }
                    let (keep, evicted) = oneshot::channel();
                    pending.push_back(keep);
                    connections.spawn(handle(stream, PendingConnection { evicted, timeout: limits.handshake_timeout }));
                }
                Err(error) => {
                    tracing::warn!(%error, "could not accept a client");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    // The remaining ones are dropped with this function's end.
    let _ =
        timeout(limits.shutdown_timeout, async { while connections.join_next().await.is_some() {} }).await;
}
