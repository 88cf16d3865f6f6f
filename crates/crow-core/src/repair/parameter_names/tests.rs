use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn schema(parameters: &[&str]) -> Value {
    let properties: Map<String, Value> =
        parameters.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    json!({"type": "object", "properties": properties})
}

/// Renders the results of calls of one tool, one per line.
#[track_caller]
fn check(tool: &str, parameters: &[&str], calls: &[Value], expected: &Expect) {
    let schema = schema(parameters);
    check_with(tool, &schema, calls, expected);
}

#[track_caller]
fn check_with(tool: &str, schema: &Value, calls: &[Value], expected: &Expect) {
    let lines = calls.iter().map(|call| match resolve_names(tool, schema, call.as_object().unwrap()) {
        Ok(resolved) => format!("{}\n", Value::Object(resolved)),
        Err(reason) => format!("! {reason}\n"),
    });
    expected.assert_eq(&lines.collect::<String>());
}

const READ: &[&str] = &["file_path", "offset", "limit"];
const EDIT: &[&str] = &["file_path", "old_string", "new_string", "replace_all"];
const TERMINAL: &[&str] = &["command", "cwd", "timeout", "is_input", "reset", "background", "job"];
const GREP: &[&str] = &["pattern", "path", "include", "ignore_case", "output", "context", "limit"];

#[test]
fn aliases_are_accepted() {
    check(
        "read",
        READ,
        &[
            json!({"path": "a", "start_line": 3}),
            json!({"filePath": "a", "Limit": 3}),
            json!({"file-path": "a"}),
            json!({"target_file": "a", "explanation": "to see it"}),
        ],
        &expect![[r#"
            {"file_path":"a","offset":3}
            {"file_path":"a","limit":3}
            {"file_path":"a"}
            {"file_path":"a"}
        "#]],
    );
    check(
        "edit",
        EDIT,
        &[
            json!({"path": "a", "old_str": "x", "new_str": "y"}),
            json!({"filename": "a", "oldString": "x", "newString": "y", "replaceAll": true}),
            json!({"file": "a", "search": "x", "replace": "y"}),
        ],
        &expect![[r#"
            {"file_path":"a","old_string":"x","new_string":"y"}
            {"file_path":"a","old_string":"x","new_string":"y","replace_all":true}
            {"file_path":"a","old_string":"x","new_string":"y"}
        "#]],
    );
    check(
        "terminal",
        TERMINAL,
        &[
            json!({"cmd": "ls", "workdir": "a", "run_in_background": true, "description": "Lists files"}),
            json!({"command": "ls", "directory": "a"}),
        ],
        &expect![[r#"
            {"command":"ls","cwd":"a","background":true}
            {"command":"ls","cwd":"a"}
        "#]],
    );
}

#[test]
fn aliases_of_each_tool_are_accepted() {
    check(
        "grep",
        GREP,
        &[
            json!({"regex": "x", "directory": "src", "glob": "*.rs", "-i": true, "-C": 2, "-n": true}),
            json!({"query": "x", "file": "a", "max_results": 3}),
        ],
        &expect![[r#"
            {"pattern":"x","path":"src","include":"*.rs","ignore_case":true,"context":2}
            {"pattern":"x","path":"a","limit":3}
        "#]],
    );
    check(
        "web_search",
        &["queries", "limit"],
        &[json!({"query": "x", "num_results": 3})],
        &expect![[r#"
            {"queries":"x","limit":3}
        "#]],
    );
    check(
        "task",
        &["prompt", "title", "agent"],
        &[json!({"description": "short", "prompt": "long", "subagent_type": "crow"})],
        &expect![[r#"
            {"title":"short","prompt":"long","agent":"crow"}
        "#]],
    );
}

#[test]
fn unknown_names_are_reported() {
    check(
        "read",
        READ,
        &[
            json!({"file_path": "a", "limt": 3}),
            json!({"file_path": "a", "end_line": 9}),
            json!({"flie_path": "a"}),
            json!({"fil\u{1b}ePth": "a", "encoding": null, "lang": {"x": 1}}),
            json!({"file_path": "a", "description": {"x": 1}}),
        ],
        &expect![[r#"
            ! there is no parameter `limt`, did you mean `limit`? (it takes `file_path`, `offset`, `limit`)
            ! there is no parameter `end_line` (it takes `file_path`, `offset`, `limit`)
            ! there is no parameter `flie_path`, did you mean `file_path`? (it takes `file_path`, `offset`, `limit`)
            ! there is no parameter `filePth`, did you mean `file_path`? (it takes `file_path`, `offset`, `limit`); there is no parameter `lang` (it takes `file_path`, `offset`, `limit`)
            ! there is no parameter `description` (it takes `file_path`, `offset`, `limit`)
        "#]],
    );
    check(
        "none",
        &[],
        &[json!({}), json!({"a": 1})],
        &expect![[r#"
        {}
        ! there is no parameter `a` (it takes none)
    "#]],
    );
}

#[test]
fn duplicate_names_must_agree() {
    check(
        "read",
        READ,
        &[
            json!({"file_path": "a", "path": "a"}),
            json!({"path": "a", "file_path": "b"}),
            json!({"path": "a", "file": "b"}),
            json!({"path": "a", "file_path": null}),
            json!({"file_path": null, "path": "a"}),
        ],
        &expect![[r#"
            {"file_path":"a"}
            ! `path` and `file_path` both mean `file_path` and have different values; give only one
            ! `path` and `file` both mean `file_path` and have different values; give only one
            {"file_path":"a"}
            {"file_path":"a"}
        "#]],
    );
}

#[test]
fn names_inside_lists_are_resolved() {
    let item = json!({"type": "object", "properties": {"content": {"type": "string"}, "status": {"type": "string"}}});
    let schema = json!({"type": "object", "properties": {"entries": {"type": "array", "items": item}}});
    check_with(
        "todo",
        &schema,
        &[
            json!({"todos": [{"content": "a", "status": "pending", "activeForm": "doing a", "priority": "high", "id": 1}]}),
            json!({"plan": [{"step": "a", "status": "pending"}], "explanation": "because"}),
            json!({"entries": "[{\"title\": \"a\", \"state\": \"pending\"}]"}),
            json!({"entries": [{"content": "a", "status": "pending", "due": "today"}], "merge": true}),
        ],
        &expect![[r#"
            {"entries":[{"content":"a","status":"pending"}]}
            {"entries":[{"content":"a","status":"pending"}]}
            {"entries":[{"content":"a","status":"pending"}]}
            ! there is no parameter `entries[0].due` (it takes `content`, `status`); there is no parameter `merge` (it takes `entries`)
        "#]],
    );
}

proptest! {
    /// Every argument with an effect is either resolved or reported.
    #[test]
    fn arguments_are_never_dropped(names in prop::collection::vec("(file_path|path|filePath|offset|x|[a-z_A-Z-]{0,12})", 0..6)) {
        let map: Map<String, Value> = names.iter().enumerate().map(|(at, name)| (name.clone(), at.into())).collect();
        let Ok(resolved) = resolve_names("read", &schema(READ), &map) else { return Ok(()) };
        for (name, value) in &map {
            prop_assert!(resolved.values().any(|kept| kept == value), "{name}");
        }
        prop_assert_eq!(resolve_names("read", &schema(READ), &resolved), Ok(resolved));
    }
}
