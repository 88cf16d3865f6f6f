//! Three NATS servers with JetStream for one test, which store each message as often as they are asked to.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::nats_server::NatsServer;

/// Servers; one of them may be lost.
const N_SERVERS: usize = 3;

/// Time for one answer; also the pause after a refusal.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(100);

/// Questions until a cluster must have a leader: two elections take up to 18 seconds, and the machine may be loaded.
const QUESTIONS_MAX: usize = 600;

/// A running cluster.
#[derive(Debug)]
pub struct NatsCluster {
    servers: Vec<NatsServer>,
}

impl NatsCluster {
    /// Starts the servers and waits until each of them answers requests to JetStream; `None` where `CROW_TEST_NATS` does
    /// not say which program it is.
    ///
    /// # Panics
    /// If they do not become ready.
    pub fn start() -> Option<Self> {
        // They are free ports as long as nothing else takes them in the next milliseconds.
        let listeners: Vec<TcpListener> = (0..N_SERVERS)
            .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port"))
            .collect();
        let addresses: Vec<String> = listeners
            .iter()
            .map(|listener| listener.local_addr().expect("it is bound").to_string())
            .collect();
        drop(listeners);
        let routes: Vec<String> = addresses.iter().map(|address| format!("nats-route://{address}")).collect();
        let routes = routes.join(", ");
        let mut servers = Vec::new();
        for (index, address) in addresses.iter().enumerate() {
            let cluster = format!("cluster {{ name: crow, listen: {address:?}, routes: [{routes}] }}");
            servers.push(NatsServer::start_with(&format!("server_name: {}\n{cluster}", server_name(index)))?);
        }
        let cluster = Self { servers };
        for server in &cluster.servers {
            wait_for_answer(server, "$JS.API.INFO");
        }
        Some(cluster)
    }

    /// Returns the addresses of all servers, separated by commas.
    pub fn url(&self) -> String {
        let urls: Vec<String> = self.servers.iter().map(NatsServer::url).collect();
        urls.join(",")
    }

    /// Returns the index of the server that leads a stream, once there is one.
    ///
    /// # Panics
    /// If there is none in time.
    pub fn stream_leader(&self, stream: &str) -> usize {
        let info = self.stream_info(stream);
        let leader = info["cluster"]["leader"].as_str().unwrap_or_default();
        (0..N_SERVERS)
            .find(|index| server_name(*index) == leader)
            .unwrap_or_else(|| panic!("the stream {stream} has no leader: {info}"))
    }

    /// Returns the number of messages in a stream.
    ///
    /// # Panics
    /// If no server knows it in time.
    pub fn stream_len(&self, stream: &str) -> u64 {
        let info = self.stream_info(stream);
        info["state"]["messages"].as_u64().unwrap_or_else(|| panic!("no number of messages: {info}"))
    }

    fn stream_info(&self, stream: &str) -> Value {
        let running = self.servers.iter().find(|server| server.is_running()).expect("a server runs");
        wait_for_answer(running, &format!("$JS.API.STREAM.INFO.{stream}"))
    }

    /// Kills a server. What clients have of it stays.
    pub fn kill(&mut self, index: usize) {
        self.servers[index].kill();
    }

    /// Starts a killed server again, at the same address and with the same data, and waits until it answers requests.
    pub fn resume(&mut self, index: usize) {
        self.servers[index].resume();
        wait_for_answer(&self.servers[index], "$JS.API.INFO");
    }

    /// Returns the number of servers.
    pub fn n_servers(&self) -> usize {
        self.servers.len()
    }
}

fn server_name(index: usize) -> String {
    format!("s{}", index + 1)
}

/// Asks until a server answers without an error.
fn wait_for_answer(server: &NatsServer, subject: &str) -> Value {
    let mut last = String::new();
    for _ in 0..QUESTIONS_MAX {
        match ask(server.port(), subject) {
            Ok(answer) if answer["error"].is_null() => return answer,
            Ok(answer) => last = answer["error"].to_string(),
            Err(error) => last = error.to_string(),
        }
    }
    panic!("the server {} did not answer {subject}: {last}", server.url())
}

/// Sends one request over the server's text protocol and returns the answer.
fn ask(port: u16, subject: &str) -> io::Result<Value> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    write!(stream, "CONNECT {{\"verbose\":false}}\r\nSUB answer 1\r\nPUB {subject} answer 0\r\n\r\n")?;
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if line.starts_with("PING") {
            stream.write_all(b"PONG\r\n")?;
        }
        if line.starts_with("MSG ") {
            let n_bytes = line.trim_end().rsplit(' ').next().and_then(|number| number.parse().ok());
            let mut payload = vec![0; n_bytes.ok_or(io::ErrorKind::InvalidData)?];
            reader.read_exact(&mut payload)?;
            let answer: Value = serde_json::from_slice(&payload)?;
            if !answer["error"].is_null() {
                // Nothing more comes; the next question waits as long as one without an answer.
                let _ = reader.read_line(&mut line)?;
                let _ = reader.read_line(&mut line);
            }
            return Ok(answer);
        }
    }
}
