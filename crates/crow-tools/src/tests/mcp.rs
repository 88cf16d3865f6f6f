use std::{
    fmt::Write as _,
    fs,
    time::{Duration, Instant},
};

use crow_core::{McpServer, McpTransport};
use crow_testkit::mcp_server;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::Machine;
use crate::{McpClientFeatures, McpEnvironment, McpServers, ToolProgress};

/// Far longer than any step of a test; only reached if something hangs.
const STUCK: Duration = Duration::from_secs(20);

/// A session's servers and its machine.
pub(super) struct Session {
    pub(super) machine: Machine,
    pub(super) servers: McpServers,
}

pub(super) fn stdio(name: &str, words: &[&str]) -> McpServer {
    let (command, args) = mcp_server::command(words);
    let env = vec![("CROW_ADDED".to_owned(), "added".to_owned())];
    McpServer::new(name, McpTransport::Stdio { command, args, env })
}

impl Session {
    pub(super) fn start(servers: Vec<McpServer>) -> Self {
        Self::start_on(Machine::new(|_| ()), servers)
    }

    /// Starts servers of a session with optional features.
    pub(super) fn start_with(servers: Vec<McpServer>, features: McpClientFeatures) -> Self {
        Self::start_session(Machine::new(|_| ()), servers, features)
    }

    pub(super) fn start_on(machine: Machine, servers: Vec<McpServer>) -> Self {
        Self::start_session(machine, servers, McpClientFeatures::default())
    }

    fn start_session(machine: Machine, servers: Vec<McpServer>, features: McpClientFeatures) -> Self {
        let home = McpEnvironment {
            slow_servers: std::sync::Arc::default(),
            features,
            cwd: machine.workspace.cwd().to_owned(),
            secret_variables: vec!["CARGO_MANIFEST_DIR".to_owned()],
            variables: machine.workspace.subscribe_variables(),
            roots: vec![machine.workspace.cwd().to_owned()],
            auth_dir: machine.dir.path().join("mcp-auth"),
        };
        let servers = McpServers::start(servers, home, &machine.tools);
        Self { machine, servers }
    }

    pub(super) async fn settled(servers: Vec<McpServer>) -> Self {
        Self::settle(Self::start(servers)).await
    }

    pub(super) async fn settle(mut session: Self) -> Self {
        session.servers.wait_until_settled(STUCK).await;
        session.refresh();
        session
    }

    pub(super) fn refresh(&mut self) {
        self.machine.tools = self.machine.tools.with_tools(self.servers.tools());
    }

    pub(super) async fn call(&self, name: &str, arguments: Value) -> String {
        shorten(&self.machine.call(name, arguments).await)
    }

    fn listed(&self) -> String {
        let mut text = String::new();
        for tool in self.servers.tools() {
            let spec = tool.spec();
            writeln!(text, "{}: {} {}", spec.name, spec.description, spec.parameters).unwrap();
        }
        shorten(&text)
    }

    pub(super) fn news(&self) -> String {
        self.servers.take_notices().iter().map(|message| format!("news: {message}\n")).collect()
    }
}

/// Shortens long lines.
fn shorten(text: &str) -> String {
    let cancel = |line: &str| match line.chars().count() {
        0..=200 => format!("{line}\n"),
        n_chars => format!("{}… ({n_chars} characters)\n", line.chars().take(60).collect::<String>()),
    };
    text.lines().map(cancel).collect()
}

/// Starts a server, makes the calls, and compares everything that came of them.
pub(super) async fn check(server: McpServer, calls: &[(&str, Value)], expect: Expect) {
    let session = Session::settled(vec![server]).await;
    let mut said = String::new();
    for (name, arguments) in calls {
        said += &session.call(name, arguments.clone()).await;
    }
    expect.assert_eq(&(said + &session.news()));
}

/// Starts a server and compares its tools and the notices.
pub(super) async fn check_listed(server: McpServer, expect: Expect) {
    let session = Session::settled(vec![server]).await;
    expect.assert_eq(&(session.listed() + &session.news()));
}

/// Waits for another process.
pub(super) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    let mut tick = tokio::time::interval(Duration::from_millis(2));
    while !is_so() {
        assert!(began.elapsed() < STUCK, "waited in vain until {what}");
        tick.tick().await;
    }
}

