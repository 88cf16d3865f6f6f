//! A collector of spans: takes only what the protocol's JSON encoding permits, and renders the spans as a tree.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value};

/// Attributes whose values differ each time.
const VARYING: [&str; 3] = ["gen_ai.conversation.id", "gen_ai.response.time_to_first_chunk", "server.port"];

/// The behavior of a collector.
#[derive(Debug, Clone, Copy)]
pub(super) enum CollectorBehavior {
    /// Answers with this status.
    Answers(u16),
    /// Reads requests and never answers.
    Silent,
}

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(super) struct ExportRequest {
    pub(super) head: String,
    pub(super) body: String,
}

/// A collector on the loopback.
pub(super) struct FakeCollector {
    pub(super) url: String,
    requests: Arc<Mutex<Vec<ExportRequest>>>,
}

impl FakeCollector {
    pub(super) fn start(behavior: CollectorBehavior) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it has an address"));
        let requests = Arc::<Mutex<Vec<ExportRequest>>>::default();
        let shared = requests.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = shared.clone();
                std::thread::spawn(move || serve(client, behavior, &shared));
            }
        });
        Self { url, requests }
    }

    /// Returns the requests so far.
    pub(super) fn requests(&self) -> Vec<ExportRequest> {
        self.requests.lock().expect("no thread panicked").clone()
    }

    /// Checks all requests and renders their spans, each below its parent.
    #[track_caller]
    pub(super) fn tree(&self) -> String {
        let bodies = self.requests().into_iter().map(|request| serde_json::from_str(&request.body));
        let bodies: Vec<Value> = bodies.map(|body| body.expect("it is JSON")).collect();
        let spans: Vec<&Map<String, Value>> = bodies.iter().flat_map(checked_spans).collect();
        let mut tree = String::new();
        render_children(&spans, None, 0, &mut tree);
        assert_eq!(tree.lines().filter(|line| !line.trim_start().starts_with('·')).count(), spans.len());
        tree
    }

    /// Renders the resource of the first request.
    #[track_caller]
    pub(super) fn resource(&self) -> String {
        let first = self.requests().into_iter().next().expect("a request arrived");
        let body: Value = serde_json::from_str(&first.body).expect("it is JSON");
        let attributes = checked_attributes(&body["resourceSpans"][0]["resource"]["attributes"]);
        attributes.into_iter().map(|(name, value)| format!("{name}={value}\n")).collect()
    }
}

fn serve(client: TcpStream, behavior: CollectorBehavior, requests: &Mutex<Vec<ExportRequest>>) {
    let mut answers = client.try_clone().expect("it can be copied");
    let mut reader = BufReader::new(client);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if !matches!(reader.read_line(&mut head), Ok(1..)) {
                return;
            }
        }
        let length = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        let mut body = vec![0; length.unwrap_or_default()];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let body = String::from_utf8(body).expect("JSON is UTF-8");
        requests.lock().expect("no thread panicked").push(ExportRequest { head, body });
        if let CollectorBehavior::Answers(status) = behavior {
            let answer = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}"
            );
            if answers.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }
}

/// Returns an object that has these fields and no others.
#[track_caller]
fn checked_object<'a>(value: &'a Value, required: &[&str], optional: &[&str]) -> &'a Map<String, Value> {
    let object = value.as_object().expect("an object");
    for name in required {
        assert!(object.contains_key(*name), "{name} is missing in {value}");
    }
    for name in object.keys() {
        assert!(required.contains(&&**name) || optional.contains(&&**name), "{name} is unknown in {value}");
    }
    object
}

#[track_caller]
fn only_item(value: &Value) -> &Value {
    let items = value.as_array().expect("a list");
    assert_eq!(items.len(), 1, "{value}");
    &items[0]
}

#[track_caller]
fn checked_spans(body: &Value) -> impl Iterator<Item = &Map<String, Value>> {
    let resource = only_item(&checked_object(body, &["resourceSpans"], &[])["resourceSpans"]);
    let resource = checked_object(resource, &["resource", "scopeSpans"], &[]);
    checked_object(&resource["resource"], &["attributes"], &[]);
    let scope = checked_object(only_item(&resource["scopeSpans"]), &["scope", "spans"], &[]);
    checked_object(&scope["scope"], &["name", "version"], &[]);
    let spans = scope["spans"].as_array().expect("a list");
    assert!(!spans.is_empty(), "a request without spans");
    spans.iter().map(checked_span)
}

