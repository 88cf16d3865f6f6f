//! A project with one specified and planned feature, and a script language for its workflow.
//!
//! ```text
//! config: LINE             a line of configuration
//! client: {…}              the client's capabilities; none without this line
//! file PATH "TEXT"         a file of the project
//! server NAME WORDS        an MCP server of the configuration, see `crow_testkit::mcp_server`
//! repository               the project is a git repository with one commit of all files
//! tasks LINE               a line of tasks.md
//! windows                  the lines of tasks.md have Windows line endings
//! model: ANSWER            the model's next answer
//! child TEXT: ANSWER       its next answer in conversations whose first prompt contains TEXT
//! aside: ANSWER            its next answer to a request without tools; repeated forever
//! > prompt TEXT            sends a prompt; `⏎` in it is a line break
//! > answer WORD            sets the answer to the next permission request
//! > trust                  trusts the project's content, as a user does on the command line
//! > wait TEXT              waits until a log line contains TEXT
//! > asked N                waits until the model has N requests
//! > release                continues a held answer
//! > cancel                 cancels the turn
//! > end                    waits for the response to the prompt
//! > kill                   kills the agent and starts another one in the same home
//! > load                   loads the session in the current agent
//! > fork                   continues in a copy of the session
//! > new                    continues in a new session
//! > write PATH "TEXT"      writes a file, as another program does
//! > replace "OLD" "NEW"    changes tasks.md, as another program does
//! > show PATH              shows a file
//! > ticks                  shows the boxes of tasks.md, and the number of bytes that have changed
//! > plan                   shows the client's plan
//! > commands               shows the client's commands of extensions
//! > told TEXT              checks the last text that the model received; `⏎` in it is a line break
//! > held                   waits until a tracked command runs
//! > gone                   checks that no process of it is left
//! ```
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use crow_testkit::client::{FakeClient, RpcResult, TestHome, task_names};
use crow_testkit::tracked_command::TrackedCommand;
use crow_testkit::{Answer, ModelServer, Script, mcp_server};
use nix::sys::stat::Mode;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;

/// The feature's task list.
const TASKS: &str = "specs/001-photo-albums/tasks.md";

/// The beginning of a child agent's prompt.
const CHILD: &str = "You do one task of a larger piece of work";

/// The longest start of a command on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A command that signals its start and then waits, with a child process.
pub(super) fn leashed() -> String {
    let command = format!("exec 9>held; printf . >ready; {}", TrackedCommand::COMMAND);
    format!("call terminal {}", json!({"command": command}))
}

/// Runs a script; returns the transcript.
pub(super) fn played(script: &str) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(play(script))
}

async fn play(script: &str) -> String {
    let server = ModelServer::start(Script::default());
    let world = TestHome::new(server.base_url());
    let capabilities = lay_out(script, &server, &world);
    let leash = TrackedCommand::new(&world.project());
    let ready = world.project().join("ready");
    nix::unistd::mkfifo(&ready, Mode::S_IRWXU).expect("a pipe can be made");
    // A reader that can also write does not see end-of-file when a writer closes.
    let ready = pipe::OpenOptions::new().read_write(true).open_receiver(ready).expect("the pipe opens");
    let laid_out = fs::read(world.project().join(TASKS)).unwrap_or_default();
    let client = FakeClient::start_with(binary(), &world.home(), capabilities).await;
    let mut stage = Stage {
        server,
        world,
        client,
        session: String::new(),
        prompt: None,
        laid_out,
        leash,
        ready,
        before: String::new(),
    };
    let project = stage.world.project();
    stage.session = stage.client.new_session(&project).await;
    for line in script.lines().map(str::trim).filter(|line| line.starts_with('>')) {
        stage.act(line).await;
    }
    stage.close().await
}

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_crow-cli"))
}

