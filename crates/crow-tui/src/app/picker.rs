//! A list to choose from, with a search. Knows neither what the entries are nor what choosing one does.

/// The subject of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PickerKind {
    /// Stored sessions.
    Sessions,
    /// The values of a configuration option with this ID.
    Option(String),
    /// Earlier prompts of the session, by their message.
    EarlierPrompts,
    /// Colours.
    Theme,
    /// The sessions that the session started.
    Children,
    /// The ways to go back to an earlier prompt.
    GoBack,
}

/// One entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PickerEntry {
    /// The choice, as its receiver knows it.
    pub(crate) value: String,
    pub(crate) label: String,
    pub(crate) detail: String,
    pub(crate) is_current: bool,
}

/// A list with its search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListPicker {
    pub(crate) kind: PickerKind,
    pub(crate) title: String,
    pub(crate) query: String,
    /// The selected one of the matches.
    pub(crate) selected: usize,
    entries: Vec<PickerEntry>,
}

impl ListPicker {
    /// Selects the current entry, if there is one.
    pub(crate) fn new(kind: PickerKind, title: impl Into<String>, entries: Vec<PickerEntry>) -> Self {
        let selected = entries.iter().position(|entry| entry.is_current).unwrap_or(0);
        Self { kind, title: title.into(), query: String::new(), selected, entries }
    }

    /// Shows other entries; the selection stays at its place.
    pub(crate) fn replace_entries(&mut self, entries: Vec<PickerEntry>) {
        self.entries = entries;
        self.selected = self.selected.min(self.matches().len().saturating_sub(1));
    }

    /// The entries with all words of the query.
    pub(crate) fn matches(&self) -> Vec<&PickerEntry> {
        let words: Vec<String> = self.query.split_whitespace().map(str::to_lowercase).collect();
        let is_match = |entry: &&PickerEntry| {
            let text = format!("{} {} {}", entry.value, entry.label, entry.detail).to_lowercase();
            words.iter().all(|word| text.contains(word.as_str()))
        };
        self.entries.iter().filter(is_match).collect()
    }

    /// The selected entry.
    pub(crate) fn chosen(&self) -> Option<&PickerEntry> {
        self.matches().get(self.selected).copied()
    }

    pub(crate) fn select_previous(&mut self) {
        self.selected = self.selected.saturating_sub(1);
    }

    pub(crate) fn select_next(&mut self) {
        self.selected = (self.selected + 1).min(self.matches().len().saturating_sub(1));
    }

    /// Adds a letter to the query.
    pub(crate) fn push_letter(&mut self, letter: char) {
        self.query.push(letter);
        self.selected = 0;
    }

    /// Removes the last letter of the query.
    pub(crate) fn pop_letter(&mut self) {
        self.query.pop();
        self.selected = 0;
    }
}
