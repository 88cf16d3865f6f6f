//! Encodes the steps of an answer as events of `responses`: consecutive steps of one kind are one item. Pure.

use serde_json::{Value, json};

use crate::Step;

/// The state of an answer's encoding.
#[derive(Debug)]
pub(crate) struct EventEncoder {
    /// The index of the request, for unique ids.
    request_index: usize,
    sequence: u64,
    n_calls: usize,
    /// The open item.
    open_item: Option<OpenItem>,
    /// The finished items.
    output: Vec<Value>,
    usage: Value,
    reason: Option<String>,
    is_finished: bool,
    events: String,
}

#[derive(Debug)]
struct OpenItem {
    is_thought: bool,
    text: String,
}

impl EventEncoder {
    /// Starts the answer to a request.
    pub(crate) fn new(request_index: usize) -> Self {
        Self {
            request_index,
            sequence: 0,
            n_calls: 0,
            open_item: None,
            output: Vec::new(),
            usage: Value::Null,
            reason: None,
            is_finished: false,
            events: String::new(),
        }
    }

    /// Encodes a step; `None` if the step concerns the connection.
    pub(crate) fn encode_step(&mut self, step: &Step) -> Option<String> {
        match step {
            Step::Text(text) => self.encode_text(text, false),
            Step::Thought(text) => self.encode_text(text, true),
            Step::Call { name, arguments } => self.encode_call(name, arguments),
            Step::Chunk(event) => {
                let kind = event["type"].as_str().unwrap_or_default().to_owned();
                if matches!(
                    &*kind,
                    "response.completed" | "response.incomplete" | "response.failed" | "error"
                ) {
                    self.close_item();
                    self.is_finished = true;
                }
                self.events.push_str(&format!("event: {kind}\ndata: {event}\n\n"));
            }
            Step::Usage { input, output } => {
                self.usage = json!({
                    "input_tokens": input, "input_tokens_details": {"cached_tokens": 0},
                    "output_tokens": output, "output_tokens_details": {"reasoning_tokens": 0},
                    "total_tokens": input + output,
                });
            }
            Step::Cache { read, .. } => {
                if !self.usage.is_null() {
                    self.usage["input_tokens_details"] = json!({"cached_tokens": read});
                }
            }
            Step::Finish(reason) => self.reason = Some(reason.clone()),
            Step::Raw(_)
            | Step::Hold
            | Step::Disconnect
            | Step::Header(..)
            | Step::Code(_)
            | Step::Status { .. } => return None,
        }
        Some(std::mem::take(&mut self.events))
    }

    /// Encodes the end, unless the script did.
    pub(crate) fn encode_end(&mut self) -> String {
        self.encode_start();
        self.close_item();
        if !self.is_finished {
            let reason = match self.reason.as_deref() {
                Some("length") => Some("max_output_tokens"),
                Some("content_filter") => Some("content_filter"),
                Some(_) | None => None,
            };
            let status = if reason.is_some() { "incomplete" } else { "completed" };
            let mut response = self.response_json(status);
            response["incomplete_details"] = reason.map_or(Value::Null, |reason| json!({"reason": reason}));
            response["output"] = Value::Array(self.output.clone());
            response["usage"] = self.usage.take();
            self.push_event(&format!("response.{status}"), json!({"response": response}));
        }
        std::mem::take(&mut self.events)
    }

    fn response_json(&self, status: &str) -> Value {
        json!({
            "id": format!("resp_{}", self.request_index), "object": "response", "created_at": 1_700_000_000, "status": status,
            "error": null, "incomplete_details": null, "model": "scripted", "output": [], "store": false,
            "usage": null,
        })
    }

    fn encode_start(&mut self) {
        if self.sequence == 0 {
            for kind in ["created", "in_progress"] {
                let response = self.response_json("in_progress");
                self.push_event(&format!("response.{kind}"), json!({"response": response}));
            }
        }
    }

    fn push_event(&mut self, kind: &str, fields: Value) {
        let mut event = json!({"type": kind, "sequence_number": self.sequence});
        if let (Value::Object(event), Value::Object(fields)) = (&mut event, fields) {
            event.extend(fields);
        }
        self.sequence += 1;
        self.events.push_str(&format!("event: {kind}\ndata: {event}\n\n"));
    }

    /// Returns the id of the next item.
    fn next_item_id(&self, prefix: &str) -> String {
        format!("{prefix}_{}_{}", self.request_index, self.output.len())
    }

