//! What the model reads of commands and jobs.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use crow_core::{Outcome, Status};
use crow_process::{Ended, Output};

use super::jobs::Entry;
use crate::{Progress, tool::CANCELLED};

/// How a command ended, whoever ran it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum How {
    /// As we know it.
    Here(Ended),
    /// By a signal, as the client names it.
    InClient { signal: String },
    /// Nobody knows.
    Lost(String),
}

/// What came of starting a command.
#[derive(Debug)]
pub(super) enum Came {
    /// It is over.
    Ended(How, Output),
    /// It is a job now, for some waited for as long.
    Runs { entry: Arc<Entry>, output: Output, waited: Option<Duration> },
}

/// What a call says.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) text: String,
    pub(super) status: Status,
}

impl Came {
    /// The directory that a command ended in, where it said so.
    pub(super) fn directory(&self) -> Option<&str> {
        match self {
            Self::Ended(_, output) => output.directory.as_deref(),
            Self::Runs { .. } => None,
        }
    }

    /// The end of what is drawn live.
    pub(super) fn exited(&self) -> Progress {
        let (code, signal) = match self {
            Self::Ended(How::Here(Ended::Exited(code)), _) => (Some(*code), None),
            Self::Ended(How::Here(Ended::Signalled(signal)), _) => (None, Some(*signal)),
            Self::Ended(..) | Self::Runs { .. } => (None, None),
        };
        Progress::Exited { code, signal }
    }

    /// Tells what came of a command with such a limit.
    pub(super) fn said(self, limit: Duration) -> Said {
        match self {
            Self::Ended(how, output) => {
                let mut text = text_of(output);
                if how == How::Here(Ended::Exited(0)) {
                    if text.is_empty() {
                        text.push_str("(no output)");
                    }
                    return Said { text, status: Status::Done };
                }
                text += &match how {
                    How::Here(Ended::TimedOut) => {
                        format!("stopped: it ran longer than {} s", limit.as_secs_f64())
                    }
                    How::Here(_) | How::InClient { .. } | How::Lost(_) => how.told(),
                };
                Said { text, status: Status::Failed }
            }
            Self::Runs { entry, output, waited } => {
                let mut text = text_of(output);
                // Writing to a string cannot fail.
                let _ = match waited {
                    Some(waited) => {
                        write!(
                            text,
                            "not done after {} s, it goes on as {}",
                            waited.as_secs_f64(),
                            entry.name
                        )
                    }
                    None => write!(text, "{} is running", entry.name),
                };
                let _ = write!(
                    text,
                    "; with is_input=true it is read (command empty) or typed to, with reset=true it is ended"
                );
                Said { text, status: Status::Done }
            }
        }
    }
}

impl How {
    fn told(&self) -> String {
        match self {
            Self::Here(Ended::Exited(code)) => format!("exit code {code}"),
            Self::Here(Ended::Signalled(signal)) => format!("ended by signal {signal}"),
            Self::Here(Ended::TimedOut) => "stopped: its time was over".into(),
            Self::Here(Ended::Cancelled) => CANCELLED.to_owned(),
            Self::InClient { signal } => format!("ended by signal {signal}"),
            Self::Lost(why) => format!("how it ended is not known: {why}"),
        }
    }
}

impl Said {
    pub(super) fn done(text: impl Into<String>) -> Self {
        Self { text: text.into(), status: Status::Done }
    }

    /// Adds a line behind it.
    pub(super) fn with(mut self, line: Option<String>) -> Self {
        if let Some(line) = line {
            if !self.text.ends_with('\n') {
                self.text.push('\n');
            }
            self.text += &line;
        }
        self
    }

    /// Puts other words in front.
    pub(super) fn after(self, before: &str) -> Self {
        Self { text: format!("{before}\n{}", self.text), ..self }
    }

    /// Makes an outcome of it, with what else there is to know.
    pub(super) fn outcome(self, ended: &[Arc<Entry>]) -> Outcome {
        let mut text = self.text;
        for entry in ended {
            if !text.ends_with('\n') {
                text.push('\n');
            }
            text += &ended_line(entry);
        }
        match self.status {
            Status::Failed => Outcome::failed(text),
            Status::Done | Status::Pending | Status::Running => Outcome::done(text),
        }
    }
}

/// Tells what a job said and how it stands.
pub(super) fn looked(entry: &Entry, ended: Option<&How>, output: Output) -> Said {
    let mut text = text_of(output);
    if text.is_empty() {
        text.push_str("(nothing new)\n");
    }
    let (line, status) = match ended {
        None => (format!("{} is running", entry.name), Status::Done),
        Some(how) => {
            let status = if *how == How::Here(Ended::Exited(0)) { Status::Done } else { Status::Failed };
            (format!("{} is over: {}", entry.name, how.told()), status)
        }
    };
    Said { text: text + &line, status }
}

/// Tells that a job has ended while nobody looked.
fn ended_line(entry: &Entry) -> String {
    let how = entry.ended().map(|how| how.told()).unwrap_or_default();
    format!("({} {} is over: {how}; what it still said can be read with is_input)", entry.name, entry.title)
}

/// The text of an output, and where the rest of it is.
fn text_of(output: Output) -> String {
    let mut text = output.text;
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    if let Some(spilled) = &output.spilled {
        let extent = if spilled.n_bytes == output.n_bytes { "all" } else { "the beginning" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "({extent} of the output is in {})", spilled.path.display());
    }
    text
}
