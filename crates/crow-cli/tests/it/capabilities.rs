//! The declared capabilities of both sides: the agent supports all of its own, and uses none that the client lacks.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and prints where it was"
)]

mod clients;
mod mcp_web;

use std::path::Path;

use crow_testkit::client::{FakeClient, RpcResult, TestHome};
use crow_testkit::{ModelServer, Script};
use expect_test::expect;
use serde_json::{Value, json};

/// The smallest valid PNG.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_crow-cli"))
}

/// An agent in its own home.
struct Stage {
    server: ModelServer,
    world: TestHome,
    client: FakeClient,
}

impl Stage {
    async fn new(capabilities: Value) -> Self {
        Self::configured(capabilities, "").await
    }

    /// Starts an agent with additional configuration.
    async fn configured(capabilities: Value, yaml: &str) -> Self {
        let server = ModelServer::start(Script::default());
        let world = TestHome::new(server.base_url());
        world.add_config(yaml);
        let client = FakeClient::start_with(binary(), &world.home(), capabilities).await;
        Self { server, world, client }
    }

    /// Starts another agent in the same home.
    async fn again(&self) -> FakeClient {
        FakeClient::start(binary(), &self.world.home()).await
    }

    /// Opens a session in the project with additional fields.
    async fn open(&mut self, more: Value) -> RpcResult {
        let mut params = json!({"cwd": self.world.project(), "mcpServers": []});
        more.as_object().into_iter().flatten().for_each(|(name, value)| params[name] = value.clone());
        self.client.request("session/new", params).await
    }

    /// Runs a whole turn of a script.
    async fn turn(&mut self, session: &str, blocks: Value, script: &str) {
        self.server.replace_answers(script);
        let id = self.client.prompt_with(session, blocks).await;
        let ended = self.client.response_to(id).await.expect("the turn ends");
        assert_eq!(ended["stopReason"], "end_turn");
        assert_eq!(self.server.rejections(), Vec::<String>::new(), "the model refused a request");
    }

    /// Returns a session with one turn.
    async fn used(&mut self) -> String {
        let project = self.world.project();
        let session = self.client.new_session(&project).await;
        self.turn(&session, text("remember this"), "text \"I do.\"").await;
        session
    }

    async fn sessions(client: &mut FakeClient) -> Vec<String> {
        let list = client.request("session/list", json!({})).await.expect("the sessions are listed");
        let sessions = list["sessions"].as_array().cloned().unwrap_or_default();
        sessions.iter().map(|one| one["sessionId"].as_str().expect("it has an id").to_owned()).collect()
    }

    /// Returns the last request to the model as text.
    fn asked(&self) -> String {
        self.server.requests().last().cloned().unwrap_or_default()["messages"].to_string()
    }
}

fn text(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

fn named(session: &str) -> Value {
    json!({"sessionId": session})
}

fn id_of(opened: &Value) -> String {
    opened["sessionId"].as_str().expect("it has an id").to_owned()
}

#[track_caller]
fn refused(answered: RpcResult, code: i64) {
    let error = answered.expect_err("it is refused");
    assert_eq!(error["code"], code, "{error}");
}

/// Returns the names of the capabilities in a response to `initialize`.
fn advertised(hello: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk("", &hello["agentCapabilities"], &mut found);
    let methods = hello["authMethods"].as_array().into_iter().flatten();
    found.extend(methods.map(|method| format!("authMethods.{}", method["id"].as_str().unwrap_or_default())));
    let meta = hello["_meta"].as_object().into_iter().flatten();
    found.extend(meta.map(|(name, _)| format!("_meta.{name}")));
    found
}

fn walk(name: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (field, value) in fields {
                let dot = if name.is_empty() { "" } else { "." };
                walk(&format!("{name}{dot}{field}"), value, found);
            }
        }
        Value::Bool(false) | Value::Null => {}
        Value::Bool(true) | Value::Object(_) | Value::Array(_) | Value::Number(_) | Value::String(_) => {
            found.push(name.to_owned());
        }
    }
}

/// Uses one advertised capability.
async fn works(name: &str, stage: &mut Stage) {
    match name {
        "loadSession" => load(stage).await,
        "promptCapabilities.image" => image(stage).await,
        "promptCapabilities.embeddedContext" => embedded(stage).await,
        "mcpCapabilities.http" => mcp_web::works("http", stage).await,
        "mcpCapabilities.sse" => mcp_web::works("sse", stage).await,
        "sessionCapabilities.list" => list(stage).await,
        "sessionCapabilities.resume" => resume(stage).await,
        "sessionCapabilities.fork" => fork(stage).await,
        "sessionCapabilities.close" => close(stage).await,
        "sessionCapabilities.delete" => delete(stage).await,
        "sessionCapabilities.additionalDirectories" => additional_directories(stage).await,
        "auth.logout" => logout(stage).await,
        "authMethods.configured" => authenticate(stage).await,
        "authMethods.set-up" => set_up(stage).await,
        "_meta.steering" => steering(stage).await,
        "_meta.crow" => earlier_prompts(stage).await,
        other => panic!("{other} is advertised and not tested"),
    }
}

