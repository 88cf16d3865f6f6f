//! The fake editor's files and terminals, limited to its declared capabilities.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::terminals::{MissingProgram, Terminals};

/// The capability that each method requires, by method prefix.
const METHOD_CAPABILITIES: [(&str, &str); 4] = [
    ("fs/read_text_file", "/fs/readTextFile"),
    ("fs/write_text_file", "/fs/writeTextFile"),
    ("terminal/", "/terminal"),
    ("elicitation/", "/elicitation/form"),
];

/// The capability that each kind of update requires, by prefix.
const UPDATE_CAPABILITIES: [(&str, &str); 2] =
    [("notice", "/session/notices"), ("compaction_", "/session/compaction")];

/// A fault in a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseFault {
    /// Responds with an error and does nothing.
    Error,
    /// Responds with `null` and does nothing.
    Null,
    /// Sends the same response twice.
    Twice,
    /// Responds after the agent's next message.
    Late,
    /// Never responds and does nothing.
    Silence,
}

impl ResponseFault {
    /// Parses the name of a fault.
    pub fn parse(name: &str) -> Option<Self> {
        let all = [Self::Error, Self::Null, Self::Twice, Self::Late, Self::Silence];
        all.into_iter().find(|fault| fault.name() == name)
    }

    /// The name of this fault.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// An editor's files, terminals and capabilities.
#[derive(Debug)]
pub struct Editor {
    capabilities: Value,
    /// Unsaved texts.
    pub buffers: BTreeMap<PathBuf, String>,
    faults: BTreeMap<String, VecDeque<ResponseFault>>,
    replaced_results: BTreeMap<String, Value>,
    terminals: Terminals,
    /// Terminals announced by the agent.
    announced: Vec<String>,
}

/// The response to a request.
pub(crate) enum EditorResponse {
    Ready(Result<Value, Value>),
    Pending(std::pin::Pin<Box<dyn Future<Output = Value> + Send>>),
}

impl Editor {
    pub(crate) fn new(home: &Path) -> Self {
        Self {
            capabilities: Value::Null,
            buffers: BTreeMap::new(),
            faults: BTreeMap::new(),
            replaced_results: BTreeMap::new(),
            terminals: Terminals::new(home),
            announced: Vec::new(),
        }
    }

    pub(crate) fn set_capabilities(&mut self, capabilities: Value) {
        self.capabilities = capabilities;
    }

    /// The declared capabilities.
    pub fn capabilities(&self) -> &Value {
        &self.capabilities
    }

    /// Makes the next response to a method faulty; several faults are used in order.
    pub fn fail_next(&mut self, method: &str, fault: ResponseFault) {
        self.faults.entry(method.to_owned()).or_default().push_back(fault);
    }

    /// Replaces the result of the next request of a method.
    pub fn replace_next_result(&mut self, method: &str, result: Value) {
        self.replaced_results.insert(method.to_owned(), result);
    }

    /// Removes the supervisor from the editor's machine.
    pub fn remove_supervisor(&mut self, missing: MissingProgram) {
        self.terminals.remove_supervisor(missing);
    }

    pub(crate) fn take_replaced_result(&mut self, method: &str) -> Option<Value> {
        self.replaced_results.remove(method)
    }

    /// Kills the commands of all terminals, as an editor does when its agent has exited.
    pub fn close_terminals(&mut self) {
        self.terminals.close_all();
    }

    /// Lists the terminals that the agent created and did not release.
    pub fn unreleased(&self) -> Vec<String> {
        self.terminals.unreleased()
    }

    /// Returns the last output of the released terminals, by id.
    pub fn released_outputs(&self) -> &BTreeMap<String, String> {
        self.terminals.released_outputs()
    }

    pub(crate) fn take_fault(&mut self, method: &str) -> Option<ResponseFault> {
        self.faults.get_mut(method)?.pop_front()
    }

    fn has_capability(&self, pointer: &str) -> bool {
        !matches!(self.capabilities.pointer(pointer), None | Some(Value::Null | Value::Bool(false)))
    }

    /// Returns an error if the client did not declare the capability for a method.
    pub(crate) fn undeclared_call(&self, method: &str) -> Option<String> {
        let (_, capability) = METHOD_CAPABILITIES.iter().find(|(prefix, _)| method.starts_with(prefix))?;
        (!self.has_capability(capability))
            .then(|| format!("the agent calls {method}, which this client never offered"))
    }

    /// Returns an error if an update requires a capability that the client did not declare.
    pub(crate) fn undeclared_update(&mut self, update: &Value) -> Option<String> {
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        let undeclared = UPDATE_CAPABILITIES.iter().find(|(prefix, _)| kind.starts_with(prefix));
        if let Some((_, capability)) = undeclared.filter(|(_, offer)| !self.has_capability(offer)) {
            return Some(format!("the agent sends {kind} without {capability}"));
        }
        let meta = update["_meta"].as_object().into_iter().flatten();
        let terminal_meta =
            meta.filter(|(name, _)| name.starts_with("terminal_")).map(|(name, _)| name).next();
        if let Some(name) = terminal_meta.filter(|_| !self.has_capability("/_meta/terminal_output")) {
            return Some(format!("the agent sends _meta.{name}, which this client never offered"));
        }
        if let Some(id) = update["_meta"]["terminal_info"]["terminal_id"].as_str() {
            self.announced.push(id.to_owned());
        }
        let terminals = update["content"].as_array().into_iter().flatten();
        let mut terminals = terminals.filter_map(|item| item["terminalId"].as_str());
        let unknown = terminals.find(|id| {
            !self.terminals.was_created(id) && !self.announced.iter().any(|announced_id| announced_id == id)
        });
        unknown
            .map(|id| format!("the agent shows terminal {id}, which is not there"))
            .or_else(|| self.undeclared_option(update))
    }

