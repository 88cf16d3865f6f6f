//! The transcript as cells: prompts, text, calls and notices, each with its source. A cell is open while it may change;
//! cells that are settled become history in order, so a finished call behind an open one waits.

mod call;
mod row_memo;
mod sources;

use std::time::Instant;

use crow_core::PlanEntry;

pub(crate) use self::call::{CallCell, CallChange, CommandEnd};
pub(crate) use self::row_memo::RowMemo;
use self::sources::{cell_bytes, is_settled, shorten_cell};
use crate::text::{PartDivider, PartStart, TextPart};

/// Bytes of sources that are kept; beyond that, the oldest cells keep only their first line.
const SOURCE_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Cells that are kept; of more, the oldest are forgotten.
const CELLS_MAX: usize = 20_000;

/// The lines between cells in Markdown.
const CELL_GAP: &str = "\n\n";

/// One block of the transcript.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TranscriptCell {
    /// A prompt of the user.
    Prompt(String),
    /// A part of the model's text, in Markdown.
    Text(TextPart),
    /// Thinking of the model.
    Thought(String),
    Call(Box<CallCell>),
    /// The plan at the end of a turn.
    Plan(Vec<PlanEntry>),
    /// A message of the agent or of the terminal.
    Notice(String),
    /// A problem, and a hint.
    Problem(String),
    /// A command that the user ran.
    Command(CommandCell),
}

/// A command that the user ran with `!`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CommandCell {
    pub(crate) command: String,
    pub(crate) output: String,
    pub(crate) end: Option<CommandEnd>,
    pub(crate) started_at: Instant,
}

impl TranscriptCell {
    /// The text of a prompt.
    pub(crate) fn as_prompt(&self) -> Option<&str> {
        let Self::Prompt(text) = self else { return None };
        Some(text)
    }

    /// A command of the user.
    pub(crate) fn as_command(&self) -> Option<&CommandCell> {
        let Self::Command(command) = self else { return None };
        Some(command)
    }
}

/// All cells of the session.
#[derive(Debug, Clone)]
pub(crate) struct TranscriptCells {
    n_bytes_max: usize,
    cells: Vec<TranscriptCell>,
    /// Cells that were written to the terminal's history.
    n_committed: usize,
    /// Whether the last cell is text or a thought that is still being written.
    is_streaming: bool,
    /// The message that the streamed text belongs to.
    message: Option<String>,
    /// Divides the streamed text, of whose open part so many bytes were read.
    divider: PartDivider,
    n_divided: usize,
    /// Bytes of the cells in the history.
    n_bytes: usize,
    /// Cells whose source was dropped.
    n_stubs: usize,
    has_dropped: bool,
    /// The first cell of the open session; those before are of other sessions.
    session_start: usize,
}

impl Default for TranscriptCells {
    fn default() -> Self {
        Self::with_limit(SOURCE_BYTES_MAX)
    }
}

impl TranscriptCells {
    /// Returns an empty transcript that keeps so many bytes of sources.
    pub(crate) fn with_limit(n_bytes_max: usize) -> Self {
        Self {
            n_bytes_max,
            cells: Vec::new(),
            n_committed: 0,
            is_streaming: false,
            message: None,
            divider: PartDivider::default(),
            n_divided: 0,
            n_bytes: 0,
            n_stubs: 0,
            has_dropped: false,
            session_start: 0,
        }
    }

    pub(crate) fn all(&self) -> &[TranscriptCell] {
        &self.cells
    }

    /// The cells of the open session.
    pub(crate) fn of_session(&self) -> &[TranscriptCell] {
        &self.cells[self.session_start..]
    }

    /// Begins another session: the cells so far are none of it.
    pub(crate) fn begin_session(&mut self) {
        self.end_stream();
        self.session_start = self.cells.len();
    }

    /// Removes the cells of the terminal's history from the last prompt with this text on, or from the one that many
    /// prompts with the same text before; `false` if there is none.
    pub(crate) fn remove_from_prompt(&mut self, text: &str, n_repeats: usize) -> bool {
        let committed = self.cells.get(self.session_start..self.n_committed).unwrap_or_default();
        let matching = committed.iter().enumerate().rev().filter(|(_, cell)| cell.as_prompt() == Some(text));
        let Some(index) = matching.map(|(index, _)| self.session_start + index).nth(n_repeats) else {
            return false;
        };
        self.n_bytes -=
            self.cells.drain(index..self.n_committed).map(|cell| cell_bytes(&cell)).sum::<usize>();
        self.n_committed = index;
        self.n_stubs = self.n_stubs.min(index);
        true
    }

    /// The cells that are not in the terminal's history yet.
    pub(crate) fn uncommitted(&self) -> &[TranscriptCell] {
        &self.cells[self.n_committed..]
    }

