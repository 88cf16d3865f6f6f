//! What is seen of a child while it works: what it says, which tools it runs, which files it changes. Bounded, whatever
//! the child says. Must never know where it is shown.

use std::collections::{BTreeMap, VecDeque};

use crow_acp::AgentUpdate;
use crow_core::{ToolCallContent, ToolCallStatus, ToolKind};

/// Calls that are seen at a time; of those before them the number is enough.
const CALLS_SHOWN: usize = 12;

/// What is seen of its words while it works.
const ANSWER_SHOWN_CHARS: usize = 1_500;

/// Of a title a line is seen.
const TITLE_CHARS_MAX: usize = 120;

/// The longest answer that is kept; what comes before is still in the child's own session.
const ANSWER_BYTES_MAX: usize = 256 * 1024;

/// Files that are counted; whoever changes more had better count them with git.
const FILES_MAX: usize = 500;

/// Of each, the longest text that is compared.
const FILE_BYTES_MAX: usize = 512 * 1024;

/// Bytes of all texts that are kept to be compared.
const FILES_BYTES_MAX: usize = 8 * 1024 * 1024;

/// What is seen of one round.
#[derive(Debug, Default)]
pub(crate) struct ChildView {
    calls: VecDeque<ViewedCall>,
    n_calls: usize,
    /// Its words since its last call, which at the end are its answer.
    answer: String,
    /// It said more than is kept.
    is_truncated: bool,
    /// Words that came since the last call; a message after a call begins a new answer.
    starts_new_answer: bool,
    changes: BTreeMap<String, ViewedChange>,
    n_bytes: usize,
    n_files_uncounted: usize,
}

#[derive(Debug)]
struct ViewedCall {
    id: String,
    title: String,
    kind: Option<ToolKind>,
    status: ToolCallStatus,
}

/// What became of a file.
#[derive(Debug)]
struct ViewedChange {
    old: Option<String>,
    new: String,
}

/// A file that a child changed, and by how many lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChildFileChange {
    pub(crate) path: String,
    pub(crate) n_added: usize,
    pub(crate) n_removed: usize,
}

impl ChildView {
    /// Takes in what was heard; tells whether there is something else to see.
    pub(crate) fn apply_update(&mut self, update: &AgentUpdate) -> bool {
        match update {
            AgentUpdate::Text(text) => self.push_text(text),
            AgentUpdate::Call { id, title, kind, status, content, input: _ } => {
                self.update_call(id, title.as_deref(), *status);
                if let (Some(call), Some(kind)) = (self.seen_mut(id), kind) {
                    call.kind = Some(*kind);
                }
                content.iter().flatten().for_each(|content| self.apply_content(content));
            }
            AgentUpdate::Notice(text) | AgentUpdate::Compaction(text) => {
                self.n_calls += 1;
                self.push_call(ViewedCall {
                    id: String::new(),
                    title: single_line(text),
                    kind: None,
                    status: ToolCallStatus::Done,
                });
            }
            AgentUpdate::Prompt(_)
            | AgentUpdate::Thought(_)
            | AgentUpdate::Plan(_)
            | AgentUpdate::Title(_)
            | AgentUpdate::Usage { .. }
            | AgentUpdate::Mode(_)
            | AgentUpdate::Commands(_)
            | AgentUpdate::Outcome(_) => return false,
        }
        true
    }

    fn push_text(&mut self, text: &str) {
        if std::mem::take(&mut self.starts_new_answer) {
            self.answer.clear();
            self.is_truncated = false;
        }
        self.answer.push_str(text);
        let n_excess = self.answer.len().saturating_sub(ANSWER_BYTES_MAX);
        if n_excess > 0 {
            // Its end is what a parent waits for. Half is dropped, so that not every word moves the rest.
            let from = self.answer.ceil_char_boundary(n_excess.max(ANSWER_BYTES_MAX / 2));
            self.answer.drain(..from);
            self.is_truncated = true;
        }
    }

