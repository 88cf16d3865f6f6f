//! Golden transcripts: a script in, everything a client heard and what the model saw last out.
//!
//! ```text
//! client: {"terminal": true}    what the client offers; nothing without this line
//! api: messages                 the dialect the model is asked in; `chat` without this line
//! config: max_turn_requests: 2  a line of configuration; $HOME in it is the home folder
//! model-config: tool_calls: text  a field of the model's own configuration
//! file a.txt "hello\n"          a file of the project
//! model: text "Hi" | call …     the model's next answer
//! child TEXT: text "Hi" | …     its next answer in conversations that begin with a prompt with TEXT
//! > prompt list the files       sends a prompt
//! > answer reject_once          answers the next permission question so
//! > wait TEXT                   hears until a line contains TEXT
//! > asked N                     waits until the model has N requests
//! > model ANSWER                gives the model one more answer; $TASK1 in it is the first task it was told of
//! > run WORDS                   runs the binary with these arguments and shows what it says
//! > release                     lets the model go on
//! > cancel                      cancels the turn
//! > hung-up N                   waits until request N, from 0, lost its client
//! > end                         waits for the answer to the first prompt that has none
//! > kill                        kills the agent and starts another in the same world
//! > load                        loads the session in the agent that runs now
//! > resume                      resumes it there
//! > close                       closes the session
//! > delete                      deletes it
//! > list                        lists the sessions
//! > set OPTION VALUE            sets an option: true, false or one of its values
//! > mode VALUE                  sets the mode as older clients do
//! > steer TEXT                  says something into the turn that runs
//! > steered                     waits for the answer to that
//! > queue TEXT                  sends a prompt behind the one that runs
//! > withdraw                    takes the last prompt back
//! > buffer NAME "TEXT"          changes a file in the editor without saving it
//! > odd METHOD WAY              answers the next METHOD badly: error, null, twice, late, silence
//! > lost HOW                    the editor's machine has no warden: refused, not-found
//! ```
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a script that cannot be played is a mistake in the test"
)]
#![expect(clippy::disallowed_methods, reason = "a person starts the program as they like")]

mod seen;

use std::collections::VecDeque;
use std::path::Path;

use serde_json::{Value, json};

use crate::client::{Answered, FakeClient, Lost, Odd, World, names};
use crate::{Answer, ModelServer, Script};

/// Plays a script with the real binary and gives the transcript.
pub async fn play(binary: &Path, script: &str) -> String {
    let server = ModelServer::start(Script::default());
    let world = World::new(server.base_url());
    let capabilities = prepared(script, &server, &world);
    let client = FakeClient::start_with(binary, &world.home(), capabilities).await;
    let mut stage = Stage {
        binary,
        server,
        world,
        client,
        session: String::new(),
        prompts: VecDeque::new(),
        steered: None,
        before: String::new(),
    };
    let project = stage.world.project();
    stage.session = stage.client.new_session(&project).await;
    for line in script.lines().map(str::trim).filter(|line| line.starts_with('>')) {
        stage.act(line).await;
    }
    stage.close().await
}

/// Does what a script says outside of its actions; gives what the client offers.
fn prepared(script: &str, server: &ModelServer, world: &World) -> Value {
    let mut capabilities = json!({});
    for line in script.lines().map(str::trim) {
        if let Some(answer) = line.strip_prefix("model:") {
            server.add(Script::new([Answer::parse(answer.trim())]));
        } else if let Some(answer) = line.strip_prefix("child ") {
            let (text, answer) = answer.split_once(": ").expect("child TEXT: ANSWER");
            server.answer_to(text, Script::new([Answer::parse(answer.trim())]));
        } else if let Some(offered) = line.strip_prefix("client:") {
            capabilities = serde_json::from_str(offered).expect("client: {…}");
        } else if let Some(yaml) = line.strip_prefix("config: ") {
            world.configure_more(&yaml.replace("$HOME", &world.home().display().to_string()));
        } else if let Some(api) = line.strip_prefix("api: ") {
            world.speak(api);
        } else if let Some(yaml) = line.strip_prefix("model-config: ") {
            world.configure_model(yaml);
        } else if let Some(file) = line.strip_prefix("file ") {
            let (name, text) = named_text(file);
            world.file(name, &text);
        } else {
            assert!(line.is_empty() || line.starts_with('>'), "unknown line: {line}");
        }
    }
    capabilities
}

