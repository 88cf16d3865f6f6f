//! A client of the model that sends a request whose bytes exist: how long they are on their way.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::model::{Model, Plan};

/// End of an answer.
const LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";

pub(crate) struct RawClient<'a> {
    model: &'a Model,
    stream: TcpStream,
}

impl<'a> RawClient<'a> {
    pub(crate) fn connect(model: &'a Model) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", model.port())).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { model, stream }
    }

    /// Returns the time from the first byte of a request until the model has all of it.
    pub(crate) fn time_request(&mut self, body: &str) -> Duration {
        self.model.plan(Plan::Words(1));
        let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length";
        let request = format!("{head}: {}\r\n\r\n{body}", body.len());
        let sent = Instant::now();
        self.stream.write_all(request.as_bytes()).unwrap();
        self.read_answer();
        self.model.last().arrived - sent
    }

    fn read_answer(&mut self) {
        let (mut answer, mut buffer) = (Vec::new(), [0; 4096]);
        while !answer.ends_with(LAST_CHUNK) {
            let n_bytes = self.stream.read(&mut buffer).unwrap();
            assert_ne!(n_bytes, 0, "the model hung up");
            answer.extend_from_slice(&buffer[..n_bytes]);
        }
    }
}
