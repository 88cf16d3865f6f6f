//! Spells the steps of an answer as the events of `responses`: steps of one kind in a row are one item. Pure.

use serde_json::{Value, json};

use crate::Step;

/// An answer while it is spelled.
#[derive(Debug)]
pub(crate) struct Speaker {
    /// The number of the request, so that no two answers give the same names.
    n: usize,
    sequence: u64,
    n_calls: usize,
    /// The item that is being said.
    open: Option<Open>,
    /// The items that are said.
    output: Vec<Value>,
    usage: Value,
    reason: Option<String>,
    is_finished: bool,
    events: String,
}

#[derive(Debug)]
struct Open {
    is_thought: bool,
    text: String,
}

impl Speaker {
    /// Begins the answer to request `n`.
    pub(crate) fn new(n: usize) -> Self {
        Self {
            n,
            sequence: 0,
            n_calls: 0,
            open: None,
            output: Vec::new(),
            usage: Value::Null,
            reason: None,
            is_finished: false,
            events: String::new(),
        }
    }

    /// Spells a step; `None` where the step is about the connection and not about words.
    pub(crate) fn spell(&mut self, step: &Step) -> Option<String> {
        match step {
            Step::Text(text) => self.say(text, false),
            Step::Thought(text) => self.say(text, true),
            Step::Call { name, arguments } => self.call(name, arguments),
            Step::Chunk(event) => {
                let kind = event["type"].as_str().unwrap_or_default().to_owned();
                if matches!(
                    &*kind,
                    "response.completed" | "response.incomplete" | "response.failed" | "error"
                ) {
                    self.close();
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
            | Step::Cut
            | Step::Header(..)
            | Step::Code(_)
            | Step::Status { .. } => return None,
        }
        Some(std::mem::take(&mut self.events))
    }

    /// Spells the end, unless the script did.
    pub(crate) fn end(&mut self) -> String {
        self.begin();
        self.close();
        if !self.is_finished {
            let reason = match self.reason.as_deref() {
                Some("length") => Some("max_output_tokens"),
                Some("content_filter") => Some("content_filter"),
                Some(_) | None => None,
            };
            let status = if reason.is_some() { "incomplete" } else { "completed" };
            let mut response = self.response(status);
            response["incomplete_details"] = reason.map_or(Value::Null, |reason| json!({"reason": reason}));
            response["output"] = Value::Array(self.output.clone());
            response["usage"] = self.usage.take();
            self.event(&format!("response.{status}"), json!({"response": response}));
        }
        std::mem::take(&mut self.events)
    }

    fn response(&self, status: &str) -> Value {
        json!({
            "id": format!("resp_{}", self.n), "object": "response", "created_at": 1_700_000_000, "status": status,
            "error": null, "incomplete_details": null, "model": "scripted", "output": [], "store": false,
            "usage": null,
        })
    }

    fn begin(&mut self) {
        if self.sequence == 0 {
            for kind in ["created", "in_progress"] {
                let response = self.response("in_progress");
                self.event(&format!("response.{kind}"), json!({"response": response}));
            }
        }
    }

    fn event(&mut self, kind: &str, fields: Value) {
        let mut event = json!({"type": kind, "sequence_number": self.sequence});
        if let (Value::Object(event), Value::Object(fields)) = (&mut event, fields) {
            event.extend(fields);
        }
        self.sequence += 1;
        self.events.push_str(&format!("event: {kind}\ndata: {event}\n\n"));
    }

    /// Names the item that comes next.
    fn id(&self, prefix: &str) -> String {
        format!("{prefix}_{}_{}", self.n, self.output.len())
    }

    fn say(&mut self, text: &str, is_thought: bool) {
        self.begin();
        if self.open.as_ref().is_some_and(|open| open.is_thought != is_thought) {
            self.close();
        }
        let index = self.output.len();
        let id = self.id(if is_thought { "rs" } else { "msg" });
        if self.open.is_none() {
            let item = if is_thought {
                json!({"id": id, "type": "reasoning", "encrypted_content": "not yet", "summary": []})
            } else {
                json!({"id": id, "type": "message", "status": "in_progress", "role": "assistant", "content": []})
            };
            self.event("response.output_item.added", json!({"output_index": index, "item": item}));
            let mut part = json!({"item_id": id, "output_index": index});
            let (kind, place, empty) = if is_thought {
                ("response.reasoning_summary_part.added", "summary_index", summary(""))
            } else {
                ("response.content_part.added", "content_index", words(""))
            };
            (part[place], part["part"]) = (json!(0), empty);
            self.event(kind, part);
        }
        let (kind, place) = if is_thought {
            ("response.reasoning_summary_text.delta", "summary_index")
        } else {
            ("response.output_text.delta", "content_index")
        };
        self.event(kind, json!({"item_id": id, "output_index": index, place: 0, "delta": text}));
        self.open.get_or_insert_with(|| Open { is_thought, text: String::new() }).text.push_str(text);
    }

    /// Ends the item that is being said.
    fn close(&mut self) {
        let Some(Open { is_thought, text }) = self.open.take() else { return };
        let index = self.output.len();
        let id = self.id(if is_thought { "rs" } else { "msg" });
        let item = if is_thought {
            let at = json!({"item_id": id, "output_index": index, "summary_index": 0});
            self.part_done(
                at,
                ["response.reasoning_summary_text.done", "response.reasoning_summary_part.done"],
                &text,
            );
            let sealed = format!("sealed {id}");
            json!({"id": id, "type": "reasoning", "encrypted_content": sealed, "summary": [summary(&text)]})
        } else {
            let at = json!({"item_id": id, "output_index": index, "content_index": 0});
            self.part_done(at, ["response.output_text.done", "response.content_part.done"], &text);
            json!({
                "id": id, "type": "message", "status": "completed", "role": "assistant", "content": [words(&text)],
            })
        };
        self.item_done(item);
    }

    fn part_done(&mut self, at: Value, [text_done, part_done]: [&str; 2], text: &str) {
        let mut whole = at.clone();
        whole["text"] = text.into();
        self.event(text_done, whole);
        let mut part = at;
        part["part"] = if text_done.contains("summary") { summary(text) } else { words(text) };
        self.event(part_done, part);
    }

    /// Says a call with its arguments in two pieces.
    fn call(&mut self, name: &str, arguments: &str) {
        self.begin();
        self.close();
        let (index, id) = (self.output.len(), self.id("fc"));
        let mut item = json!({
            "id": id, "type": "function_call", "status": "in_progress", "arguments": "",
            "call_id": format!("call_{}_{}", self.n, self.n_calls), "name": name,
        });
        self.n_calls += 1;
        self.event("response.output_item.added", json!({"output_index": index, "item": item}));
        let middle = arguments.floor_char_boundary(arguments.len() / 2);
        for piece in [&arguments[..middle], &arguments[middle..]] {
            let piece = json!({"item_id": id, "output_index": index, "delta": piece});
            self.event("response.function_call_arguments.delta", piece);
        }
        let whole = json!({"item_id": id, "output_index": index, "arguments": arguments});
        self.event("response.function_call_arguments.done", whole);
        (item["status"], item["arguments"]) = ("completed".into(), arguments.into());
        self.item_done(item);
    }

    fn item_done(&mut self, item: Value) {
        let index = self.output.len();
        self.event("response.output_item.done", json!({"output_index": index, "item": item}));
        self.output.push(item);
    }
}

fn summary(text: &str) -> Value {
    json!({"type": "summary_text", "text": text})
}

fn words(text: &str) -> Value {
    json!({"type": "output_text", "annotations": [], "logprobs": [], "text": text})
}
