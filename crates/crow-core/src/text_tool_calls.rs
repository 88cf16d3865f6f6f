//! Text tool calls: calls that a model writes as text, as small and local models often do. Filters the stream between
//! the provider and the reply: text that may become a call is held back, other text passes at once and in order.
//!
//! Only text that consists of calls is parsed as calls, and only in a reply that ended normally. Knows nothing about
//! tools: permission is decided where every call is evaluated.

mod call_marks;
mod grammar;
mod json_object;
mod prose;
mod quotation;
mod text_cursor;
mod tools_as_text;
mod written_call;

use std::mem;

use crate::{ModelEvent, ModelTranscript, ReplyEnd, ToolSpec, repair};
use grammar::{CallScan, TEXT_LEN_MAX, scan_calls};
use prose::ProseLines;
use written_call::WrittenCall;

pub use tools_as_text::render_tools_as_text;

/// The parts of a reply in which text tool calls are recognized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextToolCallMode {
    /// None.
    Disabled,
    /// In replies that consist of calls.
    WholeReplies,
    /// At the end of replies, after other text: the model was instructed to write calls there.
    ReplyEndings,
}

/// The result of parsing a reply for text tool calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextToolCallOutcome {
    /// No calls.
    NoCalls,
    /// Calls of these tools.
    Calls(Vec<String>),
    /// A call of this tool that also occurs in the model's input: it may be a quotation, so it stays text.
    Quotation(String),
    /// Arguments that do not match the tool's schema, so the call stays text.
    InvalidArguments {
        /// The tool.
        tool: String,
        /// The mismatch.
        reason: String,
    },
}

/// Separates text tool calls from other text while a reply streams.
///
/// What is emitted depends on the text alone: each phase decides by the buffered text, for any chunking.
#[derive(Debug)]
pub struct TextToolCallParser<'a> {
    tools: &'a [ToolSpec],
    mode: TextToolCallMode,
    phase: ParserPhase,
    /// The text that is held back.
    buffer: String,
}

/// The meaning of the text in the buffer.
#[derive(Debug, Clone, Copy)]
enum ParserPhase {
    /// Possibly the start of reasoning.
    Start,
    /// Between the tags of reasoning.
    Thought { has_text: bool },
    /// After reasoning, with only white space so far.
    AfterThought,
    /// Possibly calls.
    Calls {
        /// Whether the reply begins with them.
        is_first: bool,
        /// The length of the text to wait for.
        scan_len: usize,
    },
    /// Other text, after which calls may follow.
    Prose(ProseLines),
    /// Text that passes to the end.
    PlainText,
}

const THOUGHT_TAG: &str = "<think>";
const THOUGHT_END: &str = "</think>";

/// More white space than any model writes before its first word.
const BLANKS_LEN_MAX: usize = 1024;

/// Longer text is not scanned after each chunk, but when it has grown by an eighth: the time stays linear.
const RESCAN_LEN: usize = 4096;

impl<'a> TextToolCallParser<'a> {
    /// Creates a parser for a reply to a request with these tools.
    pub fn new(tools: &'a [ToolSpec], mode: TextToolCallMode) -> Self {
        let mode = if tools.is_empty() { TextToolCallMode::Disabled } else { mode };
        Self { tools, mode, phase: ParserPhase::Start, buffer: String::new() }
    }

