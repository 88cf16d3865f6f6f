use crow_acp::StopReason;
use crow_core::{FailureKind, PlanEntry, ToolCallStatus};
use expect_test::{Expect, expect};

use super::*;

#[track_caller]
fn check(say: impl FnOnce(&mut JsonLines<&mut Vec<u8>>) -> io::Result<()>, expected: &Expect) {
    let mut written = Vec::new();
    let mut lines = JsonLines::new(&mut written, JsonEventFilter::Events, Arc::default());
    lines.on_session_opened(&SessionId::new("brave-otter")).unwrap();
    say(&mut lines).unwrap();
    let written = String::from_utf8(written).unwrap();
    let schema = include_str!("../../../../../docs/user/reference/run-events.schema.json");
    let schema = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
    for line in written.lines() {
        let event = serde_json::from_str(line).unwrap();
        assert!(schema.is_valid(&event), "the published schema does not allow {line}");
    }
    expected.assert_eq(&written);
}

fn call(title: Option<&str>, status: ToolCallStatus, content: Option<Vec<ToolCallContent>>) -> AgentUpdate {
    let input = title.map(|_| json!({"file_path": "a"}));
    AgentUpdate::Call {
        id: "1".into(),
        title: title.map(Into::into),
        kind: None,
        status: Some(status),
        content,
        input,
    }
}

#[test]
fn events_are_lines_and_the_result_is_the_answer() {
    check(
        |lines| {
            lines.on_update(AgentUpdate::Thought("Hm.\n".into()))?;
            lines.on_update(AgentUpdate::Text("I look.".into()))?;
            lines.on_update(call(Some("Edit a"), ToolCallStatus::Pending, None))?;
            lines.on_update(call(None, ToolCallStatus::InProgress, None))?;
            let diff = ToolCallContent::Diff { path: "a".into(), old: Some("x".into()), new: "y".into() };
            lines.on_update(call(None, ToolCallStatus::Completed, Some(vec![diff])))?;
            let entry = PlanEntry::new("Look", PlanStatus::InProgress);
            lines.on_update(AgentUpdate::Plan(vec![entry]))?;
            lines.on_update(AgentUpdate::Text("It is ".into()))?;
            lines.on_update(AgentUpdate::Text("done.".into()))?;
            lines.on_update(AgentUpdate::Usage {
                used: 10,
                size: 100,
                tokens_spent: None,
                cost: None,
                is_estimate: true,
            })?;
            let cost = Some(12_300_000);
            lines.on_update(AgentUpdate::Usage {
                used: 10,
                size: 100,
                tokens_spent: None,
                cost,
                is_estimate: false,
            })?;
            lines.on_turn_end(PromptOutcome { stop_reason: StopReason::EndTurn, tokens_spent: None })
        },
        &expect![[r#"
            {"type":"session","session":"brave-otter"}
            {"type":"thought","text":"Hm.\n"}
            {"type":"message","text":"I look."}
            {"type":"tool_call","id":"1","title":"Edit a","status":"pending","input":{"file_path":"a"}}
            {"type":"tool_call","id":"1","title":"Edit a","status":"in_progress"}
            {"type":"tool_call","id":"1","title":"Edit a","status":"completed","content":[{"type":"diff","path":"a","old":"x","new":"y"}]}
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
fn failed_turn_leaves_no_text_to_the_next() {
    check(
        |lines| {
            lines.on_update(AgentUpdate::Text("Half".into()))?;
            lines.on_turn_failed(&Failure::new(FailureKind::ProviderRate, "too often"))?;
            lines.on_update(AgentUpdate::Text("Whole".into()))?;
            lines.on_turn_end(PromptOutcome { stop_reason: StopReason::EndTurn, tokens_spent: None })
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
fn result_has_the_outcome_of_reported_work() {
    check(
        |lines| {
            lines.on_update(AgentUpdate::Text("T001 failed.".into()))?;
            lines.on_update(AgentUpdate::Outcome(ReportOutcome::Done))?;
            lines.on_update(AgentUpdate::Outcome(ReportOutcome::Incomplete))?;
            lines.on_turn_end(PromptOutcome { stop_reason: StopReason::EndTurn, tokens_spent: None })?;
            lines.on_update(AgentUpdate::Outcome(ReportOutcome::NotStarted))?;
            lines.on_turn_start()?;
            lines.on_turn_end(PromptOutcome { stop_reason: StopReason::EndTurn, tokens_spent: None })
        },
        &expect![[r#"
            {"type":"session","session":"brave-otter"}
            {"type":"message","text":"T001 failed."}
            {"type":"result","session":"brave-otter","stop_reason":"end_turn","text":"T001 failed.","outcome":"left"}
            {"type":"result","session":"brave-otter","stop_reason":"end_turn","text":""}
        "#]],
    );
}
