//! The forms in which models write calls as text, followed while they arrive: what cannot become one of them is
//! known at the first byte that does not fit.

use std::ops::{ControlFlow, Range};

use serde_json::{Map, Value};

use super::marks::{self, Mark, Marks, Seen};
use super::object::{ARGUMENTS, End, NAMES, Object};
use crate::{Arguments, ToolSpec, repair};

/// Longer than a call with a large file in it.
const TEXT_LEN_MAX: usize = 1024 * 1024;

/// More calls than a model makes at once.
const N_CALLS_MAX: usize = 64;

/// A text that may be calls, while it arrives.
#[derive(Debug)]
pub(super) struct Forms<'a> {
    tools: &'a [ToolSpec],
    text: String,
    /// How much of it is read.
    at: usize,
    is_first: bool,
    /// What is around the next call.
    around: Vec<Around>,
    place: Place,
    found: Vec<Found>,
}

/// Whether a text may be calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    /// It may, as far as it has come.
    More,
    /// It cannot.
    Not,
}

/// A call as it was written.
#[derive(Debug, PartialEq)]
pub(super) struct Written<'a> {
    pub(super) name: String,
    pub(super) arguments: Map<String, Value>,
    /// Its text, with its name and its arguments.
    pub(super) text: &'a str,
}

/// What stands around calls.
#[derive(Debug)]
struct Around {
    kind: Kind,
    /// How many calls had been found before it.
    n_before: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A code fence.
    Fence,
    /// The brackets of a list.
    List,
    /// `<tool_call>` and its end.
    Tag,
    /// `<|tool_calls_section_begin|>` and its end.
    Section,
}

#[derive(Debug)]
enum Place {
    /// Before a call, or behind the last.
    Between,
    /// In the first line of a fence, whose words begin there.
    FenceLine(usize),
    /// Behind `[TOOL_CALLS]`.
    Marked(usize),
    /// In an object that is a call.
    Call { from: usize, object: Object },
    /// In the name of a call that names its tool apart from its arguments.
    Name { from: usize, apart: Apart },
    /// Behind that name.
    Apart(Apart),
    /// In its arguments.
    Arguments { from: usize, object: Object, apart: Apart },
    /// In the name of a parameter that begins there.
    Parameter { from: usize, apart: Apart },
    /// In its value that begins there.
    Value { key: Range<usize>, from: usize, apart: Apart },
    /// In an id that says nothing.
    Id(Apart),
}

/// A call that names its tool apart from its arguments.
#[derive(Debug)]
struct Apart {
    form: Form,
    from: usize,
    name: Range<usize>,
    arguments: Option<Range<usize>>,
    parameters: Vec<(Range<usize>, Range<usize>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `<function=name>…</function>`
    Function,
    /// `[TOOL_CALLS]name[ARGS]{…}`
    Marked,
    /// `<|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>{…}<|tool_call_end|>`
    Numbered,
}

/// A call that is whole.
#[derive(Debug)]
enum Found {
    /// An object with its name and its arguments.
    Object(Range<usize>),
    Apart(Apart, usize),
}

/// What stands on the first line of a fence around a call.
const FENCE_WORDS: [&str; 5] = ["", "json", "tool_call", "tool_calls", "xml"];

/// Longer than a line or a name of any form.
const WORD_LEN_MAX: usize = 256;

const PARAMETER_END: &str = "</parameter>";

/// What stands before a name of the numbered form.
const NUMBERED_PREFIX: &str = "functions.";

/// How reading goes on: at the new place, or not at all.
type Next = ControlFlow<Stop, Place>;

enum Stop {
    /// More text is needed, here.
    Wait(Place),
    Not,
}

const NOT: Next = ControlFlow::Break(Stop::Not);

impl<'a> Forms<'a> {
    /// Starts at the beginning of a reply.
    pub(super) fn new(tools: &'a [ToolSpec]) -> Self {
        let place = Place::Between;
        let (around, found) = (Vec::new(), Vec::new());
        Self { tools, text: String::new(), at: 0, is_first: true, around, place, found }
    }

    /// Starts behind words.
    pub(super) fn behind_words(tools: &'a [ToolSpec]) -> Self {
        Self { is_first: false, ..Self::new(tools) }
    }

    /// Tells whether this is the beginning of a reply, and no call has been found in it.
    pub(super) fn is_first(&self) -> bool {
        self.is_first && self.found.is_empty()
    }

    /// Shows all that came.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Takes more.
    pub(super) fn feed(&mut self, text: &str) -> Read {
        self.text.push_str(text);
        if self.text.len() > TEXT_LEN_MAX {
            return Read::Not;
        }
        let mut place = std::mem::replace(&mut self.place, Place::Between);
        loop {
            place = match self.step(place) {
                ControlFlow::Continue(place) if self.found.len() <= N_CALLS_MAX => place,
                ControlFlow::Break(Stop::Wait(place)) => {
                    self.place = place;
                    return Read::More;
                }
                ControlFlow::Continue(_) | ControlFlow::Break(Stop::Not) => return Read::Not,
            };
        }
    }