/// Applies the settings of a script; returns the client's capabilities.
fn lay_out(script: &str, server: &ModelServer, world: &TestHome) -> Value {
    for (name, text) in [
        (".specify/feature.json", "{\"feature_directory\":\"specs/001-photo-albums\"}"),
        ("specs/001-photo-albums/spec.md", include_str!("pages/spec.md")),
        ("specs/001-photo-albums/plan.md", include_str!("pages/plan.md")),
    ] {
        write(world, name, text);
    }
    let (mut capabilities, mut tasks, mut end) = (json!({}), Vec::new(), "\n");
    let mut is_repository = false;
    let (mut asides, mut servers) = (Vec::new(), serde_json::Map::new());
    for line in script.lines().map(str::trim) {
        if let Some(answer) = line.strip_prefix("model:") {
            server.add_answers(Script::new([Answer::parse(answer.trim())]));
        } else if let Some(answer) = line.strip_prefix("child ") {
            let (text, answer) = answer.split_once(": ").expect("child TEXT: ANSWER");
            server.add_answers_for(text, Script::new([Answer::parse(answer.trim())]));
        } else if let Some(answer) = line.strip_prefix("aside:") {
            asides.push(Answer::parse(answer.trim()));
        } else if let Some(offered) = line.strip_prefix("client:") {
            capabilities = serde_json::from_str(offered).expect("client: {…}");
        } else if let Some(yaml) = line.strip_prefix("config: ") {
            world.add_config(yaml);
        } else if let Some(server) = line.strip_prefix("server ") {
            let mut words = server.split_whitespace();
            let name = words.next().expect("server NAME WORDS");
            let (command, args) = mcp_server::command(&words.collect::<Vec<_>>());
            servers.insert(name.to_owned(), json!({"command": command, "args": args}));
        } else if let Some(file) = line.strip_prefix("file ") {
            let (name, text) = named_text(file);
            write(world, name, &text);
        } else if let Some(line) = line.strip_prefix("tasks") {
            tasks.push(line.trim_start());
        } else if line == "repository" {
            is_repository = true;
        } else if line == "windows" {
            end = "\r\n";
        } else {
            assert!(line.is_empty() || line.starts_with('>'), "unknown line: {line}");
        }
    }
    server.set_side_answers(Script::new(asides));
    if !servers.is_empty() {
        world.add_config(&format!("mcpServers: {}", Value::Object(servers)));
    }
    if !tasks.is_empty() {
        let tasks: String = tasks.iter().map(|line| format!("{line}{end}")).collect();
        write(world, TASKS, &tasks);
    }
    if is_repository {
        commit_all(world);
    }
    capabilities
}

#[expect(clippy::disallowed_methods, reason = "the repository is made as a person makes one")]
fn commit_all(world: &TestHome) {
    let makes = "git init -q . && git add . && git -c user.name=a -c user.email=a@b commit -qm x";
    let made = std::process::Command::new("sh").args(["-c", makes]).current_dir(world.project()).status();
    assert!(made.expect("it runs").success());
}

fn named_text(words: &str) -> (&str, String) {
    let (name, text) = words.split_once(' ').expect("NAME \"TEXT\"");
    (name, serde_json::from_str(text).expect("the text is a JSON string"))
}

fn write(world: &TestHome, name: &str, text: &str) {
    let path = world.project().join(name);
    fs::create_dir_all(path.parent().expect("it has a folder")).expect("a folder can be made");
    fs::write(path, text).expect("a file can be written");
}

struct Stage {
    server: ModelServer,
    world: TestHome,
    client: FakeClient,
    session: String,
    /// The prompt without a response.
    prompt: Option<u64>,
    laid_out: Vec<u8>,
    leash: TrackedCommand,
    ready: pipe::Receiver,
    before: String,
}

impl Stage {
    async fn act(&mut self, line: &str) {
        let action = line[1..].trim();
        let (verb, rest) = action.split_once(' ').unwrap_or((action, ""));
        match verb {
            "answer" => self.client.permission_answers.push_back(rest.to_owned()),
            "trust" => trust(&self.world),
            "wait" => self.client.wait_for_line(rest).await,
            "asked" => self.server.wait_for_requests(rest.parse().expect("> asked N")).await,
            "release" => self.server.release(),
            "end" => {
                let answered = self.client.response_to(self.prompt.take().expect("a prompt runs")).await;
                self.client.add_to_log(ended(&answered));
            }
            "write" => {
                let (name, text) = named_text(rest);
                write(&self.world, name, &text);
            }
            "replace" => self.replace(rest),
            "held" => {
                let ready = tokio::time::timeout(PATIENCE, self.ready.read_u8()).await;
                assert_eq!(ready.expect("the command starts in time").expect("the pipe can be read"), b'.');
                assert!(self.leash.is_running(), "the command holds its pipe");
            }
            "gone" => self.leash.wait_until_gone("at the end").await,
            "told" => {
                let last = self.server.requests().last().map(|request| request["messages"].to_string());
                let text = json!(rest.replace('⏎', "\n")).to_string();
                let last = last.unwrap_or_default();
                assert!(last.contains(text.trim_matches('"')), "the model was not told {text}: {last}");
            }
            "show" => self.show(rest),
            "ticks" => self.ticks(),
            "plan" => self.plan(),
            "commands" => self.commands(),
            _ => {
                self.client.add_to_log(line);
                self.ask(verb, rest).await;
            }
        }
    }

