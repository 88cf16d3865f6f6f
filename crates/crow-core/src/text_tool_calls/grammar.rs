//! The formats of text tool calls: finds the calls in a text that may still grow, and detects a mismatch at the first
//! byte that does not fit.

use super::call_marks::{self, CallMark, MarkTable};
use super::json_object::{ObjectRole, read_object};
use super::text_cursor::{ScanResult, ScanStop, TextCursor};
use super::written_call::{CallSource, SplitCall, SplitCallForm};
use crate::ToolSpec;

/// Longer than a call with a large file.
pub(super) const TEXT_LEN_MAX: usize = 1024 * 1024;

/// More calls than a model makes at once.
const N_CALLS_MAX: usize = 64;

/// Info strings of a fence around a call.
const FENCE_WORDS: [&str; 5] = ["", "json", "tool_call", "tool_calls", "xml"];

/// Longer than a line or a name of any format.
const WORD_LEN_MAX: usize = 256;

const PARAMETER_END: &str = "</parameter>";

/// The prefix of names in the numbered format.
const NUMBERED_PREFIX: &str = "functions.";

/// Whether a text consists of calls.
#[derive(Debug)]
pub(super) enum CallScan<'t> {
    /// It does.
    Complete(Vec<CallSource<'t>>),
    /// It may, with more text.
    Incomplete,
    /// It does not, with any more text.
    Mismatch {
        /// Whether it begins with a call.
        has_calls: bool,
    },
}

/// Finds the calls in a text.
pub(super) fn scan_calls<'t>(text: &'t str, tools: &[ToolSpec]) -> CallScan<'t> {
    let scanned = &text[..text.floor_char_boundary(TEXT_LEN_MAX)];
    let mut scanner = CallScanner { tools, cursor: TextCursor::new(scanned), calls: Vec::new() };
    let stop = scanner.read_calls(call_marks::OUTSIDE, None);
    let (calls, is_whole) = (scanner.calls, scanned.len() == text.len());
    match stop {
        Ok(()) if is_whole && !calls.is_empty() => CallScan::Complete(calls),
        Ok(()) | Err(ScanStop::NeedMore) if is_whole => CallScan::Incomplete,
        Ok(()) | Err(_) => CallScan::Mismatch { has_calls: !calls.is_empty() },
    }
}

struct CallScanner<'t, 'a> {
    tools: &'a [ToolSpec],
    cursor: TextCursor<'t>,
    calls: Vec<CallSource<'t>>,
}

