//! Errors of a client on the wire: each line gets its response and the connection stays open.
//!
//! ```text
//! model: text "Hi" | call …    the model's next answer
//! file a.txt "hello\n"         a file of the project
//! hello                        sends `initialize`
//! new A                        opens a session, called $A from here on
//! send LINE                    sends a raw line
//! ask ID METHOD PARAMS         sends a request
//! tell METHOD PARAMS           sends a notification
//! prompt ID A TEXT             prompts the session $A
//! answer CHOICE                sets the answer to the next permission request
//! heard TEXT                   waits until a log line contains TEXT
//! asked N                      waits until the model has N requests
//! release                      continues a held answer
//! got ID                       waits for the response to ID
//! again                        ends the agent and starts another one in the same home
//! ```

#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod concurrent_turns;

use std::collections::BTreeMap;
use std::path::Path;

use crow_testkit::client::{FakeClient, TestHome};
use crow_testkit::{Answer, ModelServer, Script};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

fn check(script: &str, heard: &Expect) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    heard.assert_eq(&runtime.expect("a runtime can be made").block_on(play(script)));
}

struct Wire {
    server: ModelServer,
    world: TestHome,
    client: FakeClient,
    sessions: BTreeMap<String, String>,
    answers: BTreeMap<String, Value>,
    before: String,
}

async fn play(script: &str) -> String {
    let server = ModelServer::start(Script::default());
    let world = TestHome::new(server.base_url());
    let client = FakeClient::start_silent(binary(), &world.home());
    let mut wire = Wire {
        server,
        world,
        client,
        sessions: BTreeMap::new(),
        answers: BTreeMap::new(),
        before: String::new(),
    };
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        wire.act(line).await;
    }
    assert_eq!(wire.server.rejections(), Vec::<String>::new(), "the model refused a request");
    for (id, answer) in std::mem::take(&mut wire.answers) {
        wire.client.add_to_log(format!("unasked {id} {}", spelled(&answer)));
    }
    for text in wire.server.requests().last().map(said_to_the_model).unwrap_or_default() {
        wire.client.add_to_log(format!("model saw {text:?}"));
    }
    let log = wire.before + &wire.client.log();
    wire.client.wait_for_responses().await;
    let status = wire.client.close_stdin().await;
    assert!(status.success(), "the agent ended with {status}");
    log
}

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_crow-cli"))
}

fn said_to_the_model(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().cloned().unwrap_or_default();
    let said =
        messages.iter().filter(|message| message["role"] != "system" && message["role"] != "assistant");
    said.map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect()
}

impl Wire {
    async fn act(&mut self, line: &str) {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = self.filled(rest);
        match verb {
            "model:" => self.server.add_answers(Script::new([Answer::parse(&rest)])),
            "file" => {
                let (name, text) = rest.split_once(' ').expect("file NAME \"TEXT\"");
                self.world.write_file(name, &serde_json::from_str::<String>(text).expect("a JSON string"));
            }
            "hello" => drop(self.client.request("initialize", json!({"protocolVersion": 1})).await),
            "new" => {
                let params = json!({"cwd": self.world.project(), "mcpServers": []});
                let opened = self.client.request("session/new", params).await.expect("a session opens");
                let id = opened["sessionId"].as_str().expect("it has an id").to_owned();
                self.client.mask(&id, format!("${rest}"));
                self.sessions.insert(rest, id);
            }
            "send" => self.client.send_line(&rest).await,
            "ask" => {
                let [id, method, params] = split(&rest);
                let line = format!(
                    r#"{{"jsonrpc":"2.0","id":{},"method":"{method}","params":{params}}}"#,
                    json!(id)
                );
                self.client.send_line(&line).await;
            }
            "tell" => {
                let (method, params) = rest.split_once(' ').expect("tell METHOD PARAMS");
                let line = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#);
                self.client.send_line(&line).await;
            }
            "prompt" => {
                let [id, session, text] = split(&rest);
                let prompt = json!([{"type": "text", "text": text}]);
                let params = json!({"sessionId": self.sessions[session], "prompt": prompt});
                let line = json!({"jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": params});
                self.client.send_line(&line.to_string()).await;
            }
            "answer" => self.client.permission_answers.push_back(rest),
            "heard" => self.hear_until(|wire| wire.client.log().contains(&rest)).await,
            "asked" => self.server.wait_for_requests(rest.parse().expect("asked N")).await,
            "release" => self.server.release(),
            "got" => self.got(&rest).await,
            "again" => self.again().await,
            other => panic!("unknown action: {other}"),
        }
    }

