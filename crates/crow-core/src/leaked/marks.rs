//! The marks by which the forms of calls are told, and where each may stand.

/// What a form is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
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
    /// It says that a call follows.
    Announced,
    SectionBegin,
    SectionEnd,
    NumberedBegin,
    NumberedArguments,
    NumberedEnd,
}

/// How the marks are spelled.
pub(super) type Marks = &'static [(&'static str, Mark)];

pub(super) const OUTSIDE: Marks = &[
    ("{", Mark::Object),
    ("[", Mark::ListBegin),
    ("```", Mark::Fence),
    ("<tool_call>", Mark::TagBegin),
    ("</tool_call>", Mark::TagEnd),
    ("<function=", Mark::FunctionBegin),
    ("[TOOL_CALLS]", Mark::MarkedBegin),
    ("<|python_tag|>", Mark::Announced),
    ("<|tool_calls_section_begin|>", Mark::SectionBegin),
    ("<|tool_call_begin|>", Mark::NumberedBegin),
    (";", Mark::Separator),
];
pub(super) const IN_FENCE: Marks = &[
    ("{", Mark::Object),
    ("[", Mark::ListBegin),
    ("```", Mark::Fence),
    ("<tool_call>", Mark::TagBegin),
    ("<function=", Mark::FunctionBegin),
];
pub(super) const IN_LIST: Marks = &[("{", Mark::Object), (",", Mark::Comma), ("]", Mark::ListEnd)];
pub(super) const IN_TAG: Marks =
    &[("{", Mark::Object), ("<function=", Mark::FunctionBegin), ("</tool_call>", Mark::TagEnd)];
pub(super) const IN_SECTION: Marks =
    &[("<|tool_call_begin|>", Mark::NumberedBegin), ("<|tool_calls_section_end|>", Mark::SectionEnd)];
pub(super) const IN_FUNCTION: Marks =
    &[("{", Mark::Object), ("<parameter=", Mark::ParameterBegin), ("</function>", Mark::FunctionEnd)];
pub(super) const IN_MARKED: Marks =
    &[("{", Mark::Object), ("[ARGS]", Mark::MarkedArguments), ("[CALL_ID]", Mark::MarkedId)];
pub(super) const IN_NUMBERED: Marks = &[
    ("{", Mark::Object),
    ("<|tool_call_argument_begin|>", Mark::NumberedArguments),
    ("<|tool_call_end|>", Mark::NumberedEnd),
];

/// What comes next.
pub(super) enum Seen {
    /// A mark, so many bytes long.
    Is(Mark, usize),
    /// What may be one when more has come.
    Cut,
    Not,
}

/// Reads the mark that a text begins with, the longest where several fit.
pub(super) fn first(marks: Marks, text: &str) -> Seen {
    if marks.iter().any(|(spelled, _)| spelled.len() > text.len() && spelled.starts_with(text)) {
        return Seen::Cut;
    }
    let fitting = marks.iter().filter(|(spelled, _)| text.starts_with(spelled));
    let longest = fitting.max_by_key(|(spelled, _)| spelled.len());
    longest.map_or(Seen::Not, |(spelled, mark)| Seen::Is(*mark, spelled.len()))
}
