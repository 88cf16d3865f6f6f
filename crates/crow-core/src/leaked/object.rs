//! Follows a JSON object while it arrives, as far as it takes to tell where it ends and whether it can be a call.
//! What its strings hold is read when it is whole.

use std::ops::ControlFlow;

use crate::ToolSpec;

/// Deeper than the arguments of any tool.
const DEPTH_MAX: usize = 100;

/// An object while it arrives.
#[derive(Debug)]
pub(super) struct JsonObjectTracker {
    /// The brackets that are open.
    open: Vec<u8>,
    at: JsonPosition,
    /// How many brackets are open where the keys of a call stand; 0 where any object will do.
    level: usize,
    /// The last key at that level.
    key: CallKey,
}

/// What comes next.
#[derive(Debug, Clone, Copy)]
enum JsonPosition {
    Start,
    KeyOrEnd,
    /// In a key that begins there.
    Key(usize),
    Colon,
    Value,
    ValueOrEnd,
    /// In a string that begins there.
    Text(usize),
    /// In a number or a literal.
    Bare,
    CommaOrEnd,
}

/// What the keys of a call mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallKey {
    /// The tool's name.
    Name,
    /// The tool's name, or an object with both.
    Function,
    Arguments,
    /// Always `function`, in words of the provider.
    Type,
    Id,
}

/// How the tool is called.
pub(super) const NAMES: [&str; 4] = ["name", "tool", "tool_name", "function"];

/// What it gets.
pub(super) const ARGUMENTS: [&str; 4] = ["arguments", "parameters", "args", "input"];

const OTHERS: [&str; 2] = ["type", "id"];

/// What to go on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectEnd {
    /// It ended.
    Whole,
    /// It is not what was wanted.
    Not,
}

impl JsonObjectTracker {
    /// Follows an object that calls a tool.
    pub(super) fn for_call() -> Self {
        Self { open: Vec::new(), at: JsonPosition::Start, level: 1, key: CallKey::Id }
    }

    /// Follows any object.
    pub(super) fn for_arguments() -> Self {
        Self { level: 0, ..Self::for_call() }
    }