    /// The last cell of the terminal's history.
    pub(crate) fn last_committed(&self) -> Option<&TranscriptCell> {
        self.cells[..self.n_committed].last()
    }

    /// The number of uncommitted cells at the front that cannot change any more.
    pub(crate) fn n_settled(&self) -> usize {
        let uncommitted = self.uncommitted();
        let n_complete = match self.is_streaming {
            true => uncommitted.len().saturating_sub(1),
            false => uncommitted.len(),
        };
        uncommitted[..n_complete].iter().take_while(|cell| is_settled(cell)).count()
    }

    /// Marks cells as written to the terminal's history. They change no more, so their sources count from now on.
    pub(crate) fn commit(&mut self, n_cells: usize) {
        let end = (self.n_committed + n_cells).min(self.cells.len());
        for cell in &mut self.cells[self.n_committed..end] {
            self.n_bytes += cell_bytes(cell);
            if let TranscriptCell::Call(call) = cell {
                call.change_rows = RowMemo::default();
            }
        }
        self.n_committed = end;
        self.drop_old_sources();
    }

    /// Bytes of the sources of all cells that are history.
    #[cfg(test)]
    pub(crate) fn n_history_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Whether the last cell is still being written.
    pub(crate) fn is_streaming(&self) -> bool {
        self.is_streaming
    }

    /// Adds a complete cell.
    pub(crate) fn push(&mut self, cell: TranscriptCell) {
        self.end_stream();
        self.cells.push(cell);
    }

    /// Appends to the streamed text, or begins one.
    pub(crate) fn append_text(&mut self, message: Option<String>, text: &str) {
        if self.begins_message(message) || !matches!(self.cells.last(), Some(TranscriptCell::Text(_))) {
            self.end_stream();
        }
        let text = if self.is_streaming { text } else { text.trim_start_matches('\n') };
        if text.is_empty() {
            return;
        }
        match self.cells.last_mut() {
            Some(TranscriptCell::Text(open)) if self.is_streaming => open.source.push_str(text),
            _ => {
                (self.divider, self.n_divided) = (PartDivider::default(), 0);
                let part = TextPart { source: text.to_owned(), start: PartStart::default() };
                self.cells.push(TranscriptCell::Text(part));
            }
        }
        self.is_streaming = true;
        self.split_stream();
    }

    /// Appends to the streamed thought, or begins one.
    pub(crate) fn append_thought(&mut self, message: Option<String>, text: &str) {
        if self.begins_message(message) || !matches!(self.cells.last(), Some(TranscriptCell::Thought(_))) {
            self.end_stream();
        }
        let text = if self.is_streaming { text } else { text.trim_start() };
        if text.is_empty() {
            return;
        }
        match self.cells.last_mut() {
            Some(TranscriptCell::Thought(open)) if self.is_streaming => open.push_str(text),
            _ => self.cells.push(TranscriptCell::Thought(text.to_owned())),
        }
        self.is_streaming = true;
    }

    /// Appends to the last prompt of a replay, or begins one.
    pub(crate) fn append_prompt(&mut self, text: &str) {
        match self.cells[self.n_committed..].last_mut() {
            Some(TranscriptCell::Prompt(prompt)) => {
                prompt.push('\n');
                prompt.push_str(text);
            }
            _ => self.push(TranscriptCell::Prompt(text.to_owned())),
        }
    }

    /// Ends the streamed text: what follows is another block.
    pub(crate) fn end_stream(&mut self) {
        self.is_streaming = false;
    }

    /// Adds or changes a call.
    pub(crate) fn change_call(&mut self, change: CallChange, now: Instant) {
        match self.find_call(&change.id) {
            Some(call) => call.apply(change, now),
            None => {
                let mut call = CallCell::new(change.id.clone());
                call.apply(change, now);
                self.push(TranscriptCell::Call(Box::new(call)));
            }
        }
    }

    /// Finds a call that is not in the terminal's history.
    pub(crate) fn find_call(&mut self, id: &str) -> Option<&mut CallCell> {
        self.cells[self.n_committed..].iter_mut().rev().find_map(|cell| {
            let TranscriptCell::Call(call) = cell else { return None };
            (call.id == id).then_some(&mut **call)
        })
    }

    /// The newest call of the open session.
    pub(crate) fn newest_call(&self) -> Option<&CallCell> {
        self.of_session().iter().rev().find_map(|cell| {
            let TranscriptCell::Call(call) = cell else { return None };
            Some(&**call)
        })
    }