    fn filled(&self, text: &str) -> String {
        let named = self.sessions.iter().fold(text.to_owned(), |text, (name, id)| {
            text.replace(&format!("${name}\""), &format!("{id}\""))
        });
        named.replace("$HOME", &self.world.home().display().to_string())
    }

    async fn hear_until(&mut self, holds: impl Fn(&Self) -> bool) {
        while !holds(self) {
            let message = self.client.next_message().await;
            if message.get("method").is_none() {
                let id = message["id"].as_str().map_or_else(|| message["id"].to_string(), str::to_owned);
                self.answers.insert(id, message);
            }
        }
    }

    async fn got(&mut self, id: &str) {
        self.hear_until(|wire| wire.answers.contains_key(id)).await;
        let answer = self.answers.remove(id).expect("it was heard");
        self.client.add_to_log(format!("{id} {}", spelled(&answer)));
    }

    async fn again(&mut self) {
        let mut fresh = FakeClient::start_silent(binary(), &self.world.home());
        for (name, id) in &self.sessions {
            fresh.mask(id, format!("${name}"));
        }
        let old = std::mem::replace(&mut self.client, fresh);
        self.before += &old.kill().await;
        self.client.add_to_log("again");
    }
}

fn split(text: &str) -> [&str; 3] {
    let mut words = text.splitn(3, ' ');
    [(); 3].map(|()| words.next().expect("three words"))
}

/// Renders a response in one line; of a result only the fields that these tests compare.
fn spelled(answer: &Value) -> String {
    if let Some(error) = answer.get("error") {
        let data = &error["data"];
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        return match data.get("kind") {
            Some(kind) => format!("! {} {}: {}", error["code"], text(kind), text(&data["details"])),
            None => format!("! {} {}: {}", error["code"], text(&error["message"]), text(data)),
        };
    }
    let result = &answer["result"];
    if let Some(sessions) = result["sessions"].as_array() {
        let titles = sessions.iter().map(|session| format!("{} {}", session["sessionId"], session["title"]));
        return format!("= {}", titles.collect::<Vec<_>>().join(", "));
    }
    let options = result["configOptions"].as_array().into_iter().flatten();
    let options = options.map(|option| format!("{} {}", option["id"], option["currentValue"]));
    match (&result["stopReason"], &result["protocolVersion"]) {
        (Value::String(reason), _) => format!("= {reason}"),
        (_, Value::Number(version)) => format!("= version {version}"),
        _ => format!("= ok {}", options.collect::<Vec<_>>().join(" ")).trim_end().to_owned(),
    }
}

