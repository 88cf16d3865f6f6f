//! Clients with faulty responses, and clients that die: each turn ends, and the session continues if there is a
//! client.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and prints where it was"
)]

use std::path::Path;
use std::time::{Duration, Instant};

use crow_testkit::ModelServer;
use crow_testkit::client::{FakeClient, ResponseFault, TestHome};
use crow_testkit::tracked_command::TrackedCommand;
use serde_json::{Value, json};

use crate::threads::map_on_threads;

/// The promise is a tenth of a second; a loaded machine may take longer, and a hang takes forever.
const ENDED_WITHIN: Duration = Duration::from_secs(3);

/// A turn that uses every capability of a client.
const TURN: &str = r#"
    call read {"file_path":"a.txt"}
    call edit {"file_path":"a.txt","old_string":"one","new_string":"two"}
    call write {"file_path":"b.txt","content":"new\n"}
    call terminal {"command":"touch ran; echo apples"}
    text "Done."
"#;

const METHODS: [&str; 8] = [
    "fs/read_text_file",
    "fs/write_text_file",
    "terminal/create",
    "terminal/output",
    "terminal/wait_for_exit",
    "terminal/kill",
    "terminal/release",
    "session/request_permission",
];

struct Stage {
    server: ModelServer,
    world: TestHome,
    client: FakeClient,
}

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_crow-cli"))
}

impl Stage {
    async fn new() -> Self {
        let server = ModelServer::start("");
        let world = TestHome::new(server.base_url());
        let offered = json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true});
        let client = FakeClient::start_with(binary(), &world.home(), offered).await;
        Self { server, world, client }
    }

    async fn open(&mut self) -> String {
        self.world.write_file("a.txt", "one\n");
        let project = self.world.project();
        self.client.new_session(&project).await
    }

    /// Runs a turn with one faulty response; cancels it if it would not end otherwise.
    async fn play(&mut self, method: &str, odd: ResponseFault) {
        let session = self.open().await;
        let is_question = method == "session/request_permission";
        if is_question {
            self.client.permission_answers.push_back(odd.name());
        } else {
            self.client.editor.fail_next(method, odd);
        }
        // A command is killed only if its turn ends first.
        let is_killed = method == "terminal/kill";
        let turn =
            if is_killed { r#"call terminal {"command":"echo begun; tail -f /dev/null"}"# } else { TURN };
        self.server.replace_answers(turn);
        let id = self.client.prompt(&session, "go").await;
        let has_to_be_cut = is_killed || matches!(odd, ResponseFault::Late | ResponseFault::Silence);
        if has_to_be_cut {
            let begun = if is_killed { "terminal term-".into() } else { format!("-> {}", odd.name()) };
            self.client.wait_for_line(&begun).await;
            self.client.notify("session/cancel", json!({"sessionId": session})).await;
        }
        let started = Instant::now();
        let ended = self.client.response_to(id).await.expect("the turn ends");
        assert!(started.elapsed() < ENDED_WITHIN, "{method} {odd:?}: it took {:?}", started.elapsed());
        let ended = ended["stopReason"].as_str().expect("it says how").to_owned();
        // A terminal is released after everything else.
        let is_over = method == "terminal/release";
        let fits = if has_to_be_cut { ended == "cancelled" || is_over } else { ended == "end_turn" };
        assert!(fits, "{method} {odd:?}: {ended}\n{}", self.client.log());
        // A request that was sent before the cancellation may still arrive and consume an answer.
        self.server.replace_answers("text \"Again.\"\ntext \"Again.\"");
        let id = self.client.prompt(&session, "again").await;
        let again = self.client.response_to(id).await.expect("the session goes on");
        assert_eq!(again["stopReason"], "end_turn", "{method} {odd:?}");
        assert_eq!(
            self.server.rejections(),
            Vec::<String>::new(),
            "{method} {odd:?}: the model refused a request"
        );
        let is_lost =
            is_over && matches!(odd, ResponseFault::Error | ResponseFault::Null | ResponseFault::Silence);
        let left = self.client.editor.unreleased();
        assert_eq!(left.len(), usize::from(is_lost), "{method} {odd:?}: {left:?}");
    }
}

#[track_caller]
fn check(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(test);
}

#[track_caller]
fn check_odd(odd: ResponseFault) {
    map_on_threads(&METHODS, |method| {
        println!("{method}");
        // A faulty response must not affect the next one.
        check(async {
            let mut stage = Stage::new().await;
            stage.play(method, odd).await;
            assert!(stage.client.close_stdin().await.success(), "{method} {odd:?}: the agent ends well");
        });
    });
}

