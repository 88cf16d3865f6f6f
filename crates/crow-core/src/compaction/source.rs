//! What the model reads to sum a conversation up: bounded, however long that was. Where it has to be shortened, tool
//! output goes first, the model's own words next, the person's last.

use super::{
    clip::clip_middle,
    cut::prompts_before,
    foreword::{render_additions, render_prompt},
    quote::escape_closing_tag,
};
use crate::{ContentPart, Prompt, Reply, ToolArguments, ToolCall, ToolResult, Transcript, TranscriptEntry};

/// Bytes of one tool output; what mattered in it is mostly in the reply that follows.
const OUTPUT_BYTES_MAX: usize = 2 * 1024;

/// Bytes of the arguments of one call: a written file is on disk.
const ARGUMENTS_BYTES_MAX: usize = 1024;

/// What is left of a piece that is shortened because the whole is too long.
const SHORT_BYTES: usize = 200;

/// What is left of the person's words then.
const SHORT_PROMPT_BYTES: usize = 1_000;

const LEFT_OUT: &str = "[…]";

/// Whose words a piece is, in the order in which they are shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PieceOrigin {
    Output,
    Model,
    Person,
    Summary,
}

struct SourcePiece {
    whose: PieceOrigin,
    tag: &'static str,
    text: String,
}

/// Spells what came before the entry `index` in at most about `max` bytes, the summary of before first.
pub(super) fn render_source(transcript: &Transcript, index: usize, max: usize) -> String {
    let mut pieces = Vec::new();
    if let Some(summary) = transcript.compaction().and_then(|by| by.summary.as_deref()) {
        pieces.push(SourcePiece { whose: PieceOrigin::Summary, tag: "summary", text: summary.to_owned() });
    }
    let n_said = transcript.verbatim_prompts().len();
    let earlier = prompts_before(transcript, index).into_iter().take(n_said);
    pieces.extend(earlier.flat_map(|(_, prompt)| prompt_pieces(prompt)));
    let mut calls: &[ToolCall] = &[];
    for entry in transcript.entries().iter().take(index) {
        match entry {
            TranscriptEntry::Prompt(prompt) => pieces.extend(prompt_pieces(prompt)),
            TranscriptEntry::Reply(reply) => {
                calls = &reply.calls;
                pieces.push(SourcePiece {
                    whose: PieceOrigin::Model,
                    tag: "agent",
                    text: render_reply(reply),
                });
            }
            TranscriptEntry::Result { call, outcome, .. } => {
                let name = calls.iter().find(|other| other.id == *call).map_or("", |call| call.name.as_str());
                let text = format!("{name}: {}", clip_middle(&render_output(outcome), OUTPUT_BYTES_MAX));
                pieces.push(SourcePiece { whose: PieceOrigin::Output, tag: "result", text });
            }
        }
    }
    shorten_pieces(&mut pieces, max);
    let spelled: Vec<String> = pieces
        .into_iter()
        .filter(|piece| !piece.text.is_empty())
        .map(|SourcePiece { tag, text, .. }| format!("<{tag}>\n{}\n</{tag}>", escape_closing_tag(tag, &text)))
        .collect();
    clip_middle(&spelled.join("\n"), max)
}

/// What the person said, and apart from it what Crow said with it: nothing of that is the person's wish.
fn prompt_pieces(prompt: &Prompt) -> impl Iterator<Item = SourcePiece> {
    let said = if prompt.has_user_content() { render_prompt(prompt) } else { String::new() };
    let pieces = [
        SourcePiece { whose: PieceOrigin::Person, tag: "person", text: said },
        SourcePiece { whose: PieceOrigin::Output, tag: "result", text: render_additions(prompt) },
    ];
    pieces.into_iter().filter(|piece| !piece.text.is_empty())
}

fn render_reply(reply: &Reply) -> String {
    let calls = reply.calls.iter().map(|call| {
        let arguments = match &call.arguments {
            ToolArguments::Valid(value) | ToolArguments::Repaired { value, .. } => {
                serde_json::to_string(value).unwrap_or_default()
            }
            ToolArguments::Unreadable { .. } => String::new(),
        };
        format!("called {} {}", call.name, clip_middle(&arguments, ARGUMENTS_BYTES_MAX))
    });
    std::iter::once(reply.text.clone())
        .filter(|text| !text.is_empty())
        .chain(calls)
        .collect::<Vec<_>>()
        .join("\n")
}

fn render_output(outcome: &ToolResult) -> String {
    let texts = outcome.for_model.iter().map(|part| match part {
        ContentPart::Text(text) | ContentPart::Resource { text, .. } | ContentPart::FromCrow { text, .. } => {
            text.as_str()
        }
        ContentPart::Image { .. } => "[an image]",
        ContentPart::Link { uri, .. } => uri.as_str(),
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Shortens pieces, the oldest of a kind first, until the whole fits.
fn shorten_pieces(pieces: &mut [SourcePiece], max: usize) {
    let mut n_bytes: usize = pieces.iter().map(piece_bytes).sum();
    let rounds = [
        (PieceOrigin::Output, SHORT_BYTES),
        (PieceOrigin::Model, SHORT_BYTES),
        (PieceOrigin::Output, 0),
        (PieceOrigin::Model, 0),
        (PieceOrigin::Person, SHORT_PROMPT_BYTES),
    ];
    for (whose, most) in rounds {
        for piece in pieces.iter_mut().filter(|piece| piece.whose == whose) {
            if n_bytes <= max {
                return;
            }
            n_bytes -= piece_bytes(piece);
            piece.text = if most == 0 { LEFT_OUT.to_owned() } else { clip_middle(&piece.text, most) };
            n_bytes += piece_bytes(piece);
        }
    }
}

fn piece_bytes(piece: &SourcePiece) -> usize {
    piece.text.len() + 2 * piece.tag.len() + "<>\n\n</>\n".len()
}
