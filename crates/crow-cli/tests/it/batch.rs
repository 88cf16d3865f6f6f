//! `crow-cli batch` as a whole: files in, files out, an exit code.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Command, Stdio},
};

use crow_testkit::ModelServer;
use crow_testkit::client::TestHome;
use expect_test::{Expect, expect};
use serde_json::Value;

struct Stage {
    server: ModelServer,
    world: TestHome,
}

impl Stage {
    fn new(script: &str, tasks: &str) -> Self {
        let server = ModelServer::start(script);
        let world = TestHome::new(server.base_url());
        world.write_file("tasks.jsonl", tasks);
        Self { server, world }
    }

    /// `args` are words of a shell command, so that a test can redirect.
    #[expect(clippy::disallowed_methods, reason = "the program is tested from outside, as a shell starts it")]
    fn command(&self, args: &str) -> Command {
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(format!("exec '{}' batch {args}", env!("CARGO_BIN_EXE_crow-cli")))
            .current_dir(self.world.project())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.world.home())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Returns the exit code, stdout and stderr, with all times 0.
    fn run(&self, args: &str) -> String {
        let output = self.command(args).output().expect("the program runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let told = format!(
            "{}--\n{}exit {}\n",
            text(&output.stderr),
            text(&output.stdout),
            output.status.code().unwrap_or(-1)
        );
        self.plain(&told)
    }

    fn plain(&self, text: &str) -> String {
        let text = text.replace(&self.world.project().display().to_string(), "$PROJECT");
        let mut words: Vec<&str> = text.split(' ').collect();
        for place in 1..words.len() {
            let is_number = words[place - 1].bytes().all(|byte| byte.is_ascii_digit());
            if is_number && matches!(words[place].lines().next(), Some("s")) {
                words[place - 1] = "0";
            }
        }
        let fields = words.join(" ");
        let mut fields = fields.split("\"seconds\":");
        let first = fields.next().unwrap_or_default().to_owned();
        first
            + &fields
                .map(|rest| "\"seconds\":0".to_owned() + rest.trim_start_matches(|letter| letter != ','))
                .collect::<String>()
    }

    /// Returns the results without their sessions and times.
    fn results(&self) -> String {
        let text = fs::read_to_string(self.world.project().join("tasks.results.jsonl")).unwrap_or_default();
        let lines = text.lines().map(|line| {
            let result: Value = serde_json::from_str(line).expect("a result is JSON");
            let has_session = if result["session"].is_string() { "in a session" } else { "no session" };
            format!(
                "{} {} {} {} {has_session} {}\n",
                result["id"], result["state"], result["text"], result["tokens"], result["error"]
            )
        });
        lines.collect()
    }
}

#[track_caller]
fn check(stage: &Stage, args: &str, expected: &Expect) {
    expected.assert_eq(&format!("{}{}", stage.run(args), stage.results()));
}

const THREE: &str = r#"{"id": "a", "prompt": "First."}
{"id": "b", "prompt": "Second.", "mode": "plan"}

{"prompt": "Third."}
"#;

