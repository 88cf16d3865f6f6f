//! Requests to a NATS server over its text protocol, without a client.
#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;

/// Time for one answer; also the pause after a refusal.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(100);

/// Subjects that wait; further messages wait at the server.
const SUBJECTS_MAX: usize = 256;

/// The longest wait for a message on a loaded machine.
const SUBJECT_TIMEOUT: Duration = Duration::from_secs(60);

/// Questions until a cluster must have a leader: two elections take up to 18 seconds, and the machine may be loaded.
const QUESTIONS_MAX: usize = 600;

/// Returns what a server says about a stream.
pub(crate) fn stream_info(port: u16, stream: &str) -> Value {
    wait_for_answer(port, &format!("$JS.API.STREAM.INFO.{stream}"))
}

/// Returns the number of messages in a stream.
pub(crate) fn stream_len(port: u16, stream: &str) -> u64 {
    let info = stream_info(port, stream);
    info["state"]["messages"].as_u64().unwrap_or_else(|| panic!("no number of messages: {info}"))
}

/// Asks until a server answers without an error.
pub(crate) fn wait_for_answer(port: u16, subject: &str) -> Value {
    let mut last = String::new();
    for _ in 0..QUESTIONS_MAX {
        match ask(port, subject) {
            Ok(answer) if answer["error"].is_null() => return answer,
            Ok(answer) => last = answer["error"].to_string(),
            Err(error) => last = error.to_string(),
        }
    }
    panic!("the server at port {port} did not answer {subject}: {last}")
}

/// The subjects of messages, as they are published.
#[derive(Debug)]
pub struct PublishedSubjects(mpsc::Receiver<String>);

impl PublishedSubjects {
    /// Begins to listen to these subjects.
    pub(crate) fn listen(port: u16, subjects: &str) -> io::Result<Self> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        write!(stream, "CONNECT {{\"verbose\":false}}\r\nSUB {subjects} 1\r\nPING\r\n")?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let (sender, receiver) = mpsc::channel(SUBJECTS_MAX);
        let mut line = String::new();
        while !line.starts_with("PONG") {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        thread::spawn(move || {
            for line in reader.split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                if line.starts_with("PING") && stream.write_all(b"PONG\r\n").is_err() {
                    return;
                }
                let subject = line.strip_prefix("MSG ").or(line.strip_prefix("HMSG "));
                if let Some((subject, _)) = subject.and_then(|rest| rest.split_once(' '))
                    && sender.blocking_send(subject.to_owned()).is_err()
                {
                    return;
                }
            }
        });
        Ok(Self(receiver))
    }

    /// Waits for a subject with this end.
    ///
    /// # Panics
    /// If there is none in time.
    pub async fn wait_for(&mut self, end: &str) {
        let found = async {
            while let Some(subject) = self.0.recv().await {
                if subject.ends_with(end) {
                    return;
                }
            }
            std::future::pending::<()>().await;
        };
        let found = tokio::time::timeout(SUBJECT_TIMEOUT, found).await;
        found.unwrap_or_else(|_| panic!("nothing was published to …{end}"));
    }
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
