//! The transcript as cells: prompts, text, calls and notices, each with its source. A cell is open while it may change;
//! cells that are settled become history in order, so a finished call behind an open one waits.

mod call;

use std::time::Instant;

use crow_core::PlanEntry;

pub(crate) use self::call::{CallCell, CallChange, CommandEnd};

/// Bytes of sources that are kept; beyond that, the oldest cells keep only their first line.
const SOURCE_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Bytes of an old cell that are kept beyond that.
const STUB_BYTES: usize = 200;

/// One block of the transcript.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TranscriptCell {
    /// A prompt of the user.
    Prompt(String),
    /// Text of the model, in Markdown.
    Text(String),
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
#[derive(Debug, Clone, Default)]
pub(crate) struct TranscriptCells {
    cells: Vec<TranscriptCell>,
    /// Cells that were written to the terminal's history.
    n_committed: usize,
    /// Whether the last cell is text or a thought that is still being written.
    is_streaming: bool,
    /// The message that the streamed text belongs to.
    message: Option<String>,
    n_bytes: usize,
    /// Cells whose source was dropped.
    n_stubs: usize,
}

impl TranscriptCells {
    pub(crate) fn all(&self) -> &[TranscriptCell] {
        &self.cells
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

    /// Marks cells as written to the terminal's history.
    pub(crate) fn commit(&mut self, n_cells: usize) {
        self.n_committed = (self.n_committed + n_cells).min(self.cells.len());
    }

    /// Whether the last cell is still being written.
    pub(crate) fn is_streaming(&self) -> bool {
        self.is_streaming
    }

    /// Adds a complete cell.
    pub(crate) fn push(&mut self, cell: TranscriptCell) {
        self.end_stream();
        self.n_bytes += cell_bytes(&cell);
        self.cells.push(cell);
        self.drop_old_sources();
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
        self.n_bytes += text.len();
        match self.cells.last_mut() {
            Some(TranscriptCell::Text(open)) if self.is_streaming => open.push_str(text),
            _ => self.cells.push(TranscriptCell::Text(text.to_owned())),
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
        self.n_bytes += text.len();
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
        let from_end = self.cells.iter().rev().skip_while(|cell| !is_text(cell)).take_while(is_text);
        let mut texts: Vec<&str> = from_end.map(cell_text).collect();
        texts.reverse();
        texts.join("\n\n")
    }

    /// Writes the transcript as Markdown.
    pub(crate) fn to_markdown(&self) -> String {
        let mut markdown = String::new();
        for cell in &self.cells {
            match cell {
                TranscriptCell::Prompt(text) => {
                    markdown.push_str("## Prompt\n\n");
                    markdown.push_str(text);
                }
                TranscriptCell::Text(text) => markdown.push_str(text),
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
            markdown.push_str("\n\n");
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

    /// Separates the part of the streamed text that its end cannot change any more.
    fn split_stream(&mut self) {
        let Some(TranscriptCell::Text(open)) = self.cells.last_mut() else { return };
        let Some(end) = stable_end(open) else { return };
        let rest = open.split_off(end);
        open.truncate(open.trim_end().len());
        let rest = rest.trim_start_matches('\n').to_owned();
        self.cells.push(TranscriptCell::Text(rest));
    }

    fn drop_old_sources(&mut self) {
        while self.n_bytes > SOURCE_BYTES_MAX && self.n_stubs < self.n_committed {
            let cell = &mut self.cells[self.n_stubs];
            let before = cell_bytes(cell);
            shorten_cell(cell);
            self.n_bytes -= before - cell_bytes(cell);
            self.n_stubs += 1;
        }
    }
}

fn is_settled(cell: &TranscriptCell) -> bool {
    match cell {
        TranscriptCell::Call(call) => call.has_ended(),
        TranscriptCell::Command(command) => command.end.is_some(),
        TranscriptCell::Prompt(_)
        | TranscriptCell::Text(_)
        | TranscriptCell::Thought(_)
        | TranscriptCell::Plan(_)
        | TranscriptCell::Notice(_)
        | TranscriptCell::Problem(_) => true,
    }
}

fn cell_text(cell: &TranscriptCell) -> &str {
    match cell {
        TranscriptCell::Prompt(text)
        | TranscriptCell::Text(text)
        | TranscriptCell::Thought(text)
        | TranscriptCell::Notice(text)
        | TranscriptCell::Problem(text) => text,
        TranscriptCell::Command(command) => &command.output,
        TranscriptCell::Call(_) | TranscriptCell::Plan(_) => "",
    }
}

fn cell_bytes(cell: &TranscriptCell) -> usize {
    match cell {
        TranscriptCell::Call(call) => call.n_bytes(),
        TranscriptCell::Prompt(_)
        | TranscriptCell::Text(_)
        | TranscriptCell::Thought(_)
        | TranscriptCell::Plan(_)
        | TranscriptCell::Notice(_)
        | TranscriptCell::Problem(_)
        | TranscriptCell::Command(_) => cell_text(cell).len(),
    }
}

/// Keeps only the beginning of a cell: the session has the rest.
fn shorten_cell(cell: &mut TranscriptCell) {
    match cell {
        TranscriptCell::Prompt(text)
        | TranscriptCell::Text(text)
        | TranscriptCell::Thought(text)
        | TranscriptCell::Notice(text)
        | TranscriptCell::Problem(text) => shorten_text(text),
        TranscriptCell::Command(command) => shorten_text(&mut command.output),
        TranscriptCell::Call(call) => call.drop_content(),
        TranscriptCell::Plan(_) => {}
    }
}

fn shorten_text(text: &mut String) {
    if text.len() > STUB_BYTES * 2 {
        text.truncate(text.floor_char_boundary(STUB_BYTES));
        text.push_str("\n… the stored session has the rest");
    }
}

/// Returns the end of the part that more text cannot change: a blank line after which a paragraph or a heading begins,
/// with no fence, list, table or quote open before it.
fn stable_end(text: &str) -> Option<usize> {
    let (mut offset, mut end, mut fence) = (0, None, None);
    let mut is_after_blank = false;
    let mut is_in_container = false;
    for line in text.split_inclusive('\n') {
        let content = line.trim_end();
        let unindented = content.trim_start();
        let marker = ["```", "~~~"].into_iter().find(|marker| unindented.starts_with(marker));
        if fence.is_none() && is_after_blank && !content.is_empty() && line.ends_with('\n') {
            let is_container = begins_container(content);
            if !is_container || !is_in_container {
                end = Some(offset);
            }
            is_in_container = is_container;
        } else if offset == 0 {
            is_in_container = begins_container(content);
        }
        match (fence, marker) {
            (None, Some(marker)) => fence = Some(marker),
            (Some(open), Some(marker)) if open == marker => fence = None,
            _ => {}
        }
        is_after_blank = content.is_empty() && fence.is_none();
        offset += line.len();
    }
    end.filter(|&end| end > 0)
}

/// Whether a line begins or continues a list, a quote, a table or indented text.
fn begins_container(line: &str) -> bool {
    let first = line.trim_start();
    let digits = first.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let is_numbered = digits.len() < first.len() && (digits.starts_with(". ") || digits.starts_with(") "));
    let is_bullet = ["- ", "* ", "+ ", ">", "|"].iter().any(|mark| first.starts_with(mark));
    line.starts_with([' ', '\t']) || is_numbered || is_bullet
}

#[cfg(test)]
mod tests;
