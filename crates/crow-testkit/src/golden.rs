//! Golden transcripts: runs a script and returns everything that the client received and the model's last request.
//!
//! ```text
//! client: {"terminal": true}    the client's capabilities; none without this line
//! api: messages                 the model API; `chat` without this line
//! config: max_turn_requests: 2  a line of configuration; $HOME in it is the home directory
//! model-config: tool_calls: text  a field of the model's configuration
//! file a.txt "hello\n"          a file of the project
//! model: text "Hi" | call …     the model's next answer
//! child TEXT: text "Hi" | …     its next answer in conversations whose first prompt contains TEXT
//! > prompt list the files       sends a prompt
//! > answer reject_once          sets the answer to the next permission request
//! > wait TEXT                   waits until a log line contains TEXT
//! > asked N                     waits until the model has N requests
//! > model ANSWER                adds an answer of the model; $TASK1 in it is the first task name received
//! > run WORDS                   runs the binary with these arguments and logs its output
//! > release                     continues a held answer
//! > cancel                      cancels the turn
//! > hung-up N                   waits until the client of request N, from 0, disconnected
//! > end                         waits for the response to the oldest open prompt
//! > kill                        kills the agent and starts another one in the same home
//! > load                        loads the session in the current agent
//! > resume                      resumes the session in the current agent
//! > close                       closes the session
//! > delete                      deletes the session
//! > list                        lists the sessions
//! > set OPTION VALUE            sets an option: true, false or one of its values
//! > mode VALUE                  sets the mode as older clients do
//! > steer TEXT                  steers the running turn
//! > steered                     waits for the response to that
//! > queue TEXT                  sends a prompt while another one runs
//! > withdraw                    withdraws the last prompt
//! > buffer NAME "TEXT"          changes a file in the editor without saving it
//! > odd METHOD WAY              makes the next response to METHOD faulty: error, null, twice, late, silence
//! > lost HOW                    removes the supervisor from the editor's machine: refused, not-found
//! ```
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a script that cannot be played is a mistake in the test"
)]
#![expect(clippy::disallowed_methods, reason = "a person starts the program as they like")]

mod request_summary;

use std::collections::VecDeque;
use std::path::Path;

use serde_json::{Value, json};

use crate::client::{FakeClient, MissingProgram, ResponseFault, RpcResult, TestHome, task_names};
use crate::{Answer, ModelServer, Script};

/// Starts the agents of a script.
pub trait StartAgent {
    /// Starts an agent with the configuration of this home; nothing is sent to it.
    fn start_agent(&self, home: &TestHome) -> FakeClient;

    /// Returns the program for `> run`.
    fn binary(&self) -> &Path {
        panic!("this agent has no program")
    }
}

impl StartAgent for &Path {
    fn start_agent(&self, home: &TestHome) -> FakeClient {
        FakeClient::start_silent(self, &home.home())
    }

    fn binary(&self) -> &Path {
        self
    }
}

/// Runs a script and returns the transcript.
pub async fn play(agent: &dyn StartAgent, script: &str) -> String {
    let server = ModelServer::start(Script::default());
    let home = TestHome::new(server.base_url());
    let capabilities = apply_settings(script, &server, &home);
    let mut client = agent.start_agent(&home);
    client.initialize(capabilities).await.expect("the agent says hello");
    let mut runner = ScriptRunner {
        agent,
        server,
        home,
        client,
        session: String::new(),
        prompts: VecDeque::new(),
        steering_id: None,
        log_before_restart: String::new(),
    };
    let project = runner.home.project();
    runner.session = runner.client.new_session(&project).await;
    for line in script.lines().map(str::trim).filter(|line| line.starts_with('>')) {
        runner.run_action(line).await;
    }
    runner.finish().await
}

/// Applies the settings of a script; returns the client's capabilities.
fn apply_settings(script: &str, server: &ModelServer, home: &TestHome) -> Value {
    let mut capabilities = json!({});
    for line in script.lines().map(str::trim) {
        if let Some(answer) = line.strip_prefix("model:") {
            server.add_answers(Script::new([Answer::parse(answer.trim())]));
        } else if let Some(answer) = line.strip_prefix("child ") {
            let (text, answer) = answer.split_once(": ").expect("child TEXT: ANSWER");
            server.add_answers_for(text, Script::new([Answer::parse(answer.trim())]));
        } else if let Some(declared) = line.strip_prefix("client:") {
            capabilities = serde_json::from_str(declared).expect("client: {…}");
        } else if let Some(yaml) = line.strip_prefix("config: ") {
            home.add_config(&yaml.replace("$HOME", &home.home().display().to_string()));
        } else if let Some(api) = line.strip_prefix("api: ") {
            home.set_model_api(api);
        } else if let Some(yaml) = line.strip_prefix("model-config: ") {
            home.add_model_config(yaml);
        } else if let Some(file) = line.strip_prefix("file ") {
            let (name, text) = parse_named_text(file);
            home.write_file(name, &text);
        } else {
            assert!(line.is_empty() || line.starts_with('>'), "unknown line: {line}");
        }
    }
    capabilities
}

