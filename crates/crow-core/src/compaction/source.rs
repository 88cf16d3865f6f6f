//! What the model reads to sum a conversation up: bounded, however long that was. Where it has to be shortened, tool
//! output goes first, the model's own words next, the person's last.

use super::{
    clip::clip,
    cut::before,
    foreword::{added, all_words},
    quote::quote,
};
use crate::{Arguments, Call, Entry, Outcome, Part, Prompt, Reply, Transcript};

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
enum Whose {
    Output,
    Model,
    Person,
    Summary,
}

struct Piece {
    whose: Whose,
    tag: &'static str,
    text: String,
}

/// Spells what came before the entry `index` in at most about `max` bytes, the summary of before first.
pub(super) fn source(transcript: &Transcript, index: usize, max: usize) -> String {
    let mut pieces = Vec::new();
    if let Some(summary) = transcript.compaction().and_then(|by| by.summary.as_deref()) {
        pieces.push(Piece { whose: Whose::Summary, tag: "summary", text: summary.to_owned() });
    }
    let n_said = transcript.said().len();
    let earlier = before(transcript, index).into_iter().take(n_said);
    pieces.extend(earlier.flat_map(|(_, prompt)| prompted(prompt)));
    let mut calls: &[Call] = &[];
    for entry in transcript.entries().iter().take(index) {
        match entry {
            Entry::Prompt(prompt) => pieces.extend(prompted(prompt)),
            Entry::Reply(reply) => {
                calls = &reply.calls;
                pieces.push(Piece { whose: Whose::Model, tag: "agent", text: said_and_called(reply) });
            }
            Entry::Result { call, outcome, .. } => {
                let name = calls.iter().find(|other| other.id == *call).map_or("", |call| call.name.as_str());
                let text = format!("{name}: {}", clip(&output(outcome), OUTPUT_BYTES_MAX));
                pieces.push(Piece { whose: Whose::Output, tag: "result", text });
            }
        }
    }
    fit(&mut pieces, max);
    let spelled: Vec<String> = pieces
        .into_iter()
        .filter(|piece| !piece.text.is_empty())
        .map(|Piece { tag, text, .. }| format!("<{tag}>\n{}\n</{tag}>", quote(tag, &text)))
        .collect();
    clip(&spelled.join("\n"), max)
}

/// What the person said, and apart from it what Crow said with it: nothing of that is the person's wish.
fn prompted(prompt: &Prompt) -> impl Iterator<Item = Piece> {
    let said = if prompt.is_said() { all_words(prompt) } else { String::new() };
    let pieces = [
        Piece { whose: Whose::Person, tag: "person", text: said },
        Piece { whose: Whose::Output, tag: "result", text: added(prompt) },
    ];
    pieces.into_iter().filter(|piece| !piece.text.is_empty())
}

fn said_and_called(reply: &Reply) -> String {
    let calls = reply.calls.iter().map(|call| {
        let arguments = match &call.arguments {
            Arguments::Valid(value) | Arguments::Repaired { value, .. } => {
                serde_json::to_string(value).unwrap_or_default()
            }
            Arguments::Unreadable { .. } => String::new(),
        };
        format!("called {} {}", call.name, clip(&arguments, ARGUMENTS_BYTES_MAX))
    });
    std::iter::once(reply.text.clone())
        .filter(|text| !text.is_empty())
        .chain(calls)
        .collect::<Vec<_>>()
        .join("\n")
}

fn output(outcome: &Outcome) -> String {
    let texts = outcome.for_model.iter().map(|part| match part {
        Part::Text(text) | Part::Resource { text, .. } | Part::FromCrow { text, .. } => text.as_str(),
        Part::Image { .. } => "[an image]",
        Part::Link { uri, .. } => uri.as_str(),
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Shortens pieces, the oldest of a kind first, until the whole fits.
fn fit(pieces: &mut [Piece], max: usize) {
    let mut n_bytes: usize = pieces.iter().map(weight).sum();
    let rounds = [
        (Whose::Output, SHORT_BYTES),
        (Whose::Model, SHORT_BYTES),
        (Whose::Output, 0),
        (Whose::Model, 0),
        (Whose::Person, SHORT_PROMPT_BYTES),
    ];
    for (whose, most) in rounds {
        for piece in pieces.iter_mut().filter(|piece| piece.whose == whose) {
            if n_bytes <= max {
                return;
            }
            n_bytes -= weight(piece);
            piece.text = if most == 0 { LEFT_OUT.to_owned() } else { clip(&piece.text, most) };
            n_bytes += weight(piece);
        }
    }
}

fn weight(piece: &Piece) -> usize {
    piece.text.len() + 2 * piece.tag.len() + "<>\n\n</>\n".len()
}
