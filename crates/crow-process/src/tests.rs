mod jobs;

use std::{
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use expect_test::{Expect, expect};
use nix::{
    sys::{
        signal::kill,
        wait::{Id, WaitPidFlag, waitid},
    },
    unistd::Pid,
};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio_util::sync::CancellationToken;

use crate::{
    CapturedOutput, CommandSpec, OutputLimits, OutputWatcher, PipedProcess, ProcessGroups, ProcessPipes,
    ProgramResult, RunLimits, SpawnError, has_process_ended, output::OutputCollector, run_program,
    spawn_piped_process,
};

/// Far beyond what anything here takes; reached only when something hangs.
const STUCK: Duration = Duration::from_secs(30);

fn sh(script: &str) -> CommandSpec {
    CommandSpec {
        program: "sh".into(),
        args: vec!["-c".into(), script.into()],
        cwd: "/".into(),
        env: vec![("CROW_ADDED".into(), "added".into())],
        env_removed: vec!["HOME".into()],
    }
}

fn bounds(timeout: Duration) -> RunLimits {
    RunLimits { timeout, head_bytes: 40, tail_bytes: 20, spill_dir: None }
}

async fn run_plainly(command: CommandSpec, timeout: Duration) -> Result<ProgramResult, SpawnError> {
    let groups = ProcessGroups::new();
    let ran = run_program(&groups, command, bounds(timeout), &CancellationToken::new(), |_: &str| ()).await;
    assert_eq!(groups.n_alive(), 0);
    ran
}

async fn check(script: &str, expect: Expect) {
    let ran = run_plainly(sh(script), STUCK).await.unwrap();
    expect.assert_eq(&format!("{:?}\n{}", ran.exit, ran.output.text));
}

#[tokio::test]
async fn both_outputs_in_order() {
    check("echo one; echo two >&2; echo three", expect![["Exited(0)\none\ntwo\nthree\n"]]).await;
}

#[tokio::test]
async fn exit_code() {
    check("echo no; exit 3", expect![["Exited(3)\nno\n"]]).await;
}

#[tokio::test]
async fn signal() {
    check("kill -9 $$", expect![["Signalled(9)\n"]]).await;
}

#[tokio::test]
async fn environment_and_input() {
    let script =
        "echo $CROW_ADDED ${HOME:-no home}; cat; echo end; (: < /dev/tty) 2> /dev/null || echo no tty";
    check(script, expect![["Exited(0)\nadded no home\nend\nno tty\n"]]).await;
}

/// Collects pieces and ignores snapshots.
struct Pieces(Vec<u8>);

impl OutputWatcher for &mut Pieces {
    fn on_output(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn on_snapshot(&mut self, _text: &dyn Fn() -> String) {}
}

#[tokio::test]
async fn watcher_sees_all_output_of_a_short_program() {
    let mut pieces = Pieces(Vec::new());
    for _ in 0..20 {
        let cancel = CancellationToken::new();
        run_program(&ProcessGroups::new(), sh("echo one; echo two >&2"), bounds(STUCK), &cancel, &mut pieces)
            .await
            .unwrap();
    }
    assert_eq!(String::from_utf8_lossy(&pieces.0), "one\ntwo\n".repeat(20));
}

#[tokio::test]
async fn invalid_utf8() {
    check(r"printf 'a\377b\303\251'", expect![["Exited(0)\na\u{fffd}bé"]]).await;
}

#[tokio::test]
async fn output_cut_between_characters() {
    let umlauts = "ä".repeat(50);
    check(
        &format!("printf x{umlauts}y"),
        expect![["Exited(0)\nxäääääääääääääääääää\n… 44 bytes omitted …\näääääääääy"]],
    )
    .await;
}

#[tokio::test]
async fn leftover_process_is_killed() {
    let ran = run_plainly(sh("sleep 1000 & echo $!"), STUCK).await.unwrap();
    gone(&ran.output.text).await;
}

#[tokio::test]
async fn leftover_process_with_other_output_is_killed() {
    let ran = run_plainly(sh("sleep 1000 > /dev/null 2>&1 & echo $!"), STUCK).await.unwrap();
    gone(&ran.output.text).await;
}

#[tokio::test]
async fn process_outside_the_group_delays_nothing() {
    let ran = run_plainly(sh("setsid sleep 1000 & echo $!"), STUCK).await.unwrap();
    let pid = ran.output.text.trim().parse().unwrap();
    // Cleans up; the process may not have left the group yet.
    let _ = kill(Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
}

#[tokio::test]
async fn missing_program_and_folder() {
    let command = CommandSpec { program: "no-such-program-here".into(), ..sh("") };
    let error = run_plainly(command, STUCK).await.unwrap_err();
    expect!["there is no program no-such-program-here"].assert_eq(&error.to_string());
    let command = CommandSpec { cwd: "/no/such/folder".into(), ..sh("") };
    let error = run_plainly(command, STUCK).await.unwrap_err();
    expect!["there is no directory /no/such/folder"].assert_eq(&error.to_string());
}

#[tokio::test]
async fn timeout_kills_the_whole_group() {
    let ran = run_plainly(sh("sleep 1000 & echo $!; wait"), Duration::from_secs(1)).await.unwrap();
    expect!["TimedOut"].assert_eq(&format!("{:?}", ran.exit));
    gone(&ran.output.text).await;
}

#[tokio::test]
async fn cancel_kills_the_whole_group() {
    let ran = cancel_once_it_speaks("sleep 1000 & echo $!; wait").await;
    gone(&ran.output.text).await;
}

#[tokio::test]
async fn sigterm_precedes_sigkill() {
    let ran = cancel_once_it_speaks("trap 'echo bye; exit' TERM; echo up; sleep 1000 & wait").await;
    expect![["up\nbye\n"]].assert_eq(&ran.output.text);
}

#[tokio::test]
async fn sigkill_ends_a_stubborn_program() {
    let ran = cancel_once_it_speaks("trap '' TERM; echo $$; while :; do sleep 1000; done").await;
    gone(&ran.output.text).await;
}

async fn cancel_once_it_speaks(script: &str) -> ProgramResult {
    let cancel = CancellationToken::new();
    let ran =
        run_program(&ProcessGroups::new(), sh(script), bounds(STUCK), &cancel, |_: &str| cancel.cancel())
            .await
            .unwrap();
    expect!["Cancelled"].assert_eq(&format!("{:?}", ran.exit));
    ran
}

#[tokio::test]
async fn cancel_before_the_start() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let ran = run_program(&ProcessGroups::new(), sh("echo ran"), bounds(STUCK), &cancel, |_: &str| ())
        .await
        .unwrap();
    expect!["Cancelled 0"].assert_eq(&format!("{:?} {}", ran.exit, ran.output.n_bytes));
}

#[tokio::test]
async fn dropping_kills_the_group() {
    let (groups, pid) = speak_then(|running| running.abort()).await;
    gone(&pid).await;
    assert_eq!(groups.n_alive(), 0);
}

#[tokio::test]
async fn kill_all_kills_and_closes() {
    let (groups, pid) = speak_then(|_| ()).await;
    groups.kill_all();
    gone(&pid).await;
    let refused =
        run_program(&groups, sh("echo ran"), bounds(STUCK), &CancellationToken::new(), |_: &str| ()).await;
    assert!(matches!(refused, Err(SpawnError::Closed)));
}

/// Starts a child with a grandchild, waits for the grandchild's pid, then acts on the task.
async fn speak_then(act: impl FnOnce(&tokio::task::JoinHandle<()>)) -> (ProcessGroups, String) {
    let groups = ProcessGroups::new();
    let (said, mut heard) = tokio::sync::mpsc::channel(1);
    let ours = groups.clone();
    let running = tokio::spawn(async move {
        let say = |text: &str| said.try_send(text.to_owned()).unwrap();
        let script = sh("sleep 1000 & echo $!; wait");
        run_program(&ours, script, bounds(STUCK), &CancellationToken::new(), say).await.unwrap();
    });
    let pid = heard.recv().await.unwrap();
    act(&running);
    (groups, pid)
}

#[tokio::test]
async fn output_is_bounded_and_spilled_to_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let n_bytes = 100_000_000;
    let spill_dir = Some(directory.path().join("new"));
    let limits = RunLimits { timeout: STUCK, head_bytes: 1000, tail_bytes: 500, spill_dir };
    let pictures = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&pictures);
    let progress = move |text: &str| seen.lock().unwrap().push(text.len());
    let command = sh(&format!("yes | head -c {n_bytes}"));
    let ran = run_program(&ProcessGroups::new(), command, limits, &CancellationToken::new(), progress)
        .await
        .unwrap();
    let CapturedOutput { text, n_bytes: n_seen, n_omitted, spill_file, cwd: _ } = ran.output;
    assert_eq!((n_seen, n_omitted), (n_bytes, n_bytes - 1500));
    assert!(text.len() < 1600 && text.contains("… 99998500 bytes omitted …"));
    assert!(pictures.lock().unwrap().iter().all(|&length| length < 1600));
    let spilled = spill_file.unwrap();
    let found = std::fs::metadata(&spilled.path).unwrap();
    assert_eq!((found.len(), spilled.n_bytes), (n_bytes, n_bytes));
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    let whole = std::fs::read(&spilled.path).unwrap();
    assert!(whole.chunks(2).all(|line| line == b"y\n"));
}

