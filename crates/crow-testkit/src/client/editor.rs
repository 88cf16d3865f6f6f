//! What the fake editor does for an agent: files and terminals, and only what it said it would do.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::terminals::{Lost, Terminals};

/// What must be offered before it may be called, by the beginning of the method.
const OFFERS: [(&str, &str); 4] = [
    ("fs/read_text_file", "/fs/readTextFile"),
    ("fs/write_text_file", "/fs/writeTextFile"),
    ("terminal/", "/terminal"),
    ("elicitation/", "/elicitation/form"),
];

/// What must be offered before an update of a kind may come.
const OFFERED_UPDATES: [(&str, &str); 2] =
    [("notice", "/session/notices"), ("compaction_", "/session/compaction")];

/// A way to answer badly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Odd {
    /// With an error; nothing is done.
    Error,
    /// With `null`; nothing is done.
    Null,
    /// The same answer two times.
    Twice,
    /// After the agent's next message.
    Late,
    /// Never; nothing is done.
    Silence,
}

impl Odd {
    /// Reads the name of a way.
    pub fn parse(name: &str) -> Option<Self> {
        let all = [Self::Error, Self::Null, Self::Twice, Self::Late, Self::Silence];
        all.into_iter().find(|odd| odd.name() == name)
    }

    /// The name of this way.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// An editor's files, terminals and promises.
#[derive(Debug)]
pub struct Editor {
    capabilities: Value,
    /// Texts that are not saved yet.
    pub buffers: BTreeMap<PathBuf, String>,
    odd: BTreeMap<String, VecDeque<Odd>>,
    misshapen: BTreeMap<String, Value>,
    terminals: Terminals,
    /// Terminals that the agent itself announced.
    announced: Vec<String>,
}

/// What a request comes to.
pub(crate) enum Served {
    Now(Result<Value, Value>),
    Later(std::pin::Pin<Box<dyn Future<Output = Value> + Send>>),
}

impl Editor {
    pub(crate) fn new(home: &Path) -> Self {
        Self {
            capabilities: Value::Null,
            buffers: BTreeMap::new(),
            odd: BTreeMap::new(),
            misshapen: BTreeMap::new(),
            terminals: Terminals::new(home),
            announced: Vec::new(),
        }
    }

    pub(crate) fn offer(&mut self, capabilities: Value) {
        self.capabilities = capabilities;
    }

    /// What was offered to the agent.
    pub fn capabilities(&self) -> &Value {
        &self.capabilities
    }

    /// Answers the next request of a method badly; several are used in order.
    pub fn misbehave(&mut self, method: &str, odd: Odd) {
        self.odd.entry(method.to_owned()).or_default().push_back(odd);
    }

    /// Answers the next request of a method with this result, whatever it is.
    pub fn misshape(&mut self, method: &str, result: Value) {
        self.misshapen.insert(method.to_owned(), result);
    }

    /// From now on its machine has no warden.
    pub fn lose_wardens(&mut self, lost: Lost) {
        self.terminals.lose_wardens(lost);
    }

    pub(crate) fn take_misshapen(&mut self, method: &str) -> Option<Value> {
        self.misshapen.remove(method)
    }

    /// The terminals that the agent has made and not released.
    pub fn unreleased(&self) -> Vec<String> {
        self.terminals.unreleased()
    }

    /// What the released terminals showed last, by id.
    pub fn shown(&self) -> &BTreeMap<String, String> {
        self.terminals.shown()
    }

    pub(crate) fn take_odd(&mut self, method: &str) -> Option<Odd> {
        self.odd.get_mut(method)?.pop_front()
    }

    fn offers(&self, what: &str) -> bool {
        !matches!(self.capabilities.pointer(what), None | Some(Value::Null | Value::Bool(false)))
    }

    /// Says what is wrong with calling a method.
    pub(crate) fn unoffered_call(&self, method: &str) -> Option<String> {
        let (_, offer) = OFFERS.iter().find(|(beginning, _)| method.starts_with(beginning))?;
        (!self.offers(offer)).then(|| format!("the agent calls {method}, which this client never offered"))
    }

    /// Says what in an update the client has not offered to understand.
    pub(crate) fn unoffered_update(&mut self, update: &Value) -> Option<String> {
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        let unoffered = OFFERED_UPDATES.iter().find(|(beginning, _)| kind.starts_with(beginning));
        if let Some((_, offer)) = unoffered.filter(|(_, offer)| !self.offers(offer)) {
            return Some(format!("the agent sends {kind} without {offer}"));
        }
        let meta = update["_meta"].as_object().into_iter().flatten();
        let live = meta.filter(|(name, _)| name.starts_with("terminal_")).map(|(name, _)| name).next();
        if let Some(name) = live.filter(|_| !self.offers("/_meta/terminal_output")) {
            return Some(format!("the agent sends _meta.{name}, which this client never offered"));
        }
        if let Some(id) = update["_meta"]["terminal_info"]["terminal_id"].as_str() {
            self.announced.push(id.to_owned());
        }
        let terminals = update["content"].as_array().into_iter().flatten();
        let mut terminals = terminals.filter_map(|item| item["terminalId"].as_str());
        let unknown = terminals.find(|id| {
            !self.terminals.was_made(id) && !self.announced.iter().any(|announced| announced == id)
        });
        unknown
            .map(|id| format!("the agent shows terminal {id}, which is not there"))
            .or_else(|| self.unoffered_option(update))
    }

