//! Tracks a JSON object while it arrives: where it ends, and whether it can be a call. Strings are parsed when the
//! object is complete.

use std::ops::ControlFlow;

use crate::ToolSpec;

/// Deeper than the arguments of any tool.
const DEPTH_MAX: usize = 100;

/// An object while it arrives.
#[derive(Debug)]
pub(super) struct JsonObjectTracker {
    /// The open brackets.
    open_brackets: Vec<u8>,
    position: JsonPosition,
    /// The bracket depth of the keys of a call; 0 for any object.
    call_level: usize,
    /// The last key at that depth.
    key: CallKey,
}

/// The expected next token.
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
    String(usize),
    /// In a number or a literal.
    Literal,
    CommaOrEnd,
}

/// The meaning of a call's keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallKey {
    /// The tool's name.
    Name,
    /// The tool's name, or an object with name and arguments.
    Function,
    Arguments,
    /// Always `function`, as in provider APIs.
    Type,
    Id,
}

/// Keys of the tool's name.
pub(super) const NAME_KEYS: [&str; 4] = ["name", "tool", "tool_name", "function"];

/// Keys of the arguments.
pub(super) const ARGUMENT_KEYS: [&str; 4] = ["arguments", "parameters", "args", "input"];

const OTHER_KEYS: [&str; 2] = ["type", "id"];

/// The end of tracking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectEnd {
    /// The object is complete.
    Complete,
    /// The object is no call.
    Mismatch,
}

impl JsonObjectTracker {
    /// Tracks an object that is a call.
    pub(super) fn for_call() -> Self {
        Self { open_brackets: Vec::new(), position: JsonPosition::Start, call_level: 1, key: CallKey::Id }
    }

    /// Tracks any object.
    pub(super) fn for_arguments() -> Self {
        Self { call_level: 0, ..Self::for_call() }
    }