#[test]
fn only_a_queue_takes_thousands_at_once() {
    check(
        &Stage::new("", THREE),
        "tasks.jsonl --parallel 257",
        &expect![[r#"
        error: --parallel 257 is more than 256
        hint: only an agent with a queue (`agent_servers`: `nats`) takes more at once
        --
        exit 2
    "#]],
    );
}

#[test]
fn batch_runs_what_has_not_ended() {
    let stage = Stage::new(
        "text \"One.\" | usage 100 5\nstatus 400 {\"error\": {\"message\": \"no\"}}\ncall terminal {\"command\":\"touch ran\"} | usage 100 5\ntext \"Not done.\" | usage 200 5",
        THREE,
    );
    check(
        &stage,
        "tasks.jsonl --parallel 1",
        &expect![[r#"
        [1/3] ✓ a · 0 s · 105 tokens
        [2/3] ✗ b · 0 s · `fake` rejected the request for `scripted` (400): no; check its settings in the configuration
        [3/3] ✗ 3d45be095fe3483a · 0 s · 310 tokens · a tool call needed permission and there was no terminal to ask on
        results     tasks.results.jsonl
        continue    add --retry-failed to run failed tasks again
        --
        STATE   TASKS  TOKENS  TIME
        done    1      105     0 s
        failed  2      310     0 s

        FAILED            REASON
        b                 `fake` rejected the request for `scripted` (400): no; check its settings in the c…
        3d45be095fe3483a  a tool call needed permission and there was no terminal to ask on
        exit 1
        "a" "done" "One." 105 in a session null
        "b" "failed" "" null in a session "`fake` rejected the request for `scripted` (400): no; check its settings in the configuration"
        "3d45be095fe3483a" "failed" "Not done." 310 in a session "a tool call needed permission and there was no terminal to ask on"
    "#]],
    );
    assert!(!stage.world.project().join("ran").exists());
}

#[test]
fn batch_runs_failed_tasks_again() {
    let lines =
        ["a\",\"state\":\"done", "b\",\"state\":\"failed"].map(|start| format!("{{\"id\":\"{start}\"}}\n"));
    let stage = Stage::new("", THREE);
    let third = "{\"id\":\"3d45be095fe3483a\",\"state\":\"failed\"}\n";
    stage.world.write_file("tasks.results.jsonl", &format!("{}{third}", lines.concat()));
    check(
        &stage,
        "tasks.jsonl",
        &expect![[r#"
            results     tasks.results.jsonl
            continue    add --retry-failed to run failed tasks again
            --
            STATE          TASKS  TOKENS  TIME
            done before    1
            failed before  2
            exit 1
            "a" "done" null null no session null
            "b" "failed" null null no session null
            "3d45be095fe3483a" "failed" null null no session null
        "#]],
    );
    stage
        .server
        .add_answers("text \"Two.\" | usage 50 5\ncall terminal {\"command\":\"touch ran\"}\ntext \"Done.\"");
    check(
        &stage,
        "tasks.jsonl --parallel 1 --retry-failed --allow touch -j | sed 's/\"session\":\"[^\"]*\"/\"session\":\"NAME\"/'",
        &expect![[r#"
            --
            {"type":"started","id":"b"}
            {"type":"result","id":"b","state":"done","text":"Two.","session":"NAME","branch":null,"worktree":null,"tokens":55,"seconds":0,"error":null}
            {"type":"started","id":"3d45be095fe3483a"}
            {"type":"result","id":"3d45be095fe3483a","state":"done","text":"Done.","session":"NAME","branch":null,"worktree":null,"tokens":0,"seconds":0,"error":null}
            {"type":"summary","done":2,"failed":0,"cancelled":0,"done_before":1,"failed_before":0,"not_started":0,"tokens":55}
            exit 0
            "a" "done" null null no session null
            "b" "failed" null null no session null
            "3d45be095fe3483a" "failed" null null no session null
            "b" "done" "Two." 55 in a session null
            "3d45be095fe3483a" "done" "Done." 0 in a session null
        "#]],
    );
    assert!(stage.world.project().join("ran").exists());
    assert_eq!(stage.server.rejections(), Vec::<String>::new());
}

#[test]
fn batch_checks_its_file_before_anything_begins() {
    let stage = Stage::new("", "{\"id\": \"a\", \"prompt\": \"x\"}\n{\"id\": \"a\", \"prompt\": \"y\"}\n");
    check(
        &stage,
        "tasks.jsonl",
        &expect![[r#"
        error: tasks.jsonl, line 2: the ID "a" is that of line 1 as well
        hint: give each line an "id" of its own; without one, equal lines have the same
        --
        exit 2
    "#]],
    );
    stage.world.write_file("tasks.jsonl", "{\"prompt\": \"x\"}\n{\"prompt\": \"x\", \"cwd\": \"gone\"}\n");
    check(
        &stage,
        "tasks.jsonl",
        &expect![[r#"
        error: tasks.jsonl, line 2: cwd: could not work in $PROJECT/gone: No such file or directory (os error 2)
        --
        exit 2
    "#]],
    );
    check(
        &stage,
        "none.jsonl",
        &expect![[r#"
        error: could not read the tasks in none.jsonl: No such file or directory (os error 2)
        --
        exit 2
    "#]],
    );
    check(
        &stage,
        "- < tasks.jsonl",
        &expect![[r#"
        error: tasks from stdin need a file for their results
        hint: give it with -o FILE
        --
        exit 2
    "#]],
    );
    check(
        &stage,
        "tasks.jsonl --model other",
        &expect![[r#"
        error: unknown model "other"
        hint: configured models: scripted
        --
        exit 2
    "#]],
    );
}

#[test]
fn batch_appends_to_results_only() {
    let stage = Stage::new("", THREE);
    stage.world.write_file("notes.md", "# Notes\nwithout an end");
    check(
        &stage,
        "tasks.jsonl -o notes.md",
        &expect![[r#"
        error: notes.md, line 1: not the result of a batch: expected value at column 1
        hint: results are appended to the file of -o; choose one that does not exist
        --
        exit 2
    "#]],
    );
    assert_eq!(
        fs::read_to_string(stage.world.project().join("notes.md")).expect("it is there"),
        "# Notes\nwithout an end"
    );
    assert_eq!(stage.server.n_requests(), 0);
}

#[test]
fn batch_drops_the_beginning_of_a_result() {
    let stage = Stage::new("text \"Two.\"\ntext \"Three.\"", THREE);
    let whole = "{\"id\":\"a\",\"state\":\"done\",\"text\":\"\",\"session\":null,\"tokens\":7,\"seconds\":1.0,\"error\":null}\n";
    stage.world.write_file("tasks.results.jsonl", &format!("{whole}{{\"id\":\"b\",\"state\":\"do"));
    check(
        &stage,
        "tasks.jsonl --parallel 1",
        &expect![[r#"
        [1/2] ✓ b · 0 s · 0 tokens
        [2/2] ✓ 3d45be095fe3483a · 0 s · 0 tokens
        results     tasks.results.jsonl
        --
        STATE        TASKS  TOKENS  TIME
        done         2      0       0 s
        done before  1
        exit 0
        "a" "done" "" 7 no session null
        "b" "done" "Two." 0 in a session null
        "3d45be095fe3483a" "done" "Three." 0 in a session null
    "#]],
    );
}

#[test]
fn batch_ends_when_its_tokens_are_used() {
    let stage = Stage::new(
        "call glob {\"pattern\":\"*\"} | usage 400 100\ncall glob {\"pattern\":\"a\"} | usage 500 100\nhold | text \"Late.\"",
        THREE,
    );
    check(
        &stage,
        "tasks.jsonl --parallel 1 --max-tokens 1000",
        &expect![[r#"
        [1/3] – a · 0 s · 1.1k tokens · the 1.0k tokens for all tasks are used
        results     tasks.results.jsonl
        continue    run the same command again
        error: the 1.0k tokens for all tasks are used; tasks not run: 2
        hint: run the same command again with a higher --max-tokens
        --
        STATE        TASKS  TOKENS  TIME
        cancelled    1      1.1k    0 s
        not started  2
        exit 6
        "a" "cancelled" "" 1100 in a session "the 1.0k tokens for all tasks are used"
    "#]],
    );
    stage.server.replace_answers("text \"One.\" | usage 400 100\ntext \"Two.\" | usage 400 100");
    check(
        &stage,
        "tasks.jsonl --parallel 1 --max-tokens 2000",
        &expect![[r#"
        [1/3] ✓ a · 0 s · 500 tokens
        [2/3] ✓ b · 0 s · 500 tokens
        results     tasks.results.jsonl
        continue    run the same command again
        error: the 2.0k tokens for all tasks are used; tasks not run: 1
        hint: run the same command again with a higher --max-tokens
        --
        STATE        TASKS  TOKENS  TIME
        done         2      1.0k    0 s
        not started  1
        exit 6
        "a" "cancelled" "" 1100 in a session "the 1.0k tokens for all tasks are used"
        "a" "done" "One." 500 in a session null
        "b" "done" "Two." 500 in a session null
    "#]],
    );
}

#[test]
fn batch_stops_where_every_task_would_fail() {
    let stage = Stage::new("status 401 {\"error\": {\"message\": \"wrong key\"}}", THREE);
    check(
        &stage,
        "tasks.jsonl --parallel 1",
        &expect![[r#"
        results     tasks.results.jsonl
        continue    run the same command again
        error: `fake` needs a key (401): wrong key; configure its `api_key`
        --
        STATE        TASKS  TOKENS  TIME
        not started  3
        exit 1
    "#]],
    );
}

#[cfg(target_os = "linux")]
#[test]
fn batch_stops_where_no_result_can_be_written() {
    let stage = Stage::new("text \"One.\"", THREE);
    check(
        &stage,
        "tasks.jsonl -o /dev/full --parallel 1",
        &expect![[r#"
        [1/3] ✓ a · 0 s · 0 tokens
        results     /dev/full
        continue    run the same command again
        error: could not write the results to /dev/full: No space left on device (os error 28)
        --
        STATE        TASKS  TOKENS  TIME
        done         1      0       0 s
        not started  2
        exit 1
    "#]],
    );
}

#[tokio::test]
async fn interrupt_ends_running_tasks_in_order() {
    let stage = Stage::new("hold\nhold", THREE);
    let mut batch = stage.command("tasks.jsonl --parallel 2 -j").spawn().expect("it starts");
    let mut lines = BufReader::new(batch.stdout.take().expect("stdout is piped")).lines();
    for _ in 0..2 {
        let line = lines.next().expect("an event").expect("text");
        assert!(line.starts_with("{\"type\":\"started\""), "{line}");
    }
    stage.server.wait_for_requests(2).await;
    let pid = nix::unistd::Pid::from_raw(batch.id().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("it runs");
    let summary = lines.map(|line| line.expect("text")).last().expect("a summary");
    let mut told = String::new();
    batch.stderr.take().expect("stderr is piped").read_to_string(&mut told).expect("text");
    told += &format!("{summary}\nexit {:?}\n", batch.wait().expect("it ends").code());
    let mut results: Vec<String> = stage.results().lines().map(str::to_owned).collect();
    results.sort_unstable();
    expect![[r#"
        stopping 2 running; Ctrl-C again ends them at once
        {"type":"summary","done":0,"failed":0,"cancelled":2,"done_before":0,"failed_before":0,"not_started":1,"tokens":0}
        exit Some(130)
        "a" "cancelled" "" null in a session "the batch was interrupted"
        "b" "cancelled" "" null in a session "the batch was interrupted"
    "#]].assert_eq(&format!("{told}{}\n", results.join("\n")));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "git is the user's")]
fn tasks_with_worktrees_leave_branches_and_ignored_files_only() {
    let write = r#"{"file_path":"new.txt","content":"new\n"}"#;
    let ignored = r#"{"file_path":"settings.local","content":"mine\n"}"#;
    let tasks = r#"{"id": "Make it!", "prompt": "ALPHA", "worktree": true}
{"id": "look", "prompt": "BETA", "worktree": true}
{"id": "keep", "prompt": "GAMMA", "worktree": true}
"#;
    let stage = Stage::new("", tasks);
    stage.server.add_answers_for("ALPHA", format!("call write {write}\ntext \"Made.\"").as_str());
    stage.server.add_answers_for("BETA", "text \"Nothing to do.\"");
    stage.server.add_answers_for("GAMMA", format!("call write {ignored}\ntext \"Kept.\"").as_str());
    fs::write(stage.world.project().join(".gitignore"), "*.local\n").expect("it is written");
    let git = |line: &str| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=user", "-c", "user.email=user@localhost"]).args(line.split(' '));
        let output = command.current_dir(stage.world.project()).output().expect("git runs");
        assert!(output.status.success(), "git {line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    check(
        &stage,
        "tasks.jsonl",
        &expect![[r#"
        error: tasks.jsonl, line 1: worktree: $PROJECT is in no git repository
        --
        exit 2
    "#]],
    );
    for line in ["init -q -b main", "add .", "commit -q -m first"] {
        git(line);
    }
    let told = stage.run("tasks.jsonl -y -o ../results.jsonl");
    assert!(told.ends_with("exit 0\n"), "{told}");
    let results = fs::read_to_string(stage.world.home().join("results.jsonl")).expect("it is written");
    let mut results: Vec<Value> =
        results.lines().map(|line| serde_json::from_str(line).expect("a result is JSON")).collect();
    results.sort_by_key(|result| result["id"].to_string());
    let [made, kept, looked] = results.as_slice() else { panic!("{results:?}") };
    assert_eq!(
        (&looked["branch"], &looked["worktree"], &made["worktree"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    let worktree = kept["worktree"].as_str().expect("the worktree was kept");
    assert_eq!(fs::read_to_string(Path::new(worktree).join("settings.local")).expect("it is kept"), "mine\n");
    assert!(told.contains(&format!("ignored files in {worktree}")), "{told}");
    let branch = made["branch"].as_str().expect("it has a branch");
    assert!(branch.starts_with("crow/make-it-"), "{branch}");
    assert_eq!(git(&format!("show {branch}:new.txt")), "new\n");
    assert_eq!(git("status --porcelain"), "");
    assert_eq!(git("worktree list").lines().count(), 2);
}
