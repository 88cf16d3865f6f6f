//! An incremental parser for the formats of text tool calls: a mismatch is detected at the first byte that does not
//! fit.

use std::ops::{ControlFlow, Range};

use serde_json::{Map, Value};

use super::call_marks::{self, CallMark, MarkMatch, MarkTable};
use super::json_object::{ARGUMENT_KEYS, JsonObjectTracker, NAME_KEYS, ObjectEnd};
use crate::{ToolArguments, ToolSpec, repair};

/// Longer than a call with a large file.
const TEXT_LEN_MAX: usize = 1024 * 1024;

/// More calls than a model makes at once.
const N_CALLS_MAX: usize = 64;

/// A text that may consist of calls, while it arrives.
#[derive(Debug)]
pub(super) struct TextCallGrammar<'a> {
    tools: &'a [ToolSpec],
    text: String,
    /// The number of bytes read.
    n_read: usize,
    is_first: bool,
    /// The marks around the next call.
    enclosing: Vec<EnclosingMark>,
    position: GrammarPosition,
    calls: Vec<FoundCall>,
}

/// Whether a text may consist of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GrammarProgress {
    /// Possible so far.
    Incomplete,
    /// Impossible.
    Mismatch,
}

/// A parsed call.
#[derive(Debug, PartialEq)]
pub(super) struct WrittenCall<'a> {
    pub(super) name: String,
    pub(super) arguments: Map<String, Value>,
    /// The source text of the call.
    pub(super) text: &'a str,
}

/// A mark around calls.
#[derive(Debug)]
struct EnclosingMark {
    kind: EnclosingKind,
    /// The number of calls before it.
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
    /// Before a call, or after the last.
    Between,
    /// In the first line of a fence, whose info string begins there.
    FenceLine(usize),
    /// After `[TOOL_CALLS]`.
    Marked(usize),
    /// In an object that is a call.
    Call { start: usize, object: JsonObjectTracker },
    /// In the tool name of a split call.
    Name { start: usize, split_call: SplitCall },
    /// After that name.
    SplitCall(SplitCall),
    /// In its arguments.
    Arguments { start: usize, object: JsonObjectTracker, split_call: SplitCall },
    /// In a parameter name that begins there.
    Parameter { start: usize, split_call: SplitCall },
    /// In a parameter value that begins there.
    Value { key: Range<usize>, start: usize, split_call: SplitCall },
    /// In an ID, which is ignored.
    Id(SplitCall),
}

/// A call whose tool name is outside its arguments.
#[derive(Debug)]
struct SplitCall {
    form: SplitCallForm,
    start: usize,
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

/// A complete call.
#[derive(Debug)]
enum FoundCall {
    /// An object with name and arguments.
    Object(Range<usize>),
    Split(SplitCall, usize),
}

/// Info strings of a fence around a call.
const FENCE_WORDS: [&str; 5] = ["", "json", "tool_call", "tool_calls", "xml"];

/// Longer than a line or a name of any format.
const WORD_LEN_MAX: usize = 256;

const PARAMETER_END: &str = "</parameter>";

/// The prefix of names in the numbered format.
const NUMBERED_PREFIX: &str = "functions.";

/// The next state of the parser: a position, or a stop.
type NextPosition = ControlFlow<GrammarStop, GrammarPosition>;

enum GrammarStop {
    /// More text is needed at this position.
    NeedMore(GrammarPosition),
    Mismatch,
}

const MISMATCH: NextPosition = ControlFlow::Break(GrammarStop::Mismatch);

impl<'a> TextCallGrammar<'a> {
    /// Creates a parser at the start of a reply.
    pub(super) fn new(tools: &'a [ToolSpec]) -> Self {
        let position = GrammarPosition::Between;
        let (enclosing, calls) = (Vec::new(), Vec::new());
        Self { tools, text: String::new(), n_read: 0, is_first: true, enclosing, position, calls }
    }

    /// Creates a parser after other text.
    pub(super) fn after_words(tools: &'a [ToolSpec]) -> Self {
        Self { is_first: false, ..Self::new(tools) }
    }

    /// Whether this is the start of a reply, and no call has been found.
    pub(super) fn is_first(&self) -> bool {
        self.is_first && self.calls.is_empty()
    }

