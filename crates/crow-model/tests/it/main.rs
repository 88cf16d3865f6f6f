//! Requests to a scripted model over a real socket.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod quirks;
mod recording;

use std::fmt::Write as _;

use crow_core::{
    ContentPart, MessageId, Prompt, Reply, ReplyDelta, ReplyEnd, ToolSpec, Transcript, TranscriptEntry,
};
use crow_model::{
    ApiKey, EncodedMessages, HttpClients, ModelRequest, ModelSettings, ProviderSettings, ReplyListener,
    stream_reply,
};
use crow_testkit::{Answer, ModelServer, Script, Step};
use expect_test::{Expect, expect};
use tokio::runtime::Builder;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

const KEY: &str = "sk-secret-0123456789";

/// More than any test receives.
const HEARD_MAX: usize = 4096;

struct Ears(mpsc::Sender<String>);

impl ReplyListener for Ears {
    fn on_delta(&mut self, delta: ReplyDelta<'_>) {
        let line = match delta {
            ReplyDelta::Thought(text) => format!("thought {text}"),
            ReplyDelta::Text(text) => format!("text {text}"),
        };
        self.0.try_send(line).expect("the test hears all");
    }

    fn on_notice(&mut self, notice: String) {
        self.0.try_send(format!("notice: {notice}")).expect("the test hears all");
    }

    async fn wait_for_capacity(&mut self) {}
}

fn settings(base_url: &str) -> ModelSettings {
    let provider = ProviderSettings {
        name: "acme".to_owned(),
        base_url: base_url.to_owned(),
        api: crow_model::ModelApi::CHAT,
        api_key: Some(ApiKey::new(KEY)),
        key_variable: Some("ACME_API_KEY".to_owned()),
        headers: vec![("x-tenant".to_owned(), "seven".to_owned())],
    };
    ModelSettings {
        name: "big".to_owned(),
        context_window: 100_000,
        ..ModelSettings::new(provider, "acme-9")
    }
}

/// Sends one request with a short prompt.
async fn ask_once(
    http: &HttpClients,
    settings: &ModelSettings,
    ears: mpsc::Sender<String>,
    cancel: &CancellationToken,
) -> Reply {
    let mut transcript = Transcript::new("be good");
    let prompt = Prompt { id: MessageId::from_seq(0), parts: vec![ContentPart::Text("hello".to_owned())] };
    transcript.push(TranscriptEntry::Prompt(prompt)).unwrap();
    let parameters = serde_json::json!({"type": "object"});
    let tools = [ToolSpec { name: "read".to_owned(), description: "Reads.".to_owned(), parameters }];
    let (transcript, encoded_messages) = (transcript.for_model().unwrap(), &EncodedMessages::default());
    let question = ModelRequest { settings, transcript, tools: &tools, seq: 1, encoded_messages };
    stream_reply(http, question, &mut Ears(ears), cancel).await
}

fn show(reply: &Reply) -> String {
    let mut seen = format!("= {:?} {:?}", reply.thought, reply.text);
    for call in &reply.calls {
        _ = write!(seen, " {}:{}{:?}", call.provider_id, call.name, call.arguments.to_object());
    }
    if let Some(usage) = reply.usage {
        _ = write!(seen, " {}+{}", usage.input, usage.output);
    }
    match &reply.end {
        ReplyEnd::Failed(failure) => _ = write!(seen, " {}: {failure}", failure.kind),
        ended @ (ReplyEnd::Complete
        | ReplyEnd::OutputLimit
        | ReplyEnd::SizeLimit
        | ReplyEnd::Refused
        | ReplyEnd::Cancelled) => {
            _ = write!(seen, " {ended:?}");
        }
    }
    seen
}