async fn load(stage: &mut Stage) {
    let session = stage.used().await;
    let mut other = stage.again().await;
    other.load_session(&session, &stage.world.project()).await.expect("the session loads");
    expect![[r#"
        < prompt[msg-0] remember this
        < text[msg-1] I do.
        < title remember this
    "#]]
    .assert_eq(&other.log());
    refused(other.load_session("unknown", &stage.world.project()).await, -32002);
}

async fn resume(stage: &mut Stage) {
    let session = stage.used().await;
    let mut other = stage.again().await;
    let params = json!({"sessionId": session, "cwd": stage.world.project()});
    other.request("session/resume", params).await.expect("the session is resumed");
    assert!(!other.log().contains("I do."), "nothing is told again:\n{}", other.log());
    stage.client = other;
    stage.turn(&session, text("and?"), "text \"Still.\"").await;
    assert!(stage.asked().contains("remember this"), "the model is told again");
    let params = json!({"sessionId": "unknown", "cwd": stage.world.project()});
    refused(stage.client.request("session/resume", params).await, -32002);
}

async fn fork(stage: &mut Stage) {
    let session = stage.used().await;
    // The stored part of a running turn is copied, without its running call.
    stage.server.replace_answers("call terminal {\"command\":\"sleep 60\"}");
    let id = stage.client.prompt(&session, "go on").await;
    stage.client.wait_for_line("in_progress").await;
    let params = json!({"sessionId": session, "cwd": stage.world.project()});
    let copy = id_of(&stage.client.request("session/fork", params).await.expect("it is copied"));
    assert_ne!(copy, session);
    stage.client.request("session/close", named(&session)).await.expect("it closes");
    stage.client.response_to(id).await.expect("its turn is answered");
    stage.turn(&copy, text("and?"), "text \"Still.\"").await;
    assert!(stage.asked().contains("remember this"), "the model is told again");
    assert!(stage.asked().contains("its result is unknown"), "{}", stage.asked());
    let mut other = stage.again().await;
    other.load_session(&session, &stage.world.project()).await.expect("the original loads");
    assert!(!other.log().contains("Still."), "the original stays as it is:\n{}", other.log());
    let params = json!({"sessionId": "unknown", "cwd": stage.world.project()});
    refused(stage.client.request("session/fork", params).await, -32002);
}

async fn earlier_prompts(stage: &mut Stage) {
    let session = stage.used().await;
    stage.turn(&session, text("and?"), "text \"Still.\"").await;
    let prompts = stage.client.request("_crow/session/prompts", named(&session)).await.expect("a list");
    assert_eq!(prompts["prompts"][0]["text"], "and?");
    let fork = |message: &Value| {
        let end = json!({"crow": {"before": message}});
        json!({"sessionId": session, "cwd": stage.world.project(), "_meta": end})
    };
    let (second, unknown) = (fork(&prompts["prompts"][0]["messageId"]), fork(&json!("msg-99")));
    let copy = id_of(&stage.client.request("session/fork", second).await.expect("it is copied"));
    stage.turn(&copy, text("instead"), "text \"Fine.\"").await;
    assert!(stage.asked().contains("remember this") && !stage.asked().contains("and?"), "{}", stage.asked());
    refused(stage.client.request("session/fork", unknown).await, -32602);
}

async fn list(stage: &mut Stage) {
    let session = stage.used().await;
    let list = stage.again().await.request("session/list", json!({})).await.expect("they are listed");
    let one = &list["sessions"][0];
    assert_eq!(one["sessionId"], *session);
    assert_eq!(one["cwd"], *stage.world.project().display().to_string());
    assert_eq!(one["title"], "remember this");
    assert!(one["updatedAt"].as_str().is_some_and(|time| time.ends_with('Z')), "{one}");
}

async fn close(stage: &mut Stage) {
    let session = stage.used().await;
    stage.server.replace_answers("text \"I begin\" | hold");
    let id = stage.client.prompt(&session, "go on").await;
    stage.client.wait_for_line("I begin").await;
    stage.client.request("session/close", named(&session)).await.expect("it closes");
    let ended = stage.client.response_to(id).await.expect("its turn is answered");
    assert_eq!(ended["stopReason"], "cancelled");
    let id = stage.client.prompt(&session, "hello?").await;
    refused(stage.client.response_to(id).await, -32002);
    stage.client.load_session(&session, &stage.world.project()).await.expect("it is stored");
    stage.turn(&session, text("back"), "text \"Welcome.\"").await;
    refused(stage.client.request("session/close", named("unknown")).await, -32002);
}

async fn delete(stage: &mut Stage) {
    let session = stage.used().await;
    stage.client.request("session/delete", named(&session)).await.expect("it is deleted");
    assert_eq!(Stage::sessions(&mut stage.client).await, Vec::<String>::new());
    refused(stage.client.load_session(&session, &stage.world.project()).await, -32002);
    let id = stage.client.prompt(&session, "hello?").await;
    refused(stage.client.response_to(id).await, -32002);
    stage.client.request("session/delete", named(&session)).await.expect("it stays deleted");
    let mut other = stage.again().await;
    assert_eq!(Stage::sessions(&mut other).await, Vec::<String>::new());
}

async fn additional_directories(stage: &mut Stage) {
    let other = stage.world.home().join("other");
    std::fs::create_dir(&other).expect("a folder can be made");
    std::fs::write(other.join("x.txt"), "far away\n").expect("a file can be written");
    let read = json!({"file_path": other.join("x.txt")});
    let script = format!("call read {read}\ntext \"Read.\"");
    let outside = id_of(&stage.open(json!({})).await.expect("a session opens"));
    stage.turn(&outside, text("read"), &script).await;
    assert!(stage.client.log().contains("? Read"), "outside of its folders it asks");
    let roots = json!({"additionalDirectories": [other]});
    let inside = id_of(&stage.open(roots.clone()).await.expect("a session opens"));
    let n_before = stage.client.log().matches("? Read").count();
    stage.turn(&inside, text("read"), &script).await;
    assert_eq!(stage.client.log().matches("? Read").count(), n_before, "inside of them it does not ask");
    assert!(stage.asked().contains("far away"));
    refused(stage.open(json!({"additionalDirectories": ["other"]})).await, -32602);
    // They are sent again with each load.
    let mut params = json!({"sessionId": inside, "cwd": stage.world.project(), "mcpServers": []});
    stage.client.request("session/load", params.clone()).await.expect("it loads");
    stage.turn(&inside, text("read"), &script).await;
    assert_eq!(stage.client.log().matches("? Read").count(), n_before + 1, "without them it asks");
    params["additionalDirectories"] = roots["additionalDirectories"].clone();
    stage.client.request("session/load", params).await.expect("it loads");
    stage.turn(&inside, text("read"), &script).await;
    assert_eq!(stage.client.log().matches("? Read").count(), n_before + 1, "with them it does not ask");
}

async fn image(stage: &mut Stage) {
    let session = stage.used().await;
    let blocks =
        json!([{"type": "image", "data": PNG, "mimeType": "image/png"}, {"type": "text", "text": "what?"}]);
    stage.turn(&session, blocks, "text \"A dot.\"").await;
    assert!(stage.asked().contains(&format!("data:image/png;base64,{PNG}")));
}

async fn embedded(stage: &mut Stage) {
    let session = stage.used().await;
    let resource = json!({"uri": "file:///x/b.rs", "text": "fn beta() {}", "mimeType": "text/x-rust"});
    let blocks = json!([{"type": "resource", "resource": resource}, {"type": "text", "text": "what?"}]);
    stage.turn(&session, blocks, "text \"A function.\"").await;
    assert!(stage.asked().contains("fn beta() {}") && stage.asked().contains("b.rs"), "{}", stage.asked());
}

async fn authenticate(stage: &mut Stage) {
    let method = |id: &str| json!({"methodId": id});
    stage.client.request("authenticate", method("configured")).await.expect("it signs in");
    refused(stage.client.request("authenticate", method("nothing")).await, -32602);
}

async fn logout(stage: &mut Stage) {
    let session = stage.used().await;
    stage.client.request("logout", json!({})).await.expect("it signs out");
    refused(stage.open(json!({})).await, -32000);
    let id = stage.client.prompt(&session, "hello?").await;
    refused(stage.client.response_to(id).await, -32000);
    authenticate(stage).await;
    stage.open(json!({})).await.expect("a session opens");
    stage.turn(&session, text("back"), "text \"Welcome.\"").await;
}

/// A terminal authentication method is the agent's own command with additional arguments, outside the protocol.
#[expect(clippy::disallowed_methods, reason = "the client starts it in a terminal")]
async fn set_up(stage: &mut Stage) {
    refused(stage.client.request("authenticate", json!({"methodId": "set-up"})).await, -32602);
    let method = json!({"methodId": "set-up"});
    let hello = stage.client.initialize(stage.client.editor.capabilities().clone()).await.expect("hello");
    let methods = hello["authMethods"].as_array().cloned().unwrap_or_default();
    let method = methods.iter().find(|one| one["id"] == method["methodId"]).expect("it is advertised");
    let words = method["args"].as_array().cloned().unwrap_or_default();
    let ran = tokio::process::Command::new(binary())
        .arg("acp")
        .args(words.iter().filter_map(Value::as_str))
        .env_clear()
        .env("HOME", stage.world.home())
        .stdin(std::process::Stdio::null())
        .output();
    let ran = ran.await.expect("it runs");
    assert!(ran.status.success(), "all is configured: {ran:?}");
}

async fn steering(stage: &mut Stage) {
    let session = stage.used().await;
    stage
        .server
        .replace_answers("text \"I begin\" | hold | call glob {\"pattern\":\"*\"}\ntext \"So be it.\"");
    let id = stage.client.prompt(&session, "go on").await;
    stage.client.wait_for_line("I begin").await;
    let words = |words: &str| json!({"sessionId": session, "prompt": text(words)});
    // It is answered when the model gets the text, with its next request.
    let steering = stage.client.send("_session/steering", words("to the left")).await;
    // A later response arrives after this one.
    Stage::sessions(&mut stage.client).await;
    stage.server.release();
    let steered = stage.client.response_to(steering).await;
    assert_eq!(steered.expect("it is heard")["outcome"], "injected");
    let ended = stage.client.response_to(id).await.expect("the turn ends");
    assert_eq!(ended["stopReason"], "end_turn");
    assert!(stage.asked().contains("to the left"), "{}", stage.asked());
    stage.server.replace_answers("text \"Right then.\"");
    let steered = stage.client.request("_session/steering", words("to the right")).await;
    assert_eq!(steered.expect("it is heard")["outcome"], "startedNewTurn");
    stage.client.wait_for_line("Right then.").await;
    assert!(stage.asked().contains("to the right"), "{}", stage.asked());
    stage.server.replace_answers("text \"Once more\" | hold");
    let id = stage.client.prompt(&session, "go on").await;
    stage.client.wait_for_line("Once more").await;
    let steering = stage.client.send("_session/steering", words("to nowhere")).await;
    Stage::sessions(&mut stage.client).await;
    stage.client.notify("session/cancel", named(&session)).await;
    let ended = stage.client.response_to(id).await.expect("the turn ends");
    assert_eq!(ended["stopReason"], "cancelled");
    let steered = stage.client.response_to(steering).await;
    // They are not lost silently: the client can send them again.
    refused(steered, -32602);
}

#[track_caller]
fn check(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(test);
}

#[test]
fn advertised_capabilities_work() {
    let everything = json!({
        "fs": {"readTextFile": true, "writeTextFile": true},
        "terminal": true,
        "auth": {"terminal": true},
        "session": {"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}},
        "_meta": {"terminal_output": true},
    });
    check(async {
        let mut stage = Stage::new(everything.clone()).await;
        let hello = stage.client.initialize(everything.clone()).await.expect("hello");
        let names = advertised(&hello);
        // The removed capabilities are on the left.
        expect![[r#"
            loadSession
            promptCapabilities.image
            promptCapabilities.embeddedContext
            mcpCapabilities.http
            mcpCapabilities.sse
            sessionCapabilities.list
            sessionCapabilities.delete
            sessionCapabilities.additionalDirectories
            sessionCapabilities.fork
            sessionCapabilities.resume
            sessionCapabilities.close
            auth.logout
            authMethods.configured
            authMethods.set-up
            _meta.steering
            _meta.crow"#]]
        .assert_eq(&names.join("\n"));
        for name in names {
            println!("{name}");
            let mut stage = Stage::new(everything.clone()).await;
            works(&name, &mut stage).await;
            assert_eq!(
                stage.server.rejections(),
                Vec::<String>::new(),
                "{name}: the model refused a request"
            );
            assert!(stage.client.close_stdin().await.success(), "{name}: the agent ends well");
        }
    });
}

/// A client that loads a session has the updates of this load only.
#[test]
fn streamed_output_is_complete_after_a_load() {
    check(async {
        let capabilities = json!({"_meta": {"terminal_output": true}});
        let mut stage = Stage::configured(capabilities, "permissions: { mode: auto }").await;
        let project = stage.world.project();
        let session = stage.client.new_session(&project).await;
        stage.server.replace_answers(
            "call terminal {\"command\":\"echo early; until test -e go; do :; done; echo late\"}\ntext \"Done.\"",
        );
        let prompt = stage.client.prompt(&session, "go").await;
        stage.client.wait_for_line("early").await;
        let n_before = stage.client.updates.len();
        let params = json!({"sessionId": session, "cwd": project, "mcpServers": []});
        stage.client.request("session/load", params).await.expect("it loads");
        std::fs::write(project.join("go"), "").expect("a file can be written");
        stage.client.response_to(prompt).await.expect("the turn ends");
        let updates = stage.client.updates[n_before..].iter().map(|(_, update)| update);
        let view = crow_testkit::replay::render_updates(updates);
        assert!(view.contains(r#""text":"early\nlate"#), "{view}");
    });
}
