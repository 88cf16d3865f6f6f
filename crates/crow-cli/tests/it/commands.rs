//! Errors of users and scripts on the command line, each in its own process.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod agents;
mod config;
mod configuration;
pub(crate) mod doctor;
mod faults;
mod models;
mod run_options;
mod sessions;
mod sign_in;
mod telemetry;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crow_testkit::client::{FakeClient, TestHome};
use crow_testkit::{ModelServer, Script};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

struct Stage {
    server: ModelServer,
    world: TestHome,
}

/// The result of a process.
struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Stage {
    fn new(script: &str) -> Self {
        let server = ModelServer::start(script);
        let world = TestHome::new(server.base_url());
        Self { server, world }
    }

    fn configured(script: &str, yaml: &str) -> Self {
        let stage = Self::new(script);
        stage.world.configure(&yaml.replace("$URL", stage.server.base_url()));
        stage
    }

    /// `args` are words of a shell command, so that a test can redirect and pipe.
    #[expect(clippy::disallowed_methods, reason = "the program is tested from outside, as a shell starts it")]
    fn command(&self, args: &str) -> Command {
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(format!("crow() {{ '{}' \"$@\"; }}; {args}", env!("CARGO_BIN_EXE_crow-cli")))
            .current_dir(self.world.project())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.world.home())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn crow(&self, args: &str) -> Ran {
        self.crow_hears(args, "")
    }

    fn crow_hears(&self, args: &str, stdin: &str) -> Ran {
        let mut child = self.command(args).spawn().expect("the shell starts");
        let mut input = child.stdin.take().expect("stdin is piped");
        // A program need not read its input.
        let _ = input.write_all(stdin.as_bytes());
        drop(input);
        let output = child.wait_with_output().expect("it ends");
        Ran {
            code: output.status.code(),
            stdout: self.plain(&output.stdout),
            stderr: self.plain(&output.stderr),
        }
    }

    fn plain(&self, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes);
        text.replace(&self.world.home().display().to_string(), "$HOME")
            .replace(self.server.base_url(), "$URL")
    }

    /// Returns the sessions in the store, newest first.
    fn sessions(&self) -> Vec<String> {
        let listed = self.crow("crow inspect -j").stdout;
        let listed: Value = serde_json::from_str(&listed).expect("inspect -j prints JSON");
        let sessions = listed["sessions"].as_array().expect("a list").iter();
        sessions.map(|session| session["id"].as_str().expect("an id").to_owned()).collect()
    }

    /// Returns the last request to the model, without the system prompt.
    fn told(&self) -> Vec<String> {
        let last = self.server.requests().pop().unwrap_or_default();
        let messages = last["messages"].as_array().cloned().unwrap_or_default();
        let said = messages.iter().filter(|message| message["role"] != "system");
        said.map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Returns all bytes below the configuration directory.
    fn stored(&self) -> String {
        let folder = std::fs::read_dir(self.world.home().join(".crow")).expect("the folder is there");
        let files = folder.map(|entry| std::fs::read(entry.expect("an entry").path()).unwrap_or_default());
        files.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect()
    }
}

impl Ran {
    /// Renders the exit code, stdout, and the last line of stderr.
    fn told(&self) -> String {
        let mut told = format!("exit {}\n{}", self.code.unwrap_or(-1), self.stdout);
        if !told.ends_with('\n') {
            told.push('\n');
        }
        let said = ["error:", "hint:", "warning:", "thread"];
        for line in self.stderr.lines().filter(|line| said.iter().any(|word| line.starts_with(word))) {
            told += line;
            told.push('\n');
        }
        told
    }
}

#[track_caller]
fn check(stage: &Stage, args: &str, told: &Expect) {
    told.assert_eq(&stage.crow(args).told());
}

