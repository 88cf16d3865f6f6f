use crow_core::{FailureKind, PlanEntry, Status};
use expect_test::{Expect, expect};

use super::*;

#[track_caller]
fn check(say: impl FnOnce(&mut JsonLines<&mut Vec<u8>>) -> io::Result<()>, expected: &Expect) {
    let mut written = Vec::new();
    let mut lines = JsonLines::new(&mut written, Shown::Events);
    lines.session(&SessionId::new("brave-otter")).unwrap();
    say(&mut lines).unwrap();
    expected.assert_eq(&String::from_utf8(written).unwrap());
}

fn call(title: Option<&str>, status: Status, content: Option<Vec<Content>>) -> Heard {
    let input = title.map(|_| json!({"file_path": "a"}));
    Heard::Call {
        id: "1".into(),
        title: title.map(Into::into),
        kind: None,
        status: Some(status),
        content,
        input,
    }
}

#[test]
fn every_event_is_a_line_and_the_result_is_the_answer() {
    check(
        |lines| {
            lines.heard(Heard::Thought("Hm.\n".into()))?;
            lines.heard(Heard::Text("I look.".into()))?;
            lines.heard(call(Some("Edit a"), Status::Pending, None))?;
            lines.heard(call(None, Status::Running, None))?;
            let diff = Content::Diff { path: "a".into(), old: Some("x".into()), new: "y".into() };
            lines.heard(call(None, Status::Done, Some(vec![diff])))?;
            let entry = PlanEntry::new("Look", PlanStatus::InProgress);
            lines.heard(Heard::Plan(vec![entry]))?;
            lines.heard(Heard::Text("It is ".into()))?;
            lines.heard(Heard::Text("done.".into()))?;
            lines.heard(Heard::Usage { used: 10, size: 100, spent: None, cost: None, is_guess: true })?;
            let cost = Some(12_300_000);
            lines.heard(Heard::Usage { used: 10, size: 100, spent: None, cost, is_guess: false })?;
            lines.result(StopReason::EndTurn)
        },
        &expect![[r#"
            {"type":"session","session":"brave-otter"}
            {"type":"thought","text":"Hm.\n"}
            {"type":"message","text":"I look."}
            {"type":"tool_call","id":"1","title":"Edit a","status":"pending","input":{"file_path":"a"}}
            {"type":"tool_call","id":"1","status":"in_progress"}
            {"type":"tool_call","id":"1","status":"completed","content":[{"type":"diff","path":"a","old":"x","new":"y"}]}
            {"type":"plan","entries":[{"content":"Look","status":"in_progress"}]}
            {"type":"message","text":"It is "}
            {"type":"message","text":"done."}
            {"type":"usage","used":10,"size":100,"estimated":true}
            {"type":"usage","used":10,"size":100,"cost":{"amount":0.0123,"currency":"USD"}}
            {"type":"result","session":"brave-otter","stop_reason":"end_turn","text":"It is done."}
        "#]],
    );
}

#[test]
fn a_failed_turn_leaves_no_words_to_the_next() {
    check(
        |lines| {
            lines.heard(Heard::Text("Half".into()))?;
            lines.error(&Failure::new(FailureKind::ProviderRate, "too often"))?;
            lines.heard(Heard::Text("Whole".into()))?;
            lines.result(StopReason::EndTurn)
        },
        &expect![[r#"
            {"type":"session","session":"brave-otter"}
            {"type":"message","text":"Half"}
            {"type":"error","kind":"provider_rate","message":"too often"}
            {"type":"message","text":"Whole"}
            {"type":"result","session":"brave-otter","stop_reason":"end_turn","text":"Whole"}
        "#]],
    );
}

#[test]
fn the_result_says_how_reported_work_ended() {
    check(
        |lines| {
            lines.heard(Heard::Text("T001 failed.".into()))?;
            lines.heard(Heard::Outcome(ReportOutcome::Done))?;
            lines.heard(Heard::Outcome(ReportOutcome::Left))?;
            lines.result(StopReason::EndTurn)?;
            lines.heard(Heard::Outcome(ReportOutcome::Refused))?;
            lines.begin()?;
            lines.result(StopReason::EndTurn)
        },
        &expect![[r#"
            {"type":"session","session":"brave-otter"}
            {"type":"message","text":"T001 failed."}
            {"type":"result","session":"brave-otter","stop_reason":"end_turn","text":"T001 failed.","outcome":"left"}
            {"type":"result","session":"brave-otter","stop_reason":"end_turn","text":""}
        "#]],
    );
}
