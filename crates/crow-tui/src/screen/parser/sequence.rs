//! Escape sequences: modified keys in every encoding in use, focus, and the replies to our queries.

use super::{control_key, parse_text};
use crate::screen::key::{KeyCode, KeyModifiers, KeyPress};
use crate::screen::reply::{InputEvent, TerminalReply};

/// The beginning of the input.
pub(super) enum ParsedInput {
    /// An event of this many bytes.
    Event(usize, InputEvent),
    PasteStart(usize),
    /// Bytes without a meaning for us.
    Unknown(usize),
    Incomplete,
}

/// Parses input that begins with an escape.
pub(super) fn parse_escape(bytes: &[u8]) -> ParsedInput {
    match bytes.get(1) {
        None => ParsedInput::Incomplete,
        Some(b'[') => parse_control_sequence(bytes),
        Some(b']') => parse_string(bytes, parse_system_reply),
        Some(b'P') => parse_string(bytes, parse_device_reply),
        Some(b'_' | b'^' | b'X') => parse_string(bytes, |_| None),
        Some(b'O') => match bytes.get(2) {
            None => ParsedInput::Incomplete,
            Some(&letter) => match letter_key(letter) {
                Some(code) => ParsedInput::Event(3, InputEvent::Key(KeyPress::plain(code))),
                None => ParsedInput::Unknown(3),
            },
        },
        Some(0x1b) => ParsedInput::Event(1, InputEvent::Key(KeyPress::plain(KeyCode::Escape))),
        Some(&byte) => {
            let parsed = match control_key(byte) {
                Some(key) => ParsedInput::Event(1, InputEvent::Key(key)),
                None => parse_text(&bytes[1..]),
            };
            match parsed {
                ParsedInput::Event(n_bytes, InputEvent::Key(key)) => {
                    let modifiers = KeyModifiers { alt: true, ..key.modifiers };
                    ParsedInput::Event(n_bytes + 1, InputEvent::Key(KeyPress { modifiers, ..key }))
                }
                ParsedInput::Unknown(n_bytes) => ParsedInput::Unknown(n_bytes + 1),
                ParsedInput::Event(..) | ParsedInput::PasteStart(_) | ParsedInput::Incomplete => {
                    ParsedInput::Incomplete
                }
            }
        }
    }
}

/// Parses a string up to its terminator.
fn parse_string(bytes: &[u8], parse: impl Fn(&str) -> Option<TerminalReply>) -> ParsedInput {
    let content = &bytes[2..];
    let bell = content.iter().position(|&byte| byte == 0x07).map(|end| (end, 1));
    let terminator = content.windows(2).position(|pair| pair == b"\x1b\\").map(|end| (end, 2));
    let Some((end, n_terminator)) = [bell, terminator].into_iter().flatten().min() else {
        return ParsedInput::Incomplete;
    };
    let n_bytes = 2 + end + n_terminator;
    match std::str::from_utf8(&content[..end]).ok().and_then(parse) {
        Some(reply) => ParsedInput::Event(n_bytes, InputEvent::Reply(reply)),
        None => ParsedInput::Unknown(n_bytes),
    }
}

fn parse_system_reply(content: &str) -> Option<TerminalReply> {
    let color = content.strip_prefix("11;rgb:").or_else(|| content.strip_prefix("11;rgba:"))?;
    // One to four hexadecimal digits each.
    let part = |text: &str| {
        let max =
            16_u32.checked_pow(u32::try_from(text.len()).ok()?)?.checked_sub(1).filter(|max| *max > 0)?;
        Some(u32::from_str_radix(text, 16).ok()? * 255 / max)
    };
    let mut parts = color.split('/').map(|text| if text.len() <= 4 { part(text) } else { None });
    let (red, green, blue) = (parts.next()??, parts.next()??, parts.next()??);
    let luminance = (299 * red + 587 * green + 114 * blue) / 1000;
    Some(TerminalReply::Background { is_light: luminance > 127 })
}

