//! Starts the driver of a session, and builds again what depends on its directories.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use crow_acp::{Client, SessionLocation};
use crow_children::{ChildAgents, ChildAgentsCell, ChildAgentsInit};
use crow_core::{ChildTimes, McpServer, SessionId, SessionUpdate};
use crow_project::{ConfigLoaderInit, GrantStore, ProjectConfigLoader};
use crow_tools::{McpClientFeatures, McpEnvironment, Toolbox, ToolboxInit, Workspace};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use super::parent_port::{ParentSessionPort, SessionEnvironment};
use super::{DriverState, SessionDriver, available_commands};
use crate::handle::{INBOX_LEN, SessionHandle, SessionMsg};
use crate::live_replays::LiveReplays;
use crate::runtime::AgentRuntime;
use crate::session_init::SessionInit;
use crate::turn_context::StoredState;
use crate::{builtin_tools, location, stored_session};

/// The ends of a driver's channels that the session's handle does not have.
struct DriverChannels {
    inbox: mpsc::Receiver<SessionMsg>,
    inbox_sender: mpsc::WeakSender<SessionMsg>,
    turn_cancel: watch::Sender<CancellationToken>,
    replays: LiveReplays,
    cancel: CancellationToken,
    turns: TaskTracker,
}

/// A session in its directories.
#[derive(Clone, Copy)]
struct SessionScope<'a> {
    client: &'a Client,
    session: &'a SessionId,
    location: &'a SessionLocation,
    workspace: &'a Workspace,
}

/// Opens the tools of a session. A server of the client overrides a configured one of the same name.
fn open_toolbox(
    runtime: &AgentRuntime,
    SessionScope { client, session, location, workspace }: SessionScope<'_>,
    children: Option<&ChildAgentsCell>,
) -> Arc<Toolbox> {
    let (config, client_servers) = (runtime.config(), &location.servers);
    let is_from_client = |name: &str| client_servers.iter().any(|server| server.name == name);
    let configured = config.mcp_servers.iter().filter(|server| !is_from_client(&server.name));
    let servers: Vec<McpServer> = configured.chain(client_servers).cloned().collect();
    let environment = McpEnvironment {
        cwd: location.cwd.clone(),
        secret_variables: config.secret_variables.clone(),
        variables: workspace.subscribe_variables(),
        roots: std::iter::once(&location.cwd).chain(&location.additional_directories).cloned().collect(),
        auth_dir: config.mcp_auth_dir.clone(),
        features: McpClientFeatures { elicitation: client.capabilities().forms, sampling: true },
        slow_servers: runtime.slow_servers.clone(),
    };
    let base_tools = builtin_tools::session_tools(runtime, session, children);
    let (client, session) = (client.clone(), session.clone());
    let send_notice =
        Arc::new(move |notice: String| client.send_update(&session, SessionUpdate::Notice(notice)));
    let tools_max = config.tools_max;
    Arc::new(Toolbox::open(ToolboxInit { base_tools, servers, environment, tools_max, send_notice }))
}

/// Starts the project configuration of a session in a directory.
fn start_config_loader(
    runtime: &Arc<AgentRuntime>,
    client: &Client,
    session: &SessionId,
    cwd: &Path,
    toolbox: &Arc<Toolbox>,
) -> Arc<ProjectConfigLoader<AgentRuntime>> {
    ProjectConfigLoader::start(ConfigLoaderInit {
        host: runtime.clone(),
        client: client.clone(),
        session: session.clone(),
        cwd: cwd.to_owned(),
        toolbox: toolbox.clone(),
        builtin_commands: available_commands(),
        is_child: runtime.tree_depth(client) > 0,
    })
}

/// Creates the set of children of a session, which is empty.
fn create_children(
    session: ParentSessionPort,
    client: &Client,
    depth: u32,
    cancel: CancellationToken,
) -> Arc<ChildAgents> {
    ChildAgents::new(ChildAgentsInit {
        launcher: session.runtime.child_launcher(),
        store: session.runtime.store.clone(),
        client: client.clone(),
        parent: session.session.clone(),
        depth,
        times: ChildTimes::default(),
        cancel,
        session: Arc::new(session),
    })
}

