use crate::{
    CallId, ContentPart, MessageId, PlanEntry, Prompt, Reply, ReplyEnd, ToolAccess, ToolCallInfo, ToolKind,
    ToolResult,
};

use super::*;

fn reply(text: &str) -> TranscriptEntry {
    TranscriptEntry::Reply(Reply {
        id: MessageId::from_seq(1),
        thought: String::new(),
        text: text.to_owned(),
        calls: Vec::new(),
        end: ReplyEnd::Complete,
        usage: None,
        provider_state: None,
        fallback_model: None,
    })
}

fn prompt() -> TranscriptEntry {
    let parts = vec![ContentPart::Text("go".to_owned())];
    TranscriptEntry::Prompt(Prompt { id: MessageId::from_seq(0), parts })
}

fn plan(last: PlanStatus) -> TranscriptEntry {
    let plan = [PlanStatus::Completed, last].map(|status| PlanEntry::new("step", status));
    let info = ToolCallInfo {
        title: String::new(),
        kind: ToolKind::Think,
        locations: Vec::new(),
        access: ToolAccess::Nothing,
    };
    let result = ToolResult { plan: Some(plan.into()), ..ToolResult::success("ok") };
    TranscriptEntry::Result { call: CallId::from_position(1, 0), info, result }
}

#[test]
fn announcements_are_recognized_while_steps_are_open() {
    for text in [
        "The fix is in. Next, I'll run the tests.",
        "Now I will update the docs",
        "Done with the first step.\n\nLet me check the rest:",
        "Here is what comes next:",
        "I\u{2019}ll go on with step 3.",
    ] {
        assert!(ends_with_announcement(&[prompt(), plan(PlanStatus::Pending), reply(text)]), "{text}");
        assert!(!ends_with_announcement(&[prompt(), plan(PlanStatus::Completed), reply(text)]), "{text}");
        assert!(!ends_with_announcement(&[prompt(), reply(text)]), "{text}");
        let earlier = [plan(PlanStatus::InProgress), prompt(), reply(text)];
        assert!(!ends_with_announcement(&earlier), "{text}");
    }
}

#[test]
fn answers_and_questions_are_no_announcements() {
    for text in [
        "",
        "All tests pass.",
        "Let me know if you want more. Shall I go on?",
        "I'll need your decision: which database should I use?",
        "I will not touch the migration. It is yours.",
    ] {
        assert!(!ends_with_announcement(&[prompt(), plan(PlanStatus::InProgress), reply(text)]), "{text}");
    }
    assert!(!ends_with_announcement(&[]));
}
