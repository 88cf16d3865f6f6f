use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_util::sync::CancellationToken;

use crate::{
    CommandSpec, ExitReason, JobWaitOptions, OutputLimits, ProcessGroups, RunLimits, RunningProgram,
    SpawnError, StdioKind, run_program, spawn_piped_process,
};

/// Far beyond what anything here takes; reached only when something hangs.
const STUCK: Duration = Duration::from_secs(60);

/// A program that runs for longer than any test.
const ENDLESS: &str = "ping -n 1000 127.0.0.1 >NUL";

fn cmd(line: &str) -> CommandSpec {
    CommandSpec {
        program: "cmd.exe".into(),
        args: ["/D", "/C", line].map(str::to_owned).to_vec(),
        cwd: r"C:\".into(),
        env: vec![("CROW_ADDED".into(), "added".into())],
        env_removed: Vec::new(),
    }
}

fn limits(timeout: Duration) -> RunLimits {
    RunLimits { timeout, head_bytes: 1000, tail_bytes: 1000, spill_dir: None }
}

async fn run(line: &str, timeout: Duration) -> String {
    let groups = ProcessGroups::new();
    let cancel = CancellationToken::new();
    let result = run_program(&groups, cmd(line), limits(timeout), &cancel, |_: &str| ()).await.unwrap();
    assert_eq!(groups.n_alive(), 0);
    format!("{:?} {}", result.exit, result.output.text.replace('\r', "").trim_end())
}

#[tokio::test]
async fn program_has_both_outputs_an_environment_and_an_exit_code() {
    assert_eq!(run("echo one& echo two>&2& echo three", STUCK).await, "Exited(0) one\ntwo\nthree");
    assert_eq!(run("echo %CROW_ADDED%& exit 3", STUCK).await, "Exited(3) added");
}

#[tokio::test]
async fn missing_program_and_directory_are_named() {
    let run = |command| async move {
        let cancel = CancellationToken::new();
        run_program(&ProcessGroups::new(), command, limits(STUCK), &cancel, |_: &str| ()).await.unwrap_err()
    };
    let error = run(CommandSpec { program: "no-such-program".into(), ..cmd("") }).await;
    assert_eq!(error.to_string(), "there is no program no-such-program");
    let error = run(CommandSpec { cwd: r"C:\no\such".into(), ..cmd("") }).await;
    assert_eq!(error.to_string(), r"there is no directory C:\no\such");
}

#[tokio::test]
async fn timeout_ends_everything_that_was_started() {
    let began = Instant::now();
    // The inner program holds the pipe as long as it lives.
    let line = format!("echo up& cmd /C {ENDLESS}");
    assert_eq!(run(&line, Duration::from_secs(2)).await, "TimedOut up");
    assert!(began.elapsed() < STUCK);
}

#[tokio::test]
async fn kill_all_ends_programs_and_refuses_new_ones() {
    let groups = ProcessGroups::new();
    let (mut process, _pipes) = spawn_piped_process(&groups, cmd(ENDLESS)).await.unwrap();
    groups.kill_all();
    assert_eq!(process.wait().await.unwrap(), ExitReason::Exited(1));
    let refused = spawn_piped_process(&groups, cmd("echo ran")).await.unwrap_err();
    assert!(matches!(refused, SpawnError::Closed));
}

#[tokio::test]
async fn piped_process_answers() {
    let groups = ProcessGroups::new();
    let (process, mut pipes) = spawn_piped_process(&groups, cmd("findstr x")).await.unwrap();
    pipes.stdin.write_all(b"x1\r\ny\r\nx2\r\n").await.unwrap();
    drop(pipes.stdin);
    let mut answer = String::new();
    pipes.stdout.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer.replace('\r', ""), "x1\nx2\n");
    assert!(process.shut_down().await.is_some());
}

#[tokio::test]
async fn program_on_a_terminal_reads_what_is_typed() {
    let groups = ProcessGroups::new();
    let output_limits = OutputLimits { head_bytes: 10_000, tail_bytes: 10_000, spill_dir: None };
    // Under Wine the standard handles of the program are not those of its console.
    let line = "set /p word=say: <CON >CON& call echo heard-%^word% >CON";
    let program =
        RunningProgram::start(&groups, cmd(line), StdioKind::Terminal, output_limits).await.unwrap();
    let job = program.into_job(STUCK);
    let mut output = String::new();
    for (expected, typed) in [("say:", "yes\r"), ("heard-yes", "")] {
        while !output.contains(expected) {
            let options = JobWaitOptions { timeout: STUCK, quiet_period: Duration::ZERO, n_unread_min: 0 };
            job.wait_until_quiet(options).await;
            let more = job.take_output().await.text;
            assert!(!more.is_empty() || job.status().exit.is_none(), "{output:?}");
            output += &more;
        }
        if !typed.is_empty() {
            job.write_input(typed.as_bytes().to_vec()).await.unwrap();
        }
    }
    job.wait_until_ended(STUCK).await;
    assert_eq!(job.status().exit, Some(ExitReason::Exited(0)));
}
