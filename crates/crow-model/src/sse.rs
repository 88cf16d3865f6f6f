//! Server-sent events out of bytes that are cut anywhere. Knows nothing of what the events say.

#[cfg(test)]
mod tests;

use std::mem;

/// Room for one event. A whole file in one call's arguments fits; what is longer is no reply.
pub(crate) const EVENT_LEN_MAX: usize = 16 * 1024 * 1024;

/// Bytes looked at in one step when searching for a line's end; wide enough for vector instructions.
const STRIDE: usize = 32;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// An event longer than [`EVENT_LEN_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventTooLong;

/// What is left over between two chunks.
#[derive(Debug, Default)]
pub(crate) struct SseParser {
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
    /// The data of an event whose end has not come.
    data: Vec<u8>,
    has_data: bool,
    /// The last chunk ended with CR: an LF at the start of the next belongs to it.
    after_cr: bool,
    /// The first line is behind us, and with it the place for a byte order mark.
    has_begun: bool,
}

impl SseParser {
    /// Takes the next bytes; says the data of each event that they complete.
    pub(crate) fn feed(&mut self, chunk: &[u8], on_data: &mut impl FnMut(&[u8])) -> Result<(), EventTooLong> {
        let mut rest = match chunk {
            [b'\n', rest @ ..] if self.after_cr => rest,
            _ => chunk,
        };
        self.after_cr = self.after_cr && chunk.is_empty();
        // The only data line so far of an event, as long as it lies in this chunk: it is not copied.
        let mut whole: Option<&[u8]> = None;
        while let Some(end) = find_line_end(rest) {
            let line = &rest[..end];
            rest = match (rest[end], rest.get(end + 1)) {
                (b'\r', Some(b'\n')) => &rest[end + 2..],
                (b'\r', None) => {
                    self.after_cr = true;
                    &[]
                }
                _ => &rest[end + 1..],
            };
            if !self.line.is_empty() || !self.has_begun {
                self.line.extend_from_slice(line);
                self.end_carried_line(on_data)?;
            } else if line.is_empty() {
                match whole.take() {
                    Some(data) => on_data(data),
                    None => self.end_event(on_data),
                }
            } else if let Some(data) = data_value(line) {
                if self.has_data || whole.is_some() {
                    self.append_data(whole.take())?;
                    self.append_data(Some(data))?;
                } else {
                    whole = Some(data);
                }
            }
        }
        self.append_data(whole)?;
        self.line.extend_from_slice(rest);
        self.check_len()
    }

    /// Takes the end of the stream: the last event counts even when its blank line never came.
    pub(crate) fn finish(&mut self, on_data: &mut impl FnMut(&[u8])) -> Result<(), EventTooLong> {
        self.end_carried_line(on_data)?;
        self.end_event(on_data);
        Ok(())
    }

    fn end_carried_line(&mut self, on_data: &mut impl FnMut(&[u8])) -> Result<(), EventTooLong> {
        let mut buffer = mem::take(&mut self.line);
        let line = match buffer.strip_prefix(BOM) {
            Some(line) if !self.has_begun => line,
            _ => buffer.as_slice(),
        };
        self.has_begun = true;
        if line.is_empty() {
            self.end_event(on_data);
        } else {
            self.append_data(data_value(line))?;
        }
        buffer.clear();
        self.line = buffer;
        Ok(())
    }

    fn end_event(&mut self, on_data: &mut impl FnMut(&[u8])) {
        if mem::take(&mut self.has_data) {
            on_data(&self.data);
            self.data.clear();
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
        if self.line.len() + self.data.len() > EVENT_LEN_MAX { Err(EventTooLong) } else { Ok(()) }
    }
}

/// The value of a `data` field; comments and other fields have nothing to say to us.
fn data_value(line: &[u8]) -> Option<&[u8]> {
    match line.strip_prefix(b"data")? {
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        [] => Some(&[]),
        _ => None,
    }
}

fn find_line_end(bytes: &[u8]) -> Option<usize> {
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let strides = bytes.chunks_exact(STRIDE);
    // No early exit inside a stride: that lets the compiler look at all of it at once.
    let n_without =
        strides.take_while(|stride| !stride.iter().fold(false, |any, byte| any | is_end(byte))).count();
    let start = n_without * STRIDE;
    bytes[start..].iter().position(is_end).map(|place| start + place)
}
