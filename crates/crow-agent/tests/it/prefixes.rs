//! The prefix of requests: whatever a session does and wherever it is, a provider finds the system prompt, the tools and
//! what was sent before in its cache.

use std::path::Path;

use crow_agent::AgentConfig;
use crow_core::ToolProfile;
use crow_testkit::client::{FakeClient, TestHome};
use crow_testkit::{ModelServer, Script};
use expect_test::expect;
use serde_json::{Value, json};

use crate::{agent_config, spawn_agent};

const INSTRUCTIONS: &str = "Be brief in all that you write.";

/// A prompt long enough for a compaction to be worthwhile.
const LONG_PROMPT_WORDS: usize = 6000;

/// The parts of a request in the order in which a provider reads them, without cache marks, which move.
#[derive(Debug)]
struct RequestPrefix {
    tools: String,
    system: String,
    messages: Vec<String>,
}

fn remove_cache_marks(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(remove_cache_marks),
        Value::Object(fields) => {
            fields.shift_remove("cache_control");
            fields.values_mut().for_each(remove_cache_marks);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn request_prefix(mut body: Value) -> RequestPrefix {
    remove_cache_marks(&mut body);
    let list = |name: &str| body[name].as_array().cloned().unwrap_or_default();
    let mut messages: Vec<Value> = list("messages").into_iter().chain(list("input")).collect();
    let system = match messages.first() {
        Some(message) if message["role"] == "system" => messages.remove(0),
        Some(_) | None => json!([body["system"], body["instructions"]]),
    };
    let messages = messages.iter().map(Value::to_string).collect();
    RequestPrefix { tools: body["tools"].to_string(), system: system.to_string(), messages }
}

async fn start_agent(home: &TestHome, config: AgentConfig) -> FakeClient {
    let mut client =
        FakeClient::start_in_process(&home.home(), |stdin, stdout| spawn_agent(config, stdin, stdout));
    client.initialize(json!({})).await.expect("the agent answers");
    client
}

async fn prompt(client: &mut FakeClient, session: &str, text: &str) {
    let id = client.prompt(session, text).await;
    client.response_to(id).await.expect("the turn ends");
}

fn new_directory(home: &TestHome, name: &str) -> std::path::PathBuf {
    let directory = home.home().join(name);
    std::fs::create_dir_all(&directory).expect("the home is writable");
    std::fs::write(directory.join("AGENTS.md"), INSTRUCTIONS).expect("the home is writable");
    std::fs::write(directory.join(format!("{name}.txt")), "").expect("the home is writable");
    directory
}

async fn run_session(client: &mut FakeClient, directory: &Path) {
    let session = client.new_session(directory).await;
    prompt(client, &session, &"word ".repeat(LONG_PROMPT_WORDS)).await;
    let mode = json!({"sessionId": session, "modeId": "plan"});
    client.request("session/set_mode", mode).await.expect("there is the mode");
    prompt(client, &session, "and now").await;
    prompt(client, &session, "/compact").await;
    prompt(client, &session, "go on").await;
}

/// Runs two sessions in two directories, and one at the maximum depth; returns their requests for turns.
async fn run_sessions(api: &str) -> Vec<RequestPrefix> {
    let server = ModelServer::start(Script::default());
    let answers = "text \"Yes.\"\n".repeat(8);
    server.add_answers(Script::parse(&answers));
    server.set_side_answers(Script::parse("text \"They said word.\"\n"));
    let home = TestHome::new(server.base_url());
    home.set_model_api(api);
    let mut client = start_agent(&home, agent_config(&home)).await;
    for name in ["one", "two"] {
        run_session(&mut client, &new_directory(&home, name)).await;
    }
    let mut child = start_agent(&home, AgentConfig { depth: 9, ..agent_config(&home) }).await;
    let session = child.new_session(&home.home().join("one")).await;
    prompt(&mut child, &session, "do it").await;
    assert_eq!(server.rejections(), [""; 0]);
    server
        .full_requests()
        .into_iter()
        .filter(|body| body.get("tools").is_some())
        .map(request_prefix)
        .collect()
}

/// Bytes of a request that are counted as one token, an estimate for English text and JSON.
const BYTES_PER_TOKEN: usize = 4;

/// Returns the tokens of a request before the user's words, and the names of its tools.
async fn request_cost(profile: ToolProfile) -> (usize, Vec<String>) {
    let server = ModelServer::start(Script::parse("text \"Yes.\"\n"));
    let home = TestHome::new(server.base_url());
    let directory = new_directory(&home, "one");
    let mut config = agent_config(&home);
    config.models[0].tools.profile = profile;
    let mut client = start_agent(&home, config).await;
    let session = client.new_session(&directory).await;
    prompt(&mut client, &session, "go").await;
    let body = server.full_requests().pop().expect("the model is asked");
    let n_bytes = body["tools"].to_string().len() + body["messages"].to_string().len();
    let names = body["tools"].as_array().into_iter().flatten();
    let names = names.filter_map(|tool| tool["function"]["name"].as_str()).map(str::to_owned);
    (n_bytes / BYTES_PER_TOKEN, names.collect())
}

/// Returns the tools that a request to a model offers, and whether it asks for several calls in one reply.
async fn offered_tools(model_id: &str, profile: ToolProfile) -> String {
    let server = ModelServer::start(Script::parse("text \"Yes.\"\n"));
    let home = TestHome::new(server.base_url());
    let mut config = agent_config(&home);
    config.models[0].model = model_id.to_owned();
    config.models[0].tools.profile = profile;
    let mut client = start_agent(&home, config).await;
    let session = client.new_session(&new_directory(&home, "one")).await;
    prompt(&mut client, &session, "go").await;
    let body = server.full_requests().pop().expect("the model is asked");
    let names = body["tools"].as_array().into_iter().flatten();
    let names: Vec<&str> = names.filter_map(|tool| tool["function"]["name"].as_str()).collect();
    let effort = body["reasoning_effort"].as_str().unwrap_or("-");
    format!("{} | parallel {} | effort {effort}", names.join(" "), body["parallel_tool_calls"])
}

#[test]
fn tools_follow_the_family_of_the_model() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be made");
    let shown = [
        ("openai/gpt-5.1", ToolProfile::Full),
        ("gpt-5.1-codex", ToolProfile::Core),
        ("qwen2.5-coder", ToolProfile::Full),
    ]
    .map(|(model_id, profile)| runtime.block_on(offered_tools(model_id, profile)));
    expect![[r#"
        read apply_patch terminal grep glob web_search web_fetch todo query_memory query_session task task_send task_read task_cancel | parallel true | effort medium
        read apply_patch terminal grep glob | parallel false | effort -
        read write edit terminal grep glob web_search web_fetch todo query_memory query_session task task_send task_read task_cancel | parallel false | effort -"#]].assert_eq(&shown.join("\n"));
}

#[test]
fn requests_keep_within_their_budgets() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be made");
    // The window of the model is small, so `auto` is `core`.
    for (profile, tokens_max, n_tools_max) in
        [(ToolProfile::Core, 2000, 8), (ToolProfile::Auto, 2000, 8), (ToolProfile::Full, 5500, 15)]
    {
        let (n_tokens, names) = runtime.block_on(request_cost(profile));
        assert!(n_tokens <= tokens_max, "{n_tokens} tokens: {names:?}");
        assert!(names.len() <= n_tools_max, "{names:?}");
    }
}

fn shared_start<'a>(one: &'a str, other: &str) -> &'a str {
    let n_equal = one.bytes().zip(other.bytes()).take_while(|(left, right)| left == right).count();
    &one[..one.floor_char_boundary(n_equal)]
}

