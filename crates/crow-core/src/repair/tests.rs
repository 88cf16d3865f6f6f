mod corpus;

use proptest::prelude::*;
use serde_json::json;

use super::*;

#[track_caller]
fn check(text: &str, expected: &str) {
    let reason = match read_arguments(text) {
        ToolArguments::Unreadable { reason: why } => why,
        ToolArguments::Repaired { doubt: Some(doubt), .. } => format!("{doubt}; {}", doubt.advice()),
        ToolArguments::Valid(_) | ToolArguments::Repaired { doubt: None, .. } => "nothing".to_owned(),
    };
    assert_eq!(reason, expected, "{text}");
}

/// The messages to the model.
#[test]
fn messages_for_unreadable_arguments() {
    check("{'a':1,}", "nothing");
    check(
        r#"{"command":"ls""#,
        "a closing bracket is missing at line 1 column 15; send the whole call again, in smaller steps if it is long",
    );
    check(
        "{\n\"content\":\"a",
        "they stop at line 2 column 12 in the middle of a string; send the whole call again, in smaller steps if it \
         is long",
    );
    check(r#"{"a":1}{"a":2}"#, "another object follows at line 1 column 7; send one call for each");
    check(
        r#"{"command":"echo "hi" there"}"#,
        "the text at line 1 column 18 is ambiguous; send the call again as JSON, with each quote, backslash and line end \
         in a string escaped",
    );
    check(
        r#"do not run {"command":"ls"} please"#,
        "the arguments are not a JSON object: other text precedes it; send the call again with one",
    );
    check(
        r#"{"command":"ls"} is bad"#,
        "other text follows at line 1 column 16; send the call again with nothing but the object",
    );
    check(
        r#"{"command":"echo \ud83d"}"#,
        "half a surrogate pair is in the string that ends at line 1 column 24; send the call again with whole characters",
    );
    check(
        r#"{"command":"ls","command":"rm -r x"}"#,
        "a key has a second value at line 1 column 35, which differs from the first; send the call again with each key once",
    );
    check("[1]", "the arguments are not a JSON object: they are a list; send the call again with one");
    check(
        "ls",
        "the arguments are not a JSON object: expected value at line 1 column 1; send the call again with one",
    );
}

/// Deep or hostile text ends soon, without a stack overflow.
#[test]
fn hostile_text_ends_soon() {
    for piece in ["[", "{", "{\"a\":", "{'a':[", "\"", "'", "\\", "{\"a\" ", "{a:\"", "(", "{\"a\":\"b,\""] {
        for start in ["", "{", "{'a':"] {
            read_arguments(&format!("{start}{}", piece.repeat(10_000)));
        }
    }
    let deep = |depth| format!("{}{}", "{\"a\":".repeat(depth), "1 ");
    assert!(matches!(read_arguments(&deep(127)), ToolArguments::Repaired { .. }));
    assert!(matches!(read_arguments(&deep(128)), ToolArguments::Unreadable { .. }));
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        // Quarters, on which every float parser agrees.
        any::<i32>().prop_map(|quarters| Value::from(f64::from(quarters) / 4.0)),
        any_text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((any_text(), inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{0,6}", "[\\PC\n\t\"\\\\{}:,']{0,8}"]
}

fn any_object() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec((any_text(), any_value()), 0..5).prop_map(|pairs| pairs.into_iter().collect())
}

/// Encodes an object as ASCII with escapes, or as UTF-8.
fn spelled(map: &Map<String, Value>, is_ascii: bool) -> String {
    let text = serde_json::to_string(map).unwrap();
    if !is_ascii {
        return text;
    }
    let mut out = String::new();
    for unit in text.encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii() => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\u{unit:04x}")),
        }
    }
    out
}

fn agrees(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::String(part), Value::String(whole)) => whole.starts_with(part.as_str()),
        (Value::Array(part), Value::Array(whole)) => {
            part.len() <= whole.len() && part.iter().zip(whole).all(|(part, whole)| agrees(part, whole))
        }
        (Value::Object(part), Value::Object(whole)) => {
            part.iter().all(|(key, part)| agrees(part, &whole[key]))
        }
        (part, whole) => part == whole,
    }
}

/// A call of a tool with an effect, as a model writes it.
fn any_call() -> impl Strategy<Value = Value> {
    let write = (any_text(), any_text()).prop_map(|(path, text)| json!({"file_path": path, "content": text}));
    let edit =
        (any_text(), any_text(), any_text(), any::<Option<bool>>()).prop_map(|(path, old, new, all)| {
            let mut call = json!({"file_path": path, "old_string": old, "new_string": new});
            if let Some(all) = all {
                call["replace_all"] = all.into();
            }
            call
        });
    let terminal = (any_text(), any::<Option<u16>>(), any::<bool>()).prop_map(|(command, timeout, first)| {
        let timeout = timeout.map_or(Value::Null, Value::from);
        match first {
            true => json!({"timeout": timeout, "background": false, "command": command}),
            false => json!({"command": command, "timeout": timeout}),
        }
    });
    prop_oneof![write, edit, terminal]
}

