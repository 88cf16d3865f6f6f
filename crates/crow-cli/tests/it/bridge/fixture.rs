//! A running server of ours, and its clients.
#![expect(clippy::disallowed_methods, reason = "a test starts what it tests")]

use std::{
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use crow_testkit::client::TestHome;
use futures_util::{SinkExt, StreamExt};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{self, Message, client::IntoClientRequest, http::HeaderValue, protocol::WebSocketConfig},
};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Every action takes less than this.
const RESTS: Duration = Duration::from_secs(1);

/// `crow-cli` as a server, in its own home.
pub(super) struct Server {
    child: Child,
    pub(super) url: String,
    pub(super) token: String,
    pub(super) token_file: String,
    pub(super) world: TestHome,
}

pub(super) fn command(world: &TestHome, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crow-cli"));
    command.args(args).current_dir(world.project());
    command.env_clear().env("HOME", world.home()).env("PATH", env!("PATH"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

impl Server {
    pub(super) fn start(world: TestHome, args: &[&str]) -> Self {
        let mut child = command(&world, args).spawn().expect("the server starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("its output");
        BufReader::new(stdout).read_line(&mut line).expect("it says where it is");
        let said: Value = serde_json::from_str(&line).unwrap_or_else(|_| {
            let mut why = String::new();
            let _ = child.stderr.take().expect("its stderr").read_to_string(&mut why);
            panic!("it did not start: {line:?} {why}")
        });
        assert_eq!(said["pid"], child.id());
        let text = |key: &str| said[key].as_str().expect("a text").to_owned();
        let url = text("url");
        let token_file = said["token_file"].as_str().unwrap_or_default().to_owned();
        let token = match token_file.as_str() {
            "" => String::new(),
            file => std::fs::read_to_string(file).expect("the token").trim().to_owned(),
        };
        Self { child, url, token, token_file, world }
    }

    /// Starts a bridge to a shell script.
    pub(super) fn to_script(script: &str) -> Self {
        let world = TestHome::new("http://127.0.0.1:9/v1");
        Self::start(world, &["acp-bridge", "--", "sh", "-c", script])
    }

    pub(super) fn port(&self) -> u16 {
        let port =
            self.url.trim_end_matches("/acp").trim_end_matches('/').rsplit(':').next().expect("a port");
        port.parse().expect("a number")
    }

    pub(super) async fn client(&self) -> Client {
        self.client_with(&[("authorization", &format!("Bearer {}", self.token))]).await.expect("let in")
    }

    pub(super) async fn client_with(&self, headers: &[(&'static str, &str)]) -> tungstenite::Result<Client> {
        let mut request = self.url.as_str().into_client_request().expect("an address");
        for (name, value) in headers {
            request.headers_mut().insert(*name, HeaderValue::from_str(value).expect("a value"));
        }
        let stream = TcpStream::connect(("127.0.0.1", self.port())).await.expect("it listens");
        stream.set_nodelay(true).expect("a socket");
        let config = WebSocketConfig::default().max_frame_size(None).max_message_size(None);
        let (socket, _) = client_async_with_config(request, stream, Some(config)).await?;
        Ok(Client { socket, n_asked: 0 })
    }

    pub(super) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).expect("a pid");
        kill(Pid::from_raw(pid), signal).expect("it runs");
    }

    /// Waits for its exit; returns the status and stderr.
    pub(super) fn ended(&mut self) -> (ExitStatus, String) {
        let mut said = String::new();
        let mut stderr = self.child.stderr.take().expect("its stderr");
        stderr.read_to_string(&mut said).expect("a text");
        (self.child.wait().expect("it ends"), said)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has used no processor time for a while: nothing moves any more.
    pub(super) fn wait_until_it_rests(&self) {
        let used = || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).expect("it runs");
            let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split(' ').collect();
            (fields[12].to_owned(), fields[13].to_owned())
        };
        let mut before = used();
        loop {
            // An idle process sends no event.
            std::thread::park_timeout(RESTS);
            let now = used();
            if now == before {
                return;
            }
            before = now;
        }
    }

    /// Ends it and returns its home.
    pub(super) fn into_world(mut self) -> TestHome {
        std::mem::replace(&mut self.world, TestHome::new("http://127.0.0.1:9/v1"))
    }

    /// Returns its log.
    pub(super) fn log(&self) -> String {
        std::fs::read_to_string(self.world.home().join(".crow/logs/crow-cli.log")).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client over WebSocket.
pub(super) struct Client {
    pub(super) socket: WebSocketStream<TcpStream>,
    n_asked: u64,
}

impl Client {
    pub(super) async fn say(&mut self, text: impl Into<String>) {
        self.socket.send(Message::text(text.into())).await.expect("it listens");
    }

    /// Returns the next message as text.
    pub(super) async fn hear(&mut self) -> String {
        loop {
            match timeout(PATIENCE, self.socket.next()).await.expect("it speaks") {
                Some(Ok(Message::Text(text))) => return text.to_string(),
                Some(Ok(Message::Close(Some(frame)))) => {
                    return format!("close {}: {}", u16::from(frame.code), frame.reason);
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(other)) => return format!("{other:?}"),
                Some(Err(error)) => return format!("error: {error}"),
                None => return "the end".into(),
            }
        }
    }

    /// Sends a request and returns its response; updates before it are added to `heard`.
    pub(super) async fn ask(&mut self, method: &str, params: Value, heard: &mut Vec<String>) -> Value {
        self.n_asked += 1;
        let id = self.n_asked;
        self.say(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()).await;
        loop {
            let said = self.hear().await;
            let said: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("no message: {said}"));
            if said["id"] == id {
                return said;
            }
            let update = &said["params"]["update"];
            let text = update["content"]["text"].as_str().or(update["title"].as_str()).unwrap_or_default();
            let status = update["status"].as_str().unwrap_or_default();
            heard.push(format!("{} {status} {text}", update["sessionUpdate"].as_str().unwrap_or_default()));
        }
    }

    /// Opens a session and sends a prompt without waiting for the response.
    pub(super) async fn begin(&mut self, cwd: &Path, prompt: &str) {
        let session = self.open(cwd).await;
        let said = json!({"sessionId": session, "prompt": [{"type": "text", "text": prompt}]});
        self.say(
            json!({"jsonrpc": "2.0", "id": "turn", "method": "session/prompt", "params": said}).to_string(),
        )
        .await;
    }

    async fn open(&mut self, cwd: &Path) -> String {
        let hello = json!({"protocolVersion": 1, "clientCapabilities": {}});
        let mut heard = Vec::new();
        let hello = self.ask("initialize", hello, &mut heard).await;
        assert_eq!(hello["result"]["protocolVersion"], 1, "{hello}");
        let opened = self.ask("session/new", json!({"cwd": cwd, "mcpServers": []}), &mut heard).await;
        opened["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{opened}")).to_owned()
    }

    /// Opens a session and runs a turn; renders its result.
    pub(super) async fn turn(&mut self, cwd: &Path, prompt: &str) -> String {
        let session = self.open(cwd).await;
        let mut heard = Vec::new();
        let said = json!({"sessionId": session, "prompt": [{"type": "text", "text": prompt}]});
        let ended = self.ask("session/prompt", said, &mut heard).await;
        heard.retain(|line| line.starts_with("agent_message_chunk") || line.starts_with("tool_call"));
        heard.push(ended["result"]["stopReason"].to_string());
        heard.join("\n")
    }
}
