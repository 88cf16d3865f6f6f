//! A small MCP server on stdin and stdout, written by hand so that it can misbehave.
//!
//! It runs as the program `crow-fake-mcp-server`; its arguments select the behaviors, see [`command`].

#![expect(clippy::needless_pass_by_value, reason = "`json!` reads best in place")]

mod extras;

use std::{
    io::{self, BufRead, Write},
    path::Path,
    process,
    time::Duration,
};

use serde_json::{Map, Value, json};

use crate::helper_binary::helper_path;

/// Several megabytes, far more than a pipe's buffer.
const NOISE_LINES: usize = 10_000;

/// More than a client should accept in one message.
const HUGE_RESULT_BYTES: usize = 40 * 1024 * 1024;

/// The interval for checking whether a file exists.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Returns the program and arguments of a server. The behaviors make it do more, or misbehave:
///
/// - `silent`: never answers; `broken`: writes to stderr and exits at once; `refusing`: rejects the handshake
/// - `garbage`: prints lines that are not messages in between
/// - `pages`: lists one tool per page; `endless`: the pages never end; `many`: lists 200 tools, `thousands` 1100
/// - `odd`: lists malformed tools and schemas
/// - `late=FILE`: starts when the file exists
/// - `stubborn`: keeps running when its input ends
/// - `prompts`, `resources`: has some, and a tool `more-prompts`
/// - `circle`: every page leads to itself; `storm`: sends thousands of list changes, see its tool `lists`
/// - `stray`: sends responses without a request; `noisy`: writes megabytes to stderr; `vast`: its tool `vast` returns too
///   much
/// - `notes`: its tool `find_note` crashes
/// - `github`: its tools `list_issues` and `issue_write` accept the arguments of GitHub's tools and echo them
/// - `asking`: its tool `ask` sends a request to the client and returns the response; its
///   argument `params` replaces the parameters, and the response is also written to the file `marker`
///
/// # Panics
/// If the program `crow-fake-mcp-server` is missing or out of date.
#[track_caller]
pub fn command(behaviors: &[&str]) -> (String, Vec<String>) {
    let program = helper_path("crow-fake-mcp-server");
    (program, behaviors.iter().map(|behavior| (*behavior).to_owned()).collect())
}

/// Serves until the input ends, then exits.
pub fn serve(behaviors: Vec<String>) -> ! {
    let mut server = FakeServer {
        behaviors,
        hanging_calls: Vec::new(),
        asking_call: None,
        answer_file: String::new(),
        n_extra_items: 0,
        n_lists: 0,
    };
    server.start();
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        if let Ok(message) = serde_json::from_str(&line) {
            server.handle_message(&message);
        }
    }
    if server.has_behavior("stubborn") {
        loop {
            std::thread::park();
        }
    }
    process::exit(0);
}

struct FakeServer {
    behaviors: Vec<String>,
    /// Calls that wait for cancellation, with the file to write then.
    hanging_calls: Vec<(Value, String)>,
    /// The call that sent a request to the client.
    asking_call: Option<Value>,
    /// The file for the response to it; empty for none.
    answer_file: String,
    n_extra_items: usize,
    n_lists: usize,
}

impl FakeServer {
    fn has_behavior(&self, behavior: &str) -> bool {
        self.behaviors.iter().any(|known| known == behavior)
    }

    fn start(&self) {
        if self.has_behavior("broken") {
            write_stderr("cannot find the frobnicator\n");
            process::exit(7);
        }
        if self.has_behavior("noisy") {
            (0..NOISE_LINES).for_each(|line| write_stderr(&format!("{line} {}\n", "noise".repeat(100))));
        }
        for file in self.behaviors.iter().filter_map(|behavior| behavior.strip_prefix("late=")) {
            wait_for_file(file);
        }
    }