    fn encode_text(&mut self, text: &str, is_thought: bool) {
        self.encode_start();
        if self.open_item.as_ref().is_some_and(|item| item.is_thought != is_thought) {
            self.close_item();
        }
        let index = self.output.len();
        let id = self.next_item_id(if is_thought { "rs" } else { "msg" });
        if self.open_item.is_none() {
            let item = if is_thought {
                json!({"id": id, "type": "reasoning", "encrypted_content": "not yet", "summary": []})
            } else {
                json!({"id": id, "type": "message", "status": "in_progress", "role": "assistant", "content": []})
            };
            self.push_event("response.output_item.added", json!({"output_index": index, "item": item}));
            let mut part = json!({"item_id": id, "output_index": index});
            let (kind, index_field, empty) = if is_thought {
                ("response.reasoning_summary_part.added", "summary_index", summary_text(""))
            } else {
                ("response.content_part.added", "content_index", output_text(""))
            };
            (part[index_field], part["part"]) = (json!(0), empty);
            self.push_event(kind, part);
        }
        let (kind, index_field) = if is_thought {
            ("response.reasoning_summary_text.delta", "summary_index")
        } else {
            ("response.output_text.delta", "content_index")
        };
        self.push_event(kind, json!({"item_id": id, "output_index": index, index_field: 0, "delta": text}));
        self.open_item
            .get_or_insert_with(|| OpenItem { is_thought, text: String::new() })
            .text
            .push_str(text);
    }

    /// Ends the open item.
    fn close_item(&mut self) {
        let Some(OpenItem { is_thought, text }) = self.open_item.take() else { return };
        let index = self.output.len();
        let id = self.next_item_id(if is_thought { "rs" } else { "msg" });
        let item = if is_thought {
            let position = json!({"item_id": id, "output_index": index, "summary_index": 0});
            self.encode_part_done(
                position,
                ["response.reasoning_summary_text.done", "response.reasoning_summary_part.done"],
                &text,
            );
            let encrypted = format!("sealed {id}");
            json!({"id": id, "type": "reasoning", "encrypted_content": encrypted, "summary": [summary_text(&text)]})
        } else {
            let position = json!({"item_id": id, "output_index": index, "content_index": 0});
            self.encode_part_done(
                position,
                ["response.output_text.done", "response.content_part.done"],
                &text,
            );
            json!({
                "id": id, "type": "message", "status": "completed", "role": "assistant", "content": [output_text(&text)],
            })
        };
        self.encode_item_done(item);
    }

    fn encode_part_done(&mut self, position: Value, [text_done, part_done]: [&str; 2], text: &str) {
        let mut done_event = position.clone();
        done_event["text"] = text.into();
        self.push_event(text_done, done_event);
        let mut part = position;
        part["part"] = if text_done.contains("summary") { summary_text(text) } else { output_text(text) };
        self.push_event(part_done, part);
    }

    /// Encodes a call with its arguments in two pieces.
    fn encode_call(&mut self, name: &str, arguments: &str) {
        self.encode_start();
        self.close_item();
        let (index, id) = (self.output.len(), self.next_item_id("fc"));
        let mut item = json!({
            "id": id, "type": "function_call", "status": "in_progress", "arguments": "",
            "call_id": format!("call_{}_{}", self.request_index, self.n_calls), "name": name,
        });
        self.n_calls += 1;
        self.push_event("response.output_item.added", json!({"output_index": index, "item": item}));
        let middle = arguments.floor_char_boundary(arguments.len() / 2);
        for piece in [&arguments[..middle], &arguments[middle..]] {
            let piece = json!({"item_id": id, "output_index": index, "delta": piece});
            self.push_event("response.function_call_arguments.delta", piece);
        }
        let done_event = json!({"item_id": id, "output_index": index, "arguments": arguments});
        self.push_event("response.function_call_arguments.done", done_event);
        (item["status"], item["arguments"]) = ("completed".into(), arguments.into());
        self.encode_item_done(item);
    }

    fn encode_item_done(&mut self, item: Value) {
        let index = self.output.len();
        self.push_event("response.output_item.done", json!({"output_index": index, "item": item}));
        self.output.push(item);
    }
}

fn summary_text(text: &str) -> Value {
    json!({"type": "summary_text", "text": text})
}

fn output_text(text: &str) -> Value {
    json!({"type": "output_text", "annotations": [], "logprobs": [], "text": text})
}