#[test]
fn errors() {
    check_odd(ResponseFault::Error);
}

#[test]
fn nulls() {
    check_odd(ResponseFault::Null);
}

#[test]
fn two_answers() {
    check_odd(ResponseFault::Twice);
}

#[test]
fn late_answers() {
    check_odd(ResponseFault::Late);
}

#[test]
fn silence() {
    check_odd(ResponseFault::Silence);
}

#[test]
fn unanswered_kill() {
    check(async {
        let mut stage = Stage::new().await;
        let session = stage.open().await;
        stage.client.editor.fail_next("terminal/kill", ResponseFault::Silence);
        stage.server.replace_answers(
            "call terminal {\"command\":\"tail -f /dev/null\",\"timeout\":1}\ntext \"Done.\"",
        );
        let started = Instant::now();
        let id = stage.client.prompt(&session, "go").await;
        let ended = stage.client.response_to(id).await.expect("the turn ends");
        assert_eq!(ended["stopReason"], "end_turn");
        // One second for the command, five for the kill.
        assert!(started.elapsed() < Duration::from_secs(15), "it took {:?}", started.elapsed());
        assert_eq!(stage.client.editor.unreleased().len(), 0, "the terminal was not given back");
        assert!(stage.client.close_stdin().await.success());
    });
}

#[test]
fn nonsense_in_a_turn() {
    const LINES: [&str; 8] = [
        "not json at all",
        "[]",
        r#"{"jsonrpc":"2.0","id":"who","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"who","error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","method":"session/fly","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":7}}"#,
        r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"unknown"}}"#,
        r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":[]}}"#,
    ];
    check(async {
        let mut stage = Stage::new().await;
        let session = stage.open().await;
        stage.server.replace_answers("text \"I begin\" | hold | text \" and end.\"");
        let id = stage.client.prompt(&session, "go").await;
        stage.client.wait_for_line("I begin").await;
        for line in LINES {
            stage.client.send_line(line).await;
        }
        for (method, params) in [
            ("session/fly", json!({})),
            ("session/prompt", json!({"sessionId": session, "prompt": "text"})),
            ("session/new", json!([])),
            ("fs/read_text_file", json!({"sessionId": session, "path": "/"})),
        ] {
            stage.client.request(method, params).await.expect_err("it is refused");
        }
        stage
            .client
            .initialize(stage.client.editor.capabilities().clone())
            .await
            .expect("a second hello is answered");
        stage.server.release();
        let ended = stage.client.response_to(id).await.expect("the turn ends");
        assert_eq!(ended["stopReason"], "end_turn");
        assert!(stage.client.log().contains("I begin and end."));
        assert!(stage.client.close_stdin().await.success());
    });
}

/// Starts a turn, waits until the client has received `begun`, and disconnects.
#[track_caller]
fn check_death(prepare: impl FnOnce(&mut FakeClient), script: &str, begun: &str) {
    check(async {
        let mut stage = Stage::new().await;
        let mut leash = TrackedCommand::new(&stage.world.project());
        prepare(&mut stage.client);
        let session = stage.open().await;
        stage.server.replace_answers(script);
        stage.client.prompt(&session, "go").await;
        stage.client.wait_for_line(begun).await;
        let next = FakeClient::start(binary(), &stage.world.home()).await;
        let mut client = std::mem::replace(&mut stage.client, next);
        let started = Instant::now();
        assert!(client.close_stdin().await.success(), "the agent ends well");
        assert!(started.elapsed() < ENDED_WITHIN, "it took {:?}", started.elapsed());
        // The client's terminals end with it.
        drop(client);
        leash.wait_until_gone("the client died").await;
        stage.client.load_session(&session, &stage.world.project()).await.expect("the session is stored");
        stage.server.replace_answers("text \"Again.\"");
        let id = stage.client.prompt(&session, "again").await;
        let again = stage.client.response_to(id).await.expect("the session goes on");
        assert_eq!(again["stopReason"], "end_turn");
        assert_eq!(stage.server.rejections(), Vec::<String>::new(), "the model refused a request");
    });
}

#[test]
fn death_with_an_open_question() {
    check_death(
        |client| client.permission_answers.push_back("silence".into()),
        r#"call terminal {"command":"touch ran"}"#,
        "-> silence",
    );
}

