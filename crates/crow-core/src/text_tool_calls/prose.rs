//! Finds the start of a call after other text: an opening tag at the start of a line, outside code.

/// The opening tag of a call.
const CALL_TAG: &str = "<tool_call>";

/// The fence of a code block.
const FENCE: &str = "```";

/// More white space than a line of prose begins with.
const INDENT_LEN_MAX: usize = 256;

/// The position in the lines of other text.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct ProseLines {
    is_in_line: bool,
    is_in_code: bool,
}

impl ProseLines {
    /// Reads text; returns the length that is certain, and whether a call begins after it. The rest is read again
    /// with more text.
    pub(super) fn read(&mut self, text: &str) -> (usize, bool) {
        let mut at = 0;
        loop {
            if self.is_in_line {
                let Some(end) = text[at..].find('\n') else { return (text.len(), false) };
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
                return (at, true);
            }
            let is_open = CALL_TAG.starts_with(indented) || FENCE.starts_with(indented);
            if is_open && line.len() < INDENT_LEN_MAX {
                return (at, false);
            }
            self.is_in_code ^= starts_line(FENCE);
            self.is_in_line = true;
        }
    }
}
