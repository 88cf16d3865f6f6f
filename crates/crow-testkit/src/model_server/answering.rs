//! Plays an answer: spells its steps as a provider does and sends them.

use std::io;

use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::http::Connection;
use super::{messages, responses};
use crate::{Answer, Step};

/// The dialect a request came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    /// `chat/completions`.
    Chat,
    /// `messages`.
    Messages,
    /// `responses`.
    Responses,
}

/// How an answer is spelled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Speech {
    /// In which dialect.
    pub(crate) api: Api,
    /// The number of the request, for names that no other answer has.
    pub(crate) n: usize,
}

/// Who spells the steps in a dialect that is not `chat/completions`.
#[derive(Debug)]
enum Speaker {
    Messages(messages::Speaker),
    Responses(responses::Speaker),
}

impl Speaker {
    fn spell(&mut self, step: &Step) -> Option<String> {
        match self {
            Self::Messages(speaker) => speaker.spell(step),
            Self::Responses(speaker) => speaker.spell(step),
        }
    }

    fn end(&mut self) -> String {
        match self {
            Self::Messages(speaker) => speaker.end(),
            Self::Responses(speaker) => speaker.end(),
        }
    }
}

/// The refusal of a bad request, as providers spell it.
pub(crate) fn refusal(found: &[String]) -> Answer {
    let error = json!({"message": found.join("; "), "type": "invalid_request_error"});
    status(400, &json!({"error": error}).to_string())
}

/// The list of models.
pub(crate) fn models() -> Answer {
    status(200, &json!({"object": "list", "data": [{"id": "scripted", "object": "model"}]}).to_string())
}

/// A whole answer with a status.
pub(crate) fn status(code: u16, body: &str) -> Answer {
    Answer::whole(code, body)
}

/// Sends an answer; an error ends the connection.
pub(crate) async fn give(
    answer: &Answer,
    speech: Speech,
    connection: &mut Connection,
    releases: &Semaphore,
) -> io::Result<()> {
    let mut player = Player::new(answer, connection, releases);
    player.speaker = match speech.api {
        Api::Chat => None,
        Api::Messages => Some(Speaker::Messages(messages::Speaker::new(speech.n, answer))),
        Api::Responses => Some(Speaker::Responses(responses::Speaker::new(speech.n))),
    };
    for step in &answer.steps {
        player.play(step).await?;
    }
    player.end().await
}

/// Where an answer stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing is sent.
    Silent,
    /// The head of a stream is sent.
    Streaming,
    /// A whole answer is sent.
    Over,
}

struct Player<'a> {
    connection: &'a mut Connection,
    releases: &'a Semaphore,
    split: Option<usize>,
    headers: String,
    code: u16,
    stage: Stage,
    n_calls: usize,
    /// The end is up to the script.
    is_raw: bool,
    is_finished: bool,
    usage: Option<Value>,
    /// Who spells the steps, where the dialect is not `chat/completions`.
    speaker: Option<Speaker>,
}

impl<'a> Player<'a> {
    fn new(answer: &Answer, connection: &'a mut Connection, releases: &'a Semaphore) -> Self {
        Self {
            connection,
            releases,
            split: answer.split,
            headers: String::new(),
            code: 200,
            stage: Stage::Silent,
            n_calls: 0,
            is_raw: false,
            is_finished: false,
            usage: None,
            speaker: None,
        }
    }

    async fn play(&mut self, step: &Step) -> io::Result<()> {
        if let Some(spelled) = self.speaker.as_mut().and_then(|speaker| speaker.spell(step)) {
            return self.spelled(&spelled).await;
        }
        match step {
            Step::Text(text) => self.delta(&json!({"content": text})).await,
            Step::Thought(text) => self.delta(&json!({"reasoning_content": text})).await,
            Step::Call { name, arguments } => self.call(name, arguments).await,
            Step::Chunk(chunk) => self.event(&chunk.to_string()).await,
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
            Step::Finish(reason) => self.finish(reason).await,
            Step::Raw(bytes) => {
                self.is_raw = true;
                self.body(bytes).await
            }
            Step::Hold => self.hold().await,
            Step::Cut => Err(io::ErrorKind::ConnectionAborted.into()),
            Step::Code(code) => {
                self.code = *code;
                Ok(())
            }
            Step::Header(name, value) => {
                self.headers.push_str(&format!("{name}: {value}\r\n"));
                Ok(())
            }
            Step::Status { code, body } => self.whole(*code, body).await,
        }
    }

