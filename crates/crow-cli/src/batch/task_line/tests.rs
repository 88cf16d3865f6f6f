use expect_test::{Expect, expect};

use super::*;

#[track_caller]
fn check(lines: &str, expected: &Expect) {
    let rules = TaskRules { models: Some(&["quick", "clever"]), tokens_max: Some(1000) };
    let mut told = String::new();
    for line in lines.lines() {
        told += &match parse_task_line(line, rules) {
            Ok(Some(task)) => format!("{task:?}\n"),
            Ok(None) => "nothing\n".to_owned(),
            Err(LineError { reason, hint: None }) => format!("error: {reason}\n"),
            Err(LineError { reason, hint: Some(hint) }) => format!("error: {reason} ({hint})\n"),
        };
    }
    expected.assert_eq(&told);
}

#[test]
fn task_line_is_an_object() {
    check(
        r#"{"id": "a", "prompt": "Do it.", "cwd": "app", "model": "quick", "mode": "plan", "max_tokens": 500, "max_minutes": 1.5}
{"prompt": "Do it."}
  {"prompt": "Do it."}
{"prompt": "Do it. "}

   "#,
        &expect![[r#"
            BatchTask { id: "a", prompt: "Do it.", cwd: Some("app"), model: Some("quick"), mode: Some("plan"), worktree: false, limits: BatchTaskLimits { tokens_max: Some(500), time_max: Some(90s) } }
            BatchTask { id: "3878496d114eac75", prompt: "Do it.", cwd: None, model: None, mode: None, worktree: false, limits: BatchTaskLimits { tokens_max: None, time_max: None } }
            BatchTask { id: "3878496d114eac75", prompt: "Do it.", cwd: None, model: None, mode: None, worktree: false, limits: BatchTaskLimits { tokens_max: None, time_max: None } }
            BatchTask { id: "d6a45dbc5dfff4a1", prompt: "Do it. ", cwd: None, model: None, mode: None, worktree: false, limits: BatchTaskLimits { tokens_max: None, time_max: None } }
            nothing
            nothing
        "#]],
    );
}

#[test]
fn task_line_says_what_is_wrong() {
    check(
        r#"{"promt": "x"}
{"id": 7, "prompt": "x"}
{"id": "a"}
{"id": "a", "prompt": "x"
fix the tests
["x"]
{"prompt": " "}
{"id": "", "prompt": "x"}
{"id": "a\nb", "prompt": "x"}
{"prompt": "x", "max_tokens": 0}
{"prompt": "x", "max_tokens": 1001}
{"prompt": "x", "max_tokens": -1}
{"prompt": "x", "max_minutes": 0}
{"prompt": "x", "max_minutes": 99999}
{"prompt": "x", "model": "quik"}
{"prompt": "x", "mode": "yolo"}"#,
        &expect![[r#"
            error: unknown field `promt`, expected one of `id`, `prompt`, `cwd`, `model`, `mode`, `worktree`, `max_tokens`, `max_minutes` at column 8 (each line is an object such as {"id": "a", "prompt": "Fix the tests.", "cwd": "app"})
            error: invalid type: integer `7`, expected a string at column 8 (each line is an object such as {"id": "a", "prompt": "Fix the tests.", "cwd": "app"})
            error: missing field `prompt` at column 11 (each line is an object such as {"id": "a", "prompt": "Fix the tests.", "cwd": "app"})
            error: EOF while parsing an object at column 25 (each line is an object such as {"id": "a", "prompt": "Fix the tests.", "cwd": "app"})
            error: not a JSON object (each line is an object such as {"id": "a", "prompt": "Fix the tests.", "cwd": "app"})
            error: not a JSON object (each line is an object such as {"id": "a", "prompt": "Fix the tests.", "cwd": "app"})
            error: prompt is empty
            error: id must have 1 to 256 bytes and no control characters
            error: id must have 1 to 256 bytes and no control characters
            error: max_tokens must be at least 1
            error: max_tokens is 1001, more than --max-tokens 1000 for all tasks
            error: invalid value: integer `-1`, expected u64 at column 32 (each line is an object such as {"id": "a", "prompt": "Fix the tests.", "cwd": "app"})
            error: max_minutes must be above 0 and at most 10080
            error: max_minutes must be above 0 and at most 10080
            error: unknown model "quik" (did you mean quick? known models: quick, clever)
            error: unknown mode "yolo" (known modes: ask, accept-edits, plan, auto)
        "#]],
    );
}

#[test]
fn task_line_for_another_agent_has_its_names() {
    let rules = TaskRules { models: None, tokens_max: None };
    let line = r#"{"id": "a", "prompt": "x", "model": "gpt-any", "mode": "yolo"}"#;
    assert!(parse_task_line(line, rules).is_ok_and(|task| task.is_some()));
}