    fn write_line(&self, text: &str) {
        let mut stdout = io::stdout().lock();
        // A client that does not read has gone.
        let _ = stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.write_all(b"\n"))
            .and_then(|()| stdout.flush());
    }

    fn send(&self, message: Value) {
        if self.has_behavior("garbage") {
            self.write_line("Listening on port 3000 ...\n{\"jsonrpc\": \"2.0\", \"id\"");
        }
        // Sent only after a request of the client.
        if self.has_behavior("stray") && self.n_lists > 0 {
            self.write_line(&json!({"jsonrpc": "2.0", "id": 99_999, "result": {"tools": []}}).to_string());
            self.write_line(
                &json!({"jsonrpc": "2.0", "id": "none", "error": {"code": 1, "message": "?"}}).to_string(),
            );
        }
        self.write_line(&message.to_string());
    }

    fn reply(&self, id: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn reply_error(&self, id: &Value, code: i64, message: &str) {
        self.send(json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}));
    }

    fn handle_message(&mut self, message: &Value) {
        let (id, params) = (&message["id"], &message["params"]);
        match message["method"].as_str().unwrap_or_default() {
            _ if self.has_behavior("silent") => {}
            "initialize" if self.has_behavior("refusing") => self.reply_error(id, -32000, "not today"),
            "initialize" => self.reply(
                id,
                json!({
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": self.capabilities(),
                    "serverInfo": {"name": "test", "version": "1"},
                }),
            ),
            "notifications/initialized" => self.send_list_changes(),
            "tools/list" => {
                self.n_lists += 1;
                self.list_tools(id, params["cursor"].as_str());
                self.send_list_changes();
            }
            "prompts/list" => self.reply(id, self.list_prompts()),
            "prompts/get" => self.get_prompt(id, params),
            "resources/list" => self.reply(id, self.list_resources(params["cursor"].as_str())),
            "resources/templates/list" => self.reply(id, extras::list_templates()),
            "resources/read" => self.read_resource(id, params),
            "" if self.asking_call.is_some() => self.on_response(message),
            "tools/call" => self.call_tool(id, params),
            "notifications/cancelled" => {
                let request = &params["requestId"];
                for (_, marker) in self.hanging_calls.iter().filter(|(id, _)| id == request) {
                    let _ = std::fs::write(marker, params["reason"].as_str().unwrap_or_default());
                }
            }
            _ if !id.is_null() => self.reply_error(id, -32601, "no such method"),
            _ => {}
        }
    }

    fn list_tools(&self, id: &Value, cursor: Option<&str>) {
        let mut tools = if self.has_behavior("odd") { malformed_tools() } else { self.tools() };
        let n_many = [("many", 200), ("thousands", 1100)];
        if let Some((_, n_tools)) = n_many.iter().find(|(behavior, _)| self.has_behavior(behavior)) {
            tools = (0..*n_tools).map(|number| tool_json(&format!("tool-{number}"))).collect();
        }
        if self.has_behavior("circle") {
            return self.reply(id, json!({"tools": tools, "nextCursor": "again"}));
        }
        if self.has_behavior("pages") || self.has_behavior("endless") {
            let page: usize = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
            let is_last = page + 1 >= tools.len() && !self.has_behavior("endless");
            let next = if is_last { Value::Null } else { json!((page + 1).to_string()) };
            let page: Vec<Value> = tools.into_iter().skip(page).take(1).collect();
            return self.reply(id, json!({"tools": page, "nextCursor": next}));
        }
        self.reply(id, json!({"tools": tools}));
    }

    fn tools(&self) -> Vec<Value> {
        let names = [
            "echo",
            "read",
            "env",
            "image",
            "huge",
            "fail",
            "refuse",
            "structured",
            "mixed",
            "odd",
            "progress",
            "hang",
            "die",
            "more",
        ];
        let extra_tools = (1..=self.n_extra_items).map(|number| tool_json(&format!("more-{number}")));
        names.iter().copied().chain(self.extra_tool_names()).map(tool_json).chain(extra_tools).collect()
    }

    fn call_tool(&mut self, id: &Value, params: &Value) {
        let arguments = params["arguments"].as_object().cloned().unwrap_or_default();
        let text_argument =
            |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        match params["name"].as_str().unwrap_or_default() {
            "hang" => self.hanging_calls.push((id.clone(), text_argument("marker"))),
            "die" | "find_note" => {
                write_stderr(&text_argument("words"));
                process::exit(3);
            }
            "ask" => self.send_request(id, &text_argument("method"), &arguments),
            "lists" => self.reply(id, text(&self.n_lists.to_string())),
            "more-prompts" => {
                self.n_extra_items += 1;
                self.send(json!({"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"}));
                self.reply(id, text("there is another prompt"));
            }
            "vast" => self.reply(id, text(&"v".repeat(HUGE_RESULT_BYTES))),
            "refuse" => self.reply_error(id, -32602, "the \u{1b}colour is missing"),
            "progress" => {
                let token = &params["_meta"]["progressToken"];
                let progress =
                    json!({"progressToken": token, "progress": 1, "total": 2, "message": "half way"});
                self.send(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}));
                wait_for_file(&text_argument("until"));
                self.reply(id, text("all the way"));
            }
            "more" => {
                self.n_extra_items += 1;
                self.send(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
                self.reply(id, text("there is more"));
            }
            "env" => {
                #[expect(clippy::disallowed_methods, reason = "what is in it is the question")]
                let value = std::env::var(text_argument("name")).unwrap_or_else(|_| "(not set)".to_owned());
                self.reply(id, text(&value));
            }
            name => self.reply(id, tool_result(name, &arguments)),
        }
    }
}

