use expect_test::{Expect, expect};
use serde_json::json;

use super::*;

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
