//! Servers that are slow or break off, over a real socket. `docs/dev/model-quirks.md` lists these tests.

use std::fmt::Write as _;
use std::time::Duration;

use crow_model::{HttpClients, ModelApi};
use crow_testkit::{Answer, Script, Step};
use expect_test::{Expect, expect};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, interval, sleep_until};
use tokio_util::sync::CancellationToken;

use super::{HEARD_MAX, ask_once, check, settings, show};

/// The action of a server after it has read the request.
enum Act {
    Send(String),
    Wait(Duration),
}

/// Sends a request to a server with these actions, under a clock that advances as soon as everything waits.
async fn check_acts(acts: Vec<Act>, expected: Expect) {
    check_api_acts(ModelApi::CHAT, acts, expected).await;
}

async fn check_api_acts(api: ModelApi, acts: Vec<Act>, expected: Expect) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut settings = settings(&format!("http://{}/v1", listener.local_addr().unwrap()));
    settings.retries_max = 0;
    settings.provider.api = api;
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        act(&mut stream, acts).await;
        std::future::pending::<()>().await;
    };
    // The clock does not check sockets before it advances, so it advances in small steps.
    let tick = async {
        let mut steps = interval(Duration::from_secs(1));
        loop {
            steps.tick().await;
        }
    };
    let (ears, mut heard) = mpsc::channel(HEARD_MAX);
    let (http, cancel) = (HttpClients::new().unwrap(), CancellationToken::new());
    let reply = tokio::select! {
        reply = ask_once(&http, &settings, ears, &cancel) => reply,
        () = serve => unreachable!("the server stays"),
        () = tick => unreachable!("the clock stays"),
    };
    let mut seen = String::new();
    while let Some(line) = heard.recv().await {
        _ = writeln!(seen, "{line}");
    }
    _ = writeln!(seen, "{}", show(&reply));
    expected.assert_eq(&seen);
}

async fn act(stream: &mut TcpStream, acts: Vec<Act>) {
    let mut request = Vec::new();
    // The body is a JSON object and ends with it.
    while !request.ends_with(b"}}") && !request.ends_with(b"]}") {
        assert_ne!(stream.read_buf(&mut request).await.unwrap(), 0, "the request ended early");
    }
    for act in acts {
        match act {
            Act::Send(text) => stream.write_all(text.as_bytes()).await.unwrap(),
            Act::Wait(time) => sleep_until(Instant::now() + time).await,
        }
    }
}

fn send(text: &str) -> Act {
    Act::Send(text.to_owned())
}

fn wait(seconds: u64) -> Act {
    Act::Wait(Duration::from_secs(seconds))
}

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
const WORDS: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

