//! A loaded session shows the client the same updates as the live session.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::path::Path;

use crow_testkit::client::{FakeClient, TestHome};
use crow_testkit::{ModelServer, replay};
use serde_json::{Value, json};

/// The smallest valid PNG.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_crow-cli"))
}

/// Runs prompts with a client of these capabilities; a prompt is text or blocks.
///
/// Then loads the session in another process, continues there, and loads it in a third.
#[track_caller]
fn check(capabilities: &Value, script: &str, prompts: &[Value]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(async {
        let server = ModelServer::start(script);
        let world = TestHome::new(server.base_url());
        world.add_config("permissions: { mode: auto }");
        world.write_file("a.txt", "one\ntwo\n");
        let start = async || FakeClient::start_with(binary(), &world.home(), capabilities.clone()).await;
        let mut client = start().await;
        let session = client.new_session(&world.project()).await;
        for said in prompts {
            let id = match said.as_str() {
                Some(text) => client.prompt(&session, text).await,
                None => client.prompt_with(&session, said.clone()).await,
            };
            // A turn may fail; its updates stay.
            drop(client.response_to(id).await);
        }
        let mut second = start().await;
        second.load_session(&session, &world.project()).await.expect("the session loads");
        replay::check(&session, &client, &second);
        client.kill().await;
        server.replace_answers("text \"Still here.\"");
        let id = second.prompt(&session, "go on").await;
        second.response_to(id).await.expect("the session goes on");
        let mut third = start().await;
        third.load_session(&session, &world.project()).await.expect("the session loads");
        replay::check(&session, &second, &third);
        assert_eq!(server.rejections(), Vec::<String>::new(), "the model refused a request");
    });
}

#[test]
fn text_and_thoughts() {
    check(
        &json!({}),
        r#"
        thought "Let me\n" | thought "think." | text "Well,\n\n" | text "yes." | usage 10 5
        text "And\tthen — ünïcode 🦀 \"quotes\"."
        "#,
        &[json!("hello"), json!("two\nlines\n")],
    );
}

/// A URI with a meaning for Crow has none if a client sends it.
#[test]
fn resources_named_like_those_of_crow() {
    let resource = |uri: &str| json!({ "type": "resource", "resource": { "uri": uri, "text": "the log" } });
    check(
        &json!({}),
        "text \"Read.\"\ntext \"Read again.\"",
        &[
            json!([{ "type": "text", "text": "look" }, resource("crow:speckit/report"), resource("crow:skills")]),
            json!([resource("crow:speckit/plan"), resource("crow:undone"), resource("crow:turn/broke_off")]),
        ],
    );
}

#[test]
fn calls_of_every_kind() {
    check(
        &json!({}),
        r#"
        text "All." | call read {"file_path":"a.txt"} | call glob {"pattern":"*.txt"} | call grep {"pattern":"tw"} | call read {"file_path":"gone"}
        call edit {"file_path":"a.txt","old_string":"two","new_string":"three"} | call write {"file_path":"new/b.txt","content":"new\n"}
        call terminal {"command":"echo out; echo err >&2; exit 3"} | call terminal {"command":"true"}
        call todo {"entries":[{"content":"One","status":"completed"},{"content":"Two","status":"pending"}]}
        text "Done." | usage 100 20
        "#,
        &[json!("do all")],
    );
}

#[test]
fn calls_that_did_not_run() {
    check(
        &json!({}),
        r#"
        call terminal "{\"command\":\"tou" | call nothing {"x":1} | call read {"file":"a.txt"}
        chunk {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"terminal","arguments":"{\"command\":\"true\"}"}}]}}]} | finish "length"
        text "So."
        "#,
        &[json!("break it")],
    );
}

#[test]
fn much_output_and_an_image() {
    // An editor provides text files only; images are read from the disk.
    for capabilities in [json!({}), json!({"fs": {"readTextFile": true, "writeTextFile": true}})] {
        check(
            &capabilities,
            &format!(
                r#"
                call terminal {{"command":"echo {PNG} | base64 -d > a.png; seq 1 30000"}}
                call read {{"file_path":"a.png"}}
                text "Seen."
                "#
            ),
            &[json!("look")],
        );
    }
}