#[test]
fn requests_share_their_prefix() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be made");
    for api in ["chat", "messages", "responses"] {
        let requests = runtime.block_on(run_sessions(api));
        let [first, in_plan_mode, compacted, elsewhere, _, _, in_child] = &requests[..] else {
            panic!("{api}: {} requests", requests.len())
        };
        for request in &requests {
            assert_eq!(request.tools, first.tools, "{api}");
            assert_eq!(request.system, first.system, "{api}");
        }
        assert_eq!(in_plan_mode.messages[..first.messages.len()], first.messages, "{api}");
        assert!(in_plan_mode.messages.last().expect("a prompt").contains("Permission mode: plan"), "{api}");
        let environment = |request: &RequestPrefix| {
            let shared = shared_start(&request.messages[0], &first.messages[0]).to_owned();
            (shared.contains(INSTRUCTIONS), shared.contains("Permission mode: ask"), shared.contains("/one"))
        };
        assert_eq!(environment(compacted), (true, true, true), "{api}");
        assert_eq!(environment(in_child), (true, true, true), "{api}");
        assert_eq!(environment(elsewhere), (true, false, false), "{api}");
    }
}

/// Returns what a session shows after two prompts.
async fn prompt_log(profile: ToolProfile) -> String {
    let server = ModelServer::start(Script::parse("text \"Yes.\"\ntext \"Yes.\"\n"));
    let home = TestHome::new(server.base_url());
    let directory = new_directory(&home, "one");
    let mut config = agent_config(&home);
    config.models[0].tools.profile = profile;
    let mut client = start_agent(&home, config).await;
    let session = client.new_session(&directory).await;
    prompt(&mut client, &session, "go").await;
    prompt(&mut client, &session, "go on").await;
    client.log()
}

