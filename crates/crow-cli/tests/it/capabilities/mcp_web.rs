//! An MCP server at a URL, with the current and with the older transport.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::{Stage, id_of, text};

/// The event stream of a connected client.
type Events = Arc<Mutex<Option<TcpStream>>>;

/// Opens a session with a server of this kind and calls its tool.
pub(super) async fn works(kind: &str, stage: &mut Stage) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
    let address = listener.local_addr().expect("it has an address");
    let events = Events::default();
    // It ends with the test.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let events = Arc::clone(&events);
            std::thread::spawn(move || serve(&stream, &events));
        }
    });
    let server =
        json!({"type": kind, "name": "web", "url": format!("http://{address}/{kind}"), "headers": []});
    let opened = stage.open(json!({"mcpServers": [server]})).await.expect("a session opens");
    let script = "call whisper {\"word\":\"psst\"}\ntext \"I heard.\"";
    stage.turn(&id_of(&opened), text("whisper"), script).await;
    assert!(stage.asked().contains("you said psst"), "{kind}: {}", stage.asked());
    // An unreachable server lacks its tools, and the session works.
    let nowhere = json!({"type": kind, "name": "nowhere", "url": "http://127.0.0.1:9/mcp", "headers": []});
    let opened = stage.open(json!({"mcpServers": [nowhere]})).await.expect("a session opens");
    stage.turn(&id_of(&opened), text("hello"), "text \"Hello.\"").await;
}

fn serve(stream: &TcpStream, events: &Events) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end() {
                "" => break,
                line => head.push(line.to_lowercase()),
            }
        }
        let n_bytes = head.iter().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        let mut body = vec![0; n_bytes.unwrap_or(0)];
        reader.read_exact(&mut body).ok()?;
        let said = answer(&serde_json::from_slice(&body).unwrap_or_default());
        let mut stream = stream.try_clone().ok()?;
        match (head[0].split(' ').take(2).collect::<Vec<_>>()[..].join(" ").as_str(), said) {
            ("get /sse", _) => {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
                write!(stream, "{head}event: endpoint\ndata: /messages\n\n").ok()?;
                *events.lock().ok()? = Some(stream);
                return Some(());
            }
            ("post /http", Some(said)) => {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
                write!(stream, "{head}content-length: {}\r\n\r\n{said}", said.len()).ok()?;
            }
            ("post /messages", Some(said)) => {
                write!(stream, "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").ok()?;
                let mut events = events.lock().ok()?;
                write!(events.as_mut()?, "event: message\ndata: {said}\n\n").ok()?;
            }
            ("post /http" | "post /messages", None) => {
                write!(stream, "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").ok()?;
            }
            _ => write!(stream, "HTTP/1.1 405 Not here\r\ncontent-length: 0\r\n\r\n").ok()?,
        }
    }
}

/// Returns the server's response to a message as text; empty for a notification.
fn answer(message: &Value) -> Option<String> {
    let id = message.get("id")?;
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "web", "version": "1"},
        }),
        "tools/list" => json!({"tools": [{
            "name": "whisper",
            "description": "Says a word back",
            "inputSchema": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
        }]}),
        "tools/call" => {
            let word = message["params"]["arguments"]["word"].as_str().unwrap_or_default();
            json!({"content": [{"type": "text", "text": format!("you said {word}")}], "isError": false})
        }
        _ => json!({}),
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string())
}
