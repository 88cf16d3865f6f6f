//! A tool call: one line that settles, with its output, its change and its end.

use std::time::{Duration, Instant};

use crow_core::{ToolCallContent, ToolCallStatus, ToolKind};
use serde_json::Value;

use super::row_memo::RowMemo;

/// Bytes of a command's output that are kept from its end.
const OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// A call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallCell {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) kind: ToolKind,
    pub(crate) status: ToolCallStatus,
    pub(crate) content: Vec<ToolCallContent>,
    pub(crate) input: Option<Value>,
    /// The end of the command's output.
    pub(crate) output: String,
    /// Lines of output that were dropped.
    pub(crate) n_lines_dropped: usize,
    pub(crate) end: Option<CommandEnd>,
    pub(crate) started_at: Option<Instant>,
    pub(crate) ended_at: Option<Instant>,
    /// The content was dropped to bound memory.
    pub(crate) is_stub: bool,
    /// The rows of its changes, folded.
    pub(crate) change_rows: RowMemo,
}

/// The end of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommandEnd {
    Exited(i64),
    Signalled(String),
}

/// A change of a call; absent fields are unchanged.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CallChange {
    pub(crate) id: String,
    pub(crate) title: Option<String>,
    pub(crate) kind: Option<ToolKind>,
    pub(crate) status: Option<ToolCallStatus>,
    pub(crate) content: Option<Vec<ToolCallContent>>,
    pub(crate) input: Option<Value>,
}

impl CallCell {
    pub(super) fn new(id: String) -> Self {
        Self {
            id,
            title: "tool".to_owned(),
            kind: ToolKind::Other,
            status: ToolCallStatus::Pending,
            content: Vec::new(),
            input: None,
            output: String::new(),
            n_lines_dropped: 0,
            end: None,
            started_at: None,
            ended_at: None,
            is_stub: false,
            change_rows: RowMemo::default(),
        }
    }

    pub(super) fn apply(&mut self, change: CallChange, now: Instant) {
        self.title = change.title.unwrap_or_else(|| std::mem::take(&mut self.title));
        self.kind = change.kind.unwrap_or(self.kind);
        self.status = change.status.unwrap_or(self.status);
        if let Some(content) = change.content {
            (self.content, self.change_rows) = (content, RowMemo::default());
        }
        self.input = change.input.or_else(|| self.input.take());
        if self.status == ToolCallStatus::InProgress && self.started_at.is_none() {
            self.started_at = Some(now);
        }
        if self.has_ended() && self.ended_at.is_none() {
            self.ended_at = Some(now);
        }
    }

    /// Appends output of its command; keeps the end.
    pub(crate) fn append_output(&mut self, text: &str) {
        self.output.push_str(text);
        if self.output.len() > 2 * OUTPUT_BYTES_MAX {
            let start = self.output.ceil_char_boundary(self.output.len() - OUTPUT_BYTES_MAX);
            let dropped: String = self.output.drain(..start).collect();
            self.n_lines_dropped += dropped.matches('\n').count();
        }
    }

    /// Takes a result as text, which an agent gives in place of content.
    pub(crate) fn set_result(&mut self, text: &str) {
        let has_content =
            self.content.iter().any(|content| !matches!(content, ToolCallContent::Image { .. }));
        if self.output.is_empty() && !has_content {
            self.append_output(text);
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.status, ToolCallStatus::Completed | ToolCallStatus::Failed)
    }

    pub(super) fn fail(&mut self, now: Instant) {
        self.status = ToolCallStatus::Failed;
        self.ended_at = Some(now);
    }

    /// The time it ran, or has been running.
    pub(crate) fn elapsed(&self, now: Instant) -> Option<Duration> {
        Some(self.ended_at.unwrap_or(now).saturating_duration_since(self.started_at?))
    }

    /// The status as a word.
    pub(crate) fn state_word(&self) -> &'static str {
        match self.status {
            ToolCallStatus::Pending => "pending",
            ToolCallStatus::InProgress => "running",
            ToolCallStatus::Completed => "done",
            ToolCallStatus::Failed => "failed",
        }
    }

    /// The text that the call printed: its command's output, or its text content.
    pub(crate) fn printed_text(&self) -> String {
        if !self.output.is_empty() {
            return self.output.clone();
        }
        let texts = self.content.iter().filter_map(|content| match content {
            ToolCallContent::Text(text) => Some(text.as_str()),
            ToolCallContent::Diff { .. } | ToolCallContent::Image { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    pub(super) fn n_bytes(&self) -> usize {
        let content = self.content.iter().map(|content| match content {
            ToolCallContent::Text(text) => text.len(),
            ToolCallContent::Image { data, .. } => data.len(),
            ToolCallContent::Diff { old, new, .. } => old.as_ref().map_or(0, String::len) + new.len(),
        });
        self.output.len() + content.sum::<usize>()
    }

    pub(super) fn drop_content(&mut self) {
        (self.content, self.input, self.output) = (Vec::new(), None, String::new());
        self.is_stub = true;
    }
}
