//! The end of the program, and the end of what it needs: its client, its disk, its reader.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and prints what it measured"
)]

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crow_testkit::client::{FakeClient, TestHome};
use crow_testkit::{Answer, ModelServer};
use expect_test::expect;
use serde_json::{Value, json};
use tokio::process::Command;

/// The promise is a tenth of a second; a loaded machine may take longer, and a hang takes forever.
const ENDED_WITHIN: Duration = Duration::from_secs(2);

/// The same for an agent whose client reads nothing, which gets a few seconds to begin.
const ENDED_UNREAD_WITHIN: Duration = Duration::from_secs(10);

/// Peak resident memory of an agent whose client reads nothing.
const MEMORY_KB_MAX: u64 = 64 * 1024;

/// A program that never ends, with a child process.
const FOR_EVER: &str =
    r#"call terminal {"command":"sleep 1000 & echo $! > child; echo $$ > shell; echo started; wait"}"#;

struct Stage {
    server: ModelServer,
    world: TestHome,
    client: FakeClient,
}

impl Stage {
    async fn new(script: &str) -> Self {
        let server = ModelServer::start(script);
        let world = TestHome::new(server.base_url());
        let client = FakeClient::start(binary(), &world.home()).await;
        Self { server, world, client }
    }

    /// Starts a turn with a command that never ends; returns the pids of its shell and the shell's child.
    async fn waits_for_ever(&mut self) -> (String, Vec<String>) {
        let session = self.client.new_session(&self.world.project()).await;
        self.client.send("session/prompt", prompt(&session, "wait")).await;
        self.client.wait_for_line("~  \"started").await;
        let pid = |name: &str| fs::read_to_string(self.world.project().join(name)).expect("a pid");
        (session, ["shell", "child"].map(|name| pid(name).trim().to_owned()).into())
    }

    /// Returns the updates that another process receives when it loads a session.
    async fn loaded(&self, session: &str) -> String {
        let mut client = FakeClient::start(binary(), &self.world.home()).await;
        let params = json!({"sessionId": session, "cwd": self.world.project(), "mcpServers": []});
        let loaded = client.request("session/load", params).await;
        loaded.expect("the session loads");
        client.log()
    }
}

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_crow-cli"))
}

fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

#[expect(clippy::disallowed_methods, reason = "the program is tested from outside, as a shell starts it")]
fn sh(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).arg(binary());
    command
}

async fn signal(name: &str, pid: u32) {
    let sent = sh(&format!("kill -{name} {pid}")).status().await;
    assert!(sent.expect("the shell starts").success());
}

#[track_caller]
fn check(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(test);
}

/// Waits until none of these processes runs; a zombie counts as ended.
async fn gone(pids: &[String]) {
    gone_within(ENDED_WITHIN, pids).await;
}

async fn gone_within(limit: Duration, pids: &[String]) {
    let runs = |pid: &String| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|state| !state.is_empty() && !state.starts_with('Z'))
    };
    let started = Instant::now();
    while pids.iter().any(runs) {
        assert!(started.elapsed() < limit, "{pids:?} still run");
        tokio::task::yield_now().await;
    }
}

fn measured(what: &str, started: Instant) {
    let took = started.elapsed();
    println!("{what}: {took:?}");
    assert!(took < ENDED_WITHIN, "{what} took {took:?}");
}