    /// Reads the calls, where the text is nothing else and all of them can be read.
    pub(super) fn calls(&self) -> Option<Vec<Written<'_>>> {
        let is_whole =
            matches!(self.place, Place::Between) && self.around.is_empty() && !self.found.is_empty();
        if !is_whole {
            return None;
        }
        self.found.iter().map(|found| self.written(found)).collect()
    }

    fn step(&mut self, place: Place) -> Next {
        match place {
            Place::Between => self.between(),
            Place::FenceLine(from) => self.fence_line(from),
            Place::Marked(from) => self.marked(from),
            Place::Call { from, object } => self.call(from, object),
            Place::Name { from, apart } => self.name(from, apart),
            Place::Apart(apart) => self.apart(apart),
            Place::Arguments { from, object, apart } => self.arguments(from, object, apart),
            Place::Parameter { from, apart } => self.parameter(from, apart),
            Place::Value { key, from, apart } => self.value(key, from, apart),
            Place::Id(apart) => self.id(apart),
        }
    }

    fn between(&mut self) -> Next {
        let around = self.around.last().map(|around| around.kind);
        let marks = match around {
            None => marks::OUTSIDE,
            Some(Kind::Fence) => marks::IN_FENCE,
            Some(Kind::List) => marks::IN_LIST,
            Some(Kind::Tag) => marks::IN_TAG,
            Some(Kind::Section) => marks::IN_SECTION,
        };
        let (from, mark) = match self.mark(marks) {
            Seen::Is(mark, len) => (self.at - len, mark),
            Seen::Cut => return wait(Place::Between),
            Seen::Not => return NOT,
        };
        match mark {
            Mark::Object => {
                self.at = from;
                return ControlFlow::Continue(Place::Call { from, object: Object::of_call() });
            }
            Mark::ListBegin => self.begin(Kind::List),
            Mark::Fence if around.is_none() => {
                self.begin(Kind::Fence);
                return ControlFlow::Continue(Place::FenceLine(self.at));
            }
            Mark::TagBegin => self.begin(Kind::Tag),
            Mark::SectionBegin => self.begin(Kind::Section),
            Mark::ListEnd | Mark::Fence | Mark::SectionEnd => self.end()?,
            Mark::TagEnd if around.is_some() => self.end()?,
            // Some models forget how they began.
            Mark::TagEnd if self.is_behind(Form::Function) => {}
            Mark::Comma | Mark::Separator if !self.is_at_first_call() => {}
            Mark::Announced => {}
            Mark::MarkedBegin => return ControlFlow::Continue(Place::Marked(from)),
            Mark::FunctionBegin => return self.begin_name(Form::Function, from),
            Mark::NumberedBegin => return self.begin_name(Form::Numbered, from),
            Mark::TagEnd
            | Mark::Comma
            | Mark::Separator
            | Mark::FunctionEnd
            | Mark::ParameterBegin
            | Mark::MarkedId
            | Mark::MarkedArguments
            | Mark::NumberedArguments
            | Mark::NumberedEnd => return NOT,
        }
        ControlFlow::Continue(Place::Between)
    }

    fn begin(&mut self, kind: Kind) {
        self.around.push(Around { kind, n_before: self.found.len() });
    }

    /// Ends what is around; there must have been a call in it.
    fn end(&mut self) -> ControlFlow<Stop> {
        if self.is_at_first_call() {
            return ControlFlow::Break(Stop::Not);
        }
        self.around.pop();
        ControlFlow::Continue(())
    }

    /// Tells whether no call has been found inside of what is around.
    fn is_at_first_call(&self) -> bool {
        self.found.len() == self.around.last().map_or(0, |around| around.n_before)
    }

    fn is_behind(&self, form: Form) -> bool {
        matches!(self.found.last(), Some(Found::Apart(apart, _)) if apart.form == form)
    }

    fn begin_name(&self, form: Form, from: usize) -> Next {
        let apart = Apart { form, from, name: 0..0, arguments: None, parameters: Vec::new() };
        ControlFlow::Continue(Place::Name { from: self.at, apart })
    }

    fn fence_line(&mut self, from: usize) -> Next {
        let line = &self.text[from..];
        let (words, end) = line.find('\n').map_or((line, None), |end| (&line[..end], Some(end)));
        let words = words.trim();
        match end {
            Some(end) if end < WORD_LEN_MAX && FENCE_WORDS.contains(&words) => {
                self.at = from + end + 1;
                ControlFlow::Continue(Place::Between)
            }
            None if line.len() < WORD_LEN_MAX && FENCE_WORDS.iter().any(|known| known.starts_with(words)) => {
                wait(Place::FenceLine(from))
            }
            Some(_) | None => NOT,
        }
    }

