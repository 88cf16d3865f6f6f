//! The model: HTTP by hand on threads, with time stamps.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use serde_json::{Value, json};

/// Chooses the answer to a request from its body.
pub(crate) type PlanChooser = Arc<dyn Fn(&Value) -> Plan + Send + Sync>;

/// The answer to the next request.
#[derive(Clone)]
pub(crate) enum Plan {
    /// This many chunks of text.
    Words(usize),
    /// A call of `read`, then text after its result.
    ReadThenWords,
    /// Tool calls: names and JSON arguments.
    Calls(Vec<(&'static str, Value)>),
    /// Nothing until the gate is open, then this many chunks of text.
    Gated(usize),
    /// One chunk, then silence until the client hangs up.
    Hold,
    /// A text.
    Text(&'static str),
    /// The answers to this and all later requests.
    Chosen(PlanChooser),
}

/// Arrival of a request and start of its answer.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    pub(crate) arrived: Instant,
    pub(crate) first_byte: Instant,
}

#[derive(Default)]
struct ModelState {
    plans: VecDeque<Plan>,
    /// Permanent answers to conversations whose first prompt contains a text.
    by_prompt: Vec<(String, Plan)>,
    /// Arrival times of their requests.
    begun: Vec<Instant>,
    is_open: bool,
    requests: Vec<Request>,
    /// The latest request without such an answer.
    body: String,
    hung_up: Option<Instant>,
}

pub(crate) struct Model {
    port: u16,
    state: Arc<(Mutex<ModelState>, Condvar)>,
}

impl Model {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let state: Arc<(Mutex<ModelState>, Condvar)> = Arc::default();
        let shared = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = shared.clone();
                std::thread::spawn(move || serve(stream, &state));
            }
        });
        Self { port, state }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn plan(&self, plan: Plan) {
        self.state.0.lock().unwrap().plans.push_back(plan);
    }

    /// Answers all requests of conversations whose first prompt contains a text.
    pub(crate) fn answer_to(&self, text: &str, plan: Plan) {
        self.state.0.lock().unwrap().by_prompt.push((text.to_owned(), plan));
    }

    /// Resets everything and closes the gate.
    pub(crate) fn forget(&self) {
        *self.state.0.lock().unwrap() = ModelState::default();
    }

    /// Returns the arrival times of requests that were answered by their first prompt.
    pub(crate) fn begun(&self) -> Vec<Instant> {
        self.state.0.lock().unwrap().begun.clone()
    }

    pub(crate) fn open_gate(&self) {
        self.state.0.lock().unwrap().is_open = true;
        self.state.1.notify_all();
    }

    pub(crate) fn last(&self) -> Request {
        *self.state.0.lock().unwrap().requests.last().unwrap()
    }

    pub(crate) fn last_two(&self) -> (Request, Request) {
        let state = self.state.0.lock().unwrap();
        let n = state.requests.len();
        (state.requests[n - 2], state.requests[n - 1])
    }

    pub(crate) fn last_body(&self) -> String {
        self.state.0.lock().unwrap().body.clone()
    }

    /// Waits until the client of a held answer disconnects; returns when it did.
    pub(crate) fn hung_up(&self) -> Instant {
        let mut state = self.state.0.lock().unwrap();
        loop {
            if let Some(when) = state.hung_up.take() {
                return when;
            }
            state = self.state.1.wait(state).unwrap();
        }
    }
}

impl ModelState {
    fn next(&mut self, body: &str, has_result: bool, arrived: Instant) -> Plan {
        if !self.by_prompt.is_empty() {
            let prompt = first_prompt(body);
            if let Some((_, plan)) = self.by_prompt.iter().find(|(text, _)| prompt.contains(text)) {
                let plan = plan.clone();
                self.begun.push(arrived);
                return plan;
            }
        }
        if let Some(Plan::Chosen(choose)) = self.plans.front() {
            return choose(&serde_json::from_str(body).unwrap());
        }
        body.clone_into(&mut self.body);
        match self.plans.front() {
            Some(Plan::ReadThenWords) if !has_result => Plan::ReadThenWords,
            Some(Plan::ReadThenWords) => {
                self.plans.pop_front();
                Plan::Words(3)
            }
            _ => self.plans.pop_front().unwrap_or(Plan::Words(1)),
        }
    }
}

/// Returns the first user message of a request.
fn first_prompt(body: &str) -> String {
    let request: Value = serde_json::from_str(body).unwrap();
    let messages = request["messages"].as_array().cloned().unwrap_or_default();
    let prompt = messages.iter().find(|message| message["role"] == "user");
    prompt.map(|message| message["content"].to_string()).unwrap_or_default()
}

fn serve(stream: TcpStream, shared: &(Mutex<ModelState>, Condvar)) {
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    while let Some(body) = read_request(&mut reader) {
        let arrived = Instant::now();
        let has_result = body.rfind("\"role\":\"tool\"") > body.rfind("\"role\":\"user\"");
        let plan = shared.0.lock().unwrap().next(&body, has_result, arrived);
        if let Plan::Gated(_) = plan {
            let state = shared.0.lock().unwrap();
            drop(shared.1.wait_while(state, |state| !state.is_open).unwrap());
        }
        let body = answer(&plan);
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        let framed = format!("{:x}\r\n{body}\r\n", body.len());
        let first_byte = Instant::now();
        shared.0.lock().unwrap().requests.push(Request { arrived, first_byte });
        let sent = stream.write_all(framed.as_bytes());
        if matches!(plan, Plan::Hold) {
            // Blocks until the client disconnects.
            let _ = stream.read(&mut [0]);
            shared.0.lock().unwrap().hung_up = Some(Instant::now());
            shared.1.notify_all();
            return;
        }
        if sent.is_err() || stream.write_all(b"0\r\n\r\n").is_err() {
            return;
        }
    }
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    String::from_utf8(body).ok()
}

fn answer(plan: &Plan) -> String {
    // As large as the chunks of real providers.
    let chunk = |delta: &str, finish: &str| {
        format!(
            "data: {{\"id\":\"chatcmpl-b1946ac92492d2347c6235b4d2611184\",\"object\":\"chat.completion.chunk\",\"created\":1763721600,\"model\":\"bench-model\",\"system_fingerprint\":\"fp_44709d6fcb\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n"
        )
    };
    let mut body = String::new();
    let finish = match plan {
        Plan::ReadThenWords => {
            body += &chunk(
                r#"{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"read","arguments":"{\"file_path\":\"file.txt\"}"}}]}"#,
                "null",
            );
            "\"tool_calls\""
        }
        Plan::Calls(calls) => {
            for (index, (name, arguments)) in calls.iter().enumerate() {
                let function = json!({"name": name, "arguments": arguments.to_string()});
                let call = json!([{"index": index, "id": format!("c{index}"), "type": "function", "function": function}]);
                body += &chunk(&json!({ "tool_calls": call }).to_string(), "null");
            }
            "\"tool_calls\""
        }
        Plan::Text(text) => {
            body += &chunk(&json!({ "content": text }).to_string(), "null");
            "\"stop\""
        }
        Plan::Chosen(_) => unreachable!("it was chosen from"),
        Plan::Hold => return chunk(r#"{"content":"word "}"#, "null"),
        Plan::Words(n) | Plan::Gated(n) => {
            let word = chunk(r#"{"content":"word "}"#, "null");
            body.reserve(word.len() * n + 1024);
            (0..*n).for_each(|_| body.push_str(&word));
            "\"stop\""
        }
    };
    body + &chunk("{}", finish) + "data: [DONE]\n\n"
}
