//! Calls that a model writes as text, as small and local models often do. Stands between what a provider streams
//! and the reply: text that may become such a call waits, whatever cannot be one goes on at once, in its order.
//!
//! Only text that is nothing but calls is taken for them, and only where the reply ended normally. It must never
//! know what a tool does: who may run what is decided where every call is judged.

mod forms;
mod marks;
mod object;
mod quoted;
mod spelled;
mod thinking;
mod watch;

use std::mem;

use crate::{ModelEvent, ModelTranscript, ReplyEnd, ToolSpec, repair};
use forms::{GrammarProgress, TextCallGrammar, WrittenCall};
use thinking::ThoughtReader;
use watch::{TextCallWatcher, WatchOutcome};

pub use spelled::render_tools_as_text;

/// Where calls written as text are taken for calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextToolCallMode {
    /// Nowhere: text is text.
    Nothing,
    /// In replies that are nothing but such calls.
    WholeReplies,
    /// At the end of replies, behind words: the model was told to write them there.
    Endings,
}

/// What came of text that might have been a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextToolCallOutcome {
    /// There was none.
    Nothing,
    /// It was taken for calls of these tools.
    Taken(Vec<String>),
    /// A call of this tool stands in what the model was shown: it may only quote, so nothing was taken.
    Quoted(String),
    /// The arguments for this tool do not fit, so nothing was taken.
    NotFitting {
        /// The tool.
        tool: String,
        /// What is wrong with them.
        why: String,
    },
}

/// Parts the calls that a model writes as text from its words while they arrive.
#[derive(Debug)]
pub struct TextToolCallParser<'a> {
    tools: &'a [ToolSpec],
    takes: TextToolCallMode,
    state: ParserState<'a>,
}

#[derive(Debug)]
enum ParserState<'a> {
    /// What may be the beginning of a thought.
    Beginning(String),
    /// Between the tags of a thought.
    Thinking(ThoughtReader),
    /// Behind a thought, where only blanks have come.
    Thought,
    /// What may be calls.
    Reading(Box<TextCallGrammar<'a>>),
    /// Words, behind which calls may follow.
    Watching(TextCallWatcher),
    /// Words, whatever follows.
    Passing,
}

/// The tags of reasoning that a server left in the text.
const THOUGHT_TAG: &str = "<think>";

/// More blanks than any model puts before its first word.
const BLANKS_LEN_MAX: usize = 1024;

impl<'a> TextToolCallParser<'a> {
    /// Starts on a reply of a model that was offered these tools.
    pub fn new(tools: &'a [ToolSpec], takes: TextToolCallMode) -> Self {
        let takes = if tools.is_empty() { TextToolCallMode::Nothing } else { takes };
        Self { tools, takes, state: ParserState::Beginning(String::new()) }
    }