    /// Sends a message of the client.
    async fn ask(&mut self, verb: &str, rest: &str) {
        let project = self.world.project();
        let opened = json!({"sessionId": self.session, "cwd": project, "mcpServers": []});
        match verb {
            "prompt" => {
                self.prompt = Some(self.client.prompt(&self.session, &rest.replace('⏎', "\n")).await);
            }
            "cancel" => self.client.notify("session/cancel", json!({"sessionId": self.session})).await,
            "kill" => {
                let capabilities = self.client.editor.capabilities().clone();
                let fresh = FakeClient::start_with(binary(), &self.world.home(), capabilities).await;
                let old = std::mem::replace(&mut self.client, fresh);
                self.before += &old.kill().await;
                self.prompt = None;
            }
            "load" => {
                drop(self.client.request("session/load", opened).await.expect("the session loads"));
            }
            "fork" => {
                let copy = self.client.request("session/fork", opened).await.expect("it is copied");
                self.session = copy["sessionId"].as_str().expect("it has an id").to_owned();
            }
            "new" => self.session = self.client.new_session(&project.join(rest)).await,
            other => panic!("unknown action: {other}"),
        }
    }

    fn read(&self, name: &str) -> Option<String> {
        let bytes = fs::read(self.world.project().join(name)).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn replace(&self, words: &str) {
        let mut words = serde_json::Deserializer::from_str(words).into_iter::<String>();
        let mut word = || words.next().expect("OLD NEW").expect("a JSON string");
        let (old, new) = (word(), word());
        let text = self.read(TASKS).expect("tasks.md is there");
        assert!(text.contains(&old), "tasks.md has no {old:?}:\n{text}");
        write(&self.world, TASKS, &text.replacen(&old, &new, 1));
    }

    fn show(&mut self, name: &str) {
        let Some(text) = self.read(name) else { return self.client.add_to_log(format!("# no {name}")) };
        self.client.add_to_log(format!("# {name}"));
        for line in text.lines().filter(|line| !line.is_empty()) {
            self.client.add_to_log(format!("# | {line}"));
        }
    }

    fn ticks(&mut self) {
        let text = self.read(TASKS).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.strip_prefix("- ["));
        let boxes: Vec<String> = lines.map(|line| format!("[{}", &line[..7.min(line.len())])).collect();
        let now = text.as_bytes();
        let n_other = now.iter().zip(&self.laid_out).filter(|(now, then)| now != then).count();
        let longer = now.len().abs_diff(self.laid_out.len());
        self.client
            .add_to_log(format!("# {}; {n_other} bytes differ, {longer} more or less", boxes.join(" ")));
    }

    fn plan(&mut self) {
        let is_plan = |(_, update): &&(String, Value)| update["sessionUpdate"] == "plan";
        let plan =
            self.client.updates.iter().rev().find(is_plan).map(|(_, update)| update["entries"].clone());
        for entry in plan.as_ref().and_then(Value::as_array).into_iter().flatten() {
            let word = |name: &str| entry[name].as_str().unwrap_or_default();
            let line = format!(
                "# {} {} {} {}",
                word("priority"),
                word("status"),
                word("content"),
                entry["_meta"]["speckit"]
            );
            self.client.add_to_log(line);
        }
    }

    fn commands(&mut self) {
        let of_session = self.client.updates.iter().filter(|(session, _)| *session == self.session);
        let mut told =
            of_session.rev().filter(|(_, update)| update["sessionUpdate"] == "available_commands_update");
        let told = told.next().map(|(_, update)| update["availableCommands"].clone()).unwrap_or_default();
        let names = told.as_array().into_iter().flatten();
        let lines: Vec<String> = names
            .map(|command| {
                format!("/{} {}", command["name"].as_str().unwrap_or_default(), command["description"])
            })
            .filter(|line| line.matches('.').count() > 1)
            .collect();
        self.client.add_to_log(format!("# commands: {}", lines.join(", ")));
    }

