use serde_json::{Value, json};

use super::Recording;

const RECORDING: &str = r#"{"recording":1,"provider":"p","model":"m","method":"POST","path":"/api/v1/chat/completions","headers":{},"body":{"messages":[{"role":"system","content":"In /a."},{"role":"user","content":"hi"}],"n":1}}
{"status":200,"headers":{"content-type":"text/event-stream"},"ms":3}
{"ms":4,"text":"data: a"}
{"ms":5,"base64":"/w=="}
{"end":"left","ms":6}
"#;

/// Sends a request to a recording; returns the steps, or why there are none.
#[track_caller]
fn check(requests: &[(&str, Value)], expected: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("0002-p-m.jsonl"), RECORDING.replace("hi", "more")).unwrap();
    std::fs::write(directory.path().join("0001-p-m.jsonl"), RECORDING).unwrap();
    std::fs::write(directory.path().join("README"), "not this").unwrap();
    let mut recorded = Recording::read(directory.path());
    let told = requests.iter().map(|(path, request)| match recorded.take_answer(path, request) {
        Ok(answer) => format!("{:?}", answer.steps),
        Err(reason) => reason,
    });
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

fn request(directory: &str, text: &str) -> Value {
    json!({"n": 1, "user": "me", "messages": [{"role": "system", "content": directory}, {"role": "user", "content": text}]})
}

#[test]
fn recorded_requests_are_answered() {
    let path = "/v1/chat/completions";
    let answer = r#"[Code(200), Header("content-type", "text/event-stream"), Raw([]), Raw([100, 97, 116, 97, 58, 32, 97]), Raw([255]), Hold]"#;
    check(
        &[
            (path, request("In /b.", "more")),
            (path, request("In /b.", "bye")),
            (path, request("In /b.", "hi")),
            (path, request("In /b.", "hi")),
        ],
        &[
            answer,
            r#"0001-p-m.jsonl: $.messages[1].content was "hi", and is "bye""#,
            answer,
            "everything recorded was asked already",
        ],
    );
}

#[test]
fn differences_are_reported_by_path() {
    let path = "/v1/chat/completions";
    let first =
        |request: Value, reason: &str| check(&[(path, request)], &[&format!("0001-p-m.jsonl: {reason}")]);
    first(
        json!({"messages": [], "n": 1}),
        r#"$.messages[0] was {"role":"system","content":null}, and is nothing"#,
    );
    let mut more = request("", "hi");
    more["stream"] = true.into();
    first(more, "$.stream was nothing, and is true");
    check(
        &[("/v1/messages", request("", "hi"))],
        &["0001-p-m.jsonl: it was sent to /api/v1/chat/completions, not to /v1/messages"],
    );
}
