//! Server-sent events from bytes that are split anywhere, for model APIs and MCP servers. Must not know what the events
//! mean.

#[cfg(test)]
mod tests;

use std::mem;

/// The default maximum size of an event. A whole file in one call's arguments fits; the MCP SDK has the same limit for
/// messages.
pub const EVENT_LEN_MAX: usize = 16 * 1024 * 1024;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// An event that is longer than the parser's maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventTooLong;

/// A complete event. One without data is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// The value of its last `event` field; empty without one.
    pub name: &'a [u8],
    /// Its data lines, joined with LF.
    pub data: &'a [u8],
}

/// The state between two chunks.
#[derive(Debug)]
pub struct SseParser {
    len_max: usize,
    /// The beginning of an incomplete line.
    line: Vec<u8>,
    /// The name of an incomplete event.
    name: Vec<u8>,
    /// The data of an incomplete event.
    data: Vec<u8>,
    has_data: bool,
    /// The last chunk ended with CR: an LF at the start of the next belongs to it.
    ended_with_cr: bool,
    /// The first line is complete, so a byte order mark can no longer follow.
    has_first_line: bool,
}

impl Default for SseParser {
    fn default() -> Self {
        Self::with_len_max(EVENT_LEN_MAX)
    }
}

impl SseParser {
    /// Creates a parser for events of at most this size.
    pub fn with_len_max(len_max: usize) -> Self {
        Self {
            len_max,
            line: Vec::new(),
            name: Vec::new(),
            data: Vec::new(),
            has_data: false,
            ended_with_cr: false,
            has_first_line: false,
        }
    }

    /// Decodes the next bytes; emits each event that they complete.
    pub fn feed(
        &mut self,
        chunk: &[u8],
        on_event: &mut impl FnMut(SseEvent<'_>),
    ) -> Result<(), EventTooLong> {
        let mut rest = match chunk {
            [b'\n', rest @ ..] if self.ended_with_cr => rest,
            _ => chunk,
        };
        self.ended_with_cr = self.ended_with_cr && chunk.is_empty();
        // The only data line so far of an event, while it lies in this chunk: it is not copied.
        let mut single_line: Option<&[u8]> = None;
        while let Some(end) = memchr::memchr2(b'\n', b'\r', rest) {
            let line = &rest[..end];
            rest = match (rest[end], rest.get(end + 1)) {
                (b'\r', Some(b'\n')) => &rest[end + 2..],
                (b'\r', None) => {
                    self.ended_with_cr = true;
                    &[]
                }
                _ => &rest[end + 1..],
            };
            if !self.line.is_empty() || !self.has_first_line {
                self.line.extend_from_slice(line);
                self.end_carried_line(on_event)?;
            } else if line.is_empty() {
                match single_line.take() {
                    Some(data) => {
                        on_event(SseEvent { name: &self.name, data });
                        self.name.clear();
                    }
                    None => self.end_event(on_event),
                }
            } else if let Some(data) = field_value(line, b"data") {
                if self.has_data || single_line.is_some() {
                    self.append_data(single_line.take())?;
                    self.append_data(Some(data))?;
                } else {
                    single_line = Some(data);
                }
            } else {
                self.set_name(line);
            }
        }
        self.append_data(single_line)?;
        self.line.extend_from_slice(rest);
        self.check_len()
    }

    /// Ends the stream: the last event counts even without its blank line.
    pub fn finish(&mut self, on_event: &mut impl FnMut(SseEvent<'_>)) -> Result<(), EventTooLong> {
        self.end_carried_line(on_event)?;
        self.end_event(on_event);
        Ok(())
    }

    fn end_carried_line(&mut self, on_event: &mut impl FnMut(SseEvent<'_>)) -> Result<(), EventTooLong> {
        let mut buffer = mem::take(&mut self.line);
        let line = match buffer.strip_prefix(BOM) {
            Some(line) if !self.has_first_line => line,
            _ => buffer.as_slice(),
        };
        self.has_first_line = true;
        if line.is_empty() {
            self.end_event(on_event);
        } else if let Some(data) = field_value(line, b"data") {
            self.append_data(Some(data))?;
        } else {
            self.set_name(line);
        }
        buffer.clear();
        self.line = buffer;
        Ok(())
    }

    fn end_event(&mut self, on_event: &mut impl FnMut(SseEvent<'_>)) {
        if mem::take(&mut self.has_data) {
            on_event(SseEvent { name: &self.name, data: &self.data });
            self.data.clear();
        }
        self.name.clear();
    }

    /// Stores the event's name if this line has it; comments and other fields are ignored.
    fn set_name(&mut self, line: &[u8]) {
        if let Some(name) = field_value(line, b"event") {
            self.name.clear();
            self.name.extend_from_slice(name);
        }
    }

    fn append_data(&mut self, data: Option<&[u8]>) -> Result<(), EventTooLong> {
        let Some(data) = data else { return Ok(()) };
        if mem::replace(&mut self.has_data, true) {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(data);
        self.check_len()
    }

    fn check_len(&self) -> Result<(), EventTooLong> {
        if self.line.len() + self.name.len() + self.data.len() > self.len_max {
            Err(EventTooLong)
        } else {
            Ok(())
        }
    }
}

/// Returns the value of a line if it is this field.
fn field_value<'l>(line: &'l [u8], field: &[u8]) -> Option<&'l [u8]> {
    match line.strip_prefix(field)? {
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        [] => Some(&[]),
        _ => None,
    }
}