    fn marked(&mut self, from: usize) -> Next {
        self.skip_blanks();
        match self.text.as_bytes().get(self.at) {
            None => wait(Place::Marked(from)),
            Some(b'[' | b'{') => ControlFlow::Continue(Place::Between),
            Some(_) => self.begin_name(Form::Marked, from),
        }
    }

    fn call(&mut self, from: usize, mut object: Object) -> Next {
        match self.read(&mut object) {
            ControlFlow::Continue(()) => wait(Place::Call { from, object }),
            ControlFlow::Break(End::Not) => NOT,
            ControlFlow::Break(End::Whole) => {
                self.found.push(Found::Object(from..self.at));
                ControlFlow::Continue(Place::Between)
            }
        }
    }

    fn read(&mut self, object: &mut Object) -> ControlFlow<End> {
        object.read(&self.text, &mut self.at, self.tools)
    }

    fn name(&mut self, from: usize, apart: Apart) -> Next {
        let ends = match apart.form {
            Form::Function => &['>'][..],
            Form::Marked => &['[', '{', ' ', '\n'],
            Form::Numbered => &['<'],
        };
        let said = &self.text[from..];
        let end = said.find(ends);
        let said = &said[..end.unwrap_or(said.len())];
        if said.len() > WORD_LEN_MAX {
            return NOT;
        }
        let said = said.trim_end();
        let (prefix, name) = match apart.form {
            Form::Function | Form::Marked => (0, said),
            Form::Numbered => {
                if end.is_none() && NUMBERED_PREFIX.starts_with(said) {
                    return wait(Place::Name { from, apart });
                }
                let name = said.strip_prefix(NUMBERED_PREFIX).unwrap_or(said);
                let prefix = said.len() - name.len();
                (prefix, name.split_once(':').map_or(name, |(name, _)| name))
            }
        };
        match end {
            Some(end) if self.tools.iter().any(|tool| tool.name == name) => {
                let name = from + prefix..from + prefix + name.len();
                self.at = from + end + usize::from(apart.form == Form::Function);
                ControlFlow::Continue(Place::Apart(Apart { name, ..apart }))
            }
            None if self.tools.iter().any(|tool| tool.name.starts_with(name)) => {
                wait(Place::Name { from, apart })
            }
            Some(_) | None => NOT,
        }
    }

    fn apart(&mut self, apart: Apart) -> Next {
        let marks = match apart.form {
            Form::Function => marks::IN_FUNCTION,
            Form::Marked => marks::IN_MARKED,
            Form::Numbered => marks::IN_NUMBERED,
        };
        let (from, mark) = match self.mark(marks) {
            Seen::Is(mark, len) => (self.at - len, mark),
            Seen::Cut => return wait(Place::Apart(apart)),
            Seen::Not => return NOT,
        };
        match (mark, apart.arguments.is_some()) {
            (Mark::Object, false) if apart.parameters.is_empty() => {
                self.at = from;
                ControlFlow::Continue(Place::Arguments { from, object: Object::of_arguments(), apart })
            }
            (Mark::ParameterBegin, false) => ControlFlow::Continue(Place::Parameter { from: self.at, apart }),
            (Mark::MarkedArguments | Mark::NumberedArguments, false) => {
                ControlFlow::Continue(Place::Apart(apart))
            }
            (Mark::MarkedId, false) => ControlFlow::Continue(Place::Id(apart)),
            // Only where they are written one by one there may be no arguments at all.
            (Mark::FunctionEnd, _) | (Mark::NumberedEnd, true) => self.found_apart(apart),
            _ => NOT,
        }
    }

    fn found_apart(&mut self, apart: Apart) -> Next {
        self.found.push(Found::Apart(apart, self.at));
        ControlFlow::Continue(Place::Between)
    }

    fn arguments(&mut self, from: usize, mut object: Object, apart: Apart) -> Next {
        match self.read(&mut object) {
            ControlFlow::Continue(()) => wait(Place::Arguments { from, object, apart }),
            ControlFlow::Break(End::Not) => NOT,
            ControlFlow::Break(End::Whole) => {
                let apart = Apart { arguments: Some(from..self.at), ..apart };
                match apart.form {
                    Form::Marked => self.found_apart(apart),
                    Form::Function | Form::Numbered => ControlFlow::Continue(Place::Apart(apart)),
                }
            }
        }
    }

    fn parameter(&mut self, from: usize, apart: Apart) -> Next {
        let said = &self.text[self.at..];
        match said.find(['>', '\n', '<']) {
            None if said.len() < WORD_LEN_MAX => wait(Place::Parameter { from, apart }),
            // However the text is cut, a long word is none.
            Some(end) if said[end..].starts_with('>') && (1..WORD_LEN_MAX).contains(&end) => {
                let key = from..self.at + end;
                self.at = key.end + 1;
                ControlFlow::Continue(Place::Value { key, from: self.at, apart })
            }
            Some(_) | None => NOT,
        }
    }

