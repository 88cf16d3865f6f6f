use expect_test::{Expect, expect};
use serde_json::Value;

use super::*;

/// Feeds events into reply 7, ends it, and renders the deltas and the reply.
#[track_caller]
fn check(events: &[ModelEvent<'_>], ended: ReplyEnd, expected: &Expect) {
    let mut builder = ReplyBuilder::new(7);
    let mut shown = String::new();
    for event in events {
        match builder.on_event(*event) {
            None => {}
            Some(ReplyDelta::Thought(text)) => shown.push_str(&format!("thought {text:?}\n")),
            Some(ReplyDelta::Text(text)) => shown.push_str(&format!("text {text:?}\n")),
        }
    }
    let reply = builder.into_reply(ended);
    shown.push_str(&format!("{} {:?} ({:?})", reply.id, reply.text, reply.thought));
    if let Some(usage) = reply.usage {
        shown.push_str(&format!(", {} tokens", usage.total_tokens()));
    }
    for call in &reply.calls {
        let object = Value::Object(call.arguments.to_object());
        let doubt = if matches!(call.arguments, ToolArguments::Valid(_)) { "" } else { " (not as sent)" };
        shown.push_str(&format!("\n{} = {}: {} {object}{doubt}", call.id, call.provider_id, call.name));
    }
    expected.assert_eq(&shown);
}

fn call<'a>(slot: usize, id: &'a str, name: &'a str, arguments: &'a str) -> ModelEvent<'a> {
    let given = |text: &'a str| (!text.is_empty()).then_some(text);
    ModelEvent::Call { index: slot, id: given(id), name: given(name), arguments }
}

