//! Encodes the steps of an answer as events of `messages`: consecutive steps of one kind are one block. Pure.

use serde_json::{Value, json};

use crate::checker::messages::sign_thinking;
use crate::{Answer, Step};

/// The state of an answer's encoding.
#[derive(Debug)]
pub(crate) struct EventEncoder {
    /// The index of the request, for unique ids.
    request_index: usize,
    input: u64,
    output: u64,
    cached: u64,
    cache_written: u64,
    has_begun: bool,
    n_blocks: usize,
    n_calls: usize,
    /// The open block.
    open_block: Option<OpenBlock>,
    is_finished: bool,
    events: String,
}

#[derive(Debug)]
enum OpenBlock {
    Text,
    /// The thought so far, to be signed.
    Thinking(String),
}

impl EventEncoder {
    /// Starts the answer to a request. Its usage is needed first.
    pub(crate) fn new(request_index: usize, answer: &Answer) -> Self {
        let mut encoder = Self {
            request_index,
            input: 0,
            output: 0,
            cached: 0,
            cache_written: 0,
            has_begun: false,
            n_blocks: 0,
            n_calls: 0,
            open_block: None,
            is_finished: false,
            events: String::new(),
        };
        for step in &answer.steps {
            if let Step::Usage { input, output } = step {
                (encoder.input, encoder.output) = (*input, *output);
            }
            if let Step::Cache { read, written } = step {
                (encoder.cached, encoder.cache_written) = (*read, *written);
            }
        }
        encoder
    }

    /// Encodes a step; `None` if the step concerns the connection.
    pub(crate) fn encode_step(&mut self, step: &Step) -> Option<String> {
        match step {
            Step::Text(text) => self.encode_text(text),
            Step::Thought(text) => self.encode_thought(text),
            Step::Call { name, arguments } => self.encode_call(name, arguments),
            Step::Chunk(event) => self.push_event(event),
            Step::Usage { .. } | Step::Cache { .. } => {}
            Step::Finish(reason) => self.encode_finish(reason),
            Step::Raw(_)
            | Step::Hold
            | Step::Disconnect
            | Step::Header(..)
            | Step::Code(_)
            | Step::Status { .. } => return None,
        }
        Some(std::mem::take(&mut self.events))
    }

    /// Encodes the end of the answer.
    pub(crate) fn encode_end(&mut self) -> String {
        if !self.is_finished {
            self.encode_finish(if self.n_calls > 0 { "tool_use" } else { "end_turn" });
        }
        self.push_event(&json!({"type": "message_stop"}));
        std::mem::take(&mut self.events)
    }

    fn encode_text(&mut self, text: &str) {
        if !matches!(self.open_block, Some(OpenBlock::Text)) {
            self.start_block(&json!({"type": "text", "text": ""}));
            self.open_block = Some(OpenBlock::Text);
        }
        self.encode_delta(&json!({"type": "text_delta", "text": text}));
    }

    fn encode_thought(&mut self, text: &str) {
        if !matches!(self.open_block, Some(OpenBlock::Thinking(_))) {
            self.start_block(&json!({"type": "thinking", "thinking": "", "signature": ""}));
            self.open_block = Some(OpenBlock::Thinking(String::new()));
        }
        if let Some(OpenBlock::Thinking(thought)) = &mut self.open_block {
            thought.push_str(text);
        }
        self.encode_delta(&json!({"type": "thinking_delta", "thinking": text}));
    }

    fn encode_call(&mut self, name: &str, arguments: &str) {
        let id = format!("toolu_{}_{}", self.request_index, self.n_calls);
        self.n_calls += 1;
        self.start_block(&json!({"type": "tool_use", "id": id, "name": name, "input": {}}));
        let middle = arguments.floor_char_boundary(arguments.len() / 2);
        for piece in ["", &arguments[..middle], &arguments[middle..]] {
            self.encode_delta(&json!({"type": "input_json_delta", "partial_json": piece}));
        }
        self.end_block();
    }

    fn encode_finish(&mut self, reason: &str) {
        let reason = match reason {
            "length" => "max_tokens",
            "content_filter" => "refusal",
            "stop" => "end_turn",
            "tool_calls" => "tool_use",
            reason => reason,
        };
        self.encode_start();
        self.close_block();
        self.is_finished = true;
        let usage = json!({"output_tokens": self.output});
        let delta = json!({"stop_reason": reason, "stop_sequence": null});
        self.push_event(&json!({"type": "message_delta", "delta": delta, "usage": usage}));
    }

    fn encode_start(&mut self) {
        if self.has_begun {
            return;
        }
        self.has_begun = true;
        let usage = json!({
            "input_tokens": self.input.saturating_sub(self.cached + self.cache_written),
            "cache_creation_input_tokens": self.cache_written,
            "cache_read_input_tokens": self.cached,
            "output_tokens": self.output.min(1),
        });
        let message = json!({
            "id": format!("msg_{}", self.request_index), "type": "message", "role": "assistant", "model": "scripted",
            "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage,
        });
        self.push_event(&json!({"type": "message_start", "message": message}));
    }

    fn start_block(&mut self, block: &Value) {
        self.encode_start();
        self.close_block();
        self.push_event(
            &json!({"type": "content_block_start", "index": self.n_blocks, "content_block": block}),
        );
    }

    fn encode_delta(&mut self, delta: &Value) {
        self.push_event(&json!({"type": "content_block_delta", "index": self.n_blocks, "delta": delta}));
    }

    fn end_block(&mut self) {
        self.push_event(&json!({"type": "content_block_stop", "index": self.n_blocks}));
        self.n_blocks += 1;
    }

    /// Ends the open block, if any.
    fn close_block(&mut self) {
        match self.open_block.take() {
            None => return,
            Some(OpenBlock::Text) => {}
            Some(OpenBlock::Thinking(thought)) => {
                self.encode_delta(&json!({"type": "signature_delta", "signature": sign_thinking(&thought)}));
            }
        }
        self.end_block();
    }

    fn push_event(&mut self, event: &Value) {
        let name = event["type"].as_str().unwrap_or_default();
        self.events += &format!("event: {name}\ndata: {event}\n\n");
    }
}
