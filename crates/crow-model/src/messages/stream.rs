//! The meaning of the events of a `messages` stream, and how the stream ended.

#[cfg(test)]
mod tests;

use crow_core::ModelEvent;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::event::{
    AnthropicDelta, AnthropicEvent, ContentBlockStart, MessageStart, TokenCounter, text_or_empty,
};
use crate::api::{ApiDecoder, DataError, EventSink, FinishReason, StreamEnd, StreamError};
use crate::surrogates::{SurrogateJoiner, escape_marks, resolve_marks};

/// Simultaneously open blocks, and calls of one reply; a model with more is malfunctioning.
const BLOCKS_MAX: usize = 1024;

/// The size limit of provider state; many times what any model thinks at once.
const PROVIDER_STATE_LEN_MAX: usize = 8 * 1024 * 1024;

/// The overhead of a piece besides its text.
const ITEM_OVERHEAD: usize = 64;

/// One response while it is read.
#[derive(Debug, Default)]
pub(super) struct AnthropicDecoder {
    open_blocks: Vec<(u64, OpenBlock)>,
    n_calls: usize,
    block_order: BlockOrder,
    token_counter: TokenCounter,
    end: StreamEnd,
}

#[derive(Debug)]
enum OpenBlock {
    Text {
        n_bytes: usize,
        surrogates: SurrogateJoiner,
    },
    Thinking {
        thinking: String,
        signature: String,
        surrogates: SurrogateJoiner,
    },
    Redacted {
        data: String,
    },
    Call {
        call_index: usize,
        input: Option<String>,
    },
    /// A block of an unrequested kind.
    Other,
}

/// The order of the reply's blocks, recorded only if there is thinking to send back between them.
#[derive(Debug, Default)]
struct BlockOrder {
    /// The blocks before the first thinking.
    pending: Vec<Value>,
    has_reasoning: bool,
    n_bytes: usize,
}

impl ApiDecoder for AnthropicDecoder {
    fn on_data(&mut self, data: &[u8], on_event: &mut EventSink<'_>) -> Result<(), DataError> {
        Ok(self.handle_event(AnthropicEvent::parse(data)?, data, on_event)?)
    }

    fn on_complete_body(
        &mut self,
        body: &[u8],
        on_event: &mut EventSink<'_>,
    ) -> Result<FinishReason, DataError> {
        let event = AnthropicEvent::parse(body)?;
        check_error(&event, body)?;
        let Some(content) = event.content else {
            return Err(StreamError::unexpected_format(body).into());
        };
        for block in content {
            self.begin_block(0, parse_block_start(Some(block)), on_event)?;
            self.close_all(on_event)?;
        }
        self.emit_usage(event.usage, on_event);
        self.on_stop_reason(text_or_empty(event.stop_reason.as_ref()), on_event)?;
        Ok(self.end.finish_reason.unwrap_or(FinishReason::Complete))
    }

    fn on_end_mark(&mut self, _on_event: &mut EventSink<'_>) {
        self.end.is_done = true;
    }

    fn flush(&mut self, on_event: &mut EventSink<'_>) -> Result<(), StreamError> {
        self.close_all(on_event)
    }

    fn end(&self) -> StreamEnd {
        self.end
    }
}

