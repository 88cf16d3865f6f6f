//! Lines in, lines out: stdio, and a pair in memory for a client and an agent in one process.

use std::io::{self, BufRead, Read, Write};
use std::pin::Pin;
use std::thread;

use futures_util::{Sink, Stream, StreamExt, sink, stream};
use tokio::sync::mpsc;

/// Lines that may wait between the connection and a pipe; enough to fill a write, few enough to push back.
const LINES_WAITING: usize = 64;

/// A line longer than this is no message: the largest prompts, with images, stay well below.
pub(crate) const LINE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Bytes gathered for one write; a pipe holds as many.
const WRITE_BYTES: usize = 64 * 1024;

pub(crate) type OutgoingLines = Pin<Box<dyn Sink<String, Error = io::Error> + Send>>;
pub(crate) type IncomingLines = Pin<Box<dyn Stream<Item = io::Result<String>> + Send>>;

/// One end of a connection that carries one message a line.
pub struct LineTransport {
    pub(crate) outgoing: OutgoingLines,
    pub(crate) incoming: IncomingLines,
}

impl std::fmt::Debug for LineTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lines")
    }
}

/// Makes both ends of a connection in memory.
pub fn duplex_transport() -> (LineTransport, LineTransport) {
    let (to_agent, agent_reads) = mpsc::channel(LINES_WAITING);
    let (to_client, client_reads) = mpsc::channel(LINES_WAITING);
    let client = LineTransport { outgoing: sink_from(to_agent), incoming: stream_from(client_reads) };
    let agent = LineTransport { outgoing: sink_from(to_client), incoming: stream_from(agent_reads) };
    (client, agent)
}

/// Reads and writes lines on two blocking files, each on a thread of its own: pipes, files and terminals alike,
/// without touching the flags of descriptors that other processes share.
///
/// The returned handle ends when all that was written has left the process.
pub fn stdio_transport(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> io::Result<(LineTransport, thread::JoinHandle<()>)> {
    let (line_read, lines_read) = mpsc::channel(LINES_WAITING);
    let (to_write, writes) = mpsc::channel(LINES_WAITING);
    thread::Builder::new().name("stdin".into()).spawn(move || read_lines(input, &line_read))?;
    let writer = thread::Builder::new().name("stdout".into()).spawn(move || write_lines(output, writes))?;
    Ok((LineTransport { outgoing: sink_from(to_write), incoming: stream_from(lines_read) }, writer))
}

fn read_lines(input: impl Read, lines: &mpsc::Sender<io::Result<String>>) {
    let mut input = io::BufReader::new(input);
    loop {
        let mut line = Vec::new();
        let read = input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        let item = match read {
            Ok(0) => return,
            Ok(_) if line.last() != Some(&b'\n') && line.len() as u64 == LINE_BYTES_MAX => {
                // The rest of the line follows as further garbage; each piece is answered as such.
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
        let ended = item.is_err();
        if lines.blocking_send(item).is_err() || ended {
            return;
        }
    }
}

fn write_lines(mut output: impl Write, mut lines: mpsc::Receiver<io::Result<String>>) {
    let mut bytes = Vec::with_capacity(WRITE_BYTES);
    while let Some(Ok(line)) = lines.blocking_recv() {
        bytes.clear();
        push_line(&mut bytes, &line);
        while bytes.len() < WRITE_BYTES
            && let Ok(Ok(line)) = lines.try_recv()
        {
            push_line(&mut bytes, &line);
        }
        // Nobody is left to tell when the client's end is gone; the closed channel ends the connection.
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
