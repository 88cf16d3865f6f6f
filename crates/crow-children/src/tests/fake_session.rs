//! The session of a test, and its client.

use std::path::Path;
use std::sync::{Arc, Mutex};

use crow_acp::{
    AcpClientCapabilities, AgentInfo, AgentUpdate, Client, ClientEvent, ClientInfo, ElicitationOutcome,
    IncomingRequest, drive_agent, duplex_transport, serve_client,
};
use crow_core::{
    AgentServer, AgentTransport, FarmAddress, Grant, GrantOffer, GrantScope, Mode, NatsCredentials,
    NatsServer, PermissionDecision, ThoughtLevel, ToolCallInfo, TreeLimits,
};
use crow_store::Timestamp;
use crow_tools::{BuiltinToolConfig, GitCli, ToolRegistry, Workspace};
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot, watch};

use super::world::TestLog;
use crate::ports::{ChildAgentsConfig, InheritedSettings, ParentSession};

pub(super) struct FakeSession {
    pub(super) workspace: Arc<Workspace>,
    pub(super) limits: TreeLimits,
    /// The server of the agent `farm`, if there is one.
    pub(super) farm: Mutex<Option<String>>,
    pub(super) mode: watch::Sender<Mode>,
    pub(super) log: TestLog,
}

fn agent(name: &str) -> AgentServer {
    let transport = AgentTransport::Program { command: name.to_owned(), args: Vec::new(), env: Vec::new() };
    AgentServer { name: name.to_owned(), transport, cwd: None }
}

fn farm_agent(urls: &str) -> AgentServer {
    let server = NatsServer { urls: urls.to_owned(), credentials: NatsCredentials::None, tls_ca_file: None };
    let address = FarmAddress { server, queue: "build".to_owned(), parent_name: "me".to_owned() };
    AgentServer { name: "farm".to_owned(), transport: AgentTransport::Farm(Box::new(address)), cwd: None }
}

impl ParentSession for FakeSession {
    fn agents_config(&self) -> ChildAgentsConfig {
        let farm = self.farm.lock().unwrap().clone().map(|urls| farm_agent(&urls));
        ChildAgentsConfig {
            agent_servers: [agent("other"), agent("missing")].into_iter().chain(farm).collect(),
            own_agent: Some(agent("crow")),
            tree_limits: self.limits,
            secret_variables: Vec::new(),
            worktrees_dir: self.workspace.cwd().join("worktrees"),
            legacy_worktrees_dir: self.workspace.cwd().join("legacy-worktrees"),
        }
    }

    fn workspace(&self) -> Arc<Workspace> {
        self.workspace.clone()
    }

    fn settings(&self) -> InheritedSettings {
        InheritedSettings { mode: *self.mode.borrow(), model: None, thought_level: ThoughtLevel::default() }
    }

    fn wait_for_mode_change(&self, known: Mode) -> BoxFuture<'static, Mode> {
        let mut mode = self.mode.subscribe();
        Box::pin(async move { *mode.wait_for(|mode| *mode != known).await.unwrap() })
    }

    fn find_model(&self, name: &str) -> Result<String, String> {
        Err(format!("the model {name} is not configured"))
    }

    fn git(&self) -> GitCli {
        ToolRegistry::with_builtin_tools(BuiltinToolConfig::default()).git_for(&self.workspace)
    }

    fn evaluate_access(&self, _cwd: &Path, _info: &ToolCallInfo) -> PermissionDecision {
        PermissionDecision::Deny("it is a test".to_owned())
    }

    fn covers_offer(&self, _offer: &GrantOffer) -> bool {
        false
    }

    fn remember_grant<'a>(
        &'a self,
        _scope: GrantScope,
        _offer: &'a GrantOffer,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn remember_for_project<'a>(
        &'a self,
        _directory: &'a Path,
        _grants: &'a [Grant],
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn on_mail(&self) {
        self.log.push("session: mail");
    }

    fn has_directory(&self, path: &Path) -> BoxFuture<'static, bool> {
        let is_there = path.is_dir();
        Box::pin(async move { is_there })
    }

    fn now(&self) -> Timestamp {
        Timestamp(0)
    }
}

/// Connects a client whose user allows everything, and answers forms with `yes`; neither if it ends with `(slow)`.
pub(super) async fn connect_client(log: TestLog) -> Client {
    let (client_lines, agent_lines) = duplex_transport();
    let (request_sender, mut requests) = mpsc::channel::<IncomingRequest>(8);
    let (client_sender, client) = oneshot::channel();
    let info = AgentInfo { version: "0", program: None, reads_images: false };
    tokio::spawn(async move {
        let served =
            serve_client(agent_lines, info, request_sender, |client| drop(client_sender.send(client)));
        drop(served.await);
    });
    tokio::spawn(async move { while requests.recv().await.is_some() {} });
    let (event_sender, mut events) = mpsc::channel(8);
    let hello = ClientInfo {
        name: "crow-cli",
        version: "0",
        capabilities: AcpClientCapabilities { forms: true, ..AcpClientCapabilities::default() },
        agent_name: None,
        wants_raw_updates: false,
    };
    let (initialized, is_initialized) = oneshot::channel();
    tokio::spawn(async move {
        let driven = drive_agent(client_lines, hello, event_sender, async |connection| {
            initialized.send(()).unwrap();
            connection.wait_closed().await;
        });
        drop(driven.await);
    });
    tokio::spawn(async move {
        let (mut open_forms, mut open_questions) = (Vec::new(), Vec::new());
        while let Some(event) = events.recv().await {
            if let ClientEvent::Permission { question, answer, .. } = event {
                log.push(&format!("user: {}", question.title));
                if question.title.ends_with("(slow)") {
                    open_questions.push(answer);
                } else {
                    drop(answer.send(question.allow_once().unwrap()));
                }
            } else if let ClientEvent::Update {
                update: AgentUpdate::Notice(text) | AgentUpdate::Thought(text),
                ..
            } = event
            {
                log.push(&format!("notice: {text}"));
            } else if let ClientEvent::Form { form, answer, .. } = event {
                log.push(&format!("user: {:?}: {}", form.subject, form.message));
                if form.message.ends_with("(slow)") {
                    open_forms.push(answer);
                } else {
                    drop(answer.send(ElicitationOutcome::Accepted("yes".to_owned())));
                }
            }
        }
    });
    is_initialized.await.unwrap();
    client.await.unwrap()
}
