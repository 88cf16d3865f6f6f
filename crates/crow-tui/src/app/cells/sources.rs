//! The sources of cells: their size, and what is left of an old one.

use super::TranscriptCell;

/// Bytes of an old cell that are kept.
const STUB_BYTES: usize = 200;

/// Whether a cell cannot change any more.
pub(super) fn is_settled(cell: &TranscriptCell) -> bool {
    match cell {
        TranscriptCell::Call(call) => call.has_ended(),
        TranscriptCell::Command(command) => command.end.is_some(),
        TranscriptCell::Prompt(_)
        | TranscriptCell::Text(_)
        | TranscriptCell::Thought(_)
        | TranscriptCell::Plan(_)
        | TranscriptCell::Notice(_)
        | TranscriptCell::Problem(_) => true,
    }
}

pub(super) fn cell_text(cell: &TranscriptCell) -> &str {
    match cell {
        TranscriptCell::Text(part) => &part.source,
        TranscriptCell::Prompt(text)
        | TranscriptCell::Thought(text)
        | TranscriptCell::Notice(text)
        | TranscriptCell::Problem(text) => text,
        TranscriptCell::Command(command) => &command.output,
        TranscriptCell::Call(_) | TranscriptCell::Plan(_) => "",
    }
}

pub(super) fn cell_bytes(cell: &TranscriptCell) -> usize {
    match cell {
        TranscriptCell::Call(call) => call.n_bytes(),
        TranscriptCell::Prompt(_)
        | TranscriptCell::Text(_)
        | TranscriptCell::Thought(_)
        | TranscriptCell::Plan(_)
        | TranscriptCell::Notice(_)
        | TranscriptCell::Problem(_)
        | TranscriptCell::Command(_) => cell_text(cell).len(),
    }
}

/// Keeps only the beginning of a cell: the session has the rest.
pub(super) fn shorten_cell(cell: &mut TranscriptCell) {
    match cell {
        TranscriptCell::Text(part) => shorten_text(&mut part.source),
        TranscriptCell::Prompt(text)
        | TranscriptCell::Thought(text)
        | TranscriptCell::Notice(text)
        | TranscriptCell::Problem(text) => shorten_text(text),
        TranscriptCell::Command(command) => shorten_text(&mut command.output),
        TranscriptCell::Call(call) => call.drop_content(),
        TranscriptCell::Plan(_) => {}
    }
}

fn shorten_text(text: &mut String) {
    if text.len() > STUB_BYTES * 2 {
        text.truncate(text.floor_char_boundary(STUB_BYTES));
        text.push_str("\n… the stored session has the rest");
    }
}