fn build_driver(
    init: SessionInit,
    runtime: Arc<AgentRuntime>,
    client: Client,
    channels: DriverChannels,
) -> SessionDriver {
    let SessionInit { id, location, settings, mut state, compactions, usage, variables, .. } = init;
    let DriverChannels { inbox, inbox_sender, turn_cancel, replays, cancel, turns } = channels;
    stored_session::apply_latest_compaction(&mut state.transcript, compactions);
    let depth = runtime.tree_depth(&client);
    let children_cell = runtime.config().tree_limits.may_start(depth).then(ChildAgentsCell::default);
    let workspace = Arc::new(location::session_workspace(&runtime, &location));
    workspace.set_variables(variables);
    let toolbox = open_toolbox(
        &runtime,
        SessionScope { client: &client, session: &id, location: &location, workspace: &workspace },
        children_cell.as_ref(),
    );
    let config_loader = start_config_loader(&runtime, &client, &id, &location.cwd, &toolbox);
    let settings = watch::Sender::new(settings);
    let environment = watch::Sender::new(SessionEnvironment {
        workspace: workspace.clone(),
        config_loader: config_loader.clone(),
    });
    let is_child = client.capabilities().tree_depth.is_some();
    let grants = Arc::new(GrantStore::new(runtime.clone(), runtime.store.clone(), id.clone(), is_child));
    let port = ParentSessionPort {
        session: id.clone(),
        runtime: runtime.clone(),
        settings: settings.subscribe(),
        environment: environment.subscribe(),
        grants: grants.clone(),
        inbox_sender: inbox_sender.clone(),
    };
    let children = create_children(port, &client, depth, cancel.child_token());
    children.tree_budget().set_session_usage(usage);
    if let Some(children_cell) = &children_cell {
        children_cell.set_children(&children);
    }
    SessionDriver {
        workspace,
        toolbox,
        config_loader,
        children,
        grants,
        children_cell,
        environment,
        id,
        runtime,
        client,
        location,
        settings,
        inbox,
        inbox_sender,
        state: DriverState::Idle(Box::new(state)),
        queue: VecDeque::new(),
        close_responders: Vec::new(),
        replays,
        turn_cancel,
        cancel,
        turns,
    }
}

/// Starts a session's driver. It ends when it is closed or the last handle is dropped; `cancel` stops its turn.
pub(crate) fn start_session(
    init: SessionInit,
    runtime: Arc<AgentRuntime>,
    client: Client,
    cancel: CancellationToken,
    turns: TaskTracker,
) -> SessionHandle {
    let (sender, inbox) = mpsc::channel(INBOX_LEN);
    let turn_cancel = watch::Sender::new(CancellationToken::new());
    let (closed, replays) = (CancellationToken::new(), LiveReplays::default());
    let handle = SessionHandle {
        id: init.id.clone(),
        inbox: sender.clone(),
        turn_cancel: turn_cancel.subscribe(),
        replays: replays.clone(),
        closed: closed.clone(),
    };
    let is_new = matches!(init.state.stored_state, StoredState::Pending(_));
    let inbox_sender = sender.downgrade();
    let channels = DriverChannels { inbox, inbox_sender, turn_cancel, replays, cancel, turns };
    let mut session = build_driver(init, runtime, client, channels);
    let span = tracing::info_span!(target: crate::SESSION_SPAN, "session", session = %session.id);
    let life = async move {
        let _closed = closed.drop_guard();
        if !is_new {
            session.resume_work().await;
        }
        session.run().await;
    };
    tokio::spawn(life.instrument(span));
    handle
}

impl SessionDriver {
    /// Changes the directories of the session from the next turn on.
    pub(super) fn change_location(&mut self, location: SessionLocation) {
        if location == self.location {
            return;
        }
        if (&location.cwd, &location.additional_directories)
            != (&self.location.cwd, &self.location.additional_directories)
        {
            let workspace = location::session_workspace(&self.runtime, &location);
            self.workspace = Arc::new(workspace.with_state_of(&self.workspace));
        }
        self.toolbox = open_toolbox(
            &self.runtime,
            SessionScope {
                client: &self.client,
                session: &self.id,
                location: &location,
                workspace: &self.workspace,
            },
            self.children_cell.as_ref(),
        );
        self.config_loader =
            start_config_loader(&self.runtime, &self.client, &self.id, &location.cwd, &self.toolbox);
        self.location = location;
        self.environment.send_replace(SessionEnvironment {
            workspace: self.workspace.clone(),
            config_loader: self.config_loader.clone(),
        });
    }
}
