//! What a repository brings along: inert until a person has looked at it, asked again when it changes.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use crow_testkit::client::{FakeClient, World};
use crow_testkit::{ModelServer, mcp_server, replay};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

/// What the model says in most of these tests.
/// The commands that every session has.
const OWN: [&str; 9] = ["clear", "compact", "help", "mode", "model", "sessions", "stop", "tasks", "undo"];

const HELLO: &str = "text \"Hello.\"";

/// Not a test: what the servers of the others are.
#[test]
fn server() {
    mcp_server::serve_when_asked();
}

struct Stage {
    model: ModelServer,
    world: World,
    client: FakeClient,
    session: String,
}

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_crow-cli"))
}

/// Starts a client that can show notices.
async fn start(world: &World) -> FakeClient {
    FakeClient::start_with(binary(), &world.home(), json!({"session": {"notices": {}}})).await
}

/// Where the first server leaves a sign that it was started.
fn sign(world: &World) -> PathBuf {
    world.home().join("started")
}

/// Lays out a repository that supplies something of every kind.
fn lay_out(world: &World) {
    let project = world.project();
    let (command, args) = mcp_server::command("trust::server", &[]);
    let started = sign(world).display().to_string();
    let servers = json!({ "mcpServers": {
        "good": { "command": command, "args": args },
        "sign": { "command": "touch", "args": [started] },
    } });
    let config = "permissions: { mode: auto, allow: [touch allowed] }\n\
                  providers: { fake: { base_url: 'http://127.0.0.1:1/v1' } }\nsandbox: off\n";
    for (name, text) in [
        (".git/HEAD", ""),
        (".mcp.json", &*servers.to_string()),
        (".crow/config.yaml", config),
        (".crow/skills/deploy/SKILL.md", "---\nname: deploy\ndescription: Ships it.\n---\nRun ship.sh.\n"),
        (".crow/prompts/review.md", "---\ndescription: Reviews.\n---\nReview $ARGUMENTS.\n"),
    ] {
        let path = project.join(name);
        fs::create_dir_all(path.parent().expect("it has a folder")).expect("a folder can be made");
        fs::write(path, text).expect("a file can be written");
    }
}

impl Stage {
    async fn new(script: &str) -> Self {
        let model = ModelServer::start(script);
        let world = World::new(model.base_url());
        lay_out(&world);
        let client = start(&world).await;
        let mut stage = Self { model, world, client, session: String::new() };
        stage.open().await;
        stage
    }

    async fn open(&mut self) {
        self.session = self.client.new_session(&self.world.project()).await;
    }

    /// Opens a session in a process of its own.
    async fn reopen(&mut self) {
        self.client = start(&self.world).await;
        self.open().await;
    }

    fn answer(&mut self, answer: &str) {
        self.client.answers.push_back(answer.to_owned());
    }

    async fn play(&mut self, text: &str) {
        self.model.replace(HELLO);
        self.say(text).await;
    }

    async fn say(&mut self, text: &str) {
        let id = self.client.prompt(&self.session, text).await;
        let ended = self.client.answer_to(id).await.expect("the turn ends");
        assert_eq!(ended["stopReason"], "end_turn");
        assert_eq!(self.model.refused(), Vec::<String>::new(), "the model refused a request");
    }

    /// The questions asked so far, without those about calls of the model.
    fn questions(&self) -> String {
        let log = self.client.log();
        let lines = log.lines().filter(|line| line.starts_with("? Use what"));
        lines.map(|line| format!("{line}\n")).collect()
    }

    /// What reached the model of the repository's supplies.
    fn used(&self) -> Vec<&'static str> {
        let request = self.model.requests().pop().unwrap_or_default();
        let tools = request["tools"].as_array().cloned().unwrap_or_default();
        let said = request["messages"].to_string();
        let mut used = Vec::new();
        used.extend(tools.iter().any(|tool| tool["function"]["name"] == "echo").then_some("tool"));
        used.extend(said.contains("deploy/SKILL.md").then_some("skill"));
        used.extend(said.contains("Review a.rs.").then_some("command"));
        used.extend(sign(&self.world).exists().then_some("program"));
        used
    }

    /// The commands that the client was told of last and that are not Crow's own.
    fn commands(&self) -> Vec<String> {
        let offers = self.client.updates.iter().filter(|(session, _)| *session == self.session);
        let mut offers = offers.filter(|(_, update)| update["sessionUpdate"] == "available_commands_update");
        let Some((_, offer)) = offers.next_back() else { return Vec::new() };
        let names = offer["availableCommands"].as_array().into_iter().flatten();
        let names = names.filter_map(|command| command["name"].as_str());
        names.filter(|name| !OWN.contains(name) && !name.starts_with("speckit")).map(str::to_owned).collect()
    }

    fn has_trust(&self) -> bool {
        self.world.home().join(".crow/trust").exists()
    }
}