    /// Says what in a list of options or ways to sign in the client has not offered to understand.
    pub(crate) fn unoffered_option(&self, holder: &Value) -> Option<String> {
        let has = |list: &str, kind: &str| {
            holder[list].as_array().into_iter().flatten().any(|item| item["type"] == kind)
        };
        if has("configOptions", "boolean") && !self.offers("/session/configOptions/boolean") {
            return Some("the agent has a boolean option, which this client never offered".into());
        }
        let signs_in = self.offers("/auth/terminal");
        (has("authMethods", "terminal") && !signs_in)
            .then(|| "the agent signs in in a terminal, which this client never offered".into())
    }

    /// Does what a request asks for; gives what to log of it as well.
    pub(crate) fn serve(&mut self, method: &str, params: &Value) -> (Option<String>, Served) {
        let path = Path::new(params["path"].as_str().unwrap_or_default());
        let id = params["terminalId"].as_str().unwrap_or_default();
        let known = |found: Option<()>| found.map(|()| json!({})).ok_or_else(|| no_terminal(id));
        let (line, served) = match method {
            "fs/read_text_file" => {
                let range = ["line", "limit"].map(|field| params[field].as_u64());
                (format!("> fs read {}{}", path.display(), spelled(range)), self.read(path, range))
            }
            "fs/write_text_file" => (format!("> fs write {}", path.display()), self.write(path, params)),
            "terminal/create" => match self.terminals.create(params) {
                (Ok(id), command) => {
                    (format!("> terminal create {id}: {command}"), Ok(json!({"terminalId": id})))
                }
                (Err(why), command) => (format!("> terminal create {command}"), Err(error(-32603, &why))),
            },
            "terminal/kill" => (format!("> terminal kill {id}"), known(self.terminals.kill(id))),
            "terminal/release" => (format!("> terminal release {id}"), known(self.terminals.release(id))),
            // How often a terminal is looked at, and when, is chance.
            "terminal/output" => {
                (format!("~ terminal output {id}"), self.terminals.output(id).ok_or_else(|| no_terminal(id)))
            }
            "terminal/wait_for_exit" => match self.terminals.ended(id) {
                Some(ended) => return (None, Served::Later(Box::pin(ended))),
                None => (format!("> terminal wait {id}"), Err(no_terminal(id))),
            },
            other => (format!("> {other}"), Err(error(-32601, "no such method"))),
        };
        let line = match &served {
            Ok(_) => line,
            Err(error) => {
                format!("{} ! {}", line.replacen('~', ">", 1), error["message"].as_str().unwrap_or_default())
            }
        };
        (Some(line), Served::Now(served))
    }

    fn read(&self, path: &Path, [line, limit]: [Option<u64>; 2]) -> Result<Value, Value> {
        let text = match self.buffers.get(path) {
            Some(text) => text.clone(),
            None => std::fs::read_to_string(path).map_err(|why| file_error(path, &why))?,
        };
        let first = line.unwrap_or(1).max(1) as usize - 1;
        if first > text.split('\n').count() {
            return Err(error(-32602, "the line is beyond the end of the file"));
        }
        let lines =
            text.split_inclusive('\n').skip(first).take(limit.map_or(usize::MAX, |limit| limit as usize));
        Ok(json!({"content": lines.collect::<String>()}))
    }

    fn write(&mut self, path: &Path, params: &Value) -> Result<Value, Value> {
        let text = params["content"].as_str().unwrap_or_default();
        std::fs::write(path, text).map_err(|why| file_error(path, &why))?;
        // A buffer that was saved is what the disk holds.
        self.buffers.remove(path);
        Ok(json!({}))
    }
}

fn spelled([line, limit]: [Option<u64>; 2]) -> String {
    let line = line.map(|line| format!(" from {line}")).unwrap_or_default();
    line + &limit.map(|limit| format!(" limit {limit}")).unwrap_or_default()
}

pub(crate) fn error(code: i32, message: &str) -> Value {
    json!({"code": code, "message": message})
}

fn no_terminal(id: &str) -> Value {
    error(-32002, &format!("there is no terminal {id}"))
}

fn file_error(path: &Path, why: &std::io::Error) -> Value {
    if why.kind() == std::io::ErrorKind::NotFound {
        return json!({"code": -32002, "message": "Resource not found", "data": {"uri": path}});
    }
    error(-32603, &why.to_string())
}
