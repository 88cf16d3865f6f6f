use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "limit": {"type": ["integer", "null"]},
            "offset": {"type": "integer"},
            "ratio": {"type": "number"},
            "all": {"type": "boolean"},
            "names": {"type": "array"},
            "queries": {"type": "array", "items": {"type": "string"}},
            "table": {"type": "array", "items": {"type": "array"}},
            "env": {"type": "object"},
            "edits": {"type": "array", "items": {
                "type": "object",
                "properties": {"old": {"type": "string"}, "n": {"type": "integer"}},
                "required": ["old"],
            }},
            "output": {"type": "string", "enum": ["lines", "files", "File", "FILE"]},
            "level": {"type": "integer", "enum": [1, 2]},
            "since": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "who": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
            "either": {"type": ["string", "array"]},
            "far": {"$ref": "#/$defs/far"},
            "any": {},
        },
        "required": ["path"],
    })
}

/// Renders the result for each argument, together with a path.
#[track_caller]
fn check(arguments: &[(&str, Value)], expected: &Expect) {
    let lines = arguments.iter().map(|(name, value)| {
        let map = [("path".to_owned(), json!("p")), ((*name).to_owned(), value.clone())];
        match check_against_schema(&schema(), &map.into_iter().collect()) {
            Ok(mut map) => match map.remove(*name) {
                Some(fitting) => format!("{name} {value} => {fitting}\n"),
                None => format!("{name} {value} => left out\n"),
            },
            Err(problem) => format!("{name} {value}: {problem}\n"),
        }
    });
    expected.assert_eq(&lines.collect::<String>());
}