    fn value(&mut self, key: Range<usize>, from: usize, mut apart: Apart) -> Next {
        match self.text[self.at..].find(PARAMETER_END) {
            None => {
                // The end may have begun.
                let read = self.text.len().saturating_sub(PARAMETER_END.len()).max(self.at);
                self.at = self.text.floor_char_boundary(read).max(from);
                wait(Place::Value { key, from, apart })
            }
            Some(end) => {
                let end = self.at + end;
                self.at = end + PARAMETER_END.len();
                apart.parameters.push((key, from..end));
                ControlFlow::Continue(Place::Apart(apart))
            }
        }
    }

    fn id(&mut self, apart: Apart) -> Next {
        let said = &self.text[self.at..];
        match said.find(|char: char| !char.is_ascii_alphanumeric()) {
            None => {
                self.at = self.text.len();
                wait(Place::Id(apart))
            }
            Some(end) => {
                self.at += end;
                ControlFlow::Continue(Place::Apart(apart))
            }
        }
    }

    fn skip_blanks(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Reads the next mark.
    fn mark(&mut self, marks: Marks) -> Seen {
        self.skip_blanks();
        let seen = marks::first(marks, &self.text[self.at..]);
        if let Seen::Is(_, len) = seen {
            self.at += len;
        }
        seen
    }

    fn written(&self, found: &Found) -> Option<Written<'_>> {
        match found {
            Found::Object(range) => {
                let text = &self.text[range.clone()];
                let (name, arguments) = read_call(whole(repair::read_arguments(text))?)?;
                Some(Written { name, arguments, text })
            }
            Found::Apart(apart, end) => {
                let name = self.text[apart.name.clone()].to_owned();
                let arguments = match &apart.arguments {
                    Some(range) => whole(repair::read_arguments(&self.text[range.clone()]))?,
                    None => self.typed(&name, &apart.parameters)?,
                };
                Some(Written { name, arguments, text: &self.text[apart.from..*end] })
            }
        }
    }

    /// Reads parameters that were written without types, as the tool's schema has them. One given twice is none.
    fn typed(&self, name: &str, parameters: &[(Range<usize>, Range<usize>)]) -> Option<Map<String, Value>> {
        let tool = self.tools.iter().find(|tool| tool.name == name)?;
        let mut map = Map::new();
        for (key, value) in parameters {
            let (key, value) = (&self.text[key.clone()], &self.text[value.clone()]);
            // The line breaks next to the tags belong to them.
            let value = value.strip_prefix('\n').unwrap_or(value);
            let value = value.strip_suffix('\n').unwrap_or(value);
            let typed = typed(&tool.parameters["properties"][key]["type"], value);
            if map.insert(key.to_owned(), typed).is_some() {
                return None;
            }
        }
        Some(map)
    }
}

fn wait(place: Place) -> Next {
    ControlFlow::Break(Stop::Wait(place))
}

/// Takes arguments in which nothing was missing.
fn whole(arguments: Arguments) -> Option<Map<String, Value>> {
    match arguments {
        Arguments::Valid(map) | Arguments::Repaired { value: map, doubt: None } => Some(map),
        Arguments::Repaired { doubt: Some(_), .. } | Arguments::Unreadable { .. } => None,
    }
}

/// Reads the object of a call, in which the name and the arguments stand once.
fn read_call(mut map: Map<String, Value>) -> Option<(String, Map<String, Value>)> {
    if let Some(Value::Object(inner)) = map.get_mut("function") {
        map = std::mem::take(inner);
    }
    let mut names = NAMES.iter().filter_map(|key| map.get(*key)?.as_str());
    let name = names.next().filter(|_| names.next().is_none())?.to_owned();
    let mut given = ARGUMENTS.iter().filter_map(|key| map.get(*key));
    let arguments = match given.next().filter(|_| given.next().is_none())? {
        Value::Object(map) => map.clone(),
        Value::String(text) => whole(repair::read_arguments(text))?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => return None,
    };
    Some((name, arguments))
}

/// Reads a value by the types that a schema allows.
fn typed(types: &Value, text: &str) -> Value {
    let is = |name: &str| types == name || types.as_array().is_some_and(|names| names.contains(&name.into()));
    let as_text = || Value::String(text.to_owned());
    if types.is_null() || is("string") {
        return as_text();
    }
    // A number, a list: spelled as JSON does, or in the way of Python.
    serde_json::from_str(text.trim())
        .or_else(|_| serde_json::from_str(&text.trim().to_ascii_lowercase()))
        .unwrap_or_else(|_| as_text())
}
