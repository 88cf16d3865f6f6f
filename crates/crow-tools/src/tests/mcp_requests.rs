//! Requests of a server to the user and the model of the session.

use std::sync::{Mutex, PoisonError};

use crow_core::{
    CallId, SamplingEnd, SamplingReply, SamplingRequest, ServerElicitation, ServerElicitationOutcome,
    ToolArguments, ToolCall,
};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::mcp::{Session, stdio};
use crate::{McpClientFeatures, McpSessionPort, ServerRequestFuture, ToolCx};

const FEATURES: McpClientFeatures = McpClientFeatures { elicitation: true, sampling: true };

/// A user and a model that answer at once, or never.
struct FakeSession {
    outcome: Option<ServerElicitationOutcome>,
    reply: Result<SamplingReply, String>,
    log: Mutex<String>,
    asked: Notify,
}

impl FakeSession {
    fn new(outcome: Option<ServerElicitationOutcome>) -> Self {
        let reply = Ok(SamplingReply { model: "m-1".into(), text: "hi".into(), end: SamplingEnd::TokensMax });
        Self { outcome, reply, log: Mutex::default(), asked: Notify::new() }
    }

    fn note(&self, request: &str) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        *log += &format!("{request}\n");
        self.asked.notify_one();
    }
}

impl McpSessionPort for FakeSession {
    fn elicit(&self, request: ServerElicitation) -> ServerRequestFuture<'_, ServerElicitationOutcome> {
        self.note(&match &request {
            ServerElicitation::Form(form) => {
                let fields = form.fields.iter().map(|field| format!("\n  {field:?}")).collect::<String>();
                let message = match form.message.lines().count() {
                    1 => form.message.clone(),
                    n_lines => format!("{n_lines} lines, {} characters", form.message.chars().count()),
                };
                format!("asked {}: {message}{fields}", form.server)
            }
            ServerElicitation::Address(address) => format!("asked {address:?}"),
        });
        match self.outcome.clone() {
            Some(outcome) => Box::pin(std::future::ready(outcome)),
            None => Box::pin(std::future::pending()),
        }
    }

    fn sample(&self, request: SamplingRequest) -> ServerRequestFuture<'_, Result<SamplingReply, String>> {
        self.note(&format!("asked the model: {request:?}"));
        Box::pin(std::future::ready(self.reply.clone()))
    }
}

async fn call(session: &Session, port: &FakeSession, arguments: Value) -> String {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    let call = ToolCall {
        id: CallId::from_position(1, 0),
        provider_id: "1".into(),
        name: "ask".into(),
        arguments: ToolArguments::Valid(arguments),
    };
    let info = session.machine.tools.call_info(&call, &session.machine.workspace);
    let cx = ToolCx { access: &info.access, mcp_session: Some(port), ..session.machine.cx(&|_| ()) };
    let result = session.machine.tools.run_call(&call, cx).await;
    super::show(&result)
}

/// Has a server send requests, and shows what the session got and what the server got back.
async fn check(port: &FakeSession, requests: &[(&str, Value)], expected: Expect) {
    let session = Session::settle(Session::start_with(vec![stdio("box", &["asking"])], FEATURES)).await;
    let mut log = String::new();
    for (method, params) in requests {
        let result = call(&session, port, json!({"method": method, "params": params})).await;
        log += &std::mem::take(&mut *port.log.lock().unwrap_or_else(PoisonError::into_inner));
        log += &result;
    }
    expected.assert_eq(&log);
}

fn accepted(values: &Value) -> FakeSession {
    let values = values.as_object().cloned().unwrap_or_default();
    FakeSession::new(Some(ServerElicitationOutcome::Accepted(values)))
}

fn form(properties: &Value) -> (&'static str, Value) {
    let schema = json!({"type": "object", "properties": properties, "required": ["first"]});
    ("elicitation/create", json!({"message": "Well?", "requestedSchema": schema}))
}