/// Every JSON encoding of a call, and the markup around one.
fn any_spelling() -> impl Strategy<Value = fn(&Value) -> String> {
    let spellings: [fn(&Value) -> String; 7] = [
        |call| call.to_string(),
        |call| format!("{call:#}"),
        |call| format!("{call:#}").replace('\n', "\r\n"),
        |call| call.as_object().map(|map| spelled(map, true)).unwrap_or_default(),
        |call| format!("\u{feff}```json\n{call}"),
        |call| format!("<tool_call>{{}}{call}"),
        |call| Value::String(call.to_string()).to_string(),
    ];
    prop::sample::select(spellings.to_vec())
}

/// Encodes a value in Python syntax.
fn python(value: &Value) -> String {
    let join = |pieces: Vec<String>| pieces.join(", ");
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => {
            let escaped = text.chars().map(|char| match char {
                '\'' | '\\' => format!("\\{char}"),
                '\n' => "\\n".to_owned(),
                '\t' => "\\t".to_owned(),
                other => other.to_string(),
            });
            format!("'{}'", escaped.collect::<String>())
        }
        Value::Array(items) => format!("[{}]", join(items.iter().map(python).collect())),
        Value::Object(map) => {
            let pair = |(key, value): (&String, &Value)| {
                format!("{}: {}", python(&Value::from(key.as_str())), python(value))
            };
            format!("{{{}}}", join(map.iter().map(pair).collect()))
        }
    }
}

fn is_runnable(text: &str) -> bool {
    match read_arguments(text) {
        ToolArguments::Valid(_) | ToolArguments::Repaired { doubt: None, .. } => true,
        ToolArguments::Repaired { doubt: Some(_), .. } | ToolArguments::Unreadable { .. } => false,
    }
}

