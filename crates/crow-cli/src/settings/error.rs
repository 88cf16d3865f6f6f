//! What can be wrong with a configuration. Names places and expectations, never values: a value may be a key.

use std::{fmt, io, path::PathBuf};

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// The file is there and cannot be read.
    #[error("could not read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file says something that cannot be meant.
    #[error("{}:{line}: {problem}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: u64,
        /// What is wrong and what was expected.
        problem: String,
    },
    /// No model is configured.
    #[error("no model is configured in {}", path.display())]
    NotConfigured {
        /// The file that would configure it.
        path: PathBuf,
    },
    /// A model was asked for that the configuration does not have.
    #[error("there is no model {name:?} in the configuration")]
    UnknownModel {
        /// What was asked for.
        name: String,
        /// What was probably meant.
        nearest: Option<String>,
        /// What there is.
        names: Vec<String>,
    },
    /// Nobody said where the configuration is.
    #[error("the configuration folder is unknown because HOME is not set, or is not UTF-8")]
    NoHome,
    /// The folder cannot be named in a database, a command line or a message.
    #[error("the name of the configuration folder {} is not UTF-8", path.display())]
    NotUtf8 {
        /// The folder.
        path: PathBuf,
    },
}

impl ConfigError {
    /// Says what to do about it.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Unreadable { source, .. } => Some(unreadable_hint(source.kind()).to_owned()),
            Self::Invalid { .. } => None,
            Self::NotConfigured { .. } => Some(
                "run `crow-cli init`, or set OPENAI_API_KEY or OPENROUTER_API_KEY and run `crow-cli init -y`"
                    .to_owned(),
            ),
            Self::UnknownModel { nearest, names, .. } => {
                let suggestion =
                    nearest.as_ref().map(|name| format!("did you mean {name}? ")).unwrap_or_default();
                Some(format!("{suggestion}there is: {}", names.join(", ")))
            }
            Self::NoHome | Self::NotUtf8 { .. } => {
                Some("name the folder with --config-dir or CROW_CONFIG_DIR".to_owned())
            }
        }
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the system has many errors and grows more")]
fn unreadable_hint(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::NotADirectory => {
            "a file is where a folder should be; move it away, or name another folder with --config-dir"
        }
        io::ErrorKind::IsADirectory => "a folder is where a file should be; move it away",
        io::ErrorKind::InvalidData => "save the file as UTF-8 text",
        _ => "check who owns the file and its permissions",
    }
}

/// Something odd in a configuration that can be used all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigWarning {
    /// The file.
    pub(crate) path: PathBuf,
    /// Its line, from 1.
    pub(crate) line: u64,
    /// What is odd, or the key that is of no use.
    pub(crate) text: String,
    /// Whether anybody has to look at it.
    pub(crate) kind: ConfigWarningKind,
}

/// Whether something odd in a configuration may be a mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfigWarningKind {
    /// It may be one.
    Suspicious,
    /// It is a key of an earlier version that has no meaning in this one.
    Retired,
}

impl fmt::Display for ConfigWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path.display(), self.line, self.text)
    }
}
