//! A minimal ACP agent: it waits for the model and then sends chunks. A deaf one ignores a cancel and the end of its
//! input.

use std::io::{BufRead, Read, Write};
use std::net::TcpStream;
use std::process;

use serde_json::{Value, json};

/// First argument that turns this program into the agent.
pub(crate) const WORD: &str = "be-an-agent";

/// Argument of a deaf agent.
pub(crate) const DEAF: &str = "deaf";

/// Serves on stdin and stdout: `words` are the model's port, the number of chunks, and whether it is deaf.
pub(crate) fn serve(words: &[String]) {
    let (port, n_chunks): (u16, usize) = (words[0].parse().unwrap(), words[1].parse().unwrap());
    let is_deaf = words.get(2).is_some_and(|word| word == DEAF);
    let said = |message: &Value| {
        // A closed stdout is noticed at the next line.
        let _ = writeln!(std::io::stdout(), "{message}");
    };
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let message: Value = serde_json::from_str(&line).unwrap();
        let answer = |result: Value| said(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => answer(json!({"protocolVersion": 1, "agentCapabilities": {}})),
            "session/new" => answer(json!({"sessionId": format!("s{}", process::id())})),
            "session/prompt" => {
                ask(port, &message["params"]["prompt"].to_string());
                let words = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "word "}});
                let params = json!({"sessionId": message["params"]["sessionId"], "update": words});
                let chunk = json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
                (0..n_chunks).for_each(|_| said(&chunk));
                answer(json!({"stopReason": "end_turn"}));
            }
            _ => {}
        }
    }
    if is_deaf {
        loop {
            std::thread::park();
        }
    }
}

/// Waits for the end of the model's answer and ignores its content.
fn ask(port: u16, prompt: &str) {
    let body = json!({"messages": [{"role": "user", "content": prompt}]}).to_string();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "POST / HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut head = [0; 256];
    // A held answer sends one chunk and never ends.
    loop {
        let n = stream.read(&mut head).unwrap();
        if n == 0 || head[..n].windows(4).any(|end| end == b"0\r\n\r") {
            return;
        }
    }
}