#[track_caller]
fn checked_span(value: &Value) -> &Map<String, Value> {
    const FIELDS: [&str; 8] =
        ["traceId", "spanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano", "attributes", "status"];
    let span = checked_object(value, &FIELDS, &["parentSpanId"]);
    let is_id = |name: &str, n_digits: usize| {
        let id = span[name].as_str().expect("an ID is a string");
        let is_hex = id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        assert!(id.len() == n_digits && is_hex && id.contains(|digit| digit != '0'), "{name}: {id}");
    };
    is_id("traceId", 32);
    is_id("spanId", 16);
    if span.contains_key("parentSpanId") {
        is_id("parentSpanId", 16);
    }
    let time =
        |name: &str| -> u64 { span[name].as_str().expect("a time is a string").parse().expect("a number") };
    assert!(time("startTimeUnixNano") > 1_500_000_000_000_000_000, "{value}");
    assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"), "{value}");
    assert!(matches!(span["kind"].as_u64(), Some(1..=5)), "{value}");
    assert!(
        matches!(checked_object(&span["status"], &["code"], &[])["code"].as_u64(), Some(0..=2)),
        "{value}"
    );
    assert!(!span["name"].as_str().expect("a string").is_empty());
    span
}

/// Returns the attributes as text, without those that differ each time.
#[track_caller]
fn checked_attributes(value: &Value) -> BTreeMap<String, String> {
    let mut attributes = BTreeMap::new();
    for attribute in value.as_array().expect("a list") {
        let attribute = checked_object(attribute, &["key", "value"], &[]);
        let name = attribute["key"].as_str().expect("a string").to_owned();
        let value = render_value(&attribute["value"]);
        let shown = if VARYING.contains(&&*name) { "…".to_owned() } else { value };
        assert_eq!(attributes.insert(name, shown), None, "an attribute is there twice");
    }
    attributes
}

#[track_caller]
fn render_value(value: &Value) -> String {
    let object = value.as_object().expect("an object");
    let (kind, content) = object.iter().next().expect("a value");
    assert_eq!(object.len(), 1, "{value}");
    match &**kind {
        "stringValue" => content.as_str().expect("a string").to_owned(),
        "intValue" => content.as_str().expect("a string").parse::<i64>().expect("a number").to_string(),
        "doubleValue" => content.as_f64().expect("a number").to_string(),
        "boolValue" => content.as_bool().expect("a bool").to_string(),
        "arrayValue" => {
            let values = checked_object(content, &["values"], &[])["values"].as_array().expect("a list");
            format!("[{}]", values.iter().map(render_value).collect::<Vec<_>>().join(", "))
        }
        kind => unreachable!("{kind} is no kind of value"),
    }
}

fn render_children(spans: &[&Map<String, Value>], parent: Option<&Value>, depth: usize, tree: &mut String) {
    let mut children: Vec<_> = spans.iter().filter(|span| span.get("parentSpanId") == parent).collect();
    children.sort_by_key(|span| span["startTimeUnixNano"].as_str().map(str::to_owned));
    let indent = "  ".repeat(depth);
    for span in children {
        let kind = if span["kind"] == 3 { "client" } else { "internal" };
        let failed = if span["status"]["code"] == 2 { ", error" } else { "" };
        // Writing to a string cannot fail.
        let _ = writeln!(tree, "{indent}{} ({kind}{failed})", span["name"].as_str().unwrap_or_default());
        for (name, value) in checked_attributes(&span["attributes"]) {
            let _ = writeln!(tree, "{indent}  · {name}={value}");
        }
        let same_trace: Vec<_> =
            spans.iter().copied().filter(|other| other["traceId"] == span["traceId"]).collect();
        render_children(&same_trace, Some(&span["spanId"]), depth + 1, tree);
    }
}