proptest! {
    #[test]
    fn valid_object_stays_unchanged(map in any_object(), is_ascii: bool) {
        prop_assert_eq!(read_arguments(&spelled(&map, is_ascii)), ToolArguments::Valid(map));
    }

    #[test]
    fn encoded_object_is_decoded(map in any_object()) {
        let text = Value::String(spelled(&map, false)).to_string();
        prop_assert_eq!(read_arguments(&text), ToolArguments::Repaired { value: map, doubt: None });
    }

    #[test]
    fn prefix_never_changes_values(map in any_object(), is_ascii: bool) {
        let text = spelled(&map, is_ascii);
        let whole = Value::Object(map);
        for (end, _) in text.char_indices().skip(1) {
            match read_arguments(&text[..end]) {
                ToolArguments::Valid(_) => prop_assert!(false, "{}", &text[..end]),
                ToolArguments::Unreadable { .. } => {}
                ToolArguments::Repaired { value, doubt } => {
                    prop_assert!(agrees(&Value::Object(value), &whole), "{}", &text[..end]);
                    let place = doubt.and_then(|doubt| doubt.position);
                    prop_assert_eq!(place, Some(TextPosition { line: 1, column: end }), "{}", &text[..end]);
                }
            }
        }
    }

    /// The empty prefix is a call without arguments, which these tools reject.
    #[test]
    fn truncated_call_never_runs(call in any_call(), spell in any_spelling()) {
        let text = spell(&call);
        prop_assert_eq!(Value::Object(read_arguments(&text).to_object()), call);
        prop_assert!(is_runnable(&text), "{}", text);
        let start = text.find(['{', '"']).unwrap();
        for (end, _) in text.char_indices().filter(|(end, _)| *end > start) {
            let is_empty = read_arguments(&text[..end]).to_object().is_empty();
            prop_assert!(is_empty || !is_runnable(&text[..end]), "{}", &text[..end]);
        }
    }

    /// For a prefix that lacks only brackets, any text after it gives the same result as the brackets.
    #[test]
    fn missing_brackets_complete_a_prefix(map in any_object(), is_ascii: bool) {
        let text = spelled(&map, is_ascii);
        for (end, _) in text.char_indices().skip(1) {
            let ToolArguments::Repaired { value, doubt: Some(doubt) } = read_arguments(&text[..end]) else { continue };
            if doubt.kind == DoubtKind::MissingBrackets {
                let closed = closed(&text[..end]);
                prop_assert_eq!(read_arguments(&closed), ToolArguments::Valid(value), "{}", closed);
            }
        }
    }

    #[test]
    fn text_before_an_object_is_rejected(
        words in "(<think>|```|`|\\()?[a-z]{2,8}( [a-z]{1,8}){0,3}[ :\n]",
        map in any_object(),
        after in "( [a-z]{2,8}){0,2}",
    ) {
        prop_assume!(!words.contains("json"));
        let text = format!("{words}{}{after}", spelled(&map, false));
        prop_assume!(!words.starts_with("```") || words.contains(' '));
        prop_assert!(matches!(read_arguments(&text), ToolArguments::Unreadable { .. }), "{}", text);
    }

    #[test]
    fn text_after_an_object_leaves_a_doubt(map in any_object(), words in "[ \n][a-ik-z]{2,8}( [a-z]{1,8}){0,3}") {
        let text = spelled(&map, false) + &words;
        prop_assert!(!is_runnable(&text), "{}", text);
    }

    #[test]
    fn lone_surrogate_never_runs(before in "[a-z ]{0,5}", half in 0xD800_u16..0xE000, after in "[a-z ]{0,5}", quote in "[\"']") {
        let text = format!("{{{quote}command{quote}: {quote}{before}\\u{half:04x}{after}{quote}}}");
        prop_assert!(!is_runnable(&text), "{}", text);
    }

    /// One invalid escape shows that the other backslashes of the path were not escaped either.
    #[test]
    fn path_keeps_its_backslashes(
        names in prop::collection::vec("[a-zA-Z0-9_.]{1,6}", 1..5),
        drive in "[A-Z]:",
        single_quotes: bool,
    ) {
        let path = format!("{drive}\\Users\\{}", names.join("\\"));
        let quote = if single_quotes { '\'' } else { '"' };
        let text = format!("{{{quote}file_path{quote}: {quote}{path}{quote}}}");
        let expected = json!({"file_path": path});
        prop_assert_eq!(Value::Object(read_arguments(&text).to_object()), expected, "{}", text);
    }

    #[test]
    fn truncated_python_call_never_runs(call in any_call()) {
        let text = python(&call);
        prop_assert_eq!(Value::Object(read_arguments(&text).to_object()), call, "{}", &text);
        prop_assert!(is_runnable(&text), "{}", text);
        for (end, _) in text.char_indices().skip(1) {
            prop_assert!(!is_runnable(&text[..end]), "{}", &text[..end]);
        }
    }

    /// Unescaped quotes end a string early: half of it must not run.
    #[test]
    fn string_with_bare_quotes_is_never_shortened(text in "[a-z \"',:{}\\[\\]]{0,20}", is_single: bool) {
        let quote = if is_single { '\'' } else { '"' };
        let call = format!("{{{quote}command{quote}: {quote}{text}{quote}, {quote}timeout{quote}: 5}}");
        let meant = json!({"command": text, "timeout": 5});
        // With commas and colons the text may be other valid JSON, which cannot be detected.
        if is_runnable(&call) && !(text.contains(',') && text.contains(':')) {
            prop_assert_eq!(Value::Object(read_arguments(&call).to_object()), meant, "{}", call);
        }
    }

    #[test]
    fn parsed_object_round_trips(text in any_wild_text()) {
        let value = read_arguments(&text).to_object();
        let written = Value::Object(value.clone()).to_string();
        prop_assert_eq!(read_arguments(&written), ToolArguments::Valid(value), "{}", text);
    }
}

/// Closes the open brackets of a JSON prefix.
fn closed(text: &str) -> String {
    let (mut open, mut in_string, mut escaped) = (Vec::new(), false, false);
    for char in text.chars() {
        match char {
            _ if std::mem::take(&mut escaped) => {}
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            '{' if !in_string => open.push('}'),
            '[' if !in_string => open.push(']'),
            '}' | ']' if !in_string => drop(open.pop()),
            _ => {}
        }
    }
    open.iter().rev().fold(text.to_owned(), |text, bracket| text + &bracket.to_string())
}

/// Text with fragments of JSON.
fn any_wild_text() -> impl Strategy<Value = String> {
    let pieces = vec![
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "'",
        "\\",
        "\\\"",
        "\\u",
        "00e9",
        "d83d",
        "a",
        "b",
        " ",
        "\n",
        "1",
        "-",
        ".",
        "e9",
        "true",
        "None",
        "NaN",
        "//",
        "/*",
        "*/",
        "#",
        "```json\n",
        "<tool_call>",
        "\u{feff}",
        "“",
        "é",
        "\0",
        "{\"a\":",
        "\"b\"",
        "{}",
        "(",
        ")",
        "+",
        "...",
    ];
    let of_pieces =
        prop::collection::vec(prop::sample::select(pieces), 0..30).prop_map(|pieces| pieces.concat());
    prop_oneof!["[\\PC\n]{0,60}", "[{}\\[\\]:,'\"\\\\a1 /*#.-]{0,40}", of_pieces]
}
