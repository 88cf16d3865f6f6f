//! Sessions with MCP servers: a client's view of working servers, late ones and those that do not start.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use crow_testkit::client::{FakeClient, TestHome};
use crow_testkit::{ModelServer, mcp_server};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

/// Far more turns than a server needs to start; each takes milliseconds.
const TURNS_MAX: u32 = 2000;

struct Stage {
    model: ModelServer,
    world: TestHome,
    client: FakeClient,
}

impl Stage {
    async fn new(script: &str, capabilities: Value) -> Self {
        Self::configured(script, capabilities, "").await
    }

    /// Starts an agent with these lines in its configuration, which it may read as soon as it starts.
    async fn configured(script: &str, capabilities: Value, lines: &str) -> Self {
        let model = ModelServer::start(script);
        let world = TestHome::new(model.base_url());
        world.add_config(lines);
        let binary = Path::new(env!("CARGO_BIN_EXE_crow-cli"));
        let client = FakeClient::start_with(binary, &world.home(), capabilities).await;
        Self { model, world, client }
    }

    /// Opens a session with servers of the client.
    async fn open(&mut self, servers: &[(&str, &[&str])]) -> String {
        let servers = servers.iter().map(|(name, words)| {
            let (command, args) = mcp_server::command(words);
            json!({"name": name, "command": command, "args": args, "env": []})
        });
        let servers: Vec<Value> = servers.collect();
        let params = json!({"cwd": self.world.project(), "mcpServers": servers});
        let opened = self.client.request("session/new", params).await.expect("the session opens");
        opened["sessionId"].as_str().expect("it has a name").to_owned()
    }

    async fn play(&mut self, session: &str, text: &str) {
        let id = self.client.prompt(session, text).await;
        let ended = self.client.response_to(id).await.expect("the turn ends");
        assert_eq!(ended["stopReason"], "end_turn");
    }

    /// Returns the first two tools of the latest request that are not Crow's own.
    fn tools(&self) -> Vec<String> {
        let own = [
            "read",
            "write",
            "edit",
            "terminal",
            "grep",
            "glob",
            "web_search",
            "web_fetch",
            "todo",
            "query_memory",
            "query_session",
            "task",
            "task_send",
            "task_read",
            "task_cancel",
        ];
        let request = self.model.requests().pop().unwrap_or_default();
        let tools = request["tools"].as_array().into_iter().flatten();
        let names = tools.filter_map(|tool| tool["function"]["name"].as_str());
        names.filter(|name| !own.contains(name)).take(2).map(str::to_owned).collect()
    }

    /// Compares the offered tools and the client's updates.
    fn check(&self, expected: &Expect) {
        // How often a running call is shown varies.
        let log = self.client.log();
        let log = log.lines().filter(|line| !line.starts_with("~ ")).map(|line| format!("{line}\n"));
        expected.assert_eq(&format!("{}\n{}", self.tools().join(" "), log.collect::<String>()));
        assert_eq!(self.model.rejections(), Vec::<String>::new(), "the model refused a request");
    }
}

#[track_caller]
fn check(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(test);
}