impl<'t> CallScanner<'t, '_> {
    /// Reads calls up to the mark that encloses them, or to the end of the text.
    fn read_calls(&mut self, marks: MarkTable, end: Option<CallMark>) -> ScanResult {
        let n_before = self.calls.len();
        loop {
            let has_calls = self.calls.len() > n_before;
            self.skip_blanks();
            if end.is_none() && self.cursor.rest().is_empty() {
                return Ok(());
            }
            let start = self.cursor.n_read;
            let mark = self.read_mark(marks)?;
            match mark {
                // A mark encloses at least one call.
                _ if end == Some(mark) => return if has_calls { Ok(()) } else { Err(ScanStop::Mismatch) },
                CallMark::Object => {
                    self.cursor.n_read = start;
                    read_object(&mut self.cursor, ObjectRole::Call(self.tools), 0)?;
                    self.push_call(start, None)?;
                }
                CallMark::ListBegin => self.read_calls(call_marks::IN_LIST, Some(CallMark::ListEnd))?,
                CallMark::Fence => {
                    self.read_fence_line()?;
                    self.read_calls(call_marks::IN_FENCE, Some(CallMark::Fence))?;
                }
                CallMark::TagBegin => self.read_calls(call_marks::IN_TAG, Some(CallMark::TagEnd))?,
                CallMark::SectionBegin => {
                    self.read_calls(call_marks::IN_SECTION, Some(CallMark::SectionEnd))?;
                }
                // Some models omit the opening tag.
                CallMark::TagEnd if self.is_after_form(SplitCallForm::Function) => {}
                CallMark::Comma | CallMark::Separator if has_calls => {}
                CallMark::Announcement => {}
                CallMark::MarkedBegin => self.read_marked(start)?,
                CallMark::FunctionBegin => self.read_split_call(SplitCallForm::Function, start)?,
                CallMark::NumberedBegin => self.read_split_call(SplitCallForm::Numbered, start)?,
                CallMark::TagEnd
                | CallMark::Comma
                | CallMark::Separator
                | CallMark::ListEnd
                | CallMark::SectionEnd
                | CallMark::FunctionEnd
                | CallMark::ParameterBegin
                | CallMark::MarkedId
                | CallMark::MarkedArguments
                | CallMark::NumberedArguments
                | CallMark::NumberedEnd => return Err(ScanStop::Mismatch),
            }
        }
    }

    fn push_call(&mut self, start: usize, split_call: Option<SplitCall<'t>>) -> ScanResult {
        self.calls.push(CallSource { text: self.cursor.text_since(start), split_call });
        if self.calls.len() <= N_CALLS_MAX { Ok(()) } else { Err(ScanStop::Mismatch) }
    }

    fn is_after_form(&self, form: SplitCallForm) -> bool {
        self.calls.last().and_then(|call| call.split_call.as_ref()).is_some_and(|call| call.form == form)
    }

    fn read_fence_line(&mut self) -> ScanResult {
        let rest = self.cursor.rest();
        let end = rest.find('\n');
        let line = &rest[..end.unwrap_or(rest.len())];
        let words = line.trim();
        match end {
            _ if line.len() >= WORD_LEN_MAX => Err(ScanStop::Mismatch),
            Some(end) if FENCE_WORDS.contains(&words) => {
                self.cursor.n_read += end + 1;
                Ok(())
            }
            None if FENCE_WORDS.iter().any(|known| known.starts_with(words)) => Err(ScanStop::NeedMore),
            Some(_) | None => Err(ScanStop::Mismatch),
        }
    }

    fn read_marked(&mut self, start: usize) -> ScanResult {
        self.skip_blanks();
        match self.cursor.rest().bytes().next().ok_or(ScanStop::NeedMore)? {
            b'[' | b'{' => Ok(()),
            _ => self.read_split_call(SplitCallForm::Marked, start),
        }
    }

    fn read_split_call(&mut self, form: SplitCallForm, start: usize) -> ScanResult {
        let name = self.read_name(form)?;
        let mut call = SplitCall { form, name, arguments: None, parameters: Vec::new() };
        let marks = match form {
            SplitCallForm::Function => call_marks::IN_FUNCTION,
            SplitCallForm::Marked => call_marks::IN_MARKED,
            SplitCallForm::Numbered => call_marks::IN_NUMBERED,
        };
        loop {
            self.skip_blanks();
            let from = self.cursor.n_read;
            match (self.read_mark(marks)?, call.arguments.is_some()) {
                (CallMark::Object, false) if call.parameters.is_empty() => {
                    self.cursor.n_read = from;
                    read_object(&mut self.cursor, ObjectRole::Value, 0)?;
                    call.arguments = Some(self.cursor.text_since(from));
                    if form == SplitCallForm::Marked {
                        break;
                    }
                }
                (CallMark::ParameterBegin, false) => call.parameters.push(self.read_parameter()?),
                (CallMark::MarkedArguments | CallMark::NumberedArguments, false) => {}
                (CallMark::MarkedId, false) => self.cursor.skip_while(|char| char.is_ascii_alphanumeric())?,
                // Only separate parameters may be missing altogether.
                (CallMark::FunctionEnd, _) | (CallMark::NumberedEnd, true) => break,
                _ => return Err(ScanStop::Mismatch),
            }
        }
        self.push_call(start, Some(call))
    }

    fn read_name(&mut self, form: SplitCallForm) -> ScanResult<&'t str> {
        let ends = match form {
            SplitCallForm::Function => &['>'][..],
            SplitCallForm::Marked => &['[', '{', ' ', '\n'],
            SplitCallForm::Numbered => &['<'],
        };
        let rest = self.cursor.rest();
        let end = rest.find(ends);
        let word = &rest[..end.unwrap_or(rest.len())];
        if word.len() > WORD_LEN_MAX {
            return Err(ScanStop::Mismatch);
        }
        let word = word.trim_end();
        let name = match form {
            SplitCallForm::Function | SplitCallForm::Marked => word,
            SplitCallForm::Numbered if end.is_none() && NUMBERED_PREFIX.starts_with(word) => {
                return Err(ScanStop::NeedMore);
            }
            SplitCallForm::Numbered => {
                let name = word.strip_prefix(NUMBERED_PREFIX).unwrap_or(word);
                name.split_once(':').map_or(name, |(name, _)| name)
            }
        };
        let mut names = self.tools.iter().map(|tool| tool.name.as_str());
        match end {
            Some(end) if names.any(|known| known == name) => {
                self.cursor.n_read += end + usize::from(form == SplitCallForm::Function);
                Ok(name)
            }
            None if names.any(|known| known.starts_with(name)) => Err(ScanStop::NeedMore),
            Some(_) | None => Err(ScanStop::Mismatch),
        }
    }

    /// Reads the name and the value of a parameter.
    fn read_parameter(&mut self) -> ScanResult<(&'t str, &'t str)> {
        let rest = self.cursor.rest();
        let (name, after) = match rest.find(['>', '\n', '<']) {
            None if rest.len() < WORD_LEN_MAX => return Err(ScanStop::NeedMore),
            Some(end) if rest[end..].starts_with('>') && (1..WORD_LEN_MAX).contains(&end) => {
                (&rest[..end], &rest[end + 1..])
            }
            Some(_) | None => return Err(ScanStop::Mismatch),
        };
        let value = &after[..after.find(PARAMETER_END).ok_or(ScanStop::NeedMore)?];
        self.cursor.n_read += name.len() + 1 + value.len() + PARAMETER_END.len();
        Ok((name, value))
    }

    fn skip_blanks(&mut self) {
        self.cursor.n_read += self.cursor.rest().len() - self.cursor.rest().trim_start().len();
    }

    fn read_mark(&mut self, marks: MarkTable) -> ScanResult<CallMark> {
        let (mark, len) = call_marks::match_mark(marks, self.cursor.rest())?;
        self.cursor.n_read += len;
        Ok(mark)
    }
}
