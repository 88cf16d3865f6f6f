//! Filters a server's messages line by line, and replaces a response that the SDK cannot parse (too long, nested too
//! deeply, too many values, invalid JSON) by an error response. The SDK would drop such a message, and its request
//! would never be answered. Pure.

use serde_json::{Value, json};

/// The SDK's limit for a message.
pub(super) const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Nesting levels that the SDK's parser accepts.
const LEVELS_MAX: usize = 120;

/// Values of one message: each takes a hundred bytes or more once it is parsed, however short its text is.
const VALUES_MAX: usize = 100_000;

/// Bytes at the start and the end of a response in which its ID is searched.
const HEAD_BYTES: usize = 256;

/// Bytes of a skipped line before the connection is given up: the line may never end.
const SKIPPED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// State of a filter within a line.
#[derive(Debug, Default)]
pub(super) struct MessageFilter {
    line: Vec<u8>,
    shape: MessageShape,
    /// Bytes of the line that is being skipped, if any.
    n_skipped: Option<usize>,
    /// The fault of the last skipped line.
    last_fault: Option<String>,
    /// Reason why reading has ended.
    end_reason: Option<String>,
}

/// Structure of the message read so far.
#[derive(Debug, Default)]
struct MessageShape {
    n_levels: usize,
    n_values: usize,
    is_in_text: bool,
    is_escaped: bool,
}

impl MessageShape {
    fn scan_byte(&mut self, byte: u8) {
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' if self.is_in_text => self.is_escaped = true,
            b'"' => self.is_in_text = !self.is_in_text,
            _ if self.is_in_text => {}
            b'{' | b'[' => {
                self.n_levels += 1;
                self.n_values += 1;
            }
            b'}' | b']' => self.n_levels = self.n_levels.saturating_sub(1),
            b',' => self.n_values += 1,
            _ => {}
        }
    }
}

impl MessageFilter {
    /// Reads bytes and appends to `output` what the SDK can parse.
    pub(super) fn feed(&mut self, bytes: &[u8], output: &mut Vec<u8>) {
        for &byte in bytes {
            if self.end_reason.is_some() {
                return;
            }
            match (byte, &mut self.n_skipped) {
                (b'\n', Some(_)) => self.n_skipped = None,
                (_, Some(n_skipped)) => {
                    *n_skipped += 1;
                    if *n_skipped > SKIPPED_BYTES_MAX {
                        self.end_reason = Some(too_long_message());
                    }
                }
                (b'\n', None) => self.end_line(output),
                (_, None) => self.push_byte(byte, output),
            }
        }
    }

    /// Reason why the server's output can no longer be read, if so.
    pub(super) fn end_reason(&self) -> Option<&str> {
        self.end_reason.as_deref()
    }

    /// The fault of the last skipped line.
    pub(super) fn last_fault(&self) -> Option<&str> {
        self.last_fault.as_deref()
    }

    fn push_byte(&mut self, byte: u8, output: &mut Vec<u8>) {
        self.line.push(byte);
        self.shape.scan_byte(byte);
        let is_message = self.line.first() == Some(&b'{');
        let reason = if self.line.len() > LINE_BYTES_MAX {
            too_long_message()
        } else if is_message && self.shape.n_levels > LEVELS_MAX {
            format!("its answer is nested more than {LEVELS_MAX} levels deep")
        } else if is_message && self.shape.n_values > VALUES_MAX {
            format!("its answer has more than {VALUES_MAX} values")
        } else {
            return;
        };
        let response = id_in_head(&self.line).map(|id| error_response(&id, &reason));
        // The ID may still be at the end of the message.
        output.extend(response.unwrap_or_default().into_bytes());
        self.last_fault = Some(reason);
        self.n_skipped = Some(0);
        self.clear_line();
    }

    fn end_line(&mut self, output: &mut Vec<u8>) {
        let is_message = self.line.first() == Some(&b'{');
        let id = || id_in_head(&self.line).or_else(|| id_at_end(&self.line));
        let parse_error = is_message.then(|| serde_json::from_slice::<Value>(&self.line).err()).flatten();
        match parse_error.and_then(|error| Some((id()?, error))) {
            Some((id, error)) => {
                output.extend(
                    error_response(&id, &format!("its answer is not valid JSON: {error}")).into_bytes(),
                );
            }
            None => {
                output.append(&mut self.line);
                output.push(b'\n');
            }
        }
        self.clear_line();
    }

    fn clear_line(&mut self) {
        self.line = Vec::new();
        self.shape = MessageShape::default();
    }
}

/// Returns an error response to the request that an unreadable response answers; `None` if the request is unknown.
pub(super) fn error_response_for(message: &[u8], reason: &str) -> Option<String> {
    let id = id_in_head(message).or_else(|| id_at_end(message))?;
    Some(error_response(&id, reason))
}

fn error_response(id: &Value, reason: &str) -> String {
    let response = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": reason}});
    format!("{response}\n")
}

/// Finds the ID of a response in front of its result. A request of the server has a method.
fn id_in_head(line: &[u8]) -> Option<Value> {
    let head = String::from_utf8_lossy(&line[..line.len().min(HEAD_BYTES)]);
    let prefix = head.split("\"result\"").next()?;
    let (_, id) = prefix.split_once("\"id\"").filter(|_| !prefix.contains("\"method\""))?;
    parse_id(id).map(|(id, _)| id)
}

/// Finds the ID of a response behind its result.
fn id_at_end(line: &[u8]) -> Option<Value> {
    let tail = String::from_utf8_lossy(&line[line.len().saturating_sub(HEAD_BYTES)..]);
    let (_, id) = tail.rsplit_once("\"id\"")?;
    let (id, rest) = parse_id(id)?;
    let rest = rest.split_whitespace().collect::<String>();
    matches!(rest.as_str(), "}" | ",\"jsonrpc\":\"2.0\"}").then_some(id)
}

/// Parses the value of an ID and returns the text behind it.
fn parse_id(text: &str) -> Option<(Value, &str)> {
    let text = text.trim_start().strip_prefix(':')?.trim_start();
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let id = values.next()?.ok().filter(|id| id.is_number() || id.is_string())?;
    Some((id, &text[values.byte_offset()..]))
}

fn too_long_message() -> String {
    format!("its answer is longer than {} MB", LINE_BYTES_MAX / 1024 / 1024)
}

#[cfg(test)]
mod tests;
