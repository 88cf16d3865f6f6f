//! The simulated child: an ACP agent on raw lines that may lie, hang, die and answer twice.

use std::io;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::fault::Fault;
use crate::world::World;

/// Pieces of an answer at most.
const PIECES_MAX: u64 = 3;

/// The name of the child's only session.
const SESSION: &str = "far";

/// The child's ends of its pipes.
pub(crate) struct ChildPipes {
    pub(crate) from_parent: mpsc::Receiver<io::Result<String>>,
    pub(crate) to_parent: mpsc::Sender<io::Result<String>>,
}

/// The child's process has ended.
struct ChildGone;

pub(crate) struct FakeChild {
    world: Arc<World>,
    to_parent: mpsc::Sender<io::Result<String>>,
    /// The id of the prompt that is not answered.
    open_prompt: Option<Value>,
    n_requests: u64,
}

/// Serves the parent until either is gone.
pub(crate) async fn serve_child(world: Arc<World>, pipes: ChildPipes) {
    let ChildPipes { mut from_parent, to_parent } = pipes;
    let mut child = FakeChild { world, to_parent, open_prompt: None, n_requests: 0 };
    while let Some(Ok(line)) = from_parent.recv().await {
        child.world.pass_boundary("child").await;
        let message = child.world.read_json(line.as_bytes());
        if child.handle_message(&message).await.is_err() {
            return;
        }
    }
}

impl FakeChild {
    async fn handle_message(&mut self, message: &Value) -> Result<(), ChildGone> {
        let Some(method) = message["method"].as_str() else { return Ok(()) };
        self.world.add_event(&format!("child gets {method}"));
        if self.world.draws_fault(Fault::ChildDies) {
            return Err(ChildGone);
        }
        let id = &message["id"];
        match method {
            "initialize" => {
                let capabilities = json!({"loadSession": self.world.draws_chance(50)});
                self.answer(id, &json!({"protocolVersion": 1, "agentCapabilities": capabilities})).await
            }
            "session/new" => self.answer(id, &json!({ "sessionId": SESSION })).await,
            "session/prompt" => self.run_prompt(id.clone()).await,
            "session/cancel" => match self.open_prompt.take() {
                Some(prompt) => self.answer(&prompt, &json!({"stopReason": "cancelled"})).await,
                None => Ok(()),
            },
            _ if id.is_null() => Ok(()),
            _ => self.answer(id, &json!({})).await,
        }
    }

    async fn run_prompt(&mut self, prompt: Value) -> Result<(), ChildGone> {
        for _ in 0..=self.world.draw_below(PIECES_MAX) {
            self.send_text(SESSION).await?;
            self.world.pass_boundary("child").await;
            if self.world.draws_fault(Fault::ChildDies) {
                return Err(ChildGone);
            }
        }
        if self.world.draws_fault(Fault::ChildLies) {
            self.send_lies().await?;
        }
        if self.world.draws_chance(20) {
            self.ask_permission(SESSION).await?;
        }
        if self.world.draws_fault(Fault::ChildHangs) {
            self.open_prompt = Some(prompt);
            return Ok(());
        }
        self.answer(&prompt, &json!({"stopReason": "end_turn"})).await
    }

    /// Sends what an honest agent does not send.
    async fn send_lies(&mut self) -> Result<(), ChildGone> {
        match self.world.draw_below(5) {
            0 => self.send_text("another").await,
            1 => self.answer(&json!(4711), &json!({"stopReason": "end_turn"})).await,
            2 => self.send_line("this is no message".to_owned()).await,
            3 => self.ask_permission("another").await,
            _ => {
                let update = json!({"sessionUpdate": "tool_call_update", "toolCallId": "never announced", "status": "completed"});
                self.send_update(SESSION, &update).await
            }
        }
    }

    async fn ask_permission(&mut self, session: &str) -> Result<(), ChildGone> {
        self.n_requests += 1;
        let options = json!([
            {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
            {"optionId": "no", "name": "No", "kind": "reject_once"},
        ]);
        let call =
            json!({"toolCallId": "child-call", "title": "change", "kind": "execute", "status": "pending"});
        let params = json!({"sessionId": session, "toolCall": call, "options": options});
        let id = self.n_requests;
        let request =
            json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params});
        self.send_line(request.to_string()).await
    }

    async fn send_text(&mut self, session: &str) -> Result<(), ChildGone> {
        let content = json!({"type": "text", "text": self.world.next_child_words()});
        self.send_update(session, &json!({"sessionUpdate": "agent_message_chunk", "content": content})).await
    }

    async fn send_update(&mut self, session: &str, update: &Value) -> Result<(), ChildGone> {
        let params = json!({"sessionId": session, "update": update});
        let message = json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
        self.send_line(message.to_string()).await
    }

    async fn answer(&mut self, id: &Value, result: &Value) -> Result<(), ChildGone> {
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
        if self.world.draws_fault(Fault::ChildAnswersTwice) {
            self.send_line(answer.clone()).await?;
        }
        self.send_line(answer).await
    }

    async fn send_line(&mut self, line: String) -> Result<(), ChildGone> {
        self.to_parent.send(Ok(line)).await.map_err(|_| ChildGone)
    }
}