    /// Returns all text so far.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Parses more text.
    pub(super) fn feed(&mut self, text: &str) -> GrammarProgress {
        self.text.push_str(text);
        if self.text.len() > TEXT_LEN_MAX {
            return GrammarProgress::Mismatch;
        }
        let mut position = std::mem::replace(&mut self.position, GrammarPosition::Between);
        loop {
            position = match self.read_step(position) {
                ControlFlow::Continue(position) if self.calls.len() <= N_CALLS_MAX => position,
                ControlFlow::Break(GrammarStop::NeedMore(position)) => {
                    self.position = position;
                    return GrammarProgress::Incomplete;
                }
                ControlFlow::Continue(_) | ControlFlow::Break(GrammarStop::Mismatch) => {
                    return GrammarProgress::Mismatch;
                }
            };
        }
    }

    /// Returns the calls, if the text is complete and all of them can be parsed.
    pub(super) fn written_calls(&self) -> Option<Vec<WrittenCall<'_>>> {
        let is_complete = matches!(self.position, GrammarPosition::Between)
            && self.n_read == self.text.len()
            && self.enclosing.is_empty()
            && !self.calls.is_empty();
        if !is_complete {
            return None;
        }
        self.calls.iter().map(|call| self.to_written(call)).collect()
    }

    fn read_step(&mut self, position: GrammarPosition) -> NextPosition {
        match position {
            GrammarPosition::Between => self.read_between(),
            GrammarPosition::FenceLine(from) => self.read_fence_line(from),
            GrammarPosition::Marked(from) => self.read_marked(from),
            GrammarPosition::Call { start: from, object } => self.read_call_object(from, object),
            GrammarPosition::Name { start: from, split_call } => self.read_name(from, split_call),
            GrammarPosition::SplitCall(split_call) => self.read_split_call(split_call),
            GrammarPosition::Arguments { start: from, object, split_call } => {
                self.read_call_arguments(from, object, split_call)
            }
            GrammarPosition::Parameter { start: from, split_call } => self.read_parameter(from, split_call),
            GrammarPosition::Value { key, start: from, split_call } => {
                self.read_parameter_value(key, from, split_call)
            }
            GrammarPosition::Id(split_call) => self.read_id(split_call),
        }
    }

    fn read_between(&mut self) -> NextPosition {
        let enclosing = self.enclosing.last().map(|around| around.kind);
        let marks = match enclosing {
            None => call_marks::OUTSIDE,
            Some(EnclosingKind::Fence) => call_marks::IN_FENCE,
            Some(EnclosingKind::List) => call_marks::IN_LIST,
            Some(EnclosingKind::Tag) => call_marks::IN_TAG,
            Some(EnclosingKind::Section) => call_marks::IN_SECTION,
        };
        let (from, mark) = match self.read_mark(marks) {
            MarkMatch::Match(mark, len) => (self.n_read - len, mark),
            MarkMatch::Partial => return wait_for_more(GrammarPosition::Between),
            MarkMatch::NoMatch => return MISMATCH,
        };
        match mark {
            CallMark::Object => {
                self.n_read = from;
                return ControlFlow::Continue(GrammarPosition::Call {
                    start: from,
                    object: JsonObjectTracker::for_call(),
                });
            }
            CallMark::ListBegin => self.begin_enclosing(EnclosingKind::List),
            CallMark::Fence if enclosing.is_none() => {
                self.begin_enclosing(EnclosingKind::Fence);
                return ControlFlow::Continue(GrammarPosition::FenceLine(self.n_read));
            }
            CallMark::TagBegin => self.begin_enclosing(EnclosingKind::Tag),
            CallMark::SectionBegin => self.begin_enclosing(EnclosingKind::Section),
            CallMark::ListEnd | CallMark::Fence | CallMark::SectionEnd => self.end_enclosing()?,
            CallMark::TagEnd if enclosing.is_some() => self.end_enclosing()?,
            // Some models omit the opening tag.
            CallMark::TagEnd if self.is_after_form(SplitCallForm::Function) => {}
            CallMark::Comma | CallMark::Separator if !self.is_at_first_call() => {}
            CallMark::Announcement => {}
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
            | CallMark::NumberedEnd => return MISMATCH,
        }
        ControlFlow::Continue(GrammarPosition::Between)
    }