fn parse_device_reply(content: &str) -> Option<TerminalReply> {
    let version: String = content.strip_prefix(">|")?.chars().filter(|letter| !letter.is_control()).collect();
    Some(TerminalReply::Version(version))
}

/// A control sequence: `CSI`, a private marker, parameters, a final byte.
struct ControlSequence {
    marker: Option<u8>,
    /// The first value of each parameter; the kitty protocol adds further ones after a colon.
    parameters: Vec<u32>,
    event_type: u32,
    last: u8,
}

/// No sequence that we know has more.
const PARAMETERS_MAX: usize = 16;

fn parse_control_sequence(bytes: &[u8]) -> ParsedInput {
    let body = &bytes[2..];
    let Some(end) = body.iter().position(|byte| !matches!(byte, 0x20..=0x3f)) else {
        return ParsedInput::Incomplete;
    };
    let n_bytes = end + 3;
    if !matches!(body[end], 0x40..=0x7e) {
        // Something else interrupts the sequence.
        return ParsedInput::Unknown(n_bytes - 1);
    }
    let (marker, parameters) = match body[..end].split_first() {
        Some((&marker @ (b'<' | b'=' | b'>' | b'?'), rest)) => (Some(marker), rest),
        _ => (None, &body[..end]),
    };
    let text = String::from_utf8_lossy(parameters);
    let number = |text: &str| text.parse().unwrap_or(0);
    let sequence = ControlSequence {
        marker,
        parameters: text
            .split(';')
            .take(PARAMETERS_MAX)
            .map(|part| number(part.split(':').next().unwrap_or_default()))
            .collect(),
        event_type: text.split(';').nth(1).and_then(|part| part.split(':').nth(1)).map_or(1, number),
        last: body[end],
    };
    if sequence.last == b'~' && sequence.parameter(0) == 200 {
        return ParsedInput::PasteStart(n_bytes);
    }
    match sequence.to_event() {
        Some(event) => ParsedInput::Event(n_bytes, event),
        None => ParsedInput::Unknown(n_bytes),
    }
}

/// Super (Command), Hyper and Meta: with them a key is a shortcut of the system or the window, and types nothing.
const FOREIGN_MODIFIERS: u32 = 8 | 16 | 32;

/// Meta in xterm's encoding and in the kitty protocol: with an arrow key it is the Alt of some terminals.
const META: u32 = 8 | 32;

/// Events of the kitty protocol.
const KEY_REPEAT: u32 = 2;
const KEY_RELEASE: u32 = 3;

/// Buttons of a mouse report.
const WHEEL_UP: u32 = 64;
const WHEEL_DOWN: u32 = 65;

impl ControlSequence {
    fn parameter(&self, index: usize) -> u32 {
        self.parameters.get(index).copied().unwrap_or(0)
    }

    fn to_event(&self) -> Option<InputEvent> {
        match (self.marker, self.last) {
            (Some(b'?'), b'u') => return Some(InputEvent::Reply(TerminalReply::KittyKeyboard)),
            (Some(b'?'), b'c') => return Some(InputEvent::Reply(TerminalReply::DeviceAttributes)),
            (Some(b'<'), b'M') => {
                let code = match self.parameter(0) {
                    WHEEL_UP => KeyCode::WheelUp,
                    WHEEL_DOWN => KeyCode::WheelDown,
                    _ => return None,
                };
                return Some(InputEvent::Key(KeyPress::plain(code)));
            }
            (Some(_), _) => return None,
            (None, b'R') => {
                let place =
                    |index| Some(u16::try_from(self.parameter(index).checked_sub(1)?).unwrap_or(u16::MAX));
                let reply = TerminalReply::CursorPosition { row: place(0)?, column: place(1)? };
                return Some(InputEvent::Reply(reply));
            }
            (None, b'I') => return Some(InputEvent::FocusChanged(true)),
            (None, b'O') => return Some(InputEvent::FocusChanged(false)),
            (None, _) => {}
        }
        match self.event_type {
            KEY_RELEASE => None,
            KEY_REPEAT => self.to_key().map(InputEvent::KeyRepeat),
            _ => self.to_key().map(InputEvent::Key),
        }
    }

