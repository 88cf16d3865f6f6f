//! Sends an answer: encodes its steps in the format of a provider.

use std::io;

use serde_json::{Value, json};

use super::flow::AnswerFlow;
use super::http::Connection;
use super::{messages, responses};
use crate::{Answer, Step};

/// The model API of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    /// `chat/completions`.
    Chat,
    /// `messages`.
    Messages,
    /// `responses`.
    Responses,
}

/// The context of an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplyContext {
    /// The model API.
    pub(crate) api: Api,
    /// The index of the request, for unique ids.
    pub(crate) request_index: usize,
}

/// An encoder for an API other than `chat/completions`.
#[derive(Debug)]
enum EventEncoder {
    Messages(messages::EventEncoder),
    Responses(responses::EventEncoder),
}

impl EventEncoder {
    fn encode_step(&mut self, step: &Step) -> Option<String> {
        match self {
            Self::Messages(encoder) => encoder.encode_step(step),
            Self::Responses(encoder) => encoder.encode_step(step),
        }
    }

    fn finish_stream(&mut self) -> String {
        match self {
            Self::Messages(encoder) => encoder.encode_end(),
            Self::Responses(encoder) => encoder.encode_end(),
        }
    }
}

/// Returns the rejection of an invalid request in the providers' format.
pub(crate) fn rejection(violations: &[String]) -> Answer {
    let error = json!({"message": violations.join("; "), "type": "invalid_request_error"});
    status_answer(400, &json!({"error": error}).to_string())
}

/// Returns the list of models.
pub(crate) fn models_answer() -> Answer {
    status_answer(
        200,
        &json!({"object": "list", "data": [{"id": "scripted", "object": "model"}]}).to_string(),
    )
}

/// Returns a complete answer with a status.
pub(crate) fn status_answer(code: u16, body: &str) -> Answer {
    Answer::with_status(code, body)
}

/// Sends an answer; an error ends the connection.
pub(crate) async fn send_answer(
    answer: &Answer,
    context: ReplyContext,
    connection: &mut Connection,
    flow: &AnswerFlow,
) -> io::Result<()> {
    let mut writer = AnswerWriter::new(answer, connection, flow);
    writer.encoder = match context.api {
        Api::Chat => None,
        Api::Messages => {
            Some(EventEncoder::Messages(messages::EventEncoder::new(context.request_index, answer)))
        }
        Api::Responses => Some(EventEncoder::Responses(responses::EventEncoder::new(context.request_index))),
    };
    for step in &answer.steps {
        writer.send_step(step).await?;
    }
    writer.finish_stream().await
}

/// The state of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteState {
    /// Nothing was sent.
    NotStarted,
    /// The head of a stream was sent.
    Streaming,
    /// A complete answer was sent.
    Finished,
}

struct AnswerWriter<'a> {
    connection: &'a mut Connection,
    flow: &'a AnswerFlow,
    split: Option<usize>,
    headers: String,
    code: u16,
    state: WriteState,
    n_calls: usize,
    /// Whether the script sends the end.
    is_raw: bool,
    is_finished: bool,
    usage: Option<Value>,
    /// The encoder, if the API is not `chat/completions`.
    encoder: Option<EventEncoder>,
}

impl<'a> AnswerWriter<'a> {
    fn new(answer: &Answer, connection: &'a mut Connection, flow: &'a AnswerFlow) -> Self {
        Self {
            connection,
            flow,
            split: answer.split,
            headers: String::new(),
            code: 200,
            state: WriteState::NotStarted,
            n_calls: 0,
            is_raw: false,
            is_finished: false,
            usage: None,
            encoder: None,
        }
    }

