//! Tasks on workers, as processes: what their parents, their models and the user see. They run where `CROW_TEST_NATS` is
//! set.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "a person starts the program as they like")]

mod killed_sessions;
mod takeovers;
mod worktrees;

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crow_testkit::client::{FakeClient, TestHome, task_names};
use crow_testkit::{ModelServer, NatsServer};
use expect_test::expect;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// The longest wait for a process on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_crow-cli"))
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(test);
}

/// A server, a session whose agent `farm` is a queue there, and the home of the workers.
struct Stage {
    nats: NatsServer,
    server: ModelServer,
    world: TestHome,
    worker_home: TestHome,
    client: FakeClient,
    session: String,
}

/// A worker process with its output.
struct Worker {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Stage {
    /// Starts all but workers; `None` where there is no server.
    async fn start(script: &str) -> Option<Self> {
        let nats = NatsServer::start()?;
        let server = ModelServer::start(script);
        let (world, worker_home) = (TestHome::new(server.base_url()), TestHome::new(server.base_url()));
        let farm = json!({ "farm": { "nats": nats.url(), "queue": "build" } });
        world.add_config(&format!("agent_servers: {farm}"));
        world.add_config(r#"permissions: { allow: ["tool(task)", "mcp(farm)"] }"#);
        let mut client = FakeClient::start(binary(), &world.home()).await;
        let session = client.new_session(&world.project()).await;
        Some(Self { nats, server, world, worker_home, client, session })
    }

    fn worker(&self, name: &str, args: &[&str]) -> Worker {
        self.worker_of(&self.worker_home, name, args)
    }

    /// Starts a worker that finds its programs in these directories.
    fn worker_with_path(&self, name: &str, args: &[&str], path: &OsStr) -> Worker {
        self.start_worker(&self.worker_home, name, args, path)
    }

    /// Starts a worker of another user.
    fn worker_of(&self, home: &TestHome, name: &str, args: &[&str]) -> Worker {
        self.start_worker(home, name, args, &std::env::var_os("PATH").unwrap_or_default())
    }

    fn start_worker(&self, home: &TestHome, name: &str, args: &[&str], path: &OsStr) -> Worker {
        let mut command = Command::new(binary());
        command
            .args(["worker", "--nats", &self.nats.url(), "--queue", "build", "--name", name])
            .args(args)
            .env_clear()
            .env("PATH", path)
            .env("HOME", home.home())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut process = command.spawn().expect("the binary starts");
        let lines = BufReader::new(process.stdout.take().expect("it is piped")).lines();
        Worker { process, lines }
    }

    /// Kills the session's process, as no signal handler sees it, and opens the session in another one.
    async fn kill_and_reopen(&mut self) {
        self.client.crash().await;
        self.client = FakeClient::start(binary(), &self.world.home()).await;
        let loaded = self.client.load_session(&self.session, &self.world.project()).await;
        loaded.expect("the session is there");
    }

    /// Sends a prompt; returns the stop reason.
    async fn say(&mut self, text: &str) -> String {
        let id = self.client.prompt(&self.session, text).await;
        self.end_of(id).await
    }

    async fn end_of(&mut self, id: u64) -> String {
        match self.client.response_to(id).await {
            Ok(ended) => ended["stopReason"].as_str().unwrap_or_default().to_owned(),
            Err(error) => error.to_string(),
        }
    }

    /// The last message to the model in the conversation that begins with a prompt.
    fn told(&self, beginning: &str) -> String {
        let requests = self.server.requests();
        let is_of_it = |request: &&serde_json::Value| {
            let mut messages = request["messages"].as_array().into_iter().flatten();
            let first = messages.find(|message| message["role"] == "user");
            first.is_some_and(|first| first["content"].to_string().contains(beginning))
        };
        let request = requests.iter().rev().find(is_of_it).expect("the model was asked");
        let last = request["messages"].as_array().and_then(|messages| messages.last());
        task_names::mask_task_names(last.expect("it was asked")["content"].as_str().unwrap_or_default())
    }

    /// The name of the latest task.
    fn task(&self) -> String {
        let told = self.client.updates.iter().rev().find_map(|(_, update)| {
            let text = update["content"][0]["content"]["text"].as_str()?;
            text.strip_prefix("Task ")?.split_once(' ')
        });
        told.expect("a task has begun").0.to_owned()
    }
}

impl Worker {
    /// Waits until it prints a line with this text.
    async fn says(&mut self, text: &str) -> String {
        let mut said = Vec::new();
        let line = async {
            loop {
                let line = self.lines.next_line().await.expect("it can be read")?;
                if line.contains(text) {
                    return Some(line);
                }
                said.push(line);
            }
        };
        let line = tokio::time::timeout(PATIENCE, line).await.ok().flatten();
        line.unwrap_or_else(|| panic!("the worker never said {text}, only {said:?}"))
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.process.id().expect("it runs")).expect("a pid");
        kill(Pid::from_raw(pid), signal).expect("it can be signalled");
    }

