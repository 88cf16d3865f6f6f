//! An agent in the process of the test whose turns are scripted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use crow_acp::{
    AgentCommand, AgentInfo, AgentProgram, Client, ElicitationForm, ElicitationOutcome, FormSubject,
    IncomingRequest, LineTransport, OfferedAnswers, OpenSessionResult, PermissionRequest, PermissionSubject,
    PromptBlock, PromptResult, ResponseSender, SteerOutcome, duplex_transport, serve_client,
};
use crow_core::{
    CallId, ContentPart, Failure, FailureKind, MessageId, Mode, SessionConfigOptions, SessionId,
    SessionUpdate, ThoughtLevel, ToolAccess, ToolCallInfo, ToolKind, TurnEnd,
};
use futures_util::future::BoxFuture;
use serde_json::Map;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::world::TestLog;
use crate::ports::ChildLauncher;

/// Starts agents that share the scripts of their turns: each turn takes the next one, with words between ` | `.
pub(super) struct ScriptedLauncher {
    pub(super) turns: Arc<Mutex<VecDeque<String>>>,
    /// Makes the running agent crash.
    pub(super) crash: Arc<Notify>,
    pub(super) log: TestLog,
}

impl ChildLauncher for ScriptedLauncher {
    fn start_program<'a>(
        &'a self,
        agent_name: &'a str,
        _command: AgentCommand,
    ) -> BoxFuture<'a, Result<(LineTransport, Option<AgentProgram>), String>> {
        Box::pin(async move {
            if agent_name == "missing" {
                return Err("there is no such program".to_owned());
            }
            let (client, agent) = duplex_transport();
            tokio::spawn(serve_agent(agent, self.turns.clone(), self.crash.clone(), self.log.clone()));
            Ok((client, None))
        })
    }
}

/// Serves the agent until its client is gone or it crashes.
async fn serve_agent(
    lines: LineTransport,
    turns: Arc<Mutex<VecDeque<String>>>,
    crash: Arc<Notify>,
    log: TestLog,
) {
    let (request_sender, requests) = mpsc::channel::<IncomingRequest>(8);
    let (client_sender, client) = oneshot::channel();
    let info = AgentInfo { version: "0", program: None, reads_images: false };
    let served = serve_client(lines, info, request_sender, |client| drop(client_sender.send(client)));
    let agent = async {
        let client = client.await.unwrap();
        ScriptedAgent { client, turns, log: log.clone(), running: None, is_deaf: false }.run(requests).await;
    };
    tokio::select! {
        _ = served => {}
        () = agent => {}
        () = crash.notified() => {}
    }
    log.push("agent: gone");
}

struct ScriptedAgent {
    client: Client,
    turns: Arc<Mutex<VecDeque<String>>>,
    log: TestLog,
    /// The turn that waits for its cancellation.
    running: Option<ResponseSender<PromptResult>>,
    is_deaf: bool,
}

impl ScriptedAgent {
    async fn run(&mut self, mut requests: mpsc::Receiver<IncomingRequest>) {
        while let Some(request) = requests.recv().await {
            match request {
                IncomingRequest::Initialized => {}
                IncomingRequest::Open { kind, answer, .. } => {
                    self.log.push(&format!("agent: open {kind:?}"));
                    let session = SessionId::new("far");
                    answer.send(Ok(OpenSessionResult { session, options: options() }));
                }
                IncomingRequest::SetOption { option, value, answer, .. } => {
                    self.log.push(&format!("agent: {option} {value}"));
                    answer.send(Ok(options()));
                }
                IncomingRequest::Steer { content, answer, .. } => {
                    self.log.push(&format!("agent: steered {}", prompt_text(&content)));
                    answer.send(Ok(SteerOutcome::Injected));
                }
                IncomingRequest::Cancel { .. } if self.is_deaf => {}
                IncomingRequest::Cancel { .. } => {
                    self.log.push("agent: cancel");
                    if let Some(answer) = self.running.take() {
                        answer.send(Ok(TurnEnd::Cancelled.into()));
                    }
                }
                IncomingRequest::Prompt { session, content, answer, .. } => {
                    self.log.push(&format!("agent: prompt {}", prompt_text(&content)));
                    let turn = self.turns.lock().unwrap().pop_front().expect("a scripted turn");
                    self.play_turn(&session, &turn, answer).await;
                }
                other @ (IncomingRequest::Authenticate { .. }
                | IncomingRequest::Logout { .. }
                | IncomingRequest::ListSessions { .. }
                | IncomingRequest::ListPrompts { .. }
                | IncomingRequest::Close { .. }
                | IncomingRequest::Delete { .. }
                | IncomingRequest::Withdraw { .. }) => {
                    other.reject(Failure::new(FailureKind::Protocol, "this is not scripted"));
                }
            }
        }
    }