#[test]
fn death_with_a_file_on_its_way() {
    check_death(
        |client| client.editor.fail_next("fs/read_text_file", ResponseFault::Silence),
        r#"call read {"file_path":"a.txt"}"#,
        "-> silence",
    );
}

#[test]
fn death_with_a_terminal_on_its_way() {
    check_death(
        |client| client.editor.fail_next("terminal/create", ResponseFault::Silence),
        r#"call terminal {"command":"true"}"#,
        "-> silence",
    );
}

#[test]
fn death_with_a_command_in_a_terminal() {
    let command = json!({"command": TrackedCommand::COMMAND});
    check_death(|_| {}, &format!("call terminal {command}"), "in_progress terminal term-1");
}

#[test]
fn wrong_answers_of_every_shape() {
    let shapes: [(&str, Value); 6] = [
        ("fs/read_text_file", json!({"content": 7})),
        ("fs/read_text_file", json!([])),
        ("terminal/create", json!({"terminalId": null})),
        ("terminal/output", json!({"output": {}, "truncated": "no"})),
        ("terminal/wait_for_exit", json!({"exitCode": "zero", "signal": 9})),
        ("session/request_permission", json!({"outcome": "yes"})),
    ];
    check(async {
        for (method, shape) in shapes {
            println!("{method} {shape}");
            let mut stage = Stage::new().await;
            let session = stage.open().await;
            stage.client.editor.replace_next_result(method, shape);
            stage.server.replace_answers(TURN);
            let id = stage.client.prompt(&session, "go").await;
            let ended = stage.client.response_to(id).await.expect("the turn ends");
            assert_eq!(ended["stopReason"], "end_turn", "{method}");
            assert_eq!(
                stage.server.rejections(),
                Vec::<String>::new(),
                "{method}: the model refused a request"
            );
            assert!(stage.client.close_stdin().await.success(), "{method}: the agent ends well");
        }
    });
}

#[test]
fn command_whose_end_is_not_told_does_not_run_again() {
    check(async {
        let mut stage = Stage::new().await;
        let session = stage.open().await;
        let mode = json!({"sessionId": session, "modeId": "accept-edits"});
        stage.client.request("session/set_mode", mode).await.expect("the mode changes");
        // The command, and whatever the agent tries afterwards.
        for _ in 0..8 {
            stage.client.editor.fail_next("terminal/wait_for_exit", ResponseFault::Error);
        }
        let call = r#"call terminal {"command":"echo ran >> a.txt; mkdir -p sub"}"#;
        stage.server.replace_answers(format!("{call}\ntext \"Done.\"").as_str());
        let id = stage.client.prompt(&session, "go").await;
        let ended = stage.client.response_to(id).await.expect("the turn ends");
        assert_eq!(ended["stopReason"], "end_turn");
        let log = stage.client.log();
        let is_run = |line: &&str| line.contains("terminal create") && line.contains("echo ran");
        assert_eq!(log.lines().filter(is_run).count(), 1, "{log}");
    });
}

#[test]
fn link_moved_while_the_request_was_open() {
    check(async {
        let server =
            ModelServer::start("call write {\"file_path\":\"link/x\",\"content\":\"1\"}\ntext \"So be it.\"");
        let world = TestHome::new(server.base_url());
        let (link, outside) = (world.project().join("link"), world.home().join("outside"));
        for folder in [&world.project().join("inside"), &outside] {
            std::fs::create_dir(folder).expect("a folder can be made");
        }
        std::os::unix::fs::symlink(world.project().join("inside"), &link).expect("a link can be made");
        let mut client = FakeClient::start(binary(), &world.home()).await;
        let session = client.new_session(&world.project()).await;
        client.permission_answers.push_back("silence".into());
        let id = client.prompt(&session, "go").await;
        let question = loop {
            let message = client.next_message().await;
            if message["method"] == "session/request_permission" {
                break message["id"].clone();
            }
        };
        std::fs::remove_file(&link).expect("it is there");
        std::os::unix::fs::symlink(&outside, &link).expect("a link can be made");
        let allowed = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
        client.send_line(&json!({"jsonrpc": "2.0", "id": question, "result": allowed}).to_string()).await;
        let ended = client.response_to(id).await.expect("the turn ends");
        assert_eq!(ended["stopReason"], "end_turn");
        assert!(client.log().contains("check it again"), "{}", client.log());
        assert!(!outside.join("x").exists(), "it was written without permission");
    });
}