#[track_caller]
fn check(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(test);
}

/// Compares what the client heard, but for notices, which come when they come, and the paths in the question's content.
#[track_caller]
fn log_is(stage: &Stage, expected: &Expect) {
    let log = stage.client.log();
    let lines = log.lines().filter(|line| !line.starts_with("< notice"));
    let lines = lines.map(|line| match line.split_once(" pending {\"files\"") {
        Some((question, _)) => format!("{question} pending …\n"),
        None => format!("{line}\n"),
    });
    expected.assert_eq(&lines.collect::<String>());
}

#[test]
fn with_nobody_to_ask_nothing_of_it_is_used_and_it_is_said_once() {
    check(async {
        let mut stage = Stage::new(HELLO).await;
        stage.answer("error");
        stage.say("/review a.rs").await;
        stage.play("again").await;
        assert_eq!(stage.used(), Vec::<&str>::new());
        assert_eq!(stage.commands(), Vec::<String>::new());
        assert!(!stage.has_trust());
        let log = stage.client.log();
        let told: Vec<&str> = log.lines().filter(|line| line.starts_with("< notice")).collect();
        expect![[r#"
            < notice warning ".crow/config.yaml sets what a repository cannot set, so that is left out: permissions.mode, providers, sandbox." ""
            < notice warning "This repository supplies 2 MCP servers, 1 rule, 1 skill, 1 command, which is not used: it needs your approval and nobody could be asked (the dialog broke). Open a session here in an editor, or with `crow-cli run` in a terminal, to look at it and allow it." ""
        "#]].assert_eq(&(told.join("\n") + "\n"));
        assert_eq!(stage.questions().lines().count(), 1);
    });
}

#[test]
fn while_nobody_answers_nothing_happens() {
    check(async {
        let mut stage = Stage::new(HELLO).await;
        stage.answer("silence");
        let id = stage.client.prompt(&stage.session.clone(), "hello").await;
        stage.client.until("? Use what").await;
        assert_eq!((stage.used(), stage.model.n_requests(), stage.has_trust()), (Vec::new(), 0, false));
        stage.client.notify("session/cancel", json!({"sessionId": stage.session})).await;
        assert_eq!(stage.client.answer_to(id).await.expect("it ends")["stopReason"], "cancelled");
        assert_eq!((stage.used(), stage.model.n_requests(), stage.has_trust()), (Vec::new(), 0, false));
        // A question that was stopped was not answered.
        stage.answer("reject_once");
        stage.play("hello").await;
        assert_eq!(stage.questions().lines().count(), 2);
    });
}

#[test]
fn what_is_allowed_is_used_from_the_same_prompt_on() {
    check(async {
        let script =
            "call echo {\"text\":\"hi\"}\ncall terminal {\"command\":\"touch allowed\"}\ntext \"Done.\"";
        let mut stage = Stage::new(script).await;
        stage.say("/review a.rs").await;
        assert_eq!(stage.used(), ["tool", "skill", "command", "program"]);
        assert_eq!(stage.commands(), ["review", "deploy"]);
        log_is(
            &stage,
            &expect![[r#"
                < call call-0-0 trust "Use what this repository supplies: 2 MCP servers, 1 rule, 1 skill, 1 command" pending …
                ? Use what this repository supplies: 2 MCP servers, 1 rule, 1 skill, 1 command [allow_once, reject_once, allow_always, reject_always] -> allow_once
                < call call-0-0 completed
                < call call-1-0 echo "good: echo" pending {"text":"hi"}
                ? good: echo [allow_once, reject_once, allow_always, reject_always] -> allow_once
                < call call-1-0 in_progress
                < call call-1-0 completed "{\"text\":\"hi\"}"
                < call call-3-0 terminal "`touch allowed`" pending {"command":"touch allowed"}
                < call call-3-0 in_progress
                < call call-3-0 completed "(no output)"
                < text[msg-5] Done.
                < title /review a.rs
            "#]],
        );
        assert!(!stage.has_trust(), "once is for this session");
        stage.reopen().await;
        stage.answer("reject_once");
        stage.play("hello").await;
        assert_eq!(stage.questions().lines().count(), 1, "once is for one session");
    });
}

#[test]
fn always_is_until_it_changes_and_a_change_is_shown_as_one() {
    check(async {
        let mut stage = Stage::new(HELLO).await;
        stage.answer("allow_always");
        stage.say("/review a.rs").await;
        assert!(stage.has_trust());
        stage.reopen().await;
        stage.play("/review a.rs").await;
        assert_eq!(stage.questions(), "");
        assert_eq!(stage.used(), ["tool", "skill", "command", "program"]);
        // In the same session, too.
        fs::write(stage.world.project().join(".crow/prompts/review.md"), "Review $ARGUMENTS!")
            .expect("written");
        stage.answer("reject_once");
        stage.play("/review b.rs").await;
        assert_eq!(stage.commands(), ["deploy"]);
        let log = stage.client.log();
        let asked: Vec<&str> = log.lines().filter(|line| line.contains("Use what")).collect();
        expect![[r#"
            < call call-2-0 trust "Use what this repository supplies: 1 command, changed since you allowed it" pending {"files":[".crow/prompts/review.md"]} ".crow/prompts/review.md\n  command /review: Review $ARGUMENTS!\n" diff $HOME/project/.crow/prompts/review.md "---\ndescription: Reviews.\n---\nReview $ARGUMENTS.\n" -> "Review $ARGUMENTS!"
            ? Use what this repository supplies: 1 command, changed since you allowed it [allow_once, reject_once, allow_always, reject_always] -> reject_once
        "#]].assert_eq(&(asked.join("\n") + "\n"));
    });
}

/// A prompt that a hook keeps back leaves its place to the next one.
#[test]
fn no_two_questions_of_a_session_have_the_same_name() {
    check(async {
        let mut stage = Stage::new(HELLO).await;
        let config = stage.world.project().join(".crow/config.yaml");
        for seconds in [1, 2] {
            let hooks =
                format!("hooks: {{ UserPromptSubmit: [{{ command: exit 2, timeout: {seconds} }}] }}\n");
            fs::write(&config, hooks).expect("written");
            stage.answer("allow_once");
            stage.say("hello").await;
        }
        assert_eq!((stage.questions().lines().count(), stage.model.n_requests()), (2, 0));
        let log = stage.client.log();
        let names = log.lines().filter_map(|line| line.strip_prefix("< call ")?.split_once(" trust "));
        assert_eq!(names.map(|(name, _)| name).collect::<Vec<_>>(), ["call-0-0", "call-0-1"]);
    });
}

#[test]
fn never_is_silent_until_it_changes() {
    check(async {
        let mut stage = Stage::new(HELLO).await;
        stage.answer("reject_always");
        stage.say("/review a.rs").await;
        stage.reopen().await;
        stage.play("/review a.rs").await;
        assert_eq!(stage.questions(), "");
        assert_eq!((stage.used(), stage.commands()), (Vec::new(), Vec::new()));
        fs::write(stage.world.project().join(".mcp.json"), "{\"mcpServers\":{\"x\":{\"command\":\"x\"}}}")
            .expect("written");
        stage.reopen().await;
        stage.answer("reject_once");
        stage.play("hello").await;
        expect![[r#"
            ? Use what this repository supplies: 1 MCP server [allow_once, reject_once, allow_always, reject_always] -> reject_once
        "#]].assert_eq(&stage.questions());
    });
}

#[test]
fn a_session_is_told_again_without_the_question() {
    check(async {
        let mut stage = Stage::new(HELLO).await;
        stage.answer("allow_always");
        stage.say("/review a.rs").await;
        let mut second = start(&stage.world).await;
        second.load(&stage.session, &stage.world.project()).await.expect("the session loads");
        replay::check(&stage.session, &stage.client, &second);
        stage.model.replace(HELLO);
        let id = second.prompt(&stage.session, "go on").await;
        second.answer_to(id).await.expect("the session goes on");
        assert_eq!(stage.used(), ["tool", "skill", "command", "program"]);
        let tellings = stage.model.requests().pop().unwrap_or_default()["messages"].to_string();
        assert_eq!(tellings.matches("deploy/SKILL.md").count(), 1, "a model is told of a skill once");
    });
}

#[test]
fn a_yes_to_everything_is_no_yes_to_this() {
    let model = ModelServer::start(HELLO);
    let world = World::new(model.base_url());
    lay_out(&world);
    let ran = run(&world, &["run", "-y", "/review a.rs"]);
    assert!(ran.contains("which is not used"), "{ran}");
    assert!(ran.contains("exit 0"), "{ran}");
    let request: Value = model.requests().pop().unwrap_or_default();
    assert!(!request.to_string().contains("Review a.rs"), "{request}");
    assert!(!sign(&world).exists());
    assert!(!world.home().join(".crow/trust").exists());
}

/// Runs the program to its end with no terminal, and shows what it wrote and its exit code.
#[expect(clippy::disallowed_methods, reason = "the program is tested from outside, as a script starts it")]
fn run(world: &World, args: &[&str]) -> String {
    let output = std::process::Command::new(binary())
        .args(args)
        .current_dir(world.project())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", world.home())
        .stdin(std::process::Stdio::null())
        .output()
        .expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}exit {}", text(&output.stdout), text(&output.stderr), output.status.code().unwrap_or(-1))
}
