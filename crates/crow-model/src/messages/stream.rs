//! What the events of a stream of `messages` mean, and how the stream ended.

#[cfg(test)]
mod tests;

use crow_core::ModelEvent;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::event::{Begun, Delta, Event, Head, Tokens, words};
use crate::decoder::{Finish, StreamError, quote};
use crate::halves::{Halves, escaped, whole};

/// Blocks that are open at once, and calls of one reply; a model with more has lost its way.
const BLOCKS_MAX: usize = 1024;

/// Room for what goes back to the provider with the reply; many times what any model thinks at once.
const SEALED_LEN_MAX: usize = 8 * 1024 * 1024;

/// What a piece costs beside its text.
const PIECE_LEN: usize = 64;

/// One answer while it is read.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    open: Vec<(u64, Block)>,
    n_calls: usize,
    sealed: Sealing,
    tokens: Tokens,
    finish: Option<Finish>,
    is_done: bool,
}

#[derive(Debug)]
enum Block {
    Text {
        n_bytes: usize,
        halves: Halves,
    },
    Thinking {
        thinking: String,
        signature: String,
        halves: Halves,
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
struct Sealing {
    /// What came before the first reasoning.
    before: Vec<Value>,
    has_begun: bool,
    len: usize,
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
        match Event::read(data) {
            Ok(event) => self.on_wire(event, data, on_event),
            Err(_) => self.on_odd_data(data, on_event),
        }
    }

    /// Data that is no event: an end mark, or several lines without blank ones between.
    fn on_odd_data(
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
            match Event::read(line) {
                Ok(event) => self.on_wire(event, line, on_event)?,
                Err(_) => return Err(StreamError::NotProtocol(quote(line))),
            }
        }
        Ok(())
    }

