use std::{fmt::Write as _, time::Duration};

use expect_test::{Expect, expect};
use tokio_util::sync::CancellationToken;

use super::{STUCK, gone, sh};
use crate::{
    BackgroundJob, ExitReason, JobInputError, JobStatus, JobWaitOptions, OutputLimits, ProcessGroups,
    RunningProgram, StdioKind, WaitOutcome,
};

fn kept() -> OutputLimits {
    OutputLimits { head_bytes: 4000, tail_bytes: 4000, spill_dir: None }
}

async fn start(groups: &ProcessGroups, script: &str, line: StdioKind) -> BackgroundJob {
    RunningProgram::start(groups, sh(script), line, kept()).await.unwrap().into_job(STUCK)
}

/// Waits until a job has printed all of a text, and returns its output until then.
async fn heard(job: &BackgroundJob, text: &str) -> String {
    let mut said = String::new();
    while !said.contains(text) {
        let was = job.status();
        job.wait_until_quiet(JobWaitOptions {
            timeout: STUCK,
            quiet_period: Duration::ZERO,
            n_unread_min: 0,
        })
        .await;
        let more = job.take_output().await.text;
        assert!(!(more.is_empty() && was.exit.is_some()), "it ended and said only {said:?}");
        said += &more;
    }
    said
}

/// Starts a script on a terminal and types lines to it, each after some output; shows the whole output.
async fn check(script: &str, talk: &[(&str, &str)], expect: Expect) {
    let groups = ProcessGroups::new();
    let job = start(&groups, script, StdioKind::Terminal).await;
    let mut all = String::new();
    for (until, typed) in talk {
        all += &heard(&job, until).await;
        job.write_input(typed.as_bytes().to_vec()).await.unwrap();
    }
    job.wait_until_ended(STUCK).await;
    all += &job.take_output().await.text;
    let _ = write!(all, "{:?}", job.status().exit);
    expect.assert_eq(&all);
    assert_eq!(groups.n_alive(), 0);
}

#[tokio::test]
async fn job_has_its_own_terminal() {
    let script = "tty | sed 's/[0-9]*$/N/'; stty size; (: < /dev/tty) && echo has one; exit 3";
    check(script, &[], expect![["/dev/pts/N\n24 100\nhas one\nSome(Exited(3))"]]).await;
}

#[tokio::test]
async fn job_gets_input() {
    let script = "printf 'name? '; read name; echo \"hello $name\"; printf 'more? '; cat; echo end";
    check(
        script,
        &[("name? ", "crow\r"), ("more? ", "\x04")],
        expect![["name? crow\nhello crow\nmore? end\nSome(Exited(0))"]],
    )
    .await;
}

#[tokio::test]
async fn job_is_interrupted_from_its_terminal() {
    let script = "trap 'echo caught; exit 5' INT; sleep 1000 & echo up; wait";
    check(script, &[("up", "\x03")], expect![["up\n^Ccaught\nSome(Exited(5))"]]).await;
}

#[tokio::test]
async fn job_without_a_terminal_is_interrupted_but_has_no_input() {
    let groups = ProcessGroups::new();
    let job = start(&groups, "trap 'exit 5' INT; sleep 1000 & echo up; wait", StdioKind::Pipe).await;
    heard(&job, "up").await;
    assert_eq!(job.write_input(b"x\r".to_vec()).await, Err(JobInputError::NoInput));
    job.interrupt().await;
    job.wait_until_ended(STUCK).await;
    assert_eq!(job.status(), JobStatus { n_unread: 0, exit: Some(ExitReason::Exited(5)) });
    assert_eq!(job.write_input(b"x\r".to_vec()).await, Err(JobInputError::Ended));
}

#[tokio::test]
async fn job_output_is_taken_once() {
    let groups = ProcessGroups::new();
    let job = start(&groups, "echo one; read go; echo two", StdioKind::Terminal).await;
    assert_eq!(heard(&job, "one\n").await, "one\n");
    assert_eq!(job.take_output().await.text, "");
    job.write_input(b"go\r".to_vec()).await.unwrap();
    job.wait_until_ended(STUCK).await;
    assert_eq!(job.take_output().await.text, "go\ntwo\n");
    assert_eq!(job.take_output().await.text, "");
}