impl AnthropicDecoder {
    fn handle_event(
        &mut self,
        event: AnthropicEvent<'_>,
        data: &[u8],
        on_event: &mut EventSink<'_>,
    ) -> Result<(), StreamError> {
        check_error(&event, data)?;
        match &*event.kind.0 {
            "message_start" => {
                let message_start = event.message.and_then(|message_start| {
                    serde_json::from_str::<MessageStart<'_>>(message_start.get()).ok()
                });
                self.emit_usage(message_start.and_then(|message_start| message_start.usage), on_event);
            }
            "content_block_start" => {
                let (index, block_start) = (event.index.unwrap_or(0), parse_block_start(event.content_block));
                self.begin_block(index, block_start, on_event)?;
            }
            "content_block_delta" => {
                let (index, delta) = (event.index.unwrap_or(0), event.delta.unwrap_or_default());
                self.continue_block(index, &delta, on_event)?;
            }
            "content_block_stop" => {
                let index = event.index.unwrap_or(0);
                if let Some(position) = self.open_blocks.iter().position(|(other, _)| *other == index) {
                    let (_, block) = self.open_blocks.remove(position);
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
                self.end.is_done = true;
            }
            // `ping`, and any future event.
            _ => {}
        }
        Ok(())
    }

    fn begin_block(
        &mut self,
        index: u64,
        block_start: ContentBlockStart<'_>,
        on_event: &mut EventSink<'_>,
    ) -> Result<(), StreamError> {
        // Some servers never end a block.
        if let Some(position) = self.open_blocks.iter().position(|(other, _)| *other == index) {
            let (_, block) = self.open_blocks.remove(position);
            self.close_block(block, on_event)?;
        }
        let block = match &*block_start.kind.0 {
            "text" => OpenBlock::Text { n_bytes: 0, surrogates: SurrogateJoiner::default() },
            "thinking" => OpenBlock::Thinking {
                thinking: String::new(),
                signature: String::new(),
                surrogates: SurrogateJoiner::default(),
            },
            "redacted_thinking" => {
                let data = resolve_marks(text_or_empty(block_start.data.as_ref())).into_owned();
                self.block_order.reserve_bytes(data.len())?;
                OpenBlock::Redacted { data }
            }
            "tool_use" if self.n_calls < BLOCKS_MAX => {
                let call_index = self.n_calls;
                self.n_calls += 1;
                let (id, name) = (
                    resolve_marks(text_or_empty(block_start.id.as_ref())),
                    resolve_marks(text_or_empty(block_start.name.as_ref())),
                );
                let id = Some(&*id).filter(|id| !id.is_empty());
                on_event(ModelEvent::Call { index: call_index, id, name: Some(&name), arguments: "" });
                // The input arrives in pieces; some servers send it at once, without pieces.
                OpenBlock::Call {
                    call_index,
                    input: block_start.input.map(|input| escape_marks(input.get()).into_owned()),
                }
            }
            _ => OpenBlock::Other,
        };
        if self.open_blocks.len() < BLOCKS_MAX {
            self.open_blocks.push((index, block));
        }
        let ContentBlockStart { text, thinking, signature, .. } = block_start;
        let delta = AnthropicDelta { text, thinking, signature, ..AnthropicDelta::default() };
        self.continue_block(index, &delta, on_event)
    }

    fn continue_block(
        &mut self,
        index: u64,
        delta: &AnthropicDelta<'_>,
        on_event: &mut EventSink<'_>,
    ) -> Result<(), StreamError> {
        let Some((_, block)) = self.open_blocks.iter_mut().find(|(other, _)| *other == index) else {
            return Ok(());
        };
        match block {
            OpenBlock::Text { n_bytes, surrogates } => {
                let text = surrogates.join_next(text_or_empty(delta.text.as_ref()));
                *n_bytes += text.len();
                if !text.is_empty() {
                    on_event(ModelEvent::Text(&text));
                }
            }
            OpenBlock::Thinking { thinking, signature, surrogates } => {
                let text = surrogates.join_next(text_or_empty(delta.thinking.as_ref()));
                let signature_text = resolve_marks(text_or_empty(delta.signature.as_ref()));
                self.block_order.reserve_bytes(text.len() + signature_text.len())?;
                thinking.push_str(&text);
                signature.push_str(&signature_text);
                if !text.is_empty() {
                    on_event(ModelEvent::Thought(&text));
                }
            }
            OpenBlock::Call { call_index, input } => {
                let arguments = escape_marks(text_or_empty(delta.partial_json.as_ref()));
                if !arguments.is_empty() {
                    *input = None;
                    on_event(ModelEvent::Call {
                        index: *call_index,
                        id: None,
                        name: None,
                        arguments: &arguments,
                    });
                }
            }
            OpenBlock::Redacted { .. } | OpenBlock::Other => {}
        }
        Ok(())
    }

    fn close_block(&mut self, mut block: OpenBlock, on_event: &mut EventSink<'_>) -> Result<(), StreamError> {
        block.flush_text(on_event);
        match block {
            OpenBlock::Text { n_bytes: 0, .. } | OpenBlock::Other => Ok(()),
            OpenBlock::Text { n_bytes, .. } => {
                self.block_order.push_marker(json!({"type": "text", "n_bytes": n_bytes}), on_event)
            }
            // Without a signature the provider would not accept it back.
            OpenBlock::Thinking { signature, .. } if signature.is_empty() => Ok(()),
            OpenBlock::Thinking { thinking, signature, .. } => {
                let item = json!({"type": "thinking", "thinking": thinking, "signature": signature});
                self.block_order.push_provider_state(&item, on_event)
            }
            OpenBlock::Redacted { data } => self
                .block_order
                .push_provider_state(&json!({"type": "redacted_thinking", "data": data}), on_event),
            OpenBlock::Call { call_index, input } => {
                if let Some(input) = input {
                    on_event(ModelEvent::Call { index: call_index, id: None, name: None, arguments: &input });
                }
                self.block_order.push_marker(json!({"type": "tool_use"}), on_event)
            }
        }
    }

    fn close_all(&mut self, on_event: &mut EventSink<'_>) -> Result<(), StreamError> {
        std::mem::take(&mut self.open_blocks)
            .into_iter()
            .try_for_each(|(_, block)| self.close_block(block, on_event))
    }

    fn emit_usage(&mut self, usage: Option<&RawValue>, on_event: &mut EventSink<'_>) {
        if let Some(usage) = self.token_counter.add_usage(usage) {
            on_event(ModelEvent::Usage(usage));
        }
    }

    fn on_stop_reason(&mut self, reason: &str, on_event: &mut EventSink<'_>) -> Result<(), StreamError> {
        if !reason.is_empty() {
            self.end.finish_reason = Some(parse_stop_reason(reason));
            self.close_all(on_event)?;
        }
        Ok(())
    }
}

impl OpenBlock {
    /// Emits the half character at the end of its text.
    fn flush_text(&mut self, on_event: &mut EventSink<'_>) {
        match self {
            Self::Text { n_bytes, surrogates } => {
                let remaining_text = surrogates.flush();
                *n_bytes += remaining_text.len();
                if !remaining_text.is_empty() {
                    on_event(ModelEvent::Text(&remaining_text));
                }
            }
            Self::Thinking { thinking, surrogates, .. } => {
                let remaining_text = surrogates.flush();
                thinking.push_str(&remaining_text);
                if !remaining_text.is_empty() {
                    on_event(ModelEvent::Thought(&remaining_text));
                }
            }
            Self::Redacted { .. } | Self::Call { .. } | Self::Other => {}
        }
    }
}

impl BlockOrder {
    /// Records the position of something that the reply contains anyway.
    fn push_marker(&mut self, item: Value, on_event: &mut EventSink<'_>) -> Result<(), StreamError> {
        self.reserve_bytes(ITEM_OVERHEAD)?;
        if self.has_reasoning {
            on_event(ModelEvent::ProviderState(&item));
        } else {
            self.pending.push(item);
        }
        Ok(())
    }

