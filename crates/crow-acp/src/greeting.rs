//! Holds the lines behind `initialize` back until it is answered: the SDK refuses a request that it reads before, and
//! nothing obliges a client to wait.

use std::borrow::Cow;
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::watch;

use crate::transport::IncomingLines;

/// How far a connection is with its `initialize`.
#[derive(Debug, Clone, PartialEq)]
enum HandshakeState {
    /// It has not been asked for, or was refused.
    Open,
    /// The request with this id waits for its answer.
    Asked(Value),
    /// It is answered.
    Done,
}

/// Lets one connection's lines through in the order that the SDK needs.
#[derive(Debug)]
pub(crate) struct HandshakeGate {
    handshake: watch::Sender<HandshakeState>,
}

/// What is looked at of a message.
#[derive(Deserialize)]
struct HandshakeEnvelope<'a> {
    id: Option<Value>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    error: Option<serde::de::IgnoredAny>,
}

impl HandshakeGate {
    pub(crate) fn new() -> Self {
        Self { handshake: watch::Sender::new(HandshakeState::Open) }
    }

    /// Gives the client's lines; none behind an `initialize` before that is answered.
    pub(crate) fn hold_back(self: Arc<Self>, lines: IncomingLines) -> IncomingLines {
        let held = stream::unfold((lines, self), |(mut lines, gate)| async move {
            let mut handshake = gate.handshake.subscribe();
            // The sender is the gate itself, so this can only end well.
            let _ = handshake.wait_for(|state| !matches!(state, HandshakeState::Asked(_))).await;
            drop(handshake);
            let line = lines.next().await?;
            if let Ok(line) = &line {
                gate.on_incoming(line);
            }
            Some((line, (lines, gate)))
        });
        held.boxed()
    }

    fn on_incoming(&self, line: &str) {
        if *self.handshake.borrow() != HandshakeState::Open {
            return;
        }
        let Ok(HandshakeEnvelope { id: Some(id), method: Some(method), .. }) = serde_json::from_str(line)
        else {
            return;
        };
        if method == "initialize" {
            self.handshake.send_replace(HandshakeState::Asked(id));
        }
    }

    /// Notes a line that leaves for the client.
    pub(crate) fn on_outgoing(&self, line: &str) {
        let next = match &*self.handshake.borrow() {
            HandshakeState::Asked(id) => handshake_after_answer(line, id),
            HandshakeState::Open | HandshakeState::Done => None,
        };
        if let Some(next) = next {
            self.handshake.send_replace(next);
        }
    }
}

/// How far a connection is after a line to its client; `None` where that is no answer to `initialize`.
fn handshake_after_answer(line: &str, asked: &Value) -> Option<HandshakeState> {
    let HandshakeEnvelope { id, method, error } = serde_json::from_str(line).ok()?;
    // A request that cannot be read is answered without its id.
    let is_answer = method.is_none() && id.is_none_or(|id| id == *asked || id.is_null());
    is_answer.then_some(if error.is_some() { HandshakeState::Open } else { HandshakeState::Done })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures_util::FutureExt;

    use super::*;

    /// Shows which lines of a client come through, and which only after an answer leaves (`> `).
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
    fn what_comes_behind_initialize_waits_for_its_answer() {
        let (hello, list) = (r#"{"id":1,"method":"initialize"}"#, r#"{"id":2,"method":"session/list"}"#);
        let (update, answer) = (r#"{"method":"session/update"}"#, r#"{"id":1,"result":{}}"#);
        check_passed_lines(
            &[hello, list, &format!("> {update}"), r#"> {"id":7,"result":{}}"#, &format!("> {answer}")],
            &[hello, &format!("> {update}"), r#"> {"id":7,"result":{}}"#, &format!("> {answer}"), list],
        );
        // What is no request, or comes before, holds nothing up.
        check_passed_lines(
            &[list, "{", r#"{"method":"initialize"}"#, list],
            &[list, "{", r#"{"method":"initialize"}"#, list],
        );
    }

    #[test]
    fn an_initialize_that_was_refused_may_come_again() {
        let hello = r#"{"id":"a","method":"initialize"}"#;
        let (refused, answer) = (r#"{"id":null,"error":{}}"#, r#"{"id":"a","result":{}}"#);
        check_passed_lines(
            &[hello, hello, "x", &format!("> {refused}"), &format!("> {answer}")],
            &[hello, &format!("> {refused}"), hello, &format!("> {answer}"), "x"],
        );
    }
}