#[tokio::test]
async fn spill_file_is_created_only_if_needed() {
    let directory = tempfile::tempdir().unwrap();
    let collect = async |directory: PathBuf, said: &str| {
        let mut output =
            OutputCollector::new(OutputLimits { head_bytes: 4, tail_bytes: 4, spill_dir: Some(directory) });
        for byte in said.as_bytes() {
            output.push(&[*byte]).await;
        }
        output.take_output().await
    };
    let fits = collect(directory.path().to_owned(), "12345678").await;
    assert_eq!((fits.text.as_str(), fits.spill_file), ("12345678", None));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    let cancel = collect(directory.path().to_owned(), "123456789").await;
    assert_eq!(cancel.text, "1234\n… 1 bytes omitted …\n6789");
    assert_eq!(std::fs::read_to_string(cancel.spill_file.unwrap().path).unwrap(), "123456789");
    let nowhere = collect(Path::new("/dev/null/no").to_owned(), "123456789").await;
    assert_eq!((nowhere.n_omitted, nowhere.spill_file), (1, None));
}

/// Starts a child and waits for the pid that it prints first.
async fn companion(groups: &ProcessGroups, script: &str) -> (PipedProcess, ProcessPipes, String) {
    let (companion, mut pipes) = spawn_piped_process(groups, sh(script)).await.unwrap();
    let mut line = String::new();
    BufReader::with_capacity(1, &mut pipes.stdout).read_line(&mut line).await.unwrap();
    (companion, pipes, line.trim().to_owned())
}

