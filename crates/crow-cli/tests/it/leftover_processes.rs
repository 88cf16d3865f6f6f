//! No process is left, however a command tries to escape, and whichever process is killed.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "what is tested here is the place where commands start")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crow_testkit::ModelServer;
use crow_testkit::client::{FakeClient, TestHome};
use serde_json::json;

/// The promise is one second; a loaded machine may take longer, and a leftover process stays forever.
const GONE_WITHIN: Duration = Duration::from_secs(20);

/// The polling interval.
const LOOK: Duration = Duration::from_millis(10);

/// Ways to escape. Each leaves two processes whose last argument is the mark.
const WAYS: [(&str, &str); 7] = [
    ("in the background", "sleep MARK & sleep MARK &"),
    ("in sessions of their own", "setsid sleep MARK & setsid sleep MARK &"),
    ("without a hang-up", "nohup sleep MARK >/dev/null 2>&1 & nohup sleep MARK >/dev/null 2>&1 &"),
    (
        "as daemons",
        "for i in 1 2; do setsid sh -c 'sleep MARK & sleep MARK & exit' >/dev/null 2>&1 & done; sleep MARK & ",
    ),
    ("deaf", "trap '' TERM HUP INT QUIT; setsid sleep MARK & sleep MARK &"),
    ("standing still", "sh -c 'kill -STOP $$' sh MARK & setsid sh -c 'kill -STOP $$' sh MARK &"),
    ("on and on", "echo 'sh $0 $1 &' > CHAIN; setsid sh CHAIN MARK & sleep MARK &"),
];

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_crow-cli"))
}

/// Returns an argument of `sleep` that is unique on this machine.
fn mark() -> String {
    static N_MARKS: AtomicU32 = AtomicU32::new(0);
    format!("98765.{}{:03}", std::process::id(), N_MARKS.fetch_add(1, Ordering::Relaxed))
}

/// Returns the processes whose last argument is the mark.
fn marked(mark: &str) -> Vec<i32> {
    let entries = fs::read_dir("/proc").expect("there are processes").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_marked = |pid: &i32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|&byte| byte == 0).rfind(|word| !word.is_empty()) == Some(mark.as_bytes())
    };
    pids.filter(is_marked).collect()
}

/// Waits until there are this many of them.
#[track_caller]
fn wait_for(what: &str, mark: &str, is_enough: impl Fn(usize) -> bool) {
    let began = Instant::now();
    while !is_enough(marked(mark).len()) {
        assert!(began.elapsed() < GONE_WITHIN, "{what}: {:?}", marked(mark));
        // There is no event for the end of another program's processes.
        std::thread::park_timeout(LOOK);
    }
}

#[track_caller]
fn gone(what: &str, mark: &str) {
    wait_for(what, mark, |n| n == 0);
}

/// As behind `nohup` or in the background of a script: what the supervisor ignores, its command does not.
fn supervised(script: &str) -> Command {
    let mut command = Command::new("env");
    command.arg("--ignore-signal=INT,QUIT,HUP").arg(binary());
    command.args(["sandbox-exec", "--free", "--", "sh", "-c", script]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn kill(child: &Child, signal: nix::sys::signal::Signal) {
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).expect("a pid"));
    nix::sys::signal::kill(pid, signal).expect("it can be signalled");
}

/// For each way to escape: waits until the processes have escaped, runs an action, and checks that none is left.
#[track_caller]
fn check(then: &str, after: impl Fn(&mut Child)) {
    for (way, script) in WAYS {
        let (mark, folder) = (mark(), tempfile::tempdir().expect("a folder can be made"));
        let chain = folder.path().join("chain");
        let script = script.replace("MARK", &mark).replace("CHAIN", &chain.display().to_string());
        let end = folder.path().join("end");
        let waiting = format!("{script}\nwhile [ ! -e {} ]; do sleep 0.01; done", end.display());
        let mut child = supervised(&waiting).spawn().expect("the supervisor starts");
        wait_for(&format!("{way}: they never came"), &mark, |n| n >= 2);
        after(&mut child);
        fs::write(&end, "").expect("a file can be written");
        child.wait().expect("it ends");
        gone(&format!("{way}, {then}"), &mark);
    }
}