#[test]
fn job_ends_with_its_session() {
    check(async {
        let job = FOR_EVER.replace(r#"wait"}"#, r#"wait","background":true}"#);
        let mut stage = Stage::new(&format!("{job}\ntext \"It runs.\"")).await;
        let session = stage.client.new_session(&stage.world.project()).await;
        stage.client.request("session/prompt", prompt(&session, "go")).await.expect("the turn ends");
        let pid = |name: &str| fs::read_to_string(stage.world.project().join(name)).expect("a pid");
        let pids = ["shell", "child"].map(|name| pid(name).trim().to_owned());
        for pid in &pids {
            assert!(Path::new("/proc").join(pid).exists(), "the job goes on after its turn");
        }
        let closed = stage.client.request("session/close", json!({"sessionId": session})).await;
        closed.expect("the session closes");
        gone(&pids).await;
    });
}

#[test]
fn idle_agent_ends_with_its_client() {
    check(async {
        let mut stage = Stage::new("").await;
        stage.client.new_session(&stage.world.project()).await;
        let started = Instant::now();
        assert!(stage.client.close_stdin().await.success());
        measured("idle, stdin closed", started);
    });
}

#[test]
fn agent_ends_with_its_client_before_initialize() {
    check(async {
        let world = TestHome::new("http://127.0.0.1:9/v1");
        let mut client = FakeClient::start_silent(binary(), &world.home());
        assert!(client.close_stdin().await.success());
        assert!(!world.home().join(".crow/crow.db").exists(), "nothing is created without a client");
    });
}

#[test]
fn busy_agent_ends_with_its_client() {
    check(async {
        let mut stage = Stage::new(FOR_EVER).await;
        let (session, pids) = stage.waits_for_ever().await;
        let mut client =
            std::mem::replace(&mut stage.client, FakeClient::start(binary(), &stage.world.home()).await);
        let started = Instant::now();
        assert!(client.close_stdin().await.success());
        measured("working, stdin closed", started);
        gone(&pids).await;
        expect![[r#"
            < prompt[msg-0] wait
            < call call-1-0 terminal "`sleep 1000 & echo $! > child; echo $$ > shell; echo started; wait`" failed {"command":"sleep 1000 & echo $! > child; echo $$ > shell; echo started; wait"} "started\nstopped: the turn was cancelled"
            < title wait
        "#]].assert_eq(&stage.loaded(&session).await);
    });
}

#[test]
fn streaming_agent_ends_with_its_client() {
    check(async {
        let mut stage = Stage::new(r#"text "I begin" | hold"#).await;
        let session = stage.client.new_session(&stage.world.project()).await;
        stage.client.send("session/prompt", prompt(&session, "go on")).await;
        stage.client.wait_for_line("I begin").await;
        let mut client =
            std::mem::replace(&mut stage.client, FakeClient::start(binary(), &stage.world.home()).await);
        let started = Instant::now();
        assert!(client.close_stdin().await.success());
        measured("listening, stdin closed", started);
        stage.server.wait_for_disconnect(0).await;
        expect![[r#"
            < prompt[msg-0] go on
            < text[msg-1] I begin
            < title go on
        "#]]
        .assert_eq(&stage.loaded(&session).await);
    });
}

#[test]
fn busy_agent_ends_on_a_signal() {
    check(async {
        for name in ["TERM", "HUP"] {
            let mut stage = Stage::new(FOR_EVER).await;
            let (session, pids) = stage.waits_for_ever().await;
            let next = FakeClient::start(binary(), &stage.world.home()).await;
            let mut client = std::mem::replace(&mut stage.client, next);
            let started = Instant::now();
            signal(name, client.pid()).await;
            client.wait_for_exit().await;
            measured(name, started);
            gone(&pids).await;
            let heard = stage.loaded(&session).await;
            assert!(heard.contains("< call call-1-0 terminal") && heard.contains("failed"), "{heard}");
        }
    });
}

#[test]
fn killed_agent_ends_its_shell() {
    check(async {
        let mut stage = Stage::new(FOR_EVER).await;
        let (_, pids) = stage.waits_for_ever().await;
        stage.client.kill().await;
        gone(&pids[..1]).await;
        // No process is left that could kill the children of the shell.
        sh(&format!("kill -KILL {}", pids[1])).status().await.expect("the shell starts");
    });
}

#[test]
fn full_disk_fails_the_turn_and_loses_nothing() {
    check(async {
        let server = ModelServer::start("text \"One.\"\ntext \"Two.\"\ntext \"Three.\"");
        let world = TestHome::new(server.base_url());
        // The maximum file size; the signal would end the process before it sees the error.
        let command = sh("trap '' XFSZ; ulimit -f 1024; exec \"$0\" acp");
        let mut client = FakeClient::start_command(command, &world.home());
        client.request("initialize", json!({"protocolVersion": 1})).await.expect("hello");
        let session = client.new_session(&world.project()).await;
        let mut told = Vec::new();
        let large = "words ".repeat(1_000_000);
        for text in ["small", &large, "small again"] {
            told.push(match client.request("session/prompt", prompt(&session, text)).await {
                Ok(ended) => ended["stopReason"].to_string(),
                Err(error) => error["data"].to_string().replace(&world.home().display().to_string(), "$HOME"),
            });
        }
        expect![[r#"
            "end_turn"
            {"kind":"store","details":"the database $HOME/.crow/crow.db could not be read or written (disk I/O error); check the disk and its free space"}
            "end_turn"
        "#]].assert_eq(&(told.join("\n") + "\n"));
        assert!(client.close_stdin().await.success());
        let client = FakeClient::start(binary(), &world.home()).await;
        let stage = Stage { server, world, client };
        expect![[r#"
            < prompt[msg-0] small
            < text[msg-1] One.
            < prompt[msg-2] small again
            < text[msg-3] Two.
            < title small
        "#]]
        .assert_eq(&stage.loaded(&session).await);
    });
}

#[test]
fn descriptor_limit_is_raised_only_as_far_as_needed() {
    check(async {
        let server = ModelServer::start("");
        let world = TestHome::new(server.base_url());
        let command = sh("ulimit -Sn 256; exec \"$0\" acp");
        let mut client = FakeClient::start_command(command, &world.home());
        client.request("initialize", json!({"protocolVersion": 1})).await.expect("hello");
        let limits = fs::read_to_string(format!("/proc/{}/limits", client.pid())).expect("it runs");
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("there is one");
        let mut numbers = line.split_whitespace().map(|number| number.parse().unwrap_or(u64::MAX));
        let (soft, hard) = (numbers.next().expect("soft"), numbers.next().expect("hard"));
        assert_eq!(soft, hard.min(16 * 1024), "{limits}");
        assert!(client.close_stdin().await.success());
    });
}

/// Returns a number of `/proc/PID/status`.
fn status_kb(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("the kernel says it");
    line.trim_matches(|c: char| !c.is_ascii_digit()).parse().expect("a number")
}

/// Returns the processor time that a process has used so far.
fn n_ticks(pid: u32) -> Vec<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
    fields.skip(11).take(2).map(str::to_owned).collect()
}

/// Waits until a process has been idle for a while: it is blocked.
async fn stalled(pid: u32) {
    const QUIET_TICKS: u32 = 10;
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    let (mut last, mut n_quiet) = (n_ticks(pid), 0);
    while n_quiet < QUIET_TICKS {
        ticks.tick().await;
        let now = n_ticks(pid);
        n_quiet = if now == last { n_quiet + 1 } else { 0 };
        last = now;
    }
}

#[test]
fn client_that_does_not_read_costs_little_and_loses_nothing() {
    const N_CHUNKS: u32 = 500_000;
    // Few distinct words keep the search index small: the measured part is the connection to the client.
    let chunk = |n: u32| format!("{} bottles ", n % 1000);
    check(async {
        let mut body = String::new();
        for n in 0..N_CHUNKS {
            body += "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"";
            body += &chunk(n);
            body += "\"}}]}\n\n";
        }
        body +=
            "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
        let mut stage = Stage::new("").await;
        stage.server.add_answers(crow_testkit::Script::new([Answer::raw(body)]));
        let session = stage.client.new_session(&stage.world.project()).await;
        let id = stage.client.prompt(&session, "count").await;
        stage.server.wait_for_requests(1).await;
        let pid = stage.client.pid();
        stalled(pid).await;
        // The promise does not include the pages of the program, here of a debug build.
        let held = status_kb(pid, "VmRSS:") - status_kb(pid, "RssFile:");
        println!("held back: {held} kB beside the program");
        assert!(held < MEMORY_KB_MAX, "{held} kB");
        let ended = stage.client.response_to(id).await.expect("the turn ends");
        assert_eq!(ended["stopReason"], "end_turn");
        let peak = status_kb(pid, "VmHWM:") - status_kb(pid, "RssFile:");
        println!("peak: {peak} kB beside the program");
        assert!(peak < MEMORY_KB_MAX, "{peak} kB");
        let log = stage.client.log();
        let heard = log.lines().find_map(|line| line.strip_prefix("< text[msg-1] ")).expect("words");
        let said: String = (0..N_CHUNKS).map(chunk).collect();
        assert!(heard == said, "something is missing or out of order");
    });
}

/// A client with a running command that reads nothing of a long answer in another session.
struct StalledReader {
    stage: Stage,
    session: String,
    /// The command's shell and its child.
    command: Vec<String>,
    agent: String,
    /// A process that carries stdin to the agent; the end of it closes stdin.
    carrier: u32,
}

impl StalledReader {
    async fn new() -> Self {
        const N_CHUNKS: usize = 2000;
        let chunk = json!({"choices": [{"index": 0, "delta": {"content": "bottles ".repeat(250)}}]});
        let body = format!("data: {chunk}\n\n").repeat(N_CHUNKS) + "data: [DONE]\n\n";
        let server = ModelServer::start(FOR_EVER);
        let world = TestHome::new(server.base_url());
        let command =
            sh(r#"sh -c 'echo $$ > ~/carrier; exec cat' | sh -c 'echo $$ > ~/agent; exec "$0" acp' "$0""#);
        let mut client = FakeClient::start_command(command, &world.home());
        client.initialize(json!({})).await.expect("hello");
        let mut stage = Stage { server, world, client };
        let (session, command) = stage.waits_for_ever().await;
        let pid = |name: &str| fs::read_to_string(stage.world.home().join(name)).expect("a pid");
        let (agent, carrier) = (pid("agent").trim().to_owned(), pid("carrier").trim().to_owned());
        stage.server.add_answers(crow_testkit::Script::new([Answer::raw(body)]));
        let other = stage.client.new_session(&stage.world.project()).await;
        stage.client.prompt(&other, "count").await;
        stage.server.wait_for_requests(2).await;
        stalled(agent.parse().expect("a pid")).await;
        Self { stage, session, command, agent, carrier: carrier.parse().expect("a pid") }
    }

    /// Checks that the command and then the agent end, and that the command's result is stored.
    async fn ends(self, how: &str) {
        let Self { stage, session, command, agent, .. } = self;
        let started = Instant::now();
        gone(&command).await;
        gone_within(ENDED_UNREAD_WITHIN, &[agent]).await;
        println!("nothing read, {how}: {:?}", started.elapsed());
        let loaded = stage.loaded(&session).await;
        assert!(loaded.contains(r#""started\nstopped: the turn was cancelled""#), "{loaded}");
    }
}

#[test]
fn agent_of_a_stalled_reader_ends_with_stdin() {
    check(async {
        let reader = StalledReader::new().await;
        signal("TERM", reader.carrier).await;
        reader.ends("stdin closed").await;
    });
}

#[test]
fn agent_of_a_stalled_reader_ends_on_a_signal() {
    check(async {
        let reader = StalledReader::new().await;
        signal("TERM", reader.agent.parse().expect("a pid")).await;
        reader.ends("TERM").await;
    });
}

/// The reader of stdout, such as a pager, reads nothing and stays.
#[test]
fn run_of_a_stalled_reader_ends_on_a_signal() {
    check(async {
        let chunk = json!({"choices": [{"index": 0, "delta": {"content": "bottles ".repeat(250)}}]});
        let body = format!("data: {chunk}\n\n").repeat(200) + "data: [DONE]\n\n";
        let server = ModelServer::start(crow_testkit::Script::new([Answer::raw(body)]));
        let world = TestHome::new(server.base_url());
        let mut run = sh(r#"exec "$0" run count"#);
        run.current_dir(world.project()).env("HOME", world.home()).stdin(Stdio::null());
        let mut run = run.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let pid = run.id().expect("it runs");
        server.wait_for_requests(1).await;
        stalled(pid).await;
        signal("TERM", pid).await;
        let ended = tokio::time::timeout(Duration::from_secs(30), run.wait()).await.expect("it ends");
        assert_eq!(ended.expect("a status").code(), Some(130));
    });
}