#[tokio::test]
async fn calls_return_their_results() {
    let calls = [
        ("echo", json!({"text": "hello"})),
        ("fail", json!({})),
        ("refuse", json!({})),
        ("image", json!({})),
        ("structured", json!({})),
        ("mixed", json!({})),
        ("odd", json!({})),
        ("huge", json!({})),
        ("echo", json!({"text": 1})),
        ("echo", json!({"text": ["no"]})),
    ];
    check(
        stdio("box", &[]),
        &calls,
        expect![[r#"
            > box: echo Other Calls { server: "box", tool: "echo" }
            Completed: {"text":"hello"}
            > box: fail Other Calls { server: "box", tool: "fail" }
            Failed: it did not work
            > box: refuse Other Calls { server: "box", tool: "refuse" }
            Failed: the MCP server box rejected the call: the colour is missing
            > box: image Other Calls { server: "box", tool: "image" }
            Completed: look:
            Image { mime: "image/png", data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==" }
            client: Image { mime: "image/png", data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==" }
            > box: structured Other Calls { server: "box", tool: "structured" }
            Completed: {
              "n": 1
            }
            > box: mixed Other Calls { server: "box", tool: "mixed" }
            Completed: resource note://1:
            a note
            resource file:///a (a) (the first)
            resource blob://1:
            (data of type application/octet-stream, about 3 bytes, not shown)
            (audio of type audio/wav, about 3 bytes, not shown)
            (data of type image/svg+xml, about 3 bytes, not shown)
            (data of type image/png, about 6 bytes, not shown)
            Image { mime: "image/png", data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==" }
            the end
            client: Image { mime: "image/png", data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==" }
            > box: odd Other Calls { server: "box", tool: "odd" }
            Completed: {"type":"hologram","text":"?"}
            and text
            > box: huge Other Calls { server: "box", tool: "huge" }
            Completed: üüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüü… (50011 characters)
            (cut: the first 100000 of 1000000 bytes are shown)
            > box: echo Other Calls { server: "box", tool: "echo" }
            Completed: {"text":"1"}
            > echo Other Nothing
            Failed: `echo` was not run: `text` must be a string, not the array ["no"]
        "#]],
    )
    .await;
}

#[tokio::test]
async fn environment_has_no_secrets() {
    let names = ["CARGO_MANIFEST_DIR", "CROW_ADDED", "CARGO_PKG_NAME"];
    let calls = names.map(|name| ("env", json!({"name": name})));
    check(
        stdio("box", &[]),
        &calls,
        expect![[r#"
            > box: env Other Calls { server: "box", tool: "env" }
            Completed: (not set)
            > box: env Other Calls { server: "box", tool: "env" }
            Completed: added
            > box: env Other Calls { server: "box", tool: "env" }
            Completed: crow-tools
        "#]],
    )
    .await;
}

#[tokio::test]
async fn garbage_between_messages_is_ignored() {
    check(
        stdio("box", &["garbage"]),
        &[("echo", json!({"text": "hello"}))],
        expect![[r#"
            > box: echo Other Calls { server: "box", tool: "echo" }
            Completed: {"text":"hello"}
        "#]],
    )
    .await;
}

#[tokio::test]
async fn tools_are_listed_from_many_pages() {
    check_listed(
        stdio("box", &["pages"]),
        expect![[r#"
        echo: Does echo. {"type":"object","properties":{"text":{"type":"string"}}}
        read: Does read. {"type":"object","properties":{"text":{"type":"string"}}}
        env: Does env. {"type":"object","properties":{"text":{"type":"string"}}}
        image: Does image. {"type":"object","properties":{"text":{"type":"string"}}}
        huge: Does huge. {"type":"object","properties":{"text":{"type":"string"}}}
        fail: Does fail. {"type":"object","properties":{"text":{"type":"string"}}}
        refuse: Does refuse. {"type":"object","properties":{"text":{"type":"string"}}}
        structured: Does structured. {"type":"object","properties":{"text":{"type":"string"}}}
        mixed: Does mixed. {"type":"object","properties":{"text":{"type":"string"}}}
        odd: Does odd. {"type":"object","properties":{"text":{"type":"string"}}}
        progress: Does progress. {"type":"object","properties":{"text":{"type":"string"}}}
        hang: Does hang. {"type":"object","properties":{"text":{"type":"string"}}}
        die: Does die. {"type":"object","properties":{"text":{"type":"string"}}}
        more: Does more. {"type":"object","properties":{"text":{"type":"string"}}}
    "#]],
    )
    .await;
}

#[tokio::test]
async fn pages_without_end_are_bounded() {
    check_listed(
        stdio("box", &["endless", "many"]),
        expect![[r#"
        tool-0: Does tool-0. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-1: Does tool-1. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-2: Does tool-2. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-3: Does tool-3. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-4: Does tool-4. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-5: Does tool-5. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-6: Does tool-6. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-7: Does tool-7. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-8: Does tool-8. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-9: Does tool-9. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-10: Does tool-10. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-11: Does tool-11. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-12: Does tool-12. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-13: Does tool-13. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-14: Does tool-14. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-15: Does tool-15. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-16: Does tool-16. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-17: Does tool-17. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-18: Does tool-18. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-19: Does tool-19. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-20: Does tool-20. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-21: Does tool-21. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-22: Does tool-22. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-23: Does tool-23. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-24: Does tool-24. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-25: Does tool-25. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-26: Does tool-26. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-27: Does tool-27. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-28: Does tool-28. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-29: Does tool-29. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-30: Does tool-30. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-31: Does tool-31. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-32: Does tool-32. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-33: Does tool-33. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-34: Does tool-34. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-35: Does tool-35. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-36: Does tool-36. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-37: Does tool-37. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-38: Does tool-38. {"type":"object","properties":{"text":{"type":"string"}}}
        tool-39: Does tool-39. {"type":"object","properties":{"text":{"type":"string"}}}
    "#]],
    )
    .await;
}

#[tokio::test]
async fn tools_with_invalid_entries_are_normalized() {
    check_listed(stdio("box", &["odd"]), expect![[r#"
        no-schema:  (Its parameters are not known.) {"type":"object","properties":{}}
        list-schema:  (Its parameters are not known.) {"type":"object","properties":{}}
        text-schema:  (Its parameters are not known.) {"type":"object","properties":{}}
        bare-schema:  {"type":"object","properties":{}}
        huge-schema:  (Its parameters are not known.) {"type":"object","properties":{}}
        wordy: a[31müüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüü… (2092 characters)
        weird näme/with.dots:  {"type":"object","properties":{}}
        weird_n_me/with.dots:  {"type":"object","properties":{}}
        nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn:  {"type":"object","properties":{}}
    "#]]).await;
}

#[tokio::test]
async fn tools_beyond_the_limit_are_omitted() {
    let session = Session::settled(vec![stdio("box", &["thousands"])]).await;
    assert_eq!(session.servers.tools().len(), 1024);
    expect![[r#"
        news: The MCP server box has too many tools: 76 are omitted, 1024 are available.
    "#]]
    .assert_eq(&session.news());
}

#[tokio::test]
async fn names_that_are_taken_get_a_prefix() {
    let session = Session::settled(vec![stdio("box", &[]), stdio("box", &[]), stdio("b:x", &[])]).await;
    let specs = session.machine.tools.tool_specs();
    let names: Vec<&str> =
        specs.iter().map(|spec| spec.name.as_str()).filter(|name| name.contains("read")).collect();
    let said = session.call("box_read", json!({"text": "from a box"})).await
        + &session.call("box_2_read", json!({"text": "from the second box"})).await;
    expect![[r#"
        ["read", "box_read", "box_2_read", "b_x_read"]
        > box: read Other Calls { server: "box", tool: "read" }
        Completed: {"text":"from a box"}
        > box_2: read Other Calls { server: "box_2", tool: "read" }
        Completed: {"text":"from the second box"}
    "#]]
    .assert_eq(&format!("{names:?}\n{said}"));
}

#[tokio::test]
async fn servers_that_do_not_start_are_reported() {
    let servers = vec![
        stdio("broken", &["broken"]),
        stdio("refusing", &["refusing"]),
        McpServer::new(
            "missing",
            McpTransport::Stdio { command: "no-such-program".to_owned(), args: vec![], env: vec![] },
        ),
        stdio("box", &[]),
    ];
    let session = Session::settled(servers).await;
    let mut news: Vec<_> = session.news().lines().map(str::to_owned).collect();
    news.sort();
    assert_eq!(session.news(), "", "each is said once");
    assert!(!session.servers.tools().is_empty(), "the others are there");
    expect![[r#"
        news: The MCP server broken did not start: it ended before it answered, with exit code 7: cannot find the frobnicator. Its tools are not available.
        news: The MCP server missing did not start: there is no program no-such-program. Its tools are not available.
        news: The MCP server refusing did not start: it rejected the connection: not today. Its tools are not available."#]].assert_eq(&news.join("\n"));
}

// Time only advances when nothing else happens.
#[tokio::test(start_paused = true)]
async fn server_that_never_answers_times_out() {
    let session = Session::start(vec![stdio("box", &["silent"])]);
    expect!["The MCP server box did not start: it did not answer within 30 s. Its tools are not available."]
        .assert_eq(&session.servers.next_notices().await.join("\n"));
    until("it is gone", || session.machine.tools.count_programs() == 0).await;
}

#[tokio::test(start_paused = true)]
async fn silent_server_is_waited_for_once() {
    let session = Session::start(vec![stdio("box", &["silent"])]);
    let (limit, since) = (Duration::from_secs(5), tokio::time::Instant::now());
    session.servers.wait_until_settled(limit).await;
    session.servers.wait_until_settled(limit).await;
    expect!["5s The MCP server box has not answered within 5 s. Its tools are added when it does, and nothing waits for it again."].assert_eq(&format!(
        "{:?} {}",
        since.elapsed(),
        session.servers.take_notices().join("\n")
    ));
}

#[tokio::test]
async fn server_that_is_late_adds_its_tools() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("now");
    let mut session =
        Session::start(vec![stdio("late", &[&format!("late={}", file.display())]), stdio("box", &[])]);
    session.servers.wait_until_settled(Duration::ZERO).await;
    assert!(session.servers.tools().is_empty());
    fs::write(&file, "").unwrap();
    session.servers.wait_until_settled(STUCK).await;
    session.refresh();
    let said =
        session.call("box_echo", json!({"text": "hello"})).await + &session.call("echo", json!({})).await;
    expect![[r#"
        > box: echo Other Calls { server: "box", tool: "echo" }
        Completed: {"text":"hello"}
        > late: echo Other Calls { server: "late", tool: "echo" }
        Completed: {}
    "#]]
    .assert_eq(&said);
}

#[tokio::test]
async fn server_that_exits_is_restarted() {
    let session = Session::settled(vec![stdio("box", &[])]).await;
    let mut said = String::new();
    for round in 1..=4 {
        said += &session.call("die", json!({"words": format!("first line\nround {round}\n")})).await;
        said += &session.news();
        said += &session.call("echo", json!({"text": "there?"})).await;
    }
    said += &session.news();
    said += "a minute later\n";
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(61)).await;
    tokio::time::resume();
    let (began, mut tick) = (Instant::now(), tokio::time::interval(Duration::from_millis(2)));
    said += &loop {
        tick.tick().await;
        let answer = session.call("echo", json!({"text": "there?"})).await;
        if answer.contains("Completed") {
            break answer;
        }
        assert!(began.elapsed() < STUCK, "it was not restarted: {answer}");
    };
    expect![[r#"
        > box: die Other Calls { server: "box", tool: "die" }
        Failed: the MCP server box ended before it answered: exit code 3; the end of its stderr:
        first line
        round 1
        news: The MCP server box ended: exit code 3: round 1. It restarts when one of its tools is called.
        > box: echo Other Calls { server: "box", tool: "echo" }
        Completed: {"text":"there?"}
        > box: die Other Calls { server: "box", tool: "die" }
        Failed: the MCP server box ended before it answered: exit code 3; the end of its stderr:
        first line
        round 2
        news: The MCP server box ended: exit code 3: round 2. It restarts when one of its tools is called.
        > box: echo Other Calls { server: "box", tool: "echo" }
        Completed: {"text":"there?"}
        > box: die Other Calls { server: "box", tool: "die" }
        Failed: the MCP server box ended before it answered: exit code 3; the end of its stderr:
        first line
        round 3
        news: The MCP server box ended: exit code 3: round 3. It restarts when one of its tools is called.
        > box: echo Other Calls { server: "box", tool: "echo" }
        Completed: {"text":"there?"}
        > box: die Other Calls { server: "box", tool: "die" }
        Failed: the MCP server box ended before it answered: exit code 3; it was restarted 3 times within 60 s; try again later; the end of its stderr:
        first line
        round 4
        news: The MCP server box ended again: exit code 3: round 4. It was restarted 3 times within 60 s, so calls of its tools fail for up to 60 s.
        > box: echo Other Calls { server: "box", tool: "echo" }
        Failed: the MCP server box is not running: exit code 3; it was restarted 3 times within 60 s; try again later; the end of its stderr:
        first line
        round 4
        a minute later
        > box: echo Other Calls { server: "box", tool: "echo" }
        Completed: {"text":"there?"}
    "#]].assert_eq(&said);
}

#[tokio::test]
async fn call_is_cancelled() {
    let session = Session::settled(vec![stdio("box", &[])]).await;
    let marker = session.machine.path("marker");
    let (said, ()) = tokio::join!(session.call("hang", json!({"marker": marker})), async {
        session.machine.cancel.cancel();
    });
    expect![[r#"
        > box: hang Other Calls { server: "box", tool: "hang" }
        Failed: stopped: the turn was cancelled
    "#]]
    .assert_eq(&said);
    until("the server has heard it", || fs::read_to_string(&marker).is_ok_and(|reason| !reason.is_empty()))
        .await;
    expect![["the turn was cancelled"]].assert_eq(&fs::read_to_string(&marker).unwrap());
}

#[tokio::test]
async fn call_without_progress_times_out() {
    let session = Session::settled(vec![stdio("box", &[])]).await;
    let marker = session.machine.path("marker");
    tokio::time::pause();
    expect![[r#"
        > box: hang Other Calls { server: "box", tool: "hang" }
        Failed: stopped: the MCP server box did not respond for 600 s
    "#]]
    .assert_eq(&session.call("hang", json!({"marker": marker})).await);
}

#[tokio::test]
async fn progress_is_shown() {
    let session = Session::settled(vec![stdio("box", &[])]).await;
    let marker = session.machine.path("marker");
    let shown = std::sync::Mutex::new(String::new());
    let progress = |progress: ToolProgress| {
        *shown.lock().unwrap() += &format!("{progress:?}\n");
        fs::write(&marker, "").unwrap();
    };
    let (tool, arguments) = (session.servers.tools(), json!({"until": &marker}));
    let tool = tool.iter().find(|tool| tool.spec().name == "progress").unwrap();
    let result = tool.run(arguments.as_object().unwrap(), session.machine.cx(&progress)).await;
    let shown = shown.into_inner().unwrap();
    expect![[r#"
        Content([Text("half way")])
        Completed: all the way
    "#]]
    .assert_eq(&(shown + &super::show(&result)));
}

#[tokio::test]
async fn tools_added_later_are_listed() {
    let mut session = Session::settled(vec![stdio("box", &[])]).await;
    let n_before = session.servers.tools().len();
    session.call("more", json!({})).await;
    until("there is one more", || session.servers.tools().len() == n_before + 1).await;
    session.refresh();
    expect![[r#"
        > box: more-1 Other Calls { server: "box", tool: "more-1" }
        Completed: {"text":"new"}
    "#]]
    .assert_eq(&session.call("more-1", json!({"text": "new"})).await);
}

#[tokio::test]
async fn session_end_ends_the_servers() {
    let session = Session::settled(vec![stdio("box", &[]), stdio("mule", &["stubborn"])]).await;
    assert_eq!(session.machine.tools.count_programs(), 2);
    let tools = session.servers.tools();
    drop(session.servers);
    until("they are gone", || session.machine.tools.count_programs() == 0).await;
    let result = tools[0].run(&serde_json::Map::new(), session.machine.cx(&|_| ())).await;
    expect![[r#"
        Failed: the MCP server box is not running: the session is over
    "#]]
    .assert_eq(&super::show(&result));
}

#[tokio::test]
async fn session_end_ends_a_running_call() {
    let session = Session::settled(vec![stdio("box", &[])]).await;
    let Session { machine, servers } = session;
    let marker = machine.path("marker");
    let (said, ()) = tokio::join!(machine.call("hang", json!({"marker": marker})), async { drop(servers) });
    expect![[r#"
        > box: hang Other Calls { server: "box", tool: "hang" }
        Failed: the MCP server box ended before it answered: the session is over
    "#]]
    .assert_eq(&said);
}