    fn to_key(&self) -> Option<KeyPress> {
        let bits = self.parameter(1).saturating_sub(1);
        let mut modifiers = modifiers_of(self.parameter(1));
        if matches!(self.last, b'A'..=b'D') && bits & META != 0 && bits & FOREIGN_MODIFIERS & !META == 0 {
            modifiers.alt = true;
        } else if bits & FOREIGN_MODIFIERS != 0 {
            return None;
        }
        let key = |code| KeyPress { code, modifiers };
        match self.last {
            b'Z' => {
                Some(KeyPress { code: KeyCode::Tab, modifiers: KeyModifiers { shift: true, ..modifiers } })
            }
            b'u' => unicode_key(self.parameter(0), modifiers),
            b'~' if self.parameter(0) == 27 => unicode_key(self.parameter(2), modifiers),
            b'~' => number_key(self.parameter(0)).map(key),
            letter => letter_key(letter).map(key),
        }
    }
}

fn modifiers_of(parameter: u32) -> KeyModifiers {
    let bits = parameter.saturating_sub(1);
    KeyModifiers { shift: bits & 1 != 0, alt: bits & 2 != 0, ctrl: bits & 4 != 0 }
}

/// Returns the key of a code point, as the kitty protocol and xterm's `modifyOtherKeys` report it.
fn unicode_key(code: u32, modifiers: KeyModifiers) -> Option<KeyPress> {
    let code = match code {
        9 => KeyCode::Tab,
        13 | 57414 => KeyCode::Enter,
        27 => KeyCode::Escape,
        8 | 127 => KeyCode::Backspace,
        // The keypad.
        57399..=57408 => KeyCode::Char(char::from_u32(code - 57399 + u32::from(b'0'))?),
        57417 => KeyCode::Left,
        57418 => KeyCode::Right,
        57419 => KeyCode::Up,
        57420 => KeyCode::Down,
        57421 => KeyCode::PageUp,
        57422 => KeyCode::PageDown,
        57423 => KeyCode::Home,
        57424 => KeyCode::End,
        57425 => KeyCode::Insert,
        57426 => KeyCode::Delete,
        // Other keys of the protocol have no text.
        57344..=63743 => return None,
        _ => return letter_with(char::from_u32(code).filter(|letter| !letter.is_control())?, modifiers),
    };
    Some(KeyPress { code, modifiers })
}

/// Returns a letter as [`KeyCode::Char`] has it: a capital instead of Shift, lower case with Ctrl.
fn letter_with(letter: char, modifiers: KeyModifiers) -> Option<KeyPress> {
    if modifiers.ctrl {
        let code = KeyCode::Char(letter.to_ascii_lowercase());
        return Some(KeyPress { code, modifiers });
    }
    let capital = letter.to_uppercase().next().filter(|_| modifiers.shift).unwrap_or(letter);
    Some(KeyPress { code: KeyCode::Char(capital), modifiers: KeyModifiers { shift: false, ..modifiers } })
}

fn letter_key(letter: u8) -> Option<KeyCode> {
    let code = match letter {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'H' => KeyCode::Home,
        b'F' => KeyCode::End,
        b'M' => KeyCode::Enter,
        b'P'..=b'S' => KeyCode::Function(letter - b'P' + 1),
        _ => return None,
    };
    Some(code)
}

fn number_key(number: u32) -> Option<KeyCode> {
    let code = match number {
        1 | 7 => KeyCode::Home,
        2 => KeyCode::Insert,
        3 => KeyCode::Delete,
        4 | 8 => KeyCode::End,
        5 => KeyCode::PageUp,
        6 => KeyCode::PageDown,
        11..=15 => function_key(number - 10),
        17..=21 => function_key(number - 11),
        23 | 24 => function_key(number - 12),
        _ => return None,
    };
    Some(code)
}

fn function_key(number: u32) -> KeyCode {
    KeyCode::Function(u8::try_from(number).unwrap_or(u8::MAX))
}
