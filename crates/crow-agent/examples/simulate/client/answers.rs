//! The client's answers to permission requests, and its interruptions.

use serde_json::{Value, json};

use super::requests::PendingRequest;
use super::{Action, FakeClient};
use crate::fault::Fault;

/// A person who does not answer cancels the turn at some time.
const PATIENCE_MS: u64 = 900_000;

impl FakeClient<'_> {
    pub(super) fn plan_permission_answer(&mut self, request: &Value) {
        if self.world.draws_fault(Fault::ClientNeverAnswers) {
            let session = request["params"]["sessionId"].as_str().unwrap_or_default();
            let cancel = cancel_line(session);
            return self.plan_action(PATIENCE_MS, Action::Send(cancel));
        }
        let options = request["params"]["options"].as_array().map_or(0, Vec::len) as u64;
        let index = usize::try_from(self.world.draw_below(options)).unwrap_or_default();
        let mut outcome =
            json!({"outcome": "selected", "optionId": request["params"]["options"][index]["optionId"]});
        if self.world.draws_chance(10) {
            outcome = json!({"outcome": "cancelled"});
        }
        let mut result = json!({ "outcome": outcome });
        if self.world.draws_fault(Fault::ClientAnswersNonsense) {
            result = json!({"outcome": {"outcome": "selected", "optionId": "perhaps"}});
        }
        let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string();
        let after_ms = self.world.draw_below(2000);
        if self.world.draws_fault(Fault::ClientAnswersTwice) {
            self.plan_action(after_ms + 1, Action::Send(answer.clone()));
        }
        self.plan_action(after_ms, Action::Send(answer));
    }

    /// Cancels every turn.
    pub(super) async fn cancel_prompts(&mut self) {
        let lines: Vec<String> = self.memory.keys().map(|session| cancel_line(session)).collect();
        for line in lines {
            self.send_line(line).await;
        }
    }

    /// Plans what may happen to a prompt that is sent now.
    pub(super) fn plan_interruptions(&mut self, session: &str) {
        let after_ms = self.world.draw_below(200);
        if self.world.draws_fault(Fault::ClientCancels) {
            self.plan_action(after_ms, Action::Send(cancel_line(session)));
        }
        if self.world.draws_fault(Fault::ClientSendsGarbage) {
            let garbage = ["{", "[]", "{\"jsonrpc\":\"2.0\"}", "null", "\"text\""];
            self.plan_action(after_ms, Action::Send(self.world.draw_item(&garbage).to_owned()));
        }
        if self.world.draws_fault(Fault::ClientStopsReading) {
            self.plan_action(after_ms, Action::StopReading);
            let dies_after_ms = self.world.draw_below(PATIENCE_MS);
            self.plan_action(after_ms + dies_after_ms, Action::Die);
        }
        if self.world.draws_fault(Fault::ClientDies) {
            self.plan_action(after_ms, Action::Die);
        }
        if !self.world.is_calm() && self.world.draws_chance(15) {
            let session = session.to_owned();
            self.plan_action(after_ms, Action::Request(PendingRequest::Steer { session }));
        }
    }
}

pub(super) fn cancel_line(session: &str) -> String {
    let params = json!({ "sessionId": session });
    json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params}).to_string()
}
