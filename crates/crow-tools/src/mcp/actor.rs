//! The task that owns one server: connects, lists its tools, detects its end and restarts it on request.

use std::{collections::VecDeque, ops::ControlFlow, sync::Arc, time::Duration};

use crow_core::{McpServer, McpTransport, nearest_name};
use crow_process::ProcessGroups;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::{
    connect::{McpConnection, ServerResources, connect_server},
    environment::McpEnvironment,
    link::McpLink,
    notices::McpNotices,
    prompt_list, resources,
    server::{McpCatalog, McpServerExit, McpServerHandle, McpServerStatus},
    tool_list::{self, ToolListing},
};
use crate::token_refreshes::TokenRefreshTasks;

/// Long enough for a program that unpacks itself first, short enough to notice its absence.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Prompts and resources may delay the tools by this much.
const EXTRAS_TIMEOUT: Duration = Duration::from_secs(5);

/// A server that exits more often in [`RESTARTS_WINDOW`] is broken, or down.
const RESTARTS_MAX: usize = 3;
const RESTARTS_WINDOW: Duration = Duration::from_secs(60);

/// Minimum time between two listings of a server that keeps announcing changes.
const LISTS_PAUSE: Duration = Duration::from_secs(1);

pub(super) struct McpServerActor {
    pub(super) server: Arc<McpServerHandle>,
    pub(super) settings: McpServer,
    pub(super) environment: Arc<McpEnvironment>,
    pub(super) groups: ProcessGroups,
    pub(super) refreshes: TokenRefreshTasks,
    pub(super) notices: Arc<McpNotices>,
    pub(super) cancel: CancellationToken,
}

type Variables = watch::Receiver<Vec<(String, String)>>;

/// The end of one connection.
enum ConnectionOutcome {
    /// The connection was never established.
    StartFailed(McpServerExit),
    Ended(McpServerExit),
    /// Its environment has changed, and no request was sent to it yet.
    Outdated,
    Cancelled,
}

impl McpServerActor {
    /// Runs the server until the session ends or the server does not start.
    pub(super) async fn run(self) {
        let (mut attempt, mut restarts) = (1, VecDeque::new());
        loop {
            let exit = match Box::pin(self.run_connection(attempt)).await {
                ConnectionOutcome::Cancelled => return self.mark_session_over(),
                ConnectionOutcome::Outdated => {
                    attempt += 1;
                    continue;
                }
                ConnectionOutcome::StartFailed(exit) if attempt == 1 => {
                    return self.report_start_failure(exit);
                }
                ConnectionOutcome::StartFailed(exit) | ConnectionOutcome::Ended(exit) => exit,
            };
            attempt += 1;
            if self.pause_if_restarted_often(&mut restarts, &exit).await.is_break() {
                return self.mark_session_over();
            }
            self.server.set_status(McpServerStatus::Ended { exit, next_attempt: attempt });
            tokio::select! {
                () = self.cancel.cancelled() => return self.mark_session_over(),
                () = self.server.wait_for_restart_request(attempt) => {}
            }
            restarts.push_back(Instant::now());
            self.server.set_status(McpServerStatus::Connecting);
        }
    }

    /// Reports the end of a connection. After too many restarts, waits until the next one is allowed; calls fail
    /// meanwhile. Breaks if the session has ended.
    async fn pause_if_restarted_often(
        &self,
        restarts: &mut VecDeque<Instant>,
        exit: &McpServerExit,
    ) -> ControlFlow<()> {
        let reason = exit.short_reason();
        restarts.retain(|restarted_at| restarted_at.elapsed() < RESTARTS_WINDOW);
        let Some(first) = restarts.front().copied().filter(|_| restarts.len() >= RESTARTS_MAX) else {
            self.post_notice(&format!("ended: {reason}. It restarts when one of its tools is called."));
            return ControlFlow::Continue(());
        };
        let n_seconds = RESTARTS_WINDOW.as_secs();
        self.post_notice(&format!(
            "ended again: {reason}. It was restarted {RESTARTS_MAX} times within {n_seconds} s, so calls of its tools \
             fail for up to {n_seconds} s."
        ));
        let limit = format!("it was restarted {RESTARTS_MAX} times within {n_seconds} s; try again later");
        let reason = format!("{}; {limit}", exit.reason);
        self.server.set_status(McpServerStatus::Paused(McpServerExit { reason, ..exit.clone() }));
        tokio::select! {
            () = self.cancel.cancelled() => ControlFlow::Break(()),
            () = sleep_until(first + RESTARTS_WINDOW) => ControlFlow::Continue(()),
        }
    }

    async fn run_connection(&self, attempt: u32) -> ConnectionOutcome {
        let mut variables = self.environment.variables.clone();
        variables.mark_unchanged();
        let resources = ServerResources { groups: &self.groups, refreshes: &self.refreshes };
        let connecting = connect_server(&self.server.name, &self.settings, &self.environment, resources);
        let connection = tokio::select! {
            () = self.cancel.cancelled() => return ConnectionOutcome::Cancelled,
            connected = connect_with_timeout(connecting) => match connected {
                Ok(connection) => connection,
                Err(exit) => return ConnectionOutcome::StartFailed(exit),
            }
        };
        let link = Arc::new(connection.link());
        let fetched = tokio::select! {
            () = self.cancel.cancelled() => None,
            listed = self.fetch_catalog(&link) => Some(listed),
        };
        match fetched {
            None => {
                connection.close().await;
                ConnectionOutcome::Cancelled
            }
            Some(Err(reason)) => {
                ConnectionOutcome::StartFailed(McpServerExit { reason, ..connection.close().await })
            }
            Some(Ok((catalog, listing))) => {
                if listing.n_omitted > 0 {
                    let (n_tools, n_omitted) = (listing.tools.len(), listing.n_omitted);
                    self.post_notice(&format!(
                        "has too many tools: {n_omitted} are omitted, {n_tools} are available."
                    ));
                }
                if attempt == 1 {
                    self.report_unknown_tools(&listing);
                }
                self.server.set_catalog(catalog);
                self.server.set_status(McpServerStatus::Ready(link.clone()));
                self.watch_connection(connection, &link, variables).await
            }
        }
    }

