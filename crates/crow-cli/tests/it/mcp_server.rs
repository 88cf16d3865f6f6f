//! `crow-cli mcp`: an MCP client's view of it, over pipes and over HTTP.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::{
    fmt::Write as _,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Stdio},
    time::Duration,
};

use crow_testkit::{client::TestHome, tracked_command::TrackedCommand};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

/// A server that takes longer than this hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// `crow-cli mcp` in its own home, and its output so far.
struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    n_asked: u64,
    heard: String,
    world: TestHome,
}

impl Server {
    fn start(world: TestHome, args: &[&str]) -> Self {
        #[expect(clippy::disallowed_methods, reason = "a test starts what it tests")]
        let mut command = std::process::Command::new("/bin/sh");
        // As few descriptors as some systems allow.
        command.args(["-c", "ulimit -n 256 && exec \"$@\"", "sh", env!("CARGO_BIN_EXE_crow-cli")]);
        command.arg("mcp").args(args).current_dir(world.project());
        command.env_clear().env("HOME", world.home()).env("PATH", env!("PATH"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("the server starts");
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("its output"));
        Self { child, stdin, stdout, n_asked: 0, heard: String::new(), world }
    }

    /// Starts it and completes the handshake.
    fn open(capabilities: &Value) -> Self {
        let mut server = Self::start(TestHome::new("http://127.0.0.1:9/v1"), &[]);
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"}
        });
        server.ask("initialize", &hello);
        server.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        server
    }

    fn say(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("it is still spoken to");
        writeln!(stdin, "{line}").expect("it listens");
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("it speaks");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("no protocol line ({error}): {line:?}"))
    }

    fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.n_asked += 1;
        let id = self.n_asked;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        id
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        let answer = self.hear();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Calls a tool and records the result.
    fn call(&mut self, tool: &str, arguments: &Value) {
        let answer = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        self.note(tool, &answer);
    }

    fn note(&mut self, tool: &str, answer: &Value) {
        let said = match (&answer["error"], &answer["result"]) {
            (Value::Null, result) => {
                let mark = if result["isError"] == true { "failed" } else { "done" };
                let texts = result["content"].as_array().into_iter().flatten();
                let texts: Vec<String> = texts
                    .map(|block| match block["text"].as_str() {
                        Some(text) => text.trim_end().to_owned(),
                        None => format!("({} {})", block["type"], block["mimeType"]),
                    })
                    .collect();
                format!("{mark}: {}", texts.join(" | "))
            }
            (error, _) => format!("error {}: {}", error["code"], error["message"]),
        };
        let said = self.plain(&said);
        writeln!(self.heard, "{tool} {said}").expect("a text takes all");
    }

    /// Masks the directories of this run.
    fn plain(&self, text: &str) -> String {
        let real = |path: PathBuf| fs::canonicalize(path).expect("it is there").display().to_string();
        text.replace(&real(self.world.project()), "$DIR").replace(&real(self.world.home()), "$HOME")
    }

    /// Closes its stdin and waits for its exit.
    fn leave(&mut self) -> Option<i32> {
        drop(self.stdin.take());
        self.child.wait().expect("it ends").code()
    }

    /// Terminates it as the system does.
    fn terminate(&self) {
        #[expect(clippy::disallowed_methods, reason = "a test ends what it started")]
        let mut kill = std::process::Command::new("kill");
        assert!(kill.arg(self.child.id().to_string()).status().expect("it runs").success());
    }

    fn check(&self, expected: &Expect) {
        expected.assert_eq(&self.heard);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has usually exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn tools_work_as_they_do_in_a_session() {
    let mut server = Server::open(&json!({}));
    server.world.write_file("a.txt", "one\ntwo\n");
    server.call("read", &json!({"file_path": "a.txt"}));
    server.call("edit", &json!({"file_path": "a.txt", "old_string": "two", "new_string": "three"}));
    server.call("terminal", &json!({"command": "cat a.txt; exit 3"}));
    server.call("grep", &json!({"pattern": "th"}));
    server.call("read", &json!({"file_path": 7}));
    server.call("read", &json!({"file_path": "missing"}));
    server.call("nothing", &json!({}));
    server.call("read", &json!("no object"));
    server.check(&expect![[r#"
        read done:      1	one
             2	two
        edit done: edited a.txt in 1 place; match: exact
             1	one
             2	three
        terminal failed: one
        three
        exit code 3
        grep done: a.txt:2: three
        read failed: could not read 7: it does not exist
        read failed: could not read missing: it does not exist
        nothing error -32602: "there is no tool nothing"
        read error -32602: "tools/call takes the name of a tool and, as `arguments`, an object"
    "#]]);
    let unknown = server.ask("no/such/method", &json!({}));
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    assert_eq!(server.leave(), Some(0));
}

#[test]
fn tool_annotations_declare_effects() {
    let mut server = Server::open(&json!({}));
    let answer = server.ask("tools/list", &json!({}));
    for tool in answer["result"]["tools"].as_array().expect("tools") {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        let hints = &tool["annotations"];
        let hint = |name: &'static str| if hints[name] == true { name } else { "" };
        let (reads, breaks) = (hint("readOnlyHint"), hint("destructiveHint"));
        writeln!(server.heard, "{} {reads}{breaks} {}", tool["name"], hint("openWorldHint")).expect("a text");
    }
    server.check(&expect![[r#"
        "read" readOnlyHint 
        "write" destructiveHint 
        "edit" destructiveHint 
        "terminal" destructiveHint openWorldHint
        "grep" readOnlyHint 
        "glob" readOnlyHint 
        "web_search" readOnlyHint 
        "web_fetch" readOnlyHint openWorldHint
        "todo" readOnlyHint 
    "#]]);
}

#[test]
fn call_that_needs_a_user_is_rejected_without_one() {
    let mut server = Server::open(&json!({}));
    server.call("read", &json!({"file_path": "/etc/hostname"}));
    server.call("write", &json!({"file_path": ".git/hooks/pre-commit", "content": "evil"}));
    server.call("write", &json!({"file_path": "../out", "content": "out"}));
    server.call("read", &json!({"file_path": server.world.home().join(".crow/config.yaml")}));
    server.call("terminal", &json!({"command": "echo evil > .git/hooks/pre-commit"}));
    server.call("write", &json!({"file_path": "in", "content": "in"}));
    server.check(&expect![[r#"
        read failed: not run: it needs permission (it leads out of the allowed directories), and this client cannot be asked for it
        write failed: not run: it needs permission ($DIR/.git/hooks/pre-commit is protected), and this client cannot be asked for it
        write failed: not run: it needs permission (it leads out of the allowed directories), and this client cannot be asked for it
        read failed: not run: it needs permission ($HOME/.crow/config.yaml is protected), and this client cannot be asked for it
        terminal failed: not run: it needs permission (it writes to .git/hooks/pre-commit, which is protected), and this client cannot be asked for it
        write done: created in: 1 line
    "#]]);
    assert!(!server.world.project().join(".git").exists(), "something was written");
}

#[test]
fn rules_of_the_configuration_apply() {
    let world = TestHome::new("http://127.0.0.1:9/v1");
    world.add_config("permissions: { mode: plan, deny: [tool(grep)] }\n");
    let mut server = Server::start(world, &[]);
    let hello = json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    server.ask("initialize", &hello);
    server.call("grep", &json!({"pattern": "x"}));
    server.call("write", &json!({"file_path": "a", "content": ""}));
    server.call("terminal", &json!({"command": "touch a"}));
    server.check(&expect![[r#"
        grep failed: not run: the configuration forbids it with the deny rule `tool(grep)`
        write failed: not run: plan mode only reads; switch the mode to change or run something
        terminal failed: not run: plan mode only reads; switch the mode to change or run something
    "#]]);
}

#[test]
fn client_with_elicitation_asks_its_user() {
    let mut server = Server::open(&json!({"elicitation": {}}));
    for action in ["accept", "decline", "cancel"] {
        let id = server.send(
            "tools/call",
            &json!({"name": "write", "arguments": {"file_path": "../out", "content": action}}),
        );
        let question = server.hear();
        assert_eq!(question["method"], "elicitation/create", "{question}");
        let message = server.plain(question["params"]["message"].as_str().unwrap_or_default());
        writeln!(server.heard, "asked: {message}").expect("a text");
        let answer =
            json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": action, "content": {}}});
        server.say(&answer.to_string());
        let answer = server.hear();
        assert_eq!(answer["id"], id);
        server.note("write", &answer);
    }
    server.check(&expect![[r#"
        asked: Crow requests permission: Write $HOME/out. Reason: it leads out of the allowed directories. Accept to allow it once.
        write done: created $HOME/out: 1 line
        asked: Crow requests permission: Write $HOME/out. Reason: it leads out of the allowed directories. Accept to allow it once.
        write failed: not run: the user rejected it
        asked: Crow requests permission: Write $HOME/out. Reason: it leads out of the allowed directories. Accept to allow it once.
        write failed: not run: the user rejected it
    "#]]);
    let written = fs::read_to_string(server.world.project().join("../out")).expect("it was allowed once");
    assert_eq!(written, "accept");
}

#[test]
fn roots_of_the_client_are_accessible() {
    let mut server = Server::open(&json!({"roots": {"listChanged": true}}));
    let beside = server.world.home().join("beside");
    fs::create_dir(&beside).expect("a folder");
    fs::write(beside.join("b.txt"), "beside\n").expect("a file");
    let asked = server.hear();
    assert_eq!(asked["method"], "roots/list");
    server.say(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": []}}).to_string());
    server.call("read", &json!({"file_path": beside.join("b.txt")}));
    server.say(&json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}).to_string());
    let asked = server.hear();
    let roots = json!([{"uri": format!("file://{}", beside.display())}, {"uri": "https://example.com"}, {"uri": "file://relative"}]);
    server.say(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": roots}}).to_string());
    server.call("read", &json!({"file_path": beside.join("b.txt")}));
    server.check(&expect![[r#"
        read failed: not run: it needs permission (it leads out of the allowed directories), and this client cannot be asked for it
        read done:      1	beside
    "#]]);
}

#[tokio::test]
async fn cancelled_call_leaves_no_process() {
    let mut server = Server::open(&json!({}));
    let mut leash = TrackedCommand::new(&server.world.project());
    begin(&mut server);
    let id = server.n_asked;
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    server.say(&cancelled.to_string());
    leash.wait_until_gone("after the call was cancelled").await;
    assert_eq!(server.ask("ping", &json!({}))["result"], json!({}), "nothing more is said of the call");
}

#[tokio::test]
async fn client_disconnect_leaves_no_process() {
    let mut server = Server::open(&json!({}));
    let mut leash = TrackedCommand::new(&server.world.project());
    begin(&mut server);
    drop(server.stdin.take());
    leash.wait_until_gone("after the client left").await;
    assert_eq!(server.leave(), Some(0));
}

#[tokio::test]
async fn server_exit_leaves_no_process() {
    let mut server = Server::open(&json!({}));
    let mut leash = TrackedCommand::new(&server.world.project());
    begin(&mut server);
    server.terminate();
    leash.wait_until_gone("after the server was asked to end").await;
    assert_eq!(server.leave(), Some(0));
}

/// Calls the tracked command and waits until it has started.
fn begin(server: &mut Server) {
    let call = json!({"name": "terminal", "arguments": {"command": TrackedCommand::COMMAND}, "_meta": {"progressToken": "t"}});
    server.send("tools/call", &call);
    let progress = server.hear();
    assert_eq!(progress["method"], "notifications/progress", "{progress}");
    assert_eq!(progress["params"]["message"], "started\n");
}

#[test]
fn odd_clients_do_no_harm_to_the_server() {
    let mut server = Server::open(&json!({}));
    for line in ["", "garbage", "[]", "{}", "null", "\u{0}", r#"{"jsonrpc":"2.0","id":90,"result":{}}"#] {
        server.say(line);
    }
    server.say(&format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":91,\"method\":\"x\",\"params\":\"{}\"}}",
        "x".repeat(20 << 20)
    ));
    let mut answers = Vec::new();
    server.send("ping", &json!({}));
    loop {
        let answer = server.hear();
        if answer["id"] == server.n_asked {
            break;
        }
        answers.push(answer["error"]["code"].clone());
    }
    assert!(answers.iter().all(|code| code.is_i64()), "only refusals: {answers:?}");
    server.call("todo", &json!({"entries": []}));
    assert_eq!(server.leave(), Some(0));
}

/// An address and its token.
struct Web {
    server: Server,
    address: String,
    token: String,
    token_file: PathBuf,
    session: String,
}

impl Web {
    fn start() -> Self {
        let mut server = Server::start(TestHome::new("http://127.0.0.1:9/v1"), &["--http", "127.0.0.1:0"]);
        let line = server.hear();
        let address = line["url"].as_str().and_then(|url| url.strip_prefix("http://")?.strip_suffix("/mcp"));
        let token_file = PathBuf::from(line["token_file"].as_str().expect("a token file"));
        assert_eq!(mode(&token_file), 0o600);
        assert_eq!(line["pid"], server.child.id());
        let token = fs::read_to_string(&token_file).expect("a token");
        let address = address.expect("an address").to_owned();
        Self { server, address, token, token_file, session: String::new() }
    }

    /// Posts a message; returns the head of the response and its body.
    fn post(&self, headers: &[(&str, &str)], message: &Value) -> (String, String) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        let body = message.to_string();
        let bearer = format!("Bearer {}", self.token);
        let mut all = vec![
            ("Host", self.address.as_str()),
            ("Authorization", &bearer),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("Mcp-Session-Id", &self.session),
        ];
        all.retain(|(name, value)| !value.is_empty() && !headers.iter().any(|(other, _)| other == name));
        let mut request =
            format!("POST /mcp HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in all.iter().chain(headers).filter(|(_, value)| !value.is_empty()) {
            write!(request, "{name}: {value}\r\n").expect("a text");
        }
        stream.write_all(format!("{request}\r\n{body}").as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        (head.to_owned(), body.to_owned())
    }

    fn hello(&self, headers: &[(&str, &str)]) -> (String, String) {
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        self.post(headers, &json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}))
    }
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[test]
fn http_requires_the_token() {
    let mut web = Web::start();
    let mut check = |what: &str, headers: &[(&str, &str)]| {
        let (head, _) = web.hello(headers);
        let status = head.lines().next().unwrap_or_default();
        writeln!(web.server.heard, "{what}: {status}").expect("a text");
    };
    check("the token", &[]);
    check("no token", &[("Authorization", "")]);
    check("a wrong token", &[("Authorization", "Bearer 0000")]);
    check("another scheme", &[("Authorization", "Basic eDp5")]);
    check("a page of another site", &[("Origin", "https://example.com")]);
    check("a page of this machine", &[("Origin", "http://localhost:3000")]);
    check("another name for this machine", &[("Host", "rebound.example.com")]);
    check("no such session", &[("Mcp-Session-Id", "unknown")]);
    web.server.check(&expect![[r#"
        the token: HTTP/1.1 200 OK
        no token: HTTP/1.1 401 Unauthorized
        a wrong token: HTTP/1.1 401 Unauthorized
        another scheme: HTTP/1.1 401 Unauthorized
        a page of another site: HTTP/1.1 403 Forbidden
        a page of this machine: HTTP/1.1 200 OK
        another name for this machine: HTTP/1.1 403 Forbidden
        no such session: HTTP/1.1 404 Not Found
    "#]]);
}

#[test]
fn http_session_calls_tools() {
    let mut web = Web::start();
    let (head, _) = web.hello(&[]);
    let session = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("mcp-session-id: ").map(str::to_owned));
    web.session = session.expect("a session");
    web.post(&[], &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let call = json!({"name": "terminal", "arguments": {"command": "echo over http"}});
    let (_, body) =
        web.post(&[], &json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}));
    assert!(body.contains(r#""text":"over http\n""#), "{body}");
}

#[test]
fn http_clients_do_not_delay_shutdown() {
    let mut web = Web::start();
    let mut half = TcpStream::connect(&web.address).expect("it listens");
    half.write_all(b"POST /mcp HTTP/1.1\r\nHost: x\r\n").expect("it reads");
    // Accepted after an incomplete request.
    web.hello(&[]);
    web.server.terminate();
    assert_eq!(web.server.leave(), Some(0));
    assert!(!web.token_file.exists(), "the key is still there");
    drop(half);
}

/// Connections without a token: silent, incomplete or rejected.
#[test]
fn http_unauthenticated_clients_do_not_block_others() {
    let web = Web::start();
    let mut strangers = Vec::new();
    for n in 0..400 {
        let mut stranger = TcpStream::connect(&web.address).expect("it listens");
        if n % 2 == 1 {
            // The connection may be closed already.
            let _ = stranger.write_all(b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Le");
        }
        strangers.push(stranger);
    }
    let (head, _) = web.hello(&[]);
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    drop(strangers);
}

#[test]
fn address_reachable_by_others_is_rejected() {
    #[expect(clippy::disallowed_methods, reason = "a test starts what it tests")]
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_crow-cli"));
    let world = TestHome::new("http://127.0.0.1:9/v1");
    let ended =
        command.args(["mcp", "--http", "0.0.0.0:0"]).env("HOME", world.home()).output().expect("it runs");
    assert_eq!(ended.status.code(), Some(2));
    expect![[r#"
        error: 0.0.0.0:0 is reachable from other machines
        hint: use 127.0.0.1, with an encrypted tunnel for other machines
    "#]]
    .assert_eq(&String::from_utf8_lossy(&ended.stderr));
}