/// Opens a session in an editor and prompts it; renders both results.
fn in_an_editor(stage: &Stage) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(async {
        let binary = Path::new(env!("CARGO_BIN_EXE_crow-cli"));
        let mut client = FakeClient::start(binary, &stage.world.home()).await;
        let mut told = String::new();
        let opening = json!({"cwd": stage.world.project(), "mcpServers": []});
        let opened = client.request("session/new", opening).await;
        told += &format!("new: {}\n", spelled(&opened, "modes"));
        if let Ok(opened) = opened {
            let prompt = json!([{"type": "text", "text": "hi"}]);
            let params = json!({"sessionId": opened["sessionId"], "prompt": prompt});
            let ended = client.request("session/prompt", params).await;
            told += &format!("prompt: {}\n", spelled(&ended, "stopReason"));
        }
        let again = client.request("session/list", json!({})).await;
        told += &format!("list: {}\n", spelled(&again, "sessions"));
        assert!(client.close_stdin().await.success(), "the agent ends well");
        told.replace(&stage.world.home().display().to_string(), "$HOME")
    })
}

fn spelled(answered: &Result<Value, Value>, field: &str) -> String {
    match answered {
        Ok(result) if result[field].is_string() => result[field].as_str().unwrap_or_default().to_owned(),
        Ok(_) => "ok".to_owned(),
        Err(error) => {
            let text = |name: &str| error["data"][name].as_str().unwrap_or_default().to_owned();
            format!("{} {}: {}", error["code"], text("kind"), text("details"))
        }
    }
}