    /// Processes an event; emits what is certain.
    pub fn on_event(&mut self, event: ModelEvent<'_>, emit: &mut impl FnMut(ModelEvent<'_>)) {
        match event {
            ModelEvent::Text(_) if matches!(self.phase, ParserPhase::PlainText) => emit(event),
            ModelEvent::Text(text) => {
                self.buffer.push_str(text);
                self.read_phases(emit);
            }
            ModelEvent::Call { .. } => {
                // A model with native calls does not also write them as text.
                self.flush(emit);
                emit(event);
            }
            ModelEvent::Thought(_) | ModelEvent::Usage(_) | ModelEvent::ProviderState(_) => emit(event),
        }
    }

    /// Emits all text that is held back.
    pub fn flush(&mut self, emit: &mut impl FnMut(ModelEvent<'_>)) {
        let text = mem::take(&mut self.buffer);
        match mem::replace(&mut self.phase, ParserPhase::PlainText) {
            ParserPhase::Thought { .. } => emit_thought(&text, emit),
            ParserPhase::Start
            | ParserPhase::AfterThought
            | ParserPhase::Calls { .. }
            | ParserPhase::Prose(_)
            | ParserPhase::PlainText => emit_text(&text, emit),
        }
    }

    /// Ends the reply: emits its calls, or the text that is held back. The transcript shows whether a call is a
    /// quotation.
    pub fn finish(
        mut self,
        end: &ReplyEnd,
        transcript: ModelTranscript<'_>,
        emit: &mut impl FnMut(ModelEvent<'_>),
    ) -> TextToolCallOutcome {
        if let ParserPhase::Calls { is_first, .. } = self.phase {
            self.phase = ParserPhase::Calls { is_first, scan_len: 0 };
            self.read_phases(emit);
        }
        // The continuation of a truncated reply is unknown.
        let may_call = matches!(self.phase, ParserPhase::Calls { .. }) && *end == ReplyEnd::Complete;
        let calls = if may_call { self.parse_calls() } else { None };
        let outcome = calls
            .as_deref()
            .map_or(TextToolCallOutcome::NoCalls, |calls| self.check_calls(calls, transcript));
        match (&outcome, calls) {
            (TextToolCallOutcome::Calls(_), Some(calls)) => emit_calls(&calls, emit),
            (
                TextToolCallOutcome::Calls(_)
                | TextToolCallOutcome::NoCalls
                | TextToolCallOutcome::Quotation(_)
                | TextToolCallOutcome::InvalidArguments { .. },
                _,
            ) => {
                self.flush(emit);
            }
        }
        outcome
    }

    fn check_calls(&self, calls: &[WrittenCall<'_>], transcript: ModelTranscript<'_>) -> TextToolCallOutcome {
        for call in calls {
            if quotation::is_quoted(call, transcript) {
                return TextToolCallOutcome::Quotation(call.name.clone());
            }
            // A model that was instructed to write calls as text gets schema errors as tool results instead.
            if self.mode == TextToolCallMode::WholeReplies
                && let Some(tool) = self.tools.iter().find(|tool| tool.name == call.name)
                && let Err(reason) = repair::check_against_schema(&tool.parameters, &call.arguments)
            {
                return TextToolCallOutcome::InvalidArguments { tool: call.name.clone(), reason };
            }
        }
        TextToolCallOutcome::Calls(calls.iter().map(|call| call.name.clone()).collect())
    }

    /// Parses the calls; `None` if the text does not consist of calls.
    fn parse_calls(&self) -> Option<Vec<WrittenCall<'_>>> {
        match scan_calls(&self.buffer, self.tools) {
            CallScan::Complete(calls) => calls.iter().map(|call| call.parse(self.tools)).collect(),
            CallScan::Incomplete | CallScan::Mismatch { .. } => None,
        }
    }

    fn read_phases(&mut self, emit: &mut impl FnMut(ModelEvent<'_>)) {
        while let Some(phase) = self.read_phase(emit) {
            self.phase = phase;
        }
    }

    /// Emits what is certain of the buffer, and returns the next phase; `None` to wait for more text.
    fn read_phase(&mut self, emit: &mut impl FnMut(ModelEvent<'_>)) -> Option<ParserPhase> {
        match self.phase {
            ParserPhase::Start => self.read_start(),
            ParserPhase::Thought { has_text } => self.read_thought(has_text, emit),
            ParserPhase::AfterThought => {
                self.drop_leading_blanks();
                (!self.buffer.is_empty()).then(|| self.phase_of_text())
            }
            ParserPhase::Calls { is_first, scan_len } => self.read_calls(is_first, scan_len),
            ParserPhase::Prose(mut lines) => {
                let (prose_len, is_call) = lines.read(&self.buffer);
                emit_text(&self.buffer[..prose_len], emit);
                self.buffer.drain(..prose_len);
                self.phase = ParserPhase::Prose(lines);
                is_call.then_some(ParserPhase::Calls { is_first: false, scan_len: 0 })
            }
            ParserPhase::PlainText => {
                emit_text(&mem::take(&mut self.buffer), emit);
                None
            }
        }
    }

    fn read_start(&mut self) -> Option<ParserPhase> {
        let text = self.buffer.trim_start();
        let n_blanks = self.buffer.len() - text.len();
        // So much white space counts the same for any chunking.
        if n_blanks < BLANKS_LEN_MAX {
            if text.starts_with(THOUGHT_TAG) {
                self.buffer.drain(..n_blanks + THOUGHT_TAG.len());
                return Some(ParserPhase::Thought { has_text: false });
            }
            if THOUGHT_TAG.starts_with(text) {
                return None;
            }
        }
        Some(self.phase_of_text())
    }

    /// Reads reasoning up to its closing tag, without leading white space.
    fn read_thought(&mut self, has_text: bool, emit: &mut impl FnMut(ModelEvent<'_>)) -> Option<ParserPhase> {
        if !has_text {
            self.drop_leading_blanks();
        }
        if let Some(len) = self.buffer.find(THOUGHT_END) {
            emit_thought(&self.buffer[..len], emit);
            self.buffer.drain(..len + THOUGHT_END.len());
            return Some(ParserPhase::AfterThought);
        }
        self.phase = ParserPhase::Thought { has_text: has_text || !self.buffer.is_empty() };
        let tag_lens = (1..THOUGHT_END.len()).rev();
        let mut tag_lens = tag_lens.filter(|len| self.buffer.ends_with(&THOUGHT_END[..*len]));
        let certain_len = self.buffer.len() - tag_lens.next().unwrap_or(0);
        emit_thought(&self.buffer[..certain_len], emit);
        self.buffer.drain(..certain_len);
        None
    }

    fn read_calls(&mut self, is_first: bool, scan_len: usize) -> Option<ParserPhase> {
        let len = self.buffer.len();
        if len < scan_len {
            return None;
        }
        match scan_calls(&self.buffer, self.tools) {
            CallScan::Complete(_) | CallScan::Incomplete => {
                let scan_len = (len + len.saturating_sub(RESCAN_LEN) / 8).min(TEXT_LEN_MAX + 1);
                self.phase = ParserPhase::Calls { is_first, scan_len };
                None
            }
            // Calls may follow other text, but not other calls.
            CallScan::Mismatch { has_calls: false }
                if is_first && self.mode == TextToolCallMode::ReplyEndings =>
            {
                Some(ParserPhase::Prose(ProseLines::default()))
            }
            CallScan::Mismatch { .. } => Some(ParserPhase::PlainText),
        }
    }

    /// Returns the phase of text that is no reasoning.
    fn phase_of_text(&self) -> ParserPhase {
        match self.mode {
            TextToolCallMode::Disabled => ParserPhase::PlainText,
            TextToolCallMode::WholeReplies | TextToolCallMode::ReplyEndings => {
                ParserPhase::Calls { is_first: true, scan_len: 0 }
            }
        }
    }

    fn drop_leading_blanks(&mut self) {
        let n_blanks = self.buffer.len() - self.buffer.trim_start().len();
        self.buffer.drain(..n_blanks);
    }
}

fn emit_text(text: &str, emit: &mut impl FnMut(ModelEvent<'_>)) {
    if !text.is_empty() {
        emit(ModelEvent::Text(text));
    }
}

fn emit_thought(text: &str, emit: &mut impl FnMut(ModelEvent<'_>)) {
    if !text.is_empty() {
        emit(ModelEvent::Thought(text));
    }
}

fn emit_calls(calls: &[WrittenCall<'_>], emit: &mut impl FnMut(ModelEvent<'_>)) {
    for (slot, call) in calls.iter().enumerate() {
        let arguments = serde_json::Value::Object(call.arguments.clone()).to_string();
        emit(ModelEvent::Call { index: slot, id: None, name: Some(&call.name), arguments: &arguments });
    }
}

#[cfg(test)]
mod tests;