/// Sends one request against a script; shows the events and the reply.
async fn check(script: impl Into<Script>, expected: Expect) {
    let server = ModelServer::start(script);
    let (ears, mut heard) = mpsc::channel(HEARD_MAX);
    let settings = settings(server.base_url());
    let reply = ask_once(&HttpClients::new().unwrap(), &settings, ears, &CancellationToken::new()).await;
    let mut seen = String::new();
    while let Some(line) = heard.recv().await {
        _ = writeln!(seen, "{line}");
    }
    _ = writeln!(seen, "{}", show(&reply));
    let seen = seen.replace(server.base_url(), "$URL");
    assert!(!seen.contains("secret"), "{seen}");
    expected.assert_eq(&seen);
    assert_eq!(server.rejections(), [""; 0]);
    assert!(server.request_heads().iter().all(|head| head.contains(KEY) && head.contains("x-tenant: seven")));
}

#[tokio::test]
async fn chat_reply_with_everything() {
    let line =
        r#"thought "hm" | text "Grü" | text "ße" | call read {"p": 1} | call read {"p": "ü"} | usage 10 2"#;
    let expected = || {
        expect![[r#"
            thought hm
            text Grü
            text ße
            = "hm" "Grüße" call_0:read{"p": Number(1)} call_1:read{"p": String("ü")} 10+2 Complete
        "#]]
    };
    check(line, expected()).await;
    check(Script::new([Answer::parse(line).split(1)]), expected()).await;
}

#[tokio::test]
async fn messages_api_has_its_own_headers() {
    let line = r#"thought "hm" | text "Grüße" | call read {"p": "ü"} | usage 10 2"#;
    let server = ModelServer::start(Script::new([Answer::parse(line).split(1), Answer::parse(line)]));
    let mut settings = settings(server.base_url());
    settings.provider.api = crow_model::ModelApi::parse("messages").unwrap();
    let (ears, _heard) = mpsc::channel(HEARD_MAX);
    let (http, never) = (HttpClients::new().unwrap(), CancellationToken::new());
    let reply = ask_once(&http, &settings, ears.clone(), &never).await;
    let expected = r#"= "hm" "Grüße" toolu_0_0:read{"p": String("ü")} 10+2 Complete"#;
    assert_eq!(show(&reply), expected);
    let own = [("anthropic-version", "2099-01-01"), ("authorization", "Bearer other")];
    settings.provider.headers = own.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    settings.provider.api_key = None;
    ask_once(&http, &settings, ears, &never).await;
    let wanted = ["x-api-key", "anthropic-version", "authorization", "content-type"];
    let is_wanted = |line: &&str| wanted.iter().any(|name| line.starts_with(name));
    let headers = |head: &String| {
        let mut lines: Vec<&str> = head.lines().filter(is_wanted).collect();
        lines.sort_unstable();
        lines.join("\n")
    };
    let heads: Vec<String> = server.request_heads().iter().map(headers).collect();
    expect![[r#"
        anthropic-version: 2023-06-01
        content-type: application/json
        x-api-key: sk-secret-0123456789

        anthropic-version: 2099-01-01
        authorization: Bearer other
        content-type: application/json
    "#]]
    .assert_eq(&(heads.join("\n\n") + "\n"));
    assert_eq!(server.rejections(), [""; 0]);
}

#[tokio::test]
async fn responses_reply_with_everything() {
    let line = concat!(
        r#"thought "hm" | text "Grü" | text "ße" | call read {"p": 1} | call read {"p": "ü"} | "#,
        r#"chunk {"type": "response.completed", "response": {"status": "completed", "usage": "#,
        r#"{"input_tokens": 10, "input_tokens_details": {"cached_tokens": 8}, "output_tokens": 2}}}"#,
    );
    for script in [Script::new([Answer::parse(line)]), Script::new([Answer::parse(line).split(1)])] {
        let server = ModelServer::start(script);
        let (ears, _heard) = mpsc::channel(HEARD_MAX);
        let mut settings = settings(server.base_url());
        settings.provider.api = crow_model::ModelApi::parse("responses").unwrap();
        let reply = ask_once(&HttpClients::new().unwrap(), &settings, ears, &CancellationToken::new()).await;
        let seen =
            r#"= "hm" "Grüße" call_0_0:read{"p": Number(1)} call_0_1:read{"p": String("ü")} 10+2 Complete"#;
        assert_eq!(show(&reply), seen);
        assert_eq!(reply.usage.unwrap().cached, 8);
        let sealed =
            reply.provider_state_for("acme/acme-9").iter().map(|piece| piece["id"].as_str().unwrap());
        assert_eq!(sealed.collect::<Vec<_>>(), ["rs_0_0", "msg_0_1", "fc_0_2", "fc_0_3"]);
        assert_eq!(server.rejections(), [""; 0]);
        assert!(server.request_heads()[0].starts_with("POST /v1/responses HTTP/1.1"));
    }
}

#[tokio::test]
async fn busy_provider_is_retried() {
    check(
        r#"
        header "retry-after-ms" "1" | status 429 {"error": "busy"}
        header "retry-after" "0" | status 503 {"error": "busy"}
        text "Hello"
        "#,
        expect![[r#"
            notice: the provider is busy (429); trying again in 1 s (1 of 3)
            notice: the provider is failing (503); trying again now (2 of 3)
            text Hello
            = "" "Hello" Complete
        "#]],
    )
    .await;
}

#[tokio::test]
async fn retries_are_bounded() {
    let busy = r#"header "retry-after" "0" | status 503 {"error": "no sk-secret-0123456789"}"#;
    check(
        [busy; 4].join("\n").as_str(),
        expect![[r#"
            notice: the provider is failing (503); trying again now (1 of 3)
            notice: the provider is failing (503); trying again now (2 of 3)
            notice: the provider is failing (503); trying again now (3 of 3)
            = "" "" provider_overloaded: `acme` is overloaded or failing for `acme-9` (503): no …; try again later
        "#]],
    )
    .await;
    let broken = r#"header "retry-after" "0" | status 500 {"error": "boom"}"#;
    check(
        [broken; 4].join("\n").as_str(),
        expect![[r#"
            notice: the provider is failing (500); trying again now (1 of 3)
            notice: the provider is failing (500); trying again now (2 of 3)
            notice: the provider is failing (500); trying again now (3 of 3)
            = "" "" provider_rejected: `acme` fails for this request for `acme-9` every time (500): boom; use another model
        "#]],
    )
    .await;
}

#[tokio::test]
async fn transient_failure_is_retried_although_identical() {
    let broken = r#"header "retry-after" "0" | status 500 {"error": "boom"}"#;
    check(
        [broken, broken, broken, r#"text "Hello""#].join("\n").as_str(),
        expect![[r#"
            notice: the provider is failing (500); trying again now (1 of 3)
            notice: the provider is failing (500); trying again now (2 of 3)
            notice: the provider is failing (500); trying again now (3 of 3)
            text Hello
            = "" "Hello" Complete
        "#]],
    )
    .await;
}

#[tokio::test]
async fn endless_reply_is_cut_off_with_a_notice() {
    let piece = "x".repeat(1024 * 1024);
    let pieces = (0..18).map(|_| Step::Text(piece.clone()));
    let server = ModelServer::start(Script::new([Answer::new(pieces)]));
    let (ears, mut heard) = mpsc::channel(HEARD_MAX);
    let reply =
        ask_once(&HttpClients::new().unwrap(), &settings(server.base_url()), ears, &CancellationToken::new())
            .await;
    assert_eq!((reply.text.len() / piece.len(), &reply.end), (17, &ReplyEnd::SizeLimit));
    let mut last = String::new();
    while let Some(line) = heard.recv().await {
        last = line;
    }
    assert_eq!(last, "notice: the reply of `acme` for `acme-9` was cut at 16 MiB; no reply may be larger");
}

#[tokio::test]
async fn broken_stream_is_retried_only_before_output() {
    check(
        "cut\ntext \"Hello\"",
        expect![[r#"
            notice: the response broke off; trying again in 1 s (1 of 3)
            text Hello
            = "" "Hello" Complete
        "#]],
    )
    .await;
    check(
        r#"text "half" | call read {"p": 1} | cut"#,
        expect![[r#"
            text half
            = "" "half" connection: the connection to `acme` at $URL broke off: unexpected EOF during chunk size line
        "#]],
    )
    .await;
}

#[tokio::test]
async fn possible_text_call_is_withheld() {
    // Nothing of the first attempt was shown.
    check(
        r#"
        text "{\"name\": \"re" | cut
        text "{\"name\": \"read\"," | text " \"arguments\": {\"p\": 1}}" | usage 10 2
        "#,
        expect![[r#"
            notice: the response broke off; trying again in 1 s (1 of 3)
            notice: `big` wrote its call of `read` as text; it is run as a tool call (`tool_calls: native` disables that)
            = "" "" call-1-0:read{"p": Number(1)} 10+2 Complete
        "#]],
    )
    .await;
    check(
        r#"text "{\"name\": \"re" | text "d\", or so.""#,
        expect![[r#"
            text {"name": "red", or so.
            = "" "{\"name\": \"red\", or so." Complete
        "#]],
    )
    .await;
}

#[tokio::test]
async fn text_call_model_gets_tools_as_text() {
    let server =
        ModelServer::start(r#"text "<tool_call>{\"name\": \"read\", \"arguments\": {}}</tool_call>""#);
    let (ears, mut heard) = mpsc::channel(HEARD_MAX);
    let settings =
        ModelSettings { tool_calls: crow_model::ToolCallMode::Text, ..settings(server.base_url()) };
    let reply = ask_once(&HttpClients::new().unwrap(), &settings, ears, &CancellationToken::new()).await;
    assert_eq!(show(&reply), r#"= "" "" call-1-0:read{} Complete"#);
    assert_eq!(heard.recv().await, None);
    assert_eq!(server.rejections(), [""; 0]);
    let request = &server.requests()[0];
    assert_eq!(request.get("tools"), None);
    let system = request["messages"][0]["content"].as_str().unwrap();
    assert!(system.contains("## read\n\nReads.\n\nIts arguments: {\"type\":\"object\"}"), "{system}");
}

#[tokio::test]
async fn stream_error_ends_the_reply() {
    check(
        r#"text "half" | chunk {"error": {"message": "out of luck", "code": 502}} | hold"#,
        expect![[r#"
            text half
            = "" "half" provider_overloaded: `acme` is overloaded or failing for `acme-9` (502): out of luck; try again later
        "#]],
    )
    .await;
}

#[tokio::test]
async fn rejected_key_is_not_retried() {
    check(
        r#"status 401 {"error": {"message": "bad key sk-secret-0123456789"}}"#,
        expect![[r#"
            = "" "" provider_auth: `acme` rejected the key in ACME_API_KEY (401): bad key …; check that it is valid and may use `acme-9`
        "#]],
    )
    .await;
}

#[tokio::test]
async fn response_without_streaming_is_decoded() {
    check(
        r#"status 200 {"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}"#,
        expect![[r#"
            text Hello
            = "" "Hello" 3+1 Complete
        "#]],
    )
    .await;
}

#[tokio::test]
async fn output_limit_and_filter_are_reported() {
    check(
        "text \"a\" | finish length",
        expect![[r#"
        text a
        = "" "a" OutputLimit
    "#]],
    )
    .await;
    check(
        "text \"a\" | finish content_filter",
        expect![[r#"
        text a
        = "" "a" Refused
    "#]],
    )
    .await;
}

#[tokio::test]
async fn cancel_closes_the_connection_and_keeps_the_text() {
    let server = ModelServer::start("text \"half\" | hold");
    let (ears, mut heard) = mpsc::channel(HEARD_MAX);
    let cancel = CancellationToken::new();
    let (http, settings) = (HttpClients::new().unwrap(), settings(server.base_url()));
    let asking = ask_once(&http, &settings, ears, &cancel);
    let cutting = async {
        assert_eq!(heard.recv().await.unwrap(), "text half");
        cancel.cancel();
    };
    let (reply, ()) = tokio::join!(asking, cutting);
    assert_eq!(show(&reply), r#"= "" "half" Cancelled"#);
    // On another thread, while no task of this one runs: the connection was closed before the reply was returned.
    std::thread::scope(|scope| {
        let waiting =
            || Builder::new_current_thread().build().unwrap().block_on(server.wait_for_disconnect(0));
        scope.spawn(waiting).join().unwrap();
    });
}

#[tokio::test]
async fn cancel_ends_the_wait_for_a_response() {
    let server = ModelServer::start("hold");
    let (ears, _heard) = mpsc::channel(HEARD_MAX);
    let cancel = CancellationToken::new();
    let (http, settings) = (HttpClients::new().unwrap(), settings(server.base_url()));
    let asking = ask_once(&http, &settings, ears, &cancel);
    let cutting = async {
        server.wait_for_requests(1).await;
        cancel.cancel();
    };
    let (reply, ()) = tokio::join!(asking, cutting);
    assert_eq!(show(&reply), r#"= "" "" Cancelled"#);
    server.wait_for_disconnect(0).await;
}

#[tokio::test]
async fn cancel_ends_a_retry_delay() {
    let server = ModelServer::start(r#"header "retry-after" "100" | status 429 {}"#);
    let (ears, mut heard) = mpsc::channel(HEARD_MAX);
    let cancel = CancellationToken::new();
    let (http, settings) = (HttpClients::new().unwrap(), settings(server.base_url()));
    let asking = ask_once(&http, &settings, ears, &cancel);
    let cutting = async {
        assert_eq!(
            heard.recv().await.unwrap(),
            "notice: the provider is busy (429); trying again in 100 s (1 of 3)"
        );
        cancel.cancel();
    };
    let (reply, ()) = tokio::join!(asking, cutting);
    assert_eq!(show(&reply), r#"= "" "" Cancelled"#);
}

#[tokio::test]
async fn connection_is_reused() {
    let server = ModelServer::start("text \"a\"\ntext \"b\"\nstatus 400 {}\ntext \"c\"");
    let (http, settings) = (HttpClients::new().unwrap(), settings(server.base_url()));
    for _ in 0..4 {
        let (ears, _heard) = mpsc::channel(HEARD_MAX);
        ask_once(&http, &settings, ears, &CancellationToken::new()).await;
        // The end of the body is read in the background; a real next request comes after a tool has run.
        tokio::task::yield_now().await;
    }
    assert_eq!(server.requests().len(), 4);
    assert!(server.n_connections() <= 2, "{} connections", server.n_connections());
}

#[tokio::test]
async fn unreachable_address() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let mut settings = settings(&base_url);
    settings.retries_max = 0;
    let (ears, _heard) = mpsc::channel(HEARD_MAX);
    let reply = ask_once(&HttpClients::new().unwrap(), &settings, ears, &CancellationToken::new()).await;
    let expected = "= \"\" \"\" connection: `acme` cannot be reached at $URL: connection refused; \
                    is it running, and is `base_url` right?";
    assert_eq!(show(&reply).replace(&base_url, "$URL"), expected);
}

#[tokio::test]
async fn invalid_settings_make_no_request() {
    let (ears, _heard) = mpsc::channel(HEARD_MAX);
    let reply =
        ask_once(&HttpClients::new().unwrap(), &settings("localhost:80/v1"), ears, &CancellationToken::new())
            .await;
    let expected = "= \"\" \"\" config: the `base_url` of provider `acme` is not a URL: \
                    it begins with neither http:// nor https://";
    assert_eq!(show(&reply), expected);
}