fn address(url: &str) -> (&'static str, Value) {
    let params = json!({"mode": "url", "message": "Log in.", "elicitationId": "1", "url": url});
    ("elicitation/create", params)
}

fn sampling(params: Value) -> (&'static str, Value) {
    ("sampling/createMessage", params)
}

#[tokio::test]
async fn mcp_form_of_a_server_reaches_the_user() {
    let fields = json!({
        "first": {"type": "string", "title": "Name", "description": "As on the door.", "maxLength": 9},
        "mail": {"type": "string", "format": "email", "default": "a@b"},
        "age": {"type": "integer", "minimum": 0, "maximum": 150, "default": 7},
        "size": {"type": "number"},
        "agreed": {"type": "boolean", "default": true},
        "nest": {"type": "string", "enum": ["oak", "elm"], "enumNames": ["Oak", "Elm"], "default": "elm"},
        "tree": {"type": "string", "oneOf": [{"const": "o", "title": "Oak"}, {"const": "e", "title": "Elm"}]},
        "trees": {"type": "array", "items": {"type": "string", "enum": ["oak", "elm"]}, "minItems": 1},
    });
    check(&accepted(&json!({"first": "Ada", "age": 7})), &[form(&fields)], expect![[r#"
        asked box: Well?
          ServerFormField { name: "first", title: "Name", description: "As on the door.", is_required: true, kind: Text { chars_min: 0, chars_max: 9, format: None }, default: None }
          ServerFormField { name: "mail", title: "mail", description: "", is_required: false, kind: Text { chars_min: 0, chars_max: 2000, format: Some(Email) }, default: Some("a@b") }
          ServerFormField { name: "age", title: "age", description: "", is_required: false, kind: Number { is_integer: true, minimum: Some(0.0), maximum: Some(150.0) }, default: Some("7") }
          ServerFormField { name: "size", title: "size", description: "", is_required: false, kind: Number { is_integer: false, minimum: None, maximum: None }, default: None }
          ServerFormField { name: "agreed", title: "agreed", description: "", is_required: false, kind: Boolean, default: Some("Yes") }
          ServerFormField { name: "nest", title: "nest", description: "", is_required: false, kind: Choice([ServerFieldChoice { value: "oak", label: "Oak" }, ServerFieldChoice { value: "elm", label: "Elm" }]), default: Some("Elm") }
          ServerFormField { name: "tree", title: "tree", description: "", is_required: false, kind: Choice([ServerFieldChoice { value: "o", label: "Oak" }, ServerFieldChoice { value: "e", label: "Elm" }]), default: None }
          ServerFormField { name: "trees", title: "trees", description: "", is_required: false, kind: Choices { choices: [ServerFieldChoice { value: "oak", label: "oak" }, ServerFieldChoice { value: "elm", label: "elm" }], n_min: 1, n_max: 2 }, default: None }
        Completed: {"action":"accept","content":{"first":"Ada","age":7}}
    "#]]).await;
}

#[tokio::test]
async fn mcp_outcome_of_a_form_reaches_the_server() {
    for outcome in [
        ServerElicitationOutcome::Declined,
        ServerElicitationOutcome::Cancelled,
        ServerElicitationOutcome::Unavailable { reason: "there is no terminal to ask on".into() },
    ] {
        let expected = match outcome {
            ServerElicitationOutcome::Declined => expect![[r#"
                asked box: Well?
                Completed: {"action":"decline"}
            "#]],
            ServerElicitationOutcome::Cancelled => expect![[r#"
                asked box: Well?
                Completed: {"action":"cancel"}
            "#]],
            ServerElicitationOutcome::Accepted(_) | ServerElicitationOutcome::Unavailable { .. } => {
                expect![[r#"
                    asked box: Well?
                    Completed: {"code":-1,"message":"declined: there is no terminal to ask on"}
                "#]]
            }
        };
        check(&FakeSession::new(Some(outcome)), &[form(&json!({}))], expected).await;
    }
}

#[tokio::test]
async fn mcp_hostile_forms_are_limited_and_refused() {
    let port = accepted(&json!({}));
    let many = |n: usize| (0..n).map(|number| (format!("f{number}"), json!({"type": "string"}))).collect();
    let choices = |n: usize| json!({"first": {"type": "string", "enum": (0..n).map(|n| n.to_string()).collect::<Vec<_>>()}});
    let odd = json!({"first": {"type": "string", "title": "\u{1b}[8mhidden\u{202e}\nline", "description": "a\u{7}b\n\n\nc"}});
    let requests = [
        form(&odd),
        form(&Value::Object(many(17))),
        form(&choices(65)),
        form(&json!({"first": {"type": "string", "enum": ["Yes", "yes"]}})),
        form(&json!({"first": {"type": "string", "minLength": 5000}})),
        form(&json!({"first": {"type": "object", "properties": {}}})),
        ("elicitation/create", json!({"message": 1})),
        (
            "elicitation/create",
            json!({"message": "a line\n\n".repeat(1000), "requestedSchema": {"type": "object", "properties": {}}}),
        ),
    ];
    check(&port, &requests, expect![[r#"
        asked box: Well?
          ServerFormField { name: "first", title: " [8mhidden\\u{202e}…", description: "a�b\nc", is_required: true, kind: Text { chars_min: 0, chars_max: 2000, format: None }, default: None }
        Completed: {"action":"accept","content":{}}
        Completed: {"code":-32602,"message":"declined: its form has more than 16 fields"}
        Completed: {"code":-32602,"message":"declined: the field \"first\" of its form has no choices, or more than 64"}
        Completed: {"code":-32602,"message":"declined: the field \"first\" of its form has choices that look the same"}
        Completed: {"code":-32602,"message":"declined: the field \"first\" of its form requires an answer that is too long"}
        Completed: {"code":-32602,"message":"declined: the request is not valid"}
        Completed: {"code":-32602,"message":"declined: the request is not valid"}
        asked box: 30 lines, 209 characters
        Completed: {"action":"accept","content":{}}
    "#]]).await;
}

#[tokio::test]
async fn mcp_address_of_a_server_is_checked() {
    let requests = [
        address("https://example.org/log-in?id=1"),
        address("https://bücher.example/\u{202e}x"),
        address("http://127.0.0.1:1/"),
        address("file:///etc/passwd"),
        address("javascript:alert(1)"),
        address("https://example.org@evil.example/"),
        address("no address"),
        address(&format!("https://example.org/{}", "x".repeat(3000))),
    ];
    check(&accepted(&json!({})), &requests, expect![[r#"
        asked ServerAddress { server: "box", message: "Log in.", url: "https://example.org/log-in?id=1", host: "example.org" }
        Completed: {"action":"accept"}
        asked ServerAddress { server: "box", message: "Log in.", url: "https://xn--bcher-kva.example/%E2%80%AEx", host: "xn--bcher-kva.example" }
        Completed: {"action":"accept"}
        asked ServerAddress { server: "box", message: "Log in.", url: "http://127.0.0.1:1/", host: "127.0.0.1" }
        Completed: {"action":"accept"}
        Completed: {"code":-32602,"message":"declined: its address begins with neither http:// nor https://"}
        Completed: {"code":-32602,"message":"declined: its address begins with neither http:// nor https://"}
        Completed: {"code":-32602,"message":"declined: its address contains a user name"}
        Completed: {"code":-32602,"message":"declined: its address is invalid: relative URL without a base"}
        Completed: {"code":-32602,"message":"declined: its address is longer than 2048 bytes"}
    "#]]).await;
}

#[tokio::test]
async fn mcp_request_to_the_model_is_answered() {
    let user = |text: &str| json!({"role": "user", "content": {"type": "text", "text": text}});
    let image =
        json!({"role": "user", "content": {"type": "image", "mimeType": "image/png", "data": "AAAA"}});
    let assistant = json!({"role": "assistant", "content": {"type": "text", "text": "one"}});
    let tool = json!({"name": "t", "inputSchema": {"type": "object"}});
    let requests = [
        sampling(json!({"messages": [user("one"), assistant, user("two")], "maxTokens": 1_000_000,
            "systemPrompt": "Be brief.", "temperature": 0.5, "stopSequences": ["END"],
            "modelPreferences": {"hints": [{"name": "other"}]}, "includeContext": "allServers"})),
        sampling(json!({"messages": [], "maxTokens": 1})),
        sampling(json!({"messages": [assistant], "maxTokens": 1})),
        sampling(json!({"messages": [image], "maxTokens": 1})),
        sampling(json!({"messages": [user("one")], "maxTokens": 1, "tools": [tool]})),
        sampling(json!({"messages": vec![user("one"); 65], "maxTokens": 1})),
        sampling(json!({"messages": [user(&"x".repeat(70_000))], "maxTokens": 1})),
        sampling(json!({"messages": "none"})),
    ];
    let mut port = accepted(&json!({}));
    check(&port, &requests, expect![[r#"
        asked the model: SamplingRequest { server: "box", system: "Be brief.", messages: ["one", "one", "two"], tokens_max: 8192, temperature: Some(0.5), stop_sequences: ["END"] }
        Completed: {"model":"m-1","stopReason":"maxTokens","role":"assistant","content":{"type":"text","text":"hi"}}
        Completed: {"code":-32602,"message":"declined: its last message is not the user's"}
        Completed: {"code":-32602,"message":"declined: its first message is not the user's"}
        Completed: {"code":-32602,"message":"declined: only text can be sent to the model"}
        Completed: {"code":-32602,"message":"declined: tools in a request to the model are not supported"}
        Completed: {"code":-32602,"message":"declined: it has more than 64 messages"}
        Completed: {"code":-32602,"message":"declined: it has more than 65536 bytes of text"}
        Completed: {"code":-32602,"message":"declined: the request is not valid"}
    "#]]).await;
    port.reply = Err("the user rejected it".into());
    check(&port, &[sampling(json!({"messages": [user("one")], "maxTokens": 1}))], expect![[r#"
        asked the model: SamplingRequest { server: "box", system: "", messages: ["one"], tokens_max: 1, temperature: None, stop_sequences: [] }
        Completed: {"code":-1,"message":"declined: the user rejected it"}
    "#]]).await;
}

#[tokio::test]
async fn mcp_request_ends_with_its_call() {
    let port = FakeSession::new(None);
    let session = Session::settle(Session::start_with(vec![stdio("box", &["asking"])], FEATURES)).await;
    let (method, params) = form(&json!({}));
    let dir = session.machine.dir.path();
    let marker = dir.join("answer");
    let arguments = json!({"method": method, "params": params, "marker": marker.display().to_string()});
    let calling = call(&session, &port, arguments);
    let cancelling = async {
        port.asked.notified().await;
        session.machine.cancel.cancel();
    };
    let (result, ()) = tokio::join!(calling, cancelling);
    let mut answer = String::new();
    let read_answer = || {
        answer = std::fs::read_to_string(&marker).unwrap_or_default();
        !answer.is_empty()
    };
    super::mcp::until("the server got its answer", read_answer).await;
    expect![[r#"
        Failed: stopped: the turn was cancelled
        {"action":"cancel"}"#]]
    .assert_eq(&format!("{result}{answer}"));
}

#[tokio::test]
async fn mcp_server_may_ask_only_during_a_call() {
    // A call without a session has no user; the tool itself works.
    let session = Session::settle(Session::start_with(vec![stdio("box", &["asking"])], FEATURES)).await;
    let result = session.call("ask", json!({"method": "elicitation/create"})).await;
    expect![[r#"
        > box: ask Other Calls { server: "box", tool: "ask" }
        Completed: {"code":-1,"message":"declined: a server may ask only while one of its tools is called"}
    "#]]
    .assert_eq(&result);
}
