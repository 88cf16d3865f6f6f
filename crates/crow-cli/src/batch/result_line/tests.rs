use expect_test::{Expect, expect};

use super::*;

#[track_caller]
fn check(lines: &str, expected: &Expect) {
    let told = lines.lines().map(|line| {
        let unended = classify_unended_line(line.as_bytes());
        match parse_result_line(line) {
            Ok(result) => format!("{result:?}\n"),
            Err(reason) => format!("{reason}; at the end: {unended:?}\n"),
        }
    });
    expected.assert_eq(&told.collect::<String>());
}

#[test]
fn result_line_is_written_and_parsed() {
    let result = TaskResult {
        id: "a".into(),
        state: BatchTaskState::Failed,
        text: "Half of\nit.".into(),
        session: Some("brave-otter".into()),
        branch: None,
        worktree: None,
        tokens: Some(1200),
        seconds: 2.5,
        error: Some("the model refused to answer".into()),
    };
    let line = serde_json::to_string(&result).unwrap();
    expect![[r#"{"id":"a","state":"failed","text":"Half of\nit.","session":"brave-otter","branch":null,"worktree":null,"tokens":1200,"seconds":2.5,"error":"the model refused to answer"}"#]].assert_eq(&line);
    assert!(line.starts_with(LINE_START));
    for end in 1..line.len() {
        assert_eq!(classify_unended_line(&line.as_bytes()[..end]), UnendedLine::Truncated);
    }
    assert!(matches!(classify_unended_line(line.as_bytes()), UnendedLine::Complete(_)));
}

#[test]
fn line_of_another_file_is_no_result() {
    check(
        r#"{"id":"a","state":"done"}
{"id":"a","state":"cancelled","tokens":null,"cost":3}
{"id":"a","state":"gone"}
{"id":"a","state
# Notes
{"prompt":"x"}"#,
        &expect![[r#"
            EarlierResult { id: "a", state: Done, tokens: None }
            EarlierResult { id: "a", state: Cancelled, tokens: None }
            unknown variant `gone`, expected one of `done`, `failed`, `cancelled` at column 24; at the end: Truncated
            EOF while parsing a string at column 16; at the end: Truncated
            expected value at column 1; at the end: NoResult
            missing field `id` at column 14; at the end: NoResult
        "#]],
    );
}
