use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::*;

/// Makes a form of `LABEL: MEANING` lines; `…` permits free text.
fn form(lines: &[&str]) -> ElicitationForm {
    let choices = lines.iter().filter(|line| **line != "…").map(|line| {
        let (label, meaning) = line.split_once(": ").unwrap_or((line, ""));
        ElicitationChoice { label: label.into(), description: meaning.into() }
    });
    ElicitationForm {
        message: "Which nest?".into(),
        options: choices.collect(),
        free_text: lines.contains(&"…"),
        subject: FormSubject::Question,
    }
}

#[track_caller]
fn check_request(lines: &[&str], expected: &Expect) {
    let request = to_elicitation_request(&SessionId::new("quiet-crow"), &form(lines));
    expected.assert_eq(&serde_json::to_string_pretty(&request).unwrap());
    // Our own client parses what our own agent encodes.
    assert_eq!(parse_form_request(request).unwrap().form, form(lines));
}

#[test]
fn form_choice_is_one_of_the_list() {
    check_request(
        &["oak: The old one.", "elm"],
        &expect![[r#"
        {
          "mode": "form",
          "sessionId": "quiet-crow",
          "requestedSchema": {
            "type": "object",
            "properties": {
              "answer": {
                "type": "string",
                "title": "Answer",
                "oneOf": [
                  {
                    "const": "oak",
                    "title": "oak",
                    "description": "The old one."
                  },
                  {
                    "const": "elm",
                    "title": "elm"
                  }
                ]
              }
            },
            "required": [
              "answer"
            ]
          },
          "message": "Which nest?"
        }"#]],
    );
}

#[test]
fn free_text_may_accompany_a_choice() {
    check_request(
        &["oak", "…"],
        &expect![[r#"
        {
          "mode": "form",
          "sessionId": "quiet-crow",
          "requestedSchema": {
            "type": "object",
            "properties": {
              "answer": {
                "type": "string",
                "title": "Answer",
                "oneOf": [
                  {
                    "const": "oak",
                    "title": "oak"
                  }
                ]
              },
              "other": {
                "type": "string",
                "title": "Or another answer",
                "maxLength": 2000
              }
            }
          },
          "message": "Which nest?"
        }"#]],
    );
}

#[test]
fn free_text_may_be_the_only_field() {
    check_request(
        &["…"],
        &expect![[r#"
        {
          "mode": "form",
          "sessionId": "quiet-crow",
          "requestedSchema": {
            "type": "object",
            "properties": {
              "other": {
                "type": "string",
                "title": "Answer",
                "maxLength": 2000
              }
            },
            "required": [
              "other"
            ]
          },
          "message": "Which nest?"
        }"#]],
    );
}

/// Simulates a client's answer to a form.
#[track_caller]
fn check_answers(lines: &[&str], answers: &[Value], expected: &Expect) {
    let read = answers.iter().map(|answer| {
        let answer_read = serde_json::from_value(answer.clone()).unwrap();
        format!("{answer} {:?}\n", elicitation_outcome(Ok(answer_read), &form(lines)))
    });
    expected.assert_eq(&read.collect::<String>());
}

fn accepted(content: &Value) -> Value {
    json!({"action": "accept", "content": content})
}

#[test]
fn choice_must_have_been_offered() {
    let answers = [
        accepted(&json!({"answer": "elm"})),
        accepted(&json!({"answer": "Elm"})),
        accepted(&json!({"answer": 1})),
        accepted(&json!({"answer": ["elm"]})),
        accepted(&json!({"other": "a beech"})),
        accepted(&json!({"answer": "", "other": " "})),
        accepted(&json!({})),
        json!({"action": "accept"}),
        json!({"action": "decline"}),
        json!({"action": "cancel"}),
        json!({"action": "_later", "answer": "elm"}),
    ];
    check_answers(
        &["oak", "elm"],
        &answers,
        &expect![[r#"
            {"action":"accept","content":{"answer":"elm"}} Accepted("elm")
            {"action":"accept","content":{"answer":"Elm"}} Unavailable { reason: "the answer was not offered or is too long" }
            {"action":"accept","content":{"answer":1}} Unavailable { reason: "the answer was not offered or is too long" }
            {"action":"accept","content":{"answer":["elm"]}} Unavailable { reason: "the answer was not offered or is too long" }
            {"action":"accept","content":{"other":"a beech"}} Unavailable { reason: "the answer was not offered or is too long" }
            {"action":"accept","content":{"answer":"","other":" "}} Declined
            {"action":"accept","content":{}} Declined
            {"action":"accept"} Declined
            {"action":"decline"} Declined
            {"action":"cancel"} Cancelled
            {"action":"_later","answer":"elm"} Declined
        "#]],
    );
}

#[test]
fn free_text_is_accepted_where_permitted() {
    let answers = [
        accepted(&json!({"other": "  a beech\n"})),
        accepted(&json!({"answer": "oak"})),
        accepted(&json!({"answer": "oak", "other": "a beech"})),
        accepted(&json!({"answer": "oak", "other": ""})),
        accepted(&json!({"answer": "oak", "other": true})),
        accepted(&json!({"answer": "a beech"})),
    ];
    check_answers(
        &["oak", "…"],
        &answers,
        &expect![[r#"
            {"action":"accept","content":{"other":"  a beech\n"}} Accepted("a beech")
            {"action":"accept","content":{"answer":"oak"}} Accepted("oak")
            {"action":"accept","content":{"answer":"oak","other":"a beech"}} Accepted("a beech")
            {"action":"accept","content":{"answer":"oak","other":""}} Accepted("oak")
            {"action":"accept","content":{"answer":"oak","other":true}} Unavailable { reason: "the answer was not offered or is too long" }
            {"action":"accept","content":{"answer":"a beech"}} Unavailable { reason: "the answer was not offered or is too long" }
        "#]],
    );
}

#[test]
fn free_text_is_bounded() {
    let of = |n_chars: usize| {
        let answer = accepted(&json!({"other": "é".repeat(n_chars)}));
        elicitation_outcome(Ok(serde_json::from_value(answer).unwrap()), &form(&["…"]))
    };
    assert_eq!(of(2_000), ElicitationOutcome::Accepted("é".repeat(2_000)));
    assert!(matches!(of(2_001), ElicitationOutcome::Unavailable { .. }));
}

#[test]
fn missing_answer_has_a_reason() {
    for (error, reason) in [
        (sdk::Error::new(-32603, "the dialog broke"), "the dialog broke"),
        (sdk::Error::new(-32602, "missing field `action`"), "the client's answer cannot be read"),
    ] {
        assert_eq!(
            elicitation_outcome(Err(error), &form(&["oak"])),
            ElicitationOutcome::Unavailable { reason: reason.into() }
        );
    }
}

/// Parses the form of any agent, and answers it with each of these; `None` for a form that is not supported.
#[track_caller]
fn check_asked(required: &[&str], properties: &Value, chosen: &[&str], expected: &Expect) {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    let request = json!({"mode": "form", "sessionId": "s", "message": "?", "requestedSchema": schema});
    let read = || parse_form_request(serde_json::from_value(request.clone()).unwrap());
    let Some(asked) = read() else { return expected.assert_eq("not drawn") };
    let labels = asked.form.options.iter().map(|choice| format!("{} ({})", choice.label, choice.description));
    let mut told = format!("{} {}\n", labels.collect::<Vec<_>>().join(", "), asked.form.free_text);
    for said in chosen {
        let response =
            to_elicitation_response(read().unwrap(), ElicitationOutcome::Accepted((*said).into())).unwrap();
        told.push_str(&format!("{said} -> {}\n", serde_json::to_string(&response).unwrap()));
    }
    expected.assert_eq(&told);
}

#[test]
fn forms_of_other_agents_are_parsed() {
    let titled =
        json!([{"const": "a1", "title": "Oak", "description": "Old."}, {"const": "b1", "title": "Elm"}]);
    check_asked(
        &["tree"],
        &json!({"tree": {"type": "string", "oneOf": titled}}),
        &["Elm"],
        &expect![[r#"
        Oak (Old.), Elm () false
        Elm -> {"action":"accept","content":{"tree":"b1"}}
    "#]],
    );
    check_asked(
        &[],
        &json!({"tree": {"type": "string", "enum": ["oak", "elm"]}, "why": {"type": "string"}}),
        &["elm", "a beech"],
        &expect![[r#"
            oak (), elm () true
            elm -> {"action":"accept","content":{"tree":"elm"}}
            a beech -> {"action":"accept","content":{"why":"a beech"}}
        "#]],
    );
    // If a choice is required, free text alone is no answer.
    check_asked(
        &["tree"],
        &json!({"tree": {"type": "string", "enum": ["oak"]}, "why": {"type": "string"}}),
        &["oak"],
        &expect![[r#"
            oak () false
            oak -> {"action":"accept","content":{"tree":"oak"}}
        "#]],
    );
    check_asked(
        &["why"],
        &json!({"why": {"type": "string"}}),
        &["so"],
        &expect![[r#"
         true
        so -> {"action":"accept","content":{"why":"so"}}
    "#]],
    );
}

#[test]
fn form_with_several_questions_is_not_supported() {
    let text = || json!({"type": "string"});
    let list = |n_values: usize| json!({"type": "string", "enum": vec!["x"; n_values]});
    for (required, properties) in [
        (vec![], json!({})),
        (vec![], json!({"a": text(), "b": text()})),
        (vec![], json!({"a": list(2), "b": list(2)})),
        (vec!["b"], json!({"a": list(2), "b": text()})),
        (vec![], json!({"a": {"type": "boolean"}})),
        (vec![], json!({"a": {"type": "array", "items": {"type": "string", "enum": ["x"]}}})),
        (vec![], json!({"a": {"type": "_map"}})),
        (vec![], json!({"a": list(0)})),
        (vec![], json!({"a": list(OPTIONS_MAX + 1)})),
    ] {
        check_asked(&required, &properties, &[], &expect!["not drawn"]);
    }
    let url =
        json!({"mode": "url", "sessionId": "s", "message": "?", "elicitationId": "e", "url": "https://x"});
    assert!(parse_form_request(serde_json::from_value(url).unwrap()).is_none());
}

#[test]
fn subject_of_a_form_is_known_to_our_own_client() {
    for subject in [FormSubject::Question, FormSubject::Trust, FormSubject::McpServer] {
        let form = ElicitationForm { subject, ..form(&["oak"]) };
        let request = to_elicitation_request(&SessionId::new("quiet-crow"), &form);
        assert_eq!(parse_form_request(request).unwrap().form, form);
    }
}