    async fn end(&mut self) -> io::Result<()> {
        if self.stage == Stage::Over {
            return Ok(());
        }
        if let Some(speaker) = &mut self.speaker {
            let spelled = if self.is_raw { String::new() } else { speaker.end() };
            self.spelled(&spelled).await?;
        } else if !self.is_raw {
            if !self.is_finished {
                self.finish(if self.n_calls > 0 { "tool_calls" } else { "stop" }).await?;
            }
            if let Some(usage) = self.usage.take() {
                let chunk =
                    json!({"id": "1", "object": "chat.completion.chunk", "choices": [], "usage": usage});
                self.event(&chunk.to_string()).await?;
            }
            self.event("[DONE]").await?;
        }
        self.begin().await?;
        self.connection.write(b"0\r\n\r\n").await
    }

    /// Sends a call as providers do: the name first, the arguments in two pieces.
    async fn call(&mut self, name: &str, arguments: &str) -> io::Result<()> {
        let index = self.n_calls;
        self.n_calls += 1;
        let function = json!({"name": name, "arguments": ""});
        let head =
            json!({"index": index, "id": format!("call_{index}"), "type": "function", "function": function});
        self.delta(&json!({"tool_calls": [head]})).await?;
        let middle = arguments.floor_char_boundary(arguments.len() / 2);
        for piece in [&arguments[..middle], &arguments[middle..]] {
            let piece = json!({"index": index, "function": {"arguments": piece}});
            self.delta(&json!({"tool_calls": [piece]})).await?;
        }
        Ok(())
    }

    async fn delta(&mut self, delta: &Value) -> io::Result<()> {
        self.choice(delta, None).await
    }

    async fn finish(&mut self, reason: &str) -> io::Result<()> {
        self.is_finished = true;
        self.choice(&json!({}), Some(reason)).await
    }

    async fn choice(&mut self, delta: &Value, reason: Option<&str>) -> io::Result<()> {
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason});
        let chunk = json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000,
            "model": "scripted", "choices": [choice],
        });
        self.event(&chunk.to_string()).await
    }

    /// Sends events that are spelled already, perhaps none.
    async fn spelled(&mut self, events: &str) -> io::Result<()> {
        if events.is_empty() { Ok(()) } else { self.body(events.as_bytes()).await }
    }

    async fn event(&mut self, data: &str) -> io::Result<()> {
        self.body(format!("data: {data}\n\n").as_bytes()).await
    }

    async fn body(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.begin().await?;
        for piece in bytes.chunks(self.split.unwrap_or(usize::MAX).max(1)) {
            let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
            chunk.extend_from_slice(piece);
            chunk.extend_from_slice(b"\r\n");
            self.connection.write(&chunk).await?;
        }
        Ok(())
    }

    async fn begin(&mut self) -> io::Result<()> {
        if self.stage != Stage::Silent {
            return Ok(());
        }
        self.stage = Stage::Streaming;
        let kind = if self.headers.to_ascii_lowercase().contains("content-type:") {
            ""
        } else {
            "content-type: text/event-stream\r\n"
        };
        let Self { code, headers, .. } = self;
        let head = format!("HTTP/1.1 {code} Scripted\r\n{kind}{headers}transfer-encoding: chunked\r\n\r\n");
        self.connection.write(head.as_bytes()).await
    }

    async fn whole(&mut self, code: u16, body: &str) -> io::Result<()> {
        self.stage = Stage::Over;
        let head = format!(
            "HTTP/1.1 {code} Scripted\r\ncontent-type: application/json\r\n{}content-length: {}\r\n\r\n{body}",
            self.headers,
            body.len()
        );
        self.connection.write(head.as_bytes()).await
    }

    async fn hold(&mut self) -> io::Result<()> {
        tokio::select! {
            permit = self.releases.acquire() => {
                permit.map_err(io::Error::other)?.forget();
                Ok(())
            }
            () = self.connection.hung_up() => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}