    /// Continues at `offset`, which is advanced; breaks at the end. A call must name one of the tools.
    pub(super) fn read(
        &mut self,
        text: &str,
        offset: &mut usize,
        tools: &[ToolSpec],
    ) -> ControlFlow<ObjectEnd> {
        while let Some(byte) = text.as_bytes().get(*offset) {
            match self.position {
                JsonPosition::Key(from) => match string_end(text, offset) {
                    None if self.is_at_call_level() && !may_be_key(&text[from..*offset]) => {
                        return not_a_call();
                    }
                    None => return ControlFlow::Continue(()),
                    Some(end) => {
                        if self.is_at_call_level() {
                            self.key =
                                parse_key(&text[from..end]).map_or_else(not_a_call, ControlFlow::Continue)?;
                        }
                        self.position = JsonPosition::Colon;
                    }
                },
                JsonPosition::String(from) => {
                    let end = string_end(text, offset);
                    let value = &text[from..end.unwrap_or(*offset)];
                    let is_possible = match self.key {
                        CallKey::Name | CallKey::Function => tools.iter().any(|tool| match end {
                            Some(_) => tool.name == value,
                            None => tool.name.starts_with(value),
                        }),
                        CallKey::Type if end.is_some() => value == "function",
                        CallKey::Type => "function".starts_with(value),
                        CallKey::Arguments | CallKey::Id => true,
                    };
                    if self.is_at_call_level() && !is_possible {
                        return not_a_call();
                    }
                    if end.is_none() {
                        return ControlFlow::Continue(());
                    }
                    self.position = JsonPosition::CommaOrEnd;
                }
                JsonPosition::Literal if byte.is_ascii_alphanumeric() || b"+-.".contains(byte) => {
                    *offset += 1;
                }
                JsonPosition::Literal => self.position = JsonPosition::CommaOrEnd,
                JsonPosition::Start
                | JsonPosition::KeyOrEnd
                | JsonPosition::Colon
                | JsonPosition::Value
                | JsonPosition::ValueOrEnd
                | JsonPosition::CommaOrEnd => {
                    *offset += 1;
                    if !b" \n\r\t".contains(byte) {
                        self.on_byte(*byte, *offset)?;
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Processes a byte between strings; `next` is the offset after it.
    fn on_byte(&mut self, byte: u8, next: usize) -> ControlFlow<ObjectEnd> {
        self.position = match (self.position, byte) {
            (JsonPosition::Start, b'{') => return self.open_bracket(b'{'),
            (JsonPosition::KeyOrEnd, b'"') => JsonPosition::Key(next),
            (JsonPosition::Colon, b':') => JsonPosition::Value,
            (JsonPosition::Value | JsonPosition::ValueOrEnd, b'"') => JsonPosition::String(next),
            (JsonPosition::Value | JsonPosition::ValueOrEnd, b'{' | b'[') => return self.open_bracket(byte),
            (JsonPosition::Value | JsonPosition::ValueOrEnd, b'-' | b'0'..=b'9' | b't' | b'f' | b'n')
                if !self.is_at_call_level() || self.key == CallKey::Id =>
            {
                JsonPosition::Literal
            }
            (JsonPosition::CommaOrEnd, b',') if self.open_brackets.last() == Some(&b'{') => {
                JsonPosition::KeyOrEnd
            }
            (JsonPosition::CommaOrEnd, b',') => JsonPosition::ValueOrEnd,
            (JsonPosition::CommaOrEnd | JsonPosition::KeyOrEnd, b'}')
                if self.open_brackets.last() == Some(&b'{') =>
            {
                return self.close_bracket();
            }
            (JsonPosition::CommaOrEnd | JsonPosition::ValueOrEnd, b']')
                if self.open_brackets.last() == Some(&b'[') =>
            {
                return self.close_bracket();
            }
            _ => return not_a_call(),
        };
        ControlFlow::Continue(())
    }

    fn open_bracket(&mut self, bracket: u8) -> ControlFlow<ObjectEnd> {
        if self.is_at_call_level() && !self.open_brackets.is_empty() {
            match self.key {
                CallKey::Arguments if bracket == b'{' => {}
                CallKey::Function if bracket == b'{' && self.call_level == 1 => self.call_level = 2,
                CallKey::Arguments | CallKey::Function | CallKey::Name | CallKey::Type | CallKey::Id => {
                    return not_a_call();
                }
            }
        }
        if self.open_brackets.len() == DEPTH_MAX {
            return not_a_call();
        }
        self.open_brackets.push(bracket);
        self.position = if bracket == b'{' { JsonPosition::KeyOrEnd } else { JsonPosition::ValueOrEnd };
        ControlFlow::Continue(())
    }

    fn close_bracket(&mut self) -> ControlFlow<ObjectEnd> {
        self.open_brackets.pop();
        self.call_level = self.call_level.min(self.open_brackets.len());
        self.position = JsonPosition::CommaOrEnd;
        if self.open_brackets.is_empty() {
            ControlFlow::Break(ObjectEnd::Complete)
        } else {
            ControlFlow::Continue(())
        }
    }

    fn is_at_call_level(&self) -> bool {
        self.call_level > 0 && self.open_brackets.len() == self.call_level
    }
}

fn not_a_call<T>() -> ControlFlow<ObjectEnd, T> {
    ControlFlow::Break(ObjectEnd::Mismatch)
}

/// Advances past the string at `offset`; returns the end of its text, if complete.
fn string_end(text: &str, offset: &mut usize) -> Option<usize> {
    let bytes = text.as_bytes();
    loop {
        let Some(length) = text[*offset..].find(['"', '\\']) else {
            *offset = bytes.len();
            return None;
        };
        *offset += length;
        if bytes[*offset] == b'"' {
            *offset += 1;
            return Some(*offset - 1);
        }
        let escaped = text[*offset + 1..].chars().next()?;
        *offset += 1 + escaped.len_utf8();
    }
}

fn parse_key(text: &str) -> Option<CallKey> {
    match text {
        "function" => Some(CallKey::Function),
        "type" => Some(CallKey::Type),
        "id" => Some(CallKey::Id),
        name if NAME_KEYS.contains(&name) => Some(CallKey::Name),
        arguments if ARGUMENT_KEYS.contains(&arguments) => Some(CallKey::Arguments),
        _ => None,
    }
}

fn may_be_key(text: &str) -> bool {
    NAME_KEYS.iter().chain(&ARGUMENT_KEYS).chain(&OTHER_KEYS).any(|key| key.starts_with(text))
}
