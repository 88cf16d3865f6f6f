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

use crate::{Ended, ForModel, ModelEvent, ToolSpec, repair};
use forms::{Forms, Read, Written};
use thinking::Thinking;
use watch::{Seen, Watch};

pub use spelled::spelled;

/// Where calls written as text are taken for calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Nowhere: text is text.
    Nothing,
    /// In replies that are nothing but such calls.
    WholeReplies,
    /// At the end of replies, behind words: the model was told to write them there.
    Endings,
}

/// What came of text that might have been a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leaked {
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
pub struct Sieve<'a> {
    tools: &'a [ToolSpec],
    takes: Takes,
    state: State<'a>,
}

#[derive(Debug)]
enum State<'a> {
    /// What may be the beginning of a thought.
    Beginning(String),
    /// Between the tags of a thought.
    Thinking(Thinking),
    /// Behind a thought, where only blanks have come.
    Thought,
    /// What may be calls.
    Reading(Box<Forms<'a>>),
    /// Words, behind which calls may follow.
    Watching(Watch),
    /// Words, whatever follows.
    Passing,
}

/// The tags of reasoning that a server left in the text.
const THOUGHT_TAG: &str = "<think>";

/// More blanks than any model puts before its first word.
const BLANKS_LEN_MAX: usize = 1024;

impl<'a> Sieve<'a> {
    /// Starts on a reply of a model that was offered these tools.
    pub fn new(tools: &'a [ToolSpec], takes: Takes) -> Self {
        let takes = if tools.is_empty() { Takes::Nothing } else { takes };
        Self { tools, takes, state: State::Beginning(String::new()) }
    }

