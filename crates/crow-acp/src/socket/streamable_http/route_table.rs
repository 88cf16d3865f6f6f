//! Decides which event stream a message of the agent goes to. Pure.

use std::collections::{HashMap, HashSet};

use super::message_head::MessageHead;

/// Sessions of a connection with a stream of their own; clients have a few.
pub(super) const SESSIONS_MAX: usize = 1024;

/// Unanswered requests of a client whose stream is remembered; the answers to further ones go to the connection's.
const REQUESTS_MAX: usize = 1024;

/// An event stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StreamScope {
    Connection,
    Session(String),
}

/// A client's request without an answer.
struct UnansweredRequest {
    session: Option<String>,
    scope: StreamScope,
}

/// The streams of a connection and its unanswered requests.
#[derive(Default)]
pub(super) struct RouteTable {
    sessions: HashSet<String>,
    requests: HashMap<String, UnansweredRequest>,
}

impl RouteTable {
    /// Gives a session a stream; false if there are too many.
    pub(super) fn add_session(&mut self, session: &str) -> bool {
        if self.sessions.contains(session) {
            return true;
        }
        self.sessions.len() < SESSIONS_MAX && self.sessions.insert(session.to_owned())
    }

    /// Remembers where the answer to a client's request belongs.
    pub(super) fn record_request(&mut self, head: &MessageHead) {
        let (Some(id), Some(_)) = (&head.id, &head.method) else { return };
        if self.requests.len() == REQUESTS_MAX {
            return;
        }
        let scope = match &head.session {
            Some(session) if self.sessions.contains(session) => StreamScope::Session(session.clone()),
            Some(_) | None => StreamScope::Connection,
        };
        self.requests.insert(id.clone(), UnansweredRequest { session: head.session.clone(), scope });
    }

    /// Returns the stream of a message of the agent.
    ///
    /// A new session has a stream from the answer that names it on. Another session's messages are on the connection's
    /// stream until the client opens one, and until the requests from before are answered: the messages of a session
    /// keep their order.
    pub(super) fn route_message(&mut self, head: &MessageHead) -> StreamScope {
        if head.method.is_none() {
            let request = head.id.as_ref().and_then(|id| self.requests.remove(id));
            if let Some(session) = &head.result_session {
                // Without a stream its messages are on the connection's.
                self.add_session(session);
            }
            return request.map_or(StreamScope::Connection, |request| request.scope);
        }
        match &head.session {
            Some(session) if self.sessions.contains(session) && !self.is_awaited_by_connection(session) => {
                StreamScope::Session(session.clone())
            }
            Some(_) | None => StreamScope::Connection,
        }
    }

    /// Whether a request of the session will be answered on the connection's stream.
    fn is_awaited_by_connection(&self, session: &str) -> bool {
        let is_awaited = |request: &UnansweredRequest| {
            request.session.as_deref() == Some(session) && request.scope == StreamScope::Connection
        };
        self.requests.values().any(is_awaited)
    }
}
