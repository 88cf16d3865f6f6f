//! Lines in, lines out: stdio, and an in-memory pair for a client and an agent in one process.

use std::io::{self, BufRead, Read, Write};
use std::pin::Pin;
use std::thread;

use futures_util::{Sink, Stream, StreamExt, sink, stream};
use tokio::sync::mpsc;

/// Lines queued between the connection and a pipe; enough to fill a write, few enough to push back.
const QUEUED_LINES_MAX: usize = 64;

/// A longer line is no message: the largest prompts, with images, are far smaller.
pub(crate) const LINE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Bytes gathered for one write; the capacity of a pipe.
const WRITE_BYTES_MAX: usize = 64 * 1024;

pub(crate) type OutgoingLines = Pin<Box<dyn Sink<String, Error = io::Error> + Send>>;
pub(crate) type IncomingLines = Pin<Box<dyn Stream<Item = io::Result<String>> + Send>>;

/// One end of a connection that carries one message per line.
pub struct LineTransport {
    pub(crate) outgoing: OutgoingLines,
    pub(crate) incoming: IncomingLines,
}

impl std::fmt::Debug for LineTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lines")
    }
}

/// Creates an end of a connection from channels of lines; an error ends it.
pub fn channel_transport(
    incoming: mpsc::Receiver<io::Result<String>>,
    outgoing: mpsc::Sender<io::Result<String>>,
) -> LineTransport {
    LineTransport { outgoing: sink_from(outgoing), incoming: stream_from(incoming) }
}

/// Creates both ends of an in-memory connection.
pub fn duplex_transport() -> (LineTransport, LineTransport) {
    let (to_agent, agent_receiver) = mpsc::channel(QUEUED_LINES_MAX);
    let (to_client, client_receiver) = mpsc::channel(QUEUED_LINES_MAX);
    (channel_transport(client_receiver, to_agent), channel_transport(agent_receiver, to_client))
}

/// Reads and writes lines on two blocking files, each on its own thread: pipes, files and terminals alike, without
/// changing flags of descriptors that other processes share.
///
/// The returned handle ends when everything written has left the process.
pub fn stdio_transport(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> io::Result<(LineTransport, thread::JoinHandle<()>)> {
    let (incoming_sender, incoming_receiver) = mpsc::channel(QUEUED_LINES_MAX);
    let (outgoing_sender, outgoing_receiver) = mpsc::channel(QUEUED_LINES_MAX);
    thread::Builder::new().name("stdin".into()).spawn(move || read_lines(input, &incoming_sender))?;
    let writer =
        thread::Builder::new().name("stdout".into()).spawn(move || write_lines(output, outgoing_receiver))?;
    Ok((
        LineTransport { outgoing: sink_from(outgoing_sender), incoming: stream_from(incoming_receiver) },
        writer,
    ))
}

fn read_lines(input: impl Read, lines: &mpsc::Sender<io::Result<String>>) {
    let mut input = io::BufReader::new(input);
    loop {
        let mut line = Vec::new();
        let result = input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        let item = match result {
            Ok(0) => return,
            Ok(_) if line.last() != Some(&b'\n') && line.len() as u64 == LINE_BYTES_MAX => {
                // The rest of the line follows as further invalid pieces; each is answered as such.
                Ok("message too long".to_owned())
            }
            Ok(_) => {
                while line.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
                    line.pop();
                }
                Ok(String::from_utf8_lossy(&line).into_owned())
            }
            Err(error) => Err(error),
        };
        if matches!(&item, Ok(line) if line.is_empty()) {
            continue;
        }
        let is_error = item.is_err();
        if lines.blocking_send(item).is_err() || is_error {
            return;
        }
    }
}

fn write_lines(mut output: impl Write, mut lines: mpsc::Receiver<io::Result<String>>) {
    let mut bytes = Vec::with_capacity(WRITE_BYTES_MAX);
    while let Some(Ok(line)) = lines.blocking_recv() {
        bytes.clear();
        push_line(&mut bytes, &line);
        while bytes.len() < WRITE_BYTES_MAX
            && let Ok(Ok(line)) = lines.try_recv()
        {
            push_line(&mut bytes, &line);
        }
        // If the client's end is gone, the closed channel ends the connection.
        if output.write_all(&bytes).and_then(|()| output.flush()).is_err() {
            return;
        }
    }
}

fn push_line(bytes: &mut Vec<u8>, line: &str) {
    bytes.extend_from_slice(line.as_bytes());
    bytes.push(b'\n');
}

fn sink_from(lines: mpsc::Sender<io::Result<String>>) -> OutgoingLines {
    Box::pin(sink::unfold(lines, |lines, line: String| async move {
        match lines.send(Ok(line)).await {
            Ok(()) => Ok(lines),
            Err(_) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }))
}

fn stream_from(lines: mpsc::Receiver<io::Result<String>>) -> IncomingLines {
    stream::unfold(lines, |mut lines| async move { lines.recv().await.map(|line| (line, lines)) }).boxed()
}
