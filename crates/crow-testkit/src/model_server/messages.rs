//! Spells the steps of an answer as the events of `messages`: steps of one kind in a row are one block. Pure.

use serde_json::{Value, json};

use crate::checker::messages::seal;
use crate::{Answer, Step};

/// An answer while it is spelled.
#[derive(Debug)]
pub(crate) struct Speaker {
    /// The number of the request, so that no two answers give the same names.
    n: usize,
    input: u64,
    output: u64,
    cached: u64,
    cache_written: u64,
    has_begun: bool,
    n_blocks: usize,
    n_calls: usize,
    /// The block that is being said.
    open: Option<Open>,
    is_finished: bool,
    events: String,
}

#[derive(Debug)]
enum Open {
    Text,
    /// With what was thought so far, to be signed.
    Thinking(String),
}

impl Speaker {
    /// Begins the answer to request `n`. What it costs is told before it is said.
    pub(crate) fn new(n: usize, answer: &Answer) -> Self {
        let mut speaker = Self {
            n,
            input: 0,
            output: 0,
            cached: 0,
            cache_written: 0,
            has_begun: false,
            n_blocks: 0,
            n_calls: 0,
            open: None,
            is_finished: false,
            events: String::new(),
        };
        for step in &answer.steps {
            if let Step::Usage { input, output } = step {
                (speaker.input, speaker.output) = (*input, *output);
            }
            if let Step::Cache { read, written } = step {
                (speaker.cached, speaker.cache_written) = (*read, *written);
            }
        }
        speaker
    }

    /// Spells a step; `None` where the step is about the connection and not about words.
    pub(crate) fn spell(&mut self, step: &Step) -> Option<String> {
        match step {
            Step::Text(text) => self.say(text),
            Step::Thought(text) => self.think(text),
            Step::Call { name, arguments } => self.call(name, arguments),
            Step::Chunk(event) => self.event(event),
            Step::Usage { .. } | Step::Cache { .. } => {}
            Step::Finish(reason) => self.finish(reason),
            Step::Raw(_)
            | Step::Hold
            | Step::Cut
            | Step::Header(..)
            | Step::Code(_)
            | Step::Status { .. } => return None,
        }
        Some(std::mem::take(&mut self.events))
    }

    /// Spells the end of the answer.
    pub(crate) fn end(&mut self) -> String {
        if !self.is_finished {
            self.finish(if self.n_calls > 0 { "tool_use" } else { "end_turn" });
        }
        self.event(&json!({"type": "message_stop"}));
        std::mem::take(&mut self.events)
    }

    fn say(&mut self, text: &str) {
        if !matches!(self.open, Some(Open::Text)) {
            self.begin_block(&json!({"type": "text", "text": ""}));
            self.open = Some(Open::Text);
        }
        self.delta(&json!({"type": "text_delta", "text": text}));
    }

    fn think(&mut self, text: &str) {
        if !matches!(self.open, Some(Open::Thinking(_))) {
            self.begin_block(&json!({"type": "thinking", "thinking": "", "signature": ""}));
            self.open = Some(Open::Thinking(String::new()));
        }
        if let Some(Open::Thinking(thought)) = &mut self.open {
            thought.push_str(text);
        }
        self.delta(&json!({"type": "thinking_delta", "thinking": text}));
    }

    fn call(&mut self, name: &str, arguments: &str) {
        let id = format!("toolu_{}_{}", self.n, self.n_calls);
        self.n_calls += 1;
        self.begin_block(&json!({"type": "tool_use", "id": id, "name": name, "input": {}}));
        let middle = arguments.floor_char_boundary(arguments.len() / 2);
        for piece in ["", &arguments[..middle], &arguments[middle..]] {
            self.delta(&json!({"type": "input_json_delta", "partial_json": piece}));
        }
        self.end_block();
    }

    fn finish(&mut self, reason: &str) {
        let reason = match reason {
            "length" => "max_tokens",
            "content_filter" => "refusal",
            "stop" => "end_turn",
            "tool_calls" => "tool_use",
            reason => reason,
        };
        self.begin();
        self.close();
        self.is_finished = true;
        let usage = json!({"output_tokens": self.output});
        let delta = json!({"stop_reason": reason, "stop_sequence": null});
        self.event(&json!({"type": "message_delta", "delta": delta, "usage": usage}));
    }

    fn begin(&mut self) {
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
            "id": format!("msg_{}", self.n), "type": "message", "role": "assistant", "model": "scripted",
            "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage,
        });
        self.event(&json!({"type": "message_start", "message": message}));
    }

    fn begin_block(&mut self, block: &Value) {
        self.begin();
        self.close();
        self.event(&json!({"type": "content_block_start", "index": self.n_blocks, "content_block": block}));
    }

    fn delta(&mut self, delta: &Value) {
        self.event(&json!({"type": "content_block_delta", "index": self.n_blocks, "delta": delta}));
    }

    fn end_block(&mut self) {
        self.event(&json!({"type": "content_block_stop", "index": self.n_blocks}));
        self.n_blocks += 1;
    }

    /// Ends the block that is being said, if one is.
    fn close(&mut self) {
        match self.open.take() {
            None => return,
            Some(Open::Text) => {}
            Some(Open::Thinking(thought)) => {
                self.delta(&json!({"type": "signature_delta", "signature": seal(&thought)}));
            }
        }
        self.end_block();
    }

    fn event(&mut self, event: &Value) {
        let name = event["type"].as_str().unwrap_or_default();
        self.events += &format!("event: {name}\ndata: {event}\n\n");
    }
}