    fn begin_enclosing(&mut self, kind: EnclosingKind) {
        self.enclosing.push(EnclosingMark { kind, n_before: self.calls.len() });
    }

    /// Ends an enclosing mark, which must contain a call.
    fn end_enclosing(&mut self) -> ControlFlow<GrammarStop> {
        if self.is_at_first_call() {
            return ControlFlow::Break(GrammarStop::Mismatch);
        }
        self.enclosing.pop();
        ControlFlow::Continue(())
    }

    /// Whether no call has been found inside the current mark.
    fn is_at_first_call(&self) -> bool {
        self.calls.len() == self.enclosing.last().map_or(0, |mark| mark.n_before)
    }

    fn is_after_form(&self, form: SplitCallForm) -> bool {
        matches!(self.calls.last(), Some(FoundCall::Split(apart, _)) if apart.form == form)
    }

    fn begin_name(&self, form: SplitCallForm, from: usize) -> NextPosition {
        let split_call = SplitCall { form, start: from, name: 0..0, arguments: None, parameters: Vec::new() };
        ControlFlow::Continue(GrammarPosition::Name { start: self.n_read, split_call })
    }

    fn read_fence_line(&mut self, from: usize) -> NextPosition {
        let line = &self.text[from..];
        let (words, end) = line.find('\n').map_or((line, None), |end| (&line[..end], Some(end)));
        let words = words.trim();
        match end {
            Some(end) if end < WORD_LEN_MAX && FENCE_WORDS.contains(&words) => {
                self.n_read = from + end + 1;
                ControlFlow::Continue(GrammarPosition::Between)
            }
            None if line.len() < WORD_LEN_MAX && FENCE_WORDS.iter().any(|known| known.starts_with(words)) => {
                wait_for_more(GrammarPosition::FenceLine(from))
            }
            Some(_) | None => MISMATCH,
        }
    }

    fn read_marked(&mut self, from: usize) -> NextPosition {
        self.skip_blanks();
        match self.text.as_bytes().get(self.n_read) {
            None => wait_for_more(GrammarPosition::Marked(from)),
            Some(b'[' | b'{') => ControlFlow::Continue(GrammarPosition::Between),
            Some(_) => self.begin_name(SplitCallForm::Marked, from),
        }
    }

    fn read_call_object(&mut self, from: usize, mut object: JsonObjectTracker) -> NextPosition {
        match self.feed_object(&mut object) {
            ControlFlow::Continue(()) => wait_for_more(GrammarPosition::Call { start: from, object }),
            ControlFlow::Break(ObjectEnd::Mismatch) => MISMATCH,
            ControlFlow::Break(ObjectEnd::Complete) => {
                self.calls.push(FoundCall::Object(from..self.n_read));
                ControlFlow::Continue(GrammarPosition::Between)
            }
        }
    }

    fn feed_object(&mut self, object: &mut JsonObjectTracker) -> ControlFlow<ObjectEnd> {
        object.read(&self.text, &mut self.n_read, self.tools)
    }

    fn read_name(&mut self, from: usize, split_call: SplitCall) -> NextPosition {
        let ends = match split_call.form {
            SplitCallForm::Function => &['>'][..],
            SplitCallForm::Marked => &['[', '{', ' ', '\n'],
            SplitCallForm::Numbered => &['<'],
        };
        let name_text = &self.text[from..];
        let end = name_text.find(ends);
        let name_text = &name_text[..end.unwrap_or(name_text.len())];
        if name_text.len() > WORD_LEN_MAX {
            return MISMATCH;
        }
        let name_text = name_text.trim_end();
        let (prefix, name) = match split_call.form {
            SplitCallForm::Function | SplitCallForm::Marked => (0, name_text),
            SplitCallForm::Numbered => {
                if end.is_none() && NUMBERED_PREFIX.starts_with(name_text) {
                    return wait_for_more(GrammarPosition::Name { start: from, split_call });
                }
                let name = name_text.strip_prefix(NUMBERED_PREFIX).unwrap_or(name_text);
                let prefix = name_text.len() - name.len();
                (prefix, name.split_once(':').map_or(name, |(name, _)| name))
            }
        };
        match end {
            Some(end) if self.tools.iter().any(|tool| tool.name == name) => {
                let name = from + prefix..from + prefix + name.len();
                self.n_read = from + end + usize::from(split_call.form == SplitCallForm::Function);
                ControlFlow::Continue(GrammarPosition::SplitCall(SplitCall { name, ..split_call }))
            }
            None if self.tools.iter().any(|tool| tool.name.starts_with(name)) => {
                wait_for_more(GrammarPosition::Name { start: from, split_call })
            }
            Some(_) | None => MISMATCH,
        }
    }

