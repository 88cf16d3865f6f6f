//! Identifiers. Each is created once, at the boundary, and then only compared.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// Wraps an external identifier.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// Returns the external form.
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
    /// A session, by the client's identifier.
    SessionId
}
id! {
    /// A message of a session: a prompt or a reply. The same live and in replay.
    MessageId
}
/// A tool call, unique within its session for any identifier of the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId {
    reply_seq: u64,
    index: usize,
}

impl MessageId {
    /// Returns the identifier of the message with sequence number `seq`.
    pub fn from_seq(seq: u64) -> Self {
        Self(format!("msg-{seq}"))
    }

    /// Returns the sequence number, if the identifier has one.
    pub fn seq(&self) -> Option<u64> {
        self.0.strip_prefix("msg-")?.parse().ok()
    }
}

impl CallId {
    /// Returns the identifier of call `index` in the reply with sequence number `reply`.
    pub fn from_position(reply_seq: u64, index: usize) -> Self {
        Self { reply_seq, index }
    }

    /// Returns the sequence number of the reply with the call.
    pub fn reply_seq(self) -> u64 {
        self.reply_seq
    }

    /// Parses the output of [`fmt::Display`].
    pub fn parse(text: &str) -> Option<Self> {
        let (reply, index) = text.strip_prefix("call-")?.split_once('-')?;
        Some(Self { reply_seq: reply.parse().ok()?, index: index.parse().ok()? })
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call-{}-{}", self.reply_seq, self.index)
    }
}
