//! The floor: an agent with the standard library only, which sends the prompt over HTTP, reads the stream and sends one
//! notification for each chunk. What Crow needs beyond it is the price of all that Crow does.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;

/// The argument that makes this benchmark the floor.
pub(crate) const WORD: &str = "floor";

/// Answers a client on stdio until it hangs up.
pub(crate) fn serve() -> io::Result<()> {
    let port = model_port()?;
    let mut connection = None;
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let id = field(&line, "\"id\":").unwrap_or("0");
        let result = if line.contains("\"initialize\"") {
            r#"{"protocolVersion":1,"agentCapabilities":{}}"#
        } else if line.contains("\"session/new\"") {
            r#"{"sessionId":"floor"}"#
        } else if line.contains("\"session/prompt\"") {
            stream_reply(port, &mut connection, &mut output)?;
            r#"{"stopReason":"end_turn"}"#
        } else {
            "{}"
        };
        writeln!(output, r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)?;
        output.flush()?;
    }
    Ok(())
}

fn model_port() -> io::Result<u16> {
    let home = std::env::var_os("HOME").unwrap_or_default();
    let config = fs::read_to_string(Path::new(&home).join(".crow/config.yaml"))?;
    let port = field(&config, "127.0.0.1:").and_then(|port| port.parse().ok());
    port.ok_or_else(|| io::Error::other("no port of a model"))
}

/// Returns the number after a text.
fn field<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(mark)?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    Some(&rest[..end])
}

fn stream_reply(
    port: u16,
    connection: &mut Option<BufReader<TcpStream>>,
    output: &mut impl Write,
) -> io::Result<()> {
    let mut stream = match connection.take() {
        Some(stream) => stream,
        None => BufReader::with_capacity(64 * 1024, connect(port)?),
    };
    let body = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"go on"}]}"#;
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length";
    write!(stream.get_mut(), "{head}: {}\r\n\r\n{body}", body.len())?;
    skip_head(&mut stream)?;
    let mut line = String::new();
    while let n_bytes @ 1.. = read_chunk_size(&mut stream)? {
        let mut events = (&mut stream).take(n_bytes);
        loop {
            line.clear();
            if events.read_line(&mut line)? == 0 {
                break;
            }
            send_text(&line, output)?;
        }
        // The line end after a chunk of HTTP.
        stream.read_exact(&mut [0; 2])?;
    }
    stream.read_exact(&mut [0; 2])?;
    *connection = Some(stream);
    Ok(())
}

fn connect(port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn skip_head(stream: &mut impl BufRead) -> io::Result<()> {
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

fn read_chunk_size(stream: &mut impl BufRead) -> io::Result<u64> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    u64::from_str_radix(line.trim_end(), 16).map_err(io::Error::other)
}

fn send_text(line: &str, output: &mut impl Write) -> io::Result<()> {
    let Some((_, rest)) = line.split_once("\"content\":\"") else { return Ok(()) };
    let text = rest.split('"').next().unwrap_or_default();
    writeln!(
        output,
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"floor","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}}}}}"#
    )?;
    output.flush()
}
