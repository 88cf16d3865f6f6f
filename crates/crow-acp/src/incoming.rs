//! What a client asks of the agent, in our words.

use std::fmt;
use std::path::PathBuf;

use crow_core::{Failure, Options, Part, SessionId, TurnEnd};

/// One thing a client wants.
#[derive(Debug)]
pub enum Incoming {
    /// The client said hello; a good moment to load what sessions need.
    Hello,
    /// A new session.
    NewSession {
        /// Where it works; absolute.
        cwd: PathBuf,
        /// Where the answer goes.
        answer: Answer<Opened>,
    },
    /// A stored session, with everything the client saw of it.
    LoadSession {
        /// Which.
        session: SessionId,
        /// Where it works; absolute.
        cwd: PathBuf,
        /// Where the answer goes.
        answer: Answer<Opened>,
    },
    /// The stored sessions, newest first.
    ListSessions {
        /// Only those that work here.
        cwd: Option<PathBuf>,
        /// Where the page before ended.
        cursor: Option<String>,
        /// Where the answer goes.
        answer: Answer<SessionPage>,
    },
    /// A prompt; answered when its turn has ended.
    Prompt {
        /// In which session.
        session: SessionId,
        /// What was said.
        parts: Vec<Part>,
        /// Where the answer goes.
        answer: Answer<TurnEnd>,
    },
    /// Stop the turn that runs and forget the prompts that wait.
    Cancel {
        /// In which session.
        session: SessionId,
    },
    /// Change an option: `mode` or `model`.
    SetOption {
        /// In which session.
        session: SessionId,
        /// Which option.
        option: String,
        /// Its new value.
        value: String,
        /// Where the answer goes.
        answer: Answer<Options>,
    },
}

/// A session that opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// Its name.
    pub session: SessionId,
    /// Its options.
    pub options: Options,
}

/// A stored session, for a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// Its name.
    pub session: SessionId,
    /// Where it works.
    pub cwd: PathBuf,
    /// What it is about.
    pub title: Option<String>,
    /// When it last changed, RFC 3339.
    pub updated: String,
}

/// A page of stored sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPage {
    /// The sessions, newest first.
    pub sessions: Vec<SessionInfo>,
    /// Where the next page starts, if there is one.
    pub next: Option<String>,
}

/// The one answer a request gets. Dropped unanswered, the client is told of an internal error.
pub struct Answer<T>(Box<dyn FnOnce(Result<T, Failure>) + Send>);

impl<T> Answer<T> {
    /// Wraps whatever carries the answer away.
    pub fn new(send: impl FnOnce(Result<T, Failure>) + Send + 'static) -> Self {
        Self(Box::new(send))
    }

    /// Answers.
    pub fn give(self, result: Result<T, Failure>) {
        (self.0)(result);
    }
}

impl<T> fmt::Debug for Answer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answer")
    }
}