#[tokio::test]
async fn job_ends_with_its_handle() {
    let groups = ProcessGroups::new();
    let job = start(&groups, "sleep 1000 & echo $!; wait", StdioKind::Pipe).await;
    let pid = heard(&job, "\n").await;
    drop(job);
    gone(&pid).await;
}

/// An interactive shell ends for nothing less.
#[tokio::test]
async fn job_gets_sighup() {
    let groups = ProcessGroups::new();
    let script = "trap '' TERM; trap 'echo hung up; exit 6' HUP; sleep 1000 & echo $!; wait";
    let job = start(&groups, script, StdioKind::Terminal).await;
    let pid = heard(&job, "\n").await;
    job.shut_down().await;
    assert_eq!(job.status().exit, Some(ExitReason::Cancelled));
    assert_eq!(job.take_output().await.text, "hung up\n");
    gone(&pid).await;
    assert_eq!(groups.n_alive(), 0);
}

#[tokio::test]
async fn job_lifetime_is_bounded() {
    let groups = ProcessGroups::new();
    let program =
        RunningProgram::start(&groups, sh("echo up; sleep 1000"), StdioKind::Pipe, kept()).await.unwrap();
    let job = program.into_job(Duration::from_millis(200));
    job.wait_until_ended(STUCK).await;
    assert_eq!(job.status().exit, Some(ExitReason::TimedOut));
    assert_eq!(job.take_output().await.text, "up\n");
}

#[tokio::test]
async fn job_output_flood_is_bounded_and_can_be_ended() {
    let groups = ProcessGroups::new();
    let job = start(&groups, "yes", StdioKind::Terminal).await;
    // The wait ends with the first megabyte, as no quiet has to follow.
    let options = JobWaitOptions { timeout: STUCK, quiet_period: Duration::ZERO, n_unread_min: 1_000_000 };
    job.wait_until_quiet(options).await;
    assert!(job.status().n_unread > 1_000_000);
    let output = job.take_output().await;
    assert!(output.text.len() < 9000 && output.n_bytes > 8000, "{} {}", output.text.len(), output.n_bytes);
    job.shut_down().await;
    assert_eq!(groups.n_alive(), 0);
}

#[tokio::test]
async fn program_continues_as_a_job() {
    let groups = ProcessGroups::new();
    let mut program =
        RunningProgram::start(&groups, sh("echo one; sleep 1000"), StdioKind::Pipe, kept()).await.unwrap();
    let cancel = CancellationToken::new();
    let happened = program
        .wait_for_exit(&cancel, tokio::time::Instant::now() + STUCK, &mut |_: &str| cancel.cancel())
        .await;
    assert_eq!(happened.unwrap(), WaitOutcome::Cancelled);
    let job = program.into_job(STUCK);
    assert_eq!(job.status(), JobStatus { n_unread: 4, exit: None });
    job.shut_down().await;
    assert_eq!(job.take_output().await.text, "one\n");
}

#[tokio::test]
async fn job_input_is_bounded() {
    let groups = ProcessGroups::new();
    // The program does not read: what a terminal does not accept waits in Crow.
    let job = start(&groups, "stty raw; echo up; sleep 1000", StdioKind::Terminal).await;
    heard(&job, "up").await;
    assert_eq!(job.write_input(vec![b'x'; 5000]).await, Err(JobInputError::LongLine));
    let line = [vec![b'x'; 3999], vec![b'\r']].concat();
    let mut fed = Ok(());
    for _ in 0..40 {
        fed = job.write_input(line.clone()).await;
    }
    assert_eq!(fed, Err(JobInputError::BufferFull));
}

#[tokio::test]
async fn job_escapes_and_progress_are_read_as_on_a_screen() {
    let script = r"printf '\033[1mbold\033[0m\n'; for n in 10 50 100; do printf '\r%s %%' $n; done; echo";
    check(script, &[], expect![["bold\n100 %\nSome(Exited(0))"]]).await;
}
