//! Golden transcripts: a script in, everything a client heard and what the model saw last out.
//!
//! ```text
//! file a.txt "hello\n"          a file of the project
//! model: text "Hi" | call …     the model's next answer
//! > prompt list the files       sends a prompt
//! > answer reject_once          answers the next permission question so
//! > wait TEXT                   hears until a line contains TEXT
//! > asked N                     waits until the model has N requests
//! > cancel                      cancels the turn
//! > hung-up N                   waits until request N, from 0, lost its client
//! > end                         waits for the answer to the prompt
//! > kill                        kills the agent and starts another in the same world
//! > load                        loads the session in the agent that runs now
//! ```
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a script that cannot be played is a mistake in the test"
)]

use std::path::Path;

use serde_json::{Value, json};

use crate::client::{Answered, FakeClient, World};
use crate::{Answer, ModelServer, Script};

/// Characters of a message that the end of a transcript shows.
const SHOWN_CHARS: usize = 120;

/// Plays a script with the real binary and gives the transcript.
pub async fn play(binary: &Path, script: &str) -> String {
    let server = ModelServer::start(Script::default());
    let world = World::new(server.base_url());
    let client = FakeClient::start(binary, &world.home()).await;
    let mut stage =
        Stage { binary, server, world, client, session: String::new(), prompt: None, before: String::new() };
    stage.prepare(script);
    let project = stage.world.project();
    stage.session = stage.client.new_session(&project).await;
    for line in script.lines().map(str::trim).filter(|line| line.starts_with('>')) {
        stage.act(line).await;
    }
    stage.close()
}

struct Stage<'a> {
    binary: &'a Path,
    server: ModelServer,
    world: World,
    client: FakeClient,
    session: String,
    prompt: Option<u64>,
    before: String,
}

impl Stage<'_> {
    fn prepare(&mut self, script: &str) {
        for line in script.lines().map(str::trim) {
            if let Some(answer) = line.strip_prefix("model:") {
                self.server.add(Script::new([Answer::parse(answer.trim())]));
            } else if let Some(file) = line.strip_prefix("file ") {
                let (name, text) = file.split_once(' ').expect("file NAME \"TEXT\"");
                let text: String = serde_json::from_str(text).expect("the text is a JSON string");
                self.world.file(name, &text);
            } else {
                assert!(line.is_empty() || line.starts_with('>'), "unknown line: {line}");
            }
        }
    }

    async fn act(&mut self, line: &str) {
        let action = line[1..].trim();
        let (verb, rest) = action.split_once(' ').unwrap_or((action, ""));
        match verb {
            "prompt" => {
                self.client.say(line);
                let params = json!({"sessionId": self.session, "prompt": [{"type": "text", "text": rest}]});
                self.prompt = Some(self.client.send("session/prompt", params).await);
            }
            "answer" => self.client.answers.push_back(rest.to_owned()),
            "wait" => self.client.until(rest).await,
            "asked" => self.server.wait_for_requests(rest.parse().expect("> asked N")).await,
            "hung-up" => self.server.disconnected(rest.parse().expect("> hung-up N")).await,
            "cancel" => {
                self.client.say(line);
                self.client.notify("session/cancel", json!({"sessionId": self.session})).await;
            }
            "end" => {
                let id = self.prompt.take().expect("a prompt runs");
                let answered = self.client.answer_to(id).await;
                self.client.say(spelled(&answered, "stopReason"));
            }
            "kill" => self.restart(line).await,
            "load" => {
                self.client.say(line);
                let params =
                    json!({"sessionId": self.session, "cwd": self.world.project(), "mcpServers": []});
                let answered = self.client.request("session/load", params).await;
                self.client.say(if answered.is_ok() { "= loaded".into() } else { spelled(&answered, "") });
            }
            other => panic!("unknown action: {other}"),
        }
    }

    async fn restart(&mut self, line: &str) {
        let mut fresh = FakeClient::start(self.binary, &self.world.home()).await;
        fresh.hide(&self.session, "$SESSION");
        let old = std::mem::replace(&mut self.client, fresh);
        self.before += &old.kill().await;
        self.client.say(line);
    }

    fn close(mut self) -> String {
        assert_eq!(self.server.refused(), Vec::<String>::new(), "the model refused a request");
        let last = self.server.requests().last().cloned().unwrap_or_default();
        let messages = last["messages"].as_array().cloned().unwrap_or_default();
        for message in messages.iter().filter(|message| message["role"] != "system") {
            self.client.say(format!("model saw {}", summary(message)));
        }
        // What a running program printed, and when, is chance.
        let log = self.before + &self.client.log();
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

fn summary(message: &Value) -> String {
    let role = message["role"].as_str().unwrap_or_default();
    let mut line = match message["content"].as_str() {
        Some(text) => format!("{role}: {:?}", text.chars().take(SHOWN_CHARS).collect::<String>()),
        None => format!("{role}:"),
    };
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let function = &call["function"];
        line += &format!(" {}({})", function["name"].as_str().unwrap_or_default(), function["arguments"]);
    }
    line
}
