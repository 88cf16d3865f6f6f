//! What the events of a stream of `messages` mean, and how the stream ended.

#[cfg(test)]
mod tests;

use crow_core::ModelEvent;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::event::{
    AnthropicDelta, AnthropicEvent, ContentBlockStart, MessageStart, TokenCounter, text_or_empty,
};
use crate::decoder::{FinishReason, StreamError, error_excerpt};
use crate::halves::{SurrogateJoiner, escape_marks, resolve_marks};

/// Blocks that are open at once, and calls of one reply; a model with more has lost its way.
const BLOCKS_MAX: usize = 1024;

/// Room for what goes back to the provider with the reply; many times what any model thinks at once.
const SEALED_LEN_MAX: usize = 8 * 1024 * 1024;

/// What a piece costs beside its text.
const PIECE_LEN: usize = 64;

/// One answer while it is read.
#[derive(Debug, Default)]
pub(crate) struct AnthropicStream {
    open: Vec<(u64, OpenBlock)>,
    n_calls: usize,
    sealed: BlockOrder,
    tokens: TokenCounter,
    finish: Option<FinishReason>,
    is_done: bool,
}

#[derive(Debug)]
enum OpenBlock {
    Text {
        n_bytes: usize,
        halves: SurrogateJoiner,
    },
    Thinking {
        thinking: String,
        signature: String,
        halves: SurrogateJoiner,
    },
    Redacted {
        data: String,
    },
    Call {
        slot: usize,
        input: Option<String>,
    },
    /// One of those that nobody asked for.
    Other,
}

/// The order of the reply's blocks, kept only when there is reasoning to go back between them.
#[derive(Debug, Default)]
struct BlockOrder {
    /// What came before the first reasoning.
    before: Vec<Value>,
    has_begun: bool,
    len: usize,
}

