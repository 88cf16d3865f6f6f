//! Requests to a NATS server over its text protocol, without a client.
#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// Time for one answer; also the pause after a refusal.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(100);

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
