//! Finds calls after other text: an opening tag at the start of a line, outside code.

/// The opening tag of a call.
const CALL_TAG: &str = "<tool_call>";

/// The fence of a code block.
const FENCE: &str = "```";

/// More white space than a line of prose begins with.
const INDENT_LEN_MAX: usize = 256;

/// Other text while it arrives.
#[derive(Debug, Default)]
pub(super) struct TextCallWatcher {
    /// The start of a line that may become a tag or a fence.
    pending: String,
    is_in_line: bool,
    is_in_code: bool,
}

/// The result of watching.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WatchOutcome {
    /// Text without a call, emitted or held back.
    Text,
    /// A call begins with this text; the text before it is emitted.
    Call(String),
}

impl TextCallWatcher {
    /// Returns the text that is held back.
    pub(super) fn pending_text(&self) -> &str {
        &self.pending
    }

    /// Processes more text; emits what is certain.
    pub(super) fn feed(&mut self, text: &str, emit: &mut impl FnMut(&str)) -> WatchOutcome {
        let text = std::mem::take(&mut self.pending) + text;
        let mut at = 0;
        loop {
            if self.is_in_line {
                let Some(end) = text[at..].find('\n') else {
                    emit(&text);
                    return WatchOutcome::Text;
                };
                at += end + 1;
                self.is_in_line = false;
            }
            let line = &text[at..];
            let indented = line.trim_start_matches([' ', '\t']);
            // Text with more indentation is never a tag, for any chunking.
            let starts_line = |mark: &str| {
                indented.starts_with(mark) && line.len() - indented.len() + mark.len() <= INDENT_LEN_MAX
            };
            if starts_line(CALL_TAG) && !self.is_in_code {
                emit(&text[..at]);
                return WatchOutcome::Call(line.to_owned());
            }
            let is_open = CALL_TAG.starts_with(indented) || FENCE.starts_with(indented);
            if is_open && line.len() < INDENT_LEN_MAX {
                emit(&text[..at]);
                self.pending = line.to_owned();
                return WatchOutcome::Text;
            }
            self.is_in_code ^= starts_line(FENCE);
            self.is_in_line = true;
        }
    }
}
