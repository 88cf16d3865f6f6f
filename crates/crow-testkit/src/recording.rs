//! Recorded requests and answers, read from the files written by `CROW_RECORD`, for replay.
//!
//! Each line of a file is a JSON value: the request, the head of the answer, its pieces, its end.
#![expect(clippy::expect_used, clippy::panic, reason = "a recording that cannot be played fails the test")]

#[cfg(test)]
mod tests;

use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use crate::environment::hide_environment;
use crate::{Answer, Script, Step};

/// Fields of a request that depend on directory, time or user.
const VOLATILE_FIELDS: [&str; 6] =
    ["system", "instructions", "prompt_cache_key", "user", "metadata", "safety_identifier"];

/// The number of characters of a value in a difference.
const SHOWN_CHARS: usize = 200;

/// Recorded requests and answers in their order.
#[derive(Debug)]
pub(crate) struct Recording {
    exchanges: Vec<RecordedExchange>,
}

#[derive(Debug)]
struct RecordedExchange {
    name: String,
    path: String,
    body: Value,
    answer: Answer,
    is_answered: bool,
}

impl Recording {
    /// Reads a file, or all files of a directory sorted by name.
    #[track_caller]
    pub(crate) fn read(recording: &Path) -> Self {
        let mut files = vec![recording.to_owned()];
        if recording.is_dir() {
            let entries = std::fs::read_dir(recording).expect("the folder can be read");
            files = entries.map(|entry| entry.expect("the folder can be read").path()).collect();
            files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
            files.sort();
        }
        Self { exchanges: files.iter().map(|file| RecordedExchange::read(file)).collect() }
    }

    /// Returns the answer to a request, or the reason why there is none.
    pub(crate) fn take_answer(&mut self, path: &str, request: &Value) -> Result<Answer, String> {
        let mut reason = None;
        for exchange in self.exchanges.iter_mut().filter(|exchange| !exchange.is_answered) {
            match exchange.find_difference(path, request) {
                None => {
                    exchange.is_answered = true;
                    return Ok(exchange.answer.clone());
                }
                Some(difference) => reason = reason.or(Some(format!("{}: {difference}", exchange.name))),
            }
        }
        Err(reason.unwrap_or_else(|| "everything recorded was asked already".to_owned()))
    }
}

impl RecordedExchange {
    #[track_caller]
    fn read(file: &Path) -> Self {
        let text = std::fs::read_to_string(file).expect("the recording can be read");
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let parse_line = |line: &str| match serde_json::from_str::<Value>(line) {
            Ok(parse_line) => parse_line,
            Err(error) => panic!("{name}: {error}"),
        };
        let mut lines = text.lines().map(parse_line);
        let Some(head) = lines.next().filter(|head| head["recording"] == 1) else {
            panic!("{name} is no recording of a format that is known")
        };
        let steps = lines.flat_map(|line| parse_steps(&name, &line)).collect::<Vec<_>>();
        let path = head["path"].as_str().unwrap_or_default().to_owned();
        Self { name, path, body: head["body"].clone(), answer: Answer::new(steps), is_answered: false }
    }

    /// Returns the difference of a request from this one. Providers have different base URLs.
    fn find_difference(&self, path: &str, request: &Value) -> Option<String> {
        let last_segment = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        if last_segment(path) != last_segment(&self.path) {
            return Some(format!("it was sent to {}, not to {path}", self.path));
        }
        find_difference(&mut String::from("$"), &comparable_request(&self.body), &comparable_request(request))
    }
}

impl Script {
    /// Reads the answers of a recording, which are given in order whatever is asked. They stay valid when prompts and tools
    /// change, which a replay of requests and answers does not.
    #[track_caller]
    pub fn recorded(recording: &Path) -> Self {
        let exchanges = Recording::read(recording).exchanges;
        Self { answers: exchanges.into_iter().map(|exchange| exchange.answer).collect() }
    }
}

/// Parses a line of a recording into steps.
fn parse_steps(name: &str, line: &Value) -> Vec<Step> {
    if let Some(code) = line["status"].as_u64() {
        let headers = line["headers"].as_object().into_iter().flatten();
        let headers = headers
            .map(|(name, value)| Step::Header(name.clone(), value.as_str().unwrap_or_default().to_owned()));
        let code = u16::try_from(code).unwrap_or_default();
        // An empty body is a body too.
        return std::iter::once(Step::Code(code)).chain(headers).chain([Step::Raw(Vec::new())]).collect();
    }
    if let Some(text) = line["text"].as_str() {
        return vec![Step::Raw(text.as_bytes().to_vec())];
    }
    if let Some(text) = line["base64"].as_str() {
        return vec![Step::Raw(BASE64_STANDARD.decode(text).expect("it is base64"))];
    }
    match line["end"].as_str() {
        _ if line["incomplete"] == true => panic!("{name} is incomplete"),
        Some("whole") => Vec::new(),
        // The client disconnected at this point, and will do so again.
        Some("left") => vec![Step::Hold],
        Some("broken") => vec![Step::Disconnect],
        Some(_) | None => panic!("{name} has a line of no kind that is known: {line}"),
    }
}

/// Removes the parts of a request that vary between runs.
fn comparable_request(request: &Value) -> Value {
    let mut request = request.clone();
    if let Some(fields) = request.as_object_mut() {
        fields.retain(|name, _| !VOLATILE_FIELDS.contains(&name.as_str()));
    }
    for list in ["messages", "input"] {
        for message in request.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            if message["role"] == "system" || message["role"] == "developer" {
                message["content"] = Value::Null;
            }
        }
    }
    hide_environment(&mut request);
    request
}

/// Returns the first difference of two values.
fn find_difference(path: &mut String, recorded: &Value, actual: &Value) -> Option<String> {
    let len = path.len();
    match (recorded, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            let names = expected.keys().chain(actual.keys().filter(|name| !expected.contains_key(*name)));
            for name in names {
                path.push_str(&format!(".{name}"));
                let (expected, actual) = (expected.get(name), actual.get(name));
                let difference = match (expected, actual) {
                    (Some(expected), Some(actual)) => find_difference(path, expected, actual),
                    (expected, actual) => Some(describe_difference(path, expected, actual)),
                };
                path.truncate(len);
                if difference.is_some() {
                    return difference;
                }
            }
            None
        }
        (Value::Array(expected), Value::Array(actual)) => {
            (0..expected.len().max(actual.len())).find_map(|index| {
                path.push_str(&format!("[{index}]"));
                let difference = match (expected.get(index), actual.get(index)) {
                    (Some(expected), Some(actual)) => find_difference(path, expected, actual),
                    (expected, actual) => Some(describe_difference(path, expected, actual)),
                };
                path.truncate(len);
                difference
            })
        }
        (expected, actual) => {
            (expected != actual).then(|| describe_difference(path, Some(expected), Some(actual)))
        }
    }
}

fn describe_difference(path: &str, recorded: Option<&Value>, actual: Option<&Value>) -> String {
    let render = |value: Option<&Value>| match value {
        Some(value) => value.to_string().chars().take(SHOWN_CHARS).collect(),
        None => "nothing".to_owned(),
    };
    format!("{path} was {}, and is {}", render(recorded), render(actual))
}