    /// Waits for its exit; returns the code.
    async fn exit(&mut self) -> Option<i32> {
        let exit = tokio::time::timeout(PATIENCE, self.process.wait()).await;
        exit.expect("it exits in time").expect("it can be waited for").code()
    }
}

#[test]
fn task_on_a_worker_asks_the_user_and_reports() {
    run(async {
        let script = "call task {\"prompt\":\"ALPHA\",\"agent\":\"farm\"}\ntext \"It is done.\"";
        let Some(mut stage) = Stage::start(script).await else { return };
        let mut worker = stage.worker("w1", &[]);
        expect!["worker w1 runs tasks of the queue build, 1 at a time"]
            .assert_eq(&worker.says("worker").await);
        stage.server.add_answers_for("ALPHA", "call terminal {\"command\":\"touch made\"}\ntext \"Made.\"");
        assert_eq!(stage.say("go").await, "end_turn");
        expect![[r#"
            Task $TASK (farm, ALPHA) is done.

            Made.

            The whole of it: query_session with session_id $TASK. It has one turn; for more start a new task.
        "#]]
        .assert_eq(&stage.told("go"));
        let log = stage.client.log();
        assert!(log.contains("touch made"), "{log}");
        worker.says("begins").await;
        worker.says("done").await;
        worker.signal(Signal::SIGTERM);
        assert_eq!(worker.exit().await, Some(0));
        assert_eq!(stage.server.rejections(), Vec::<String>::new());
    });
}

#[test]
fn running_task_takes_messages_and_is_cancelled() {
    run(async {
        let script =
            "call task {\"prompt\":\"ALPHA\",\"agent\":\"farm\",\"wait\":false}\ntext \"It has begun.\"";
        let Some(mut stage) = Stage::start(script).await else { return };
        let mut worker = stage.worker("w1", &[]);
        worker.says("worker").await;
        stage.server.add_answers_for("ALPHA", "call bash {}\nhold");
        assert_eq!(stage.say("go").await, "end_turn");
        worker.says("begins").await;
        stage.server.wait_for_requests(4).await;
        let task = stage.task();
        let message = json!({ "task": task, "prompt": "faster" });
        let cancel = json!({ "task": task });
        stage.server.replace_answers(
            format!("call task_send {message}\ncall task_cancel {cancel}\ntext \"Over.\"").as_str(),
        );
        assert_eq!(stage.say("go on").await, "end_turn");
        let requests = stage.server.requests();
        let told: Vec<String> = requests
            .last()
            .and_then(|request| request["messages"].as_array())
            .into_iter()
            .flatten()
            .filter(|message| message["role"] == "tool")
            .map(|message| task_names::mask_task_names(message["content"].as_str().unwrap_or_default()))
            .collect();
        expect![[r#"
            Task $TASK has begun. Its end comes to you as a message; do something else meanwhile, or end your turn. To look at it: task_read. To stop it: task_cancel.
            ---
            The message was sent to task $TASK, which is running.
            ---
            Task $TASK (farm, ALPHA) was cancelled.

            It said nothing.

            The whole of it: query_session with session_id $TASK. It has one turn; for more start a new task.
        "#]].assert_eq(&told.join("---\n"));
        worker.says("cancelled").await;
    });
}

#[test]
fn task_of_a_killed_worker_goes_to_another_at_once_and_is_reported_once() {
    run(async {
        let script = "call task {\"prompt\":\"ALPHA\",\"agent\":\"farm\"}\ntext \"It is done.\"";
        let Some(mut stage) = Stage::start(script).await else { return };
        let mut first = stage.worker("w1", &[]);
        stage.server.add_answers_for("ALPHA", "hold");
        let id = stage.client.prompt(&stage.session, "go").await;
        first.says("begins").await;
        stage.server.wait_for_requests(2).await;
        let mut second = stage.worker("w2", &[]);
        second.says("worker").await;
        stage.server.add_answers_for("ALPHA", "hold | text \"A.\"");
        first.signal(Signal::SIGKILL);
        let killed = Instant::now();
        second.says("begins again, delivery 2").await;
        assert!(killed.elapsed() < Duration::from_secs(15), "the server waits twice as long for a worker");
        // A call that ends replaces what it showed before.
        stage.client.wait_for_line("The worker w1 no longer has the task; w2 begins it again.").await;
        stage.server.release();
        assert_eq!(stage.end_of(id).await, "end_turn");
        second.says("done").await;
        expect![[r#"
            Task $TASK (farm, ALPHA) is done.

            A.

            The whole of it: query_session with session_id $TASK. It has one turn; for more start a new task.
        "#]]
        .assert_eq(&stage.told("go"));
    });
}

#[test]
fn worker_gives_back_what_does_not_end_in_time() {
    run(async {
        let script = "call task {\"prompt\":\"ALPHA\",\"agent\":\"farm\"}\ntext \"It is done.\"";
        let Some(mut stage) = Stage::start(script).await else { return };
        let mut first = stage.worker("w1", &["--drain", "0"]);
        first.says("worker").await;
        stage.server.add_answers_for("ALPHA", "hold");
        let id = stage.client.prompt(&stage.session, "go").await;
        first.says("begins").await;
        stage.server.wait_for_requests(2).await;
        first.signal(Signal::SIGTERM);
        first.says("given back").await;
        assert_eq!(first.exit().await, Some(0));
        stage.server.add_answers_for("ALPHA", "text \"A.\"");
        let mut second = stage.worker("w2", &[]);
        assert_eq!(stage.end_of(id).await, "end_turn");
        second.says("done").await;
    });
}

#[test]
fn queue_is_an_agent_of_the_command_line() {
    run(async {
        let Some(stage) = Stage::start("").await else { return };
        let mut worker = stage.worker("w1", &[]);
        worker.says("worker").await;
        stage.server.add_answers_for("ALPHA", "text \"A.\"");
        let mut command = Command::new(binary());
        command.args(["run", "--agent", "farm", "--mode", "auto", "ALPHA"]).env("HOME", stage.world.home());
        command.current_dir(stage.world.project()).stdin(Stdio::null());
        let output = tokio::time::timeout(PATIENCE, command.output()).await.expect("it ends in time");
        let output = output.expect("it runs");
        let shown = format!(
            "{}{}exit {:?}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
            output.status.code()
        );
        let mut lines: Vec<&str> = shown.lines().collect();
        lines.retain(|line| !line.starts_with("session "));
        let shown = lines.join("\n");
        expect![[r#"
            A.
            exit Some(0)"#]]
        .assert_eq(&shown);
    });
}

#[test]
fn tasks_of_a_batch_wait_in_the_queue() {
    run(async {
        let Some(stage) = Stage::start("").await else { return };
        let mut worker = stage.worker("w1", &[]);
        worker.says("worker").await;
        let tasks: Vec<String> = ["ALPHA", "BETA", "GAMMA"]
            .map(|word| {
                stage
                    .server
                    .add_answers_for(word, format!("text \"{word} is done.\" | usage 100 5").as_str());
                json!({ "id": word, "prompt": word }).to_string()
            })
            .to_vec();
        let project = stage.world.project();
        std::fs::write(project.join("tasks.jsonl"), tasks.join("\n")).expect("it can be written");
        let mut command = Command::new(binary());
        command.args(["batch", "tasks.jsonl", "--agent", "farm", "--parallel", "1000"]);
        command.env("HOME", stage.world.home()).current_dir(&project).stdin(Stdio::null());
        let output = tokio::time::timeout(PATIENCE, command.output()).await.expect("it ends in time");
        assert!(output.expect("it runs").status.success());
        let results = std::fs::read_to_string(project.join("tasks.results.jsonl")).expect("it is written");
        let mut results: Vec<String> = results
            .lines()
            .map(|line| {
                let result: serde_json::Value = serde_json::from_str(line).expect("each line is an object");
                format!("{} {} {} {}", result["id"], result["state"], result["text"], result["tokens"])
            })
            .collect();
        results.sort();
        expect![[r#"
            "ALPHA" "done" "ALPHA is done." 105
            "BETA" "done" "BETA is done." 105
            "GAMMA" "done" "GAMMA is done." 105"#]]
        .assert_eq(&results.join("\n"));
        for _ in 0..3 {
            worker.says("done").await;
        }
        let shown = look_until(&stage, &["build  0        0        1", "w1      build"]).await;
        expect![[r#"
            queue | waiting | running | free workers
            build | 0 | 0 | 1

            worker | queue | running | slots | ended | tokens | system
            w1 | build | 0 | 1 | 3 | 315 | $SYSTEM
        "#]]
        .assert_eq(&shown.lines().map(mask_cells).collect::<String>());
    });
}

#[test]
fn task_in_auto_writes_in_its_directory_without_a_question() {
    run(async {
        let Some(stage) = Stage::start("").await else { return };
        let mut worker = stage.worker("w1", &["--mode", "auto"]);
        worker.says("worker").await;
        let write = "call write {\"file_path\":\"made.txt\",\"content\":\"made\\n\"}\ntext \"Made.\"";
        stage.server.add_answers_for("ALPHA", write);
        let mut command = Command::new(binary());
        command.args(["run", "--agent", "farm", "--mode", "auto", "ALPHA"]).env("HOME", stage.world.home());
        command.current_dir(stage.world.project()).stdin(Stdio::null());
        let output = tokio::time::timeout(PATIENCE, command.output()).await.expect("it ends in time");
        let output = output.expect("it runs");
        let shown = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{shown}");
    });
}

/// Runs `crow-cli fleet` until its output has these words.
async fn look_until(stage: &Stage, words: &[&str]) -> String {
    let look = async {
        loop {
            let mut command = Command::new(binary());
            command.args(["fleet", "--nats", &stage.nats.url()]).env("HOME", stage.world.home());
            let output = command.output().await.expect("it runs");
            let shown = String::from_utf8_lossy(&output.stdout).into_owned();
            if words.iter().all(|word| shown.contains(word)) {
                return shown;
            }
        }
    };
    tokio::time::timeout(PATIENCE, look).await.unwrap_or_else(|_| panic!("never shown: {words:?}"))
}

/// Shows the cells of a table, without what differs between two runs.
fn mask_cells(line: &str) -> String {
    let system = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
    let line = line.replace(&system, "$SYSTEM");
    let mut cells: Vec<&str> = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    if let [task, _, parent, age, ..] = &mut cells[..]
        && task.len() == 8
    {
        (*task, *parent, *age) = ("$TASK", "$PARENT", "$AGE");
    }
    cells.join(" | ") + "\n"
}

#[test]
fn fleet_shows_what_runs_and_what_waits() {
    run(async {
        let task = |prompt: &str| {
            format!("call task {}", json!({ "prompt": prompt, "agent": "farm", "wait": false }))
        };
        let begun = "text \"It has begun.\"";
        let script = format!("{}\n{begun}\n{}\n{begun}", task("ALPHA"), task("BETA\nin two lines"));
        let Some(mut stage) = Stage::start(&script).await else { return };
        let mut worker = stage.worker("w1", &[]);
        worker.says("worker").await;
        let shown = look_until(&stage, &["build  0        0        1", "w1      build"]).await;
        expect![[r#"
            queue | waiting | running | free workers
            build | 0 | 0 | 1

            worker | queue | running | slots | ended | tokens | system
            w1 | build | 0 | 1 | 0 | 0 | $SYSTEM
        "#]]
        .assert_eq(&shown.lines().map(mask_cells).collect::<String>());
        stage.server.add_answers_for("ALPHA", "hold");
        assert_eq!(stage.say("go").await, "end_turn");
        worker.says("begins").await;
        assert_eq!(stage.say("go on").await, "end_turn");
        let shown = look_until(&stage, &["w1      build", "BETA", "build  1        1"]).await;
        expect![[r#"
            queue | waiting | running | free workers
            build | 1 | 1 | 0

            worker | queue | running | slots | ended | tokens | system
            w1 | build | 1 | 1 | 0 | 0 | $SYSTEM

            task | queue | parent | age | worker | prompt
            $TASK | build | $PARENT | $AGE | w1 | ALPHA
            $TASK | build | $PARENT | $AGE | - | BETA
        "#]]
        .assert_eq(&shown.lines().map(mask_cells).collect::<String>());
    });
}

#[test]
fn worker_without_a_server_says_so() {
    run(async {
        let Some(mut stage) = Stage::start("").await else { return };
        let url = stage.nats.url();
        stage.nats.kill();
        let mut command = Command::new(binary());
        command.args(["worker", "--nats", &url, "--queue", "build"]).env("HOME", stage.worker_home.home());
        let output = command.output().await.expect("it runs");
        assert_eq!(output.status.code(), Some(1));
        let shown = String::from_utf8_lossy(&output.stderr).replace(&url, "$URL");
        expect![[r#"
            error: the queue build cannot be used: IO error: Connection refused (os error 111)
            hint: check the address, the credentials, and that the server has JetStream (`nats-server -js`)
        "#]]
        .assert_eq(&shown);
    });
}

#[test]
fn task_runs_in_the_stricter_mode() {
    run(async {
        let script = "call task {\"prompt\":\"ALPHA\",\"agent\":\"farm\"}\ntext \"It is done.\"";
        let Some(mut stage) = Stage::start(script).await else { return };
        let mut worker = stage.worker("w1", &["--mode", "plan"]);
        worker.says("worker").await;
        stage
            .server
            .add_answers_for("ALPHA", "call terminal {\"command\":\"touch made\"}\ntext \"Not made.\"");
        assert_eq!(stage.say("go").await, "end_turn");
        expect!["not run: plan mode only reads; switch the mode to change or run something"]
            .assert_eq(&stage.told("ALPHA"));
    });
}
