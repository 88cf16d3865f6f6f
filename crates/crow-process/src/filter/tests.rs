use expect_test::{Expect, expect};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::*;

/// Far beyond what anything here takes; reached only when something hangs.
const STUCK: Duration = Duration::from_secs(30);

/// More than a pipe holds, so that its writer needs a reader.
const FLOOD_BYTES: usize = 3_000_000;

fn sh(script: &str) -> CommandSpec {
    CommandSpec {
        program: "sh".into(),
        args: vec!["-c".into(), script.into()],
        cwd: "/".into(),
        env: Vec::new(),
        env_removed: vec!["HOME".into()],
    }
}

fn bounds(timeout: Duration) -> FilterLimits {
    FilterLimits { timeout, stdout_bytes: 20, stderr_bytes: 10 }
}

async fn filtered(script: &str, input: &str, timeout: Duration) -> FilterResult {
    let groups = ProcessGroups::new();
    let cancel = CancellationToken::new();
    let filtered = run_filter(&groups, sh(script), input.into(), bounds(timeout), &cancel).await.unwrap();
    assert_eq!(groups.n_alive(), 0);
    filtered
}

async fn check(script: &str, input: &str, expect: Expect) {
    let FilterResult { exit: ended, stdout, stderr } = filtered(script, input, STUCK).await;
    expect.assert_eq(&format!("{ended:?} {:?} {:?}", stdout.text, stderr.text));
}

#[tokio::test]
async fn filter_answers_with_separate_outputs() {
    check("cat; echo no >&2; exit 2", "word\n", expect![[r#"Exited(2) "word\n" "no\n""#]]).await;
    check("echo ${HOME:-no home}; kill -9 $$", "", expect![[r#"Signalled(9) "no home\n" """#]]).await;
}

#[tokio::test]
async fn input_larger_than_a_pipe_arrives_completely() {
    let input = "x".repeat(FLOOD_BYTES);
    check("wc -c | tr -d ' '", &input, expect![[r#"Exited(0) "3000000\n" """#]]).await;
    // Both sides are full at once here: a writer that does not read as well would hang.
    let copied = filtered("cat", &input, STUCK).await;
    assert_eq!((copied.exit, copied.stdout.n_bytes), (ExitReason::Exited(0), FLOOD_BYTES as u64));
}

#[tokio::test]
async fn unread_input_is_not_an_error() {
    let input = "x".repeat(FLOOD_BYTES);
    check("exit 3", &input, expect![[r#"Exited(3) "" """#]]).await;
    check("exec <&-; echo closed", &input, expect![[r#"Exited(0) "closed\n" """#]]).await;
    check("head -c 2; echo", &input, expect![[r#"Exited(0) "xx\n" """#]]).await;
}

#[tokio::test]
async fn output_flood_is_bounded() {
    let script = format!("yes | head -c {FLOOD_BYTES}; yes n | head -c {FLOOD_BYTES} >&2; exit 2");
    check(&script, "", expect![[r#"Exited(2) "y\ny\ny\ny\ny\ny\ny\ny\ny\ny\n\n… 2999980 bytes omitted …\n" "\n… 2999990 bytes omitted …\nn\nn\nn\nn\nn\n""#]]).await;
}

#[tokio::test]
async fn hanging_filter_times_out() {
    let script = "trap '' TERM; echo on; echo off >&2; sleep 1000 & echo $!; while :; do sleep 1000; done";
    let FilterResult { exit, stdout, stderr } = filtered(script, "", Duration::from_millis(200)).await;
    assert_eq!((exit, stderr.text.as_str()), (ExitReason::TimedOut, "off\n"));
    assert!(stdout.text.starts_with("on\n"));
}

#[tokio::test]
async fn leftover_process_delays_nothing() {
    check("sleep 1000 & echo on", "", expect![[r#"Exited(0) "on\n" """#]]).await;
    check("setsid sleep 1 & echo on", "", expect![[r#"Exited(0) "on\n" """#]]).await;
}

#[tokio::test]
async fn cancel_ends_the_filter() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let (groups, cancel) = (ProcessGroups::new(), CancellationToken::new());
    let script = format!("echo up > {}; exec sleep 1000", pipe.display());
    let cancel_once_up = async {
        let file = tokio::fs::File::open(&pipe).await.unwrap();
        let mut line = String::new();
        BufReader::new(file).read_line(&mut line).await.unwrap();
        assert_eq!((line.as_str(), groups.n_alive()), ("up\n", 1));
        cancel.cancel();
    };
    let running = run_filter(&groups, sh(&script), Vec::new(), bounds(STUCK), &cancel);
    let (filtered, ()) = tokio::join!(running, cancel_once_up);
    assert_eq!((filtered.unwrap().exit, groups.n_alive()), (ExitReason::Cancelled, 0));
    let never = run_filter(&groups, sh("exit 9"), Vec::new(), bounds(STUCK), &cancel).await.unwrap();
    assert_eq!(never.exit, ExitReason::Cancelled);
}

#[tokio::test]
async fn kill_all_refuses_new_filters() {
    let groups = ProcessGroups::new();
    groups.kill_all();
    let refused = run_filter(&groups, sh("true"), Vec::new(), bounds(STUCK), &CancellationToken::new()).await;
    expect!["no more programs are started: the process is shutting down"]
        .assert_eq(&refused.unwrap_err().to_string());
}
