//! Arbitrary text: nothing is lost, nothing is shown twice, and the chunking has no effect.

use proptest::prelude::*;

use super::*;

/// Pieces of the formats, of words and of JSON, in any order.
fn text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "<tool_call>",
        "</tool_call>",
        "<function=read>",
        "<function=",
        "</function>",
        "<parameter=file_path>",
        "</parameter>",
        "[TOOL_CALLS]",
        "[ARGS]",
        "<|python_tag|>",
        "<|tool_call_begin|>functions.read:0",
        "<|tool_call_argument_begin|>",
        "<|tool_call_end|>",
        "```",
        "json\n",
        "\n",
        " ",
        "{",
        "}",
        "[",
        "]",
        ";",
        ",",
        ":",
        "\"",
        "\\",
        "\"name\"",
        "\"read\"",
        "\"arguments\"",
        "{\"file_path\":\"a\"}",
        r#"{"name":"read","arguments":{"file_path":"é"}}"#,
        "é",
        "words",
        "7",
    ]);
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn cut(text: &str, lens: &[usize]) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    let mut lens = lens.iter().cycle();
    while !rest.is_empty() {
        let len = lens.next().copied().unwrap_or(1).clamp(1, rest.len());
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(len));
        pieces.push(piece.to_owned());
        rest = after;
    }
    pieces
}

proptest! {
    #[test]
    fn text_is_complete_for_any_chunking(
        text in text(),
        lens in prop::collection::vec(1_usize..9, 1..6),
        takes in prop::sample::select(vec![TextToolCallMode::Disabled, TextToolCallMode::WholeReplies, TextToolCallMode::ReplyEndings]),
    ) {
        let conversation = conversation("nothing");
        let whole = heard(takes, &[ModelEvent::Text(&text)], ReplyEnd::Complete, &conversation);
        let cut = cut(&text, &lens);
        let pieces: Vec<_> = cut.iter().map(|piece| ModelEvent::Text(piece)).collect();
        let heard = heard(takes, &pieces, ReplyEnd::Complete, &conversation);
        prop_assert_eq!((&heard.text, &heard.end), (&whole.text, &whole.end));
        if !heard.end.starts_with("Calls") {
            prop_assert_eq!(heard.text, format!("{text:?} (\"\")"));
        }
    }

    /// Text that is held back appears with the first piece that makes a call impossible.
    #[test]
    fn impossible_call_is_shown_at_once(text in text(), more in "[a-z ]{1,20}") {
        let tools = tools();
        let mut sieve = TextToolCallParser::new(&tools, TextToolCallMode::WholeReplies);
        let mut shown = String::new();
        let mut say = |event: ModelEvent<'_>| if let ModelEvent::Text(text) = event { shown.push_str(text) };
        // No format continues with such words outside its strings and values.
        sieve.on_event(ModelEvent::Text("words first "), &mut say);
        sieve.on_event(ModelEvent::Text(&text), &mut say);
        sieve.on_event(ModelEvent::Text(&more), &mut say);
        prop_assert_eq!(shown, format!("words first {text}{more}"));
    }

    #[test]
    fn partial_call_never_runs(
        content in "[a-z<>\"\\\\{} \\n]{0,30}",
        form in 0_usize..5,
        cut in 0.0..1.0_f64,
    ) {
        let arguments = json!({"command": content}).to_string();
        let text = match form {
            0 => format!("{{\"name\":\"terminal\",\"arguments\":{arguments}}}"),
            1 => format!("<tool_call>{{\"name\":\"terminal\",\"arguments\":{arguments}}}</tool_call>"),
            2 => format!("```json\n{{\"name\":\"terminal\",\"arguments\":{arguments}}}\n```"),
            3 => format!("[TOOL_CALLS]terminal[ARGS]{arguments}"),
            _ => format!("<function=terminal>\n<parameter=command>\n{content}\n</parameter>\n</function>"),
        };
        let conversation = conversation("nothing");
        let whole = heard(TextToolCallMode::WholeReplies, &[ModelEvent::Text(&text)], ReplyEnd::Complete, &conversation);
        let expected = json!({"command": content});
        prop_assert_eq!(whole.end, format!("Calls([\"terminal\"])\nterminal {expected}"));
        let at = text.floor_char_boundary((text.len() as f64 * cut) as usize);
        let part = heard(TextToolCallMode::WholeReplies, &[ModelEvent::Text(&text[..at])], ReplyEnd::Complete, &conversation);
        prop_assert_eq!(part.end, "NoCalls");
    }
}