    fn update_call(&mut self, id: &str, title: Option<&str>, status: Option<ToolCallStatus>) {
        if let Some(call) = self.seen_mut(id) {
            if let Some(title) = title {
                call.title = single_line(title);
            }
            call.status = status.unwrap_or(call.status);
        } else if let Some(title) = title {
            // Its words from here on are another answer.
            self.starts_new_answer = true;
            self.n_calls += 1;
            let status = status.unwrap_or(ToolCallStatus::Pending);
            self.push_call(ViewedCall { id: id.to_owned(), title: single_line(title), kind: None, status });
        }
    }

    fn seen_mut(&mut self, id: &str) -> Option<&mut ViewedCall> {
        self.calls.iter_mut().rev().find(|call| call.id == id)
    }

    /// The kind that a call was announced with.
    pub(crate) fn kind(&self, id: &str) -> Option<ToolKind> {
        self.calls.iter().rev().find(|call| call.id == id)?.kind
    }

    fn push_call(&mut self, call: ViewedCall) {
        self.calls.push_back(call);
        if self.calls.len() > CALLS_SHOWN {
            self.calls.pop_front();
        }
    }

    fn apply_content(&mut self, content: &ToolCallContent) {
        let ToolCallContent::Diff { path, old, new } = content else { return };
        let n_bytes = old.as_ref().map_or(0, String::len) + new.len();
        if let Some(change) = self.changes.get_mut(path) {
            if new.len() <= FILE_BYTES_MAX && self.n_bytes + new.len() <= FILES_BYTES_MAX {
                self.n_bytes = (self.n_bytes + new.len()).saturating_sub(change.new.len());
                change.new.clone_from(new);
            }
        } else if self.changes.len() < FILES_MAX
            && n_bytes <= FILE_BYTES_MAX
            && self.n_bytes + n_bytes <= FILES_BYTES_MAX
        {
            self.n_bytes += n_bytes;
            self.changes.insert(path.clone(), ViewedChange { old: old.clone(), new: new.clone() });
        } else {
            self.n_files_uncounted += 1;
        }
    }

    /// Its words since its last call, and whether their beginning is missing.
    pub(crate) fn answer(&self) -> (&str, bool) {
        (self.answer.trim(), self.is_truncated)
    }

    /// The files it changed, and how many more there are that were not counted.
    pub(crate) fn changed_files(&self) -> (Vec<ChildFileChange>, usize) {
        let files = self.changes.iter().filter(|(_, change)| change.old.as_deref() != Some(&*change.new));
        let files = files.map(|(path, change)| {
            let diff = similar::TextDiff::from_lines(change.old.as_deref().unwrap_or_default(), &change.new);
            let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
            let (n_added, n_removed) = (count(similar::ChangeTag::Insert), count(similar::ChangeTag::Delete));
            ChildFileChange { path: path.clone(), n_added, n_removed }
        });
        (files.collect(), self.n_files_uncounted)
    }

    /// What it did to files, for a client.
    pub(crate) fn file_diffs(&self) -> impl Iterator<Item = ToolCallContent> + '_ {
        self.changes.iter().map(|(path, change)| ToolCallContent::Diff {
            path: path.clone(),
            old: change.old.clone(),
            new: change.new.clone(),
        })
    }

    /// The calls it made, a line each.
    pub(crate) fn render_calls(&self) -> String {
        let mut text = String::new();
        let n_before = self.n_calls.saturating_sub(self.calls.len());
        if n_before > 0 {
            text.push_str(&format!("… {n_before} before\n"));
        }
        for call in &self.calls {
            let symbol = match call.status {
                ToolCallStatus::Pending => "·",
                ToolCallStatus::Running => "▸",
                ToolCallStatus::Done => "✓",
                ToolCallStatus::Failed => "✗",
            };
            text.push_str(&format!("{symbol} {}\n", call.title));
        }
        text
    }

    /// What is seen of it now.
    pub(crate) fn render_view(&self) -> String {
        let mut text = self.render_calls();
        let answer = self.answer.trim();
        let n_hidden = answer.chars().count().saturating_sub(ANSWER_SHOWN_CHARS);
        if n_hidden > 0 {
            text.push('…');
        }
        text.extend(answer.chars().skip(n_hidden));
        text.truncate(text.trim_end().len());
        text
    }
}

/// Makes one line of what may be anything.
pub(crate) fn single_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    match line.char_indices().nth(TITLE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
pub(in crate::children) mod tests;
