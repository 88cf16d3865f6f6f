//! External agents while they run: interrupted by the user, and their messages between turns.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    time::{Duration, Instant},
};

use crow_process::{BackgroundJob, JobWaitOptions, OutputLimits, ProcessGroups, RunningProgram, StdioKind};
use crow_testkit::tracked_command::TrackedCommand;
use expect_test::expect;
use nix::{sys::signal::Signal, unistd::Pid};

use super::{Stage, with};

/// The timeout of a wait, after which the test fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// Starts `crow-cli run` without a shell around it, so that a signal reaches it.
#[expect(clippy::disallowed_methods, reason = "the program is tested from outside")]
fn started(stage: &Stage, args: &[&str]) -> std::process::Child {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_crow-cli"));
    command
        .args(args)
        .current_dir(stage.world.project())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", stage.world.home())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    command.spawn().expect("it starts")
}

fn signal(child: &std::process::Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid"));
    nix::sys::signal::kill(pid, signal).expect("it runs");
}

/// Interrupts a turn of an agent as often as needed, and checks that no process is left.
#[track_caller]
fn check_interrupted(words: &[&str]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let mut leash = TrackedCommand::new(folder.path());
        let spawns = format!("spawns={}", folder.path().display());
        let words: Vec<&str> = words.iter().copied().chain([spawns.as_str()]).collect();
        let stage = with(&words, "");
        let mut child = started(&stage, &["run", "--agent", "other", "-j", "hi"]);
        let mut lines = BufReader::new(child.stdout.take().expect("piped"));
        let mut heard = String::new();
        while !heard.contains("started") {
            assert_ne!(lines.read_line(&mut heard).expect("text"), 0, "it ended: {heard}");
        }
        signal(&child, Signal::SIGINT);
        if words.contains(&"flood-deaf") {
            // Two simultaneous signals would be one; after this much output the first one was handled.
            for _ in 0..5_000 {
                heard.clear();
                assert_ne!(lines.read_line(&mut heard).expect("text"), 0, "it ended: {heard}");
            }
            signal(&child, Signal::SIGINT);
        }
        std::io::copy(&mut lines, &mut std::io::sink()).expect("it is read to its end");
        assert_eq!(child.wait().expect("it ends").code(), Some(130));
        leash.wait_until_gone("crow ended").await;
    });
}

#[test]
fn interrupts_cancel_and_end_the_agent() {
    check_interrupted(&["slow=never"]);
    check_interrupted(&["slow=never", "stubborn"]);
    check_interrupted(&["flood-deaf", "deaf"]);
}

/// Terminates a turn of Crow that runs a command, and checks that no process is left.
#[track_caller]
fn check_ended(ending: Signal) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(async {
        let command = serde_json::json!({ "command": TrackedCommand::COMMAND });
        let stage = Stage::new(&format!("call terminal {command}\ntext \"Never.\""));
        let mut leash = TrackedCommand::new(&stage.world.project());
        let mut child = started(&stage, &["run", "-y", "-j", "hi"]);
        let mut lines = BufReader::new(child.stdout.take().expect("piped"));
        let mut heard = String::new();
        while !heard.contains("started") {
            assert_ne!(lines.read_line(&mut heard).expect("text"), 0, "it ended: {heard}");
        }
        signal(&child, ending);
        std::io::copy(&mut lines, &mut std::io::sink()).expect("it is read to its end");
        let mut said = String::new();
        let mut stderr = child.stderr.take().expect("piped");
        std::io::Read::read_to_string(&mut stderr, &mut said).expect("text");
        assert_eq!(
            (child.wait().expect("it ends").code(), said.contains("error:")),
            (Some(130), false),
            "{said}"
        );
        leash.wait_until_gone("crow ended").await;
    });
}

#[test]
fn termination_by_the_system_is_no_error() {
    check_ended(Signal::SIGTERM);
    check_ended(Signal::SIGHUP);
}

#[test]
fn interrupt_before_initialize() {
    let stage = with(&["silent"], "");
    let mut child = started(&stage, &["run", "--agent", "other", "hi"]);
    let agent_runs = |child: &std::process::Child| {
        let children = format!("/proc/{0}/task/{0}/children", child.id());
        fs::read_to_string(children).is_ok_and(|children| !children.trim().is_empty())
    };
    let since = Instant::now();
    while !agent_runs(&child) {
        assert!(since.elapsed() < PATIENCE, "the agent does not start");
        std::thread::yield_now();
    }
    signal(&child, Signal::SIGINT);
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert!(since.elapsed() < PATIENCE, "it took {:?}", since.elapsed());
}

