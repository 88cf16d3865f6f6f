//! The forms in which models write calls as text, followed while they arrive: what cannot become one of them is
//! known at the first byte that does not fit.

use std::ops::{ControlFlow, Range};

use serde_json::{Map, Value};

use super::marks::{self, CallMark, MarkMatch, MarkTable};
use super::object::{ARGUMENTS, JsonObjectTracker, NAMES, ObjectEnd};
use crate::{ToolArguments, ToolSpec, repair};

/// Longer than a call with a large file in it.
const TEXT_LEN_MAX: usize = 1024 * 1024;

/// More calls than a model makes at once.
const N_CALLS_MAX: usize = 64;

/// A text that may be calls, while it arrives.
#[derive(Debug)]
pub(super) struct TextCallGrammar<'a> {
    tools: &'a [ToolSpec],
    text: String,
    /// How much of it is read.
    at: usize,
    is_first: bool,
    /// What is around the next call.
    around: Vec<EnclosingMark>,
    place: GrammarPosition,
    found: Vec<FoundCall>,
}

/// Whether a text may be calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GrammarProgress {
    /// It may, as far as it has come.
    More,
    /// It cannot.
    Not,
}

/// A call as it was written.
#[derive(Debug, PartialEq)]
pub(super) struct WrittenCall<'a> {
    pub(super) name: String,
    pub(super) arguments: Map<String, Value>,
    /// Its text, with its name and its arguments.
    pub(super) text: &'a str,
}