    fn on_wire(
        &mut self,
        event: Event<'_>,
        data: &[u8],
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<(), StreamError> {
        refuse_error(&event, data)?;
        match &*event.kind.0 {
            "message_start" => {
                let head = event.message.and_then(|head| serde_json::from_str::<Head<'_>>(head.get()).ok());
                self.spent(head.and_then(|head| head.usage), on_event);
            }
            "content_block_start" => {
                let (index, begun) = (event.index.unwrap_or(0), read_begun(event.content_block));
                self.begin(index, begun, on_event)?;
            }
            "content_block_delta" => {
                let (index, delta) = (event.index.unwrap_or(0), event.delta.unwrap_or_default());
                self.go_on(index, &delta, on_event)?;
            }
            "content_block_stop" => {
                let index = event.index.unwrap_or(0);
                if let Some(place) = self.open.iter().position(|(other, _)| *other == index) {
                    let (_, block) = self.open.remove(place);
                    self.close(block, on_event)?;
                }
            }
            "message_delta" => {
                self.spent(event.usage, on_event);
                let delta = event.delta.unwrap_or_default();
                self.stop(words(delta.stop_reason.as_ref()), on_event)?;
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
    pub(crate) fn on_whole(
        &mut self,
        whole: &[u8],
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<Finish, StreamError> {
        let event = match Event::read(whole) {
            Ok(event) => event,
            Err(error) if error.is_eof() => return Err(StreamError::Cut),
            Err(_) => return Err(StreamError::NotProtocol(quote(whole))),
        };
        refuse_error(&event, whole)?;
        let Some(content) = event.content else { return Err(StreamError::NotProtocol(quote(whole))) };
        for block in content {
            self.begin(0, read_begun(Some(block)), on_event)?;
            self.close_all(on_event)?;
        }
        self.spent(event.usage, on_event);
        self.stop(words(event.stop_reason.as_ref()), on_event)?;
        Ok(self.finish.unwrap_or(Finish::Normally))
    }

    fn begin(
        &mut self,
        index: u64,
        begun: Begun<'_>,
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<(), StreamError> {
        // Some servers never say that a block is over.
        if let Some(place) = self.open.iter().position(|(other, _)| *other == index) {
            let (_, block) = self.open.remove(place);
            self.close(block, on_event)?;
        }
        let block = match &*begun.kind.0 {
            "text" => Block::Text { n_bytes: 0, halves: Halves::default() },
            "thinking" => Block::Thinking {
                thinking: String::new(),
                signature: String::new(),
                halves: Halves::default(),
            },
            "redacted_thinking" => {
                let data = whole(words(begun.data.as_ref())).into_owned();
                self.sealed.take(data.len())?;
                Block::Redacted { data }
            }
            "tool_use" if self.n_calls < BLOCKS_MAX => {
                let slot = self.n_calls;
                self.n_calls += 1;
                let (id, name) = (whole(words(begun.id.as_ref())), whole(words(begun.name.as_ref())));
                let id = Some(&*id).filter(|id| !id.is_empty());
                on_event(ModelEvent::Call { slot, id, name: Some(&name), arguments: "" });
                // The input comes in pieces; some servers send it at once, and no pieces.
                Block::Call { slot, input: begun.input.map(|input| escaped(input.get()).into_owned()) }
            }
            _ => Block::Other,
        };
        if self.open.len() < BLOCKS_MAX {
            self.open.push((index, block));
        }
        let Begun { text, thinking, signature, .. } = begun;
        let delta = Delta { text, thinking, signature, ..Delta::default() };
        self.go_on(index, &delta, on_event)
    }

    fn go_on(
        &mut self,
        index: u64,
        delta: &Delta<'_>,
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<(), StreamError> {
        let Some((_, block)) = self.open.iter_mut().find(|(other, _)| *other == index) else { return Ok(()) };
        match block {
            Block::Text { n_bytes, halves } => {
                let text = halves.join(words(delta.text.as_ref()));
                *n_bytes += text.len();
                if !text.is_empty() {
                    on_event(ModelEvent::Text(&text));
                }
            }
            Block::Thinking { thinking, signature, halves } => {
                let more = halves.join(words(delta.thinking.as_ref()));
                let seal = whole(words(delta.signature.as_ref()));
                self.sealed.take(more.len() + seal.len())?;
                thinking.push_str(&more);
                signature.push_str(&seal);
                if !more.is_empty() {
                    on_event(ModelEvent::Thought(&more));
                }
            }
            Block::Call { slot, input } => {
                let arguments = escaped(words(delta.partial_json.as_ref()));
                if !arguments.is_empty() {
                    *input = None;
                    on_event(ModelEvent::Call { slot: *slot, id: None, name: None, arguments: &arguments });
                }
            }
            Block::Redacted { .. } | Block::Other => {}
        }
        Ok(())
    }

    fn close(
        &mut self,
        mut block: Block,
        on_event: &mut impl FnMut(ModelEvent<'_>),
    ) -> Result<(), StreamError> {
        block.end(on_event);
        match block {
            Block::Text { n_bytes: 0, .. } | Block::Other => Ok(()),
            Block::Text { n_bytes, .. } => {
                self.sealed.mark(json!({"type": "text", "n_bytes": n_bytes}), on_event)
            }
            // Nobody vouches for it, so the provider would not take it back.
            Block::Thinking { signature, .. } if signature.is_empty() => Ok(()),
            Block::Thinking { thinking, signature, .. } => {
                let piece = json!({"type": "thinking", "thinking": thinking, "signature": signature});
                self.sealed.seal(&piece, on_event)
            }
            Block::Redacted { data } => {
                self.sealed.seal(&json!({"type": "redacted_thinking", "data": data}), on_event)
            }
            Block::Call { slot, input } => {
                if let Some(input) = input {
                    on_event(ModelEvent::Call { slot, id: None, name: None, arguments: &input });
                }
                self.sealed.mark(json!({"type": "tool_use"}), on_event)
            }
        }
    }

    fn close_all(&mut self, on_event: &mut impl FnMut(ModelEvent<'_>)) -> Result<(), StreamError> {
        std::mem::take(&mut self.open).into_iter().try_for_each(|(_, block)| self.close(block, on_event))
    }

    fn spent(&mut self, usage: Option<&RawValue>, on_event: &mut impl FnMut(ModelEvent<'_>)) {
        if let Some(usage) = self.tokens.hear(usage) {
            on_event(ModelEvent::Usage(usage));
        }
    }

    fn stop(&mut self, reason: &str, on_event: &mut impl FnMut(ModelEvent<'_>)) -> Result<(), StreamError> {
        if !reason.is_empty() {
            self.finish = Some(read_finish(reason));
            self.close_all(on_event)?;
        }
        Ok(())
    }
}

impl Block {
    /// Says the half of a character that its text ends with.
    fn end(&mut self, on_event: &mut impl FnMut(ModelEvent<'_>)) {
        match self {
            Self::Text { n_bytes, halves } => {
                let rest = halves.end();
                *n_bytes += rest.len();
                if !rest.is_empty() {
                    on_event(ModelEvent::Text(&rest));
                }
            }
            Self::Thinking { thinking, halves, .. } => {
                let rest = halves.end();
                thinking.push_str(&rest);
                if !rest.is_empty() {
                    on_event(ModelEvent::Thought(&rest));
                }
            }
            Self::Redacted { .. } | Self::Call { .. } | Self::Other => {}
        }
    }
}

impl Sealing {
    /// Notes where something stands that the reply has anyway.
    fn mark(&mut self, piece: Value, on_event: &mut impl FnMut(ModelEvent<'_>)) -> Result<(), StreamError> {
        self.take(PIECE_LEN)?;
        if self.has_begun {
            on_event(ModelEvent::Sealed(&piece));
        } else {
            self.before.push(piece);
        }
        Ok(())
    }

    /// Hands on what goes back as it is.
    fn seal(&mut self, piece: &Value, on_event: &mut impl FnMut(ModelEvent<'_>)) -> Result<(), StreamError> {
        self.take(PIECE_LEN)?;
        self.has_begun = true;
        for before in self.before.drain(..) {
            on_event(ModelEvent::Sealed(&before));
        }
        on_event(ModelEvent::Sealed(piece));
        Ok(())
    }

    fn take(&mut self, n_bytes: usize) -> Result<(), StreamError> {
        self.len += n_bytes;
        if self.len > SEALED_LEN_MAX { Err(StreamError::TooLong) } else { Ok(()) }
    }
}

fn refuse_error(event: &Event<'_>, data: &[u8]) -> Result<(), StreamError> {
    match event.error.map(RawValue::get) {
        Some(error) if error != "{}" => Err(StreamError::Provider(error.to_owned())),
        _ if event.kind.0 == "error" => Err(StreamError::Provider(quote(data))),
        _ => Ok(()),
    }
}

fn read_begun(block: Option<&RawValue>) -> Begun<'_> {
    block.and_then(|block| serde_json::from_str(block.get()).ok()).unwrap_or_default()
}

/// A turn that the provider paused is over for us: we offer none of the tools that it runs itself.
fn read_finish(reason: &str) -> Finish {
    match reason {
        // Whatever ran out, the reply is not whole. A full window is told by the next request.
        "max_tokens" | "model_context_window_exceeded" => Finish::OutputLimit,
        "refusal" => Finish::Refused,
        _ => Finish::Normally,
    }
}
