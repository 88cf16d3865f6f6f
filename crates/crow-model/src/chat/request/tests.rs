use crow_core::{
    CallId, Compaction, ContentPart, MessageId, ModelTranscript, Prompt, Reply, ReplyEnd, ToolAccess,
    ToolArguments, ToolCall, ToolCallInfo, ToolCallStatus, ToolKind, ToolResult, ToolSpec, Transcript,
    TranscriptEntry,
};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::test_settings::sample_settings;
use crate::{EncodedMessages, ModelSettings};

fn build_body(
    settings: &ModelSettings,
    transcript: ModelTranscript<'_>,
    tools: &[ToolSpec],
) -> serde_json::Result<Vec<u8>> {
    super::build_body(settings, transcript, tools, &EncodedMessages::default())
}

/// Makes a conversation, and a request of it after each step, which must not depend on what is kept of earlier ones.
#[track_caller]
fn conversation(settings: &ModelSettings, entries: Vec<TranscriptEntry>) -> Transcript {
    let mut transcript = Transcript::new("be good");
    let (encoded_messages, tools) = (&EncodedMessages::default(), &tools());
    for entry in entries {
        transcript.push(entry).unwrap();
        let Ok(transcript) = transcript.for_model() else { continue };
        let kept = super::build_body(settings, transcript, tools, encoded_messages);
        let bodies = [kept, build_body(settings, transcript, tools)];
        let [kept, new] = bodies.map(|body| String::from_utf8(body.unwrap()).unwrap());
        assert_eq!(kept, new);
    }
    transcript
}

fn prompt(parts: Vec<ContentPart>) -> TranscriptEntry {
    TranscriptEntry::Prompt(Prompt { id: MessageId::from_seq(0), parts })
}

fn say(text: &str) -> TranscriptEntry {
    prompt(vec![ContentPart::Text(text.to_owned())])
}

fn image() -> ContentPart {
    ContentPart::Image { mime: "image/png".to_owned(), data: "AA==".to_owned() }
}

/// A reply at sequence number `seq` that calls `read` once for each provider ID.
fn reply(seq: u64, text: &str, provider_ids: &[&str]) -> TranscriptEntry {
    let calls = provider_ids.iter().enumerate().map(|(index, id)| ToolCall {
        id: CallId::from_position(seq, index),
        provider_id: (*id).to_owned(),
        name: "read".to_owned(),
        arguments: ToolArguments::Valid(json!({"path": "a \"b\""}).as_object().unwrap().clone()),
    });
    TranscriptEntry::Reply(Reply {
        id: MessageId::from_seq(seq),
        thought: "hm".to_owned(),
        text: text.to_owned(),
        calls: calls.collect(),
        end: ReplyEnd::Complete,
        usage: None,
        provider_state: None,
        fallback_model: None,
    })
}

fn result(seq: u64, index: usize, parts: Vec<ContentPart>) -> TranscriptEntry {
    let info = ToolCallInfo {
        title: String::new(),
        kind: ToolKind::Read,
        locations: Vec::new(),
        access: ToolAccess::Nothing,
    };
    let outcome = ToolResult {
        status: ToolCallStatus::Completed,
        for_model: parts,
        for_client: Vec::new(),
        plan: None,
    };
    TranscriptEntry::Result { call: CallId::from_position(seq, index), info, result: outcome }
}

fn tools() -> Vec<ToolSpec> {
    let parameters = json!({"type": "object"});
    vec![ToolSpec { name: "read".to_owned(), description: "Reads.".to_owned(), parameters }]
}

#[track_caller]
fn check(entries: Vec<TranscriptEntry>, expected: &Expect) {
    check_transcript(&conversation(&sample_settings(), entries), expected);
}

#[track_caller]
fn check_transcript(transcript: &Transcript, expected: &Expect) {
    let bytes = build_body(&sample_settings(), transcript.for_model().unwrap(), &tools()).unwrap();
    let body: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(crow_testkit::violations(&body), [""; 0]);
    let messages = body["messages"].as_array().unwrap();
    expected.assert_eq(&messages.iter().map(|message| format!("{message}\n")).collect::<String>());
}