impl AnthropicStream {
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
        match AnthropicEvent::parse(data) {
            Ok(event) => self.handle_event(event, data, on_event),
            Err(_) => self.on_malformed_data(data, on_event),
        }
    }

    /// Data that is no event: an end mark, or several lines without blank ones between.
    fn on_malformed_data(
        &mut self,
        data: &[u8],
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<(), StreamError> {
        for line in data.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
            if line.is_empty() || self.is_done {
                continue;
            }
            if line == b"[DONE]" {
                self.is_done = true;
                continue;
            }
            match AnthropicEvent::parse(line) {
                Ok(event) => self.handle_event(event, line, on_event)?,
                Err(_) => return Err(StreamError::NotProtocol(error_excerpt(line))),
            }
        }
        Ok(())
    }

    fn handle_event(
        &mut self,
        event: AnthropicEvent<'_>,
        data: &[u8],
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<(), StreamError> {
        check_error(&event, data)?;
        match &*event.kind.0 {
            "message_start" => {
                let head =
                    event.message.and_then(|head| serde_json::from_str::<MessageStart<'_>>(head.get()).ok());
                self.emit_usage(head.and_then(|head| head.usage), on_event);
            }
            "content_block_start" => {
                let (index, begun) = (event.index.unwrap_or(0), parse_block_start(event.content_block));
                self.begin_block(index, begun, on_event)?;
            }
            "content_block_delta" => {
                let (index, delta) = (event.index.unwrap_or(0), event.delta.unwrap_or_default());
                self.continue_block(index, &delta, on_event)?;
            }
            "content_block_stop" => {
                let index = event.index.unwrap_or(0);
                if let Some(place) = self.open.iter().position(|(other, _)| *other == index) {
                    let (_, block) = self.open.remove(place);
                    self.close_block(block, on_event)?;
                }
            }
            "message_delta" => {
                self.emit_usage(event.usage, on_event);
                let delta = event.delta.unwrap_or_default();
                self.on_stop_reason(text_or_empty(delta.stop_reason.as_ref()), on_event)?;
            }
            "message_stop" => {
                self.close_all(on_event)?;
                self.is_done = true;
            }
            // `ping`, and whatever else comes one day.
            _ => {}
        }
        Ok(())
    }

    /// Says what was still waiting.
    pub(crate) fn flush(&mut self, on_event: &mut impl FnMut(ModelEvent<'_>)) -> Result<(), StreamError> {
        self.close_all(on_event)
    }

    /// Takes an answer that came whole.
    pub(crate) fn on_complete_body(
        &mut self,
        whole: &[u8],
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<FinishReason, StreamError> {
        let event = match AnthropicEvent::parse(whole) {
            Ok(event) => event,
            Err(error) if error.is_eof() => return Err(StreamError::Cut),
            Err(_) => return Err(StreamError::NotProtocol(error_excerpt(whole))),
        };
        check_error(&event, whole)?;
        let Some(content) = event.content else { return Err(StreamError::NotProtocol(error_excerpt(whole))) };
        for block in content {
            self.begin_block(0, parse_block_start(Some(block)), on_event)?;
            self.close_all(on_event)?;
        }
        self.emit_usage(event.usage, on_event);
        self.on_stop_reason(text_or_empty(event.stop_reason.as_ref()), on_event)?;
        Ok(self.finish.unwrap_or(FinishReason::Normally))
    }

    fn begin_block(
        &mut self,
        index: u64,
        begun: ContentBlockStart<'_>,
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<(), StreamError> {
        // Some servers never say that a block is over.
        if let Some(place) = self.open.iter().position(|(other, _)| *other == index) {
            let (_, block) = self.open.remove(place);
            self.close_block(block, on_event)?;
        }
        let block = match &*begun.kind.0 {
            "text" => OpenBlock::Text { n_bytes: 0, halves: SurrogateJoiner::default() },
            "thinking" => OpenBlock::Thinking {
                thinking: String::new(),
                signature: String::new(),
                halves: SurrogateJoiner::default(),
            },
            "redacted_thinking" => {
                let data = resolve_marks(text_or_empty(begun.data.as_ref())).into_owned();
                self.sealed.reserve_bytes(data.len())?;
                OpenBlock::Redacted { data }
            }
            "tool_use" if self.n_calls < BLOCKS_MAX => {
                let slot = self.n_calls;
                self.n_calls += 1;
                let (id, name) = (
                    resolve_marks(text_or_empty(begun.id.as_ref())),
                    resolve_marks(text_or_empty(begun.name.as_ref())),
                );
                let id = Some(&*id).filter(|id| !id.is_empty());
                on_event(ModelEvent::Call { slot, id, name: Some(&name), arguments: "" });
                // The input comes in pieces; some servers send it at once, and no pieces.
                OpenBlock::Call {
                    slot,
                    input: begun.input.map(|input| escape_marks(input.get()).into_owned()),
                }
            }
            _ => OpenBlock::Other,
        };
        if self.open.len() < BLOCKS_MAX {
            self.open.push((index, block));
        }
        let ContentBlockStart { text, thinking, signature, .. } = begun;
        let delta = AnthropicDelta { text, thinking, signature, ..AnthropicDelta::default() };
        self.continue_block(index, &delta, on_event)
    }

    fn continue_block(
        &mut self,
        index: u64,
        delta: &AnthropicDelta<'_>,
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<(), StreamError> {
        let Some((_, block)) = self.open.iter_mut().find(|(other, _)| *other == index) else { return Ok(()) };
        match block {
            OpenBlock::Text { n_bytes, halves } => {
                let text = halves.join_next(text_or_empty(delta.text.as_ref()));
                *n_bytes += text.len();
                if !text.is_empty() {
                    on_event(ModelEvent::Text(&text));
                }
            }
            OpenBlock::Thinking { thinking, signature, halves } => {
                let more = halves.join_next(text_or_empty(delta.thinking.as_ref()));
                let seal = resolve_marks(text_or_empty(delta.signature.as_ref()));
                self.sealed.reserve_bytes(more.len() + seal.len())?;
                thinking.push_str(&more);
                signature.push_str(&seal);
                if !more.is_empty() {
                    on_event(ModelEvent::Thought(&more));
                }
            }
            OpenBlock::Call { slot, input } => {
                let arguments = escape_marks(text_or_empty(delta.partial_json.as_ref()));
                if !arguments.is_empty() {
                    *input = None;
                    on_event(ModelEvent::Call { slot: *slot, id: None, name: None, arguments: &arguments });
                }
            }
            OpenBlock::Redacted { .. } | OpenBlock::Other => {}
        }
        Ok(())
    }

    fn close_block(
        &mut self,
        mut block: OpenBlock,
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<(), StreamError> {
        block.flush_text(on_event);
        match block {
            OpenBlock::Text { n_bytes: 0, .. } | OpenBlock::Other => Ok(()),
            OpenBlock::Text { n_bytes, .. } => {
                self.sealed.push_marker(json!({"type": "text", "n_bytes": n_bytes}), on_event)
            }
            // Nobody vouches for it, so the provider would not take it back.
            OpenBlock::Thinking { signature, .. } if signature.is_empty() => Ok(()),
            OpenBlock::Thinking { thinking, signature, .. } => {
                let piece = json!({"type": "thinking", "thinking": thinking, "signature": signature});
                self.sealed.push_provider_state(&piece, on_event)
            }
            OpenBlock::Redacted { data } => {
                self.sealed.push_provider_state(&json!({"type": "redacted_thinking", "data": data}), on_event)
            }
            OpenBlock::Call { slot, input } => {
                if let Some(input) = input {
                    on_event(ModelEvent::Call { slot, id: None, name: None, arguments: &input });
                }
                self.sealed.push_marker(json!({"type": "tool_use"}), on_event)
            }
        }
    }

    fn close_all(&mut self, on_event: &mut impl FnMut(ModelEvent<'_>)) -> Result<(), StreamError> {
        std::mem::take(&mut self.open)
            .into_iter()
            .try_for_each(|(_, block)| self.close_block(block, on_event))
    }

    fn emit_usage(&mut self, usage: Option<&RawValue>, on_event: &mut impl FnMut(ModelEvent<'_>)) {
        if let Some(usage) = self.tokens.add_usage(usage) {
            on_event(ModelEvent::Usage(usage));
        }
    }

    fn on_stop_reason(
        &mut self,
        reason: &str,
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<(), StreamError> {
        if !reason.is_empty() {
            self.finish = Some(parse_stop_reason(reason));
            self.close_all(on_event)?;
        }
        Ok(())
    }
}

impl OpenBlock {
    /// Says the half of a character that its text ends with.
    fn flush_text(&mut self, on_event: &mut impl FnMut(ModelEvent<'_>)) {
        match self {
            Self::Text { n_bytes, halves } => {
                let rest = halves.flush();
                *n_bytes += rest.len();
                if !rest.is_empty() {
                    on_event(ModelEvent::Text(&rest));
                }
            }
            Self::Thinking { thinking, halves, .. } => {
                let rest = halves.flush();
                thinking.push_str(&rest);
                if !rest.is_empty() {
                    on_event(ModelEvent::Thought(&rest));
                }
            }
            Self::Redacted { .. } | Self::Call { .. } | Self::Other => {}
        }
    }
}

impl BlockOrder {
    /// Notes where something stands that the reply has anyway.
    fn push_marker(
        &mut self,
        piece: Value,
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<(), StreamError> {
        self.reserve_bytes(PIECE_LEN)?;
        if self.has_begun {
            on_event(ModelEvent::Sealed(&piece));
        } else {
            self.before.push(piece);
        }
        Ok(())
    }

    /// Hands on what goes back as it is.
    fn push_provider_state(
        &mut self,
        piece: &Value,
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<(), StreamError> {
        self.reserve_bytes(PIECE_LEN)?;
        self.has_begun = true;
        for before in self.before.drain(..) {
            on_event(ModelEvent::Sealed(&before));
        }
        on_event(ModelEvent::Sealed(piece));
        Ok(())
    }

    fn reserve_bytes(&mut self, n_bytes: usize) -> Result<(), StreamError> {
        self.len += n_bytes;
        if self.len > SEALED_LEN_MAX { Err(StreamError::TooLong) } else { Ok(()) }
    }
}

fn check_error(event: &AnthropicEvent<'_>, data: &[u8]) -> Result<(), StreamError> {
    match event.error.map(RawValue::get) {
        Some(error) if error != "{}" => Err(StreamError::Provider(error.to_owned())),
        _ if event.kind.0 == "error" => Err(StreamError::Provider(error_excerpt(data))),
        _ => Ok(()),
    }
}

fn parse_block_start(block: Option<&RawValue>) -> ContentBlockStart<'_> {
    block.and_then(|block| serde_json::from_str(block.get()).ok()).unwrap_or_default()
}

/// A turn that the provider paused is over for us: we offer none of the tools that it runs itself.
fn parse_stop_reason(reason: &str) -> FinishReason {
    match reason {
        // Whatever ran out, the reply is not whole. A full window is told by the next request.
        "max_tokens" | "model_context_window_exceeded" => FinishReason::OutputLimit,
        "refusal" => FinishReason::Refused,
        _ => FinishReason::Normally,
    }
}
