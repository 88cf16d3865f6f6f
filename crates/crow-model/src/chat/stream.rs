//! What the data of a stream of `chat/completions` means, and how the stream ended.

use crow_core::ModelEvent;

use super::chunk::{Chunk, Progress};
use crate::decoder::{Finish, StreamError, quote};

/// One answer while it is read.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    progress: Progress,
    finish: Option<Finish>,
    is_done: bool,
}

impl Stream {
    /// How the model came to its end, if it did.
    pub(crate) fn finish(&self) -> Option<Finish> {
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
        match Chunk::read(data) {
            Ok(chunk) => self.on_chunk(chunk, data, on_event),
            Err(_) => self.on_odd_data(data, on_event),
        }
    }

    fn on_chunk(
        &mut self,
        chunk: Chunk<'_>,
        data: &[u8],
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<(), StreamError> {
        if let Some(error) = chunk.error() {
            return Err(StreamError::Provider(error.to_owned()));
        }
        if !chunk.is_completion() && is_bare_error(data) {
            return Err(StreamError::Provider(quote(data)));
        }
        if let Some(reason) = chunk.events(&mut self.progress, on_event) {
            let finish = read_finish(&reason).ok_or_else(|| broken_off(&reason))?;
            // A second reason that says nothing new does not undo the first.
            self.finish = self.finish.filter(|_| finish == Finish::Normally).or(Some(finish));
        }
        if self.finish.is_some() {
            self.progress.kept.end(on_event);
        }
        Ok(())
    }

    /// Data that is no chunk: the end mark, or several lines without blank ones between.
    fn on_odd_data(
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
            return self.on_odd_rest(&data[end..], on_event);
        }
        Err(StreamError::NotProtocol(quote(data)))
    }

    fn on_odd_rest(
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
        self.progress.end(on_event);
    }

    /// Takes an answer that came whole.
    pub(crate) fn on_whole(
        &mut self,
        whole: &[u8],
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<Finish, StreamError> {
        let chunk = match Chunk::read(whole) {
            Ok(chunk) => chunk,
            Err(error) if error.is_eof() => return Err(StreamError::Cut),
            Err(_) => return Err(StreamError::NotProtocol(quote(whole))),
        };
        if chunk.error().is_none() && !is_bare_error(whole) && !chunk.is_completion() {
            return Err(StreamError::NotProtocol(quote(whole)));
        }
        self.on_chunk(chunk, whole, on_event)?;
        Ok(self.finish.unwrap_or(Finish::Normally))
    }
}

/// Reads how a reply ended; `None` where it was the provider that broke it off.
fn read_finish(reason: &str) -> Option<Finish> {
    let reason = reason.to_ascii_lowercase();
    match reason.as_str() {
        "length" | "max_tokens" | "model_length" | "model_context_window_exceeded" => {
            Some(Finish::OutputLimit)
        }
        "refusal" | "safety" | "sensitive" | "guardrail_intervened" => Some(Finish::Refused),
        "error" | "abort" | "network_error" | "insufficient_system_resource" => None,
        // Some add why after a colon.
        _ if reason.starts_with("content_filter") => Some(Finish::Refused),
        _ if reason.contains("malformed_function_call") => None,
        _ => Some(Finish::Normally),
    }
}

fn broken_off(reason: &str) -> StreamError {
    let message = format!("the reply ended with `{reason}`");
    StreamError::Provider(serde_json::json!({ "message": message }).to_string())
}

/// `{"object": "error", "message": …}` and its like, without an `error` around it.
fn is_bare_error(data: &[u8]) -> bool {
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(data) else { return false };
    let is_named = value["object"] == "error" || value["type"] == "error";
    is_named || value["detail"].is_string() || value["message"].is_string()
}