#[tokio::test(start_paused = true)]
async fn comments_for_minutes_are_a_sign_of_life() {
    let comments = (0..15).flat_map(|_| [send(":\n\n"), wait(120)]);
    let acts = [send(HEAD)].into_iter().chain(comments).chain([send(WORDS)]);
    check_acts(
        acts.collect(),
        expect![[r#"
            text Hello
            = "" "Hello" Complete
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn server_with_one_slot_may_be_busy() {
    check_acts(
        vec![wait(700), send(HEAD), wait(700), send(WORDS)],
        expect![[r#"
            notice: `acme` has not started to answer after 300 s; it may be busy with another request
            notice: `acme` has not started to answer after 600 s; it may be busy with another request
            text Hello
            = "" "Hello" Complete
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn queue_wait_is_bounded() {
    check_acts(
        vec![wait(4000)],
        expect![[r#"
            notice: `acme` has not started to answer after 300 s; it may be busy with another request
            notice: `acme` has not started to answer after 600 s; it may be busy with another request
            notice: `acme` has not started to answer after 900 s; it may be busy with another request
            notice: `acme` has not started to answer after 1200 s; it may be busy with another request
            notice: `acme` has not started to answer after 1500 s; it may be busy with another request
            = "" "" connection: `acme` sent nothing for 1800 s; try again
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn silent_stream_times_out() {
    let words = "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n";
    check_acts(
        vec![send(HEAD), send(words), wait(4000)],
        expect![[r#"
        text Hel
        = "" "Hel" connection: `acme` sent nothing for 300 s; try again
    "#]],
    )
    .await;
}

const LAST_CALL: &str = concat!(
    r#"data: {"choices":[{"delta":{"tool_calls":[{"id":"x","function":{"name":"read","arguments":"{}"}}]}}]}"#,
    "\n\n",
    r#"data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
    "\n\n",
);

#[tokio::test(start_paused = true)]
async fn complete_reply_ends_on_an_open_connection() {
    let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":2}}\n\n";
    let comments = || (0..1000).flat_map(|_| [send(":\n\n"), wait(4)]);
    let silence = || [wait(4000)].into_iter();
    let expected = || {
        expect![[r#"
        = "" "" x:read{} 10+2 Complete
    "#]]
    };
    let acts = [send(HEAD), send(LAST_CALL), wait(8), send(usage)];
    let started_at = Instant::now();
    check_acts(acts.into_iter().chain(silence()).collect(), expected()).await;
    let acts = [send(HEAD), send(LAST_CALL), wait(8), send(usage)];
    check_acts(acts.into_iter().chain(comments()).collect(), expected()).await;
    let elapsed = started_at.elapsed();
    assert!(elapsed < Duration::from_secs(60), "{elapsed:?}");
}

#[tokio::test(start_paused = true)]
async fn messages_reply_ends_on_an_open_connection() {
    let events = concat!(
        r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hello"}}"#,
        "\n\n",
        r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}"#,
        "\n\n",
    );
    check_api_acts(
        ModelApi::parse("messages").unwrap(),
        vec![send(HEAD), send(events), wait(4000)],
        expect![[r#"
            text Hello
            = "" "Hello" 0+2 Complete
        "#]],
    )
    .await;
}

#[tokio::test]
async fn unreadable_history_fails_finally() {
    let broken = r#"header "retry-after" "0" | status 500 {"error":{"code":500,"message":"Failed to parse tool call arguments as JSON: unexpected end of input","type":"server_error"}}"#;
    check([broken; 4].join("\n").as_str(), expect![[r#"
        notice: the provider is failing (500); trying again now (1 of 3)
        notice: the provider is failing (500); trying again now (2 of 3)
        notice: the provider is failing (500); trying again now (3 of 3)
        = "" "" provider_rejected: `acme` fails for this request for `acme-9` every time (500): Failed to parse tool call arguments as JSON: unexpected end of input; use another model
    "#]]).await;
}

#[tokio::test]
async fn stream_error_is_retried() {
    let broken = Answer::new([Step::Raw(
        b"data: {\"error\":{\"code\":500,\"message\":\"boom\",\"type\":\"server_error\"}}\n\n".to_vec(),
    )]);
    check(Script::new([broken.clone(), broken.clone(), broken.clone(), broken]), expect![[r#"
        notice: the provider is failing (500); trying again in 1 s (1 of 3)
        notice: the provider is failing (500); trying again in 1 s (2 of 3)
        notice: the provider is failing (500); trying again in 2 s (3 of 3)
        = "" "" provider_rejected: `acme` fails for this request for `acme-9` every time (500): boom; use another model
    "#]]).await;
}

#[tokio::test]
async fn context_overflow_gives_its_numbers() {
    check(
        r#"status 400 {"error":{"code":400,"message":"request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":4390,"n_ctx":4096}}"#,
        expect![[r#"
            = "" "" context_overflow: the conversation (4390 tokens) is longer than the window of `acme-9` at `acme` (4096 tokens); make it shorter with /compact or send a shorter prompt
        "#]],
    )
    .await;
}

#[tokio::test]
async fn malformed_call_is_retried() {
    check(
        r#"
        status 400 {"error":{"message":"Failed to call a function. Please adjust your prompt.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=read>"}}
        call read {"p": 1}
        "#,
        expect![[r#"
            notice: the response broke off; trying again in 1 s (1 of 3)
            = "" "" call_0:read{"p": Number(1)} Complete
        "#]],
    )
    .await;
}

#[tokio::test]
async fn connection_lost_inside_a_call_runs_nothing() {
    check(r#"thought "hm" | call read {"p": 1} | cut"#, expect![[r#"
        thought hm
        = "hm" "" connection: the connection to `acme` at $URL broke off: unexpected EOF during chunk size line
    "#]]).await;
}