    async fn close(mut self) -> String {
        assert_eq!(self.server.rejections(), Vec::<String>::new(), "after:\n{}", self.client.log());
        for line in self.asked() {
            self.client.add_to_log(line);
        }
        // The output of running programs varies.
        let log = self.before + &self.client.log();
        self.client.wait_for_responses().await;
        let lines = log.lines().filter(|line| !line.starts_with("~ ") && !line.starts_with("< title"));
        let mut lines: Vec<String> =
            lines.map(|line| format!("{}\n", cut(&task_names::mask_task_names(line)))).collect();
        // Children that are cancelled together end in any order.
        let is_cut = |line: &String| line.starts_with("< call ") && line.contains(" was cancelled.");
        for run in lines.chunk_by_mut(|a, b| is_cut(a) && is_cut(b)) {
            run.sort();
        }
        lines.concat()
    }

    /// Returns the model requests: of each the part after its last reply; those of children after the others.
    fn asked(&self) -> Vec<String> {
        let requests = self.server.requests();
        let home = self.world.home().display().to_string();
        let mut asked = Vec::new();
        let mut of_children = Vec::new();
        for request in &requests {
            let messages = request["messages"].as_array().cloned().unwrap_or_default();
            let at =
                messages.iter().rposition(|message| message["role"] == "assistant").map_or(1, |at| at + 1);
            let news = messages[at.min(messages.len())..].iter().map(|message| heard(message, &home));
            let line = news.collect::<Vec<_>>().join(" + ");
            let first = messages.get(1).map(|message| message["content"].to_string()).unwrap_or_default();
            match first.contains(CHILD) {
                true => of_children.push(format!("child asked {line}")),
                false => asked.push(format!("asked {line}")),
            }
        }
        of_children.sort();
        asked.extend(of_children);
        asked
    }
}

/// Characters of a line that are compared; other tests compare the rest.
const LINE_CHARS_MAX: usize = 400;

fn cut(line: &str) -> String {
    line.chars().take(LINE_CHARS_MAX).collect()
}

/// Trusts the project's content.
#[expect(clippy::disallowed_methods, reason = "a person starts the program as they like")]
fn trust(world: &TestHome) {
    let mut command = std::process::Command::new(binary());
    command.args(["trust", "add", "--yes"]).current_dir(world.project()).env("HOME", world.home());
    let trusted = command.output().expect("it runs");
    assert!(trusted.status.success(), "{trusted:?}");
}

fn ended(answered: &RpcResult) -> String {
    match answered {
        Ok(result) => format!("= {}", result["stopReason"].as_str().unwrap_or_default()),
        Err(error) => format!("! {} {}", error["data"]["kind"], error["data"]["details"]),
    }
}

/// Renders a message to the model: of a hidden resource its name, its first line, and its tasks.
fn heard(message: &Value, home: &str) -> String {
    let role = message["role"].as_str().unwrap_or_default();
    let content = &message["content"];
    let text = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
    let text = task_names::mask_task_names(&text.replace(home, "$HOME"));
    let mut spelled = String::new();
    let mut rest = text.as_str();
    while let Some((before, behind)) = rest.split_once("<resource uri=\"") {
        let (uri, behind) = behind.split_once("\">").unwrap_or((behind, ""));
        let (inside, behind) = behind.split_once("\n</resource>").unwrap_or((behind, ""));
        spelled.push_str(&short(before));
        let first = inside.trim().lines().next().unwrap_or_default();
        spelled.push_str(&format!("<{uri}: {}{}>", short(first), tasks(inside)));
        rest = behind;
    }
    format!("{role}: {}{}{}", spelled, short(rest), tasks(rest))
}

/// Returns the tasks in a prompt.
fn tasks(prompt: &str) -> String {
    let ids = prompt.split("<task id=\"").skip(1).filter_map(|task| task.split('"').next());
    ids.map(|id| format!(" ({id})")).collect()
}

/// Characters of one part of a message that are compared.
const PIECE_CHARS_MAX: usize = 160;

fn short(text: &str) -> String {
    let text = text.replace('\n', "⏎");
    if text.chars().count() <= PIECE_CHARS_MAX {
        return text;
    }
    text.chars().take(PIECE_CHARS_MAX).collect::<String>() + "…"
}
