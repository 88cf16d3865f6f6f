use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Shows what came of a text: how sure it is, then the object.
fn outcome(text: &str) -> String {
    match read_arguments(text) {
        Arguments::Valid(map) => format!("valid {}", Value::Object(map)),
        Arguments::Repaired { value, string_closed: false } => format!("repaired {}", Value::Object(value)),
        Arguments::Repaired { value, string_closed: true } => format!("closed {}", Value::Object(value)),
        Arguments::Unreadable { why } => format!("unreadable: {why}"),
    }
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(outcome(text), expected, "{text}");
}

#[test]
fn valid() {
    check(r#"{"b":1,"a":"\u00e9"}"#, r#"valid {"b":1,"a":"é"}"#);
    check("", "valid {}");
    check(" \n", "valid {}");
    check(" {} ", "valid {}");
}

#[test]
fn cut() {
    check(
        r#"{"file_path":"a.py","content":"import os\nprint("#,
        r#"closed {"file_path":"a.py","content":"import os\nprint("}"#,
    );
    check(r#"{"path":"a","recursive":"#, r#"repaired {"path":"a"}"#);
    check(r#"{"path":"a","recur"#, r#"repaired {"path":"a"}"#);
    check(r#"{"path":"a","#, r#"repaired {"path":"a"}"#);
    check(r#"{"text":"a\n\"#, r#"closed {"text":"a\n"}"#);
    check(r#"{"text":"caf\u00e"#, r#"closed {"text":"caf"}"#);
    check(
        r#"{"edits":[{"old":"a","new":"b"},{"old":"c"#,
        r#"closed {"edits":[{"old":"a","new":"b"},{"old":"c"}]}"#,
    );
    check(r#"{"path":"a","recursive":tru"#, r#"repaired {"path":"a","recursive":true}"#);
    check(r#"{"path":"a","timeout":1."#, r#"repaired {"path":"a"}"#);
    check(r#"{"path":"a","timeout":1"#, r#"repaired {"path":"a"}"#);
    check(r#"{"path":"a","timeout":1 "#, r#"repaired {"path":"a","timeout":1}"#);
    check(r#"{"command":"ls -la""#, r#"repaired {"command":"ls -la"}"#);
    check(r#"{"content":"fn f() { a[0] = {"#, r#"closed {"content":"fn f() { a[0] = {"}"#);
    check(
        r#"{"content":"say \"hi\", ok: \"x\": [1, {"#,
        r#"closed {"content":"say \"hi\", ok: \"x\": [1, {"}"#,
    );
    check(r#"{"text":"\ud83d\ud"#, r#"closed {"text":""}"#);
    check(r#"{"command":"rm -rf build"#, r#"closed {"command":"rm -rf build"}"#);
    check("{", "repaired {}");
}

#[test]
fn malformed() {
    check(r#"{"command":"ls"}}"#, r#"repaired {"command":"ls"}"#);
    check("```json\n{\"command\":\"ls\"}\n```", r#"repaired {"command":"ls"}"#);
    check(r#"Sure, here it is: {"command":"ls"}"#, r#"repaired {"command":"ls"}"#);
    check(
        r"{'command': 'ls', 'background': False, 'timeout': None}",
        r#"repaired {"command":"ls","background":false,"timeout":null}"#,
    );
    check(r#"{command: "ls", timeout: 5}"#, r#"repaired {"command":"ls","timeout":5}"#);
    check(r#"{"queries":["a","b",],}"#, r#"repaired {"queries":["a","b"]}"#);
    check("{\"content\":\"a\n\tb\"}", r#"repaired {"content":"a\n\tb"}"#);
    check(r#"{"pattern":"\d+\s*\.py$"}"#, r#"repaired {"pattern":"\\d+\\s*\\.py$"}"#);
    check(r#"{"command":"ls"}{"command":"ls"}"#, r#"repaired {"command":"ls"}"#);
    check(r#"{"command":"ls" "timeout":5}"#, r#"repaired {"command":"ls","timeout":5}"#);
    check(r#"{"command":"ls"}</arguments></tool_call>"#, r#"repaired {"command":"ls"}"#);
    check(
        r#"{"command":"echo "hello world""}"#,
        "unreadable: the arguments are not a JSON object: expected `,` or `}` at line 1 column 19",
    );
}

#[test]
fn around_and_inside() {
    check("\u{feff}{\"a\":1}", r#"repaired {"a":1}"#);
    check(r#"<tool_call>{"a":"<b>"}</tool_call>"#, r#"repaired {"a":"<b>"}"#);
    check(r#"[TOOL_CALLS] {"a":[1]}"#, r#"repaired {"a":[1]}"#);
    check(r#""{\"command\":\"ls\"}""#, r#"repaired {"command":"ls"}"#);
    check(r#""{\"command\":\"ls"#, r#"closed {"command":"ls"}"#);
    check(r#"{"a":"\ud83d!","b":"\ud83d\ude00"}"#, r#"repaired {"a":"\\ud83d!","b":"😀"}"#);
    check(r#"{"a":"\u12g4"}"#, r#"repaired {"a":"\\u12g4"}"#);
    check(r"{'pattern': '\d+ it\'s \n'}</tool_call>", r#"repaired {"pattern":"\\d+ it's \n"}"#);
    check("{'command': 'a \\\n b'}", r#"repaired {"command":"a \\\n b"}"#);
}

/// Whatever the repair had to guess of a string is marked, so that it is never written or run.
#[test]
fn a_guessed_string_is_marked() {
    check(r"{'command': 'rm -rf build", r#"closed {"command":"rm -rf build"}"#);
    check(r"{command: rm -rf buil", r#"closed {"command":"rm -rf buil"}"#);
    check(r#"{'a': 1, "command": "ls, "b": "c"}"#, r#"closed {"a":1,"command":"ls","b":"c"}"#);
    check(r#"{"content":"say "} done"}"#, r#"closed {"content":"say "}"#);
    check(r#"{"content":"a"}{"b"}"}"#, r#"closed {"content":"a"}"#);
    check(r#"{"command":"echo "hi" there"}"#, r#"closed {"command":"echo \"hi\" there"}"#);
}

#[test]
fn not_an_object() {
    let why = "unreadable: the arguments are not a JSON object:";
    check("[1]", &format!("{why} invalid type: sequence, expected a map at line 1 column 0"));
    check(r#"[{"a":1}"#, &format!("{why} invalid type: sequence, expected a map at line 1 column 0"));
    check("null", &format!("{why} invalid type: null, expected a map at line 1 column 4"));
    check("ls -la", &format!("{why} expected value at line 1 column 1"));
    check("{'a': 1", &format!("{why} key must be a string at line 1 column 2"));
}

/// Deep or hostile text ends soon, and the stack holds.
#[test]
fn bounded() {
    for piece in ["[", "{", "{\"a\":", "{'a':[", "\"", "'", "\\", "{\"a\" ", "{a:\"", "(", "{\"a\":\"b,\""] {
        for start in ["", "{", "{'a':"] {
            read_arguments(&format!("{start}{}", piece.repeat(10_000)));
        }
    }
    let deep = |depth| format!("{}{}", "{\"a\":".repeat(depth), "1 ");
    assert!(matches!(read_arguments(&deep(128)), Arguments::Repaired { .. }));
    assert!(matches!(read_arguments(&deep(129)), Arguments::Unreadable { .. }));
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        // Quarters, which every reader of floats agrees on.
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

/// Spells an object as strictly ASCII, escapes and all, or as it is.
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

/// Where a prefix ends.
fn ends_in_string_value(prefix: &str) -> bool {
    let (mut in_string, mut is_value, mut escaped) = (false, false, false);
    let mut objects = Vec::new();
    for char in prefix.chars() {
        match char {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            _ if in_string => {}
            '{' | '[' => {
                objects.push(char == '{');
                is_value = char == '[';
            }
            '}' | ']' => {
                objects.pop();
            }
            ':' => is_value = true,
            ',' => is_value = objects.last() == Some(&false),
            _ => {}
        }
    }
    in_string && is_value
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

proptest! {
    #[test]
    fn a_valid_object_stays_as_it_is(map in any_object(), is_ascii: bool) {
        prop_assert_eq!(read_arguments(&spelled(&map, is_ascii)), Arguments::Valid(map));
    }

    #[test]
    fn an_encoded_object_is_decoded(map in any_object()) {
        let text = Value::String(spelled(&map, false)).to_string();
        prop_assert_eq!(read_arguments(&text), Arguments::Repaired { value: map, string_closed: false });
    }

    #[test]
    fn no_prefix_lies(map in any_object(), is_ascii: bool) {
        let text = spelled(&map, is_ascii);
        let whole = Value::Object(map);
        for (end, _) in text.char_indices().skip(1) {
            match read_arguments(&text[..end]) {
                Arguments::Valid(_) => prop_assert!(false, "{}", &text[..end]),
                Arguments::Unreadable { .. } => {}
                Arguments::Repaired { value, string_closed } => {
                    prop_assert!(agrees(&Value::Object(value), &whole), "{}", &text[..end]);
                    prop_assert_eq!(string_closed, ends_in_string_value(&text[..end]), "{}", &text[..end]);
                }
            }
        }
    }

    #[test]
    fn any_text_comes_to_an_end(text in "[\\PC\n]{0,60}", json in "[{}\\[\\]:,'\"\\\\a1 /*#.-]{0,40}") {
        read_arguments(&text);
        read_arguments(&json);
    }
}

#[track_caller]
fn check_schema(arguments: &Value, expected: &Expect) {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "limit": {"type": ["integer", "null"]},
            "offset": {"type": "integer"},
            "ratio": {"type": "number"},
            "all": {"type": "boolean"},
            "names": {"type": "array"},
            "env": {"type": "object"},
            "any": {},
        },
        "required": ["path"],
    });
    let Value::Object(map) = arguments else { panic!("not an object") };
    let shown = match check_against(&schema, map) {
        Ok(map) => Value::Object(map).to_string(),
        Err(problem) => problem,
    };
    expected.assert_eq(&shown);
}

#[test]
fn a_schema_mends_the_obvious() {
    check_schema(
        &json!({"path": "5", "limit": "5", "offset": 7.0, "ratio": " 1.5", "all": "True", "names": "[1]", "env": "{}"}),
        &expect![[r#"{"path":"5","limit":5,"offset":7,"ratio":1.5,"all":true,"names":[1],"env":{}}"#]],
    );
    check_schema(
        &json!({"path": "a", "limit": null, "offset": null, "all": null, "any": null, "other": [1]}),
        &expect![[r#"{"path":"a","limit":null,"any":null,"other":[1]}"#]],
    );
    check_schema(&json!({"path": "a", "offset": "7.0"}), &expect![[r#"{"path":"a","offset":7}"#]]);
}

#[test]
fn a_schema_says_what_is_wrong() {
    check_schema(&json!({}), &expect!["`path` is missing; it must be a string"]);
    check_schema(&json!({"path": null}), &expect!["`path` must be a string, not null"]);
    check_schema(
        &json!({"path": 5, "limit": "many", "offset": 1.5}),
        &expect![[
            r#"`path` must be a string, not the number 5; `limit` must be an integer or null, not the string "many"; `offset` must be an integer, not the number 1.5"#
        ]],
    );
    check_schema(
        &json!({"path": "a", "all": "é".repeat(80), "names": "a"}),
        &expect![[
            r#"`all` must be true or false, not the string "ééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé…; `names` must be an array, not the string "a""#
        ]],
    );
    check_schema(
        &json!({"path": "a", "offset": 1e300}),
        &expect!["`offset` must be an integer, not the number 1e+300"],
    );
}

#[test]
fn a_schema_without_properties_lets_everything_pass() {
    let map: Map<String, Value> = [("a".to_owned(), json!(1))].into_iter().collect();
    assert_eq!(check_against(&json!({"type": "object"}), &map), Ok(map.clone()));
    assert_eq!(check_against(&json!(true), &map), Ok(map));
}
