//! The fake editor's terminals: real processes in groups of their own.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "an editor starts what it likes")]

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, Command};
use tokio::sync::watch;

/// Bytes kept of an output nobody limited.
const OUTPUT_MAX: usize = 16 * 1024 * 1024;

/// What is ended with a program is gone within milliseconds; whatever else holds its output keeps nobody waiting.
const LAST_WORDS: std::time::Duration = std::time::Duration::from_secs(1);

/// The first argument of a warden.
const WARDEN: &str = "sandbox-exec";

/// Bytes read at a time.
const READ_LEN: usize = 8 * 1024;

/// The terminals of one editor.
#[derive(Debug)]
pub(crate) struct Terminals {
    home: PathBuf,
    open: BTreeMap<String, Terminal>,
    /// What those that were released showed last.
    shown: BTreeMap<String, String>,
    /// How a warden is missing on the editor's machine.
    lost: Option<Lost>,
}

/// How a program is missing on the editor's machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// No terminal opens for it.
    Refused,
    /// A shell says so.
    NotFound,
}

#[derive(Debug)]
struct Terminal {
    command: String,
    group: Pid,
    seen: watch::Receiver<Seen>,
}

/// What a terminal shows.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    output: Vec<u8>,
    output_max: usize,
    is_truncated: bool,
    status: Option<ExitStatus>,
}

impl Terminals {
    pub(crate) fn new(home: &Path) -> Self {
        Self { home: home.to_owned(), open: BTreeMap::new(), shown: BTreeMap::new(), lost: None }
    }

    pub(crate) fn lose_wardens(&mut self, lost: Lost) {
        self.lost = Some(lost);
    }

