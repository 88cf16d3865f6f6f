//! Passes on the messages of a server, line by line, and answers in the server's place where nobody could read its answer:
//! one that is too long, nested too deeply, made of too many values, or no JSON. The SDK drops such a message, and the
//! request that it answers would wait in vain. Pure.

use serde_json::{Value, json};

/// The longest message the SDK takes.
pub(super) const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Levels of lists and objects in one another that the SDK's parser takes.
const LEVELS_MAX: usize = 120;

/// Values of one message: each takes a hundred bytes and more once it is read, however short its text is.
const VALUES_MAX: usize = 100_000;

/// Where an answer has its id, if it is to be found at all.
const HEAD_BYTES: usize = 256;

/// Bytes of a line that is passed over before the server is given up: nobody knows whether it ends.
const SKIPPED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What a filter has read of a line.
#[derive(Debug, Default)]
pub(super) struct MessageFilter {
    line: Vec<u8>,
    shape: MessageShape,
    /// Bytes of a line that is passed over, while it is.
    n_skipped: Option<usize>,
    /// Why a line was given up in its middle, the last time.
    last_fault: Option<String>,
    /// Why no more can be read.
    end_reason: Option<String>,
}

/// How a message is built, as far as it was read.
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
    /// Takes the next bytes, and adds to `out` what the SDK may read of them.
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

    /// Why nothing of the server can be read any more, when that is so.
    pub(super) fn end_reason(&self) -> Option<&str> {
        self.end_reason.as_deref()
    }

    /// Why a line was given up in its middle, the last time.
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
        // A message whose id is not known yet may still have an end, with the id.
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
                output.extend(error_response(&id, &format!("its answer is no JSON: {error}")).into_bytes());
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

/// Answers a request in place of a server, whose own answer to it cannot be read; `None` when it cannot be told which
/// request that is.
pub(super) fn error_response_for(message: &[u8], reason: &str) -> Option<String> {
    let id = id_in_head(message).or_else(|| id_at_end(message))?;
    Some(error_response(&id, reason))
}

fn error_response(id: &Value, reason: &str) -> String {
    let response = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": reason}});
    format!("{response}\n")
}

/// Finds the id of an answer before what it says. A request of the server's own has a method.
fn id_in_head(line: &[u8]) -> Option<Value> {
    let head = String::from_utf8_lossy(&line[..line.len().min(HEAD_BYTES)]);
    let prefix = head.split("\"result\"").next()?;
    let (_, id) = prefix.split_once("\"id\"").filter(|_| !prefix.contains("\"method\""))?;
    parse_id(id).map(|(id, _)| id)
}

/// Finds the id of an answer behind what it says.
fn id_at_end(line: &[u8]) -> Option<Value> {
    let tail = String::from_utf8_lossy(&line[line.len().saturating_sub(HEAD_BYTES)..]);
    let (_, id) = tail.rsplit_once("\"id\"")?;
    let (id, rest) = parse_id(id)?;
    let rest = rest.split_whitespace().collect::<String>();
    matches!(rest.as_str(), "}" | ",\"jsonrpc\":\"2.0\"}").then_some(id)
}

/// Reads the value behind the name of an id, and gives what follows it.
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
