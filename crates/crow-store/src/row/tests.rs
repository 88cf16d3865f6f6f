use crow_core::{
    CallId, ContentPart, CrowPart, DoubtKind, Failure, FailureKind, FileLocation, MessageId, PlanEntry,
    PlanPriority, PlanStatus, Prompt, ProviderState, RepairDoubt, Reply, ReplyEnd, SiteReach, TextPosition,
    TokenUsage, ToolAccess, ToolArguments, ToolCall, ToolCallContent, ToolCallInfo, ToolCallStatus, ToolKind,
    ToolResult, TranscriptEntry,
};
use expect_test::{Expect, expect};
use proptest::{
    collection::{btree_map, vec},
    option,
    prelude::*,
    sample::select,
};
use serde_json::{Map, Value, json};

use super::{EncodedMessage, ImagesByHash, PlanEntryRow, decode_entry, encode_base64, encode_entry};

/// Any entry, valid at its position or not.
pub(crate) fn entries() -> impl Strategy<Value = TranscriptEntry> {
    prop_oneof![
        (text(), vec(part(), 0..4))
            .prop_map(|(id, parts)| TranscriptEntry::Prompt(Prompt { id: MessageId::new(id), parts })),
        reply().prop_map(TranscriptEntry::Reply),
        (call_id(), facets(), outcome()).prop_map(|(call, info, result)| TranscriptEntry::Result {
            call,
            info,
            result
        }),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[a-z \\n\"'\\\\]{0,30}"]
}

fn part() -> impl Strategy<Value = ContentPart> {
    prop_oneof![
        text().prop_map(ContentPart::Text),
        (text(), text()).prop_map(|(mime, data)| ContentPart::Image { mime, data }),
        (text(), text(), option::of(text())).prop_map(|(uri, name, mime)| ContentPart::Link {
            uri,
            name,
            mime
        }),
        (uri(), text(), option::of(text())).prop_map(|(uri, text, mime)| ContentPart::Resource {
            uri,
            text,
            mime
        }),
        (crow_part(), text()).prop_map(|(kind, text)| ContentPart::FromCrow { kind, text }),
    ]
}

/// Any URI, including those of Crow's own additions.
fn uri() -> impl Strategy<Value = String> {
    prop_oneof![text(), crow_part().prop_map(|what| what.uri())]
}

fn crow_part() -> impl Strategy<Value = CrowPart> {
    let named = |name: &&str| CrowPart::parse(name).unwrap();
    prop_oneof![
        ".+".prop_map(CrowPart::Command),
        select(
            &[
                "skills",
                "undone",
                "turn/broke_off",
                "hook/UserPromptSubmit",
                "speckit/plan",
                "speckit/report"
            ][..]
        )
        .prop_map(move |name| named(&name)),
    ]
}

fn reply() -> impl Strategy<Value = Reply> {
    let usage = (any::<[u64; 4]>(), option::of(any::<u64>())).prop_map(
        |([input, output, cached, cache_written], cost)| TokenUsage {
            input,
            output,
            cached,
            cache_written,
            cost,
        },
    );
    let sealed = (text(), vec(text().prop_map(Value::String), 0..3))
        .prop_map(|(by, pieces)| ProviderState { model: by, items: pieces });
    (text(), text(), text(), vec(call(), 0..3), ended(), option::of(usage), option::of(sealed)).prop_map(
        |(id, thought, text, calls, ended, usage, sealed)| Reply {
            id: MessageId::new(id),
            thought,
            text,
            calls,
            end: ended,
            usage,
            provider_state: sealed,
            fallback_model: None,
        },
    )
}

fn call_id() -> impl Strategy<Value = CallId> {
    any::<(u64, usize)>().prop_map(|(reply, index)| CallId::from_position(reply, index))
}

fn call() -> impl Strategy<Value = ToolCall> {
    (call_id(), text(), text(), arguments()).prop_map(|(id, provider_id, name, arguments)| ToolCall {
        id,
        provider_id,
        name,
        arguments,
    })
}

fn arguments() -> impl Strategy<Value = ToolArguments> {
    prop_oneof![
        object().prop_map(ToolArguments::Valid),
        (object(), option::of(doubt())).prop_map(|(value, doubt)| ToolArguments::Repaired { value, doubt }),
        text().prop_map(|reason| ToolArguments::Unreadable { reason }),
    ]
}

fn doubt() -> impl Strategy<Value = RepairDoubt> {
    let kinds = vec![
        DoubtKind::UnclosedValue,
        DoubtKind::MissingBrackets,
        DoubtKind::TruncatedString,
        DoubtKind::SeveralObjects,
        DoubtKind::TrailingText,
        DoubtKind::LoneSurrogate,
        DoubtKind::DuplicateKey,
        DoubtKind::Ambiguous,
    ];
    let place = any::<(usize, usize)>().prop_map(|(line, column)| TextPosition { line, column });
    (select(kinds), option::of(place)).prop_map(|(kind, place)| RepairDoubt { kind, position: place })
}

fn object() -> impl Strategy<Value = Map<String, Value>> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(text(), inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    btree_map(text(), value, 0..4).prop_map(|map| map.into_iter().collect())
}

fn ended() -> impl Strategy<Value = ReplyEnd> {
    use FailureKind as Kind;
    let kinds = vec![
        Kind::SessionNotFound,
        Kind::InvalidValue,
        Kind::AuthRequired,
        Kind::ProviderAuth,
        Kind::ProviderRate,
        Kind::ProviderOverloaded,
        Kind::ProviderRejected,
        Kind::ModelNotFound,
        Kind::ContextOverflow,
        Kind::Connection,
        Kind::Protocol,
        Kind::Store,
        Kind::Config,
        Kind::Internal,
    ];
    prop_oneof![
        select(vec![
            ReplyEnd::Complete,
            ReplyEnd::OutputLimit,
            ReplyEnd::SizeLimit,
            ReplyEnd::Refused,
            ReplyEnd::Cancelled
        ]),
        (select(kinds), text()).prop_map(|(kind, message)| ReplyEnd::Failed(Failure { kind, message })),
    ]
}

fn facets() -> impl Strategy<Value = ToolCallInfo> {
    let kinds = vec![
        ToolKind::Read,
        ToolKind::Edit,
        ToolKind::Search,
        ToolKind::Execute,
        ToolKind::Think,
        ToolKind::Fetch,
        ToolKind::Other,
    ];
    let location = (text(), option::of(any::<u32>())).prop_map(|(path, line)| FileLocation { path, line });
    let touch = prop_oneof![
        Just(ToolAccess::Nothing),
        vec(text(), 0..3).prop_map(ToolAccess::Reads),
        vec(text(), 0..3).prop_map(ToolAccess::Writes),
        text().prop_map(ToolAccess::Runs),
        (text(), text()).prop_map(|(server, tool)| ToolAccess::Calls { server, tool }),
        (text(), select(vec![SiteReach::Public, SiteReach::Private]))
            .prop_map(|(site, reach)| ToolAccess::Fetches { site, reach }),
        Just(ToolAccess::Searches),
    ];
    (text(), select(kinds), vec(location, 0..3), touch)
        .prop_map(|(title, kind, locations, touch)| ToolCallInfo { title, kind, locations, access: touch })
}

fn outcome() -> impl Strategy<Value = ToolResult> {
    let content = prop_oneof![
        text().prop_map(ToolCallContent::Text),
        (text(), text()).prop_map(|(mime, data)| ToolCallContent::Image { mime, data }),
        (text(), option::of(text()), text()).prop_map(|(path, old, new)| ToolCallContent::Diff {
            path,
            old,
            new
        }),
    ];
    let steps = vec![PlanStatus::Pending, PlanStatus::InProgress, PlanStatus::Completed];
    let priorities = vec![PlanPriority::High, PlanPriority::Medium, PlanPriority::Low];
    let step = (text(), select(steps), select(priorities), option::of(text())).prop_map(
        |(text, status, priority, meta)| {
            let meta = meta.map(|id| json!({"speckit": {"id": id}}));
            PlanEntry { text, status, priority, meta }
        },
    );
    let statuses = vec![
        ToolCallStatus::Pending,
        ToolCallStatus::InProgress,
        ToolCallStatus::Completed,
        ToolCallStatus::Failed,
    ];
    (select(statuses), vec(part(), 0..3), vec(content, 0..3), option::of(vec(step, 0..3)))
        .prop_map(|(status, for_model, for_client, plan)| ToolResult { status, for_model, for_client, plan })
}

proptest! {
    #[test]
    fn every_entry_comes_back_as_it_was(entry in entries()) {
        let row = encode_entry(&entry).unwrap();
        prop_assert_eq!(decode_entry(&row.data, row.usage, Some(&kept(&row))).unwrap(), entry);
    }
}

/// The images as the database returns them.
fn kept(row: &EncodedMessage) -> ImagesByHash {
    row.images.iter().map(|(hash, bytes)| (hash.to_string(), encode_base64(bytes))).collect()
}

#[track_caller]
fn check(entry: &TranscriptEntry, wanted: &Expect) {
    let row = encode_entry(entry).unwrap();
    let data: Value = serde_json::from_str(&row.data).unwrap();
    wanted.assert_eq(&format!("{}\n{data:#}", row.role));
    assert_eq!(&decode_entry(&row.data, row.usage, Some(&kept(&row))).unwrap(), entry);
}

/// A reply with every possible part.
fn full_reply() -> Reply {
    let arguments = [("path".into(), json!("src/main.rs")), ("limit".into(), json!(20))];
    let call = |index, name: &str, arguments| ToolCall {
        id: CallId::from_position(1, index),
        provider_id: format!("call_{index}"),
        name: name.into(),
        arguments,
    };
    let unreadable = ToolArguments::Unreadable { reason: "expected `:` at column 9".into() };
    Reply {
        id: MessageId::from_seq(1),
        thought: "Look first.".into(),
        text: "I read it.".into(),
        calls: vec![
            call(0, "read", ToolArguments::Valid(arguments.into_iter().collect())),
            call(1, "edit", unreadable),
        ],
        end: ReplyEnd::Failed(Failure::new(FailureKind::Connection, "the connection broke")),
        usage: Some(TokenUsage { cached: 8, cost: Some(1_500_000), ..TokenUsage::new(10, 2) }),
        provider_state: Some(ProviderState {
            model: "acme/acme-9".into(),
            items: vec![json!({"signature": "x"})],
        }),
        fallback_model: Some("small".into()),
    }
}

#[test]
fn reply_is_encoded_like_a_providers_message() {
    check(
        &TranscriptEntry::Reply(full_reply()),
        &expect![[r#"
            assistant
            {
              "role": "assistant",
              "id": "msg-1",
              "content": "I read it.",
              "reasoning_content": "Look first.",
              "tool_calls": [
                {
                  "id": "call_0",
                  "type": "function",
                  "function": {
                    "name": "read",
                    "arguments": "{\"path\":\"src/main.rs\",\"limit\":20}"
                  },
                  "call": "call-1-0"
                },
                {
                  "id": "call_1",
                  "type": "function",
                  "function": {
                    "name": "edit",
                    "arguments": "{}"
                  },
                  "call": "call-1-1",
                  "repair": {
                    "unreadable": "expected `:` at column 9"
                  }
                }
              ],
              "ended": {
                "failed": {
                  "kind": "connection",
                  "sentence": "the connection broke"
                }
              },
              "spent": {
                "cached": 8,
                "cache_written": 0,
                "cost": 1500000
              },
              "sealed": {
                "by": "acme/acme-9",
                "pieces": [
                  {
                    "signature": "x"
                  }
                ]
              },
              "answered_by": "small"
            }"#]],
    );
}

#[test]
fn result_keeps_its_display() {
    let info = ToolCallInfo {
        title: "Edit a.rs".into(),
        kind: ToolKind::Edit,
        locations: vec![FileLocation { path: "/p/a.rs".into(), line: Some(3) }],
        access: ToolAccess::Writes(vec!["/p/a.rs".into()]),
    };
    let outcome = ToolResult {
        for_client: vec![ToolCallContent::Diff { path: "/p/a.rs".into(), old: None, new: "x".into() }],
        plan: Some(vec![PlanEntry::new("test it", PlanStatus::InProgress)]),
        ..ToolResult::success("edited")
    };
    check(
        &TranscriptEntry::Result { call: CallId::from_position(1, 1), info, result: outcome },
        &expect![[r#"
        tool
        {
          "role": "tool",
          "call": "call-1-1",
          "status": "done",
          "content": [
            {
              "type": "text",
              "text": "edited"
            }
          ],
          "shown": {
            "title": "Edit a.rs",
            "kind": "edit",
            "locations": [
              {
                "path": "/p/a.rs",
                "line": 3
              }
            ],
            "touch": {
              "writes": [
                "/p/a.rs"
              ]
            },
            "content": [
              {
                "type": "diff",
                "path": "/p/a.rs",
                "new": "x"
              }
            ]
          },
          "plan": [
            {
              "text": "test it",
              "status": "in_progress"
            }
          ]
        }"#]],
    );
}

/// Shows the arguments that a row's call is read with.
#[track_caller]
fn check_repair(repair: &str, wanted: &Expect) {
    let data = format!(
        r#"{{"role":"assistant","id":"msg-1","content":"","reasoning_content":"","ended":"normally","tool_calls":[
        {{"id":"c","type":"function","function":{{"name":"n","arguments":"{{}}"}},"call":"call-1-0","repair":{repair}}}]}}"#
    );
    let Ok(TranscriptEntry::Reply(reply)) = decode_entry(&data, None, None) else {
        panic!("{repair} is not read")
    };
    wanted.assert_eq(&format!("{:?}", reply.calls[0].arguments));
    let written: Value =
        serde_json::from_str(&encode_entry(&TranscriptEntry::Reply(reply)).unwrap().data).unwrap();
    if repair != r#""string_closed""# {
        assert_eq!(written["tool_calls"][0]["repair"].to_string(), repair);
    }
}

#[test]
fn repairs_and_doubts_round_trip() {
    check_repair(r#""syntax""#, &expect![[r#"Repaired { value: {}, doubt: None }"#]]);
    check_repair(
        r#"{"doubt":{"kind":"not_closed","place":{"line":1,"column":20}}}"#,
        &expect![
            "Repaired { value: {}, doubt: Some(RepairDoubt { kind: UnclosedValue, position: Some(TextPosition { line: 1, column: 20 }) }) }"
        ],
    );
    check_repair(
        r#"{"doubt":{"kind":"guessed"}}"#,
        &expect!["Repaired { value: {}, doubt: Some(RepairDoubt { kind: Ambiguous, position: None }) }"],
    );
    // In the form of older rows.
    check_repair(
        r#""string_closed""#,
        &expect![
            "Repaired { value: {}, doubt: Some(RepairDoubt { kind: TruncatedString, position: None }) }"
        ],
    );
}

#[test]
fn plan_entry_priority_round_trips() {
    let step = PlanEntry {
        priority: PlanPriority::High,
        meta: Some(json!({"id": "T012"})),
        ..PlanEntry::new("ship it", PlanStatus::Pending)
    };
    let row = serde_json::to_string(&PlanEntryRow::from_plan_entry(&step)).unwrap();
    expect![[r#"{"text":"ship it","status":"pending","priority":"high","meta":{"id":"T012"}}"#]]
        .assert_eq(&row);
}

#[test]
fn decode_errors_have_a_reason() {
    for (data, wanted) in [
        ("{\"role\":", "EOF while parsing a value at line 1 column 8"),
        (
            r#"{"role":"judge"}"#,
            "unknown variant `judge`, expected one of `user`, `assistant`, `tool` at line 1 column 15",
        ),
        (r#"{"role":"user","id":"msg-0"}"#, "missing field `content`"),
    ] {
        assert_eq!(decode_entry(data, None, None).unwrap_err(), wanted);
    }
}

/// Shows how a resource is read, by the form of its row.
#[track_caller]
fn check_origin(resource: &str, wanted: &str) {
    let data = format!(r#"{{"role":"user","id":"msg-0","content":[{resource}]}}"#);
    let read = decode_entry(&data, None, None).map(|entry| {
        let TranscriptEntry::Prompt(prompt) = entry else { panic!("a prompt is read") };
        match &prompt.parts[..] {
            [ContentPart::FromCrow { kind: what, .. }] => format!("Crow's {what}"),
            [ContentPart::Resource { uri, .. }] => format!("the client's {uri}"),
            parts => format!("{parts:?}"),
        }
    });
    assert_eq!(read.unwrap_or_else(|error| error), wanted, "{resource}");
}

#[test]
fn resource_origin_is_stored() {
    let row = |uri: &str, more: &str| format!(r#"{{"type":"resource","uri":"{uri}","text":"x"{more}}}"#);
    let outside = r#","origin":"outside""#;
    check_origin(&row("crow:speckit/report", r#","origin":"crow""#), "Crow's speckit/report");
    check_origin(&row("crow:speckit/report", outside), "the client's crow:speckit/report");
    check_origin(&row("crow:skills", outside), "the client's crow:skills");
    check_origin(
        &row("crow:tomorrow", r#","origin":"crow""#),
        "it contains crow:tomorrow, an addition of Crow that this version does not support",
    );
}

/// Before the origin was stored, only the form of the URI could tell.
#[test]
fn rows_without_an_origin_are_recognized_by_uri() {
    let row = |uri: &str, more: &str| format!(r#"{{"type":"resource","uri":"{uri}","text":"x"{more}}}"#);
    for own in ["speckit/plan", "speckit/report", "skills", "undone", "turn/broke_off", "command/review"] {
        check_origin(&row(&format!("crow:{own}"), ""), &format!("Crow's {own}"));
    }
    for other in ["crow:other", "crow:", "CROW:skills", "file:///crow:skills", "crow:speckit/Plan"] {
        check_origin(&row(other, ""), &format!("the client's {other}"));
    }
    check_origin(&row("crow:skills", r#","mime":"text/plain""#), "the client's crow:skills");
}
