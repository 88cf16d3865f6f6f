use expect_test::{Expect, expect};
use serde_json::Value;

use super::*;

/// Feeds events into reply 7, ends it, and shows what a person saw and what is left.
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
    ModelEvent::Call { slot, id: given(id), name: given(name), arguments }
}

#[test]
fn words_add_up() {
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
        ReplyEnd::Normally,
        &expect![[r#"
            thought "hm"
            text "good "
            thought "m"
            text "day"
            msg-7 "good day" ("hmm"), 15 tokens"#]],
    );
}

#[test]
fn pieces_of_calls_find_their_call() {
    check(
        &[
            call(0, "a", "read", r#"{"file_"#),
            call(3, "b", "grep", ""),
            call(0, "", "", r#"path":"#),
            call(3, "", "", r#"{"pattern":"x"}"#),
            call(0, "", "", r#""y"}"#),
        ],
        ReplyEnd::Normally,
        &expect![[r#"
            msg-7 "" ("")
            call-7-0 = a: read {"file_path":"y"}
            call-7-1 = b: grep {"pattern":"x"}"#]],
    );
}

#[test]
fn the_first_id_and_name_stand() {
    check(
        &[call(0, "a", "read", "{"), call(0, "a", "read", "}"), call(0, "b", "write", "")],
        ReplyEnd::Normally,
        &expect![[r#"
            msg-7 "" ("")
            call-7-0 = a: read {}"#]],
    );
    check(
        &[call(0, "", "", ""), call(0, "late", "todo", "")],
        ReplyEnd::Normally,
        &expect![[r#"
        msg-7 "" ("")
        call-7-0 = late: todo {}"#]],
    );
    // Two calls with the provider's same id, and one with none.
    check(
        &[call(0, "a", "read", "{}"), call(1, "a", "read", "{}"), call(2, "", "glob", "{}")],
        ReplyEnd::Normally,
        &expect![[r#"
            msg-7 "" ("")
            call-7-0 = a: read {}
            call-7-1 = a: read {}
            call-7-2 = call-7-2: glob {}"#]],
    );
}

#[test]
fn arguments_that_were_cut_are_not_trusted() {
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
fn brackets_that_a_model_forgot_are_closed_where_the_reply_ended_regularly() {
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
    use crate::DoubtKind::{BracketsMissing, CutInString, NotClosed};
    assert_eq!(doubts(ReplyEnd::Normally), [None, Some(NotClosed), Some(CutInString)]);
    assert_eq!(doubts(ReplyEnd::OutputLimit), [Some(BracketsMissing), Some(NotClosed), None]);
}

#[test]
fn calls_of_one_reply_have_a_number() {
    let reply = |n_calls| {
        let mut builder = ReplyBuilder::new(7);
        for slot in 0..n_calls {
            builder.on_event(call(slot, "", "read", "{}"));
        }
        let reply = builder.into_reply(ReplyEnd::Normally);
        let why = match reply.calls.last().map(|call| &call.arguments) {
            Some(ToolArguments::Unreadable { why }) => why.clone(),
            _ => String::new(),
        };
        (reply.calls.len(), why)
    };
    assert_eq!(reply(128), (128, String::new()));
    let why = "the reply has more than 128 calls; the 127 before this one were taken, this one and all behind it were \
               not; make fewer calls at once";
    assert_eq!(reply(129), (128, why.to_owned()));
    assert_eq!(reply(20_000), (128, why.to_owned()));
}

#[test]
fn a_reply_that_became_too_large_says_so_to_the_call_it_was_cut_in() {
    let mut builder = ReplyBuilder::new(7);
    builder.on_event(call(0, "a", "write", r#"{"content":"x"}"#));
    let reply = builder.into_reply(ReplyEnd::SizeLimit);
    let why = "the reply was cut inside this call, at 16 MiB: no reply may be larger; send it again in smaller pieces";
    assert_eq!(reply.calls[0].arguments, ToolArguments::Unreadable { why: why.to_owned() });
}

#[test]
fn a_reply_that_broke_off_keeps_its_words_and_drops_its_calls() {
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
fn usage_alone_is_nothing_that_arrived() {
    let mut builder = ReplyBuilder::new(0);
    assert!(builder.is_empty());
    builder.on_event(ModelEvent::Usage(TokenUsage::default()));
    assert!(builder.is_empty());
    builder.on_event(call(0, "a", "read", ""));
    assert!(!builder.is_empty());
}

#[test]
fn what_a_model_sealed_is_its_own() {
    let mut builder = ReplyBuilder::new(0).with_model("acme/acme-9");
    assert_eq!(builder.on_event(ModelEvent::Sealed(&Value::from("signature"))), None);
    let reply = builder.into_reply(ReplyEnd::Normally);
    assert_eq!(reply.provider_state_for("acme/acme-9"), ["signature"]);
    assert_eq!(reply.provider_state_for("other/acme-9"), [""; 0]);
    assert_eq!(ReplyBuilder::new(0).with_model("acme/acme-9").into_reply(ReplyEnd::Normally).sealed, None);
}
