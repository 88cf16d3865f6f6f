//! External agents in `run`: messages about them, and each kind of agent when it is used.

mod interaction;
mod reports;

use std::fs;

use crow_acp::{
    AdmissionPolicy, AgentLauncher, BearerToken, CloseReason, SocketListener, serve_socket, splice_transports,
};
use crow_testkit::agent;
use expect_test::{Expect, expect};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{Stage, check};

const FAKE: &str = "providers:\n  fake: { base_url: $URL }\nmodels:\n  scripted: { provider: fake }\n";

/// Returns a stage with an agent `other` that behaves as specified.
fn with(words: &[&str], more: &str) -> Stage {
    let (command, args) = agent::command(words);
    let other = json!({ "command": command, "args": args });
    Stage::configured("", &format!("{FAKE}agent_servers:\n  other: {other}\n{more}"))
}

/// Sends the agent one prompt.
#[track_caller]
fn check_run(words: &[&str], args: &str, told: &Expect) {
    check(&with(words, ""), &format!("crow run --agent other {args}"), told);
}

#[test]
fn agents_are_listed() {
    let agents = "agent_servers:\n  codex: { command: no-such-program, args: [--key, '${KEY}'] }\n\
                  \x20 shell: { command: [/bin/sh, -c, x] }\n  far: { url: 'wss://me:pass@host/acp?key=x', token: '${KEY}' }\n";
    let stage = Stage::configured("", agents);
    fs::write(stage.world.home().join(".crow/.env"), "KEY=very-secret\n").expect("written");
    check(
        &stage,
        "crow agents",
        &expect![[r#"
            exit 0
            NAME   COMMAND OR URL
            crow   (built in)
            codex  no-such-program --key ${KEY}  not found
            shell  /bin/sh -c x
            far    wss://host/acp
            warning: $HOME/.crow/config.yaml:4: agent_servers.far.url: the address contains a name or password; put the token into a header instead
            warning: other users could read these paths, which are private now: $HOME/.crow/.env
        "#]],
    );
    check(
        &stage,
        "crow agents -j",
        &expect![[r#"
            exit 0
            {"agents":[{"name":"crow","kind":"built-in"},{"name":"codex","kind":"program","command":"no-such-program --key ${KEY}","found":false},{"name":"shell","kind":"program","command":"/bin/sh -c x","found":true},{"name":"far","kind":"socket","url":"wss://host/acp"}]}
        "#]],
    );
    check(
        &Stage::configured("", ""),
        "crow agents",
        &expect![[r#"
            exit 0
            NAME  COMMAND OR URL
            crow  (built in)
        "#]],
    );
    let replaced = Stage::configured("", "agent_servers: { crow: { command: /bin/sh } }\n");
    check(
        &replaced,
        "crow agents",
        &expect![[r#"
            exit 0
            NAME  COMMAND OR URL
            crow  /bin/sh
        "#]],
    );
    let broken = "agent_servers:\n  far: { url: 'wss://host/acp', token_file: nowhere }\n  user: { url: 'wss://me:pass@host/acp' }\n  cloud: { url: 'wss://host/acp', token: x }\n";
    let doctors = [stage, Stage::configured("", broken)].map(|stage| stage.crow("crow doctor").stdout);
    let lines = doctors.iter().flat_map(|said| said.lines()).filter(|line| line.contains(" agent "));
    let doctor: String = lines.map(|line| format!("{line}\n")).collect();
    expect![[r#"
        problem  agent codex      the program no-such-program was not found; install it, or give its path in agent_servers.codex.command
        ok       agent shell      found /bin/sh (not started)
        problem  agent far        wss://host/acp cannot be used: the address contains a name or password; put the token into a header instead
        problem  agent far        wss://host/acp cannot be used: could not read $HOME/.crow/nowhere: No such file or directory (os error 2)
        problem  agent user       wss://host/acp cannot be used: the address contains a name or password; put the token into a header instead
        untried  agent cloud      wss://host/acp (not contacted)
    "#]].assert_eq(&doctor);
}

#[test]
fn agent_is_driven() {
    check_run(
        &[],
        "hi",
        &expect![[r#"
        exit 0
        echo: hi
    "#]],
    );
    check_run(
        &["garbage", "noisy"],
        "hi",
        &expect![[r#"
        exit 0
        echo: hi
    "#]],
    );
    let lines = with(&["usage"], "").crow("crow run --agent other -j hi").stdout;
    expect![[r#"
        {"type":"session","session":"session-1"}
        {"type":"message","text":"echo: "}
        {"type":"message","text":"hi"}
        {"type":"tool_call","id":"call-1","title":"Edit notes.txt","status":"in_progress","input":{"path":"notes.txt"},"content":[]}
        {"type":"tool_call","id":"call-1","title":"Edit notes.txt","status":"completed","content":[{"type":"diff","path":"$HOME/project/notes.txt","old":"old\n","new":"new\n"}]}
        {"type":"usage","used":1234,"size":32000}
        {"type":"result","session":"session-1","stop_reason":"end_turn","text":""}
    "#]].assert_eq(&lines);
}

#[test]
fn program_that_is_no_agent_fails_at_once() {
    let script =
        "for n in 1 2 3 4 5 6; do echo a $n; echo b; echo c; echo d; done; while :; do read line; done";
    let babbler = json!({"command": "sh", "args": ["-c", script]});
    let stage = Stage::configured("", &format!("{FAKE}agent_servers:\n  other: {babbler}\n"));
    check(
        &stage,
        "crow run --agent other hi",
        &expect![[r#"
        exit 1
        error: the agent other cannot be used: the agent does not speak ACP: it printed 20 lines, none of which is a message of the protocol; the first: a 1; b; c
        hint: check that agent_servers.other starts an ACP agent; `crow-cli -v` shows all of its output
    "#]],
    );
}

#[test]
fn directory_of_a_remote_agent() {
    let (command, args) = agent::command(&[]);
    let other = json!({ "command": command, "args": args, "cwd": "/far/project" });
    let stage = Stage::configured("", &format!("{FAKE}agent_servers:\n  other: {other}\n"));
    let mut heard = String::new();
    for folder in ["", "-c /far/else", "-c else"] {
        let ran = stage.crow(&format!("crow run --agent other {folder} -j hi"));
        let path =
            ran.stdout.split("\"type\":\"diff\",\"path\":\"").nth(1).and_then(|rest| rest.split('"').next());
        heard += &format!("{folder}: {}{}\n", path.unwrap_or_default(), ran.stderr);
    }
    expect![[r#"
        : /far/project/notes.txt
        -c /far/else: /far/else/notes.txt
        -c else: error: else is not an absolute path
        hint: the agent has a cwd in agent_servers, so -c is a directory on its machine

    "#]]
    .assert_eq(&heard);
}

/// Crow as an external agent.
fn with_crow() -> Stage {
    let crow = json!({"command": env!("CARGO_BIN_EXE_crow-cli"), "args": ["acp"]});
    let stage = Stage::configured("text \"One.\"\ntext \"Two.\"\ntext \"Three.\"", "");
    stage.world.configure(
        &format!("{FAKE}agent_servers:\n  other: {crow}\n").replace("$URL", stage.server.base_url()),
    );
    stage
}

#[test]
fn crow_drives_itself_as_an_agent() {
    let stage = with_crow();
    check(
        &stage,
        "crow run --agent other -m scripted --mode plan hi",
        &expect![[r#"
        exit 0
        One.
    "#]],
    );
    let session = &stage.sessions()[0];
    check(
        &stage,
        &format!("crow run --agent other -s {session} hi"),
        &expect![[r#"
        exit 0
        Two.
    "#]],
    );
    check(
        &stage,
        &format!("crow run --agent other --fork -s {session} hi"),
        &expect![[r#"
        exit 0
        Three.
    "#]],
    );
}

#[test]
fn options_unsupported_by_an_agent_are_errors() {
    let stage = with_crow();
    check(
        &stage,
        "crow run --agent other -m nope hi",
        &expect![[r#"
            exit 2
            error: the agent other has no model "nope"
            hint: available: scripted
        "#]],
    );
    check(
        &stage,
        "crow run --agent other --mode yolo hi",
        &expect![[r#"
            exit 2
            error: the agent other has no mode "yolo"
            hint: available: ask, accept-edits, plan, auto
        "#]],
    );
    check(
        &stage,
        "crow run --agent other -s nope hi",
        &expect![[r#"
        exit 4
        error: there is no session nope; `crow-cli inspect` lists the sessions
    "#]],
    );
    stage.server.replace_answers("text \"Own.\"");
    check(
        &stage,
        "crow run --agent crow hi",
        &expect![[r#"
        exit 0
        Own.
    "#]],
    );
}

#[test]
fn secrets_are_kept_from_agents() {
    let words = ["env=FAKE_API_KEY", "env=MINE", "where"];
    let (command, args) = agent::command(&words);
    let other = json!({"command": command, "args": args, "env": {"MINE": "${MINE}"}});
    let stage = Stage::configured("", &format!("agent_servers:\n  other: {other}\n"));
    fs::write(stage.world.home().join(".crow/.env"), "MINE=given\n").expect("written");
    fs::create_dir(stage.world.project().join("below")).expect("made");
    check(
        &stage,
        "FAKE_API_KEY=secret crow run --agent other -c below hi",
        &expect![[r#"
            exit 0
            echo: hi

            ; FAKE_API_KEY: (not set); MINE: given; started in $HOME/project/below, works in $HOME/project/below
            warning: other users could read these paths, which are private now: $HOME/.crow/.env
        "#]],
    );
}

#[test]
fn permission_request_of_an_agent() {
    check_run(
        &["asks"],
        "hi",
        &expect![[r#"
            exit 5
            echo: hi

            ; session/request_permission: {"outcome":{"outcome":"selected","optionId":"reject_once"}}
            error: a tool call needed permission and there was no terminal to ask on
            hint: approve it with -y, or choose another --mode
        "#]],
    );
    check_run(
        &["asks"],
        "-y hi",
        &expect![[r#"
        exit 0
        echo: hi

        ; session/request_permission: {"outcome":{"outcome":"selected","optionId":"allow_once"}}
    "#]],
    );
}

#[test]
fn options_of_an_agent_can_be_chosen() {
    check_run(
        &["options"],
        "--mode auto -m large hi",
        &expect![[r#"
        exit 0
        echo: hi
    "#]],
    );
    check_run(
        &["options"],
        "--mode yolo hi",
        &expect![[r#"
            exit 2
            error: the agent other has no mode "yolo"
            hint: available: ask, auto
        "#]],
    );
    check_run(
        &["options"],
        "-m gpt hi",
        &expect![[r#"
            exit 2
            error: the agent other has no model "gpt"
            hint: available: small, large
        "#]],
    );
    check_run(
        &[],
        "-m gpt hi",
        &expect![[r#"
        exit 2
        error: the agent other has no model option
    "#]],
    );
    check_run(
        &[],
        "-s session-1 hi",
        &expect![[r#"
        exit 0
        echo: hi
    "#]],
    );
    check_run(
        &["no-load"],
        "-s session-1 hi",
        &expect![[r#"
        exit 2
        error: the agent other cannot continue a session
        hint: leave out --session
    "#]],
    );
    check_run(
        &[],
        "-s session-1 --fork hi",
        &expect![[r#"
        exit 2
        error: the agent other cannot copy sessions
        hint: leave out --session
    "#]],
    );
}

#[test]
fn broken_agents_are_errors() {
    check_run(
        &["broken"],
        "hi",
        &expect![[r#"
            exit 1
            error: the agent other exited during initialization with code 3; its stderr: cannot find the frobnicator
            hint: check that agent_servers.other starts an ACP agent; `crow-cli -v` shows all of its output
        "#]],
    );
    check_run(
        &["dies"],
        "hi",
        &expect![[r#"
            exit 1
            echo:
            error: the agent has disconnected
            error: the agent other exited during the session with code 9; its stderr: the wings fell off
            hint: check that agent_servers.other starts an ACP agent; `crow-cli -v` shows all of its output
        "#]],
    );
    check_run(
        &["fails"],
        "hi",
        &expect![[r#"
        exit 1
        echo: hi
        error: no fuel
    "#]],
    );
    check_run(
        &["locked"],
        "hi",
        &expect![[r#"
        exit 3
        error: the agent other requires authentication
        hint: log in with its own program, or set a key in its env in agent_servers
    "#]],
    );
    check_run(
        &["version=7"],
        "hi",
        &expect![[r#"
            exit 1
            error: the agent other cannot be used: invalid request: unsupported ACP protocol version 7; this endpoint only supports ACP protocol version 1
            hint: check that agent_servers.other starts an ACP agent; `crow-cli -v` shows all of its output
        "#]],
    );
    let stage = with(&["dies"], "");
    expect![[r#"
        exit 1
        echo:
        error: the agent has disconnected
        error: the agent other exited during the session with code 9; its stderr: the wings fell off
        hint: check that agent_servers.other starts an ACP agent; `crow-cli -v` shows all of its output
    "#]]
    .assert_eq(&stage.crow_hears("crow run --agent other -i", "one\ntwo\n").told());
}

/// Agents that cannot be started.
const NONE: &str = "agent_servers:\n  gone: { command: no-such-program }\n  here: { command: ./no-such-file }\n\
                  \x20 exits: { command: [sh, -c, exit 0] }\n  says: { command: [sh, -c, 'echo hello; echo there'] }\n\
                  \x20 complains: { command: [sh, -c, 'echo one >&2; echo two >&2; exit 4'] }\n\
                  \x20 killed: { command: [sh, -c, 'kill -9 $$'] }\n";

#[test]
fn programs_that_are_no_agents_are_errors() {
    let stage = Stage::configured("", NONE);
    for (name, told) in [
        (
            "unknown",
            expect![[r#"
                exit 2
                error: unknown agent "unknown"
                hint: configured agents: crow, gone, here, exits, says, complains, killed
            "#]],
        ),
        (
            "complain",
            expect![[r#"
                exit 2
                error: unknown agent "complain"
                hint: did you mean complains? configured agents: crow, gone, here, exits, says, complains, killed
            "#]],
        ),
        (
            "gone",
            expect![[r#"
                exit 1
                error: the agent gone could not be started: no-such-program was not found
                hint: install it, or give its path in agent_servers.gone.command
            "#]],
        ),
        (
            "here",
            expect![[r#"
                exit 1
                error: the agent here could not be started: ./no-such-file was not found
                hint: install it, or give its path in agent_servers.here.command
            "#]],
        ),
    ] {
        check(&stage, &format!("crow run --agent {name} hi"), &told);
    }
}

#[test]
fn agents_that_exit_at_once_are_errors() {
    let stage = Stage::configured("", NONE);
    for (name, told) in [
        (
            "exits",
            expect![[r#"
            exit 1
            error: the agent exits exited during initialization with code 0
            hint: check that agent_servers.exits starts an ACP agent; `crow-cli -v` shows all of its output
        "#]],
        ),
        (
            "says",
            expect![[r#"
            exit 1
            error: the agent says exited during initialization with code 0; it printed "hello", which is not a protocol message
            hint: check that agent_servers.says starts an ACP agent; `crow-cli -v` shows all of its output
        "#]],
        ),
        (
            "complains",
            expect![[r#"
                exit 1
                error: the agent complains exited during initialization with code 4; its stderr: one; two
                hint: check that agent_servers.complains starts an ACP agent; `crow-cli -v` shows all of its output
            "#]],
        ),
        (
            "killed",
            expect![[r#"
            exit 1
            error: the agent killed was killed during initialization by signal 9
            hint: check that agent_servers.killed starts an ACP agent; `crow-cli -v` shows all of its output
        "#]],
        ),
    ] {
        check(&stage, &format!("crow run --agent {name} hi"), &told);
    }
}

/// Serves the agent at an address, with a token, until the tests end.
fn served(words: &'static [&'static str]) -> String {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime can be made").block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("it listens");
            let door = SocketListener {
                listener,
                name: None,
                admission: AdmissionPolicy::with_token(BearerToken::new("right".into())),
            };
            tell.send(door.url().expect("it has an address")).expect("the test waits");
            let agent = move |lines| async move {
                let (program, args) = agent::command(words);
                let cwd = std::env::temp_dir();
                let command = crow_process::CommandSpec {
                    program,
                    args,
                    cwd,
                    env: Vec::new(),
                    env_removed: Vec::new(),
                };
                let started = AgentLauncher::new(None).start("far", command).await;
                let (agent, program) = started.expect("it starts");
                splice_transports(lines, agent).await;
                let words = program.shut_down().await.stderr;
                CloseReason::AgentEnded { summary: "the agent exited".into(), stderr: words }
            };
            serve_socket(door, CancellationToken::new(), agent).await;
        });
    });
    told.recv().expect("it listens")
}

#[test]
fn agents_at_an_address() {
    let (good, dying) = (served(&[]), served(&["dies"]));
    let stage = Stage::configured(
        "",
        &format!(
            "agent_servers:\n  far: {{ url: '{good}', token: right }}\n  dying: {{ url: '{dying}', token: right }}\n\
             \x20 wrong: {{ url: '{good}', token: wrong }}\n  gone: {{ url: 'ws://127.0.0.1:9' }}\n"
        ),
    );
    for (name, told) in [
        (
            "far",
            expect![[r#"
            exit 0
            echo: hi
        "#]],
        ),
        (
            "dying",
            expect![[r#"
                exit 1
                echo:
                error: the agent has disconnected: the other side closed it (1011): the agent exited: the wings fell off
                error: the connection to the agent dying was lost during the session: the agent has disconnected: the other side closed it (1011): the agent exited: the wings fell off
            "#]],
        ),
        (
            "wrong",
            expect![[r#"
                exit 1
                error: the agent wrong cannot be reached: $GOOD rejected the connection: the token was rejected (HTTP 401)
            "#]],
        ),
        (
            "gone",
            expect![[r#"
            exit 1
            error: the agent gone cannot be reached: 127.0.0.1:9 cannot be reached: Connection refused (os error 111)
        "#]],
        ),
    ] {
        let said = stage.crow(&format!("crow run --agent {name} hi")).told();
        let hidden =
            [&good, &dying].map(|url| url.trim_start_matches("ws://").trim_end_matches("/acp").to_owned());
        told.assert_eq(&said.replace(&hidden[0], "$GOOD").replace(&hidden[1], "$DYING"));
    }
}
