use proptest::prelude::*;

use super::{CallFragment, CallSlots};

/// The way a server distinguishes its calls.
#[derive(Debug, Clone, Copy)]
struct Style {
    /// Each call has an index of its own, all have 0, or none has any.
    index: Index,
    /// Each piece has the ID of its call.
    has_ids: bool,
    repeats_names: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Index {
    Own,
    Zero,
    Missing,
}

fn any_style() -> impl Strategy<Value = Style> {
    (prop::sample::select(vec![Index::Own, Index::Zero, Index::Missing]), any::<bool>(), any::<bool>())
        .prop_map(|(index, has_ids, repeats_names)| Style { index, has_ids, repeats_names })
}

/// A tool and its arguments, which are sent in pieces of these lengths.
type Call = (String, String, Vec<usize>);

fn any_call() -> impl Strategy<Value = Call> {
    let arguments = "\\{\"p\": \"([a-z{}\\[\\]]|\\\\\\\\|\\\\\"){0,6}\", \"q\": \\[\\{\\}, 1\\]\\}|\\{\\}";
    ("read|edit", arguments, prop::collection::vec(0_usize..6, 1..8))
}

/// The pieces of a call: the first has its name, and may have nothing else.
fn pieces((_, arguments, lens): &Call) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = arguments.as_str();
    for len in lens {
        let (piece, after) = rest.split_at((*len).min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
}

/// The order of the pieces: interleaved if the server distinguishes its calls, sequential otherwise.
fn order(calls: &[Call], style: Style, turns: &[prop::sample::Index]) -> Vec<(usize, usize)> {
    let mut left: Vec<Vec<(usize, usize)>> = calls
        .iter()
        .enumerate()
        .map(|(call, spelled)| (0..pieces(spelled).len()).rev().map(|piece| (call, piece)).collect())
        .collect();
    let mut order = Vec::new();
    // Calls begin in order.
    let is_apart = style.has_ids || style.index == Index::Own;
    if is_apart {
        order.extend(left.iter_mut().filter_map(Vec::pop));
    }
    let mut turns = turns.iter().cycle();
    while left.iter().any(|pieces| !pieces.is_empty()) {
        let open: Vec<usize> = (0..left.len()).filter(|call| !left[*call].is_empty()).collect();
        let turn = turns.next().filter(|_| is_apart).map_or(0, |turn| turn.index(open.len()));
        order.extend(left[open[turn]].pop());
    }
    order
}

proptest! {
    #[test]
    fn whatever_a_server_leaves_out_its_calls_are_told_apart(
        calls in prop::collection::vec(any_call(), 1..5),
        style in any_style(),
        turns in prop::collection::vec(any::<prop::sample::Index>(), 1..8),
    ) {
        let mut slots = CallSlots::default();
        let mut heard: Vec<(String, String)> = Vec::new();
        for (call, piece) in order(&calls, style, &turns) {
            let (name, id) = (&calls[call].0, format!("id-{call}"));
            let piece = CallFragment {
                index: match style.index {
                    Index::Own => u64::try_from(call).ok(),
                    Index::Zero => Some(0),
                    Index::Missing => None,
                },
                id: if style.has_ids { &id } else { "" },
                name: if piece == 0 || style.repeats_names { name } else { "" },
                arguments: pieces(&calls[call])[piece],
            };
            let Some((place, slot)) = slots.accept_fragment(piece) else { continue };
            heard.resize(heard.len().max(place + 1), Default::default());
            heard[place].0.clone_from(&slot.name);
            heard[place].1 += piece.arguments;
        }
        let meant: Vec<_> = calls.into_iter().map(|(name, arguments, _)| (name, arguments)).collect();
        prop_assert_eq!(heard, meant);
    }
}

/// The calls of these pieces of `read`, by index: `id name arguments`, with `-` for a missing value.
fn read_calls(pieces: &[&str]) -> Vec<String> {
    let mut slots = CallSlots::default();
    let mut calls = Vec::new();
    for piece in pieces {
        let words: Vec<&str> = piece.splitn(3, ' ').map(|word| if word == "-" { "" } else { word }).collect();
        let piece = CallFragment { index: Some(0), id: words[0], name: words[1], arguments: words[2] };
        let Some((place, slot)) = slots.accept_fragment(piece) else { continue };
        calls.resize(calls.len().max(place + 1), String::new());
        if calls[place].is_empty() {
            calls[place] = format!("{}:{} ", slot.id, slot.name);
        }
        calls[place] += words[2];
    }
    calls
}

#[test]
fn two_calls_with_one_id_are_both_kept() {
    // Complete, in pieces, and with the name before the arguments.
    assert_eq!(
        read_calls(&[r#"x read {"p":1}"#, r#"x read {"p":2}"#]),
        [r#"x:read {"p":1}"#, r#"x:read {"p":2}"#]
    );
    assert_eq!(
        read_calls(&[r#"x read {"p":1}"#, r#"x read {"p":"#, r#"x read 2}"#, r#"x read {"p":3}"#]),
        [r#"x:read {"p":1}"#, r#"x:read {"p":2}"#, r#"x:read {"p":3}"#],
    );
    assert_eq!(
        read_calls(&[r#"x read {"p":1}"#, "x read -", r#"- - {"p":"#, "- - 2}"]),
        [r#"x:read {"p":1}"#, r#":read {"p":2}"#],
    );
}

#[test]
fn repeated_call_stays_one() {
    // Repeated in another formatting, after an empty object, and with one bracket too many.
    assert_eq!(read_calls(&[r#"x read {"p":1}"#, r#"x read {"p": 1}"#]), [r#"x:read {"p":1}{"p": 1}"#]);
    assert_eq!(read_calls(&["x read {}", r#"x read {"p":1}"#]), [r#"x:read {}{"p":1}"#]);
    assert_eq!(read_calls(&["x read {}", "x read -", r#"- - {"p":1}"#]), [r#"x:read {}{"p":1}"#]);
    assert_eq!(read_calls(&[r#"x read {"p":1}"#, "x read -", "- - }"]), [r#"x:read {"p":1}}"#]);
    // All of them repeated at the end.
    let again = [r#"x read {"p":1}"#, r#"x read {"p":2}"#, r#"x read {"p":1}"#, r#"x read {"p":2}"#];
    assert_eq!(read_calls(&again), [r#"x:read {"p":1}{"p":1}"#, r#"x:read {"p":2}{"p":2}"#]);
}
