//! Names of things. Each is made once, at an edge, and compared as a whole ever after.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// Takes a name as it came from the outside.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// Shows the name as it goes to the outside.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id! {
    /// A session as the client names it.
    SessionId
}
id! {
    /// A message of a session: a prompt or a reply. The same live and in replay.
    MessageId
}
/// A tool call, unique within its session whatever the provider called it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId {
    reply: u64,
    index: usize,
}

impl MessageId {
    /// Names the message at place `seq` of a session.
    pub fn from_seq(seq: u64) -> Self {
        Self(format!("msg-{seq}"))
    }
}

impl CallId {
    /// Names call `index` of the reply at place `reply` of a session.
    pub fn from_position(reply: u64, index: usize) -> Self {
        Self { reply, index }
    }

    /// The place of the reply that made the call.
    pub fn reply_seq(self) -> u64 {
        self.reply
    }

    /// Reads a name that [`fmt::Display`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        let (reply, index) = text.strip_prefix("call-")?.split_once('-')?;
        Some(Self { reply: reply.parse().ok()?, index: index.parse().ok()? })
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call-{}-{}", self.reply, self.index)
    }
}