#[test]
fn dead_server_is_an_error() {
    let stage = Stage::configured(
        "",
        "providers:\n  dead: { base_url: 'http://127.0.0.1:9/v1' }\nmodels:\n  main: { provider: dead }\nmax_retries_per_step: 0\n",
    );
    check(
        &stage,
        "crow run hi",
        &expect![[r#"
        exit 1
        error: `dead` cannot be reached at http://127.0.0.1:9/v1: connection refused; is it running, and is `base_url` right?
    "#]],
    );
    check(
        &stage,
        "crow run -j hi | grep -v '\"session\"'",
        &expect![[r#"
        exit 0
        {"type":"error","kind":"connection","message":"`dead` cannot be reached at http://127.0.0.1:9/v1: connection refused; is it running, and is `base_url` right?"}
        error: `dead` cannot be reached at http://127.0.0.1:9/v1: connection refused; is it running, and is `base_url` right?
    "#]],
    );
}

#[test]
fn unusable_arguments_are_errors() {
    let stage = Stage::new("");
    check(
        &stage,
        "crow run -s nope hi",
        &expect![[r#"
        exit 4
        error: there is no session nope; `crow-cli inspect` lists the sessions
    "#]],
    );
    check(
        &stage,
        "crow run",
        &expect![[r#"
        exit 2
        error: no prompt was given
        hint: pass it as an argument or with -f FILE, or type prompts with -i
    "#]],
    );
    check(
        &stage,
        "crow run ''",
        &expect![[r#"
        exit 2
        error: the prompt is empty
    "#]],
    );
    check(
        &stage,
        "crow run - < /dev/null",
        &expect![[r#"
        exit 2
        error: the prompt is empty
    "#]],
    );
}

#[test]
fn missing_files_and_unknown_arguments_are_errors() {
    let stage = Stage::new("");
    check(
        &stage,
        "crow run -c nowhere hi",
        &expect![[r#"
        exit 2
        error: could not work in nowhere: No such file or directory (os error 2)
    "#]],
    );
    check(
        &stage,
        "crow run -f nowhere.md",
        &expect![[r#"
        exit 2
        error: could not read nowhere.md: No such file or directory (os error 2)
    "#]],
    );
    check(
        &stage,
        "crow run -f /",
        &expect![[r#"
        exit 2
        error: could not read /: Is a directory (os error 21)
    "#]],
    );
    check(
        &stage,
        "crow run --mode yolo hi",
        &expect![[r#"
            exit 2
            error: unknown mode "yolo"
            hint: known modes: ask, accept-edits, plan, auto
        "#]],
    );
    check(
        &stage,
        "crow run --fly hi",
        &expect![[r#"
        exit 2
        error: unexpected argument '--fly' found
    "#]],
    );
    check(
        &stage,
        "crow inspect -s nope",
        &expect![[r#"
        exit 4
        error: there is no session nope
        hint: `crow-cli inspect` lists the sessions
    "#]],
    );
}

#[test]
fn arguments_without_a_subcommand_are_checked() {
    let stage = Stage::new("");
    check(
        &stage,
        "crow fly",
        &expect![[r#"
        exit 2
        error: unrecognized subcommand 'fly'
        hint: `crow-cli run fly` sends it as a prompt
    "#]],
    );
    check(
        &stage,
        "crow docter",
        &expect![[r#"
        exit 2
        error: unrecognized subcommand 'docter'
        hint: did you mean `crow-cli doctor`? `crow-cli run docter` sends it as a prompt
    "#]],
    );
    check(
        &stage,
        "crow --mode plan models",
        &expect![[r#"
        exit 2
        error: a subcommand takes its own prompt and options
        hint: write them after the subcommand
    "#]],
    );
    check(
        &stage,
        "crow --mode yolo 'fly away'",
        &expect![[r#"
        exit 2
        error: unknown mode "yolo"
        hint: known modes: ask, accept-edits, plan, auto
    "#]],
    );
}

#[test]
fn json_output_is_lines_only() {
    let stage = Stage::new(
        "thought \"Hm.\" | text \"I plan.\" | call todo {\"entries\":[{\"content\":\"Look\",\"status\":\"pending\"}]} | usage 5 2\ntext \"Done.\" | usage 9 2",
    );
    let ran = stage.crow("crow run -j 'plan it'");
    let mut told = String::new();
    for line in ran.stdout.lines() {
        let event: Value = serde_json::from_str(line).expect("a line of JSON");
        let fields = event.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
        told += &format!("{} ({})\n", event["type"], fields.join(" "));
    }
    expect![[r#"
        "session" (type session)
        "thought" (type text)
        "message" (type text)
        "usage" (type used size)
        "tool_call" (type id title status input content)
        "tool_call" (type id title status)
        "tool_call" (type id title status content)
        "plan" (type entries)
        "message" (type text)
        "usage" (type used size)
        "result" (type session stop_reason text)
    "#]]
    .assert_eq(&told);
    assert_eq!(ran.code, Some(0));
}

#[test]
fn call_without_a_user_is_rejected() {
    let stage = Stage::new("call terminal {\"command\":\"touch ran\"}\ntext \"It was refused.\"");
    check(
        &stage,
        "crow run 'touch it'",
        &expect![[r#"
        exit 5
        It was refused.
        error: a tool call needed permission and there was no terminal to ask on
        hint: approve it with -y, or choose another --mode
    "#]],
    );
    assert!(!stage.world.project().join("ran").exists());
    expect![[r#"
        [
            "touch it",
            "",
            "not run: it needs permission, and the user could not be asked (there is no terminal to ask on)",
        ]"#]]
    .assert_eq(&format!("{:#?}", stage.told()));
}

#[test]
fn yes_option_allows_the_call() {
    let stage = Stage::new("call terminal {\"command\":\"touch ran\"}\ntext \"It ran.\"");
    check(
        &stage,
        "crow run -y 'touch it'",
        &expect![[r#"
        exit 0
        It ran.
    "#]],
    );
    assert!(stage.world.project().join("ran").exists());
}

#[test]
fn prompts_from_stdin_and_from_a_file() {
    let stage = Stage::new("text \"One.\"\ntext \"Two.\"\ntext \"Three.\"");
    stage.world.write_file("task.md", "from a file\nwith two lines\n");
    for (args, told) in [
        ("crow run -", "from stdin"),
        ("crow run -f -", "from stdin"),
        ("crow run -f task.md", "from a file\nwith two lines\n"),
    ] {
        let ran = stage.crow_hears(args, "from stdin");
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(stage.told(), [told]);
    }
}

#[test]
fn closed_pipe_ends_the_output() {
    let words = "word ".repeat(20_000);
    let stage = Stage::new(&format!("text {words:?}\ntext {words:?}\ntext {words:?}"));
    for args in ["run hi", "run -j hi", "inspect", "models"] {
        let ran = stage.crow(&format!("{{ crow {args}; echo $? >&3; }} 3>code | head -c 1 > /dev/null"));
        let code = std::fs::read_to_string(stage.world.project().join("code")).expect("the code");
        assert_eq!(
            (code.as_str(), ran.stderr.contains("panicked")),
            ("0\n", false),
            "{args}: {}",
            ran.stderr
        );
    }
    let ran = stage.crow("crow models >&-; echo $?");
    assert_eq!((ran.stdout.as_str(), ran.stderr.contains("panicked")), ("0\n", false), "{}", ran.stderr);
}

#[test]
fn full_device_is_an_error() {
    let stage = Stage::new("");
    check(
        &stage,
        "crow models > /dev/full",
        &expect![[r#"
        exit 1
        error: could not write the output: No space left on device (os error 28)
    "#]],
    );
}

#[test]
fn request_limit_ends_the_run() {
    let stage = Stage::configured(
        "call glob {\"pattern\":\"*\"}\ncall glob {\"pattern\":\"*\"}",
        "providers:\n  fake: { base_url: $URL }\nmodels:\n  main: { provider: fake }\nmax_turn_requests: 2\n",
    );
    check(
        &stage,
        "crow run loop",
        &expect![[r#"
        exit 6
        error: the turn reached a limit before the model was done
        hint: continue the session; max_turn_requests is the limit of requests in a turn
    "#]],
    );
}

/// Rules and limits of one run, and its output for scripts.
#[test]
fn escape_codes_are_left_out_where_unwanted() {
    let stage = Stage::new(
        "text \"**Bold** `code`\\n\\n# Head\\n\\n| a | b |\\n|---|---|\\n| 1 | 2 |\\n\"\ntext \"**Bold**\"\ntext \"**Bold**\"",
    );
    for args in [
        "crow run hi",
        "TERM=dumb crow run hi",
        "NO_COLOR=1 crow run hi",
        "NO_COLOR=1 crow inspect",
        "TERM=dumb crow models",
    ] {
        let ran = stage.crow(args);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(!(ran.stdout + &ran.stderr).contains('\u{1b}'), "{args}");
    }
}

#[test]
fn session_is_continued() {
    let stage = Stage::new("text \"One.\"\ntext \"Two.\"");
    check(
        &stage,
        "crow inspect",
        &expect![[r#"
        exit 0
        no sessions yet
    "#]],
    );
    check(
        &stage,
        "crow run first",
        &expect![[r#"
        exit 0
        One.
    "#]],
    );
    let sessions = stage.sessions();
    assert_eq!(sessions.len(), 1);
    check(
        &stage,
        &format!("crow run -s {} second", sessions[0]),
        &expect![[r#"
        exit 0
        Two.
    "#]],
    );
    assert_eq!(stage.told(), ["first", "One.", "second"]);
    assert_eq!(stage.sessions(), sessions);
    check(
        &stage,
        &format!("crow inspect -m -s {}", sessions[0]),
        &expect![[r#"
            exit 0
            user msg-0
              [added by Crow: environment]
              first

            assistant msg-1
              One.

            user msg-2
              second

            assistant msg-3
              Two.

        "#]],
    );
}

#[test]
fn prompts_from_a_pipe_run_in_order() {
    let stage = Stage::new("text \"One.\"\nstatus 401\ntext \"Three.\"");
    check(
        &stage,
        "printf 'first\\nsecond\\n\\nthird\\n' | crow run -i",
        &expect![[r#"
            exit 0
            One.

            Three.
            error: `fake` needs a key (401); configure its `api_key`
        "#]],
    );
}

#[test]
fn prompt_from_a_pipe_lasts_until_its_tasks_have_ended() {
    let stage = Stage::new(
        "text \"One.\"\ncall task {\"prompt\":\"ALPHA\",\"wait\":false}\ntext \"It works.\"\ntext \"I heard of it.\"",
    );
    stage.server.add_answers_for("ALPHA", Script::parse("text \"A.\""));
    check(
        &stage,
        "printf 'first\\nsecond\\n\\n' | crow run -i --mode auto",
        &expect![[r#"
        exit 0
        One.

        It works.

        I heard of it.
    "#]],
    );
}