    async fn send_step(&mut self, step: &Step) -> io::Result<()> {
        if let Some(events) = self.encoder.as_mut().and_then(|encoder| encoder.encode_step(step)) {
            return self.send_encoded(&events).await;
        }
        match step {
            Step::Text(text) => self.send_delta(&json!({"content": text})).await,
            Step::Thought(text) => self.send_delta(&json!({"reasoning_content": text})).await,
            Step::Call { name, arguments } => self.send_call(name, arguments).await,
            Step::Chunk(chunk) => self.send_event(&chunk.to_string()).await,
            Step::Usage { input, output } => {
                let total = input + output;
                self.usage =
                    Some(json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": total}));
                Ok(())
            }
            Step::Cache { read, .. } => {
                if let Some(usage) = &mut self.usage {
                    usage["prompt_tokens_details"] = json!({"cached_tokens": read});
                }
                Ok(())
            }
            Step::Finish(reason) => self.send_finish(reason).await,
            Step::Raw(bytes) => {
                self.is_raw = true;
                self.send_body(bytes).await
            }
            Step::Hold => self.wait_for_release().await,
            Step::Disconnect => Err(io::ErrorKind::ConnectionAborted.into()),
            Step::Code(code) => {
                self.code = *code;
                Ok(())
            }
            Step::Header(name, value) => {
                self.headers.push_str(&format!("{name}: {value}\r\n"));
                Ok(())
            }
            Step::Status { code, body } => self.send_whole(*code, body).await,
        }
    }

    async fn finish_stream(&mut self) -> io::Result<()> {
        if self.state == WriteState::Finished {
            return Ok(());
        }
        if let Some(encoder) = &mut self.encoder {
            let events = if self.is_raw { String::new() } else { encoder.finish_stream() };
            self.send_encoded(&events).await?;
        } else if !self.is_raw {
            if !self.is_finished {
                self.send_finish(if self.n_calls > 0 { "tool_calls" } else { "stop" }).await?;
            }
            if let Some(usage) = self.usage.take() {
                let chunk =
                    json!({"id": "1", "object": "chat.completion.chunk", "choices": [], "usage": usage});
                self.send_event(&chunk.to_string()).await?;
            }
            self.send_event("[DONE]").await?;
        }
        self.start_stream().await?;
        self.connection.write(b"0\r\n\r\n").await
    }

    /// Sends a call as providers do: the name first, the arguments in two pieces.
    async fn send_call(&mut self, name: &str, arguments: &str) -> io::Result<()> {
        let index = self.n_calls;
        self.n_calls += 1;
        let function = json!({"name": name, "arguments": ""});
        let head =
            json!({"index": index, "id": format!("call_{index}"), "type": "function", "function": function});
        self.send_delta(&json!({"tool_calls": [head]})).await?;
        let middle = arguments.floor_char_boundary(arguments.len() / 2);
        for piece in [&arguments[..middle], &arguments[middle..]] {
            let piece = json!({"index": index, "function": {"arguments": piece}});
            self.send_delta(&json!({"tool_calls": [piece]})).await?;
        }
        Ok(())
    }

    async fn send_delta(&mut self, delta: &Value) -> io::Result<()> {
        self.send_choice(delta, None).await
    }

    async fn send_finish(&mut self, reason: &str) -> io::Result<()> {
        self.is_finished = true;
        self.send_choice(&json!({}), Some(reason)).await
    }

    async fn send_choice(&mut self, delta: &Value, reason: Option<&str>) -> io::Result<()> {
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason});
        let chunk = json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000,
            "model": "scripted", "choices": [choice],
        });
        self.send_event(&chunk.to_string()).await
    }

    /// Sends encoded events, possibly none.
    async fn send_encoded(&mut self, events: &str) -> io::Result<()> {
        if events.is_empty() { Ok(()) } else { self.send_body(events.as_bytes()).await }
    }

    async fn send_event(&mut self, data: &str) -> io::Result<()> {
        self.send_body(format!("data: {data}\n\n").as_bytes()).await
    }

    async fn send_body(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.start_stream().await?;
        for piece in bytes.chunks(self.split.unwrap_or(usize::MAX).max(1)) {
            let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
            chunk.extend_from_slice(piece);
            chunk.extend_from_slice(b"\r\n");
            self.connection.write(&chunk).await?;
            self.flow.add_sent(piece.len());
        }
        Ok(())
    }

    async fn start_stream(&mut self) -> io::Result<()> {
        if self.state != WriteState::NotStarted {
            return Ok(());
        }
        self.state = WriteState::Streaming;
        let content_type = if self.headers.to_ascii_lowercase().contains("content-type:") {
            ""
        } else {
            "content-type: text/event-stream\r\n"
        };
        let Self { code, headers, .. } = self;
        let head =
            format!("HTTP/1.1 {code} Scripted\r\n{content_type}{headers}transfer-encoding: chunked\r\n\r\n");
        self.connection.write(head.as_bytes()).await
    }

    async fn send_whole(&mut self, code: u16, body: &str) -> io::Result<()> {
        self.state = WriteState::Finished;
        let head = format!(
            "HTTP/1.1 {code} Scripted\r\ncontent-type: application/json\r\n{}content-length: {}\r\n\r\n{body}",
            self.headers,
            body.len()
        );
        self.connection.write(head.as_bytes()).await
    }

    async fn wait_for_release(&mut self) -> io::Result<()> {
        tokio::select! {
            permit = self.flow.releases.acquire() => {
                permit.map_err(io::Error::other)?.forget();
                Ok(())
            }
            () = self.connection.wait_for_disconnect() => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}
