//! What the data of a stream of `chat/completions` means, and how the stream ended.

use crow_core::ModelEvent;

use super::chunk::{ChatChunk, ChatReplyState};
use crate::decoder::{FinishReason, StreamError, error_excerpt};

/// One answer while it is read.
#[derive(Debug, Default)]
pub(crate) struct ChatStream {
    progress: ChatReplyState,
    finish: Option<FinishReason>,
    is_done: bool,
}

impl ChatStream {
    /// How the model came to its end, if it did.
    pub(crate) fn finish_reason(&self) -> Option<FinishReason> {
        self.finish
    }

    /// Tells whether the provider said that nothing follows.
    pub(crate) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Takes the data of one event.
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
        if let Some(reason) = chunk.emit_events(&mut self.progress, on_event) {
            let finish = parse_finish_reason(&reason).ok_or_else(|| abnormal_finish_error(&reason))?;
            // A second reason that says nothing new does not undo the first.
            self.finish = self.finish.filter(|_| finish == FinishReason::Normally).or(Some(finish));
        }
        if self.finish.is_some() {
            self.progress.kept.emit_details(on_event);
        }
        Ok(())
    }

    /// Data that is no chunk: the end mark, or several lines without blank ones between.
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
        Err(StreamError::NotProtocol(error_excerpt(data)))
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

    /// Says what was still waiting.
    pub(crate) fn flush(&mut self, on_event: &mut impl FnMut(ModelEvent<'_>)) {
        self.progress.flush(on_event);
    }

    /// Takes an answer that came whole.
    pub(crate) fn on_complete_body(
        &mut self,
        whole: &[u8],
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<FinishReason, StreamError> {
        let chunk = match ChatChunk::parse(whole) {
            Ok(chunk) => chunk,
            Err(error) if error.is_eof() => return Err(StreamError::Cut),
            Err(_) => return Err(StreamError::NotProtocol(error_excerpt(whole))),
        };
        if chunk.error_json().is_none() && !is_bare_error(whole) && !chunk.is_completion() {
            return Err(StreamError::NotProtocol(error_excerpt(whole)));
        }
        self.on_chunk(chunk, whole, on_event)?;
        Ok(self.finish.unwrap_or(FinishReason::Normally))
    }
}

/// Reads how a reply ended; `None` where it was the provider that broke it off.
fn parse_finish_reason(reason: &str) -> Option<FinishReason> {
    let reason = reason.to_ascii_lowercase();
    match reason.as_str() {
        "length" | "max_tokens" | "model_length" | "model_context_window_exceeded" => {
            Some(FinishReason::OutputLimit)
        }
        "refusal" | "safety" | "sensitive" | "guardrail_intervened" => Some(FinishReason::Refused),
        "error" | "abort" | "network_error" | "insufficient_system_resource" => None,
        // Some add why after a colon.
        _ if reason.starts_with("content_filter") => Some(FinishReason::Refused),
        _ if reason.contains("malformed_function_call") => None,
        _ => Some(FinishReason::Normally),
    }
}

fn abnormal_finish_error(reason: &str) -> StreamError {
    let message = format!("the reply ended with `{reason}`");
    StreamError::Provider(serde_json::json!({ "message": message }).to_string())
}

/// `{"object": "error", "message": …}` and its like, without an `error` around it.
fn is_bare_error(data: &[u8]) -> bool {
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(data) else { return false };
    let is_named = value["object"] == "error" || value["type"] == "error";
    is_named || value["detail"].is_string() || value["message"].is_string()
}