    /// Returns an error if an option or authentication method requires a capability that the client did not declare.
    pub(crate) fn undeclared_option(&self, value: &Value) -> Option<String> {
        let has_item = |field: &str, kind: &str| {
            value[field].as_array().into_iter().flatten().any(|item| item["type"] == kind)
        };
        if has_item("configOptions", "boolean") && !self.has_capability("/session/configOptions/boolean") {
            return Some("the agent has a boolean option, which this client never offered".into());
        }
        let has_terminal_auth = self.has_capability("/auth/terminal");
        (has_item("authMethods", "terminal") && !has_terminal_auth)
            .then(|| "the agent signs in in a terminal, which this client never offered".into())
    }

    /// Serves a request; also returns the line to log.
    pub(crate) fn serve_request(&mut self, method: &str, params: &Value) -> (Option<String>, EditorResponse) {
        let path = Path::new(params["path"].as_str().unwrap_or_default());
        let id = params["terminalId"].as_str().unwrap_or_default();
        let found_or_error = |found: Option<()>| found.map(|()| json!({})).ok_or_else(|| no_terminal(id));
        let (line, result) = match method {
            "fs/read_text_file" => {
                let (line, limit) = (params["line"].as_u64(), params["limit"].as_u64());
                let text = format!("> fs read {}{}", path.display(), render_range(line, limit));
                (text, self.read_file(path, line, limit))
            }
            "fs/write_text_file" => (format!("> fs write {}", path.display()), self.write_file(path, params)),
            "terminal/create" => match self.terminals.create(params) {
                (Ok(id), command) => {
                    (format!("> terminal create {id}: {command}"), Ok(json!({"terminalId": id})))
                }
                (Err(reason), command) => {
                    (format!("> terminal create {command}"), Err(error(-32603, &reason)))
                }
            },
            "terminal/kill" => (format!("> terminal kill {id}"), found_or_error(self.terminals.kill(id))),
            "terminal/release" => {
                (format!("> terminal release {id}"), found_or_error(self.terminals.release(id)))
            }
            // How often and when a terminal is polled is random.
            "terminal/output" => {
                (format!("~ terminal output {id}"), self.terminals.output(id).ok_or_else(|| no_terminal(id)))
            }
            "terminal/wait_for_exit" => match self.terminals.wait_for_exit(id) {
                Some(exit) => return (None, EditorResponse::Pending(Box::pin(exit))),
                None => (format!("> terminal wait {id}"), Err(no_terminal(id))),
            },
            other => (format!("> {other}"), Err(error(-32601, "no such method"))),
        };
        let line = match &result {
            Ok(_) => line,
            Err(error) => {
                format!("{} ! {}", line.replacen('~', ">", 1), error["message"].as_str().unwrap_or_default())
            }
        };
        (Some(line), EditorResponse::Ready(result))
    }

    fn read_file(&self, path: &Path, line: Option<u64>, limit: Option<u64>) -> Result<Value, Value> {
        let text = match self.buffers.get(path) {
            Some(text) => text.clone(),
            None => std::fs::read_to_string(path).map_err(|reason| file_error(path, &reason))?,
        };
        let first = line.unwrap_or(1).max(1) as usize - 1;
        if first > text.split('\n').count() {
            return Err(error(-32602, "the line is beyond the end of the file"));
        }
        let lines =
            text.split_inclusive('\n').skip(first).take(limit.map_or(usize::MAX, |limit| limit as usize));
        Ok(json!({"content": lines.collect::<String>()}))
    }

    fn write_file(&mut self, path: &Path, params: &Value) -> Result<Value, Value> {
        let text = params["content"].as_str().unwrap_or_default();
        std::fs::write(path, text).map_err(|reason| file_error(path, &reason))?;
        // A saved buffer is on disk.
        self.buffers.remove(path);
        Ok(json!({}))
    }
}

fn render_range(line: Option<u64>, limit: Option<u64>) -> String {
    let line = line.map(|line| format!(" from {line}")).unwrap_or_default();
    line + &limit.map(|limit| format!(" limit {limit}")).unwrap_or_default()
}

pub(crate) fn error(code: i32, message: &str) -> Value {
    json!({"code": code, "message": message})
}

fn no_terminal(id: &str) -> Value {
    error(-32002, &format!("there is no terminal {id}"))
}

fn file_error(path: &Path, reason: &std::io::Error) -> Value {
    if reason.kind() == std::io::ErrorKind::NotFound {
        return json!({"code": -32002, "message": "Resource not found", "data": {"uri": path}});
    }
    error(-32603, &reason.to_string())
}