#[test]
fn command_that_exits_leaves_nothing() {
    check("its command ended", |_| ());
}

#[test]
fn killed_supervisor_leaves_nothing() {
    check("the supervisor was killed", |child| kill(child, nix::sys::signal::Signal::SIGKILL));
}

#[test]
fn command_with_grace_is_told_before_it_is_killed() {
    for (way, on_term) in [("it ends", "echo over >SAID; exit"), ("deaf", "echo deaf >SAID")] {
        let (mark, folder) = (mark(), tempfile::tempdir().expect("a folder can be made"));
        let said = folder.path().join("said");
        let on_term = on_term.replace("SAID", &said.display().to_string());
        let script = format!(
            "trap '{on_term}' TERM; sleep {mark} & sleep {mark} & echo ready; while :; do wait; sleep 0.01; done"
        );
        let mut command = Command::new(binary());
        command.args(["sandbox-exec", "--free", "--grace", "--", "sh", "-c", &script, "sh", &mark]);
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the supervisor starts");
        let mut line = String::new();
        let output = BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line);
        output.expect("it can be read");
        assert_eq!(line, "ready\n", "{way}");
        kill(&child, nix::sys::signal::Signal::SIGKILL);
        child.wait().expect("it ends");
        gone(way, &mark);
        assert!(said.exists(), "{way}: it was not told");
    }
}

#[test]
fn killed_keeper_leaves_nothing() {
    check("the keeper was killed", |child| {
        let children = format!("/proc/{0}/task/{0}/children", child.id());
        let keeper = fs::read_to_string(children).expect("the supervisor has a child");
        let keeper = nix::unistd::Pid::from_raw(keeper.trim().parse().expect("just one"));
        nix::sys::signal::kill(keeper, nix::sys::signal::Signal::SIGKILL).expect("it can be killed");
    });
}

#[test]
fn killed_caller_leaves_nothing() {
    let mark = mark();
    let script = format!("setsid sleep {mark} & sleep {mark}");
    let mut caller = Command::new("sh");
    caller.args(["-c", "\"$@\" & wait", "sh"]).arg(binary());
    caller.args(["sandbox-exec", "--free", "--", "sh", "-c", &script]);
    let mut caller = caller.spawn().expect("a shell starts");
    wait_for("they never came", &mark, |n| n >= 2);
    kill(&caller, nix::sys::signal::Signal::SIGKILL);
    caller.wait().expect("it ends");
    gone("the caller was killed", &mark);
}

#[test]
fn caller_sees_that_a_command_has_closed_its_pipes() {
    let mut command = supervised("exec <&- >&-; read line <&2");
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().expect("a pair is made");
    command.stderr(std::os::fd::OwnedFd::from(theirs)).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut caller = command.spawn().expect("it starts");
    let mut stdout = caller.stdout.take().expect("it is a pipe");
    std::io::copy(&mut stdout, &mut std::io::sink()).expect("it is read to its end");
    assert_eq!(caller.try_wait().expect("it is known"), None, "the command still waits");
    drop((ours, command));
    caller.wait().expect("it ends");
}

#[track_caller]
fn check_end(script: &str, expected: Result<i32, i32>) {
    let status: ExitStatus = supervised(script).status().expect("the supervisor starts");
    assert_eq!(status.code().ok_or(status.signal().unwrap_or_default()), expected, "{script}");
}

#[test]
fn caller_sees_the_exit_status() {
    check_end("exit 0", Ok(0));
    check_end("exit 42", Ok(42));
    check_end("kill -TERM $$", Err(15));
    check_end("kill -KILL $$", Err(9));
    check_end("kill -SEGV $$", Err(11));
    check_end("sleep 1000 & exit 3", Ok(3));
    let mut missing = Command::new(binary());
    missing.args(["sandbox-exec", "--free", "--", "no-such-program-here"]);
    let missing = missing.output().expect("the supervisor starts");
    assert_eq!(missing.status.code(), Some(127));
    let said = String::from_utf8_lossy(&missing.stderr);
    assert_eq!(said, "crow-cli sandbox-exec: there is no program no-such-program-here\n");
}