    /// Takes an event in; says what is certain by now.
    pub fn on_event(&mut self, event: ModelEvent<'_>, say: &mut impl FnMut(ModelEvent<'_>)) {
        match event {
            ModelEvent::Text(_) if matches!(self.state, ParserState::Passing) => say(event),
            ModelEvent::Text(text) => self.on_text(text, say),
            ModelEvent::Call { .. } => {
                // A model that calls as it should does not write calls as well.
                self.flush(say);
                say(event);
            }
            ModelEvent::Thought(_) | ModelEvent::Usage(_) | ModelEvent::Sealed(_) => say(event),
        }
    }

    /// Lets everything go that waits.
    pub fn flush(&mut self, say: &mut impl FnMut(ModelEvent<'_>)) {
        match mem::replace(&mut self.state, ParserState::Passing) {
            ParserState::Beginning(held) => emit_text(&held, say),
            ParserState::Thinking(thinking) => emit_thought(thinking.pending_text(), say),
            ParserState::Reading(forms) => emit_text(forms.text(), say),
            ParserState::Watching(watch) => emit_text(watch.pending_text(), say),
            ParserState::Thought | ParserState::Passing => {}
        }
    }

    /// Takes the end of the reply: says the calls that it wrote, or the text that waits. The conversation it
    /// answers tells whether it only quotes.
    pub fn finish(
        mut self,
        ended: &ReplyEnd,
        shown: ModelTranscript<'_>,
        say: &mut impl FnMut(ModelEvent<'_>),
    ) -> TextToolCallOutcome {
        let written = match &self.state {
            // Nobody knows what would have followed in a reply that was cut.
            ParserState::Reading(forms) if *ended == ReplyEnd::Normally => forms.written_calls(),
            ParserState::Reading(_)
            | ParserState::Beginning(_)
            | ParserState::Thinking(_)
            | ParserState::Thought
            | ParserState::Watching(_)
            | ParserState::Passing => None,
        };
        let leaked = written
            .as_deref()
            .map_or(TextToolCallOutcome::Nothing, |written| self.check_calls(written, shown));
        match (&leaked, written) {
            (TextToolCallOutcome::Taken(_), Some(written)) => emit_calls(&written, say),
            (
                TextToolCallOutcome::Taken(_)
                | TextToolCallOutcome::Nothing
                | TextToolCallOutcome::Quoted(_)
                | TextToolCallOutcome::NotFitting { .. },
                _,
            ) => {
                self.flush(say);
            }
        }
        leaked
    }

    fn check_calls(&self, written: &[WrittenCall<'_>], shown: ModelTranscript<'_>) -> TextToolCallOutcome {
        for call in written {
            if quoted::is_quoted(call, shown) {
                return TextToolCallOutcome::Quoted(call.name.clone());
            }
            // Where a model was told to write its calls so, it is told what is wrong with them as well.
            if self.takes == TextToolCallMode::WholeReplies
                && let Some(tool) = self.tools.iter().find(|tool| tool.name == call.name)
                && let Err(why) = repair::check_against_schema(&tool.parameters, &call.arguments)
            {
                return TextToolCallOutcome::NotFitting { tool: call.name.clone(), why };
            }
        }
        TextToolCallOutcome::Taken(written.iter().map(|call| call.name.clone()).collect())
    }

    fn on_text(&mut self, text: &str, say: &mut impl FnMut(ModelEvent<'_>)) {
        match mem::replace(&mut self.state, ParserState::Passing) {
            ParserState::Beginning(held) => self.on_beginning(held + text, say),
            ParserState::Thinking(thinking) => self.on_thinking(thinking, text, say),
            ParserState::Thought => self.on_after_thought(text, say),
            ParserState::Reading(forms) => self.feed_grammar(forms, text, say),
            ParserState::Watching(watch) => self.feed_watcher(watch, text, say),
            ParserState::Passing => emit_text(text, say),
        }
    }

    fn on_beginning(&mut self, held: String, say: &mut impl FnMut(ModelEvent<'_>)) {
        let words = held.trim_start();
        // However the text is cut, so many blanks are the same.
        if held.len() - words.len() >= BLANKS_LEN_MAX {
            self.read_calls(&held, say);
        } else if let Some(rest) = words.strip_prefix(THOUGHT_TAG) {
            self.on_thinking(ThoughtReader::default(), rest, say);
        } else if THOUGHT_TAG.starts_with(words) {
            self.state = ParserState::Beginning(held);
        } else {
            self.read_calls(&held, say);
        }
    }

    fn on_thinking(&mut self, mut thinking: ThoughtReader, text: &str, say: &mut impl FnMut(ModelEvent<'_>)) {
        match thinking.feed(text, &mut |thought| emit_thought(thought, say)) {
            None => self.state = ParserState::Thinking(thinking),
            Some(rest) => self.on_after_thought(&rest, say),
        }
    }

    fn on_after_thought(&mut self, text: &str, say: &mut impl FnMut(ModelEvent<'_>)) {
        match text.trim_start() {
            "" => self.state = ParserState::Thought,
            text => self.read_calls(text, say),
        }
    }

    fn read_calls(&mut self, text: &str, say: &mut impl FnMut(ModelEvent<'_>)) {
        match self.takes {
            TextToolCallMode::Nothing => {
                self.state = ParserState::Passing;
                emit_text(text, say);
            }
            TextToolCallMode::WholeReplies | TextToolCallMode::Endings => {
                self.feed_grammar(Box::new(TextCallGrammar::new(self.tools)), text, say);
            }
        }
    }

    fn feed_grammar(
        &mut self,
        mut forms: Box<TextCallGrammar<'a>>,
        text: &str,
        say: &mut impl FnMut(ModelEvent<'_>),
    ) {
        match forms.feed(text) {
            GrammarProgress::More => self.state = ParserState::Reading(forms),
            // Calls may still follow behind words, but not behind other calls.
            GrammarProgress::Not if self.takes == TextToolCallMode::Endings && forms.is_first() => {
                self.feed_watcher(TextCallWatcher::default(), forms.text(), say);
            }
            GrammarProgress::Not => {
                self.state = ParserState::Passing;
                emit_text(forms.text(), say);
            }
        }
    }

    fn feed_watcher(&mut self, mut watch: TextCallWatcher, text: &str, say: &mut impl FnMut(ModelEvent<'_>)) {
        match watch.feed(text, &mut |words| emit_text(words, say)) {
            WatchOutcome::Words => self.state = ParserState::Watching(watch),
            WatchOutcome::Call(text) => {
                self.feed_grammar(Box::new(TextCallGrammar::after_words(self.tools)), &text, say);
            }
        }
    }
}

fn emit_text(text: &str, say: &mut impl FnMut(ModelEvent<'_>)) {
    if !text.is_empty() {
        say(ModelEvent::Text(text));
    }
}

fn emit_thought(text: &str, say: &mut impl FnMut(ModelEvent<'_>)) {
    if !text.is_empty() {
        say(ModelEvent::Thought(text));
    }
}

fn emit_calls(written: &[WrittenCall<'_>], say: &mut impl FnMut(ModelEvent<'_>)) {
    for (slot, call) in written.iter().enumerate() {
        let arguments = serde_json::Value::Object(call.arguments.clone()).to_string();
        say(ModelEvent::Call { slot, id: None, name: Some(&call.name), arguments: &arguments });
    }
}

#[cfg(test)]
mod tests;
