//! The meaning of the data of a `chat/completions` stream, and how the stream ended.

use crow_core::ModelEvent;

use super::chunk::{ChatChunk, ChatReplyState};
use crate::decoder::{FinishReason, StreamError, error_excerpt};

/// One response while it is read.
#[derive(Debug, Default)]
pub(crate) struct ChatStream {
    state: ChatReplyState,
    finish_reason: Option<FinishReason>,
    is_done: bool,
}

impl ChatStream {
    /// The model's own end, if it was reached.
    pub(crate) fn finish_reason(&self) -> Option<FinishReason> {
        self.finish_reason
    }

    /// Whether the provider said that nothing follows.
    pub(crate) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Decodes the data of one event.
    pub(crate) fn on_data(
        &mut self,
        data: &[u8],
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<(), StreamError> {
        match ChatChunk::parse(data) {
            Ok(chunk) => self.on_chunk(chunk, data, on_event),
            Err(_) => self.on_malformed_data(data, on_event),
        }
    }

    fn on_chunk(
        &mut self,
        chunk: ChatChunk<'_>,
        data: &[u8],
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<(), StreamError> {
        if let Some(error) = chunk.error_json() {
            return Err(StreamError::Provider(error.to_owned()));
        }
        if !chunk.is_completion() && is_bare_error(data) {
            return Err(StreamError::Provider(error_excerpt(data)));
        }
        if let Some(reason) = chunk.emit_events(&mut self.state, on_event) {
            let finish_reason = parse_finish_reason(&reason).ok_or_else(|| abnormal_finish_error(&reason))?;
            // A second reason without new information does not replace the first.
            self.finish_reason = self
                .finish_reason
                .filter(|_| finish_reason == FinishReason::Complete)
                .or(Some(finish_reason));
        }
        if self.finish_reason.is_some() {
            self.state.provider_state.emit_details(on_event);
        }
        Ok(())
    }

    /// Handles data that is not a chunk: the end mark, or several lines without blank ones between.
    fn on_malformed_data(
        &mut self,
        data: &[u8],
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<(), StreamError> {
        let data = data.trim_ascii();
        if data.is_empty() || self.is_done {
            return Ok(());
        }
        if data == b"[DONE]" {
            self.is_done = true;
            return Ok(());
        }
        if let Some(end) = data.iter().position(|byte| *byte == b'\n') {
            self.on_data(&data[..end], on_event)?;
            return self.on_remaining_lines(&data[end..], on_event);
        }
        Err(StreamError::UnexpectedFormat(error_excerpt(data)))
    }

    fn on_remaining_lines(
        &mut self,
        data: &[u8],
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<(), StreamError> {
        data.split(|byte| *byte == b'\n').try_for_each(|line| match line.trim_ascii() {
            b"" => Ok(()),
            _ if self.is_done => Ok(()),
            line => self.on_data(line, on_event),
        })
    }

    /// Emits what was pending.
    pub(crate) fn flush(&mut self, on_event: &mut impl FnMut(ModelEvent<'_>)) {
        self.state.flush(on_event);
    }

    /// Decodes a response that was not streamed.
    pub(crate) fn on_complete_body(
        &mut self,
        body: &[u8],
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<FinishReason, StreamError> {
        let chunk = match ChatChunk::parse(body) {
            Ok(chunk) => chunk,
            Err(error) if error.is_eof() => return Err(StreamError::Incomplete),
            Err(_) => return Err(StreamError::UnexpectedFormat(error_excerpt(body))),
        };
        if chunk.error_json().is_none() && !is_bare_error(body) && !chunk.is_completion() {
            return Err(StreamError::UnexpectedFormat(error_excerpt(body)));
        }
        self.on_chunk(chunk, body, on_event)?;
        Ok(self.finish_reason.unwrap_or(FinishReason::Complete))
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