    /// Reads on from `at`, which is moved; breaks off at the end. A call must name one of the tools.
    pub(super) fn read(&mut self, text: &str, at: &mut usize, tools: &[ToolSpec]) -> ControlFlow<ObjectEnd> {
        while let Some(byte) = text.as_bytes().get(*at) {
            match self.at {
                JsonPosition::Key(from) => match string_end(text, at) {
                    None if self.is_at_call_level() && !may_be_key(&text[from..*at]) => return not_a_call(),
                    None => return ControlFlow::Continue(()),
                    Some(end) => {
                        if self.is_at_call_level() {
                            self.key =
                                parse_key(&text[from..end]).map_or_else(not_a_call, ControlFlow::Continue)?;
                        }
                        self.at = JsonPosition::Colon;
                    }
                },
                JsonPosition::Text(from) => {
                    let end = string_end(text, at);
                    let said = &text[from..end.unwrap_or(*at)];
                    let is_wanted = match self.key {
                        CallKey::Name | CallKey::Function => tools.iter().any(|tool| match end {
                            Some(_) => tool.name == said,
                            None => tool.name.starts_with(said),
                        }),
                        CallKey::Type if end.is_some() => said == "function",
                        CallKey::Type => "function".starts_with(said),
                        CallKey::Arguments | CallKey::Id => true,
                    };
                    if self.is_at_call_level() && !is_wanted {
                        return not_a_call();
                    }
                    if end.is_none() {
                        return ControlFlow::Continue(());
                    }
                    self.at = JsonPosition::CommaOrEnd;
                }
                JsonPosition::Bare if byte.is_ascii_alphanumeric() || b"+-.".contains(byte) => *at += 1,
                JsonPosition::Bare => self.at = JsonPosition::CommaOrEnd,
                JsonPosition::Start
                | JsonPosition::KeyOrEnd
                | JsonPosition::Colon
                | JsonPosition::Value
                | JsonPosition::ValueOrEnd
                | JsonPosition::CommaOrEnd => {
                    *at += 1;
                    if !b" \n\r\t".contains(byte) {
                        self.on_byte(*byte, *at)?;
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Takes a byte between strings; `next` is the place behind it.
    fn on_byte(&mut self, byte: u8, next: usize) -> ControlFlow<ObjectEnd> {
        self.at = match (self.at, byte) {
            (JsonPosition::Start, b'{') => return self.open_bracket(b'{'),
            (JsonPosition::KeyOrEnd, b'"') => JsonPosition::Key(next),
            (JsonPosition::Colon, b':') => JsonPosition::Value,
            (JsonPosition::Value | JsonPosition::ValueOrEnd, b'"') => JsonPosition::Text(next),
            (JsonPosition::Value | JsonPosition::ValueOrEnd, b'{' | b'[') => return self.open_bracket(byte),
            (JsonPosition::Value | JsonPosition::ValueOrEnd, b'-' | b'0'..=b'9' | b't' | b'f' | b'n')
                if !self.is_at_call_level() || self.key == CallKey::Id =>
            {
                JsonPosition::Bare
            }
            (JsonPosition::CommaOrEnd, b',') if self.open.last() == Some(&b'{') => JsonPosition::KeyOrEnd,
            (JsonPosition::CommaOrEnd, b',') => JsonPosition::ValueOrEnd,
            (JsonPosition::CommaOrEnd | JsonPosition::KeyOrEnd, b'}') if self.open.last() == Some(&b'{') => {
                return self.close_bracket();
            }
            (JsonPosition::CommaOrEnd | JsonPosition::ValueOrEnd, b']')
                if self.open.last() == Some(&b'[') =>
            {
                return self.close_bracket();
            }
            _ => return not_a_call(),
        };
        ControlFlow::Continue(())
    }

    fn open_bracket(&mut self, bracket: u8) -> ControlFlow<ObjectEnd> {
        if self.is_at_call_level() && !self.open.is_empty() {
            match self.key {
                CallKey::Arguments if bracket == b'{' => {}
                CallKey::Function if bracket == b'{' && self.level == 1 => self.level = 2,
                CallKey::Arguments | CallKey::Function | CallKey::Name | CallKey::Type | CallKey::Id => {
                    return not_a_call();
                }
            }
        }
        if self.open.len() == DEPTH_MAX {
            return not_a_call();
        }
        self.open.push(bracket);
        self.at = if bracket == b'{' { JsonPosition::KeyOrEnd } else { JsonPosition::ValueOrEnd };
        ControlFlow::Continue(())
    }

    fn close_bracket(&mut self) -> ControlFlow<ObjectEnd> {
        self.open.pop();
        self.level = self.level.min(self.open.len());
        self.at = JsonPosition::CommaOrEnd;
        if self.open.is_empty() { ControlFlow::Break(ObjectEnd::Whole) } else { ControlFlow::Continue(()) }
    }

    fn is_at_call_level(&self) -> bool {
        self.level > 0 && self.open.len() == self.level
    }
}

fn not_a_call<T>() -> ControlFlow<ObjectEnd, T> {
    ControlFlow::Break(ObjectEnd::Not)
}

/// Moves behind the string that stands at `at`; tells where its text ends, if it does.
fn string_end(text: &str, at: &mut usize) -> Option<usize> {
    let bytes = text.as_bytes();
    loop {
        let Some(found) = text[*at..].find(['"', '\\']) else {
            *at = bytes.len();
            return None;
        };
        *at += found;
        if bytes[*at] == b'"' {
            *at += 1;
            return Some(*at - 1);
        }
        let escaped = text[*at + 1..].chars().next()?;
        *at += 1 + escaped.len_utf8();
    }
}

fn parse_key(text: &str) -> Option<CallKey> {
    match text {
        "function" => Some(CallKey::Function),
        "type" => Some(CallKey::Type),
        "id" => Some(CallKey::Id),
        name if NAMES.contains(&name) => Some(CallKey::Name),
        arguments if ARGUMENTS.contains(&arguments) => Some(CallKey::Arguments),
        _ => None,
    }
}

fn may_be_key(text: &str) -> bool {
    NAMES.iter().chain(&ARGUMENTS).chain(&OTHERS).any(|key| key.starts_with(text))
}