    /// Starts a command; gives its id, or why not, and how it is spelled.
    pub(crate) fn create(&mut self, params: &Value) -> (Result<String, String>, String) {
        let words: Vec<&str> =
            params["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let spelled = spelled(params["command"].as_str().unwrap_or_default(), &words);
        (self.start(params, &words, spelled.clone()), spelled)
    }

    fn start(&mut self, params: &Value, words: &[&str], spelled: String) -> Result<String, String> {
        let mut command = Command::new(params["command"].as_str().unwrap_or_default());
        command.args(words);
        match self.lost.filter(|_| words.first() == Some(&WARDEN)) {
            Some(Lost::Refused) => return Err("no such program".into()),
            Some(Lost::NotFound) => {
                command = Command::new("sh");
                command.args(["-c", "echo crow-cli: not found; exit 127"]);
            }
            None => {}
        }
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", &self.home);
        for pair in params["env"].as_array().into_iter().flatten() {
            command
                .env(pair["name"].as_str().unwrap_or_default(), pair["value"].as_str().unwrap_or_default());
        }
        if let Some(cwd) = params["cwd"].as_str() {
            command.current_dir(cwd);
        }
        let (output, input) = std::io::pipe().expect("a pipe can be made");
        let errors = input.try_clone().expect("a pipe can be shared");
        command.stdin(Stdio::null()).stdout(input).stderr(errors).process_group(0);
        let child = command.spawn().map_err(|error| error.to_string())?;
        // The command holds the ends that are written to.
        drop(command);
        let group = child.id().expect("it was not waited for").cast_signed();
        let output_max = params["outputByteLimit"].as_u64().map_or(OUTPUT_MAX, |limit| limit as usize);
        let (shows, seen) = watch::channel(Seen { output_max, ..Seen::default() });
        let output = Receiver::from_owned_fd(OwnedFd::from(output)).expect("it is a pipe");
        tokio::spawn(run(child, output, shows));
        let id = format!("term-{}", self.open.len() + self.shown.len() + 1);
        self.open.insert(id.clone(), Terminal { command: spelled, group: Pid::from_raw(group), seen });
        Ok(id)
    }

    /// Whether a terminal of this name was ever made.
    pub(crate) fn was_made(&self, id: &str) -> bool {
        self.open.contains_key(id) || self.shown.contains_key(id)
    }

    /// What an open terminal shows now.
    pub(crate) fn output(&self, id: &str) -> Option<Value> {
        let seen = self.open.get(id)?.seen.borrow();
        let output = String::from_utf8_lossy(&seen.output);
        let mut shown = json!({"output": output, "truncated": seen.is_truncated});
        if let Some(status) = seen.status {
            shown["exitStatus"] = exit(status);
        }
        Some(shown)
    }

    /// Waits for the end of an open terminal's command.
    pub(crate) fn ended(&self, id: &str) -> Option<impl Future<Output = Value> + use<>> {
        let mut seen = self.open.get(id)?.seen.clone();
        Some(async move {
            let ended = seen.wait_for(|seen| seen.status.is_some()).await;
            ended.ok().and_then(|seen| seen.status).map_or(Value::Null, exit)
        })
    }

    /// Ends the command of an open terminal.
    pub(crate) fn kill(&mut self, id: &str) -> Option<()> {
        self.open.get(id)?.end();
        Some(())
    }

    /// Ends the command of an open terminal and forgets it.
    pub(crate) fn release(&mut self, id: &str) -> Option<()> {
        let terminal = self.open.remove(id)?;
        let text = String::from_utf8_lossy(&terminal.seen.borrow().output).into_owned();
        self.shown.insert(id.to_owned(), text);
        Some(())
    }

    /// What the released terminals showed last, by id.
    pub(crate) fn shown(&self) -> &BTreeMap<String, String> {
        &self.shown
    }

    /// The terminals that nobody released.
    pub(crate) fn unreleased(&self) -> Vec<String> {
        self.open.iter().map(|(id, terminal)| format!("{id}: {}", terminal.command)).collect()
    }
}

/// Spells a command; of a warden around it only that it is there.
fn spelled(program: &str, words: &[&str]) -> String {
    match (words.first(), words.iter().position(|word| *word == "--")) {
        (Some(&WARDEN), Some(at)) => format!("(held) {}", words[at + 1..].join(" ")),
        (Some(&WARDEN), None) => words.join(" "),
        (_, _) => [&[program], words].concat().join(" "),
    }
}

impl Terminal {
    fn end(&self) {
        // An error means that nobody is left.
        let _ = killpg(self.group, Signal::SIGKILL);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.end();
    }
}

async fn run(mut child: Child, mut output: Receiver, shows: watch::Sender<Seen>) {
    let (mut is_open, mut runs) = (true, true);
    let mut bytes = vec![0; READ_LEN];
    while is_open || runs {
        tokio::select! {
            read = output.read(&mut bytes), if is_open => match read {
                Ok(0) | Err(_) => is_open = false,
                Ok(n_bytes) => shows.send_modify(|seen| seen.add(&bytes[..n_bytes])),
            },
            status = child.wait(), if runs => {
                runs = false;
                let status = status.expect("it can be waited for");
                // Whoever hears of the end finds all that was printed, by those who are ended with it as well.
                let last_words = async {
                    while let Ok(n_bytes @ 1..) = output.read(&mut bytes).await {
                        shows.send_modify(|seen| seen.add(&bytes[..n_bytes]));
                    }
                };
                is_open = tokio::time::timeout(LAST_WORDS, last_words).await.is_err();
                shows.send_modify(|seen| seen.status = Some(status));
            }
        }
    }
}

impl Seen {
    fn add(&mut self, bytes: &[u8]) {
        self.output.extend_from_slice(bytes);
        if self.output.len() > self.output_max {
            self.is_truncated = true;
            let mut start = self.output.len() - self.output_max;
            while self.output.get(start).is_some_and(|byte| byte & 0xC0 == 0x80) {
                start += 1;
            }
            self.output.drain(..start);
        }
    }
}

fn exit(status: ExitStatus) -> Value {
    use std::os::unix::process::ExitStatusExt as _;
    let signal = status.signal().and_then(|number| Signal::try_from(number).ok());
    json!({"exitCode": status.code(), "signal": signal.map(Signal::as_str)})
}
