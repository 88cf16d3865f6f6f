//! The life of one server: connect, keep, notice the end, begin again when asked. The one task that owns it.

use std::{sync::Arc, time::Duration};

use crow_core::{McpServer, McpTransport, nearest};
use crow_process::Groups;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{
    McpHome,
    connect::{Connection, connect},
    link::Link,
    listing::{self, Listing},
    news::News,
    prompts, resources,
    server::{End, Offer, Server, Standing},
};

/// Long enough for a program that unpacks itself first, short enough that its absence is noticed.
const CONNECT_WITHIN: Duration = Duration::from_secs(30);

/// Prompts and resources are worth a moment; the tools are there without them.
const MORE_WITHIN: Duration = Duration::from_secs(5);

/// A server that ends this often does not work.
const RESTARTS_MAX: u32 = 3;

/// A server that says again and again that its lists have changed is asked no more often than this.
const LISTS_PAUSE: Duration = Duration::from_secs(1);

/// Who lived this long works; an end after that counts as the first.
const HEALTHY_AFTER: Duration = Duration::from_secs(600);

pub(super) struct Keeper {
    pub(super) server: Arc<Server>,
    pub(super) settings: McpServer,
    pub(super) home: Arc<McpHome>,
    pub(super) groups: Groups,
    pub(super) news: Arc<News>,
    pub(super) cut: CancellationToken,
}

type Variables = watch::Receiver<Vec<(String, String)>>;

/// How a life went.
enum Life {
    /// It never came about.
    NotBegun(End),
    Ended(End),
    /// Its environment is another now, and nothing was asked of it yet.
    Outdated,
    /// By us.
    Cut,
}

impl Keeper {
    /// Keeps the server until the session is over or the server has failed.
    pub(super) async fn run(self) {
        let (mut life, mut n_restarts) = (1, 0);
        loop {
            let began = Instant::now();
            let end = match Box::pin(self.live(life)).await {
                Life::Cut => return self.over(),
                Life::Outdated => {
                    life += 1;
                    continue;
                }
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

    async fn live(&self, life: u32) -> Life {
        let mut variables = self.home.variables.clone();
        variables.mark_unchanged();
        let connecting = connect(&self.server.name, &self.settings, &self.home, &self.groups);
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
            listed = self.lists(&link) => Some(listed),
        };
        match listed {
            None => {
                connection.end().await;
                Life::Cut
            }
            Some(Err(why)) => Life::NotBegun(End { why, ..connection.end().await }),
            Some(Ok((offer, listing))) => {
                if listing.n_left_out > 0 {
                    let (n_tools, n_left_out) = (listing.tools.len(), listing.n_left_out);
                    self.say(&format!(
                        "has too many tools: {n_left_out} of them are missing, {n_tools} are there."
                    ));
                }
                if life == 1 {
                    self.say_unknown(&listing);
                }
                self.server.set_offer(offer);
                self.server.stand(Standing::Ready(link.clone()));
                self.keep(connection, (&link, variables)).await
            }
        }
    }

    /// Follows the server until it ends.
    async fn keep(&self, mut connection: Connection, (link, mut variables): (&Arc<Link>, Variables)) -> Life {
        loop {
            tokio::select! {
                () = self.cut.cancelled() => {
                    connection.end().await;
                    return Life::Cut;
                }
                () = connection.gone() => return Life::Ended(connection.end().await),
                () = self.outdated((link, &mut variables)) => {
                    connection.end().await;
                    return Life::Outdated;
                }
                () = link.heard.lists_changed.notified() => {}
            }
            let listed = tokio::select! {
                () = self.cut.cancelled() => continue,
                () = connection.gone() => continue,
                listed = self.lists(link) => listed,
            };
            match listed {
                Ok((offer, _)) => self.server.set_offer(offer),
                Err(why) => {
                    tracing::warn!(server = self.server.name, why, "could not list the tools again");
                }
            }
            tokio::select! {
                () = self.cut.cancelled() => {}
                () = connection.gone() => {}
                () = sleep(LISTS_PAUSE) => {}
            }
        }
    }

    /// Waits until its program had to be told something else than it was. One that was used already may remember things:
    /// it stays, and is told when it starts again.
    async fn outdated(&self, (link, variables): (&Arc<Link>, &mut Variables)) {
        let is_program = matches!(self.settings.transport, McpTransport::Stdio { .. });
        while variables.changed().await.is_ok() {
            if is_program && self.server.stand_again(link) {
                return;
            }
        }
        std::future::pending::<()>().await;
    }

    /// Asks what the server offers. Without its tools it is none; the rest is welcome.
    async fn lists(&self, link: &Link) -> Result<(Offer, Listing), String> {
        let listed = timeout(CONNECT_WITHIN, listing::fetch(&link.peer, &self.settings)).await;
        let listing = listed.unwrap_or_else(|_| Err("it did not list its tools".to_owned()))?;
        let more = async {
            let abilities = link.peer.peer_info().map(|info| info.capabilities.clone()).unwrap_or_default();
            let mut offer = Offer { tools: listing.tools.as_slice().into(), ..Offer::default() };
            if abilities.prompts.is_some() {
                match prompts::fetch(&link.peer).await {
                    Ok(prompts) => offer.prompts = prompts.into(),
                    Err(why) => {
                        tracing::warn!(server = self.server.name, why, "could not list the prompts");
                    }
                }
            }
            let is_wanted = !self.settings.disabled_tools.iter().any(|name| name == resources::READ);
            offer.has_resources =
                is_wanted && abilities.resources.is_some() && resources::are_there(&link.peer).await;
            offer
        };
        let late = |_| Offer { tools: listing.tools.as_slice().into(), ..Offer::default() };
        let offer = timeout(MORE_WITHIN, more).await.unwrap_or_else(late);
        Ok((offer, listing))
    }

    /// Says which of the tools that the configuration names there are not.
    fn say_unknown(&self, listing: &Listing) {
        let is_known = |name: &str| name == resources::READ || listing.names.contains(name);
        let named = |key: &'static str, names: &[String]| -> Vec<(&'static str, String)> {
            names.iter().filter(|name| !is_known(name)).map(|name| (key, name.clone())).collect()
        };
        let included = self.settings.included_tools.as_deref().unwrap_or_default();
        let disabled = named("disabled_tools", &self.settings.disabled_tools);
        for (key, name) in disabled.iter().chain(&named("include_tools", included)) {
            let meant = match nearest(name, listing.names.iter().map(String::as_str)) {
                Some(meant) => format!(" Did you mean {meant:?}?"),
                None => String::new(),
            };
            self.say(&format!("has no tool {name:?}, which `{key}` names.{meant}"));
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
