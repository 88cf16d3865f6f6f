//! Holds back the lines after `initialize` until it is answered: the SDK rejects requests that it reads earlier, and
//! clients need not wait.

use std::borrow::Cow;
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::watch;

use crate::transport::IncomingLines;

/// The state of a connection's `initialize`.
#[derive(Debug, Clone, PartialEq)]
enum HandshakeState {
    /// Not requested yet, or rejected.
    NotStarted,
    /// The request with this ID waits for its answer.
    Pending(Value),
    Completed,
}

/// Passes one connection's lines in the order that the SDK needs.
#[derive(Debug)]
pub(crate) struct HandshakeGate {
    handshake: watch::Sender<HandshakeState>,
}

/// The parts of a message that matter here.
#[derive(Deserialize)]
struct HandshakeEnvelope<'a> {
    id: Option<Value>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    error: Option<serde::de::IgnoredAny>,
}

impl HandshakeGate {
    pub(crate) fn new() -> Self {
        Self { handshake: watch::Sender::new(HandshakeState::NotStarted) }
    }

    /// Returns the client's lines; none after an `initialize` before that is answered.
    pub(crate) fn hold_back(self: Arc<Self>, lines: IncomingLines) -> IncomingLines {
        let gated = stream::unfold((lines, self), |(mut lines, gate)| async move {
            let mut handshake = gate.handshake.subscribe();
            // The sender is owned by the gate itself, so this cannot fail.
            let _ = handshake.wait_for(|state| !matches!(state, HandshakeState::Pending(_))).await;
            drop(handshake);
            let line = lines.next().await?;
            if let Ok(line) = &line {
                gate.on_incoming(line);
            }
            Some((line, (lines, gate)))
        });
        gated.boxed()
    }

    fn on_incoming(&self, line: &str) {
        if *self.handshake.borrow() != HandshakeState::NotStarted {
            return;
        }
        let Ok(HandshakeEnvelope { id: Some(id), method: Some(method), .. }) = serde_json::from_str(line)
        else {
            return;
        };
        if method == "initialize" {
            self.handshake.send_replace(HandshakeState::Pending(id));
        }
    }

    /// Records a line that is sent to the client.
    pub(crate) fn on_outgoing(&self, line: &str) {
        let next = match &*self.handshake.borrow() {
            HandshakeState::Pending(id) => handshake_after_answer(line, id),
            HandshakeState::NotStarted | HandshakeState::Completed => None,
        };
        if let Some(next) = next {
            self.handshake.send_replace(next);
        }
    }
}

/// The state after a line to the client; `None` if that is no answer to `initialize`.
fn handshake_after_answer(line: &str, request_id: &Value) -> Option<HandshakeState> {
    let HandshakeEnvelope { id, method, error } = serde_json::from_str(line).ok()?;
    // A request that cannot be parsed is answered without its ID.
    let is_answer = method.is_none() && id.is_none_or(|id| id == *request_id || id.is_null());
    is_answer.then_some(if error.is_some() { HandshakeState::NotStarted } else { HandshakeState::Completed })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures_util::FutureExt;

    use super::*;

    /// Shows which lines of a client pass, and which only after an answer was sent (`> `).
    #[track_caller]
    fn check_passed_lines(steps: &[&str], expected: &[&str]) {
        let waiting: Vec<_> =
            steps.iter().filter(|step| !step.starts_with("> ")).map(|step| (*step).to_owned()).collect();
        let gate = Arc::new(HandshakeGate::new());
        let mut lines = gate.clone().hold_back(stream::iter(waiting.into_iter().map(Ok)).boxed());
        let seen = Mutex::new(Vec::new());
        let mut read = || {
            while let Some(Some(Ok(line))) = lines.next().now_or_never() {
                seen.lock().unwrap().push(line);
            }
        };
        read();
        for answer in steps.iter().filter_map(|step| step.strip_prefix("> ")) {
            seen.lock().unwrap().push(format!("> {answer}"));
            gate.on_outgoing(answer);
            read();
        }
        assert_eq!(*seen.lock().unwrap(), expected);
    }

    #[test]
    fn lines_after_initialize_wait_for_its_answer() {
        let (hello, list) = (r#"{"id":1,"method":"initialize"}"#, r#"{"id":2,"method":"session/list"}"#);
        let (update, answer) = (r#"{"method":"session/update"}"#, r#"{"id":1,"result":{}}"#);
        check_passed_lines(
            &[hello, list, &format!("> {update}"), r#"> {"id":7,"result":{}}"#, &format!("> {answer}")],
            &[hello, &format!("> {update}"), r#"> {"id":7,"result":{}}"#, &format!("> {answer}"), list],
        );
        // Lines that are not requests, or come earlier, do not wait.
        check_passed_lines(
            &[list, "{", r#"{"method":"initialize"}"#, list],
            &[list, "{", r#"{"method":"initialize"}"#, list],
        );
    }

    #[test]
    fn initialize_may_be_repeated_after_a_rejection() {
        let hello = r#"{"id":"a","method":"initialize"}"#;
        let (refused, answer) = (r#"{"id":null,"error":{}}"#, r#"{"id":"a","result":{}}"#);
        check_passed_lines(
            &[hello, hello, "x", &format!("> {refused}"), &format!("> {answer}")],
            &[hello, &format!("> {refused}"), hello, &format!("> {answer}"), "x"],
        );
    }
}