fn parse_named_text(arguments: &str) -> (&str, String) {
    let (name, text) = arguments.split_once(' ').expect("NAME \"TEXT\"");
    (name, serde_json::from_str(text).expect("the text is a JSON string"))
}

struct ScriptRunner<'a> {
    agent: &'a dyn StartAgent,
    server: ModelServer,
    home: TestHome,
    client: FakeClient,
    session: String,
    /// Prompts without a response.
    prompts: VecDeque<u64>,
    /// The steering request without a response.
    steering_id: Option<u64>,
    log_before_restart: String,
}

impl ScriptRunner<'_> {
    async fn run_action(&mut self, line: &str) {
        let action = line[1..].trim();
        let (verb, rest) = action.split_once(' ').unwrap_or((action, ""));
        match verb {
            "answer" => self.client.permission_answers.push_back(rest.to_owned()),
            "wait" => self.client.wait_for_line(rest).await,
            "asked" => self.server.wait_for_requests(rest.parse().expect("> asked N")).await,
            "release" => self.server.release(),
            "model" => {
                let tasks = self.task_names();
                let tasks = tasks.iter().enumerate().rev();
                let answer = tasks.fold(rest.to_owned(), |answer, (n, name)| {
                    answer.replace(&format!("$TASK{}", n + 1), name)
                });
                self.server.add_answers(Script::new([Answer::parse(&answer)]));
            }
            "run" => self.run_binary(rest).await,
            "hung-up" => self.server.wait_for_disconnect(rest.parse().expect("> hung-up N")).await,
            "end" => {
                let id = self.prompts.pop_front().expect("a prompt runs");
                let response = self.client.response_to(id).await;
                self.client.add_to_log(render_response(&response, "stopReason"));
            }
            "steered" => {
                let id = self.steering_id.take().expect("words were sent");
                let response = self.client.response_to(id).await;
                self.client.add_to_log(render_response(&response, "outcome"));
            }
            "kill" => self.restart(line).await,
            "buffer" => {
                let (name, text) = parse_named_text(rest);
                self.client.editor.buffers.insert(self.home.project().join(name), text);
            }
            "odd" => {
                let (method, fault) = rest.split_once(' ').expect("> odd METHOD WAY");
                self.client
                    .editor
                    .fail_next(method, ResponseFault::parse(fault).expect("a way to answer badly"));
            }
            "lost" => {
                let missing =
                    if rest == "refused" { MissingProgram::Refused } else { MissingProgram::NotFound };
                self.client.editor.remove_supervisor(missing);
            }
            _ => {
                self.client.add_to_log(line);
                self.send_action(verb, rest).await;
            }
        }
    }

    /// Returns the task names that the client received, in order.
    fn task_names(&self) -> Vec<String> {
        let mut tasks = Vec::new();
        for (_, update) in &self.client.updates {
            let text = update.to_string();
            for name in text.split("Task ").filter_map(task_names::leading_task_name) {
                if !tasks.contains(&name) {
                    tasks.push(name);
                }
            }
        }
        tasks
    }

    /// Runs the binary in the same home.
    async fn run_binary(&mut self, arguments: &str) {
        let mut command = tokio::process::Command::new(self.agent.binary());
        let arguments = arguments.replace("$SESSION", &self.session);
        command
            .args(arguments.split_whitespace())
            .env("HOME", self.home.home())
            .current_dir(self.home.project());
        let output = command.output().await.expect("the binary starts");
        for line in String::from_utf8_lossy(&output.stdout)
            .lines()
            .chain(String::from_utf8_lossy(&output.stderr).lines())
        {
            let arguments: Vec<&str> = line.split_whitespace().collect();
            let line = arguments.join(" ").replace(&self.session, "$SESSION");
            self.client.add_to_log(format!("$ {}", task_names::mask_task_names(&line)));
        }
    }

    /// Sends a message of the client.
    async fn send_action(&mut self, verb: &str, rest: &str) {
        let session = self.session.clone();
        let open_params = json!({"sessionId": session, "cwd": self.home.project(), "mcpServers": []});
        let session_params = json!({"sessionId": session});
        match verb {
            "prompt" | "queue" => self.prompts.push_back(self.client.prompt(&session, rest).await),
            "cancel" => self.client.notify("session/cancel", session_params).await,
            "withdraw" => {
                let id = self.prompts.back().expect("a prompt runs");
                self.client.notify("$/cancel_request", json!({"requestId": id})).await;
            }
            "load" => self.request("session/load", open_params, "loaded").await,
            "resume" => self.request("session/resume", open_params, "resumed").await,
            "close" => self.request("session/close", session_params, "closed").await,
            "delete" => self.request("session/delete", session_params, "deleted").await,
            "list" => self.list_sessions().await,
            "mode" => {
                let params = json!({"sessionId": session, "modeId": rest});
                self.request("session/set_mode", params, "set").await;
            }
            "set" => self.set_option(rest).await,
            "steer" => {
                let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": rest}]});
                self.steering_id = Some(self.client.send("_session/steering", params).await);
                // A later response arrives after this one.
                drop(self.client.request("session/list", json!({})).await);
            }
            other => panic!("unknown action: {other}"),
        }
    }

    async fn request(&mut self, method: &str, params: Value, past_tense: &str) {
        let response = self.client.request(method, params).await;
        self.client.add_to_log(if response.is_ok() {
            format!("= {past_tense}")
        } else {
            render_response(&response, "")
        });
    }

    async fn set_option(&mut self, arguments: &str) {
        let (option, value) = arguments.split_once(' ').expect("> set OPTION VALUE");
        let mut params = json!({"sessionId": self.session, "configId": option, "value": value});
        if let Ok(value) = value.parse::<bool>() {
            params["value"] = value.into();
            params["type"] = "boolean".into();
        }
        let response = self.client.request("session/set_config_option", params).await;
        self.client.add_to_log(match &response {
            Ok(result) => format!("= {}", render_options(result)),
            Err(_) => render_response(&response, ""),
        });
    }

    async fn list_sessions(&mut self) {
        let response = self.client.request("session/list", json!({})).await;
        let Ok(result) = &response else { return self.client.add_to_log(render_response(&response, "")) };
        let sessions = result["sessions"].as_array().into_iter().flatten();
        let sessions: Vec<String> = sessions
            .map(|session| {
                format!("{} {}", session["sessionId"].as_str().unwrap_or_default(), session["title"])
            })
            .collect();
        self.client.add_to_log(format!("= {}", sessions.join(", ")).trim_end());
    }

    async fn restart(&mut self, line: &str) {
        let capabilities = self.client.editor.capabilities().clone();
        let mut new_client = self.agent.start_agent(&self.home);
        new_client.initialize(capabilities).await.expect("the agent says hello");
        new_client.mask(&self.session, "$SESSION");
        let old_client = std::mem::replace(&mut self.client, new_client);
        self.log_before_restart += &old_client.kill().await;
        self.prompts.clear();
        self.client.add_to_log(line);
    }

    async fn finish(mut self) -> String {
        for terminal in self.client.editor.unreleased() {
            self.client.add_to_log(format!("not released: {terminal}"));
        }
        assert_eq!(self.server.rejections(), Vec::<String>::new(), "the model refused a request");
        let last_request = self.server.requests().last().cloned().unwrap_or_default();
        let messages = last_request["messages"]
            .as_array()
            .or(last_request["input"].as_array())
            .cloned()
            .unwrap_or_default();
        for message in messages.iter().filter(|message| message["role"] != "system") {
            let home = self.home.home().display().to_string();
            self.client
                .add_to_log(format!("model saw {}", request_summary::summarize_message(message, &home)));
        }
        // The output of running programs varies.
        let log = self.log_before_restart + &self.client.log();
        // Wait for the responses that the script did not wait for.
        self.client.wait_for_responses().await;
        log.lines().filter(|line| !line.starts_with("~ ")).map(|line| format!("{line}\n")).collect()
    }
}

fn render_response(response: &RpcResult, field: &str) -> String {
    match response {
        Ok(result) => format!("= {}", result[field].as_str().unwrap_or_default()),
        Err(error) => format!(
            "! {} {}: {}",
            error["code"],
            error["data"]["kind"].as_str().unwrap_or_default(),
            error["data"]["details"].as_str().unwrap_or_default()
        ),
    }
}

fn render_options(result: &Value) -> String {
    let options = result["configOptions"].as_array().into_iter().flatten();
    let options = options.map(|option| {
        let value = &option["currentValue"];
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{}={value}", option["id"].as_str().unwrap_or_default())
    });
    options.collect::<Vec<_>>().join(" ")
}