fn named_text(words: &str) -> (&str, String) {
    let (name, text) = words.split_once(' ').expect("NAME \"TEXT\"");
    (name, serde_json::from_str(text).expect("the text is a JSON string"))
}

struct Stage<'a> {
    binary: &'a Path,
    server: ModelServer,
    world: World,
    client: FakeClient,
    session: String,
    /// Prompts without an answer.
    prompts: VecDeque<u64>,
    /// Words for a running turn without an answer.
    steered: Option<u64>,
    before: String,
}

impl Stage<'_> {
    async fn act(&mut self, line: &str) {
        let action = line[1..].trim();
        let (verb, rest) = action.split_once(' ').unwrap_or((action, ""));
        match verb {
            "answer" => self.client.answers.push_back(rest.to_owned()),
            "wait" => self.client.until(rest).await,
            "asked" => self.server.wait_for_requests(rest.parse().expect("> asked N")).await,
            "release" => self.server.release(),
            "model" => {
                let tasks = self.tasks();
                let tasks = tasks.iter().enumerate().rev();
                let answer = tasks.fold(rest.to_owned(), |answer, (n, name)| {
                    answer.replace(&format!("$TASK{}", n + 1), name)
                });
                self.server.add(Script::new([Answer::parse(&answer)]));
            }
            "run" => self.run(rest).await,
            "hung-up" => self.server.disconnected(rest.parse().expect("> hung-up N")).await,
            "end" => {
                let id = self.prompts.pop_front().expect("a prompt runs");
                let answered = self.client.answer_to(id).await;
                self.client.say(spelled(&answered, "stopReason"));
            }
            "steered" => {
                let id = self.steered.take().expect("words were sent");
                let answered = self.client.answer_to(id).await;
                self.client.say(spelled(&answered, "outcome"));
            }
            "kill" => self.restart(line).await,
            "buffer" => {
                let (name, text) = named_text(rest);
                self.client.editor.buffers.insert(self.world.project().join(name), text);
            }
            "odd" => {
                let (method, way) = rest.split_once(' ').expect("> odd METHOD WAY");
                self.client.editor.misbehave(method, Odd::parse(way).expect("a way to answer badly"));
            }
            "lost" => {
                let lost = if rest == "refused" { Lost::Refused } else { Lost::NotFound };
                self.client.editor.lose_wardens(lost);
            }
            _ => {
                self.client.say(line);
                self.ask(verb, rest).await;
            }
        }
    }

    /// The tasks that the client was told of, in that order.
    fn tasks(&self) -> Vec<String> {
        let mut tasks = Vec::new();
        for (_, update) in &self.client.updates {
            let told = update.to_string();
            for name in told.split("Task ").filter_map(names::first) {
                if !tasks.contains(&name) {
                    tasks.push(name);
                }
            }
        }
        tasks
    }

    /// Runs the binary in the same world.
    async fn run(&mut self, words: &str) {
        let mut command = tokio::process::Command::new(self.binary);
        let words = words.replace("$SESSION", &self.session);
        command
            .args(words.split_whitespace())
            .env("HOME", self.world.home())
            .current_dir(self.world.project());
        let ran = command.output().await.expect("the binary starts");
        for line in
            String::from_utf8_lossy(&ran.stdout).lines().chain(String::from_utf8_lossy(&ran.stderr).lines())
        {
            let words: Vec<&str> = line.split_whitespace().collect();
            let line = words.join(" ").replace(&self.session, "$SESSION");
            self.client.say(format!("$ {}", names::hidden(&line)));
        }
    }

    /// Sends what the client has to say.
    async fn ask(&mut self, verb: &str, rest: &str) {
        let session = self.session.clone();
        let opened = json!({"sessionId": session, "cwd": self.world.project(), "mcpServers": []});
        let named = json!({"sessionId": session});
        match verb {
            "prompt" | "queue" => self.prompts.push_back(self.client.prompt(&session, rest).await),
            "cancel" => self.client.notify("session/cancel", named).await,
            "withdraw" => {
                let id = self.prompts.back().expect("a prompt runs");
                self.client.notify("$/cancel_request", json!({"requestId": id})).await;
            }
            "load" => self.request("session/load", opened, "loaded").await,
            "resume" => self.request("session/resume", opened, "resumed").await,
            "close" => self.request("session/close", named, "closed").await,
            "delete" => self.request("session/delete", named, "deleted").await,
            "list" => self.list().await,
            "mode" => {
                let params = json!({"sessionId": session, "modeId": rest});
                self.request("session/set_mode", params, "set").await;
            }
            "set" => self.set(rest).await,
            "steer" => {
                let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": rest}]});
                self.steered = Some(self.client.send("_session/steering", params).await);
                // What is answered later was heard later.
                drop(self.client.request("session/list", json!({})).await);
            }
            other => panic!("unknown action: {other}"),
        }
    }

    async fn request(&mut self, method: &str, params: Value, done: &str) {
        let answered = self.client.request(method, params).await;
        self.client.say(if answered.is_ok() { format!("= {done}") } else { spelled(&answered, "") });
    }

    async fn set(&mut self, words: &str) {
        let (option, value) = words.split_once(' ').expect("> set OPTION VALUE");
        let mut params = json!({"sessionId": self.session, "configId": option, "value": value});
        if let Ok(value) = value.parse::<bool>() {
            params["value"] = value.into();
            params["type"] = "boolean".into();
        }
        let answered = self.client.request("session/set_config_option", params).await;
        self.client.say(match &answered {
            Ok(result) => format!("= {}", options(result)),
            Err(_) => spelled(&answered, ""),
        });
    }

    async fn list(&mut self) {
        let answered = self.client.request("session/list", json!({})).await;
        let Ok(result) = &answered else { return self.client.say(spelled(&answered, "")) };
        let sessions = result["sessions"].as_array().into_iter().flatten();
        let sessions: Vec<String> = sessions
            .map(|one| format!("{} {}", one["sessionId"].as_str().unwrap_or_default(), one["title"]))
            .collect();
        self.client.say(format!("= {}", sessions.join(", ")).trim_end());
    }

    async fn restart(&mut self, line: &str) {
        let capabilities = self.client.editor.capabilities().clone();
        let mut fresh = FakeClient::start_with(self.binary, &self.world.home(), capabilities).await;
        fresh.hide(&self.session, "$SESSION");
        let old = std::mem::replace(&mut self.client, fresh);
        self.before += &old.kill().await;
        self.prompts.clear();
        self.client.say(line);
    }

    async fn close(mut self) -> String {
        for left in self.client.editor.unreleased() {
            self.client.say(format!("not released: {left}"));
        }
        assert_eq!(self.server.refused(), Vec::<String>::new(), "the model refused a request");
        let last = self.server.requests().last().cloned().unwrap_or_default();
        let messages = last["messages"].as_array().or(last["input"].as_array()).cloned().unwrap_or_default();
        for message in messages.iter().filter(|message| message["role"] != "system") {
            let home = self.world.home().display().to_string();
            self.client.say(format!("model saw {}", seen::summary(message, &home)));
        }
        // What a running program printed, and when, is chance.
        let log = self.before + &self.client.log();
        // Each request has one answer; the prompts that the script did not wait for as well.
        self.client.settle().await;
        log.lines().filter(|line| !line.starts_with("~ ")).map(|line| format!("{line}\n")).collect()
    }
}

fn spelled(answered: &Answered, field: &str) -> String {
    match answered {
        Ok(result) => format!("= {}", result[field].as_str().unwrap_or_default()),
        Err(error) => format!(
            "! {} {}: {}",
            error["code"],
            error["data"]["kind"].as_str().unwrap_or_default(),
            error["data"]["details"].as_str().unwrap_or_default()
        ),
    }
}

fn options(result: &Value) -> String {
    let options = result["configOptions"].as_array().into_iter().flatten();
    let options = options.map(|option| {
        let value = &option["currentValue"];
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{}={value}", option["id"].as_str().unwrap_or_default())
    });
    options.collect::<Vec<_>>().join(" ")
}
