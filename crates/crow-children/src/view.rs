//! The view of a running child: its text, its calls, its changed files. The size is bounded. Must not know where the
//! view is displayed.

use std::collections::{BTreeMap, VecDeque};

use crow_acp::AgentUpdate;
use crow_core::text_diff::{ChangeCounts, TextDiff};
use crow_core::{ToolCallContent, ToolCallStatus};

/// Calls in the view; of earlier ones only the number is displayed.
const CALLS_SHOWN: usize = 12;

/// Characters of the answer in the view.
const ANSWER_SHOWN_CHARS: usize = 1_500;

/// Characters of a title, which is one line.
const TITLE_CHARS_MAX: usize = 120;

/// The longest answer that is kept; earlier text is still in the child's session.
const ANSWER_BYTES_MAX: usize = 256 * 1024;

/// Files that are counted; git counts more reliably beyond that.
const FILES_MAX: usize = 500;

/// The longest text of a file that is compared.
const FILE_BYTES_MAX: usize = 512 * 1024;

/// Total size of the texts kept for comparison.
const FILES_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The view of one turn.
#[derive(Debug, Default)]
pub(crate) struct ChildView {
    calls: VecDeque<ViewedCall>,
    n_calls: usize,
    /// Text since the last call, which is the answer when the turn ends.
    answer: String,
    is_truncated: bool,
    /// Text after a call starts a new answer.
    starts_new_answer: bool,
    changes: BTreeMap<String, ViewedChange>,
    n_bytes: usize,
    n_files_uncounted: usize,
    /// True while a question of the child has the place of the view at the client.
    pub(crate) is_hidden: bool,
}

#[derive(Debug)]
struct ViewedCall {
    id: String,
    title: String,
    status: ToolCallStatus,
}

/// A change of one file.
#[derive(Debug)]
struct ViewedChange {
    old: Option<String>,
    new: String,
}

/// A file that a child changed, with the numbers of added and removed lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChildFileChange {
    pub(crate) path: String,
    pub(crate) n_added: usize,
    pub(crate) n_removed: usize,
}

/// The files that a child changed, and the number of files that were not counted.
#[derive(Debug)]
pub(crate) struct ChangedFiles {
    pub(crate) files: Vec<ChildFileChange>,
    pub(crate) n_uncounted: usize,
}

impl ChildView {
    /// Applies an update; returns whether the view has changed.
    pub(crate) fn apply_update(&mut self, update: &AgentUpdate) -> bool {
        match update {
            AgentUpdate::Text(text) => self.push_text(text),
            AgentUpdate::Call { id, title, kind: _, status, content, input: _ } => {
                self.update_call(id, title.as_deref(), *status);
                content.iter().flatten().for_each(|content| self.apply_content(content));
            }
            AgentUpdate::Notice(text) | AgentUpdate::Compaction(text) => {
                self.n_calls += 1;
                self.push_call(ViewedCall {
                    id: String::new(),
                    title: single_line(text),
                    status: ToolCallStatus::Completed,
                });
            }
            AgentUpdate::Prompt(_)
            | AgentUpdate::Thought(_)
            | AgentUpdate::Child { .. }
            | AgentUpdate::Plan(_)
            | AgentUpdate::Title(_)
            | AgentUpdate::Usage { .. }
            | AgentUpdate::Mode(_)
            | AgentUpdate::Commands(_)
            | AgentUpdate::Options(_)
            | AgentUpdate::CallOutput { .. }
            | AgentUpdate::CallResult { .. }
            | AgentUpdate::CallExit { .. }
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
            // The parent needs the end of it. Half is dropped at once, so that later additions rarely move the rest.
            let from = self.answer.ceil_char_boundary(n_excess.max(ANSWER_BYTES_MAX / 2));
            self.answer.drain(..from);
            self.is_truncated = true;
        }
    }

    /// Lets the next text begin a new answer.
    pub(crate) fn begin_answer(&mut self) {
        self.starts_new_answer = true;
    }

    fn update_call(&mut self, id: &str, title: Option<&str>, status: Option<ToolCallStatus>) {
        if let Some(call) = self.seen_mut(id) {
            if let Some(title) = title {
                call.title = single_line(title);
            }
            call.status = status.unwrap_or(call.status);
        } else if let Some(title) = title {
            // Text after this call is another answer.
            self.starts_new_answer = true;
            self.n_calls += 1;
            let status = status.unwrap_or(ToolCallStatus::Pending);
            self.push_call(ViewedCall { id: id.to_owned(), title: single_line(title), status });
        }
    }

    fn seen_mut(&mut self, id: &str) -> Option<&mut ViewedCall> {
        self.calls.iter_mut().rev().find(|call| call.id == id)
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

    /// Returns the text since the last call, and whether its beginning was dropped.
    pub(crate) fn answer(&self) -> (&str, bool) {
        (self.answer.trim(), self.is_truncated)
    }

    /// Returns the changed files.
    pub(crate) fn changed_files(&self) -> ChangedFiles {
        let files = self.changes.iter().filter(|(_, change)| change.old.as_deref() != Some(&*change.new));
        let files = files.map(|(path, change)| {
            let old = change.old.as_deref().unwrap_or_default();
            let ChangeCounts { n_added, n_removed } =
                TextDiff::compare_lines(old, &change.new).count_changes();
            ChildFileChange { path: path.clone(), n_added, n_removed }
        });
        ChangedFiles { files: files.collect(), n_uncounted: self.n_files_uncounted }
    }

    /// Returns the changes of files, for a client.
    pub(crate) fn file_diffs(&self) -> impl Iterator<Item = ToolCallContent> + '_ {
        self.changes.iter().map(|(path, change)| ToolCallContent::Diff {
            path: path.clone(),
            old: change.old.clone(),
            new: change.new.clone(),
        })
    }

    /// Renders the calls, one per line.
    pub(crate) fn render_calls(&self) -> String {
        let mut text = String::new();
        let n_before = self.n_calls.saturating_sub(self.calls.len());
        if n_before > 0 {
            text.push_str(&format!("… {n_before} before\n"));
        }
        for call in &self.calls {
            let symbol = match call.status {
                ToolCallStatus::Pending => "·",
                ToolCallStatus::InProgress => "▸",
                ToolCallStatus::Completed => "✓",
                ToolCallStatus::Failed => "✗",
            };
            text.push_str(&format!("{symbol} {}\n", call.title));
        }
        text
    }

    /// Renders the current view.
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

/// Makes one line from any text.
pub fn single_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    match line.char_indices().nth(TITLE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
pub(crate) mod tests;