#[test]
fn selection_of_tools_is_told_once() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be made");
    let small_window = "so it gets only the tools read, write, edit, terminal, grep, glob.";
    let unknown_names = "has names of no tool: raed, list.";
    let misspelt = ToolProfile::Named(["read", "raed", "list"].map(str::to_owned).to_vec());
    for (profile, n_small_window, n_unknown_names) in
        [(ToolProfile::Auto, 1, 0), (ToolProfile::Core, 0, 0), (ToolProfile::Full, 0, 0), (misspelt, 0, 1)]
    {
        let log = runtime.block_on(prompt_log(profile));
        assert_eq!(log.matches(small_window).count(), n_small_window, "{log}");
        assert_eq!(log.matches(unknown_names).count(), n_unknown_names, "{log}");
    }
}

#[test]
fn small_model_gets_equal_requests_in_all_directories() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be made");
    let requests = runtime.block_on(async {
        let server = ModelServer::start(Script::parse("text \"Yes.\"\ntext \"Yes.\"\n"));
        let home = TestHome::new(server.base_url());
        let mut config = agent_config(&home);
        config.models[0].tools.profile = ToolProfile::Core;
        let mut client = start_agent(&home, config).await;
        for name in ["one", "two"] {
            let session = client.new_session(&new_directory(&home, name)).await;
            prompt(&mut client, &session, "go").await;
        }
        server.full_requests()
    });
    let [one, two] = &requests[..] else { panic!("{} requests", requests.len()) };
    assert_eq!((&one["tools"], &one["messages"]), (&two["tools"], &two["messages"]));
    let told = two["messages"].to_string();
    assert!(told.contains(INSTRUCTIONS) && !told.contains("Working directory"), "{told}");
}

/// Returns the system prompt of a session whose model is chosen before each prompt.
async fn system_prompts(models: &[&str]) -> Vec<usize> {
    let server = ModelServer::start(Script::parse(&"text \"Yes.\"\n".repeat(models.len())));
    let home = TestHome::new(server.base_url());
    let mut config = agent_config(&home);
    config.models[0].tools.profile = ToolProfile::Full;
    let mut small = config.models[0].clone();
    small.name = "small".to_owned();
    small.tools.profile = ToolProfile::Core;
    config.models[0].name = "large".to_owned();
    config.models.push(small);
    let mut client = start_agent(&home, config).await;
    let session = client.new_session(&new_directory(&home, "one")).await;
    for model in models {
        let option = json!({"sessionId": session, "configId": "model", "value": model});
        client.request("session/set_config_option", option).await.expect("there is the model");
        prompt(&mut client, &session, "go").await;
    }
    server.full_requests().into_iter().map(|body| body["messages"][0]["content"].to_string().len()).collect()
}

#[test]
fn system_prompt_is_that_of_the_model_of_the_first_prompt() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be made");
    let small_then_large = runtime.block_on(system_prompts(&["small", "large"]));
    let large_then_small = runtime.block_on(system_prompts(&["large", "small"]));
    let ([small, kept_small], [large, kept_large]) = (&small_then_large[..], &large_then_small[..]) else {
        panic!("{small_then_large:?} {large_then_small:?}")
    };
    assert!(small * 2 < *large, "{small} {large}");
    assert_eq!((kept_small, kept_large), (small, large));
}