    /// The command of the user that is running.
    pub(crate) fn running_command(&mut self) -> Option<&mut CommandCell> {
        self.cells[self.n_committed..].iter_mut().rev().find_map(|cell| {
            let TranscriptCell::Command(command) = cell else { return None };
            command.end.is_none().then_some(command)
        })
    }

    /// The calls that have not ended.
    pub(crate) fn open_calls(&self) -> impl Iterator<Item = &CallCell> {
        self.uncommitted().iter().filter_map(|cell| {
            let TranscriptCell::Call(call) = cell else { return None };
            (!call.has_ended()).then_some(&**call)
        })
    }

    /// Ends all calls that will not end by themselves: their turn is over.
    pub(crate) fn fail_open_calls(&mut self, now: Instant) {
        for cell in &mut self.cells[self.n_committed..] {
            if let TranscriptCell::Call(call) = cell
                && !call.has_ended()
            {
                call.fail(now);
            }
        }
    }

    /// The last text of the model: all cells of it.
    pub(crate) fn last_answer(&self) -> String {
        let is_text = |cell: &&TranscriptCell| matches!(cell, TranscriptCell::Text(_));
        let from_end = self.of_session().iter().rev().skip_while(|cell| !is_text(cell)).take_while(is_text);
        let parts: Vec<&TranscriptCell> = from_end.collect();
        let mut text = String::new();
        for cell in parts.into_iter().rev() {
            if let TranscriptCell::Text(part) = cell {
                part.append_to(&mut text);
            }
        }
        text
    }

    /// Writes the transcript as Markdown.
    pub(crate) fn to_markdown(&self) -> String {
        let mut markdown = String::new();
        for cell in self.of_session() {
            match cell {
                TranscriptCell::Prompt(text) => {
                    markdown.push_str("## Prompt\n\n");
                    markdown.push_str(text);
                }
                TranscriptCell::Text(part) if !part.is_apart() => {
                    // It continues the part above.
                    markdown.truncate(markdown.len() - CELL_GAP.len());
                    markdown.push_str(&part.source);
                }
                TranscriptCell::Text(part) => markdown.push_str(&part.source),
                TranscriptCell::Thought(_) => continue,
                TranscriptCell::Call(call) => {
                    markdown.push_str(&format!("- {} ({})", call.title, call.state_word()));
                }
                TranscriptCell::Plan(entries) => {
                    let lines = entries.iter().map(|entry| format!("- {}", entry.text));
                    markdown.push_str(&lines.collect::<Vec<_>>().join("\n"));
                }
                TranscriptCell::Notice(text) | TranscriptCell::Problem(text) => {
                    markdown.push_str(&format!("> {}", text.replace('\n', "\n> ")));
                }
                TranscriptCell::Command(command) => {
                    markdown.push_str(&format!(
                        "```\n$ {}\n{}\n```",
                        command.command,
                        command.output.trim_end()
                    ));
                }
            }
            markdown.push_str(CELL_GAP);
        }
        markdown
    }

    fn begins_message(&mut self, message: Option<String>) -> bool {
        let is_new = message.is_some() && message != self.message;
        if message.is_some() {
            self.message = message;
        }
        is_new
    }

    /// Separates the parts of the streamed text that more text cannot change.
    fn split_stream(&mut self) {
        loop {
            let Some(TranscriptCell::Text(open)) = self.cells.last_mut() else { return };
            let Some(length) = open.source[self.n_divided..].find('\n') else { return };
            let line_start = self.n_divided;
            self.n_divided += length + 1;
            let start = self.divider.push_line(&open.source[line_start..line_start + length]);
            if let Some(start) = start.filter(|_| line_start > 0) {
                let source = open.source.split_off(line_start);
                self.n_divided = length + 1;
                self.cells.push(TranscriptCell::Text(TextPart { source, start }));
            }
        }
    }

    fn drop_old_sources(&mut self) {
        while self.n_bytes > self.n_bytes_max && self.n_stubs < self.n_committed {
            let cell = &mut self.cells[self.n_stubs];
            let before = cell_bytes(cell);
            shorten_cell(cell);
            self.n_bytes -= before - cell_bytes(cell);
            self.n_stubs += 1;
        }
        if self.cells.len() > CELLS_MAX {
            let n_dropped = (CELLS_MAX / 4).min(self.n_committed);
            self.n_bytes -= self.cells.drain(..n_dropped).map(|cell| cell_bytes(&cell)).sum::<usize>();
            self.n_committed -= n_dropped;
            self.n_stubs = self.n_stubs.saturating_sub(n_dropped);
            self.session_start = self.session_start.saturating_sub(n_dropped);
            self.has_dropped = true;
        }
    }

    /// Whether the oldest cells are gone.
    pub(crate) fn has_dropped(&self) -> bool {
        self.has_dropped
    }
}

#[cfg(test)]
mod tests;
