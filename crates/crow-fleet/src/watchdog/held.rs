//! The messages that a worker holds, as it tells its watchdog. Pure: lines in and out.

use std::collections::BTreeSet;

/// The beginning of every subject on which a message is acknowledged.
const ACK_PREFIX: &str = "$JS.ACK.";

/// Messages of one worker; it has no more slots.
const MESSAGES_MAX: usize = 1024;

/// The messages that a worker holds, by the subjects on which they are acknowledged.
#[derive(Debug, Default)]
pub(crate) struct HeldMessages {
    subjects: BTreeSet<String>,
}

impl HeldMessages {
    /// The line that says that the worker holds a message.
    pub(crate) fn hold_line(subject: &str) -> String {
        format!("hold {subject}")
    }

    /// The line that says that the worker is done with a message.
    pub(crate) fn release_line(subject: &str) -> String {
        format!("release {subject}")
    }

    /// Handles a line of the worker; others are ignored, as the unfinished last one of a killed worker.
    pub(crate) fn handle_line(&mut self, line: &str) {
        match line.split_once(' ') {
            Some(("hold", subject))
                if subject.starts_with(ACK_PREFIX) && self.subjects.len() < MESSAGES_MAX =>
            {
                self.subjects.insert(subject.to_owned());
            }
            Some(("release", subject)) => {
                self.subjects.remove(subject);
            }
            _ => {}
        }
    }

    pub(crate) fn into_subjects(self) -> Vec<String> {
        self.subjects.into_iter().collect()
    }
}
