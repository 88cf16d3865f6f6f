//! The life of one server: connect, keep, notice the end, begin again when asked. The one task that owns it.

use std::{sync::Arc, time::Duration};

use crow_core::{McpServer, McpTransport, nearest_name};
use crow_process::ProcessGroups;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{
    McpEnvironment,
    connect::{McpConnection, connect_server},
    link::McpLink,
    listing::{self, ToolListing},
    news::McpNotices,
    prompts, resources,
    server::{McpCatalog, McpServerExit, McpServerHandle, McpServerStatus},
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

pub(super) struct McpServerActor {
    pub(super) server: Arc<McpServerHandle>,
    pub(super) settings: McpServer,
    pub(super) home: Arc<McpEnvironment>,
    pub(super) groups: ProcessGroups,
    pub(super) news: Arc<McpNotices>,
    pub(super) cut: CancellationToken,
}

type Variables = watch::Receiver<Vec<(String, String)>>;

/// How a life went.
enum ConnectionOutcome {
    /// It never came about.
    NotBegun(McpServerExit),
    Ended(McpServerExit),
    /// Its environment is another now, and nothing was asked of it yet.
    Outdated,
    /// By us.
    Cut,
}

impl McpServerActor {
    /// Keeps the server until the session is over or the server has failed.
    pub(super) async fn run(self) {
        let (mut life, mut n_restarts) = (1, 0);
        loop {
            let began = Instant::now();
            let end = match Box::pin(self.run_connection(life)).await {
                ConnectionOutcome::Cut => return self.mark_session_over(),
                ConnectionOutcome::Outdated => {
                    life += 1;
                    continue;
                }
                ConnectionOutcome::NotBegun(end) if life == 1 => return self.report_start_failure(end),
                ConnectionOutcome::NotBegun(end) => end,
                ConnectionOutcome::Ended(end) => {
                    if began.elapsed() >= HEALTHY_AFTER {
                        n_restarts = 0;
                    }
                    end
                }
            };
            if n_restarts == RESTARTS_MAX {
                return self.report_final_failure(end);
            }
            self.post_notice(&format!(
                "ended: {}. It is started again when one of its tools is called.",
                end.short_reason()
            ));
            life += 1;
            self.server.set_status(McpServerStatus::Ended { end, next_life: life });
            tokio::select! {
                () = self.cut.cancelled() => return self.mark_session_over(),
                () = self.server.wait_for_restart_request(life) => {}
            }
            n_restarts += 1;
            self.server.set_status(McpServerStatus::Connecting);
        }
    }

    async fn run_connection(&self, life: u32) -> ConnectionOutcome {
        let mut variables = self.home.variables.clone();
        variables.mark_unchanged();
        let connecting = connect_server(&self.server.name, &self.settings, &self.home, &self.groups);
        let connection = tokio::select! {
            () = self.cut.cancelled() => return ConnectionOutcome::Cut,
            connected = connect_with_timeout(connecting) => match connected {
                Ok(connection) => connection,
                Err(end) => return ConnectionOutcome::NotBegun(end),
            }
        };
        let link = Arc::new(connection.link());
        let listed = tokio::select! {
            () = self.cut.cancelled() => None,
            listed = self.fetch_catalog(&link) => Some(listed),
        };
        match listed {
            None => {
                connection.close().await;
                ConnectionOutcome::Cut
            }
            Some(Err(why)) => ConnectionOutcome::NotBegun(McpServerExit { why, ..connection.close().await }),
            Some(Ok((offer, listing))) => {
                if listing.n_left_out > 0 {
                    let (n_tools, n_left_out) = (listing.tools.len(), listing.n_left_out);
                    self.post_notice(&format!(
                        "has too many tools: {n_left_out} of them are missing, {n_tools} are there."
                    ));
                }
                if life == 1 {
                    self.report_unknown_tools(&listing);
                }
                self.server.set_catalog(offer);
                self.server.set_status(McpServerStatus::Ready(link.clone()));
                self.watch_connection(connection, (&link, variables)).await
            }
        }
    }

    /// Follows the server until it ends.
    async fn watch_connection(
        &self,
        mut connection: McpConnection,
        (link, mut variables): (&Arc<McpLink>, Variables),
    ) -> ConnectionOutcome {
        loop {
            tokio::select! {
                () = self.cut.cancelled() => {
                    connection.close().await;
                    return ConnectionOutcome::Cut;
                }
                () = connection.wait_until_closed() => return ConnectionOutcome::Ended(connection.close().await),
                () = self.outdated((link, &mut variables)) => {
                    connection.close().await;
                    return ConnectionOutcome::Outdated;
                }
                () = link.heard.lists_changed.notified() => {}
            }
            let listed = tokio::select! {
                () = self.cut.cancelled() => continue,
                () = connection.wait_until_closed() => continue,
                listed = self.fetch_catalog(link) => listed,
            };
            match listed {
                Ok((offer, _)) => self.server.set_catalog(offer),
                Err(why) => {
                    tracing::warn!(server = self.server.name, why, "could not list the tools again");
                }
            }
            tokio::select! {
                () = self.cut.cancelled() => {}
                () = connection.wait_until_closed() => {}
                () = sleep(LISTS_PAUSE) => {}
            }
        }
    }

    /// Waits until its program had to be told something else than it was. One that was used already may remember things:
    /// it stays, and is told when it starts again.
    async fn outdated(&self, (link, variables): (&Arc<McpLink>, &mut Variables)) {
        let is_program = matches!(self.settings.transport, McpTransport::Stdio { .. });
        while variables.changed().await.is_ok() {
            if is_program && self.server.stand_again(link) {
                return;
            }
        }
        std::future::pending::<()>().await;
    }

    /// Asks what the server offers. Without its tools it is none; the rest is welcome.
    async fn fetch_catalog(&self, link: &McpLink) -> Result<(McpCatalog, ToolListing), String> {
        let listed = timeout(CONNECT_WITHIN, listing::fetch_tools(&link.peer, &self.settings)).await;
        let listing = listed.unwrap_or_else(|_| Err("it did not list its tools".to_owned()))?;
        let more = async {
            let abilities = link.peer.peer_info().map(|info| info.capabilities.clone()).unwrap_or_default();
            let mut offer = McpCatalog { tools: listing.tools.as_slice().into(), ..McpCatalog::default() };
            if abilities.prompts.is_some() {
                match prompts::fetch_prompts(&link.peer).await {
                    Ok(prompts) => offer.prompts = prompts.into(),
                    Err(why) => {
                        tracing::warn!(server = self.server.name, why, "could not list the prompts");
                    }
                }
            }
            let is_wanted = !self.settings.disabled_tools.iter().any(|name| name == resources::READ);
            offer.has_resources =
                is_wanted && abilities.resources.is_some() && resources::has_resources(&link.peer).await;
            offer
        };
        let late = |_| McpCatalog { tools: listing.tools.as_slice().into(), ..McpCatalog::default() };
        let offer = timeout(MORE_WITHIN, more).await.unwrap_or_else(late);
        Ok((offer, listing))
    }

    /// Says which of the tools that the configuration names there are not.
    fn report_unknown_tools(&self, listing: &ToolListing) {
        let is_known = |name: &str| name == resources::READ || listing.names.contains(name);
        let named = |key: &'static str, names: &[String]| -> Vec<(&'static str, String)> {
            names.iter().filter(|name| !is_known(name)).map(|name| (key, name.clone())).collect()
        };
        let included = self.settings.included_tools.as_deref().unwrap_or_default();
        let disabled = named("disabled_tools", &self.settings.disabled_tools);
        for (key, name) in disabled.iter().chain(&named("include_tools", included)) {
            let meant = match nearest_name(name, listing.names.iter().map(String::as_str)) {
                Some(meant) => format!(" Did you mean {meant:?}?"),
                None => String::new(),
            };
            self.post_notice(&format!("has no tool {name:?}, which `{key}` names.{meant}"));
        }
    }

    fn report_start_failure(&self, end: McpServerExit) {
        self.post_notice(&format!("did not start: {}. Its tools are missing.", end.short_reason()));
        self.server.set_status(McpServerStatus::Failed(end));
    }

    fn report_final_failure(&self, end: McpServerExit) {
        self.post_notice(&format!(
            "ended again: {}. It is not started any more, its tools are missing.",
            end.short_reason()
        ));
        self.server.set_status(McpServerStatus::Failed(end));
    }

    fn mark_session_over(&self) {
        self.server.set_status(McpServerStatus::Failed(McpServerExit::from_reason("the session is over")));
    }

    fn post_notice(&self, what: &str) {
        self.news.post(format!("The MCP server {} {what}", self.server.name));
    }
}

async fn connect_with_timeout(
    connecting: impl Future<Output = Result<McpConnection, McpServerExit>>,
) -> Result<McpConnection, McpServerExit> {
    let late = |_| {
        Err(McpServerExit::from_reason(format!("it did not answer within {} s", CONNECT_WITHIN.as_secs())))
    };
    timeout(CONNECT_WITHIN, connecting).await.unwrap_or_else(late)
}
