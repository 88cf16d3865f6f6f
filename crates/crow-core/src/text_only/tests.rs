use serde_json::json;

use super::*;
use crate::{CrowPart, MessageId, Reply, ReplyEnd, ToolArguments};

fn image() -> ContentPart {
    ContentPart::Image { mime: "image/png".to_owned(), data: "aGVsbG8=".to_owned() }
}

fn text(text: &str) -> ContentPart {
    ContentPart::Text(text.to_owned())
}

fn link(uri: &str, name: &str) -> ContentPart {
    ContentPart::Link { uri: uri.to_owned(), name: name.to_owned(), mime: None }
}

fn reply(seq: u64, arguments: Option<serde_json::Value>) -> TranscriptEntry {
    let calls = arguments.map(|arguments| ToolCall {
        id: CallId::from_position(seq, 0),
        provider_id: "a".to_owned(),
        name: "read".to_owned(),
        arguments: ToolArguments::Valid(arguments.as_object().unwrap().clone()),
    });
    TranscriptEntry::Reply(Reply {
        id: MessageId::from_seq(seq),
        thought: String::new(),
        text: "Well.".to_owned(),
        calls: calls.into_iter().collect(),
        end: ReplyEnd::Complete,
        usage: None,
        provider_state: None,
        fallback_model: None,
    })
}

fn shown(transcript: &Transcript) -> String {
    let mut shown = format!("system {}\n", transcript.system());
    for step in transcript.for_model().unwrap().steps() {
        shown += &match step {
            ModelStep::Prompt(prompt) => format!("prompt {:?}\n", prompt.parts),
            ModelStep::Reply(reply) => format!("reply {} with {} calls\n", reply.text, reply.calls.len()),
            ModelStep::Result { call, result: outcome } => {
                format!("result of {call} {:?}\n", outcome.for_model)
            }
        };
    }
    shown
}

#[test]
fn images_are_replaced_by_notes() {
    let mut transcript = Transcript::new("You are Crow.");
    let parts = vec![
        text("compare"),
        image(),
        link("https://a.test/x/b.png?size=2", ""),
        image(),
        link("https://a.test/c", "the plan"),
        image(),
        ContentPart::FromCrow { kind: CrowPart::Skills, text: "s".to_owned() },
        image(),
    ];
    transcript.push(TranscriptEntry::Prompt(Prompt { id: MessageId::from_seq(0), parts })).unwrap();
    transcript.push(reply(1, Some(json!({"file_path": "/p/d.png"})))).unwrap();
    let mut outcome = ToolResult::success("d.png (image/png, 5 bytes):");
    outcome.for_model.push(image());
    let access = ToolAccess::Reads(vec!["/p/d.png".to_owned()]);
    let info =
        ToolCallInfo { title: "Read d.png".into(), kind: ToolKind::Read, locations: Vec::new(), access };
    transcript
        .push(TranscriptEntry::Result { call: CallId::from_position(1, 0), info, result: outcome })
        .unwrap();
    transcript.push(reply(3, None)).unwrap();
    let text_only = without_images(transcript.for_model().unwrap()).unwrap().unwrap();
    expect_test::expect![[r#"
        system You are Crow.
        prompt [Text("compare"), Text("(an image was here: image/png, 5 bytes; this model reads text only)"), Link { uri: "https://a.test/x/b.png?size=2", name: "", mime: None }, Text("(an image was here: b.png, image/png, 5 bytes; this model reads text only)"), Link { uri: "https://a.test/c", name: "the plan", mime: None }, Text("(an image was here: the plan, image/png, 5 bytes; this model reads text only)"), FromCrow { kind: Skills, text: "s" }, Text("(an image was here: image/png, 5 bytes; this model reads text only)")]
        reply Well. with 1 calls
        result of call-1-0 [Text("d.png (image/png, 5 bytes):"), Text("(an image was here: d.png, image/png, 5 bytes; this model reads text only)")]
        reply Well. with 0 calls
    "#]].assert_eq(&shown(&text_only));
}

#[test]
fn transcript_without_images_is_unchanged() {
    let mut transcript = Transcript::new("You are Crow.");
    transcript
        .push(TranscriptEntry::Prompt(Prompt { id: MessageId::from_seq(0), parts: vec![text("hello")] }))
        .unwrap();
    assert_eq!(without_images(transcript.for_model().unwrap()), Ok(None));
}