#[test]
fn signals_reach_the_command() {
    for (signal, name) in [
        (nix::sys::signal::Signal::SIGTERM, "TERM"),
        (nix::sys::signal::Signal::SIGINT, "INT"),
        (nix::sys::signal::Signal::SIGHUP, "HUP"),
        (nix::sys::signal::Signal::SIGQUIT, "QUIT"),
    ] {
        let mark = mark();
        let script = format!("trap 'kill $!; exit 7' {name}; sleep {mark} & wait");
        let mut child = supervised(&script).spawn().expect("the supervisor starts");
        wait_for("it never came", &mark, |n| n == 1);
        kill(&child, signal);
        assert_eq!(child.wait().expect("it ends").code(), Some(7), "{name}");
        gone(name, &mark);
    }
}

#[test]
fn terminal_hangup_ends_a_command_that_ignores_signals() {
    let mark = mark();
    let mut child = supervised(&format!("trap '' HUP; sleep {mark}")).spawn().expect("the supervisor starts");
    wait_for("it never came", &mark, |n| n == 1);
    kill(&child, nix::sys::signal::Signal::SIGHUP);
    child.wait().expect("it ends");
    gone("hung up", &mark);
}

/// Returns a script that escapes in every way.
fn away(mark: &str, chain: &Path) -> String {
    let ways = WAYS.map(|(_, script)| script.replace("MARK", mark)).join("\n");
    ways.replace("CHAIN", &chain.display().to_string())
}

/// Runs until both a command and a server have escaped in every way, then kills Crow.
#[test]
fn killed_crow_leaves_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(async {
        let (command, server) = (mark(), mark());
        let folder = tempfile::tempdir().expect("a folder can be made");
        let script = format!("{}\nsleep {command}", away(&command, &folder.path().join("one")));
        let model = ModelServer::start(format!("call terminal {}", json!({"command": script})).as_str());
        let world = TestHome::new(model.base_url());
        let mut client = FakeClient::start(binary(), &world.home()).await;
        let launcher = format!("{}\nsleep {server}", away(&server, &folder.path().join("two")));
        let servers = json!([{"name": "away", "command": "sh", "args": ["-c", launcher], "env": []}]);
        let params = json!({"cwd": world.project(), "mcpServers": servers});
        let opened = client.request("session/new", params).await.expect("the session opens");
        let session = opened["sessionId"].as_str().expect("it has a name").to_owned();
        client.prompt(&session, "go").await;
        client.wait_for_line("in_progress").await;
        for mark in [&command, &server] {
            wait_for("they never came", mark, |n| n > 2 * WAYS.len());
        }
        client.kill().await;
        gone("Crow was killed, the command", &command);
        gone("Crow was killed, the server", &server);
    });
}

#[test]
fn hook_of_a_killed_crow_leaves_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(async {
        let (mark, folder) = (mark(), tempfile::tempdir().expect("a folder can be made"));
        let script = folder.path().join("hook.sh");
        let lines = format!("{}\nsleep {mark}", away(&mark, &folder.path().join("chain")));
        fs::write(&script, lines).expect("a file can be written");
        let model = ModelServer::start("call read {\"file_path\":\"a\"}");
        let world = TestHome::new(model.base_url());
        let hook = json!({"command": format!("sh {}", script.display())});
        world.add_config(&format!("hooks: {{ PreToolUse: [{hook}] }}\n"));
        let mut client = FakeClient::start(binary(), &world.home()).await;
        let params = json!({"cwd": world.project(), "mcpServers": []});
        let opened = client.request("session/new", params).await.expect("the session opens");
        let session = opened["sessionId"].as_str().expect("it has a name").to_owned();
        client.prompt(&session, "go").await;
        wait_for("they never came", &mark, |n| n > 2 * WAYS.len());
        client.kill().await;
        gone("Crow was killed, the hook", &mark);
    });
}