fn tool_json(name: &str) -> Value {
    let parameters: &[&str] = match name {
        "list_issues" => &["owner", "repo"],
        "issue_write" => &["owner", "repo", "method", "title", "body"],
        _ => &["text"],
    };
    let parameters: Map<String, Value> =
        parameters.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    json!({
        "name": name,
        "title": "Harmless",
        "description": format!("Does {name}."),
        "inputSchema": {"type": "object", "properties": parameters},
        "annotations": {"readOnlyHint": true},
    })
}

fn malformed_tools() -> Vec<Value> {
    vec![
        json!({"description": "has no name"}),
        json!("a text"),
        json!({"name": "no-schema"}),
        json!({"name": "list-schema", "inputSchema": ["text"]}),
        json!({"name": "text-schema", "inputSchema": {"type": "string"}}),
        json!({"name": "bare-schema", "inputSchema": {}}),
        json!({"name": "huge-schema", "inputSchema": {"type": "object", "title": "x".repeat(100_000)}}),
        json!({"name": "wordy", "description": format!("a\u{1b}[31m{}", "ü".repeat(100_000)), "inputSchema": {"type": "object"}}),
        json!({"name": "weird näme/with.dots", "inputSchema": {"type": "object"}}),
        json!({"name": "weird_n_me/with.dots", "inputSchema": {"type": "object"}}),
        json!({"name": "n".repeat(100), "inputSchema": {"type": "object"}}),
        json!({"name": "n".repeat(1000), "inputSchema": {"type": "object"}}),
        json!({"name": "no-schema", "description": "again"}),
    ]
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn tool_result(name: &str, arguments: &Map<String, Value>) -> Value {
    let image = json!({"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="});
    match name {
        "image" => json!({"content": [{"type": "text", "text": "look:"}, image]}),
        "huge" => text(&"ü".repeat(500_000)),
        "fail" => json!({"content": [{"type": "text", "text": "it did not work"}], "isError": true}),
        "structured" => json!({"content": [], "structuredContent": {"n": 1}}),
        "mixed" => json!({"content": [
            {"type": "resource", "resource": {"uri": "note://1", "text": "a note"}},
            {"type": "resource_link", "uri": "file:///a", "name": "a", "description": "the first"},
            {"type": "resource", "resource": {"uri": "blob://1", "blob": "AAAA"}},
            {"type": "audio", "mimeType": "audio/wav", "data": "AAAA"},
            {"type": "image", "mimeType": "image/svg+xml", "data": "AAAA"},
            {"type": "image", "mimeType": "image/png", "data": "not base64!"},
            image,
            {"type": "text", "text": "the end"},
        ]}),
        "odd" => {
            json!({"content": [{"type": "hologram", "text": "?"}, {"type": "text", "text": "and text"}]})
        }
        _ => text(&Value::Object(arguments.clone()).to_string()),
    }
}

fn write_stderr(text: &str) {
    // A client that does not read has gone.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

fn wait_for_file(file: &str) {
    while !Path::new(file).exists() {
        std::thread::sleep(POLL_INTERVAL);
    }
}
