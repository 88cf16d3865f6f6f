//! The fake editor's terminals: real processes in their own process groups.
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

/// The limit of the output if the agent sets none.
const OUTPUT_MAX: usize = 16 * 1024 * 1024;

/// Programs killed together exit within milliseconds; other holders of the output are not waited for.
const DRAIN_WAIT: std::time::Duration = std::time::Duration::from_secs(1);

/// The first argument of a supervisor.
const SUPERVISOR_ARG: &str = "sandbox-exec";

/// The size of a read.
const READ_LEN: usize = 8 * 1024;

/// The terminals of one editor.
#[derive(Debug)]
pub(crate) struct Terminals {
    home: PathBuf,
    open: BTreeMap<String, Terminal>,
    /// The last output of released terminals.
    released_outputs: BTreeMap<String, String>,
    /// The way in which the supervisor is missing on the editor's machine.
    missing_supervisor: Option<MissingProgram>,
}

/// The way in which a program is missing on the editor's machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingProgram {
    /// Creating a terminal fails.
    Refused,
    /// A shell reports that the command was not found.
    NotFound,
}

#[derive(Debug)]
struct Terminal {
    command: String,
    group: Pid,
    state: watch::Receiver<TerminalState>,
}

/// The state of a terminal.
#[derive(Debug, Default)]
pub(crate) struct TerminalState {
    output: Vec<u8>,
    output_max: usize,
    is_truncated: bool,
    status: Option<ExitStatus>,
}

impl Terminals {
    pub(crate) fn new(home: &Path) -> Self {
        Self {
            home: home.to_owned(),
            open: BTreeMap::new(),
            released_outputs: BTreeMap::new(),
            missing_supervisor: None,
        }
    }

    pub(crate) fn remove_supervisor(&mut self, missing: MissingProgram) {
        self.missing_supervisor = Some(missing);
    }

    /// Starts a command; returns its id or the error, and the rendered command.
    pub(crate) fn create(&mut self, params: &Value) -> (Result<String, String>, String) {
        let args: Vec<&str> =
            params["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let rendered_command = render_command(params["command"].as_str().unwrap_or_default(), &args);
        (self.start(params, &args, rendered_command.clone()), rendered_command)
    }

    fn start(&mut self, params: &Value, args: &[&str], rendered_command: String) -> Result<String, String> {
        let mut command = Command::new(params["command"].as_str().unwrap_or_default());
        command.args(args);
        match self.missing_supervisor.filter(|_| args.first() == Some(&SUPERVISOR_ARG)) {
            Some(MissingProgram::Refused) => return Err("no such program".into()),
            Some(MissingProgram::NotFound) => {
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
        // The command holds the write ends of the pipe.
        drop(command);
        let group = child.id().expect("it was not waited for").cast_signed();
        let output_max = params["outputByteLimit"].as_u64().map_or(OUTPUT_MAX, |limit| limit as usize);
        let (state_sender, state) = watch::channel(TerminalState { output_max, ..TerminalState::default() });
        let output = Receiver::from_owned_fd(OwnedFd::from(output)).expect("it is a pipe");
        tokio::spawn(watch_command(child, output, state_sender));
        let id = format!("term-{}", self.open.len() + self.released_outputs.len() + 1);
        self.open
            .insert(id.clone(), Terminal { command: rendered_command, group: Pid::from_raw(group), state });
        Ok(id)
    }

    /// Whether a terminal with this id was ever created.
    pub(crate) fn was_created(&self, id: &str) -> bool {
        self.open.contains_key(id) || self.released_outputs.contains_key(id)
    }

    /// Returns the output of an open terminal.
    pub(crate) fn output(&self, id: &str) -> Option<Value> {
        let state = self.open.get(id)?.state.borrow();
        let output = String::from_utf8_lossy(&state.output);
        let mut result = json!({"output": output, "truncated": state.is_truncated});
        if let Some(status) = state.status {
            result["exitStatus"] = exit_json(status);
        }
        Some(result)
    }

    /// Waits for the exit of an open terminal's command.
    pub(crate) fn wait_for_exit(&self, id: &str) -> Option<impl Future<Output = Value> + use<>> {
        let mut state = self.open.get(id)?.state.clone();
        Some(async move {
            let exited = state.wait_for(|state| state.status.is_some()).await;
            exited.ok().and_then(|state| state.status).map_or(Value::Null, exit_json)
        })
    }

    /// Kills the command of an open terminal.
    pub(crate) fn kill(&mut self, id: &str) -> Option<()> {
        self.open.get(id)?.kill();
        Some(())
    }

    /// Kills the command of an open terminal and removes it.
    pub(crate) fn release(&mut self, id: &str) -> Option<()> {
        let terminal = self.open.remove(id)?;
        let text = String::from_utf8_lossy(&terminal.state.borrow().output).into_owned();
        self.released_outputs.insert(id.to_owned(), text);
        Some(())
    }

    /// Kills the commands of all terminals and removes them.
    pub(crate) fn close_all(&mut self) {
        self.open.clear();
    }

    /// Returns the last output of the released terminals, by id.
    pub(crate) fn released_outputs(&self) -> &BTreeMap<String, String> {
        &self.released_outputs
    }

    /// Lists the terminals that were not released.
    pub(crate) fn unreleased(&self) -> Vec<String> {
        self.open.iter().map(|(id, terminal)| format!("{id}: {}", terminal.command)).collect()
    }
}

/// Renders a command; a supervisor around it is only marked.
fn render_command(program: &str, args: &[&str]) -> String {
    match (args.first(), args.iter().position(|word| *word == "--")) {
        (Some(&SUPERVISOR_ARG), Some(separator)) => format!("(held) {}", args[separator + 1..].join(" ")),
        (Some(&SUPERVISOR_ARG), None) => args.join(" "),
        (_, _) => [&[program], args].concat().join(" "),
    }
}

impl Terminal {
    fn kill(&self) {
        // Fails only if no process is left.
        let _ = killpg(self.group, Signal::SIGKILL);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.kill();
    }
}

async fn watch_command(mut child: Child, mut output: Receiver, state_sender: watch::Sender<TerminalState>) {
    let (mut is_open, mut is_running) = (true, true);
    let mut bytes = vec![0; READ_LEN];
    while is_open || is_running {
        tokio::select! {
            read = output.read(&mut bytes), if is_open => match read {
                Ok(0) | Err(_) => is_open = false,
                Ok(n_bytes) => state_sender.send_modify(|seen| seen.append(&bytes[..n_bytes])),
            },
            status = child.wait(), if is_running => {
                is_running = false;
                let status = status.expect("it can be waited for");
                // The status is set after all output, including that of processes killed with the command.
                let last_words = async {
                    while let Ok(n_bytes @ 1..) = output.read(&mut bytes).await {
                        state_sender.send_modify(|seen| seen.append(&bytes[..n_bytes]));
                    }
                };
                is_open = tokio::time::timeout(DRAIN_WAIT, last_words).await.is_err();
                state_sender.send_modify(|seen| seen.status = Some(status));
            }
        }
    }
}

impl TerminalState {
    fn append(&mut self, bytes: &[u8]) {
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

fn exit_json(status: ExitStatus) -> Value {
    use std::os::unix::process::ExitStatusExt as _;
    let signal = status.signal().and_then(|number| Signal::try_from(number).ok());
    json!({"exitCode": status.code(), "signal": signal.map(Signal::as_str)})
}