    async fn play_turn(&mut self, session: &SessionId, turn: &str, answer: ResponseSender<PromptResult>) {
        for line in turn.split(" | ") {
            let (word, text) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "say" => {
                    let (message, text) = (MessageId::from_seq(1), text.to_owned());
                    self.client.send_update(session, SessionUpdate::Text { message, text });
                }
                "usage" => {
                    let update = SessionUpdate::Usage {
                        used: 1,
                        size: 1_000,
                        tokens_spent: text.parse().ok(),
                        cost: None,
                        is_estimate: false,
                    };
                    self.client.send_update(session, update);
                }
                "ask" => {
                    let is_allowed = ask(&self.client, session, text).await;
                    self.log.push(&format!("agent: {}", if is_allowed { "allowed" } else { "rejected" }));
                }
                "form" => {
                    let outcome = show_form(&self.client, session, text).await;
                    self.log.push(&format!("agent: {outcome:?}"));
                }
                "open_form" => {
                    let (client, session, log) = (self.client.clone(), session.clone(), self.log.clone());
                    let text = text.to_owned();
                    tokio::spawn(async move {
                        let outcome = show_form(&client, &session, &text).await;
                        log.push(&format!("agent: {outcome:?}"));
                    });
                }
                "end" | "refuse" => {
                    self.client.flush_updates(session).await;
                    let end = if word == "end" { TurnEnd::Completed } else { TurnEnd::Refused };
                    answer.send(Ok(end.into()));
                    return;
                }
                "fail" => {
                    answer.send(Err(Failure::new(FailureKind::Internal, text)));
                    return;
                }
                "hang" | "deaf" => {
                    self.is_deaf = word == "deaf";
                    self.running = Some(answer);
                    return;
                }
                _ => panic!("{line}"),
            }
        }
        panic!("{turn} has no end");
    }
}

/// Asks for permission; returns whether it was given.
async fn ask(client: &Client, session: &SessionId, title: &str) -> bool {
    let question = PermissionRequest {
        subject: PermissionSubject::Call,
        call: CallId::from_position(1, 0),
        info: &call_info(title),
        arguments: &Map::new(),
        preview: &[],
        reason: None,
        offered_answers: OfferedAnswers::Once,
    };
    client.request_permission(session, question, &CancellationToken::new()).await.is_allowed()
}

async fn show_form(client: &Client, session: &SessionId, message: &str) -> ElicitationOutcome {
    let form = ElicitationForm {
        message: message.to_owned(),
        options: Vec::new(),
        free_text: true,
        subject: FormSubject::Trust,
    };
    client.elicit_form(session, &form, &CancellationToken::new()).await
}

pub(super) fn call_info(title: &str) -> ToolCallInfo {
    ToolCallInfo {
        title: title.to_owned(),
        kind: ToolKind::Other,
        locations: Vec::new(),
        access: ToolAccess::Nothing,
    }
}

fn options() -> SessionConfigOptions {
    SessionConfigOptions {
        mode: Mode::Ask,
        model: None,
        models: Vec::new(),
        thought_level: ThoughtLevel::default(),
    }
}

fn prompt_text(content: &[PromptBlock]) -> String {
    let texts = content.iter().map(|block| match block {
        PromptBlock::Part(ContentPart::Text(text)) => text.as_str(),
        PromptBlock::Part(_) | PromptBlock::ImageUri { .. } => "?",
    });
    texts.collect()
}
