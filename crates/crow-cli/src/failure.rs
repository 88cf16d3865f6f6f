//! How the program ends: one code for scripts, one sentence and one hint for people.

use std::{io, process::ExitCode};

use crow_store::StoreError;

use crate::settings::ConfigError;

/// What a script reads of the end. The numbers are a promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CliExitCode {
    /// All went well.
    Success = 0,
    /// The work failed.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// Nothing is configured, or wrongly.
    Config = 3,
    /// There is no such session.
    NoSession = 4,
    /// Permission was needed and nobody could be asked.
    Denied = 5,
    /// A limit of turns or spending was reached.
    Limit = 6,
    /// The person stopped it.
    Interrupted = 130,
}

/// An end before the work was done.
#[derive(Debug)]
pub(crate) struct CliError {
    code: CliExitCode,
    message: Option<String>,
    hint: Option<String>,
}

impl CliError {
    /// Ends with a sentence: lower case, no full stop.
    pub(crate) fn new(code: CliExitCode, message: impl Into<String>) -> Self {
        Self { code, message: Some(message.into()), hint: None }
    }

    /// Ends without a word, because everything was said already or nobody listens.
    pub(crate) fn without_message(code: CliExitCode) -> Self {
        Self { code, message: None, hint: None }
    }

    /// Ends because a session is not there.
    pub(crate) fn no_session(id: &str) -> Self {
        let error = Self::new(CliExitCode::NoSession, format!("there is no session {id}"));
        error.with_hint("`crow-cli inspect` lists the sessions")
    }

    /// Adds what to do next.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Says what happened on `stderr` and gives the code to end with.
    pub(crate) fn report(&self, stderr: &mut impl io::Write) -> ExitCode {
        let lines = [("error", &self.message), ("hint", &self.hint)];
        for (label, text) in lines.into_iter().filter_map(|(label, text)| Some((label, text.as_ref()?))) {
            // When stderr is gone there is nobody left to tell.
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
        Self { code, message: Some(error.to_string()), hint: error.hint() }
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

/// For writing results: a reader that has seen enough, such as `head`, is no failure.
impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::without_message(CliExitCode::Success);
        }
        Self::new(CliExitCode::Failed, format!("could not write the result: {error}"))
    }
}
