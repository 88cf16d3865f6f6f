//! The fake server's prompts, resources and requests to its client.

use serde_json::{Map, Value, json};

use super::{FakeServer, text};

/// The number of notifications in a storm.
const STORM_NOTIFICATIONS: usize = 2000;

/// The id of the request to the client.
const QUESTION_ID: &str = "from the server";

/// The number of lines of the long resource.
const LONG_RESOURCE_LINES: usize = 10_000;

impl FakeServer {
    pub(super) fn capabilities(&self) -> Value {
        let mut capabilities = json!({"tools": {"listChanged": true}});
        for behavior in ["prompts", "resources"].into_iter().filter(|word| self.has_behavior(word)) {
            capabilities[behavior] = json!({"listChanged": true});
        }
        capabilities
    }

    /// Returns the names of tools that only some servers have.
    pub(super) fn extra_tool_names(&self) -> impl Iterator<Item = &'static str> {
        let names = [
            ("prompts", "more-prompts"),
            ("storm", "lists"),
            ("asking", "ask"),
            ("vast", "vast"),
            ("notes", "find_note"),
            ("github", "list_issues"),
            ("github", "issue_write"),
        ];
        names.into_iter().filter(|(behavior, _)| self.has_behavior(behavior)).map(|(_, name)| name)
    }

    pub(super) fn send_list_changes(&self) {
        if self.has_behavior("storm") {
            for list in (0..STORM_NOTIFICATIONS).map(|number| ["tools", "prompts", "resources"][number % 3]) {
                self.send(json!({"jsonrpc": "2.0", "method": format!("notifications/{list}/list_changed")}));
            }
        }
    }

    pub(super) fn send_request(&mut self, id: &Value, method: &str, arguments: &Map<String, Value>) {
        self.asking_call = Some(id.clone());
        self.answer_file = arguments.get("marker").and_then(Value::as_str).unwrap_or_default().to_owned();
        let message = json!({"role": "user", "content": {"type": "text", "text": "hello"}});
        let default_params = match method {
            "sampling/createMessage" => json!({"messages": [message], "maxTokens": 10}),
            "elicitation/create" => {
                json!({"message": "Your name?", "requestedSchema": {"type": "object", "properties": {}}})
            }
            _ => json!({}),
        };
        let params = arguments.get("params").unwrap_or(&default_params);
        self.send(json!({"jsonrpc": "2.0", "id": QUESTION_ID, "method": method, "params": params}));
    }

    pub(super) fn on_response(&mut self, response: &Value) {
        if response["id"] == QUESTION_ID
            && let Some(call) = self.asking_call.take()
        {
            let body = if response["error"].is_null() { &response["result"] } else { &response["error"] };
            if !self.answer_file.is_empty() {
                // The test looks for the file.
                let _ = std::fs::write(&self.answer_file, body.to_string());
            }
            self.reply(&call, text(&body.to_string()));
        }
    }

    pub(super) fn list_prompts(&self) -> Value {
        let argument = |name: &str, required: bool| json!({"name": name, "required": required});
        let mut prompts = vec![
            json!({"name": "plain", "description": "Says hello\nand more"}),
            json!({"name": "topic", "arguments": [argument("about", true)]}),
            json!({"name": "review", "description": "Reviews", "arguments": [
                argument("file", true), argument("depth", false),
            ]}),
            json!({"name": "talk", "title": "A talk"}),
            json!({"name": "1 odd näme!\u{1b}[31m", "description": "a\u{1b}[31mb"}),
            json!({"name": "empty"}),
            json!({"name": "plain", "description": "the same name again"}),
            json!({"name": ""}),
            json!({"name": "n".repeat(1000)}),
            json!("a text"),
        ];
        prompts.extend((1..=self.n_extra_items).map(|number| json!({"name": format!("more-{number}")})));
        json!({"prompts": prompts})
    }

    pub(super) fn get_prompt(&self, id: &Value, params: &Value) {
        let user = |content: Value| json!({"role": "user", "content": content});
        let text_content = |text: String| json!({"type": "text", "text": text});
        let messages = match params["name"].as_str().unwrap_or_default() {
            "talk" => vec![
                user(text_content("What is this?".to_owned())),
                json!({"role": "assistant", "content": text_content("A talk.\nOf two.".to_owned())}),
                user(
                    json!({"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}),
                ),
                user(json!({"type": "resource", "resource": {"uri": "note://1", "text": "a note"}})),
                user(json!({"type": "hologram"})),
            ],
            "empty" => vec![],
            "1 odd näme!\u{1b}[31m" => return self.reply_error(id, -32602, "it is too odd"),
            name => vec![user(text_content(format!("Do {name} with {}", params["arguments"])))],
        };
        self.reply(id, json!({"messages": messages}));
    }

    pub(super) fn list_resources(&self, cursor: Option<&str>) -> Value {
        if !self.has_behavior("resources") {
            return json!({"resources": []});
        }
        match cursor {
            None => json!({
                "resources": [
                    {"uri": "note://1", "name": "first", "mimeType": "text/plain", "description": "A\nnote"},
                    {"uri": "note://long", "name": "long"},
                    {"name": "without an address"},
                    "a text",
                ],
                "nextCursor": "two",
            }),
            Some(_) => json!({"resources": [{"uri": "picture://1", "name": "a\u{1b}b"}]}),
        }
    }

    pub(super) fn read_resource(&self, id: &Value, params: &Value) {
        let uri = params["uri"].as_str().unwrap_or_default();
        let long_text = || (0..LONG_RESOURCE_LINES).map(|line| format!("line {line}\n")).collect::<String>();
        let contents = match uri {
            "note://1" => json!([{"uri": uri, "text": "one"}, {"uri": "note://2", "text": "two"}]),
            "note://long" => json!([{"uri": uri, "text": long_text()}]),
            "picture://1" => json!([
                {"uri": uri, "mimeType": "image/png", "blob": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="},
                {"uri": uri, "mimeType": "application/zip", "blob": "AAAA"},
            ]),
            _ => return self.reply_error(id, -32002, "there is no such resource"),
        };
        self.reply(id, json!({"contents": contents}));
    }
}

pub(super) fn list_templates() -> Value {
    json!({"resourceTemplates": [{"uriTemplate": "note://{number}", "name": "notes"}]})
}