    /// Watches a connection until it ends.
    async fn watch_connection(
        &self,
        mut connection: McpConnection,
        link: &Arc<McpLink>,
        mut variables: Variables,
    ) -> ConnectionOutcome {
        loop {
            tokio::select! {
                () = self.cancel.cancelled() => {
                    connection.close().await;
                    return ConnectionOutcome::Cancelled;
                }
                () = connection.wait_until_closed() => return ConnectionOutcome::Ended(connection.close().await),
                () = self.wait_until_outdated(link, &mut variables) => {
                    connection.close().await;
                    return ConnectionOutcome::Outdated;
                }
                () = link.handler.lists_changed.notified() => {}
            }
            let fetched = tokio::select! {
                () = self.cancel.cancelled() => continue,
                () = connection.wait_until_closed() => continue,
                listed = self.fetch_catalog(link) => listed,
            };
            match fetched {
                Ok((catalog, _)) => self.server.set_catalog(catalog),
                Err(reason) => {
                    tracing::warn!(server = self.server.name, reason, "could not list the tools again");
                }
            }
            tokio::select! {
                () = self.cancel.cancelled() => {}
                () = connection.wait_until_closed() => {}
                () = sleep(LISTS_PAUSE) => {}
            }
        }
    }

    /// Waits until the environment of the server's program has changed. A server that is in use may have state: it
    /// keeps running and gets the new environment when it restarts.
    async fn wait_until_outdated(&self, link: &Arc<McpLink>, variables: &mut Variables) {
        let is_program = matches!(self.settings.transport, McpTransport::Stdio { .. });
        while variables.changed().await.is_ok() {
            if is_program && self.server.reset_if_unused(link) {
                return;
            }
        }
        std::future::pending::<()>().await;
    }

    /// Lists the server's tools, prompts and resources. A failure to list the tools is an error; the others are
    /// optional.
    async fn fetch_catalog(&self, link: &McpLink) -> Result<(McpCatalog, ToolListing), String> {
        let fetched = timeout(CONNECT_TIMEOUT, tool_list::fetch_tools(&link.peer, &self.settings)).await;
        let listing = fetched.unwrap_or_else(|_| Err("it did not list its tools".to_owned()))?;
        let fetch_extras = async {
            let capabilities =
                link.peer.peer_info().map(|info| info.capabilities.clone()).unwrap_or_default();
            let mut catalog = McpCatalog { tools: listing.tools.as_slice().into(), ..McpCatalog::default() };
            if capabilities.prompts.is_some() {
                match prompt_list::fetch_prompts(&link.peer).await {
                    Ok(prompts) => catalog.prompts = prompts.into(),
                    Err(reason) => {
                        tracing::warn!(server = self.server.name, reason, "could not list the prompts");
                    }
                }
            }
            let is_enabled = !self.settings.disabled_tools.iter().any(|name| name == resources::READ_METHOD);
            catalog.has_resources =
                is_enabled && capabilities.resources.is_some() && resources::has_resources(&link.peer).await;
            catalog
        };
        let late = |_| McpCatalog { tools: listing.tools.as_slice().into(), ..McpCatalog::default() };
        let catalog = timeout(EXTRAS_TIMEOUT, fetch_extras).await.unwrap_or_else(late);
        Ok((catalog, listing))
    }

    /// Reports configured tool names that the server does not have.
    fn report_unknown_tools(&self, listing: &ToolListing) {
        let is_known = |name: &str| name == resources::READ_METHOD || listing.names.contains(name);
        let unknown = |key: &'static str, names: &[String]| -> Vec<(&'static str, String)> {
            names.iter().filter(|name| !is_known(name)).map(|name| (key, name.clone())).collect()
        };
        let included = self.settings.included_tools.as_deref().unwrap_or_default();
        let disabled = unknown("disabled_tools", &self.settings.disabled_tools);
        for (key, name) in disabled.iter().chain(&unknown("include_tools", included)) {
            let suggestion = match nearest_name(name, listing.names.iter().map(String::as_str)) {
                Some(suggestion) => format!(" Did you mean {suggestion:?}?"),
                None => String::new(),
            };
            self.post_notice(&format!("has no tool {name:?}, which is listed in `{key}`.{suggestion}"));
        }
    }

    fn report_start_failure(&self, exit: McpServerExit) {
        self.post_notice(&format!("did not start: {}. Its tools are not available.", exit.short_reason()));
        self.server.set_status(McpServerStatus::Failed(exit));
    }

    fn mark_session_over(&self) {
        self.server.set_status(McpServerStatus::Failed(McpServerExit::from_reason("the session is over")));
    }

    fn post_notice(&self, text: &str) {
        self.notices.post(format!("The MCP server {} {text}", self.server.name));
    }
}

async fn connect_with_timeout(
    connecting: impl Future<Output = Result<McpConnection, McpServerExit>>,
) -> Result<McpConnection, McpServerExit> {
    let late = |_| {
        Err(McpServerExit::from_reason(format!("it did not answer within {} s", CONNECT_TIMEOUT.as_secs())))
    };
    timeout(CONNECT_TIMEOUT, connecting).await.unwrap_or_else(late)
}