#[test]
fn text_deltas_add_up() {
    check(
        &[
            ModelEvent::Thought("hm"),
            ModelEvent::Text(""),
            ModelEvent::Text("good "),
            ModelEvent::Thought("m"),
            ModelEvent::Text("day"),
            ModelEvent::Usage(TokenUsage::new(1, 1)),
            ModelEvent::Usage(TokenUsage::new(10, 5)),
        ],
        ReplyEnd::Complete,
        &expect![[r#"
            thought "hm"
            text "good "
            thought "m"
            text "day"
            msg-7 "good day" ("hmm"), 15 tokens"#]],
    );
}

#[test]
fn call_pieces_are_joined_by_index() {
    check(
        &[
            call(0, "a", "read", r#"{"file_"#),
            call(3, "b", "grep", ""),
            call(0, "", "", r#"path":"#),
            call(3, "", "", r#"{"pattern":"x"}"#),
            call(0, "", "", r#""y"}"#),
        ],
        ReplyEnd::Complete,
        &expect![[r#"
            msg-7 "" ("")
            call-7-0 = a: read {"file_path":"y"}
            call-7-1 = b: grep {"pattern":"x"}"#]],
    );
}

#[test]
fn first_id_and_name_count() {
    check(
        &[call(0, "a", "read", "{"), call(0, "a", "read", "}"), call(0, "b", "write", "")],
        ReplyEnd::Complete,
        &expect![[r#"
            msg-7 "" ("")
            call-7-0 = a: read {}"#]],
    );
    check(
        &[call(0, "", "", ""), call(0, "late", "todo", "")],
        ReplyEnd::Complete,
        &expect![[r#"
        msg-7 "" ("")
        call-7-0 = late: todo {}"#]],
    );
    // Two calls with the same provider ID, and one without.
    check(
        &[call(0, "a", "read", "{}"), call(1, "a", "read", "{}"), call(2, "", "glob", "{}")],
        ReplyEnd::Complete,
        &expect![[r#"
            msg-7 "" ("")
            call-7-0 = a: read {}
            call-7-1 = a: read {}
            call-7-2 = call-7-2: glob {}"#]],
    );
}

#[test]
fn truncated_arguments_are_not_run() {
    check(
        &[
            call(0, "a", "write", r#"{"content":"half of"#),
            call(1, "b", "read", r#"{"limit":5 "#),
            call(2, "c", "read", "what?"),
        ],
        ReplyEnd::OutputLimit,
        &expect![[r#"
            msg-7 "" ("")
            call-7-0 = a: write {"content":"half of"} (not as sent)
            call-7-1 = b: read {"limit":5} (not as sent)
            call-7-2 = c: read {} (not as sent)"#]],
    );
}

#[test]
fn missing_brackets_are_accepted_in_complete_reply() {
    let events = [
        call(0, "a", "write", r#"{"content":"x""#),
        call(1, "b", "write", r#"{"content":"x","#),
        call(2, "c", "write", r#"{"content":"x"#),
    ];
    let doubts = |ended| {
        let mut builder = ReplyBuilder::new(7);
        for event in events {
            builder.on_event(event);
        }
        let reply = builder.into_reply(ended);
        reply.calls.iter().map(|call| call.arguments.doubt().map(|doubt| doubt.kind)).collect::<Vec<_>>()
    };
    use crate::DoubtKind::{MissingBrackets, TruncatedString, UnclosedValue};
    assert_eq!(doubts(ReplyEnd::Complete), [None, Some(UnclosedValue), Some(TruncatedString)]);
    assert_eq!(doubts(ReplyEnd::OutputLimit), [Some(MissingBrackets), Some(UnclosedValue), None]);
}

#[test]
fn calls_of_one_reply_are_limited() {
    let reply = |n_calls| {
        let mut builder = ReplyBuilder::new(7);
        for slot in 0..n_calls {
            builder.on_event(call(slot, "", "read", "{}"));
        }
        let reply = builder.into_reply(ReplyEnd::Complete);
        let reason = match reply.calls.last().map(|call| &call.arguments) {
            Some(ToolArguments::Unreadable { reason: why }) => why.clone(),
            _ => String::new(),
        };
        (reply.calls.len(), reason)
    };
    assert_eq!(reply(128), (128, String::new()));
    let reason = "the reply has more than 128 calls; the 127 before this one were accepted, this one and all after it were \
               not; make fewer calls at once";
    assert_eq!(reply(129), (128, reason.to_owned()));
    assert_eq!(reply(20_000), (128, reason.to_owned()));
}

#[test]
fn too_large_reply_has_error_in_truncated_call() {
    let mut builder = ReplyBuilder::new(7);
    builder.on_event(call(0, "a", "write", r#"{"content":"x"}"#));
    let reply = builder.into_reply(ReplyEnd::SizeLimit);
    let reason = "the reply was truncated inside this call at 16 MiB, the maximum size; send the call again in smaller parts";
    assert_eq!(reply.calls[0].arguments, ToolArguments::Unreadable { reason: reason.to_owned() });
}

#[test]
fn interrupted_reply_keeps_text_without_calls() {
    let events = [ModelEvent::Text("I will"), call(0, "a", "write", r#"{"content":"x"}"#)];
    check(
        &events,
        ReplyEnd::Cancelled,
        &expect![[r#"
        text "I will"
        msg-7 "I will" ("")"#]],
    );
    check(
        &events,
        ReplyEnd::Refused,
        &expect![[r#"
        text "I will"
        msg-7 "I will" ("")"#]],
    );
}

#[test]
fn usage_alone_counts_as_empty() {
    let mut builder = ReplyBuilder::new(0);
    assert!(builder.is_empty());
    builder.on_event(ModelEvent::Usage(TokenUsage::default()));
    assert!(builder.is_empty());
    builder.on_event(call(0, "a", "read", ""));
    assert!(!builder.is_empty());
}

#[test]
fn provider_state_is_returned_to_its_model_only() {
    let mut builder = ReplyBuilder::new(0).with_model("acme/acme-9");
    assert_eq!(builder.on_event(ModelEvent::ProviderState(&Value::from("signature"))), None);
    let reply = builder.into_reply(ReplyEnd::Complete);
    assert_eq!(reply.provider_state_for("acme/acme-9"), ["signature"]);
    assert_eq!(reply.provider_state_for("other/acme-9"), [""; 0]);
    assert_eq!(
        ReplyBuilder::new(0).with_model("acme/acme-9").into_reply(ReplyEnd::Complete).provider_state,
        None
    );
}
