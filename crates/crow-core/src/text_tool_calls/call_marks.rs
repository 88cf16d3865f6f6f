//! The marks of the call formats, and the positions where each is allowed.

use super::text_cursor::{ScanResult, ScanStop};

/// The elements of a call format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallMark {
    Object,
    ListBegin,
    ListEnd,
    Comma,
    Separator,
    Fence,
    TagBegin,
    TagEnd,
    FunctionBegin,
    FunctionEnd,
    ParameterBegin,
    MarkedBegin,
    MarkedId,
    MarkedArguments,
    /// A token that announces a call.
    Announcement,
    SectionBegin,
    SectionEnd,
    NumberedBegin,
    NumberedArguments,
    NumberedEnd,
}

/// Marks with their text.
pub(super) type MarkTable = &'static [(&'static str, CallMark)];

pub(super) const OUTSIDE: MarkTable = &[
    ("{", CallMark::Object),
    ("[", CallMark::ListBegin),
    ("```", CallMark::Fence),
    ("<tool_call>", CallMark::TagBegin),
    ("</tool_call>", CallMark::TagEnd),
    ("<function=", CallMark::FunctionBegin),
    ("[TOOL_CALLS]", CallMark::MarkedBegin),
    ("<|python_tag|>", CallMark::Announcement),
    ("<|tool_calls_section_begin|>", CallMark::SectionBegin),
    ("<|tool_call_begin|>", CallMark::NumberedBegin),
    (";", CallMark::Separator),
];
pub(super) const IN_FENCE: MarkTable = &[
    ("{", CallMark::Object),
    ("[", CallMark::ListBegin),
    ("```", CallMark::Fence),
    ("<tool_call>", CallMark::TagBegin),
    ("<function=", CallMark::FunctionBegin),
];
pub(super) const IN_LIST: MarkTable =
    &[("{", CallMark::Object), (",", CallMark::Comma), ("]", CallMark::ListEnd)];
pub(super) const IN_TAG: MarkTable =
    &[("{", CallMark::Object), ("<function=", CallMark::FunctionBegin), ("</tool_call>", CallMark::TagEnd)];
pub(super) const IN_SECTION: MarkTable =
    &[("<|tool_call_begin|>", CallMark::NumberedBegin), ("<|tool_calls_section_end|>", CallMark::SectionEnd)];
pub(super) const IN_FUNCTION: MarkTable = &[
    ("{", CallMark::Object),
    ("<parameter=", CallMark::ParameterBegin),
    ("</function>", CallMark::FunctionEnd),
];
pub(super) const IN_MARKED: MarkTable =
    &[("{", CallMark::Object), ("[ARGS]", CallMark::MarkedArguments), ("[CALL_ID]", CallMark::MarkedId)];
pub(super) const IN_NUMBERED: MarkTable = &[
    ("{", CallMark::Object),
    ("<|tool_call_argument_begin|>", CallMark::NumberedArguments),
    ("<|tool_call_end|>", CallMark::NumberedEnd),
];

/// Matches the mark at the start of a text, the longest of several; returns its length.
pub(super) fn match_mark(marks: MarkTable, text: &str) -> ScanResult<(CallMark, usize)> {
    if marks.iter().any(|(mark_text, _)| mark_text.len() > text.len() && mark_text.starts_with(text)) {
        return Err(ScanStop::NeedMore);
    }
    let fitting = marks.iter().filter(|(mark_text, _)| text.starts_with(mark_text));
    let longest = fitting.max_by_key(|(mark_text, _)| mark_text.len());
    longest.map(|(mark_text, mark)| (*mark, mark_text.len())).ok_or(ScanStop::Mismatch)
}
