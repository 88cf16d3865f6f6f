use serde_json::json;

use super::{Answer, Script, Step};

#[test]
fn line_is_an_answer() {
    let script = Script::parse(
        r#"
        # greets, then reads
        thought "hm | so" | text "Hello \"you\"" | usage 10 2
        call read {"a": "|"} | call edit "{broken" | finish length | split 3
        header "retry-after" "1" | status 429 {"error": "busy"}
        text "half" | hold | cut
        "#,
    );
    let call = |name: &str, arguments: &str| Step::Call { name: name.into(), arguments: arguments.into() };
    let expected = [
        Answer::new([
            Step::Thought("hm | so".into()),
            Step::Text("Hello \"you\"".into()),
            Step::Usage { input: 10, output: 2 },
        ]),
        Answer::new([call("read", r#"{"a":"|"}"#), call("edit", "{broken"), Step::Finish("length".into())])
            .split(3),
        Answer::new([
            Step::Header("retry-after".into(), "1".into()),
            Step::Status { code: 429, body: json!({"error": "busy"}).to_string() },
        ]),
        Answer::new([Step::Text("half".into()), Step::Hold, Step::Disconnect]),
    ];
    assert_eq!(script.answers, expected);
}

#[test]
#[should_panic(expected = "expected a step before `` in `sing`")]
fn unknown_step_is_an_error() {
    Script::parse("sing");
}