#[test]
fn garbage_is_answered_and_ignored() {
    check(
        r#"
        send not json at all
        got null
        send {"jsonrpc":"2.0","id":"x","method":
        got null
        send []
        got null
        send 42
        got null
        send {"jsonrpc":"2.0"}
        got null
        send
        send {"id":"a","jsonrpc":"2.0","result":{}}
        ask hello initialize {"protocolVersion":1}
        got hello
        "#,
        &expect![[r#"
            null ! -32700 invalid_value: the line is not JSON; send one JSON-RPC message per line
            null ! -32700 invalid_value: the line is not JSON; send one JSON-RPC message per line
            null ! -32600 invalid_value: the request cannot be answered: JSON-RPC batches are not supported; send each message individually
            null ! -32600 invalid_value: the request cannot be answered: send JSON-RPC 2.0 messages
            null ! -32600 invalid_value: the request cannot be answered: send JSON-RPC 2.0 messages
            hello = version 1
        "#]],
    );
}

#[test]
fn initialize_in_any_order_and_with_any_version() {
    check(
        r#"
        ask early session/list {}
        got early
        ask one initialize {"protocolVersion":0}
        got one
        ask two initialize {"protocolVersion":2}
        got two
        ask three initialize {"protocolVersion":65535}
        got three
        ask four initialize {"protocolVersion":"new"}
        got four
        ask five initialize {}
        got five
        new A
        "#,
        &expect![[r#"
            early ! -32600 invalid_value: the request cannot be answered: ACP initialization must complete before `session/list` can be used
            one = version 1
            two = version 1
            three = version 1
            four ! -32602 invalid_value: the parameters do not fit the method: initialize.protocolVersion must be a valid ACP protocol version
            five ! -32602 invalid_value: the parameters do not fit the method: initialize.protocolVersion must be a valid ACP protocol version
        "#]],
    );
}

/// A client need not wait for a response before its next request.
#[test]
fn requests_behind_initialize_are_answered_after_it() {
    check(
        r#"
        ask hello initialize {"protocolVersion":1}
        ask list session/list {}
        ask fly session/fly {}
        ask again initialize {"protocolVersion":1}
        ask last session/list {}
        got last
        got hello
        got list
        got fly
        got again
        "#,
        &expect![[r#"
            last = 
            hello = version 1
            list = 
            fly ! -32601 invalid_value: there is no method session/fly; the response to `initialize` lists the capabilities
            again = version 1
        "#]],
    );
}

#[test]
fn unknown_names_and_wrong_types() {
    check(
        r#"
        hello
        ask method session/fly {}
        got method
        tell session/landed {"at":"once"}
        ask types session/new {"cwd":7,"mcpServers":[]}
        got types
        ask nothing session/new {}
        got nothing
        ask list session/prompt [1,2]
        got list
        tell session/cancel {"sessionId":7}
        ask still session/list {}
        got still
        "#,
        &expect![[r#"
            method ! -32601 invalid_value: there is no method session/fly; the response to `initialize` lists the capabilities
            types ! -32602 invalid_value: the parameters do not fit the method: invalid type: integer `7`, expected path string
            nothing ! -32602 invalid_value: the parameters do not fit the method: missing field `cwd`
            list ! -32602 invalid_value: the parameters do not fit the method: invalid type: integer `1`, expected a string
            still = 
        "#]],
    );
}

#[test]
fn paths_that_are_no_directories() {
    check(
        r#"
        file a.txt ""
        hello
        ask relative session/new {"cwd":"project","mcpServers":[]}
        got relative
        ask missing session/new {"cwd":"$HOME/nowhere","mcpServers":[]}
        got missing
        ask file session/new {"cwd":"$HOME/project/a.txt","mcpServers":[]}
        got file
        ask load session/load {"sessionId":"x","cwd":"nowhere","mcpServers":[]}
        got load
        "#,
        &expect![[r#"
            relative ! -32602 invalid_value: cwd is project, which is not an absolute path
            missing ! -32602 invalid_value: cwd is $HOME/nowhere, which is not a directory; create it or choose another
            file ! -32602 invalid_value: cwd is $HOME/project/a.txt, which is not a directory; create it or choose another
            load ! -32602 invalid_value: cwd is nowhere, which is not an absolute path
        "#]],
    );
}

#[test]
fn sessions_that_do_not_exist() {
    check(
        r#"
        hello
        ask prompt session/prompt {"sessionId":"unknown","prompt":[{"type":"text","text":"hi"}]}
        got prompt
        ask load session/load {"sessionId":"unknown","cwd":"$HOME/project","mcpServers":[]}
        got load
        ask mode session/set_mode {"sessionId":"unknown","modeId":"auto"}
        got mode
        ask option session/set_config_option {"sessionId":"unknown","configId":"mode","value":"auto"}
        got option
        tell session/cancel {"sessionId":"unknown"}
        ask cursor session/list {"cursor":"yesterday"}
        got cursor
        ask list session/list {}
        got list
        "#,
        &expect![[r#"
            prompt ! -32002 session_not_found: the session unknown is not open; load or resume it first
            load ! -32002 session_not_found: there is no session unknown; `crow-cli inspect` lists the sessions
            mode ! -32002 session_not_found: the session unknown is not open; load or resume it first
            option ! -32002 session_not_found: the session unknown is not open; load or resume it first
            cursor ! -32602 invalid_value: the cursor yesterday is not valid; request the first page again
            list = 
        "#]],
    );
}

#[test]
fn prompts_without_readable_content() {
    check(
        r#"
        model: text "I hear you."
        hello
        new A
        ask none session/prompt {"sessionId":"$A","prompt":[]}
        got none
        ask blank session/prompt {"sessionId":"$A","prompt":[{"type":"text","text":" \n"}]}
        got blank
        ask audio session/prompt {"sessionId":"$A","prompt":[{"type":"audio","data":"AAAA","mimeType":"audio/wav"}]}
        got audio
        ask smell session/prompt {"sessionId":"$A","prompt":[{"type":"smell","text":"rose"}]}
        got smell
        prompt hi A hello
        got hi
        "#,
        &expect![[r#"
            none ! -32602 invalid_value: the prompt is empty
            blank ! -32602 invalid_value: the prompt is empty
            audio ! -32602 invalid_value: the prompt contains audio, which Crow cannot read; send it as text or as a link
            smell ! -32602 invalid_value: the parameters do not fit the method: unknown variant `smell`, expected one of `text`, `image`, `audio`, `resource_link`, `resource`
            < text[msg-1] I hear you.
            < title hello
            hi = end_turn
            model saw "hello"
        "#]],
    );
}

#[test]
fn options_that_do_not_exist() {
    check(
        r#"
        hello
        new A
        ask option session/set_config_option {"sessionId":"$A","configId":"colour","value":"red"}
        got option
        ask value session/set_config_option {"sessionId":"$A","configId":"mode","value":"yolo"}
        got value
        ask model session/set_config_option {"sessionId":"$A","configId":"model","value":"gpt-99"}
        got model
        ask flag session/set_config_option {"sessionId":"$A","configId":"mode","type":"boolean","value":true}
        got flag
        ask mode session/set_mode {"sessionId":"$A","modeId":"yolo"}
        got mode
        ask good session/set_config_option {"sessionId":"$A","configId":"mode","value":"plan"}
        got good
        ask old session/set_mode {"sessionId":"$A","modeId":"auto"}
        got old
        "#,
        &expect![[r#"
            option ! -32602 invalid_value: there is no option colour; the options are: mode, model, thought_level
            value ! -32602 invalid_value: there is no mode yolo; the modes are: ask | accept-edits | plan | auto
            model ! -32602 invalid_value: the model gpt-99 is not configured; the models are: scripted
            flag ! -32602 invalid_value: the option mode accepts only its listed values
            mode ! -32602 invalid_value: there is no mode yolo; the modes are: ask | accept-edits | plan | auto
            good = ok "mode" "plan" "model" "scripted" "thought_level" "default"
            < mode plan
            < config_option_update
            old = ok
        "#]],
    );
}

#[test]
fn sessions_with_content_are_listed_by_another_process() {
    check(
        r#"
        model: text "One."
        model: text "Two."
        model: text "Three."
        hello
        new A
        new B
        new C
        prompt a A first
        got a
        prompt c C third
        got c
        prompt b A again
        got b
        again
        hello
        ask list session/list {}
        got list
        ask here session/list {"cwd":"$HOME/project"}
        got here
        ask elsewhere session/list {"cwd":"$HOME"}
        got elsewhere
        ask load session/load {"sessionId":"$A","cwd":"$HOME/project","mcpServers":[]}
        got load
        "#,
        &expect![[r#"
            < text[msg-1] One.
            < title first
            a = end_turn
            < text[msg-1] Two.
            < title third
            c = end_turn
            < text[msg-3] Three.
            b = end_turn
            again
            list = "$A" "first", "$C" "third"
            here = "$A" "first", "$C" "third"
            elsewhere = 
            < prompt[msg-0] first
            < text[msg-1] One.
            < prompt[msg-2] again
            < text[msg-3] Three.
            < title first
            load = ok "mode" "ask" "model" "scripted" "thought_level" "default"
            model saw "first"
            model saw "again"
        "#]],
    );
}