    fn read_split_call(&mut self, split_call: SplitCall) -> NextPosition {
        let marks = match split_call.form {
            SplitCallForm::Function => call_marks::IN_FUNCTION,
            SplitCallForm::Marked => call_marks::IN_MARKED,
            SplitCallForm::Numbered => call_marks::IN_NUMBERED,
        };
        let (from, mark) = match self.read_mark(marks) {
            MarkMatch::Match(mark, len) => (self.n_read - len, mark),
            MarkMatch::Partial => return wait_for_more(GrammarPosition::SplitCall(split_call)),
            MarkMatch::NoMatch => return MISMATCH,
        };
        match (mark, split_call.arguments.is_some()) {
            (CallMark::Object, false) if split_call.parameters.is_empty() => {
                self.n_read = from;
                ControlFlow::Continue(GrammarPosition::Arguments {
                    start: from,
                    object: JsonObjectTracker::for_arguments(),
                    split_call,
                })
            }
            (CallMark::ParameterBegin, false) => {
                ControlFlow::Continue(GrammarPosition::Parameter { start: self.n_read, split_call })
            }
            (CallMark::MarkedArguments | CallMark::NumberedArguments, false) => {
                ControlFlow::Continue(GrammarPosition::SplitCall(split_call))
            }
            (CallMark::MarkedId, false) => ControlFlow::Continue(GrammarPosition::Id(split_call)),
            // Only separate parameters may be missing altogether.
            (CallMark::FunctionEnd, _) | (CallMark::NumberedEnd, true) => self.finish_split_call(split_call),
            _ => MISMATCH,
        }
    }

    fn finish_split_call(&mut self, split_call: SplitCall) -> NextPosition {
        self.calls.push(FoundCall::Split(split_call, self.n_read));
        ControlFlow::Continue(GrammarPosition::Between)
    }

    fn read_call_arguments(
        &mut self,
        from: usize,
        mut object: JsonObjectTracker,
        split_call: SplitCall,
    ) -> NextPosition {
        match self.feed_object(&mut object) {
            ControlFlow::Continue(()) => {
                wait_for_more(GrammarPosition::Arguments { start: from, object, split_call })
            }
            ControlFlow::Break(ObjectEnd::Mismatch) => MISMATCH,
            ControlFlow::Break(ObjectEnd::Complete) => {
                let split_call = SplitCall { arguments: Some(from..self.n_read), ..split_call };
                match split_call.form {
                    SplitCallForm::Marked => self.finish_split_call(split_call),
                    SplitCallForm::Function | SplitCallForm::Numbered => {
                        ControlFlow::Continue(GrammarPosition::SplitCall(split_call))
                    }
                }
            }
        }
    }

    fn read_parameter(&mut self, from: usize, split_call: SplitCall) -> NextPosition {
        let parameter_text = &self.text[self.n_read..];
        match parameter_text.find(['>', '\n', '<']) {
            None if parameter_text.len() < WORD_LEN_MAX => {
                wait_for_more(GrammarPosition::Parameter { start: from, split_call })
            }
            // A long word is no name, for any chunking.
            Some(end) if parameter_text[end..].starts_with('>') && (1..WORD_LEN_MAX).contains(&end) => {
                let key = from..self.n_read + end;
                self.n_read = key.end + 1;
                ControlFlow::Continue(GrammarPosition::Value { key, start: self.n_read, split_call })
            }
            Some(_) | None => MISMATCH,
        }
    }

