//! Errors and warnings of a configuration. They give locations and expectations, never values: a value may be a key.

use std::{fmt, io, path::PathBuf};

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("could not read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{}:{line}: {problem}", path.display())]
    Invalid {
        path: PathBuf,
        /// Line number, from 1.
        line: u64,
        /// The problem and what was expected.
        problem: String,
    },
    #[error("no model is configured in {}", path.display())]
    NotConfigured {
        /// The configuration file that is missing or empty.
        path: PathBuf,
    },
    #[error("unknown model {name:?}")]
    UnknownModel {
        /// The requested model.
        name: String,
        /// The most similar name.
        nearest: Option<String>,
        /// The configured models.
        names: Vec<String>,
    },
    /// HOME is not set and no directory was given.
    #[error("the configuration directory is unknown because HOME is not set or is not UTF-8")]
    NoHome,
    /// Such a directory cannot be used in a database, a command line or a message.
    #[error("the path of the configuration directory {} is not UTF-8", path.display())]
    NotUtf8 { path: PathBuf },
}

impl ConfigError {
    /// Returns how to fix the error.
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
                Some(format!("{suggestion}configured models: {}", names.join(", ")))
            }
            Self::NoHome | Self::NotUtf8 { .. } => {
                Some("give the directory with --config-dir or CROW_CONFIG_DIR".to_owned())
            }
        }
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the system has many errors and grows more")]
fn unreadable_hint(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::NotADirectory => {
            "there is a file in the place of a directory; move it away, or give another directory with --config-dir"
        }
        io::ErrorKind::IsADirectory => "there is a directory in the place of a file; move it away",
        io::ErrorKind::InvalidData => "save the file as UTF-8 text",
        _ => "check the owner and the permissions of the file",
    }
}

/// A problem in a configuration that is usable anyway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigWarning {
    pub(crate) path: PathBuf,
    /// Line number, from 1.
    pub(crate) line: u64,
    /// The problem, or the key without effect.
    pub(crate) text: String,
    pub(crate) kind: ConfigWarningKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfigWarningKind {
    /// Possibly a mistake.
    Suspicious,
    /// A key of an earlier version without effect in this one.
    Retired,
}

impl fmt::Display for ConfigWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path.display(), self.line, self.text)
    }
}