    /// Takes an event in; says what is certain by now.
    pub fn on_event(&mut self, event: ModelEvent<'_>, say: &mut impl FnMut(ModelEvent<'_>)) {
        match event {
            ModelEvent::Text(_) if matches!(self.state, State::Passing) => say(event),
            ModelEvent::Text(text) => self.on_text(text, say),
            ModelEvent::Call { .. } => {
                // A model that calls as it should does not write calls as well.
                self.release(say);
                say(event);
            }
            ModelEvent::Thought(_) | ModelEvent::Usage(_) | ModelEvent::Sealed(_) => say(event),
        }
    }

    /// Lets everything go that waits.
    pub fn release(&mut self, say: &mut impl FnMut(ModelEvent<'_>)) {
        match mem::replace(&mut self.state, State::Passing) {
            State::Beginning(held) => say_text(&held, say),
            State::Thinking(thinking) => say_thought(thinking.held(), say),
            State::Reading(forms) => say_text(forms.text(), say),
            State::Watching(watch) => say_text(watch.held(), say),
            State::Thought | State::Passing => {}
        }
    }

    /// Takes the end of the reply: says the calls that it wrote, or the text that waits. The conversation it
    /// answers tells whether it only quotes.
    pub fn end(mut self, ended: &Ended, shown: ForModel<'_>, say: &mut impl FnMut(ModelEvent<'_>)) -> Leaked {
        let written = match &self.state {
            // Nobody knows what would have followed in a reply that was cut.
            State::Reading(forms) if *ended == Ended::Normally => forms.calls(),
            State::Reading(_)
            | State::Beginning(_)
            | State::Thinking(_)
            | State::Thought
            | State::Watching(_)
            | State::Passing => None,
        };
        let leaked = written.as_deref().map_or(Leaked::Nothing, |written| self.judge(written, shown));
        match (&leaked, written) {
            (Leaked::Taken(_), Some(written)) => say_calls(&written, say),
            (Leaked::Taken(_) | Leaked::Nothing | Leaked::Quoted(_) | Leaked::NotFitting { .. }, _) => {
                self.release(say);
            }
        }
        leaked
    }

    fn judge(&self, written: &[Written<'_>], shown: ForModel<'_>) -> Leaked {
        for call in written {
            if quoted::is_quoted(call, shown) {
                return Leaked::Quoted(call.name.clone());
            }
            // Where a model was told to write its calls so, it is told what is wrong with them as well.
            if self.takes == Takes::WholeReplies
                && let Some(tool) = self.tools.iter().find(|tool| tool.name == call.name)
                && let Err(why) = repair::check_against(&tool.parameters, &call.arguments)
            {
                return Leaked::NotFitting { tool: call.name.clone(), why };
            }
        }
        Leaked::Taken(written.iter().map(|call| call.name.clone()).collect())
    }

    fn on_text(&mut self, text: &str, say: &mut impl FnMut(ModelEvent<'_>)) {
        match mem::replace(&mut self.state, State::Passing) {
            State::Beginning(held) => self.begin(held + text, say),
            State::Thinking(thinking) => self.think(thinking, text, say),
            State::Thought => self.after_thought(text, say),
            State::Reading(forms) => self.read(forms, text, say),
            State::Watching(watch) => self.watch(watch, text, say),
            State::Passing => say_text(text, say),
        }
    }

    fn begin(&mut self, held: String, say: &mut impl FnMut(ModelEvent<'_>)) {
        let words = held.trim_start();
        // However the text is cut, so many blanks are the same.
        if held.len() - words.len() >= BLANKS_LEN_MAX {
            self.read_calls(&held, say);
        } else if let Some(rest) = words.strip_prefix(THOUGHT_TAG) {
            self.think(Thinking::default(), rest, say);
        } else if THOUGHT_TAG.starts_with(words) {
            self.state = State::Beginning(held);
        } else {
            self.read_calls(&held, say);
        }
    }

    fn think(&mut self, mut thinking: Thinking, text: &str, say: &mut impl FnMut(ModelEvent<'_>)) {
        match thinking.feed(text, &mut |thought| say_thought(thought, say)) {
            None => self.state = State::Thinking(thinking),
            Some(rest) => self.after_thought(&rest, say),
        }
    }

    fn after_thought(&mut self, text: &str, say: &mut impl FnMut(ModelEvent<'_>)) {
        match text.trim_start() {
            "" => self.state = State::Thought,
            text => self.read_calls(text, say),
        }
    }

    fn read_calls(&mut self, text: &str, say: &mut impl FnMut(ModelEvent<'_>)) {
        match self.takes {
            Takes::Nothing => {
                self.state = State::Passing;
                say_text(text, say);
            }
            Takes::WholeReplies | Takes::Endings => self.read(Box::new(Forms::new(self.tools)), text, say),
        }
    }

    fn read(&mut self, mut forms: Box<Forms<'a>>, text: &str, say: &mut impl FnMut(ModelEvent<'_>)) {
        match forms.feed(text) {
            Read::More => self.state = State::Reading(forms),
            // Calls may still follow behind words, but not behind other calls.
            Read::Not if self.takes == Takes::Endings && forms.is_first() => {
                self.watch(Watch::default(), forms.text(), say);
            }
            Read::Not => {
                self.state = State::Passing;
                say_text(forms.text(), say);
            }
        }
    }

    fn watch(&mut self, mut watch: Watch, text: &str, say: &mut impl FnMut(ModelEvent<'_>)) {
        match watch.feed(text, &mut |words| say_text(words, say)) {
            Seen::Words => self.state = State::Watching(watch),
            Seen::Call(text) => self.read(Box::new(Forms::behind_words(self.tools)), &text, say),
        }
    }
}

fn say_text(text: &str, say: &mut impl FnMut(ModelEvent<'_>)) {
    if !text.is_empty() {
        say(ModelEvent::Text(text));
    }
}

fn say_thought(text: &str, say: &mut impl FnMut(ModelEvent<'_>)) {
    if !text.is_empty() {
        say(ModelEvent::Thought(text));
    }
}

fn say_calls(written: &[Written<'_>], say: &mut impl FnMut(ModelEvent<'_>)) {
    for (slot, call) in written.iter().enumerate() {
        let arguments = serde_json::Value::Object(call.arguments.clone()).to_string();
        say(ModelEvent::Call { slot, id: None, name: Some(&call.name), arguments: &arguments });
    }
}

#[cfg(test)]
mod tests;