#[test]
fn turns_that_failed() {
    check(
        &json!({}),
        r#"
        status 401 {"error":{"message":"bad key"}}
        text "Begun" | chunk {"error":{"message":"bad key","code":401}}
        text "Well." | finish "length"
        "#,
        &[json!("one"), json!("two"), json!("three")],
    );
}

#[test]
fn prompts_of_all_kinds() {
    check(
        &json!({}),
        "text \"One.\"\ntext \"Two.\"",
        &[
            json!([
                {"type": "text", "text": "See "},
                {"type": "image", "data": PNG, "mimeType": "image/png"},
                {"type": "text", "text": " and"},
            ]),
            json!([
                {"type": "resource", "resource": {"uri": "file:///x/b.rs", "text": "fn b() {}\n", "mimeType": "text/x-rust"}},
                {"type": "resource_link", "uri": "https://example.org/a", "name": "a"},
                {"type": "text", "text": "what are they?"},
            ]),
        ],
    );
}

#[test]
fn client_files_and_terminals() {
    check(
        &json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true}),
        r#"
        call read {"file_path":"a.txt"} | call terminal {"command":"echo out; echo err >&2; exit 3"}
        call edit {"file_path":"a.txt","old_string":"two","new_string":"three"}
        call terminal {"command":"true"}
        text "Done."
        "#,
        &[json!("do all")],
    );
}

#[test]
fn output_shown_by_the_client() {
    check(
        &json!({"_meta": {"terminal_output": true}}),
        r#"
        call terminal {"command":"echo out; echo err >&2; exit 3"} | call terminal {"command":"true"}
        text "Done."
        "#,
        &[json!("run them")],
    );
}

#[test]
fn client_that_gets_every_update() {
    check(
        &json!({"session": {"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}}, "auth": {"terminal": true}}),
        "text \"One.\"\nthought \"Hm.\" | text \"Two.\"",
        &[json!("one"), json!("two")],
    );
}

/// Generates random turns, the same for each seed.
fn random_turns(seed: u64) -> (String, Vec<Value>) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut pick = |n: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % n
    };
    let (mut script, mut prompts) = (String::new(), Vec::new());
    for turn in 0..1 + pick(3) {
        prompts.push(json!(format!("do {turn}")));
        for _ in 0..pick(4) {
            let mut steps = Vec::new();
            if pick(2) == 0 {
                steps.push("thought \"Let me\" | thought \" see.\\n\"".to_owned());
            }
            if pick(2) == 0 {
                steps.push("text \"I \" | text \"look — 🦀.\"".to_owned());
            }
            for n in 0..1 + pick(3) {
                steps.push(match pick(8) {
                    0 => r#"call read {"file_path":"a.txt"}"#.to_owned(),
                    1 => format!(r#"call write {{"file_path":"new{n}.txt","content":"one\ntwo\n"}}"#),
                    2 => {
                        r#"call edit {"file_path":"a.txt","old_string":"one","new_string":"one"}"#.to_owned()
                    }
                    3 => format!(r#"call terminal {{"command":"echo {n}; exit {}"}}"#, pick(3)),
                    4 => r#"call grep {"pattern":"t.o"}"#.to_owned(),
                    5 => r#"call todo {"entries":[{"content":"Go on","status":"in_progress"}]}"#.to_owned(),
                    6 => r#"call glob {"pattern":"*.txt"}"#.to_owned(),
                    _ => "call no_such_tool {}".to_owned(),
                });
            }
            if pick(3) == 0 {
                steps.push("usage 100 7".to_owned());
            }
            script += &format!("{}\n", steps.join(" | "));
        }
        script +=
            ["text \"Done.\"\n", "thought \"Hm.\" | text \"Well.\"\n", "text \"Half\" | finish \"length\"\n"]
                [usize::try_from(pick(3)).unwrap_or_default()];
    }
    (script, prompts)
}

#[test]
fn generated_turns() {
    for seed in 1..=12 {
        let (script, prompts) = random_turns(seed);
        check(&json!({}), &script, &prompts);
    }
}
