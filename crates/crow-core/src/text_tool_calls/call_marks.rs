//! The marks of the call formats, and the positions where each is allowed.

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

/// The result of matching a mark.
pub(super) enum MarkMatch {
    /// A mark and its length in bytes.
    Match(CallMark, usize),
    /// Possibly a mark, with more text.
    Partial,
    NoMatch,
}

/// Matches the mark at the start of a text, the longest of several.
pub(super) fn match_mark(marks: MarkTable, text: &str) -> MarkMatch {
    if marks.iter().any(|(spelled, _)| spelled.len() > text.len() && spelled.starts_with(text)) {
        return MarkMatch::Partial;
    }
    let fitting = marks.iter().filter(|(spelled, _)| text.starts_with(spelled));
    let longest = fitting.max_by_key(|(spelled, _)| spelled.len());
    longest.map_or(MarkMatch::NoMatch, |(spelled, mark)| MarkMatch::Match(*mark, spelled.len()))
}
