//! Bytes of the terminal as events. Pure: bytes and times in, events out; a sequence may be split anywhere.

mod sequence;

use std::time::{Duration, Instant};

use self::sequence::{ParsedInput, parse_escape};
use super::{InputEvent, KeyCode, KeyPress, TimedInput};

/// The rest of a sequence follows its escape within this time, also over ssh; otherwise the key was Escape.
const ESCAPE_WAIT: Duration = Duration::from_millis(50);

/// A longer sequence that stays open this long was cut off.
const SEQUENCE_WAIT: Duration = Duration::from_millis(500);

/// A paste that stays open this long has lost its end.
const PASTE_WAIT: Duration = Duration::from_secs(1);

/// A longer paste is cut: no prompt is that long.
const PASTE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// No reply that we ask for is longer.
const SEQUENCE_BYTES_MAX: usize = 4096;

const PASTE_END: &[u8] = b"\x1b[201~";

/// Parses input.
#[derive(Debug, Default)]
pub struct InputParser {
    /// Bytes that do not make an event yet.
    open: Vec<u8>,
    paste: Option<OpenPaste>,
    last_read: Option<Instant>,
}

#[derive(Debug, Default)]
struct OpenPaste {
    content: Vec<u8>,
    /// Whether the limit is reached; the rest is dropped until the paste ends.
    is_full: bool,
}

impl InputParser {
    /// Takes bytes that were read at a time and returns the events that they complete.
    pub fn push(&mut self, bytes: &[u8], read_at: Instant) -> Vec<TimedInput> {
        self.open.extend_from_slice(bytes);
        self.last_read = Some(read_at);
        let mut events = Vec::new();
        loop {
            let event = if self.paste.is_some() { self.take_paste() } else { self.take_event(read_at) };
            match event {
                Step::Event(event) => events.push(TimedInput { event, read_at }),
                Step::Skipped => {}
                Step::Incomplete => return events,
            }
        }
    }

    /// The time at which [`flush`](Self::flush) has to be called unless more input arrives.
    pub fn deadline(&self) -> Option<Instant> {
        let wait = match &self.paste {
            Some(_) => PASTE_WAIT,
            None if self.open.is_empty() => return None,
            None if is_key_with_escape(&self.open) => ESCAPE_WAIT,
            None => SEQUENCE_WAIT,
        };
        Some(self.last_read? + wait)
    }

    /// Completes what has waited long enough.
    pub fn flush(&mut self, now: Instant) -> Vec<TimedInput> {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return Vec::new();
        }
        let event = match self.paste.take() {
            Some(mut paste) => {
                paste.push(&std::mem::take(&mut self.open));
                Some(paste.into_event())
            }
            None => {
                let open = std::mem::take(&mut self.open);
                is_key_with_escape(&open).then(|| InputEvent::Key(escape_key(&open)))
            }
        };
        // The time of the key, not of the wait for the rest of a sequence.
        let read_at = self.last_read.unwrap_or(now);
        event.map(|event| TimedInput { event, read_at }).into_iter().collect()
    }

    fn take_event(&mut self, read_at: Instant) -> Step {
        let Some(&first) = self.open.first() else { return Step::Incomplete };
        let parsed = if first == 0x1b { parse_escape(&self.open) } else { parse_text(&self.open) };
        match parsed {
            ParsedInput::Event(n_bytes, event) => {
                self.open.drain(..n_bytes);
                Step::Event(event)
            }
            ParsedInput::PasteStart(n_bytes) => {
                self.open.drain(..n_bytes);
                self.paste = Some(OpenPaste::default());
                self.last_read = Some(read_at);
                Step::Skipped
            }
            ParsedInput::Unknown(n_bytes) => {
                self.open.drain(..n_bytes.max(1));
                Step::Skipped
            }
            ParsedInput::Incomplete if self.open.len() > SEQUENCE_BYTES_MAX => {
                self.open.clear();
                Step::Skipped
            }
            ParsedInput::Incomplete => Step::Incomplete,
        }
    }

    fn take_paste(&mut self) -> Step {
        let Some(paste) = &mut self.paste else { return Step::Incomplete };
        let end = self.open.windows(PASTE_END.len()).position(|bytes| bytes == PASTE_END);
        if let Some(end) = end {
            paste.push(&self.open[..end]);
            self.open.drain(..end + PASTE_END.len());
            let paste = self.paste.take().unwrap_or_default();
            return Step::Event(paste.into_event());
        }
        // The end may be split.
        let n_taken = self.open.len().saturating_sub(PASTE_END.len() - 1);
        paste.push(&self.open[..n_taken]);
        self.open.drain(..n_taken);
        Step::Incomplete
    }
}

impl OpenPaste {
    fn push(&mut self, bytes: &[u8]) {
        let n_free = PASTE_BYTES_MAX - self.content.len();
        self.is_full |= bytes.len() > n_free;
        self.content.extend_from_slice(&bytes[..bytes.len().min(n_free)]);
    }

    fn into_event(self) -> InputEvent {
        let content = String::from_utf8_lossy(&self.content).into_owned();
        InputEvent::Paste { content, is_truncated: self.is_full }
    }
}

enum Step {
    Event(InputEvent),
    Skipped,
    Incomplete,
}

/// Whether the bytes are complete as a key if nothing follows: Escape, or Alt with a key that begins sequences.
fn is_key_with_escape(open: &[u8]) -> bool {
    matches!(open, [0x1b] | [0x1b, b'[' | b']' | b'O' | b'P' | b'_' | b'^' | b'X'])
}

fn escape_key(open: &[u8]) -> KeyPress {
    match open {
        [0x1b, letter] => KeyPress::alt(KeyCode::Char(char::from(*letter))),
        _ => KeyPress::plain(KeyCode::Escape),
    }
}

/// Parses a key that is sent as text or as a control character.
fn parse_text(bytes: &[u8]) -> ParsedInput {
    let Some(&first) = bytes.first() else { return ParsedInput::Incomplete };
    if let Some(key) = control_key(first) {
        return ParsedInput::Event(1, InputEvent::Key(key));
    }
    let n_bytes = match first {
        0x20..=0x7e => 1,
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return ParsedInput::Unknown(1),
    };
    let n_there = bytes.len().min(n_bytes);
    match std::str::from_utf8(&bytes[..n_there]) {
        Ok(text) => match text.chars().next().filter(|letter| !letter.is_control()) {
            Some(letter) => {
                ParsedInput::Event(n_bytes, InputEvent::Key(KeyPress::plain(KeyCode::Char(letter))))
            }
            None => ParsedInput::Unknown(n_bytes),
        },
        Err(error) if error.error_len().is_none() && n_there < n_bytes => ParsedInput::Incomplete,
        Err(_) => ParsedInput::Unknown(1),
    }
}

/// Returns the key of a control character, except Escape.
fn control_key(byte: u8) -> Option<KeyPress> {
    let key = match byte {
        b'\r' => KeyPress::plain(KeyCode::Enter),
        b'\t' => KeyPress::plain(KeyCode::Tab),
        0x7f => KeyPress::plain(KeyCode::Backspace),
        0 => KeyPress::ctrl(' '),
        0x01..=0x1a => KeyPress::ctrl(char::from(byte + 0x60)),
        0x1c..=0x1f => KeyPress::ctrl(char::from(byte + 0x40)),
        _ => return None,
    };
    Some(key)
}

#[cfg(test)]
mod tests;