    fn read_parameter_value(
        &mut self,
        key: Range<usize>,
        from: usize,
        mut split_call: SplitCall,
    ) -> NextPosition {
        match self.text[self.n_read..].find(PARAMETER_END) {
            None => {
                // The end tag may have begun.
                let read = self.text.len().saturating_sub(PARAMETER_END.len()).max(self.n_read);
                self.n_read = self.text.floor_char_boundary(read).max(from);
                wait_for_more(GrammarPosition::Value { key, start: from, split_call })
            }
            Some(end) => {
                let end = self.n_read + end;
                self.n_read = end + PARAMETER_END.len();
                split_call.parameters.push((key, from..end));
                ControlFlow::Continue(GrammarPosition::SplitCall(split_call))
            }
        }
    }

    fn read_id(&mut self, split_call: SplitCall) -> NextPosition {
        let id_text = &self.text[self.n_read..];
        match id_text.find(|char: char| !char.is_ascii_alphanumeric()) {
            None => {
                self.n_read = self.text.len();
                wait_for_more(GrammarPosition::Id(split_call))
            }
            Some(end) => {
                self.n_read += end;
                ControlFlow::Continue(GrammarPosition::SplitCall(split_call))
            }
        }
    }

    fn skip_blanks(&mut self) {
        let rest = &self.text[self.n_read..];
        self.n_read += rest.len() - rest.trim_start().len();
    }

    /// Reads the next mark.
    fn read_mark(&mut self, marks: MarkTable) -> MarkMatch {
        self.skip_blanks();
        let mark_match = call_marks::match_mark(marks, &self.text[self.n_read..]);
        if let MarkMatch::Match(_, len) = mark_match {
            self.n_read += len;
        }
        mark_match
    }

    fn to_written(&self, call: &FoundCall) -> Option<WrittenCall<'_>> {
        match call {
            FoundCall::Object(range) => {
                let text = &self.text[range.clone()];
                let (name, arguments) = read_call(complete_arguments(repair::read_arguments(text))?)?;
                Some(WrittenCall { name, arguments, text })
            }
            FoundCall::Split(split_call, end) => {
                let name = self.text[split_call.name.clone()].to_owned();
                let arguments = match &split_call.arguments {
                    Some(range) => complete_arguments(repair::read_arguments(&self.text[range.clone()]))?,
                    None => self.typed_parameters(&name, &split_call.parameters)?,
                };
                Some(WrittenCall { name, arguments, text: &self.text[split_call.start..*end] })
            }
        }
    }

    /// Converts untyped parameters by the tool's schema. A duplicate parameter is invalid.
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

fn wait_for_more(position: GrammarPosition) -> NextPosition {
    ControlFlow::Break(GrammarStop::NeedMore(position))
}

/// Returns arguments without doubt.
fn complete_arguments(arguments: ToolArguments) -> Option<Map<String, Value>> {
    match arguments {
        ToolArguments::Valid(map) | ToolArguments::Repaired { value: map, doubt: None } => Some(map),
        ToolArguments::Repaired { doubt: Some(_), .. } | ToolArguments::Unreadable { .. } => None,
    }
}

/// Parses the object of a call, which has one name and one arguments member.
fn read_call(mut map: Map<String, Value>) -> Option<(String, Map<String, Value>)> {
    if let Some(Value::Object(inner)) = map.get_mut("function") {
        map = std::mem::take(inner);
    }
    let mut names = NAME_KEYS.iter().filter_map(|key| map.get(*key)?.as_str());
    let name = names.next().filter(|_| names.next().is_none())?.to_owned();
    let mut given = ARGUMENT_KEYS.iter().filter_map(|key| map.get(*key));
    let arguments = match given.next().filter(|_| given.next().is_none())? {
        Value::Object(map) => map.clone(),
        Value::String(text) => complete_arguments(repair::read_arguments(text))?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => return None,
    };
    Some((name, arguments))
}

/// Parses a value by the types that a schema allows.
fn parse_typed_value(types: &Value, text: &str) -> Value {
    let is = |name: &str| types == name || types.as_array().is_some_and(|names| names.contains(&name.into()));
    let as_text = || Value::String(text.to_owned());
    if types.is_null() || is("string") {
        return as_text();
    }
    // A number or a list, in the syntax of JSON or Python.
    serde_json::from_str(text.trim())
        .or_else(|_| serde_json::from_str(&text.trim().to_ascii_lowercase()))
        .unwrap_or_else(|_| as_text())
}
