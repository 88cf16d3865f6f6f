//! A turn is cancelled at each event in it: it ends, leaves nothing running, and the session continues.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use crow_testkit::client::{FakeClient, TestHome};
use crow_testkit::tracked_command::TrackedCommand;
use crow_testkit::{ModelServer, Script, replay};
use serde_json::{Value, json};

/// Model requests of the turn.
const N_REQUESTS: usize = 3;

/// Calls that have ended before each request.
const N_ENDED: [usize; N_REQUESTS] = [0, 2, 3];

/// The moment of the cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    Never,
    /// After this number of lines.
    Line(usize),
    /// While this question is unanswered.
    Question(usize),
    /// While this request is unanswered.
    Request(usize),
}

/// The client's way to cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Cancel,
    Withdraw,
}

struct Stage {
    server: ModelServer,
    world: TestHome,
    client: FakeClient,
    stop: Stop,
    /// Requests before the turn.
    n_before: usize,
    /// The live updates of each session.
    sessions: Vec<(Cut, String, PathBuf, TrackedCommand)>,
}

/// The updates and the end of a turn.
#[derive(Default)]
struct Turn {
    n_lines: usize,
    n_questions: usize,
    n_ended: usize,
}

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_crow-cli"))
}

/// Returns the model's answers of a turn; the answer to request `held` never arrives.
fn script(held: Option<usize>) -> Script {
    let command = json!({"command": TrackedCommand::COMMAND});
    let answers = [
        format!(
            "thought \"Hm.\" | text \"I look.\" | call read {{\"file_path\":\"a.txt\"}} | call terminal {command} | usage 30 9"
        ),
        "text \"Now I write.\" | call write {\"file_path\":\"b.txt\",\"content\":\"new\\n\"}".to_owned(),
        "text \"Done.\"".to_owned(),
    ];
    let answers = answers.into_iter().enumerate();
    let answers = answers.map(|(place, answer)| if held == Some(place) { "hold".to_owned() } else { answer });
    Script::parse(&answers.collect::<Vec<_>>().join("\n"))
}

impl Stage {
    async fn new(capabilities: Value, stop: Stop) -> Self {
        let server = ModelServer::start("");
        let world = TestHome::new(server.base_url());
        let client = FakeClient::start_with(binary(), &world.home(), capabilities).await;
        Self { server, world, client, stop, n_before: 0, sessions: Vec::new() }
    }

    /// Runs the turn in a new session, and another turn after it.
    async fn play(&mut self, cut: Cut) -> Turn {
        let folder = self.world.project().join(format!("{}", self.sessions.len()));
        fs::create_dir(&folder).expect("a folder can be made");
        fs::write(folder.join("a.txt"), "apples\n").expect("a file can be written");
        let mut leash = TrackedCommand::new(&folder);
        let session = self.client.new_session(&folder).await;
        let held = if let Cut::Request(place) = cut { Some(place) } else { None };
        self.server.replace_answers(script(held));
        self.n_before = self.server.n_requests();
        if let Cut::Question(place) = cut {
            self.client.permission_answers.extend(vec!["allow_once".to_owned(); place]);
            self.client.permission_answers.push_back("silence".to_owned());
        }
        let id = self.client.prompt(&session, "go").await;
        let (turn, ended) = self.hear(&session, id, cut, &mut leash).await;
        self.client.permission_answers.clear();
        leash.wait_until_gone(&format!("{cut:?}\n{}", self.client.log())).await;
        let is_whole = self.server.n_requests() == self.n_before + N_REQUESTS && held.is_none();
        match ended.as_str() {
            "cancelled" => assert_ne!(cut, Cut::Never),
            "end_turn" => assert!(is_whole, "{cut:?}: it was cancelled without saying so"),
            other => unreachable!("{cut:?}: the turn ended with {other}"),
        }
        // A request that was sent before the cancellation may still arrive and consume an answer.
        self.server.replace_answers("text \"Again.\"\ntext \"Again.\"");
        let id = self.client.prompt(&session, "once more").await;
        let again = self.client.response_to(id).await;
        assert_eq!(again.expect("the session goes on")["stopReason"], "end_turn", "{cut:?}");
        assert_eq!(self.server.rejections(), Vec::<String>::new(), "{cut:?}: the model refused a request");
        assert_eq!(self.client.editor.unreleased(), Vec::<String>::new(), "{cut:?}");
        self.sessions.push((cut, session, folder, leash));
        turn
    }

