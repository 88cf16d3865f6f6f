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
        let model = ModelServer::start(script);
        let world = TestHome::new(model.base_url());
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
        expected.assert_eq(&format!("{}\n{}", self.tools().join(" "), self.client.log()));
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