#[test]
fn tool_of_a_server_asks_and_runs() {
    check(async {
        let script = "call echo {\"text\":\"hello\"}\ntext \"It says hello.\"";
        let mut stage = Stage::new(script, json!({})).await;
        let session = stage.open(&[("good", &[])]).await;
        stage.play(&session, "use it").await;
        stage.check(&expect![[r#"
            echo good_read
            < call call-1-0 echo "good: echo" pending {"text":"hello"}
            ? good: echo [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_once
            < call call-1-0 in_progress
            < call call-1-0 completed "{\"text\":\"hello\"}"
            < text[msg-3] It says hello.
            < title use it
        "#]]);
    });
}

/// A script that calls the tool `ask` with a request of the server, then gives the further answers.
fn asking_script(method: &str, params: &Value, answers: &[&str]) -> String {
    let arguments = json!({"method": method, "params": params});
    std::iter::once(format!("call ask {arguments}"))
        .chain(answers.iter().map(|answer| format!("text {answer:?}")))
        .collect::<Vec<_>>()
        .join("\n")
}

fn sampling_params() -> Value {
    json!({
        "messages": [{"role": "user", "content": {"type": "text", "text": "Which bird is this?"}}],
        "systemPrompt": "Be brief.",
        "maxTokens": 50,
        "modelPreferences": {"hints": [{"name": "other"}]},
    })
}

#[test]
fn form_of_a_server_reaches_the_user() {
    check(async {
        let properties = json!({
            "name": {"type": "string", "title": "Name"},
            "nest": {"type": "string", "enum": ["oak", "elm"]},
            "age": {"type": "integer", "minimum": 1},
        });
        let schema = json!({"type": "object", "properties": properties, "required": ["name", "nest"]});
        let params = json!({"message": "Who are you?", "requestedSchema": schema});
        let script = asking_script("elicitation/create", &params, &["Thanks."]);
        let mut stage = Stage::new(&script, json!({"elicitation": {"form": {}}})).await;
        stage.client.form_answers.extend(["Ada".into(), "elm".into(), "0".into(), "leave out".into()]);
        let session = stage.open(&[("good", &["asking"])]).await;
        stage.play(&session, "use it").await;
        stage.check(&expect![[r#"
            echo good_read
            < call call-1-0 ask "good: ask" pending {"method":"elicitation/create","params":{"message":"Who are you?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","title":"Name"},"nest":{"type":"string","enum":["oak","elm"]},"age":{"type":"integer","minimum":1}},"required":["name","nest"]}}}
            ? good: ask [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_once
            < call call-1-0 in_progress
            ? form The MCP server good asks: Who are you?
            1 of 3: Name [] -> Ada
            ? form The MCP server good asks: Who are you?
            2 of 3: nest [oak, elm] -> elm
            ? form The MCP server good asks: Who are you?
            3 of 3: age
            The answer is a whole number of at least 1. [leave out] -> 0
            ? form The MCP server good asks: Who are you?
            3 of 3: age
            The answer is a whole number of at least 1.
            The answer is invalid: it is not a number of at least 1. [leave out] -> leave out
            < call call-1-0 completed "{\"action\":\"accept\",\"content\":{\"name\":\"Ada\",\"nest\":\"elm\"}}"
            < text[msg-3] Thanks.
            < title use it
        "#]]);
    });
}

#[test]
fn form_of_a_server_can_be_declined() {
    check(async {
        let params = json!({"message": "Well?", "requestedSchema": {"type": "object", "properties": {}}});
        let script = asking_script("elicitation/create", &params, &["Then not."]);
        let mut stage = Stage::new(&script, json!({"elicitation": {"form": {}}})).await;
        stage.client.form_answers.push_back("declined".into());
        let session = stage.open(&[("good", &["asking"])]).await;
        stage.play(&session, "use it").await;
        stage.check(&expect![[r#"
            echo good_read
            < call call-1-0 ask "good: ask" pending {"method":"elicitation/create","params":{"message":"Well?","requestedSchema":{"type":"object","properties":{}}}}
            ? good: ask [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_once
            < call call-1-0 in_progress
            ? form The MCP server good asks: Well? [Accept, Decline] -> declined
            < call call-1-0 completed "{\"action\":\"decline\"}"
            < text[msg-3] Then not.
            < title use it
        "#]]);
    });
}

#[test]
fn form_of_a_childs_server_reaches_the_user() {
    check(async {
        let params = json!({"message": "Well?", "requestedSchema": {"type": "object", "properties": {}}});
        let script = "call task {\"prompt\":\"CHILD\"}\ntext \"The child asked.\"";
        let (command, args) = mcp_server::command(&["asking"]);
        let servers = json!({"good": {"command": command, "args": args}});
        let forms = json!({"elicitation": {"form": {}}});
        let mut stage = Stage::configured(script, forms, &format!("mcpServers: {servers}")).await;
        stage
            .model
            .add_answers_for("CHILD", asking_script("elicitation/create", &params, &["Thanks."]).as_str());
        stage.client.form_answers.push_back("Accept".into());
        let session = stage.open(&[]).await;
        stage.play(&session, "use it").await;
        stage.check(&expect![[r#"
            echo good_read
            < call call-1-0 task "Task: CHILD" pending {"prompt":"CHILD"}
            < call call-1-0 in_progress
            ? CHILD: good: ask [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_once
            ? form CHILD: The MCP server good asks: Well? [Accept, Decline] -> Accept
            < call call-1-0 completed "Task $TASK (CHILD) is done.\n\nThanks.\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
            < text[msg-3] The child asked.
            < title use it
        "#]]);
    });
}

#[test]
fn address_of_a_server_is_shown_to_the_user() {
    check(async {
        let url = "https://example.org/log-in?id=1";
        let params = json!({"mode": "url", "message": "Log in.", "elicitationId": "1", "url": url});
        let script = asking_script("elicitation/create", &params, &["Thanks."]);
        let mut stage = Stage::new(&script, json!({"elicitation": {"form": {}}})).await;
        let session = stage.open(&[("good", &["asking"])]).await;
        stage.play(&session, "use it").await;
        stage.check(&expect![[r#"
            echo good_read
            < call call-1-0 ask "good: ask" pending {"method":"elicitation/create","params":{"mode":"url","message":"Log in.","elicitationId":"1","url":"https://example.org/log-in?id=1"}}
            ? good: ask [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_once
            < call call-1-0 in_progress
            ? form The MCP server good wants you to open an address of example.org in your browser: Log in.
            https://example.org/log-in?id=1
            Crow does not open it. Continue if you do. [Continue, Decline] -> Continue
            < call call-1-0 completed "{\"action\":\"accept\"}"
            < text[msg-3] Thanks.
            < title use it
        "#]]);
    });
}

#[test]
fn request_of_a_server_to_the_model_asks_first() {
    check(async {
        let script = asking_script("sampling/createMessage", &sampling_params(), &["A crow.", "Done."]);
        let mut stage = Stage::new(&script, json!({})).await;
        let session = stage.open(&[("good", &["asking"])]).await;
        stage.play(&session, "use it").await;
        let request = stage.model.requests().swap_remove(1);
        expect![[
            r#"[{"role":"system","content":"Be brief."},{"role":"user","content":"Which bird is this?"}] 50"#
        ]]
        .assert_eq(&format!("{} {}", request["messages"], request["max_tokens"]));
        stage.check(&expect![[r#"
            echo good_read
            < call call-1-0 ask "good: ask" pending {"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"Which bird is this?"}}],"systemPrompt":"Be brief.","maxTokens":50,"modelPreferences":{"hints":[{"name":"other"}]}}}
            ? good: ask [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_once
            < call call-1-0 in_progress
            < call call-0-100001 sampling/createMessage "good: ask the model" pending {} "System: Be brief.\n\nUser: Which bird is this?\n\nAt most 50 tokens of reply."
            ? good: ask the model [allow_once, allow_always, allow_project, reject_once] -> allow_once
            < call call-0-100001 in_progress
            < call call-0-100001 completed "A crow."
            < call call-1-0 completed "{\"model\":\"scripted\",\"stopReason\":\"endTurn\",\"role\":\"assistant\",\"content\":{\"type\":\"text\",\"text\":\"A crow.\"}}"
            < text[msg-3] Done.
            < title use it
        "#]]);
    });
}

#[test]
fn request_of_a_server_to_the_model_can_be_rejected() {
    check(async {
        let script = asking_script("sampling/createMessage", &sampling_params(), &["Done."]);
        let mut stage = Stage::new(&script, json!({})).await;
        stage.client.permission_answers.extend(["allow_once".into(), "reject_once".into()]);
        let session = stage.open(&[("good", &["asking"])]).await;
        stage.play(&session, "use it").await;
        stage.check(&expect![[r#"
            echo good_read
            < call call-1-0 ask "good: ask" pending {"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"Which bird is this?"}}],"systemPrompt":"Be brief.","maxTokens":50,"modelPreferences":{"hints":[{"name":"other"}]}}}
            ? good: ask [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_once
            < call call-1-0 in_progress
            < call call-0-100001 sampling/createMessage "good: ask the model" pending {} "System: Be brief.\n\nUser: Which bird is this?\n\nAt most 50 tokens of reply."
            ? good: ask the model [allow_once, allow_always, allow_project, reject_once] -> reject_once
            < call call-0-100001 failed "the user rejected it"
            < call call-1-0 completed "{\"code\":-1,\"message\":\"declined: the user rejected it\"}"
            < text[msg-3] Done.
            < title use it
        "#]]);
    });
}

#[test]
fn mode_decides_about_requests_to_the_model() {
    check(async {
        let script = asking_script("sampling/createMessage", &sampling_params(), &["A crow.", "Done."]);
        let mut stage = Stage::new(&script, json!({})).await;
        let session = stage.open(&[("good", &["asking"])]).await;
        let params = json!({"sessionId": session, "modeId": "auto"});
        stage.client.request("session/set_mode", params).await.expect("the mode changes");
        stage.play(&session, "use it").await;
        stage.check(&expect![[r#"
            echo good_read
            < mode auto
            < config_option_update
            < call call-1-0 ask "good: ask" pending {"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"Which bird is this?"}}],"systemPrompt":"Be brief.","maxTokens":50,"modelPreferences":{"hints":[{"name":"other"}]}}}
            < call call-1-0 in_progress
            < call call-0-100001 sampling/createMessage "good: ask the model" pending {} "System: Be brief.\n\nUser: Which bird is this?\n\nAt most 50 tokens of reply."
            < call call-0-100001 in_progress
            < call call-0-100001 completed "A crow."
            < call call-1-0 completed "{\"model\":\"scripted\",\"stopReason\":\"endTurn\",\"role\":\"assistant\",\"content\":{\"type\":\"text\",\"text\":\"A crow.\"}}"
            < text[msg-3] Done.
            < title use it
        "#]]);
    });
}

#[test]
fn prompt_of_a_server_is_a_command() {
    check(async {
        let mut stage = Stage::new("text \"Reviewed.\"", json!({})).await;
        let session = stage.open(&[("good", &["prompts"])]).await;
        let heard = async {
            loop {
                let message = stage.client.next_message().await;
                let update = &message["params"]["update"];
                let commands = update["availableCommands"].as_array().cloned().unwrap_or_default();
                if let Some(command) = commands.into_iter().find(|command| command["name"] == "good:review") {
                    return command;
                }
            }
        };
        let command = heard.await;
        assert_eq!(command["input"]["hint"], "<file> [depth]");
        let missing = stage.client.prompt(&session, "/good:review").await;
        let missing = stage.client.response_to(missing).await.expect_err("an argument is missing");
        assert_eq!(missing["data"]["details"], "/good:review needs file. Usage: /good:review <file> [depth]");
        stage.play(&session, "/good:review 'a b.rs' deep").await;
        let request = stage.model.requests().pop().unwrap_or_default();
        let said = &request["messages"].as_array().expect("messages").last().expect("one")["content"];
        assert_eq!(*said, json!("Do review with {\"file\":\"a b.rs\",\"depth\":\"deep\"}"));
        stage.play(&session, "/help").await;
        assert!(stage.client.log().contains("/good:review"), "{}", stage.client.log());
    });
}

#[test]
fn server_that_does_not_start_is_a_notice() {
    check(async {
        let mut stage = Stage::new("text \"Hello.\"", json!({"session": {"notices": {}}})).await;
        let session = stage.open(&[("bad", &["broken"]), ("good", &[])]).await;
        stage.client.wait_for_line("< notice").await;
        stage.play(&session, "hello").await;
        stage.check(&expect![[r#"
            echo good_read
            < notice warning "The MCP server bad did not start: it ended before it answered, with exit code 7: cannot find the frobnicator. Its tools are not available." ""
            < text[msg-1] Hello.
            < title hello
        "#]]);
    });
}

#[test]
fn late_server_adds_its_tools_once_connected() {
    check(async {
        let mut stage = Stage::new("text \"Hello.\"", json!({})).await;
        let gate = stage.world.home().join("gate");
        let late = format!("late={}", gate.display());
        let session = stage.open(&[("late", &[&late])]).await;
        // The first prompt waits for it for a limited time.
        stage.play(&session, "hello").await;
        fs::write(&gate, "").expect("a file can be written");
        // There is no event when it becomes available; the next requests show it.
        let mut n_turns = 0;
        while stage.tools().is_empty() {
            n_turns += 1;
            assert!(n_turns < TURNS_MAX, "it never came: {}", stage.client.log());
            stage.model.replace_answers("text \"Again.\"");
            stage.play(&session, "and now").await;
        }
        assert_eq!(stage.tools(), ["echo", "late_read"]);
    });
}

#[test]
fn request_has_a_limited_number_of_tools() {
    check(async {
        let script = "call tool_search {\"query\":\"tool-199\"}\ntext \"Found.\"\ntext \"Again.\"";
        let mut stage = Stage::new(script, json!({})).await;
        let session = stage.open(&[("one", &["many"]), ("two", &["many"])]).await;
        stage.play(&session, "go").await;
        stage.play(&session, "again").await;
        let lists = stage.model.requests().into_iter().map(|request| {
            let tools = request["tools"].as_array().cloned().unwrap_or_default();
            tools.iter().filter_map(|tool| Some(tool["function"]["name"].as_str()?.to_owned())).collect()
        });
        let lists: Vec<Vec<String>> = lists.collect();
        let mut told = String::new();
        for list in &lists {
            // What one request offers is the beginning of what the next one offers.
            assert_eq!(lists[0], list[..lists[0].len()]);
            told += &format!("{} tools, the last is {}\n", list.len(), list.last().expect("a tool"));
        }
        let log = stage.client.log();
        for line in log.lines().filter(|line| line.contains("a request has at most")) {
            told += &format!("{line}\n");
        }
        expect![[r#"
            94 tools, the last is tool-77
            96 tools, the last is two_tool-199
            96 tools, the last is two_tool-199
            < thought[] There are 415 tools, and a request has at most 128 of them: the model finds the others of the MCP servers with tool_search.⏎
        "#]].assert_eq(&told);
    });
}
