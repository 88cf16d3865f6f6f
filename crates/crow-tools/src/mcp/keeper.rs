//! The life of one server: connect, keep, notice the end, begin again when asked. The one task that owns it.

use std::{sync::Arc, time::Duration};

use crow_core::McpTransport;
use crow_process::Groups;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::{
    McpHome,
    connect::{Connection, connect},
    link::Link,
    listing,
    news::News,
    server::{End, Server, Standing},
};

/// Long enough for a program that unpacks itself first, short enough that its absence is noticed.
const CONNECT_WITHIN: Duration = Duration::from_secs(30);

/// A server that ends this often does not work.
const RESTARTS_MAX: u32 = 3;

/// Who lived this long works; an end after that counts as the first.
const HEALTHY_AFTER: Duration = Duration::from_secs(600);

pub(super) struct Keeper {
    pub(super) server: Arc<Server>,
    pub(super) transport: McpTransport,
    pub(super) home: Arc<McpHome>,
    pub(super) groups: Groups,
    pub(super) news: Arc<News>,
    pub(super) cut: CancellationToken,
}

/// How a life went.
enum Life {
    /// It never came about.
    NotBegun(End),
    Ended(End),
    /// By us.
    Cut,
}

impl Keeper {
    /// Keeps the server until the session is over or the server has failed.
    pub(super) async fn run(self) {
        let (mut life, mut n_restarts) = (1, 0);
        loop {
            let began = Instant::now();
            let end = match Box::pin(self.live()).await {
                Life::Cut => return self.over(),
                Life::NotBegun(end) if life == 1 => return self.failed_to_start(end),
                Life::NotBegun(end) => end,
                Life::Ended(end) => {
                    if began.elapsed() >= HEALTHY_AFTER {
                        n_restarts = 0;
                    }
                    end
                }
            };
            if n_restarts == RESTARTS_MAX {
                return self.failed_for_good(end);
            }
            self.say(&format!(
                "ended: {}. It is started again when one of its tools is called.",
                end.in_short()
            ));
            life += 1;
            self.server.stand(Standing::Ended { end, next_life: life });
            tokio::select! {
                () = self.cut.cancelled() => return self.over(),
                () = self.server.wanted(life) => {}
            }
            n_restarts += 1;
            self.server.stand(Standing::Connecting);
        }
    }

    async fn live(&self) -> Life {
        let connecting = connect(&self.server.name, &self.transport, &self.home, &self.groups);
        let connection = tokio::select! {
            () = self.cut.cancelled() => return Life::Cut,
            connected = connect_within(connecting) => match connected {
                Ok(connection) => connection,
                Err(end) => return Life::NotBegun(end),
            }
        };
        let link = Arc::new(connection.link());
        let listed = tokio::select! {
            () = self.cut.cancelled() => None,
            listed = timeout(CONNECT_WITHIN, listing::fetch(&link.peer)) => {
                Some(listed.unwrap_or_else(|_| Err("it did not list its tools".to_owned())))
            }
        };
        match listed {
            None => {
                connection.end().await;
                Life::Cut
            }
            Some(Err(why)) => Life::NotBegun(End { why, ..connection.end().await }),
            Some(Ok(listing)) => {
                if listing.n_left_out > 0 {
                    let (n_tools, n_left_out) = (listing.tools.len(), listing.n_left_out);
                    self.say(&format!(
                        "has too many tools: {n_left_out} of them are missing, {n_tools} are there."
                    ));
                }
                self.server.list(listing.tools);
                self.server.stand(Standing::Ready(link.clone()));
                self.keep(connection, &link).await
            }
        }
    }

    /// Follows the server until it ends.
    async fn keep(&self, mut connection: Connection, link: &Link) -> Life {
        loop {
            tokio::select! {
                () = self.cut.cancelled() => {
                    connection.end().await;
                    return Life::Cut;
                }
                () = connection.gone() => return Life::Ended(connection.end().await),
                () = link.heard.tools_changed.notified() => {}
            }
            let listed = tokio::select! {
                () = self.cut.cancelled() => continue,
                () = connection.gone() => continue,
                listed = timeout(CONNECT_WITHIN, listing::fetch(&link.peer)) => listed,
            };
            match listed {
                Ok(Ok(listing)) => self.server.list(listing.tools),
                Ok(Err(why)) => {
                    tracing::warn!(server = self.server.name, why, "could not list the tools again");
                }
                Err(_) => {
                    tracing::warn!(server = self.server.name, "the tools were not listed again in time");
                }
            }
        }
    }

    fn failed_to_start(&self, end: End) {
        self.say(&format!("did not start: {}. Its tools are missing.", end.in_short()));
        self.server.stand(Standing::Failed(end));
    }

    fn failed_for_good(&self, end: End) {
        self.say(&format!(
            "ended again: {}. It is not started any more, its tools are missing.",
            end.in_short()
        ));
        self.server.stand(Standing::Failed(end));
    }

    fn over(&self) {
        self.server.stand(Standing::Failed(End::of("the session is over")));
    }

    fn say(&self, what: &str) {
        self.news.say(format!("The MCP server {} {what}", self.server.name));
    }
}

async fn connect_within(
    connecting: impl Future<Output = Result<Connection, End>>,
) -> Result<Connection, End> {
    let late = |_| Err(End::of(format!("it did not answer within {} s", CONNECT_WITHIN.as_secs())));
    timeout(CONNECT_WITHIN, connecting).await.unwrap_or_else(late)
}