#[test]
fn agent_that_speaks_between_turns_without_a_user() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("now");
    let stage = with(&["asks", &format!("later={}", file.display())], "");
    let mut child = started(&stage, &["run", "--agent", "other", "-i", "-j"]);
    let mut lines = BufReader::new(child.stdout.take().expect("piped"));
    let mut heard = String::new();
    let mut until = |text: &str| {
        while !heard.contains(text) {
            assert_ne!(lines.read_line(&mut heard).expect("text"), 0, "it ended: {heard}");
        }
        std::mem::take(&mut heard)
    };
    until("\"session\"");
    fs::write(&file, "").expect("written");
    expect![[r#"
        {"type":"message","text":"by the way"}
        {"type":"tool_call","id":"call-2","title":"rm -rf build","status":"pending","input":{"command":"rm -rf build"},"content":[]}
        {"type":"message","text":"; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"reject_once\"}}"}
        {"type":"tool_call","id":"call-2","title":"rm -rf build","status":"failed"}
    "#]].assert_eq(&until("\"failed\""));
    let mut input = child.stdin.take().expect("piped");
    input.write_all(b"hi\n").expect("it reads");
    // Messages before the prompt are not part of its answer.
    let turn = until("\"result\"");
    assert!(turn.lines().last().is_some_and(|result| !result.contains("by the way")), "{turn}");
    drop(input);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

/// A user at a terminal.
struct Person {
    job: BackgroundJob,
    seen: String,
}

impl Person {
    async fn at(stage: &Stage, args: &[&str]) -> Self {
        let command = crow_process::CommandSpec {
            program: env!("CARGO_BIN_EXE_crow-cli").to_owned(),
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
            cwd: stage.world.project(),
            env: vec![
                ("HOME".into(), stage.world.home().display().to_string()),
                ("TERM".into(), "dumb".into()),
            ],
            env_removed: vec!["NO_COLOR".into()],
        };
        let kept = OutputLimits { head_bytes: 1 << 16, tail_bytes: 1 << 16, spill_dir: None };
        let program = RunningProgram::start(&ProcessGroups::new(), command, StdioKind::Terminal, kept).await;
        Self { job: program.expect("it starts").into_job(Duration::from_secs(600)), seen: String::new() }
    }

    /// Waits until a text is on the screen, and drops everything up to it.
    async fn sees(&mut self, text: &str) {
        let since = Instant::now();
        while !self.seen.contains(text) {
            assert!(since.elapsed() < PATIENCE, "{text:?} is not in {:?}", self.seen);
            let patience =
                JobWaitOptions { timeout: PATIENCE, quiet_period: Duration::from_millis(5), n_unread_min: 1 };
            self.job.wait_until_quiet(patience).await;
            self.seen += &self.job.take_output().await.text;
        }
        let end = self.seen.find(text).map_or(0, |start| start + text.len());
        self.seen.drain(..end);
    }

    async fn types(&mut self, text: &str) {
        self.job.write_input(text.as_bytes().to_vec()).await.expect("it reads");
    }
}

#[test]
fn agent_between_turns_is_answered_by_the_user() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("now");
        let stage = with(&["asks", &format!("later={}", file.display())], "");
        let mut person = Person::at(&stage, &["run", "--agent", "other", "-i"]).await;
        person.sees("› ").await;
        fs::write(&file, "").expect("written");
        person.sees("by the way").await;
        person.sees("rm -rf build").await;
        person.sees("(n) › ").await;
        person.types("what?\n").await;
        person.sees("(n) › ").await;
        person.types("y\n").await;
        person.sees("\"optionId\":\"allow_once\"").await;
        person.sees("› ").await;
        person.types("hi\n").await;
        person.sees("echo: hi").await;
        person.sees("(n) › ").await;
        person.types("n\n").await;
        person.sees("\"optionId\":\"reject_once\"").await;
        person.sees("› ").await;
        person.types("exit\n").await;
        person.sees("continue    crow-cli run --agent other -s session-1").await;
    });
}
