//! The meaning of the data of a `chat/completions` stream, and how the stream ended.

use super::chunk::{ChatChunk, ChatReplyState};
use crate::api::{ApiDecoder, DataError, EventSink, FinishReason, StreamEnd, StreamError};

/// One response while it is read.
#[derive(Debug, Default)]
pub(super) struct ChatDecoder {
    state: ChatReplyState,
    end: StreamEnd,
}

impl ApiDecoder for ChatDecoder {
    fn on_data(&mut self, data: &[u8], on_event: &mut EventSink<'_>) -> Result<(), DataError> {
        Ok(self.on_chunk(ChatChunk::parse(data)?, data, on_event)?)
    }

    fn on_complete_body(
        &mut self,
        body: &[u8],
        on_event: &mut EventSink<'_>,
    ) -> Result<FinishReason, DataError> {
        let chunk = ChatChunk::parse(body)?;
        if chunk.error_json().is_none() && !is_bare_error(body) && !chunk.is_completion() {
            return Err(StreamError::unexpected_format(body).into());
        }
        self.on_chunk(chunk, body, on_event)?;
        Ok(self.end.finish_reason.unwrap_or(FinishReason::Complete))
    }

    fn on_end_mark(&mut self, _on_event: &mut EventSink<'_>) {
        self.end.is_done = true;
    }

    fn flush(&mut self, on_event: &mut EventSink<'_>) -> Result<(), StreamError> {
        self.state.flush(on_event);
        Ok(())
    }

    fn end(&self) -> StreamEnd {
        self.end
    }
}

impl ChatDecoder {
    fn on_chunk(
        &mut self,
        chunk: ChatChunk<'_>,
        data: &[u8],
        on_event: &mut EventSink<'_>,
    ) -> Result<(), StreamError> {
        if let Some(error) = chunk.error_json() {
            return Err(StreamError::Provider(error.to_owned()));
        }
        if !chunk.is_completion() && is_bare_error(data) {
            return Err(StreamError::from_provider(data));
        }
        if let Some(reason) = chunk.emit_events(&mut self.state, on_event) {
            let finish_reason = parse_finish_reason(&reason).ok_or_else(|| abnormal_finish_error(&reason))?;
            // A second reason without new information does not replace the first.
            self.end.finish_reason = self
                .end
                .finish_reason
                .filter(|_| finish_reason == FinishReason::Complete)
                .or(Some(finish_reason));
        }
        if self.end.finish_reason.is_some() {
            self.state.provider_state.emit_details(on_event);
        }
        Ok(())
    }
}

/// Parses the finish reason; `None` if the provider broke the reply off.
fn parse_finish_reason(reason: &str) -> Option<FinishReason> {
    let reason = reason.to_ascii_lowercase();
    match reason.as_str() {
        "length" | "max_tokens" | "model_length" | "model_context_window_exceeded" => {
            Some(FinishReason::OutputLimit)
        }
        "refusal" | "safety" | "sensitive" | "guardrail_intervened" => Some(FinishReason::Refused),
        "error" | "abort" | "network_error" | "insufficient_system_resource" => None,
        // Some add a reason after a colon.
        _ if reason.starts_with("content_filter") => Some(FinishReason::Refused),
        _ if reason.contains("malformed_function_call") => None,
        _ => Some(FinishReason::Complete),
    }
}

fn abnormal_finish_error(reason: &str) -> StreamError {
    let message = format!("the reply ended with `{reason}`");
    StreamError::Provider(serde_json::json!({ "message": message }).to_string())
}

/// Whether it is `{"object": "error", "message": …}` or similar, without an `error` around it.
fn is_bare_error(data: &[u8]) -> bool {
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(data) else { return false };
    let is_named = value["object"] == "error" || value["type"] == "error";
    is_named || value["detail"].is_string() || value["message"].is_string()
}
