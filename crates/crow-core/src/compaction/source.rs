//! The text that the model summarizes, of bounded length. If it must be shortened, tool output goes first, then the
//! model's text, then the user's.

use super::{
    clip::clip_middle,
    cut_point::prompts_before,
    output::clip_output,
    summary_message::{render_additions, render_prompt},
    tag_escape::escape_closing_tag,
};
use crate::{Prompt, Reply, ToolArguments, ToolCall, Transcript, TranscriptEntry};

/// Bytes of the arguments of one call: a written file is on disk.
const ARGUMENTS_BYTES_MAX: usize = 1024;

/// Bytes of a piece that is shortened because the whole is too long.
const SHORT_BYTES: usize = 200;

/// Bytes of a prompt that is shortened for that reason.
const SHORT_PROMPT_BYTES: usize = 1_000;

const OMISSION: &str = "[…]";

/// The speaker of a piece, in the order of shortening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PieceOrigin {
    Output,
    Model,
    User,
    Summary,
}

struct SourcePiece {
    origin: PieceOrigin,
    tag: &'static str,
    text: String,
}

/// Renders the entries before `index` in about `max` bytes at most, beginning with the previous summary.
pub(super) fn render_source(transcript: &Transcript, index: usize, max: usize) -> String {
    let mut pieces = Vec::new();
    if let Some(summary) = transcript.compaction().and_then(|compaction| compaction.summary.as_deref()) {
        pieces.push(SourcePiece { origin: PieceOrigin::Summary, tag: "summary", text: summary.to_owned() });
    }
    let n_verbatim = transcript.verbatim_prompts().len();
    let earlier = prompts_before(transcript, index).into_iter().take(n_verbatim);
    pieces.extend(earlier.flat_map(|(_, prompt)| prompt_pieces(prompt)));
    let mut calls: &[ToolCall] = &[];
    for entry in transcript.entries().iter().take(index) {
        match entry {
            TranscriptEntry::Prompt(prompt) => pieces.extend(prompt_pieces(prompt)),
            TranscriptEntry::Reply(reply) => {
                calls = &reply.calls;
                pieces.push(SourcePiece {
                    origin: PieceOrigin::Model,
                    tag: "agent",
                    text: render_reply(reply),
                });
            }
            TranscriptEntry::Result { call, result, .. } => {
                let name = calls.iter().find(|other| other.id == *call).map_or("", |call| call.name.as_str());
                let text = format!("{name}: {}", clip_output(result));
                pieces.push(SourcePiece { origin: PieceOrigin::Output, tag: "result", text });
            }
        }
    }
    shorten_pieces(&mut pieces, max);
    let rendered: Vec<String> = pieces
        .into_iter()
        .filter(|piece| !piece.text.is_empty())
        .map(|SourcePiece { tag, text, .. }| format!("<{tag}>\n{}\n</{tag}>", escape_closing_tag(tag, &text)))
        .collect();
    clip_middle(&rendered.join("\n"), max)
}

/// Returns the user's part of a prompt, and separately the part that Crow added, which is not the user's request.
fn prompt_pieces(prompt: &Prompt) -> impl Iterator<Item = SourcePiece> {
    let user_text = if prompt.has_user_content() { render_prompt(prompt) } else { String::new() };
    let pieces = [
        SourcePiece { origin: PieceOrigin::User, tag: "person", text: user_text },
        SourcePiece { origin: PieceOrigin::Output, tag: "result", text: render_additions(prompt) },
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

/// Shortens the pieces, the oldest of a kind first, until they fit.
fn shorten_pieces(pieces: &mut [SourcePiece], max: usize) {
    let mut n_bytes: usize = pieces.iter().map(piece_bytes).sum();
    let rounds = [
        (PieceOrigin::Output, SHORT_BYTES),
        (PieceOrigin::Model, SHORT_BYTES),
        (PieceOrigin::Output, 0),
        (PieceOrigin::Model, 0),
        (PieceOrigin::User, SHORT_PROMPT_BYTES),
    ];
    for (origin, bytes_max) in rounds {
        for piece in pieces.iter_mut().filter(|piece| piece.origin == origin) {
            if n_bytes <= max {
                return;
            }
            n_bytes -= piece_bytes(piece);
            piece.text =
                if bytes_max == 0 { OMISSION.to_owned() } else { clip_middle(&piece.text, bytes_max) };
            n_bytes += piece_bytes(piece);
        }
    }
}

fn piece_bytes(piece: &SourcePiece) -> usize {
    piece.text.len() + 2 * piece.tag.len() + "<>\n\n</>\n".len()
}
