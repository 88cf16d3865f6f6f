//! The end of the program: an exit code for scripts, a message and a hint for users.

use std::{io, process::ExitCode};

use crow_core::FailureKind;
use crow_store::StoreError;

use crate::settings::ConfigError;

/// Exit codes. The numbers are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CliExitCode {
    Success = 0,
    Failed = 1,
    /// The command line is invalid.
    Usage = 2,
    /// The configuration is missing or invalid.
    Config = 3,
    NoSession = 4,
    /// Permission was required and there was no terminal to ask on.
    Denied = 5,
    /// A limit on turns or cost was reached.
    Limit = 6,
    /// The user interrupted the program.
    Interrupted = 130,
}

/// An exit before the work was done.
#[derive(Debug, Clone)]
pub(crate) struct CliError {
    code: CliExitCode,
    message: Option<String>,
    hint: Option<String>,
    /// The kind of the failure, if it is known better than from the exit code.
    kind: Option<FailureKind>,
}

impl CliError {
    /// An error with a message: lower case, no full stop.
    pub(crate) fn new(code: CliExitCode, message: impl Into<String>) -> Self {
        Self { code, message: Some(message.into()), hint: None, kind: None }
    }

    /// An exit without a message, because everything has been reported.
    pub(crate) fn without_message(code: CliExitCode) -> Self {
        Self { code, message: None, hint: None, kind: None }
    }

    /// Drops the message and the hint, which have been reported.
    pub(crate) fn into_reported(self) -> Self {
        Self::without_message(self.code)
    }

    /// An error about an unknown session.
    pub(crate) fn no_session(id: &str) -> Self {
        let error = Self::new(CliExitCode::NoSession, format!("there is no session {id}"));
        error.with_hint("`crow-cli inspect` lists the sessions")
    }

    pub(crate) fn code(&self) -> CliExitCode {
        self.code
    }

    pub(crate) fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    /// Returns the kind of the failure, as scripts see it.
    pub(crate) fn kind(&self) -> FailureKind {
        let by_code = match self.code {
            CliExitCode::Usage => FailureKind::InvalidValue,
            CliExitCode::Config => FailureKind::Config,
            CliExitCode::NoSession => FailureKind::SessionNotFound,
            CliExitCode::Success
            | CliExitCode::Failed
            | CliExitCode::Denied
            | CliExitCode::Limit
            | CliExitCode::Interrupted => FailureKind::Internal,
        };
        self.kind.unwrap_or(by_code)
    }

    pub(crate) fn with_kind(self, kind: FailureKind) -> Self {
        Self { kind: Some(kind), ..self }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Prints message and hint to `stderr` and returns the exit code.
    pub(crate) fn report(&self, stderr: &mut impl io::Write) -> ExitCode {
        let lines = [("error", &self.message), ("hint", &self.hint)];
        for (label, text) in lines.into_iter().filter_map(|(label, text)| Some((label, text.as_ref()?))) {
            // A closed stderr is not an error.
            let _ = writeln!(stderr, "{label}: {text}");
        }
        ExitCode::from(self.code as u8)
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        let code = match error {
            ConfigError::UnknownModel { .. } => CliExitCode::Usage,
            ConfigError::Unreadable { .. }
            | ConfigError::Invalid { .. }
            | ConfigError::NotConfigured { .. }
            | ConfigError::NoHome
            | ConfigError::NotUtf8 { .. } => CliExitCode::Config,
        };
        Self { code, message: Some(error.to_string()), hint: error.hint(), kind: None }
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        if let StoreError::NoSession(id) = &error {
            return Self::no_session(id.as_str());
        }
        Self::new(CliExitCode::Failed, error.to_string())
    }
}

/// An error while writing results; a reader that closes early, such as `head`, is not an error.
impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::without_message(CliExitCode::Success);
        }
        Self::new(CliExitCode::Failed, format!("could not write the output: {error}"))
    }
}
