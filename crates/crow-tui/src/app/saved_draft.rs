//! The draft on disk: when the text of the composer has to be stored. Knows no file.

use std::time::{Duration, Instant};

/// A draft is stored when it has not changed for this long.
const SAVE_DELAY: Duration = Duration::from_millis(300);

/// The draft as it is stored, and the change that is not stored yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SavedDraft {
    stored: String,
    /// The latest text and the time to store it.
    changed: Option<(String, Instant)>,
}

impl SavedDraft {
    /// Records the text that is stored.
    pub(crate) fn mark_stored(&mut self, text: String) {
        (self.stored, self.changed) = (text, None);
    }

    /// Records the present text.
    pub(crate) fn note_text(&mut self, text: String, now: Instant) {
        let latest = self.changed.as_ref().map_or(&self.stored, |(text, _)| text);
        if *latest != text {
            self.changed = Some((text, now + SAVE_DELAY));
        }
    }

    /// The time at which a change has to be stored.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        self.changed.as_ref().map(|(_, due_at)| *due_at)
    }

    /// Takes the text that has to be stored by now, if it differs from the stored one.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<String> {
        self.changed.as_ref().filter(|(_, due_at)| *due_at <= now)?;
        self.take_changed()
    }

    /// Takes the text that is not stored yet.
    pub(crate) fn take_changed(&mut self) -> Option<String> {
        let (text, _) = self.changed.take()?;
        (text != self.stored).then(|| {
            self.stored.clone_from(&text);
            text
        })
    }
}
