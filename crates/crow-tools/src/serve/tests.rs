use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use crow_acp::BearerToken;
use crow_core::{Mode, PermissionRules, SandboxMode, ToolAccess, ToolCallInfo, ToolKind};
use futures_util::future::join_all;
use reqwest::Client;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{
        AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
        duplex, split,
    },
    net::TcpListener,
    sync::watch,
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::watched_streams::{ProgressWriter, WriteProgress, wait_for_stall};
use super::{
    McpHttpEndpoint, McpServeConfig, McpServeError, call_schedule::ServedCallSchedule, serve_http,
    serve_stdio,
};
use crate::{BuiltinToolConfig, ToolRegistry};

/// Far longer than any step of a test; only reached if something hangs.
const STUCK: Duration = Duration::from_secs(20);

/// Edits of one file at a time.
const N_EDITS: usize = 12;

/// A directory with a project, and the configuration beside it.
fn project() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let cwd = dir.path().canonicalize().unwrap().join("project");
    fs::create_dir(&cwd).unwrap();
    (dir, cwd)
}

fn config(dir: &TempDir) -> McpServeConfig {
    let dir = dir.path().canonicalize().unwrap();
    McpServeConfig {
        tools: ToolRegistry::with_builtin_tools(BuiltinToolConfig {
            spill_dir: dir.join("spill"),
            ..BuiltinToolConfig::default()
        }),
        config_dir: dir.join("config"),
        cwd: dir.join("project"),
        secret_variables: Vec::new(),
        mode: Mode::Ask,
        rules: PermissionRules::default(),
        sandbox: SandboxMode::Off,
        readable: Vec::new(),
    }
}

/// A client on pipes.
struct PipeClient {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    write: WriteHalf<DuplexStream>,
    n_sent: u64,
    serving: JoinHandle<Result<(), McpServeError>>,
}

impl PipeClient {
    async fn open(dir: &TempDir, capabilities: Value) -> Self {
        let (here, there) = duplex(64 * 1024);
        let (read, write) = split(there);
        let serving = tokio::spawn(serve_stdio(config(dir), read, write, CancellationToken::new()));
        let (read, write) = split(here);
        let mut client = Self { lines: BufReader::new(read).lines(), write, n_sent: 0, serving };
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"}
        });
        let id = client.send("initialize", hello).await;
        assert_eq!(client.read().await["id"], id);
        client.write_line(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        client
    }

    async fn write_line(&mut self, message: &Value) {
        self.write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn send(&mut self, method: &str, params: Value) -> u64 {
        self.n_sent += 1;
        let id = self.n_sent;
        self.write_line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    async fn send_call(&mut self, tool: &str, arguments: Value) -> u64 {
        self.send("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    async fn read(&mut self) -> Value {
        let line = timeout(STUCK, self.lines.next_line()).await.expect("a message arrives").unwrap();
        serde_json::from_str(&line.unwrap()).unwrap()
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.send_call(tool, arguments).await;
        let answer = self.read().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }
}

/// Writes a file with one line for each edit.
fn write_lines(path: &Path, n_lines: usize) {
    let lines: String = (0..n_lines).map(|number| format!("line {number}: old\n")).collect();
    fs::write(path, lines).unwrap();
}

fn edit_arguments(path: &Path, number: usize) -> Value {
    json!({
        "file_path": path, "old_string": format!("line {number}: old"), "new_string": format!("line {number}: new"),
    })
}

fn is_done(answer: &Value) -> bool {
    answer["result"].is_object() && answer["result"]["isError"] != true
}

#[tokio::test]
async fn parallel_edits_of_one_file_are_all_made() {
    let (dir, cwd) = project();
    let path = cwd.join("a.txt");
    write_lines(&path, N_EDITS);
    let mut client = PipeClient::open(&dir, json!({})).await;
    client.call("read", json!({"file_path": path})).await;
    for number in 0..N_EDITS {
        client.send_call("edit", edit_arguments(&path, number)).await;
    }
    for _ in 0..N_EDITS {
        let answer = client.read().await;
        assert!(is_done(&answer), "{answer}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap().matches("new").count(), N_EDITS);
}

/// A client over HTTP with its session.
struct HttpClient {
    client: Client,
    url: String,
    session: Option<String>,
}

impl HttpClient {
    async fn open(url: String) -> Self {
        let client = crate::http::client_builder().no_proxy().tls_certs_only([]).build().unwrap();
        let mut opened = Self { client, url, session: None };
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}
        });
        let response =
            opened.post(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})).await;
        opened.session = Some(response.headers()["mcp-session-id"].to_str().unwrap().to_owned());
        drop(response.text().await.unwrap());
        opened.post(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        opened
    }

    async fn post(&self, message: Value) -> reqwest::Response {
        let request = self.client.post(&self.url).bearer_auth("key").json(&message);
        let request = request.header("accept", "application/json, text/event-stream");
        let request = match &self.session {
            Some(session) => request.header("mcp-session-id", session),
            None => request,
        };
        let response = timeout(STUCK, request.send()).await.expect("a response arrives").unwrap();
        assert!(response.status().is_success(), "{}", response.status());
        response
    }

    async fn call(&self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let response =
            self.post(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})).await;
        let text = timeout(STUCK, response.text()).await.expect("the response ends").unwrap();
        let mut messages = text.lines().filter_map(|line| line.strip_prefix("data: "));
        let messages = messages.by_ref().filter_map(|data| serde_json::from_str::<Value>(data).ok());
        messages.last().expect("a result")
    }
}

