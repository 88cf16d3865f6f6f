//! Failures of turns and requests, with the kinds that clients and scripts distinguish.

use std::fmt;

/// A failure, for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The kind, for callers that branch on it.
    pub kind: FailureKind,
    /// The event, its reason, and the next step.
    pub message: String,
}

impl Failure {
    /// Creates a failure.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Returns the message as a clause, to follow a colon.
    pub fn to_clause(&self) -> String {
        let mut letters = self.message.trim_end_matches('.').chars();
        letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
    }
}

/// The kinds of failure that clients and scripts distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// No such session.
    SessionNotFound,
    /// A value outside the allowed range.
    InvalidValue,
    /// A login is required.
    AuthRequired,
    /// The provider rejected the key.
    ProviderAuth,
    /// The provider's rate limit.
    ProviderRate,
    /// The provider is overloaded.
    ProviderOverloaded,
    /// The provider rejected the request.
    ProviderRejected,
    /// The provider has no such model.
    ModelNotFound,
    /// The conversation exceeds the model's context window.
    ContextOverflow,
    /// The provider is unreachable, or the connection was interrupted.
    Connection,
    /// The provider's answer violates the protocol.
    Protocol,
    /// The database failed.
    Store,
    /// The configuration is missing or invalid.
    Config,
    /// An internal error.
    Internal,
}

impl FailureKind {
    const ALL: [Self; 14] = [
        Self::SessionNotFound,
        Self::InvalidValue,
        Self::AuthRequired,
        Self::ProviderAuth,
        Self::ProviderRate,
        Self::ProviderOverloaded,
        Self::ProviderRejected,
        Self::ModelNotFound,
        Self::ContextOverflow,
        Self::Connection,
        Self::Protocol,
        Self::Store,
        Self::Config,
        Self::Internal,
    ];

    /// Parses the output of [`FailureKind::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Returns the value of `data.kind` in an error.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SessionNotFound => "session_not_found",
            Self::InvalidValue => "invalid_value",
            Self::AuthRequired => "auth_required",
            Self::ProviderAuth => "provider_auth",
            Self::ProviderRate => "provider_rate",
            Self::ProviderOverloaded => "provider_overloaded",
            Self::ProviderRejected => "provider_rejected",
            Self::ModelNotFound => "model_not_found",
            Self::ContextOverflow => "context_overflow",
            Self::Connection => "connection",
            Self::Protocol => "protocol",
            Self::Store => "store",
            Self::Config => "config",
            Self::Internal => "internal",
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