    /// Emits data that is sent back unchanged.
    fn push_provider_state(&mut self, item: &Value, on_event: &mut EventSink<'_>) -> Result<(), StreamError> {
        self.reserve_bytes(ITEM_OVERHEAD)?;
        self.has_reasoning = true;
        for pending_item in self.pending.drain(..) {
            on_event(ModelEvent::ProviderState(&pending_item));
        }
        on_event(ModelEvent::ProviderState(item));
        Ok(())
    }

    fn reserve_bytes(&mut self, n_bytes: usize) -> Result<(), StreamError> {
        self.n_bytes += n_bytes;
        if self.n_bytes > PROVIDER_STATE_LEN_MAX { Err(StreamError::TooLong) } else { Ok(()) }
    }
}

fn check_error(event: &AnthropicEvent<'_>, data: &[u8]) -> Result<(), StreamError> {
    match event.error.map(RawValue::get) {
        Some(error) if error != "{}" => Err(StreamError::Provider(error.to_owned())),
        _ if event.kind.0 == "error" => Err(StreamError::from_provider(data)),
        _ => Ok(()),
    }
}

fn parse_block_start(block: Option<&RawValue>) -> ContentBlockStart<'_> {
    block.and_then(|block| serde_json::from_str(block.get()).ok()).unwrap_or_default()
}

/// A turn that the provider paused ends for us: we offer none of the tools that it runs itself.
fn parse_stop_reason(reason: &str) -> FinishReason {
    match reason {
        // Whichever limit was reached, the reply is incomplete. A full window is reported by the next request.
        "max_tokens" | "model_context_window_exceeded" => FinishReason::OutputLimit,
        "refusal" => FinishReason::Refused,
        _ => FinishReason::Complete,
    }
}