#[tokio::test]
async fn piped_process_answers() {
    let groups = ProcessGroups::new();
    let (mut companion, mut pipes, _) =
        companion(&groups, "echo $$; read word; echo $word; echo no >&2; exit 3").await;
    pipes.stdin.write_all(b"hello\n").await.unwrap();
    let (mut said, mut complained) = (String::new(), String::new());
    pipes.stdout.read_to_string(&mut said).await.unwrap();
    pipes.stderr.read_to_string(&mut complained).await.unwrap();
    let ended = companion.wait().await.unwrap();
    expect![[r#"("hello\n", "no\n", Exited(3))"#]].assert_eq(&format!("{:?}", (said, complained, ended)));
}

#[tokio::test]
async fn piped_process_ends_with_its_input() {
    let groups = ProcessGroups::new();
    let (companion, pipes, _) = companion(&groups, "echo $$; read word; exit 4").await;
    drop(pipes.stdin);
    expect![["Some(Exited(4))"]].assert_eq(&format!("{:?}", companion.shut_down().await));
    assert_eq!(groups.n_alive(), 0);
}

#[tokio::test]
async fn piped_process_is_killed_with_its_group() {
    let groups = ProcessGroups::new();
    let script = "trap '' TERM; sleep 1000 & echo $!; while :; do sleep 1000; done";
    let (companion, _pipes, pid) = companion(&groups, script).await;
    expect![["Some(Signalled(9))"]].assert_eq(&format!("{:?}", companion.shut_down().await));
    gone(&pid).await;
}

#[tokio::test]
async fn piped_process_group_is_killed_on_drop() {
    let groups = ProcessGroups::new();
    let (companion, _pipes, pid) = companion(&groups, "sleep 1000 & echo $!; wait").await;
    drop(companion);
    gone(&pid).await;
    assert_eq!(groups.n_alive(), 0);
}

#[tokio::test]
async fn kill_all_ends_piped_processes_and_refuses_new_ones() {
    let groups = ProcessGroups::new();
    let (mut companion, _pipes, pid) = companion(&groups, "sleep 1000 & echo $!; wait").await;
    groups.kill_all();
    expect![["Signalled(9)"]].assert_eq(&format!("{:?}", companion.wait().await.unwrap()));
    gone(&pid).await;
    let refused = spawn_piped_process(&groups, sh("true")).await.unwrap_err();
    expect![["no more programs are started: the process is shutting down"]].assert_eq(&refused.to_string());
}

/// Waits until a process has ended.
async fn gone(pid: &str) {
    let pid = pid.trim().parse().unwrap();
    let began = Instant::now();
    let mut tick = tokio::time::interval(Duration::from_millis(5));
    while !has_process_ended(pid) {
        if began.elapsed() > STUCK {
            panic!("{pid} lives on");
        }
        tick.tick().await;
    }
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the state of a process is seen before its parent waits for it"
)]
fn process_has_ended_before_and_after_its_parent_knows() {
    let mut child = std::process::Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    let is_running = !has_process_ended(pid);
    drop(child.stdin.take());
    waitid(Id::Pid(Pid::from_raw(pid.cast_signed())), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).unwrap();
    let is_known_to_us = has_process_ended(pid);
    child.wait().unwrap();
    // Only Linux has a file that tells.
    assert!(is_known_to_us || !cfg!(target_os = "linux"));
    assert!(is_running && has_process_ended(pid));
    assert!(!has_process_ended(std::process::id()) && !has_process_ended(1));
    assert!(has_process_ended(0) && has_process_ended(u32::MAX), "they are no processes");
}

#[tokio::test]
async fn partial_character_is_kept_back() {
    let mut output = OutputCollector::new(OutputLimits { head_bytes: 100, tail_bytes: 0, spill_dir: None });
    let mut said = Vec::new();
    for piece in [&b"caf\xC3"[..], b"\xA9 \xE2\x82", b"\xAC\n"] {
        output.push(piece).await;
        said.push(output.take_partial_output().await.text);
    }
    output.push(b"half \xE2\x82").await;
    said.push(output.take_output().await.text);
    assert_eq!(said, ["caf", "é ", "€\n", "half \u{FFFD}"]);
}