#[test]
fn text_calls_and_results() {
    check(
        vec![
            say("hello"),
            reply(1, "let me see", &["x", "y"]),
            result(1, 1, vec![]),
            result(1, 0, vec![ContentPart::Text("one".to_owned()), ContentPart::Text("two".to_owned())]),
            reply(4, "done", &[]),
            say("thanks"),
        ],
        &expect![[r#"
            {"role":"system","content":"be good"}
            {"role":"user","content":"hello"}
            {"role":"assistant","content":"let me see","tool_calls":[{"id":"x","type":"function","function":{"name":"read","arguments":"{\"path\":\"a \\\"b\\\"\"}"}},{"id":"y","type":"function","function":{"name":"read","arguments":"{\"path\":\"a \\\"b\\\"\"}"}}]}
            {"role":"tool","tool_call_id":"x","content":"one\ntwo"}
            {"role":"tool","tool_call_id":"y","content":"(no output)"}
            {"role":"assistant","content":"done"}
            {"role":"user","content":"thanks"}
        "#]],
    );
}

#[test]
fn invalid_tool_names_are_replaced() {
    let mut entries = vec![say("go"), reply(1, "", &["x", "y", "z"])];
    if let Some(TranscriptEntry::Reply(reply)) = entries.last_mut() {
        for (call, name) in reply.calls.iter_mut().zip(["", "read file!", "grüße"]) {
            call.name = name.to_owned();
        }
    }
    entries.extend((0..3).map(|index| result(1, index, vec![])));
    let mut transcript = Transcript::new("");
    entries.into_iter().for_each(|entry| transcript.push(entry).unwrap());
    let bytes = build_body(&sample_settings(), transcript.for_model().unwrap(), &tools()).unwrap();
    let body: Value = serde_json::from_slice(&bytes).unwrap();
    let calls = body["messages"][1]["tool_calls"].as_array().unwrap();
    let names: Vec<_> = calls.iter().filter_map(|call| call["function"]["name"].as_str()).collect();
    assert_eq!(names, ["_", "read_file_", "gr____e"]);
}

#[test]
fn duplicate_call_ids_are_replaced() {
    check(
        vec![
            say("go"),
            reply(1, "", &["x", "x", ""]),
            result(1, 0, vec![]),
            result(1, 1, vec![]),
            result(1, 2, vec![]),
        ],
        &expect![[r#"
            {"role":"system","content":"be good"}
            {"role":"user","content":"go"}
            {"role":"assistant","content":null,"tool_calls":[{"id":"call-1-0","type":"function","function":{"name":"read","arguments":"{\"path\":\"a \\\"b\\\"\"}"}},{"id":"call-1-1","type":"function","function":{"name":"read","arguments":"{\"path\":\"a \\\"b\\\"\"}"}},{"id":"call-1-2","type":"function","function":{"name":"read","arguments":"{\"path\":\"a \\\"b\\\"\"}"}}]}
            {"role":"tool","tool_call_id":"call-1-0","content":"(no output)"}
            {"role":"tool","tool_call_id":"call-1-1","content":"(no output)"}
            {"role":"tool","tool_call_id":"call-1-2","content":"(no output)"}
        "#]],
    );
}

#[test]
fn links_resources_and_images() {
    let link = ContentPart::Link { uri: "file:///a.rs#L1:2".to_owned(), name: "a.rs".to_owned(), mime: None };
    let resource = ContentPart::Resource { uri: "file:///b".to_owned(), text: "bee".to_owned(), mime: None };
    check(
        vec![
            prompt(vec![ContentPart::Text("see".to_owned()), link, resource]),
            reply(1, "", &["x", "y"]),
            result(1, 0, vec![image()]),
            result(1, 1, vec![ContentPart::Text("ok".to_owned())]),
            reply(4, "done", &[]),
            prompt(vec![ContentPart::Text("and".to_owned()), image()]),
        ],
        &expect![[r#"
            {"role":"system","content":"be good"}
            {"role":"user","content":"see\n[a.rs](/a.rs) (lines 1 to 2)\n<resource uri=\"file:///b\">\nbee\n</resource>"}
            {"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"read","arguments":"{\"path\":\"a \\\"b\\\"\"}"}},{"id":"y","type":"function","function":{"name":"read","arguments":"{\"path\":\"a \\\"b\\\"\"}"}}]}
            {"role":"tool","tool_call_id":"x","content":"(the images follow)"}
            {"role":"tool","tool_call_id":"y","content":"ok"}
            {"role":"user","content":[{"type":"text","text":"The image of the result above:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}
            {"role":"assistant","content":"done"}
            {"role":"user","content":[{"type":"text","text":"and"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}
        "#]],
    );
}

#[test]
fn reply_cancelled_while_thinking_is_not_sent() {
    check(
        vec![say("one"), reply(1, "", &[]), say("two")],
        &expect![[r#"
            {"role":"system","content":"be good"}
            {"role":"user","content":"one\ntwo"}
        "#]],
    );
}

#[test]
fn compacted_conversation() {
    let mut transcript = Transcript::new("be good");
    for entry in [
        say("use port 7"),
        reply(1, "fine", &[]),
        prompt(vec![ContentPart::Text("like this".to_owned()), image()]),
        reply(3, "", &["x", "y"]),
        result(3, 0, vec![ContentPart::Text("long".to_owned()), image()]),
        result(3, 1, vec![ContentPart::Text("short".to_owned())]),
    ] {
        transcript.push(entry).unwrap();
    }
    transcript.compact(compaction()).unwrap();
    check_transcript(
        &transcript,
        &expect![[r#"
        {"role":"system","content":"be good"}
        {"role":"user","content":[{"type":"text","text":"This conversation was compacted: what came before the messages below is left out. The tool query_session reads it, query_memory finds words in it.\n\nWhat the person said in it, word for word, oldest first:\n\n<said>\nuse port 7\n</said>\n\n<said>\nlike this\n[an image]\n</said>\n\nWhat happened in it, as you noted it down:\n\n<summary>\nA port was chosen.\n</summary>"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}
        {"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"read","arguments":"{\"path\":\"a \\\"b\\\"\"}"}},{"id":"y","type":"function","function":{"name":"read","arguments":"{\"path\":\"a \\\"b\\\"\"}"}}]}
        {"role":"tool","tool_call_id":"x","content":"(this output was removed to save room; query_session reads it, or run the call again for less)"}
        {"role":"tool","tool_call_id":"y","content":"short"}
    "#]],
    );
}

#[test]
fn settings_become_fields_and_extra_body_wins() {
    let mut transcript = Transcript::new("");
    transcript.push(say("hi")).unwrap();
    let mut settings = sample_settings();
    settings.max_tokens = Some(100);
    settings.temperature = Some(0.5);
    settings.reasoning_effort = Some("high".to_owned());
    settings.extra_body = json!({"temperature": 1, "top_p": 0.9}).as_object().unwrap().clone();
    let bytes = build_body(&settings, transcript.for_model().unwrap(), &tools()).unwrap();
    let expected = concat!(
        r#"{"model":"acme-9","messages":[{"role":"user","content":"hi"}],"#,
        r#""tools":[{"type":"function","function":{"name":"read","description":"Reads.","parameters":{"type":"object"}}}],"#,
        r#""parallel_tool_calls":true,"stream":true,"stream_options":{"include_usage":true},"#,
        r#""max_tokens":100,"reasoning_effort":"high","temperature":1,"top_p":0.9}"#,
    );
    assert_eq!(String::from_utf8(bytes).unwrap(), expected);
}

fn compaction() -> Compaction {
    Compaction {
        at_seq: 6,
        keep_from: 3,
        verbatim_prompts: vec![0, 2],
        summary: Some("A port was chosen.".to_owned()),
        pruned: vec![CallId::from_position(3, 0)],
        tokens_before: 20,
        tokens_after: 10,
        began_ms: 0,
    }
}

/// A conversation of two turns: in each the model calls a tool and then replies.
fn two_turns() -> Vec<TranscriptEntry> {
    let text = |text: &str| vec![ContentPart::Text(text.to_owned())];
    vec![
        say("one"),
        reply(1, "", &["a"]),
        result(1, 0, text("A")),
        reply(3, "first", &[]),
        say("two"),
        reply(5, "", &["b"]),
        result(5, 0, text("B")),
    ]
}

#[test]
fn images_of_results_before_a_prompt_stay() {
    let mut entries = vec![say("one"), reply(1, "", &["a"]), result(1, 0, vec![image()])];
    entries.extend([say("two"), reply(4, "", &["b"]), result(4, 0, vec![image()])]);
    entries.extend([say("three"), reply(7, "done", &[]), say("four")]);
    conversation(&sample_settings(), entries);
}

/// Requests of other conversations, or by other rules, do not get messages that are kept.
#[test]
fn kept_messages_are_those_of_the_conversation() {
    let encoded_messages = &EncodedMessages::default();
    let check = |transcript: &Transcript, settings: &ModelSettings| {
        // The second one keeps messages.
        for _ in 0..2 {
            let (transcript, tools) = (transcript.for_model().unwrap(), &tools());
            let kept = super::build_body(settings, transcript, tools, encoded_messages);
            let bodies = [kept, build_body(settings, transcript, tools)];
            let [kept, new] = bodies.map(|body| String::from_utf8(body.unwrap()).unwrap());
            assert_eq!(kept, new);
        }
    };
    let mut settings = sample_settings();
    let mut transcript = conversation(&settings, two_turns());
    let mut fork = transcript.clone();
    for (transcript, words) in [(&mut transcript, "here"), (&mut fork, "there")] {
        transcript.push(reply(7, words, &[])).unwrap();
        transcript.push(say(words)).unwrap();
    }
    check(&transcript, &settings);
    check(&fork, &settings);
    transcript.compact(Compaction { verbatim_prompts: vec![0], ..compaction() }).unwrap();
    check(&transcript, &settings);
    settings.send_reasoning = Some(true);
    check(&transcript, &settings);
    settings = at("https://openrouter.ai/api/v1", "anthropic/claude-sonnet-4.5");
    check(&transcript, &settings);
}

fn messages(settings: &ModelSettings, entries: Vec<TranscriptEntry>) -> Vec<Value> {
    let transcript = conversation(settings, entries);
    let bytes = build_body(settings, transcript.for_model().unwrap(), &tools()).unwrap();
    let mut body: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(crow_testkit::violations(&body), [""; 0]);
    serde_json::from_value(body["messages"].take()).unwrap()
}

fn at(base_url: &str, model: &str) -> ModelSettings {
    let mut settings = sample_settings();
    base_url.clone_into(&mut settings.provider.base_url);
    model.clone_into(&mut settings.model);
    settings
}

/// Shows which replies include their reasoning.
#[track_caller]
fn check_reasoning(settings: &ModelSettings, expected: &str) {
    let messages = messages(settings, two_turns());
    let replies = messages.iter().filter(|message| message["role"] == "assistant");
    let carried = replies.map(|reply| reply["reasoning_content"].as_str().unwrap_or("-").to_owned());
    assert_eq!(carried.collect::<Vec<_>>().join(" "), expected);
}

#[test]
fn reasoning_is_sent_back_where_required() {
    let mut wanted = sample_settings();
    check_reasoning(&wanted, "- - -");
    wanted.send_reasoning = Some(true);
    check_reasoning(&wanted, "- - hm");
    wanted.model = "org/DeepSeek-V4".to_owned();
    check_reasoning(&wanted, "hm - hm");
    let mut known = at("https://api.deepseek.com/v1", "deepseek-v4-pro");
    check_reasoning(&known, "hm - hm");
    known.send_reasoning = Some(false);
    check_reasoning(&known, "- - -");
    for (host, expected) in [
        ("https://api.moonshot.cn/v1", "hm - hm"),
        ("https://api.moonshot.ai/v1", "hm - hm"),
        ("https://api.xiaomimimo.com/v1", "hm - hm"),
        ("https://api.z.ai/api/paas/v4", "- - hm"),
        // These reject the field.
        ("https://api.groq.com/openai/v1", "- - -"),
        ("https://api.cerebras.ai/v1", "- - -"),
        ("https://api.mistral.ai/v1", "- - -"),
        ("https://notdeepseek.com/v1", "- - -"),
        ("nonsense", "- - -"),
    ] {
        check_reasoning(&at(host, "kimi"), expected);
    }
}

#[test]
fn missing_reasoning_is_blank_where_required() {
    let mut entries = two_turns();
    if let TranscriptEntry::Reply(reply) = &mut entries[1] {
        reply.thought.clear();
    }
    let messages = messages(&at("https://api.deepseek.com", "deepseek-v4-pro"), entries);
    assert_eq!(messages[2]["reasoning_content"], " ");
}

#[test]
fn provider_state_goes_back_to_its_model_only() {
    let mut entries = two_turns();
    if let TranscriptEntry::Reply(reply) = &mut entries[1] {
        let pieces = vec![
            json!({"call": 0, "extra_content": {"google": {"thought_signature": "s"}}}),
            json!({"call": 7, "extra_content": {}}),
            json!({"reasoning_details": [{"type": "reasoning.text", "text": "hm", "signature": "t"}]}),
            json!("of another dialect"),
        ];
        reply.provider_state =
            Some(crow_core::ProviderState { model: sample_settings().qualified_id(), items: pieces });
    }
    let same = messages(&sample_settings(), entries.clone());
    expect![[r#"{"role":"assistant","content":null,"reasoning_details":[{"type":"reasoning.text","text":"hm","signature":"t"}],"tool_calls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"path\":\"a \\\"b\\\"\"}"},"extra_content":{"google":{"thought_signature":"s"}}}]}"#]]
        .assert_eq(&same[2].to_string());
    let other = messages(&at(&sample_settings().provider.base_url, "other"), entries);
    assert_eq!(other, messages(&sample_settings(), two_turns()));
}

/// A conversation that Mistral rejects as it is: an image in a result, a cancelled turn, IDs of other providers.
fn foreign_turns() -> Vec<TranscriptEntry> {
    let text = |text: &str| vec![ContentPart::Text(text.to_owned())];
    vec![
        say("one"),
        reply(1, "", &["call_LWy3uasib", "D681PevKs"]),
        result(1, 0, vec![image()]),
        result(1, 1, text("A")),
        reply(4, "", &["D681PevKs", "000004000", "übe12345"]),
        result(4, 0, text("B")),
        result(4, 1, text("C")),
        result(4, 2, text("cancelled")),
        say("two"),
    ]
}

#[test]
fn mistral_gets_its_roles_and_ids() {
    let settings = at("https://api.mistral.ai/v1", "acme-9");
    let all = messages(&settings, foreign_turns());
    expect![[r#"
        {"role":"system","content":"be good"}
        {"role":"user","content":"one"}
        {"role":"assistant","content":null,"tool_calls":[{"id":"000001000","type":"function","function":{"name":"read","arguments":"{\"path\":\"a \\\"b\\\"\"}"}},{"id":"D681PevKs","type":"function","function":{"name":"read","arguments":"{\"path\":\"a \\\"b\\\"\"}"}}]}
        {"role":"tool","tool_call_id":"000001000","content":"(the images follow)"}
        {"role":"tool","tool_call_id":"D681PevKs","content":"A"}
        {"role":"assistant","content":"OK."}
        {"role":"user","content":[{"type":"text","text":"The image of the result above:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}
        {"role":"assistant","content":null,"tool_calls":[{"id":"000004000","type":"function","function":{"name":"read","arguments":"{\"path\":\"a \\\"b\\\"\"}"}},{"id":"000004001","type":"function","function":{"name":"read","arguments":"{\"path\":\"a \\\"b\\\"\"}"}},{"id":"000004002","type":"function","function":{"name":"read","arguments":"{\"path\":\"a \\\"b\\\"\"}"}}]}
        {"role":"tool","tool_call_id":"000004000","content":"B"}
        {"role":"tool","tool_call_id":"000004001","content":"C"}
        {"role":"tool","tool_call_id":"000004002","content":"cancelled"}
        {"role":"assistant","content":"OK."}
        {"role":"user","content":"two"}
    "#]]
    .assert_eq(&all.iter().map(|message| format!("{message}\n")).collect::<String>());
    for n in [1, 4, 8] {
        let previous = messages(&settings, foreign_turns().into_iter().take(n).collect());
        assert!(all.starts_with(&previous), "the first {n} entries");
    }
}

#[test]
fn mistral_models_are_recognized_behind_other_hosts() {
    let has_mistral_roles = |model: &str| {
        let messages = messages(&at("http://127.0.0.1:8080/v1", model), foreign_turns());
        messages.windows(2).all(|pair| pair[0]["role"] != "tool" || pair[1]["role"] != "user")
    };
    for model in [
        "mistralai/Mistral-Large-Instruct-2411",
        "devstral-small-2:24b",
        "codestral-latest",
        "Ministral-8B",
        "magistral-medium-latest",
        "pixtral-12b",
        "open-mixtral-8x22b",
    ] {
        assert!(has_mistral_roles(model), "{model}");
    }
    assert!(!has_mistral_roles("qwen3"));
}

#[test]
fn invalid_arguments_are_sent_back_as_an_object() {
    let mut entries = two_turns();
    if let TranscriptEntry::Reply(reply) = &mut entries[1] {
        reply.calls[0].arguments = ToolArguments::Unreadable { reason: "line 1: what?".to_owned() };
    }
    let messages = messages(&sample_settings(), entries);
    assert_eq!(messages[2]["tool_calls"][0]["function"]["arguments"], "{}");
}

/// Automatic caches work as long as a request begins with the bytes of the previous one.
#[test]
fn request_begins_with_the_previous_one() {
    for settings in [sample_settings(), at("https://api.deepseek.com/v1", "deepseek-v4-pro")] {
        let bytes = |n: usize| {
            let mut transcript = Transcript::new("be good");
            two_turns().into_iter().take(n).for_each(|entry| transcript.push(entry).unwrap());
            let bytes = build_body(&settings, transcript.for_model().unwrap(), &tools()).unwrap();
            let text = String::from_utf8(bytes).unwrap();
            let (messages, rest) = text.split_once("],\"tools\":").unwrap();
            (messages.to_owned(), rest.to_owned())
        };
        let requests: Vec<_> = [1, 3, 5, 7].into_iter().map(bytes).collect();
        for pair in requests.windows(2) {
            assert!(pair[1].0.starts_with(&pair[0].0), "{} before {}", pair[0].0, pair[1].0);
            assert_eq!(pair[0].1, pair[1].1);
        }
    }
}

#[test]
fn cache_marks_are_sent_where_needed() {
    let marked = |settings: &ModelSettings| {
        let mark = |message: &Value| message.to_string().contains(r#""cache_control":{"type":"ephemeral"}"#);
        messages(settings, two_turns()).iter().map(|message| if mark(message) { 'x' } else { '-' }).collect()
    };
    let openrouter = "https://openrouter.ai/api/v1";
    let seen: String = marked(&at(openrouter, "anthropic/claude-sonnet-4.5"));
    assert_eq!(seen, "x----x-x");
    let seen: String = marked(&at(openrouter, "openai/gpt-5"));
    assert_eq!(seen, "--------");
    let seen: String = marked(&at("https://api.acme.test/v1", "anthropic/claude"));
    assert_eq!(seen, "--------");
    let messages = messages(&at(openrouter, "anthropic/claude-sonnet-4.5"), two_turns());
    expect![[r#"{"role":"tool","tool_call_id":"b","content":[{"type":"text","text":"B","cache_control":{"type":"ephemeral"}}]}"#]]
        .assert_eq(&messages[7].to_string());
}

#[test]
fn thought_level_has_its_own_fields() {
    let mut transcript = Transcript::new("");
    transcript.push(say("hi")).unwrap();
    let mut settings = sample_settings();
    settings.reasoning_effort = Some("high".to_owned());
    let fields = json!({"enable_thinking": true, "model": "acme-9-thinking"});
    settings.thought_levels = [("high".to_owned(), fields.as_object().unwrap().clone())].into();
    let bytes = build_body(&settings, transcript.for_model().unwrap(), &[]).unwrap();
    let expected = concat!(
        r#"{"messages":[{"role":"user","content":"hi"}],"stream":true,"#,
        r#""stream_options":{"include_usage":true},"enable_thinking":true,"model":"acme-9-thinking"}"#,
    );
    assert_eq!(String::from_utf8(bytes).unwrap(), expected);
}

#[test]
fn max_tokens_field_has_two_names() {
    let mut transcript = Transcript::new("");
    transcript.push(say("hi")).unwrap();
    for (base_url, field) in [
        ("https://api.openai.com/v1", "max_completion_tokens"),
        ("https://mine.openai.azure.com/openai/v1", "max_completion_tokens"),
        ("https://openrouter.ai/api/v1", "max_tokens"),
    ] {
        let mut settings = at(base_url, "gpt-5");
        settings.max_tokens = Some(7);
        let bytes = build_body(&settings, transcript.for_model().unwrap(), &[]).unwrap();
        let body: Value = serde_json::from_slice(&bytes).unwrap();
        let limits = ["max_tokens", "max_completion_tokens"].map(|name| body[name].as_u64());
        assert_eq!(limits.iter().flatten().count(), 1, "{base_url}");
        assert_eq!(body[field], 7, "{base_url}");
    }
}
