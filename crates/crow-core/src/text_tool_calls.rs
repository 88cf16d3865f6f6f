//! Text tool calls: calls that a model writes as text, as small and local models often do. Filters the stream between
//! the provider and the reply: text that may become a call is held back, other text passes at once and in order.
//!
//! Only text that consists of calls is parsed as calls, and only in a reply that ended normally. Knows nothing about
//! tools: permission is decided where every call is evaluated.

mod call_marks;
mod grammar;
mod json_object;
mod quotation;
mod thought;
mod tools_as_text;
mod watcher;

use std::mem;

use crate::{ModelEvent, ModelTranscript, ReplyEnd, ToolSpec, repair};
use grammar::{GrammarProgress, TextCallGrammar, WrittenCall};
use thought::ThoughtReader;
use watcher::{TextCallWatcher, WatchOutcome};

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
#[derive(Debug)]
pub struct TextToolCallParser<'a> {
    tools: &'a [ToolSpec],
    mode: TextToolCallMode,
    state: ParserState<'a>,
}

#[derive(Debug)]
enum ParserState<'a> {
    /// Possibly the start of reasoning.
    Start(String),
    /// Between the tags of reasoning.
    InThought(ThoughtReader),
    /// After reasoning, with only white space so far.
    AfterThought,
    /// Possibly calls.
    Grammar(Box<TextCallGrammar<'a>>),
    /// Other text, after which calls may follow.
    Watching(TextCallWatcher),
    /// Text that passes to the end.
    PlainText,
}

/// The opening tag of reasoning that a server left in the text.
const THOUGHT_TAG: &str = "<think>";

/// More white space than any model writes before its first word.
const BLANKS_LEN_MAX: usize = 1024;

impl<'a> TextToolCallParser<'a> {
    /// Creates a parser for a reply to a request with these tools.
    pub fn new(tools: &'a [ToolSpec], mode: TextToolCallMode) -> Self {
        let mode = if tools.is_empty() { TextToolCallMode::Disabled } else { mode };
        Self { tools, mode, state: ParserState::Start(String::new()) }
    }

    /// Processes an event; emits what is certain.
    pub fn on_event(&mut self, event: ModelEvent<'_>, emit: &mut impl FnMut(ModelEvent<'_>)) {
        match event {
            ModelEvent::Text(_) if matches!(self.state, ParserState::PlainText) => emit(event),
            ModelEvent::Text(text) => self.on_text(text, emit),
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
        match mem::replace(&mut self.state, ParserState::PlainText) {
            ParserState::Start(pending) => emit_text(&pending, emit),
            ParserState::InThought(reader) => emit_thought(reader.pending_text(), emit),
            ParserState::Grammar(grammar) => emit_text(grammar.text(), emit),
            ParserState::Watching(watcher) => emit_text(watcher.pending_text(), emit),
            ParserState::AfterThought | ParserState::PlainText => {}
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
        let calls = match &self.state {
            // The continuation of a truncated reply is unknown.
            ParserState::Grammar(grammar) if *end == ReplyEnd::Complete => grammar.written_calls(),
            ParserState::Grammar(_)
            | ParserState::Start(_)
            | ParserState::InThought(_)
            | ParserState::AfterThought
            | ParserState::Watching(_)
            | ParserState::PlainText => None,
        };
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

    fn on_text(&mut self, text: &str, emit: &mut impl FnMut(ModelEvent<'_>)) {
        match mem::replace(&mut self.state, ParserState::PlainText) {
            ParserState::Start(pending) => self.on_beginning(pending + text, emit),
            ParserState::InThought(reader) => self.on_thinking(reader, text, emit),
            ParserState::AfterThought => self.on_after_thought(text, emit),
            ParserState::Grammar(grammar) => self.feed_grammar(grammar, text, emit),
            ParserState::Watching(watcher) => self.feed_watcher(watcher, text, emit),
            ParserState::PlainText => emit_text(text, emit),
        }
    }

    fn on_beginning(&mut self, pending: String, emit: &mut impl FnMut(ModelEvent<'_>)) {
        let trimmed = pending.trim_start();
        // So much white space counts the same for any chunking.
        if pending.len() - trimmed.len() >= BLANKS_LEN_MAX {
            self.read_calls(&pending, emit);
        } else if let Some(rest) = trimmed.strip_prefix(THOUGHT_TAG) {
            self.on_thinking(ThoughtReader::default(), rest, emit);
        } else if THOUGHT_TAG.starts_with(trimmed) {
            self.state = ParserState::Start(pending);
        } else {
            self.read_calls(&pending, emit);
        }
    }

    fn on_thinking(&mut self, mut reader: ThoughtReader, text: &str, emit: &mut impl FnMut(ModelEvent<'_>)) {
        match reader.feed(text, &mut |thought| emit_thought(thought, emit)) {
            None => self.state = ParserState::InThought(reader),
            Some(rest) => self.on_after_thought(&rest, emit),
        }
    }

    fn on_after_thought(&mut self, text: &str, emit: &mut impl FnMut(ModelEvent<'_>)) {
        match text.trim_start() {
            "" => self.state = ParserState::AfterThought,
            text => self.read_calls(text, emit),
        }
    }

    fn read_calls(&mut self, text: &str, emit: &mut impl FnMut(ModelEvent<'_>)) {
        match self.mode {
            TextToolCallMode::Disabled => {
                self.state = ParserState::PlainText;
                emit_text(text, emit);
            }
            TextToolCallMode::WholeReplies | TextToolCallMode::ReplyEndings => {
                self.feed_grammar(Box::new(TextCallGrammar::new(self.tools)), text, emit);
            }
        }
    }

    fn feed_grammar(
        &mut self,
        mut grammar: Box<TextCallGrammar<'a>>,
        text: &str,
        emit: &mut impl FnMut(ModelEvent<'_>),
    ) {
        match grammar.feed(text) {
            GrammarProgress::Incomplete => self.state = ParserState::Grammar(grammar),
            // Calls may follow other text, but not other calls.
            GrammarProgress::Mismatch
                if self.mode == TextToolCallMode::ReplyEndings && grammar.is_first() =>
            {
                self.feed_watcher(TextCallWatcher::default(), grammar.text(), emit);
            }
            GrammarProgress::Mismatch => {
                self.state = ParserState::PlainText;
                emit_text(grammar.text(), emit);
            }
        }
    }

    fn feed_watcher(
        &mut self,
        mut watcher: TextCallWatcher,
        text: &str,
        emit: &mut impl FnMut(ModelEvent<'_>),
    ) {
        match watcher.feed(text, &mut |words| emit_text(words, emit)) {
            WatchOutcome::Text => self.state = ParserState::Watching(watcher),
            WatchOutcome::Call(text) => {
                self.feed_grammar(Box::new(TextCallGrammar::after_words(self.tools)), &text, emit);
            }
        }
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