#[test]
fn obvious_mistakes_are_corrected() {
    check(
        &[
            ("path", json!(3)),
            ("path", json!("3")),
            ("offset", json!("3")),
            ("offset", json!(" 3 ")),
            ("offset", json!("3.0")),
            ("offset", json!(3.0)),
            ("offset", json!(-0.0)),
            ("limit", json!("null")),
            ("limit", json!("3")),
            ("ratio", json!("1.5")),
            ("ratio", json!(2)),
            ("all", json!("true")),
            ("all", json!(" False")),
            ("output", json!("LINES")),
            ("output", json!("File")),
            ("level", json!("2")),
            ("level", json!(2.0)),
            ("since", json!("5")),
            ("since", json!(null)),
        ],
        &expect![[r#"
            path 3 => "3"
            path "3" => "3"
            offset "3" => 3
            offset " 3 " => 3
            offset "3.0" => 3
            offset 3.0 => 3
            offset -0.0 => 0
            limit "null" => null
            limit "3" => 3
            ratio "1.5" => 1.5
            ratio 2 => 2
            all "true" => true
            all " False" => false
            output "LINES" => "lines"
            output "File" => "File"
            level "2" => 2
            level 2.0 => 2
            since "5" => 5
            since null => null
        "#]],
    );
}

#[test]
fn obvious_mistakes_are_corrected_in_lists_and_objects() {
    check(
        &[
            ("names", json!("a")),
            ("names", json!("[1, \"a\"]")),
            ("names", json!({"a": 1})),
            ("queries", json!("rust")),
            ("queries", json!([1, "a"])),
            ("queries", json!(5)),
            ("env", json!("{\"A\": 1}")),
            ("edits", json!({"old": 1})),
            ("edits", json!("[{\"old\": \"a\", \"n\": \"2\"}]")),
            ("edits", json!(["{\"old\": \"a\"}", {"old": "b", "n": null}])),
            ("who", json!("me")),
            ("who", json!(["me"])),
        ],
        &expect![[r#"
            names "a" => ["a"]
            names "[1, \"a\"]" => [1,"a"]
            names {"a":1} => [{"a":1}]
            queries "rust" => ["rust"]
            queries [1,"a"] => ["1","a"]
            queries 5 => ["5"]
            env "{\"A\": 1}" => {"A":1}
            edits {"old":1} => [{"old":"1"}]
            edits "[{\"old\": \"a\", \"n\": \"2\"}]" => [{"old":"a","n":2}]
            edits ["{\"old\": \"a\"}",{"old":"b","n":null}] => [{"old":"a"},{"old":"b"}]
            who "me" => "me"
            who ["me"] => ["me"]
        "#]],
    );
}

#[test]
fn null_for_optional_parameter_is_dropped() {
    check(
        &[
            ("offset", json!(null)),
            ("all", json!(null)),
            ("output", json!(null)),
            ("queries", json!(null)),
            ("names", json!(null)),
            ("limit", json!(null)),
            ("any", json!(null)),
            ("path", json!(null)),
        ],
        &expect![[r#"
            offset null => left out
            all null => left out
            output null => left out
            queries null => left out
            names null => left out
            limit null => null
            any null => null
            path null: `path` must be a string, not null
        "#]],
    );
}

#[test]
fn ambiguous_values_are_rejected() {
    check(
        &[
            ("path", json!(1.10)),
            ("path", json!(true)),
            ("path", json!({"a": 1})),
            ("offset", json!("three")),
            ("offset", json!("")),
            ("offset", json!(1.5)),
            ("offset", json!(1e300)),
            ("offset", json!(true)),
            ("ratio", json!("1,5")),
            ("all", json!(1)),
            ("all", json!("yes")),
            ("names", json!("[1, 2")),
            ("queries", json!([["a"]])),
            ("table", json!("a")),
            ("env", json!("{'A': 1}")),
            ("env", json!("[1]")),
            ("edits", json!([{"old": "a"}, {"n": "x"}, 5])),
            ("edits", json!("a")),
            ("output", json!("file")),
            ("output", json!("tree")),
            ("level", json!(3)),
            ("since", json!("now")),
            ("who", json!(5)),
            ("either", json!(5)),
            ("all", json!("é".repeat(80))),
        ],
        &expect![[r#"
            path 1.1: `path` must be a string, not the number 1.1
            path true: `path` must be a string, not true
            path {"a":1}: `path` must be a string, not the object {"a":1}
            offset "three": `offset` must be an integer, not the string "three"
            offset "": `offset` must be an integer, not the string ""
            offset 1.5: `offset` must be an integer, not the number 1.5
            offset 1e+300: `offset` must be an integer, not the number 1e+300
            offset true: `offset` must be an integer, not true
            ratio "1,5": `ratio` must be a number, not the string "1,5"
            all 1: `all` must be true or false, not the number 1
            all "yes": `all` must be true or false, not the string "yes"
            names "[1, 2": `names` must be an array, not the string "[1, 2"
            queries [["a"]]: `queries[0]` must be a string, not the array ["a"]
            table "a": `table` must be an array, not the string "a"
            env "{'A': 1}": `env` must be an object, not the string "{'A': 1}"
            env "[1]": `env` must be an object, not the string "[1]"
            edits [{"old":"a"},{"n":"x"},5]: `edits[1].n` must be an integer, not the string "x"; `edits[1].old` is missing; it must be a string; `edits[2]` must be an object, not the number 5
            edits "a": `edits` must be an array, not the string "a"
            output "file": `output` must be one of "lines", "files", "File", "FILE", not the string "file"
            output "tree": `output` must be one of "lines", "files", "File", "FILE", not the string "tree"
            level 3: `level` must be one of 1, 2, not the number 3
            since "now": `since` must be an integer or null, not the string "now"
            who 5: `who` must be a string or an array, not the number 5
            either 5: `either` must be a string or an array, not the number 5
            all "éééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé": `all` must be true or false, not the string "ééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé…
        "#]],
    );
}

#[test]
fn unspecified_values_pass() {
    check(
        &[("any", json!([1])), ("far", json!("x")), ("other", json!({"a": null}))],
        &expect![[r#"
        any [1] => [1]
        far "x" => "x"
        other {"a":null} => {"a":null}
    "#]],
    );
    let map: Map<String, Value> = [("a".to_owned(), json!(1))].into_iter().collect();
    assert_eq!(check_against_schema(&json!({"type": "object"}), &map), Ok(map.clone()));
    assert_eq!(check_against_schema(&json!(true), &map), Ok(map));
}

#[test]
fn message_length_is_bounded() {
    let many = json!({"required": (0..30).map(|n| format!("a{n}")).collect::<Vec<_>>()});
    let problem = check_against_schema(&many, &Map::new()).unwrap_err();
    assert!(problem.ends_with("`a7` is missing; it must be given; and 22 more"), "{problem}");
    let choices = json!({"properties": {"a": {"enum": (0..30).collect::<Vec<_>>()}}});
    let map: Map<String, Value> = [("a".to_owned(), json!("x"))].into_iter().collect();
    let problem = check_against_schema(&choices, &map).unwrap_err();
    assert!(problem.ends_with("18, 19 or 10 others, not the string \"x\""), "{problem}");
}

/// A server's schema may nest at any depth.
#[test]
fn hostile_schema_ends_soon() {
    let mut lists = json!({"type": "string"});
    let mut choices = json!({"type": "integer"});
    for _ in 0..60 {
        lists = json!({"type": ["array", "null"], "items": lists});
        choices = json!({"anyOf": [choices], "type": ["string", "array", "integer"], "items": {}});
    }
    let schema = json!({"properties": {"lists": lists, "choices": choices}});
    let map: Map<String, Value> =
        [("lists".to_owned(), json!("x")), ("choices".to_owned(), json!("5"))].into_iter().collect();
    assert!(check_against_schema(&schema, &map).is_err());
}

#[test]
fn negative_number_is_rejected_by_minimum() {
    let schema = json!({"properties": {
        "offset": {"type": "integer", "minimum": 1}, "context": {"type": ["integer", "null"], "minimum": 0},
        "lines": {"type": "array", "items": {"type": "number", "minimum": 0.5}}, "shift": {"type": "integer", "minimum": -5},
    }});
    let reason = |name: &str, value: Value| {
        let map = [(name.to_owned(), value)].into_iter().collect();
        check_against_schema(&schema, &map).err().unwrap_or_else(|| "fits".to_owned())
    };
    assert_eq!(reason("offset", json!(-1)), "`offset` must be at least 1, not -1");
    assert_eq!(reason("offset", json!("-1")), "`offset` must be at least 1, not -1");
    assert_eq!(reason("context", json!(-3)), "`context` must be at least 0, not -3");
    assert_eq!(reason("lines", json!([1, -0.1])), "`lines[1]` must be at least 0.5, not -0.1");
    for (name, value) in
        [("offset", json!(0)), ("context", json!(null)), ("shift", json!(-9)), ("lines", json!([0]))]
    {
        assert_eq!(reason(name, value), "fits", "{name}");
    }
}

#[test]
fn unescaped_paths_are_rejected() {
    let rows = [
        ("file_path", json!("C:\new\test.txt")),
        ("path", json!("src\new.py")),
        ("cwd", json!("C:\temp")),
        ("outputPath", json!("C:\u{8}in\\x")),
        ("paths", json!(["a", "b\tc"])),
        ("command", json!("type C:\new.txt")),
        ("command", json!("echo \"x\" > \"D:\temp\"")),
        ("nested", json!({"file_path": "C:\new"})),
        ("file_path", json!("C:\\new\\test.txt")),
        ("command", json!("python - <<E\nclass A:\n    x: int\nE\nmake all:\nb")),
        ("command", json!("case $x in\n a) echo b:\n;;\nesac")),
        ("command", json!("cat > map.txt <<E\nA:\nfirst\n  C:\nsecond\nE")),
        ("command", json!("git commit -m 'Disks\n\nC:\nis full'")),
        ("command", json!("cat <<E\ncd C:\new\nE")),
        ("command", json!("cat <<E\nC:\tmp\nE")),
        ("content", json!("Q:\nWhat?\nC:\new")),
    ];
    let shown = rows.into_iter().map(|(name, value)| {
        let map = [(name.to_owned(), value)].into_iter().collect();
        format!(
            "{name}: {}\n",
            check_against_schema(&json!({}), &map).err().unwrap_or_else(|| "fits".to_owned())
        )
    });
    expect![[r#"
        file_path: `file_path` has a line break in a path; a backslash is written twice in JSON: "C:\\new\\file.txt"
        path: `path` has a line break in a path; a backslash is written twice in JSON: "C:\\new\\file.txt"
        cwd: `cwd` has a tab in a path; a backslash is written twice in JSON: "C:\\new\\file.txt"
        outputPath: `outputPath` has a control character in a path; a backslash is written twice in JSON: "C:\\new\\file.txt"
        paths: `paths` has a tab in a path; a backslash is written twice in JSON: "C:\\new\\file.txt"
        command: `command` has a line break in a path; a backslash is written twice in JSON: "C:\\new\\file.txt"
        command: `command` has a tab in a path; a backslash is written twice in JSON: "C:\\new\\file.txt"
        nested: `nested.file_path` has a line break in a path; a backslash is written twice in JSON: "C:\\new\\file.txt"
        file_path: fits
        command: fits
        command: fits
        command: fits
        command: fits
        command: `command` has a line break in a path; a backslash is written twice in JSON: "C:\\new\\file.txt"
        command: `command` has a tab in a path; a backslash is written twice in JSON: "C:\\new\\file.txt"
        content: fits
    "#]].assert_eq(&shown.collect::<String>());
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-zA-Z0-9 .\\[\\]{}\":]{0,6}|lines|files|FILES|true|null|\\[1\\]".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((any_name(), inner), 0..3)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

fn any_name() -> impl Strategy<Value = String> {
    let names: Vec<String> = schema()["properties"].as_object().unwrap().keys().cloned().collect();
    prop_oneof![prop::sample::select(names), "old|n|[a-z]{0,3}"]
}

proptest! {
    /// Valid values stay unchanged.
    #[test]
    fn corrected_values_are_valid(pairs in prop::collection::vec((any_name(), any_value()), 0..6)) {
        let mut map: Map<String, Value> = pairs.into_iter().collect();
        map.entry("path").or_insert_with(|| "p".into());
        if let Ok(fitting) = check_against_schema(&schema(), &map) {
            prop_assert_eq!(check_against_schema(&schema(), &fitting), Ok(fitting));
        }
    }
}