#[tokio::test]
async fn parallel_edits_of_several_http_clients_are_all_made() {
    let (dir, cwd) = project();
    let path = cwd.join("a.txt");
    write_lines(&path, N_EDITS);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = McpHttpEndpoint { listener, token: BearerToken::new("key".to_owned()) };
    let (url, cancel) = (endpoint.url().unwrap(), CancellationToken::new());
    let _stop = cancel.clone().drop_guard();
    tokio::spawn(serve_http(config(&dir), endpoint, cancel));
    let clients = join_all((0..N_EDITS).map(|_| HttpClient::open(url.clone()))).await;
    clients[0].call("read", json!({"file_path": path})).await;
    let edits = clients.iter().enumerate();
    let edits = edits.map(|(number, client)| client.call("edit", edit_arguments(&path, number)));
    for answer in join_all(edits).await {
        assert!(is_done(&answer), "{answer}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap().matches("new").count(), N_EDITS);
}

#[tokio::test]
async fn pending_question_delays_no_other_call() {
    let (dir, cwd) = project();
    fs::create_dir_all(cwd.join(".git/hooks")).unwrap();
    fs::write(cwd.join("a.txt"), "needle\n").unwrap();
    let mut client = PipeClient::open(&dir, json!({"elicitation": {}})).await;
    let hook = cwd.join(".git/hooks/pre-commit");
    let write = client.send_call("write", json!({"file_path": hook, "content": "true\n"})).await;
    let question = client.read().await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    // It reads the directory that the first call would write in.
    let found = client.call("grep", json!({"pattern": "needle", "path": cwd})).await;
    assert!(is_done(&found), "{found}");
    let accepted =
        json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {}}});
    client.write_line(&accepted).await;
    let answer = client.read().await;
    assert!(answer["id"] == write && is_done(&answer), "{answer}");
}

#[tokio::test]
async fn cancelled_call_stops_waiting() {
    let info =
        |access| ToolCallInfo { title: String::new(), kind: ToolKind::Edit, locations: Vec::new(), access };
    let write = info(ToolAccess::Writes(vec!["/a".to_owned()]));
    let read = info(ToolAccess::Reads(vec!["/a".to_owned()]));
    let schedule = ServedCallSchedule::new();
    let reading = schedule.admit_call(&read).await;
    let cancel = CancellationToken::new();
    let (admitted, ()) = tokio::join!(cancel.run_until_cancelled(schedule.admit_call(&write)), async {
        cancel.cancel();
    });
    assert!(admitted.is_none());
    // Nothing waits for the cancelled call.
    timeout(STUCK, schedule.admit_call(&read)).await.expect("it runs");
    drop(reading);
    timeout(STUCK, schedule.admit_call(&write)).await.expect("it runs");
}

/// Calls a tool until its responses fill the pipe, and closes the client's side. Reads the responses only then, or never.
async fn check_end(reads: bool) {
    const N_CALLS: u64 = 8;
    let (dir, cwd) = project();
    let path = cwd.join("a.txt");
    write_lines(&path, 1000);
    let mut client = PipeClient::open(&dir, json!({})).await;
    let first = client.call("read", json!({"file_path": path})).await.to_string();
    assert!(first.len() as u64 * N_CALLS > 128 * 1024, "the pipe is not full");
    for _ in 0..N_CALLS {
        client.send_call("read", json!({"file_path": path})).await;
    }
    client.write.shutdown().await.unwrap();
    if reads {
        for _ in 0..N_CALLS {
            assert!(is_done(&client.read().await));
        }
    }
    let result = timeout(STUCK, client.serving).await.expect("it ends").unwrap();
    assert_eq!(result.is_ok(), reads, "{result:?}");
}

#[tokio::test(start_paused = true)]
async fn server_ends_although_its_client_reads_nothing() {
    check_end(false).await;
    check_end(true).await;
}

#[tokio::test(start_paused = true)]
async fn writer_without_work_does_not_stall() {
    let (mut here, there) = duplex(4);
    let progress = watch::Sender::new(WriteProgress::default());
    let mut stalled = Box::pin(wait_for_stall(progress.subscribe()));
    let mut writer = ProgressWriter { inner: there, progress };
    writer.write_all(b"one\n").await.unwrap();
    timeout(Duration::from_secs(60), &mut stalled).await.unwrap_err();
    let writing = tokio::spawn(async move { writer.write_all(b"and two\n").await });
    let mut read = [0; 4];
    timeout(Duration::from_secs(2), &mut stalled).await.unwrap_err();
    here.read_exact(&mut read).await.unwrap();
    timeout(Duration::from_secs(2), &mut stalled).await.unwrap_err();
    stalled.await;
    writing.abort();
}
