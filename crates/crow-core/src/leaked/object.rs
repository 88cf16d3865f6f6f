//! Follows a JSON object while it arrives, as far as it takes to tell where it ends and whether it can be a call.
//! What its strings hold is read when it is whole.

use std::ops::ControlFlow;

use crate::ToolSpec;

/// Deeper than the arguments of any tool.
const DEPTH_MAX: usize = 100;

/// An object while it arrives.
#[derive(Debug)]
pub(super) struct Object {
    /// The brackets that are open.
    open: Vec<u8>,
    at: At,
    /// How many brackets are open where the keys of a call stand; 0 where any object will do.
    level: usize,
    /// The last key at that level.
    key: Key,
}

/// What comes next.
#[derive(Debug, Clone, Copy)]
enum At {
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
enum Key {
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
pub(super) enum End {
    /// It ended.
    Whole,
    /// It is not what was wanted.
    Not,
}

impl Object {
    /// Follows an object that calls a tool.
    pub(super) fn of_call() -> Self {
        Self { open: Vec::new(), at: At::Start, level: 1, key: Key::Id }
    }

    /// Follows any object.
    pub(super) fn of_arguments() -> Self {
        Self { level: 0, ..Self::of_call() }
    }

    /// Reads on from `at`, which is moved; breaks off at the end. A call must name one of the tools.
    pub(super) fn read(&mut self, text: &str, at: &mut usize, tools: &[ToolSpec]) -> ControlFlow<End> {
        while let Some(byte) = text.as_bytes().get(*at) {
            match self.at {
                At::Key(from) => match string_end(text, at) {
                    None if self.is_judged() && !may_be_key(&text[from..*at]) => return not(),
                    None => return ControlFlow::Continue(()),
                    Some(end) => {
                        if self.is_judged() {
                            self.key = key(&text[from..end]).map_or_else(not, ControlFlow::Continue)?;
                        }
                        self.at = At::Colon;
                    }
                },
                At::Text(from) => {
                    let end = string_end(text, at);
                    let said = &text[from..end.unwrap_or(*at)];
                    let is_wanted = match self.key {
                        Key::Name | Key::Function => tools.iter().any(|tool| match end {
                            Some(_) => tool.name == said,
                            None => tool.name.starts_with(said),
                        }),
                        Key::Type if end.is_some() => said == "function",
                        Key::Type => "function".starts_with(said),
                        Key::Arguments | Key::Id => true,
                    };
                    if self.is_judged() && !is_wanted {
                        return not();
                    }
                    if end.is_none() {
                        return ControlFlow::Continue(());
                    }
                    self.at = At::CommaOrEnd;
                }
                At::Bare if byte.is_ascii_alphanumeric() || b"+-.".contains(byte) => *at += 1,
                At::Bare => self.at = At::CommaOrEnd,
                At::Start | At::KeyOrEnd | At::Colon | At::Value | At::ValueOrEnd | At::CommaOrEnd => {
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
    fn on_byte(&mut self, byte: u8, next: usize) -> ControlFlow<End> {
        self.at = match (self.at, byte) {
            (At::Start, b'{') => return self.begin(b'{'),
            (At::KeyOrEnd, b'"') => At::Key(next),
            (At::Colon, b':') => At::Value,
            (At::Value | At::ValueOrEnd, b'"') => At::Text(next),
            (At::Value | At::ValueOrEnd, b'{' | b'[') => return self.begin(byte),
            (At::Value | At::ValueOrEnd, b'-' | b'0'..=b'9' | b't' | b'f' | b'n')
                if !self.is_judged() || self.key == Key::Id =>
            {
                At::Bare
            }
            (At::CommaOrEnd, b',') if self.open.last() == Some(&b'{') => At::KeyOrEnd,
            (At::CommaOrEnd, b',') => At::ValueOrEnd,
            (At::CommaOrEnd | At::KeyOrEnd, b'}') if self.open.last() == Some(&b'{') => return self.close(),
            (At::CommaOrEnd | At::ValueOrEnd, b']') if self.open.last() == Some(&b'[') => {
                return self.close();
            }
            _ => return not(),
        };
        ControlFlow::Continue(())
    }

    fn begin(&mut self, bracket: u8) -> ControlFlow<End> {
        if self.is_judged() && !self.open.is_empty() {
            match self.key {
                Key::Arguments if bracket == b'{' => {}
                Key::Function if bracket == b'{' && self.level == 1 => self.level = 2,
                Key::Arguments | Key::Function | Key::Name | Key::Type | Key::Id => return not(),
            }
        }
        if self.open.len() == DEPTH_MAX {
            return not();
        }
        self.open.push(bracket);
        self.at = if bracket == b'{' { At::KeyOrEnd } else { At::ValueOrEnd };
        ControlFlow::Continue(())
    }

    fn close(&mut self) -> ControlFlow<End> {
        self.open.pop();
        self.level = self.level.min(self.open.len());
        self.at = At::CommaOrEnd;
        if self.open.is_empty() { ControlFlow::Break(End::Whole) } else { ControlFlow::Continue(()) }
    }

    fn is_judged(&self) -> bool {
        self.level > 0 && self.open.len() == self.level
    }
}

fn not<T>() -> ControlFlow<End, T> {
    ControlFlow::Break(End::Not)
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

fn key(text: &str) -> Option<Key> {
    match text {
        "function" => Some(Key::Function),
        "type" => Some(Key::Type),
        "id" => Some(Key::Id),
        name if NAMES.contains(&name) => Some(Key::Name),
        arguments if ARGUMENTS.contains(&arguments) => Some(Key::Arguments),
        _ => None,
    }
}

fn may_be_key(text: &str) -> bool {
    NAMES.iter().chain(&ARGUMENTS).chain(&OTHERS).any(|key| key.starts_with(text))
}
