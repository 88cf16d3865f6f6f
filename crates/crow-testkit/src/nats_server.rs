//! A NATS server with JetStream for one test: on a free port, in a folder of its own, ended with the test.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "it is started as an administrator would")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;

use tempfile::TempDir;

use crate::nats_request::PublishedSubjects;

/// The variable with the path of `nats-server`.
const PROGRAM_VARIABLE: &str = "CROW_TEST_NATS";

/// A running server.
#[derive(Debug)]
pub struct NatsServer {
    directory: TempDir,
    config: String,
    port: u16,
    running: Option<Child>,
}

impl NatsServer {
    /// Starts a server; `None` where `CROW_TEST_NATS` does not say which program it is.
    pub fn start() -> Option<Self> {
        Self::start_with("")
    }

    /// Starts a server with more lines of configuration.
    pub fn start_with(config: &str) -> Option<Self> {
        std::env::var_os(PROGRAM_VARIABLE)?;
        let directory = tempfile::tempdir().expect("a folder can be made");
        let mut server = Self { directory, config: config.to_owned(), port: 0, running: None };
        server.resume();
        Some(server)
    }

    /// Returns the address.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Returns the number of messages in a stream.
    ///
    /// # Panics
    /// If the server does not know it in time.
    pub fn stream_len(&self, stream: &str) -> u64 {
        crate::nats_request::stream_len(self.port, stream)
    }

    /// Returns the bytes of the messages in a stream.
    ///
    /// # Panics
    /// If the server does not know it in time.
    pub fn stream_bytes(&self, stream: &str) -> u64 {
        let info = crate::nats_request::stream_info(self.port, stream);
        info["state"]["bytes"].as_u64().expect("it says so")
    }

    /// Begins to listen to these subjects, such as `crow.result.>`.
    ///
    /// # Panics
    /// If the server is not there.
    pub fn listen(&self, subjects: &str) -> PublishedSubjects {
        PublishedSubjects::listen(self.port, subjects).expect("the server runs")
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Kills the server. What clients have of it stays.
    pub fn kill(&mut self) {
        if let Some(mut running) = self.running.take() {
            running.kill().expect("it runs");
            running.wait().expect("it was started");
        }
    }

    /// Starts the server again, at the same address and with the same data.
    ///
    /// # Panics
    /// If it does not become ready.
    pub fn resume(&mut self) {
        let program = std::env::var_os(PROGRAM_VARIABLE).expect("it was set before");
        let port = if self.port == 0 { -1 } else { i32::from(self.port) };
        let store = self.directory.path().join("store");
        let config =
            format!("host: 127.0.0.1\nport: {port}\njetstream {{ store_dir: {store:?} }}\n{}\n", self.config);
        let file = self.directory.path().join("server.conf");
        fs::write(&file, config).expect("the configuration can be written");
        let mut command = Command::new(program);
        command.arg("-c").arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("the server starts");
        let mut lines = BufReader::new(process.stderr.take().expect("it was asked for")).lines();
        let mut log = String::new();
        loop {
            let line = lines.next().and_then(Result::ok);
            let line = line.unwrap_or_else(|| panic!("the server ended:\n{log}"));
            if let Some((_, address)) = line.split_once("Listening for client connections on ") {
                let port = address.rsplit(':').next().and_then(|port| port.trim().parse().ok());
                self.port = port.expect("the address has a port");
            }
            if line.contains("Server is ready") {
                break;
            }
            log.push_str(&format!("{line}\n"));
        }
        self.running = Some(process);
        // Its log must not fill the pipe.
        thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}
