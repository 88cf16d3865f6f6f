//! Earlier prompts of all sessions: stepping through those of this project, and searching all of them.

use super::composer::buffer::DraftBuffer;

/// Prompts that are kept; older ones are forgotten.
pub(crate) const ENTRIES_MAX: usize = 2_000;

/// A prompt of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HistoryEntry {
    /// The working directory it was typed in.
    pub(crate) project: String,
    pub(crate) text: String,
}

/// The result of a step to a newer prompt.
#[derive(Debug, Clone)]
pub(crate) enum NewerPrompt {
    Entry(String),
    /// The composer from before the first step, with its images.
    Draft(DraftBuffer),
}

/// Earlier prompts, the oldest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct PromptHistory {
    entries: Vec<HistoryEntry>,
    project: String,
    /// The entry that is shown in the composer.
    position: Option<usize>,
    /// The composer before the first step.
    draft: DraftBuffer,
}

impl PromptHistory {
    pub(crate) fn new(project: String, entries: Vec<HistoryEntry>) -> Self {
        Self { entries, project, position: None, draft: DraftBuffer::default() }
    }

    /// Adds entries from earlier sessions, which are older than all that are there.
    pub(crate) fn prepend(&mut self, mut older: Vec<HistoryEntry>) {
        older.append(&mut self.entries);
        self.entries = older;
        self.position = None;
    }

    /// Adds a prompt; returns the entry to be stored, unless it repeats the last one.
    pub(crate) fn add(&mut self, text: &str) -> Option<HistoryEntry> {
        self.position = None;
        let is_repeated = self.entries.last().is_some_and(|last| last.text == text);
        if text.trim().is_empty() || is_repeated {
            return None;
        }
        let entry = HistoryEntry { project: self.project.clone(), text: text.to_owned() };
        self.entries.push(entry.clone());
        if self.entries.len() > ENTRIES_MAX {
            self.entries.remove(0);
        }
        Some(entry)
    }

    /// Steps to the older prompt of this project. `current` is what the composer has now.
    pub(crate) fn step_back(&mut self, current: &DraftBuffer) -> Option<String> {
        let end = self.position.unwrap_or(self.entries.len());
        let index = self.entries[..end].iter().rposition(|entry| entry.project == self.project)?;
        if self.position.is_none() {
            self.draft = current.clone();
        }
        self.position = Some(index);
        Some(self.entries[index].text.clone())
    }

    /// Steps to the newer prompt of this project, and last to the draft from before the first step.
    pub(crate) fn step_forward(&mut self) -> Option<NewerPrompt> {
        let start = self.position? + 1;
        let newer = self.entries[start..].iter().position(|entry| entry.project == self.project);
        self.position = newer.map(|offset| start + offset);
        Some(match self.position {
            Some(index) => NewerPrompt::Entry(self.entries[index].text.clone()),
            None => NewerPrompt::Draft(std::mem::take(&mut self.draft)),
        })
    }

    /// Forgets the position: the text was edited.
    pub(crate) fn stop_stepping(&mut self) {
        self.position = None;
    }

    /// Finds the prompts with all words of a query, the newest first and each once; those of this project come first.
    pub(crate) fn find_matches(&self, query: &str) -> Vec<&str> {
        let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
        let is_match = |entry: &&HistoryEntry| {
            let text = entry.text.to_lowercase();
            words.iter().all(|word| text.contains(word.as_str()))
        };
        let (mut ours, mut others) = (Vec::new(), Vec::new());
        for entry in self.entries.iter().rev().filter(is_match) {
            let list = if entry.project == self.project { &mut ours } else { &mut others };
            list.push(entry.text.as_str());
        }
        let mut seen = std::collections::HashSet::new();
        ours.into_iter().chain(others).filter(|text| seen.insert(*text)).collect()
    }
}

/// The search in earlier prompts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HistorySearch {
    pub(crate) query: String,
    /// The match that is shown, counted from the newest.
    pub(crate) index: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history() -> PromptHistory {
        let entry = |(project, text): &(&str, &str)| HistoryEntry {
            project: (*project).into(),
            text: (*text).into(),
        };
        let entries = [("here", "one"), ("there", "two"), ("here", "Three four"), ("here", "one")];
        PromptHistory::new("here".into(), entries.iter().map(entry).collect())
    }

    #[test]
    fn steps_stay_in_the_project_and_return_to_the_draft() {
        let mut history = history();
        let mut draft = DraftBuffer::default();
        draft.set_text("draft");
        let back: Vec<_> = (0..4).map(|_| history.step_back(&draft)).collect();
        assert_eq!(back, [Some("one".into()), Some("Three four".into()), Some("one".into()), None]);
        let text = |newer| match newer {
            NewerPrompt::Entry(text) => text,
            NewerPrompt::Draft(draft) => draft.full_text(),
        };
        let forward: Vec<_> = (0..4).map(|_| history.step_forward().map(text)).collect();
        let expected = [Some("Three four".into()), Some("one".into()), Some("draft".into()), None];
        assert_eq!(forward, expected);
    }

    #[test]
    fn search_finds_all_words_and_prefers_the_project() {
        let history = history();
        assert_eq!(history.find_matches(""), ["one", "Three four", "two"]);
        assert_eq!(history.find_matches("FOUR three"), ["Three four"]);
        assert_eq!(history.find_matches("o"), ["one", "Three four", "two"]);
        assert!(history.find_matches("none").is_empty());
    }

    #[test]
    fn repeated_prompts_are_stored_once() {
        let mut history = history();
        assert_eq!(history.add("one"), None);
        assert_eq!(history.add(" "), None);
        assert_eq!(history.add("new").map(|entry| entry.text), Some("new".into()));
    }
}