/// What stands around calls.
#[derive(Debug)]
struct EnclosingMark {
    kind: EnclosingKind,
    /// How many calls had been found before it.
    n_before: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EnclosingKind {
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
enum GrammarPosition {
    /// Before a call, or behind the last.
    Between,
    /// In the first line of a fence, whose words begin there.
    FenceLine(usize),
    /// Behind `[TOOL_CALLS]`.
    Marked(usize),
    /// In an object that is a call.
    Call { from: usize, object: JsonObjectTracker },
    /// In the name of a call that names its tool apart from its arguments.
    Name { from: usize, apart: SplitCall },
    /// Behind that name.
    Apart(SplitCall),
    /// In its arguments.
    Arguments { from: usize, object: JsonObjectTracker, apart: SplitCall },
    /// In the name of a parameter that begins there.
    Parameter { from: usize, apart: SplitCall },
    /// In its value that begins there.
    Value { key: Range<usize>, from: usize, apart: SplitCall },
    /// In an id that says nothing.
    Id(SplitCall),
}

/// A call that names its tool apart from its arguments.
#[derive(Debug)]
struct SplitCall {
    form: SplitCallForm,
    from: usize,
    name: Range<usize>,
    arguments: Option<Range<usize>>,
    parameters: Vec<(Range<usize>, Range<usize>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SplitCallForm {
    /// `<function=name>…</function>`
    Function,
    /// `[TOOL_CALLS]name[ARGS]{…}`
    Marked,
    /// `<|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>{…}<|tool_call_end|>`
    Numbered,
}

/// A call that is whole.
#[derive(Debug)]
enum FoundCall {
    /// An object with its name and its arguments.
    Object(Range<usize>),
    Apart(SplitCall, usize),
}

/// What stands on the first line of a fence around a call.
const FENCE_WORDS: [&str; 5] = ["", "json", "tool_call", "tool_calls", "xml"];

/// Longer than a line or a name of any form.
const WORD_LEN_MAX: usize = 256;

const PARAMETER_END: &str = "</parameter>";

/// What stands before a name of the numbered form.
const NUMBERED_PREFIX: &str = "functions.";

/// How reading goes on: at the new place, or not at all.
type NextPosition = ControlFlow<GrammarStop, GrammarPosition>;

enum GrammarStop {
    /// More text is needed, here.
    Wait(GrammarPosition),
    Not,
}

const NOT: NextPosition = ControlFlow::Break(GrammarStop::Not);

impl<'a> TextCallGrammar<'a> {
    /// Starts at the beginning of a reply.
    pub(super) fn new(tools: &'a [ToolSpec]) -> Self {
        let place = GrammarPosition::Between;
        let (around, found) = (Vec::new(), Vec::new());
        Self { tools, text: String::new(), at: 0, is_first: true, around, place, found }
    }

    /// Starts behind words.
    pub(super) fn after_words(tools: &'a [ToolSpec]) -> Self {
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
    pub(super) fn feed(&mut self, text: &str) -> GrammarProgress {
        self.text.push_str(text);
        if self.text.len() > TEXT_LEN_MAX {
            return GrammarProgress::Not;
        }
        let mut place = std::mem::replace(&mut self.place, GrammarPosition::Between);
        loop {
            place = match self.read_step(place) {
                ControlFlow::Continue(place) if self.found.len() <= N_CALLS_MAX => place,
                ControlFlow::Break(GrammarStop::Wait(place)) => {
                    self.place = place;
                    return GrammarProgress::More;
                }
                ControlFlow::Continue(_) | ControlFlow::Break(GrammarStop::Not) => {
                    return GrammarProgress::Not;
                }
            };
        }
    }

    /// Reads the calls, where the text is nothing else and all of them can be read.
    pub(super) fn written_calls(&self) -> Option<Vec<WrittenCall<'_>>> {
        let is_whole = matches!(self.place, GrammarPosition::Between)
            && self.around.is_empty()
            && !self.found.is_empty();
        if !is_whole {
            return None;
        }
        self.found.iter().map(|found| self.to_written(found)).collect()
    }

    fn read_step(&mut self, place: GrammarPosition) -> NextPosition {
        match place {
            GrammarPosition::Between => self.read_between(),
            GrammarPosition::FenceLine(from) => self.read_fence_line(from),
            GrammarPosition::Marked(from) => self.read_marked(from),
            GrammarPosition::Call { from, object } => self.read_call_object(from, object),
            GrammarPosition::Name { from, apart } => self.read_name(from, apart),
            GrammarPosition::Apart(apart) => self.read_split_call(apart),
            GrammarPosition::Arguments { from, object, apart } => {
                self.read_call_arguments(from, object, apart)
            }
            GrammarPosition::Parameter { from, apart } => self.read_parameter(from, apart),
            GrammarPosition::Value { key, from, apart } => self.read_parameter_value(key, from, apart),
            GrammarPosition::Id(apart) => self.read_id(apart),
        }
    }

    fn read_between(&mut self) -> NextPosition {
        let around = self.around.last().map(|around| around.kind);
        let marks = match around {
            None => marks::OUTSIDE,
            Some(EnclosingKind::Fence) => marks::IN_FENCE,
            Some(EnclosingKind::List) => marks::IN_LIST,
            Some(EnclosingKind::Tag) => marks::IN_TAG,
            Some(EnclosingKind::Section) => marks::IN_SECTION,
        };
        let (from, mark) = match self.read_mark(marks) {
            MarkMatch::Is(mark, len) => (self.at - len, mark),
            MarkMatch::Cut => return wait_for_more(GrammarPosition::Between),
            MarkMatch::Not => return NOT,
        };
        match mark {
            CallMark::Object => {
                self.at = from;
                return ControlFlow::Continue(GrammarPosition::Call {
                    from,
                    object: JsonObjectTracker::for_call(),
                });
            }
            CallMark::ListBegin => self.begin_enclosing(EnclosingKind::List),
            CallMark::Fence if around.is_none() => {
                self.begin_enclosing(EnclosingKind::Fence);
                return ControlFlow::Continue(GrammarPosition::FenceLine(self.at));
            }
            CallMark::TagBegin => self.begin_enclosing(EnclosingKind::Tag),
            CallMark::SectionBegin => self.begin_enclosing(EnclosingKind::Section),
            CallMark::ListEnd | CallMark::Fence | CallMark::SectionEnd => self.end_enclosing()?,
            CallMark::TagEnd if around.is_some() => self.end_enclosing()?,
            // Some models forget how they began.
            CallMark::TagEnd if self.is_after_form(SplitCallForm::Function) => {}
            CallMark::Comma | CallMark::Separator if !self.is_at_first_call() => {}
            CallMark::Announced => {}
            CallMark::MarkedBegin => return ControlFlow::Continue(GrammarPosition::Marked(from)),
            CallMark::FunctionBegin => return self.begin_name(SplitCallForm::Function, from),
            CallMark::NumberedBegin => return self.begin_name(SplitCallForm::Numbered, from),
            CallMark::TagEnd
            | CallMark::Comma
            | CallMark::Separator
            | CallMark::FunctionEnd
            | CallMark::ParameterBegin
            | CallMark::MarkedId
            | CallMark::MarkedArguments
            | CallMark::NumberedArguments
            | CallMark::NumberedEnd => return NOT,
        }
        ControlFlow::Continue(GrammarPosition::Between)
    }

    fn begin_enclosing(&mut self, kind: EnclosingKind) {
        self.around.push(EnclosingMark { kind, n_before: self.found.len() });
    }

    /// Ends what is around; there must have been a call in it.
    fn end_enclosing(&mut self) -> ControlFlow<GrammarStop> {
        if self.is_at_first_call() {
            return ControlFlow::Break(GrammarStop::Not);
        }
        self.around.pop();
        ControlFlow::Continue(())
    }

    /// Tells whether no call has been found inside of what is around.
    fn is_at_first_call(&self) -> bool {
        self.found.len() == self.around.last().map_or(0, |around| around.n_before)
    }

    fn is_after_form(&self, form: SplitCallForm) -> bool {
        matches!(self.found.last(), Some(FoundCall::Apart(apart, _)) if apart.form == form)
    }

    fn begin_name(&self, form: SplitCallForm, from: usize) -> NextPosition {
        let apart = SplitCall { form, from, name: 0..0, arguments: None, parameters: Vec::new() };
        ControlFlow::Continue(GrammarPosition::Name { from: self.at, apart })
    }

    fn read_fence_line(&mut self, from: usize) -> NextPosition {
        let line = &self.text[from..];
        let (words, end) = line.find('\n').map_or((line, None), |end| (&line[..end], Some(end)));
        let words = words.trim();
        match end {
            Some(end) if end < WORD_LEN_MAX && FENCE_WORDS.contains(&words) => {
                self.at = from + end + 1;
                ControlFlow::Continue(GrammarPosition::Between)
            }
            None if line.len() < WORD_LEN_MAX && FENCE_WORDS.iter().any(|known| known.starts_with(words)) => {
                wait_for_more(GrammarPosition::FenceLine(from))
            }
            Some(_) | None => NOT,
        }
    }

    fn read_marked(&mut self, from: usize) -> NextPosition {
        self.skip_blanks();
        match self.text.as_bytes().get(self.at) {
            None => wait_for_more(GrammarPosition::Marked(from)),
            Some(b'[' | b'{') => ControlFlow::Continue(GrammarPosition::Between),
            Some(_) => self.begin_name(SplitCallForm::Marked, from),
        }
    }

    fn read_call_object(&mut self, from: usize, mut object: JsonObjectTracker) -> NextPosition {
        match self.feed_object(&mut object) {
            ControlFlow::Continue(()) => wait_for_more(GrammarPosition::Call { from, object }),
            ControlFlow::Break(ObjectEnd::Not) => NOT,
            ControlFlow::Break(ObjectEnd::Whole) => {
                self.found.push(FoundCall::Object(from..self.at));
                ControlFlow::Continue(GrammarPosition::Between)
            }
        }
    }

    fn feed_object(&mut self, object: &mut JsonObjectTracker) -> ControlFlow<ObjectEnd> {
        object.read(&self.text, &mut self.at, self.tools)
    }

    fn read_name(&mut self, from: usize, apart: SplitCall) -> NextPosition {
        let ends = match apart.form {
            SplitCallForm::Function => &['>'][..],
            SplitCallForm::Marked => &['[', '{', ' ', '\n'],
            SplitCallForm::Numbered => &['<'],
        };
        let said = &self.text[from..];
        let end = said.find(ends);
        let said = &said[..end.unwrap_or(said.len())];
        if said.len() > WORD_LEN_MAX {
            return NOT;
        }
        let said = said.trim_end();
        let (prefix, name) = match apart.form {
            SplitCallForm::Function | SplitCallForm::Marked => (0, said),
            SplitCallForm::Numbered => {
                if end.is_none() && NUMBERED_PREFIX.starts_with(said) {
                    return wait_for_more(GrammarPosition::Name { from, apart });
                }
                let name = said.strip_prefix(NUMBERED_PREFIX).unwrap_or(said);
                let prefix = said.len() - name.len();
                (prefix, name.split_once(':').map_or(name, |(name, _)| name))
            }
        };
        match end {
            Some(end) if self.tools.iter().any(|tool| tool.name == name) => {
                let name = from + prefix..from + prefix + name.len();
                self.at = from + end + usize::from(apart.form == SplitCallForm::Function);
                ControlFlow::Continue(GrammarPosition::Apart(SplitCall { name, ..apart }))
            }
            None if self.tools.iter().any(|tool| tool.name.starts_with(name)) => {
                wait_for_more(GrammarPosition::Name { from, apart })
            }
            Some(_) | None => NOT,
        }
    }

    fn read_split_call(&mut self, apart: SplitCall) -> NextPosition {
        let marks = match apart.form {
            SplitCallForm::Function => marks::IN_FUNCTION,
            SplitCallForm::Marked => marks::IN_MARKED,
            SplitCallForm::Numbered => marks::IN_NUMBERED,
        };
        let (from, mark) = match self.read_mark(marks) {
            MarkMatch::Is(mark, len) => (self.at - len, mark),
            MarkMatch::Cut => return wait_for_more(GrammarPosition::Apart(apart)),
            MarkMatch::Not => return NOT,
        };
        match (mark, apart.arguments.is_some()) {
            (CallMark::Object, false) if apart.parameters.is_empty() => {
                self.at = from;
                ControlFlow::Continue(GrammarPosition::Arguments {
                    from,
                    object: JsonObjectTracker::for_arguments(),
                    apart,
                })
            }
            (CallMark::ParameterBegin, false) => {
                ControlFlow::Continue(GrammarPosition::Parameter { from: self.at, apart })
            }
            (CallMark::MarkedArguments | CallMark::NumberedArguments, false) => {
                ControlFlow::Continue(GrammarPosition::Apart(apart))
            }
            (CallMark::MarkedId, false) => ControlFlow::Continue(GrammarPosition::Id(apart)),
            // Only where they are written one by one there may be no arguments at all.
            (CallMark::FunctionEnd, _) | (CallMark::NumberedEnd, true) => self.finish_split_call(apart),
            _ => NOT,
        }
    }

    fn finish_split_call(&mut self, apart: SplitCall) -> NextPosition {
        self.found.push(FoundCall::Apart(apart, self.at));
        ControlFlow::Continue(GrammarPosition::Between)
    }

    fn read_call_arguments(
        &mut self,
        from: usize,
        mut object: JsonObjectTracker,
        apart: SplitCall,
    ) -> NextPosition {
        match self.feed_object(&mut object) {
            ControlFlow::Continue(()) => wait_for_more(GrammarPosition::Arguments { from, object, apart }),
            ControlFlow::Break(ObjectEnd::Not) => NOT,
            ControlFlow::Break(ObjectEnd::Whole) => {
                let apart = SplitCall { arguments: Some(from..self.at), ..apart };
                match apart.form {
                    SplitCallForm::Marked => self.finish_split_call(apart),
                    SplitCallForm::Function | SplitCallForm::Numbered => {
                        ControlFlow::Continue(GrammarPosition::Apart(apart))
                    }
                }
            }
        }
    }

    fn read_parameter(&mut self, from: usize, apart: SplitCall) -> NextPosition {
        let said = &self.text[self.at..];
        match said.find(['>', '\n', '<']) {
            None if said.len() < WORD_LEN_MAX => wait_for_more(GrammarPosition::Parameter { from, apart }),
            // However the text is cut, a long word is none.
            Some(end) if said[end..].starts_with('>') && (1..WORD_LEN_MAX).contains(&end) => {
                let key = from..self.at + end;
                self.at = key.end + 1;
                ControlFlow::Continue(GrammarPosition::Value { key, from: self.at, apart })
            }
            Some(_) | None => NOT,
        }
    }

    fn read_parameter_value(&mut self, key: Range<usize>, from: usize, mut apart: SplitCall) -> NextPosition {
        match self.text[self.at..].find(PARAMETER_END) {
            None => {
                // The end may have begun.
                let read = self.text.len().saturating_sub(PARAMETER_END.len()).max(self.at);
                self.at = self.text.floor_char_boundary(read).max(from);
                wait_for_more(GrammarPosition::Value { key, from, apart })
            }
            Some(end) => {
                let end = self.at + end;
                self.at = end + PARAMETER_END.len();
                apart.parameters.push((key, from..end));
                ControlFlow::Continue(GrammarPosition::Apart(apart))
            }
        }
    }

    fn read_id(&mut self, apart: SplitCall) -> NextPosition {
        let said = &self.text[self.at..];
        match said.find(|char: char| !char.is_ascii_alphanumeric()) {
            None => {
                self.at = self.text.len();
                wait_for_more(GrammarPosition::Id(apart))
            }
            Some(end) => {
                self.at += end;
                ControlFlow::Continue(GrammarPosition::Apart(apart))
            }
        }
    }

    fn skip_blanks(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Reads the next mark.
    fn read_mark(&mut self, marks: MarkTable) -> MarkMatch {
        self.skip_blanks();
        let seen = marks::match_mark(marks, &self.text[self.at..]);
        if let MarkMatch::Is(_, len) = seen {
            self.at += len;
        }
        seen
    }

    fn to_written(&self, found: &FoundCall) -> Option<WrittenCall<'_>> {
        match found {
            FoundCall::Object(range) => {
                let text = &self.text[range.clone()];
                let (name, arguments) = read_call(complete_arguments(repair::read_arguments(text))?)?;
                Some(WrittenCall { name, arguments, text })
            }
            FoundCall::Apart(apart, end) => {
                let name = self.text[apart.name.clone()].to_owned();
                let arguments = match &apart.arguments {
                    Some(range) => complete_arguments(repair::read_arguments(&self.text[range.clone()]))?,
                    None => self.typed_parameters(&name, &apart.parameters)?,
                };
                Some(WrittenCall { name, arguments, text: &self.text[apart.from..*end] })
            }
        }
    }

    /// Reads parameters that were written without types, as the tool's schema has them. One given twice is none.
    fn typed_parameters(
        &self,
        name: &str,
        parameters: &[(Range<usize>, Range<usize>)],
    ) -> Option<Map<String, Value>> {
        let tool = self.tools.iter().find(|tool| tool.name == name)?;
        let mut map = Map::new();
        for (key, value) in parameters {
            let (key, value) = (&self.text[key.clone()], &self.text[value.clone()]);
            // The line breaks next to the tags belong to them.
            let value = value.strip_prefix('\n').unwrap_or(value);
            let value = value.strip_suffix('\n').unwrap_or(value);
            let typed = parse_typed_value(&tool.parameters["properties"][key]["type"], value);
            if map.insert(key.to_owned(), typed).is_some() {
                return None;
            }
        }
        Some(map)
    }
}

fn wait_for_more(place: GrammarPosition) -> NextPosition {
    ControlFlow::Break(GrammarStop::Wait(place))
}

/// Takes arguments in which nothing was missing.
fn complete_arguments(arguments: ToolArguments) -> Option<Map<String, Value>> {
    match arguments {
        ToolArguments::Valid(map) | ToolArguments::Repaired { value: map, doubt: None } => Some(map),
        ToolArguments::Repaired { doubt: Some(_), .. } | ToolArguments::Unreadable { .. } => None,
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
        Value::String(text) => complete_arguments(repair::read_arguments(text))?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => return None,
    };
    Some((name, arguments))
}

/// Reads a value by the types that a schema allows.
fn parse_typed_value(types: &Value, text: &str) -> Value {
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