    async fn hear(&mut self, session: &str, id: u64, cut: Cut, leash: &mut TrackedCommand) -> (Turn, String) {
        let mut turn = Turn::default();
        loop {
            if let Cut::Request(place) = cut
                && turn.n_ended == N_ENDED[place]
            {
                self.server.wait_for_requests(self.n_before + place + 1).await;
                turn.n_ended = usize::MAX;
                self.stop(session, id).await;
            }
            if cut == Cut::Line(turn.n_lines) {
                self.stop(session, id).await;
            }
            let message = self.client.next_message().await;
            if message.get("method").is_none() && message["id"] == json!(id) {
                return (turn, ending(&message));
            }
            turn.n_lines += 1;
            if message["method"] == "session/request_permission" {
                if cut == Cut::Question(turn.n_questions) {
                    self.stop(session, id).await;
                }
                turn.n_questions += 1;
            }
            let update = &message["params"]["update"];
            if matches!(update["status"].as_str(), Some("completed" | "failed")) {
                turn.n_ended = turn.n_ended.saturating_add(1);
            }
            let is_running = message["method"] == "terminal/wait_for_exit"
                || update["status"] == "in_progress" && update["content"].to_string().contains("started");
            if is_running && cut != Cut::Line(turn.n_lines) {
                leash.release();
            }
        }
    }

    async fn stop(&mut self, session: &str, id: u64) {
        match self.stop {
            Stop::Cancel => self.client.notify("session/cancel", json!({"sessionId": session})).await,
            Stop::Withdraw => self.client.notify("$/cancel_request", json!({"requestId": id})).await,
        }
    }

    /// Loads every session in a new process and compares it with the live updates.
    async fn compare(mut self) {
        let capabilities = self.client.editor.capabilities().clone();
        let mut fresh = FakeClient::start_with(binary(), &self.world.home(), capabilities).await;
        for (cut, session, folder, leash) in &mut self.sessions {
            fresh.load_session(session, folder).await.expect("the session loads");
            replay::check(session, &self.client, &fresh);
            // No program was started after the end of its turn.
            leash.wait_until_gone(&format!("{cut:?}, at the end")).await;
        }
    }
}

/// Renders the end of a turn; a cancelled request may be answered with an error.
fn ending(answer: &Value) -> String {
    const TAKEN_BACK: i64 = -32800;
    match (&answer["result"]["stopReason"], &answer["error"]["code"]) {
        (Value::String(reason), _) => reason.clone(),
        (_, code) if code.as_i64() == Some(TAKEN_BACK) => "cancelled".to_owned(),
        _ => answer.to_string(),
    }
}

#[track_caller]
fn check(capabilities: Value, stop: Stop) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(async {
        let mut stage = Stage::new(capabilities, stop).await;
        let whole = stage.play(Cut::Never).await;
        assert_eq!(whole.n_questions, 2, "the turn asks for its command and its file");
        for n in 0..=whole.n_lines {
            stage.play(Cut::Line(n)).await;
        }
        for place in 0..whole.n_questions {
            stage.play(Cut::Question(place)).await;
        }
        for place in 0..N_REQUESTS {
            stage.play(Cut::Request(place)).await;
        }
        stage.compare().await;
    });
}

#[test]
fn cancel_with_local_tools() {
    check(json!({}), Stop::Cancel);
}

#[test]
fn cancel_with_client_files_and_terminals() {
    check(json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true}), Stop::Cancel);
}

#[test]
fn cancel_with_a_withdrawn_request() {
    check(json!({}), Stop::Withdraw);
}
