//! The scripted model: answers the demo's requests over real HTTP, in the order of the script.

use std::{io, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// Requests of the demo are a few kilobytes; a much larger one is not ours.
const REQUEST_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Header lines of a request, for the same reason.
const HEAD_LINES_MAX: usize = 100;

/// Time between two words at reading speed.
const WORD_INTERVAL: Duration = Duration::from_millis(25);

/// Speed of the model's output.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DemoPace {
    /// A user can follow.
    Reading,
    /// Without delay.
    Full,
}

/// One reply of the script.
struct ScriptStep {
    text: &'static str,
    calls: Vec<(&'static str, Value)>,
}

fn script_step(step: usize) -> ScriptStep {
    match step {
        0 => ScriptStep {
            text: "I'll look at what fails first.",
            calls: vec![
                (
                    "todo",
                    json!({"entries": [
                        {"content": "Reproduce the failure", "status": "in_progress"},
                        {"content": "Fix it", "status": "pending"},
                        {"content": "Show that the tests pass", "status": "pending"},
                    ]}),
                ),
                ("terminal", json!({"command": "sh test.sh"})),
            ],
        },
        1 => ScriptStep {
            text: "The discount is wrong. Where is it calculated?",
            calls: vec![("grep", json!({"pattern": "full"})), ("read", json!({"file_path": "price.sh"}))],
        },
        2 => ScriptStep {
            text: "A percentage is a part of **100**, and `price.sh` divides by 10.",
            calls: vec![(
                "edit",
                json!({"file_path": "price.sh", "old_string": "full * $3 / 10))", "new_string": "full * $3 / 100))"}),
            )],
        },
        3 => ScriptStep {
            text: "Now the tests again.",
            calls: vec![("terminal", json!({"command": "sh test.sh"}))],
        },
        _ => ScriptStep {
            text: "Done: `total` in price.sh took the discount as a part of 10 instead of 100. Both tests pass.",
            calls: Vec::new(),
        },
    }
}

/// The model's server. Stops when dropped.
pub(crate) struct ScriptedModel {
    base_url: String,
    server_task: JoinHandle<()>,
}

impl ScriptedModel {
    /// Listens on a free loopback port.
    pub(crate) async fn start(pace: DemoPace) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let base_url = format!("http://{}/v1", listener.local_addr()?);
        let server_task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                if let Err(error) = answer_request(stream, pace).await {
                    tracing::debug!(%error, "the scripted model lost its client");
                }
            }
        });
        Ok(Self { base_url, server_task })
    }

    pub(crate) fn base_url(&self) -> &str {
        &self.base_url
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.server_task.abort();
    }
}

async fn answer_request(stream: TcpStream, pace: DemoPace) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    let request = read_request(&mut stream).await?;
    let messages = request["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let step = messages.iter().filter(|message| message["role"] == "assistant").count();
    let ScriptStep { text, calls } = script_step(step);
    stream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        .await?;
    let mut ticks = tokio::time::interval(WORD_INTERVAL);
    for word in text.split_inclusive(' ') {
        if let DemoPace::Reading = pace {
            ticks.tick().await;
        }
        send_chunk(&mut stream, json!({"content": word}), Value::Null).await?;
    }
    for (index, (name, arguments)) in calls.iter().enumerate() {
        let function = json!({"name": name, "arguments": arguments.to_string()});
        let call = json!({"index": index, "id": format!("demo_{step}_{index}"), "type": "function", "function": function});
        send_chunk(&mut stream, json!({"tool_calls": [call]}), Value::Null).await?;
    }
    let reason = if calls.is_empty() { "stop" } else { "tool_calls" };
    send_chunk(&mut stream, json!({}), reason.into()).await?;
    stream.write_all(b"data: [DONE]\n\n").await?;
    stream.shutdown().await
}

async fn send_chunk(stream: &mut BufReader<TcpStream>, delta: Value, finish: Value) -> io::Result<()> {
    let chunk = json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    stream.write_all(format!("data: {chunk}\n\n").as_bytes()).await
}

async fn read_request(stream: &mut BufReader<TcpStream>) -> io::Result<Value> {
    let mut length = 0;
    for _ in 0..HEAD_LINES_MAX {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    if length > REQUEST_BYTES_MAX {
        return Err(io::Error::other("the request is too large"));
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    serde_json::from_slice(&body).map_err(io::Error::other)
}
