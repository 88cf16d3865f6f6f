//! An agent that is a local program: started, driven over its pipes, and never left behind. Output that is not a
//! message is kept away from the protocol.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crow_process::{
    CommandConfinement, CommandSpec, ExitReason, PipedProcess, ProcessGroups, ProcessPipes, SandboxWrapper,
    SpawnError, StderrReader, spawn_piped_process,
};
use futures_util::{StreamExt, sink, stream};
use serde::{Deserialize, de::IgnoredAny};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio_util::sync::CancellationToken;

use crate::transport::{LINE_BYTES_MAX, LineTransport};

/// The wait for a program to exit after its stdin was closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// One line of output that is not a message is enough to recognize a mistake.
const STRAY_CHARS_MAX: usize = 200;

/// A banner and a few warnings are shorter; a program that prints more before its first answer is no agent.
const STRAY_LINES_MAX: usize = 20;
const STRAY_BYTES_MAX: u64 = 1024 * 1024;

/// Beginnings of objects that are tried in such a line; a greeting has none or one.
const ANSWER_STARTS_MAX: usize = 8;

/// Lines of that output in an error.
const STRAY_LINES_SHOWN: usize = 3;

/// Starts agents, and ends them all with this process.
#[derive(Debug, Clone, Default)]
pub struct AgentLauncher {
    groups: ProcessGroups,
    sandbox: Option<SandboxWrapper>,
}

/// An agent's process. Dropping it kills its whole group at once.
#[derive(Debug)]
pub struct AgentProgram {
    process: PipedProcess,
    stderr: StderrReader,
    stray_line: Arc<OnceLock<String>>,
}

/// The end of an agent's process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentExit {
    /// The exit reason; `None` if it has not exited.
    pub exit: Option<ExitReason>,
    /// The end of its stderr.
    pub stderr: String,
    /// The first output that is not a message of the protocol.
    pub stray_line: Option<String>,
}

impl AgentLauncher {
    /// Creates a launcher. With a supervisor no process of an agent is left when the agent or this process ends.
    pub fn new(sandbox: Option<SandboxWrapper>) -> Self {
        Self { groups: ProcessGroups::new(), sandbox }
    }

    /// Starts an agent. `name` is its name in the log.
    pub async fn start(
        &self,
        name: &str,
        mut command: CommandSpec,
    ) -> Result<(LineTransport, AgentProgram), SpawnError> {
        if let Some(sandbox) = &self.sandbox {
            (command.program, command.args) =
                sandbox.wrap_command(&CommandConfinement::AGENT, &command.program, &command.args);
        }
        let (process, ProcessPipes { stdin, stdout, stderr }) =
            spawn_piped_process(&self.groups, command).await?;
        let stderr = StderrReader::start(stderr, name.to_owned());
        let stray_line = Arc::default();
        let lines = pipe_transport(stdin, stdout, Arc::clone(&stray_line));
        Ok((lines, AgentProgram { process, stderr, stray_line }))
    }

    /// Kills every agent that was started and refuses new ones.
    pub fn kill_all(&self) {
        self.groups.kill_all();
    }
}

impl AgentProgram {
    /// Waits until it exits by itself.
    pub async fn wait_for_exit(&mut self) -> Option<ExitReason> {
        self.process.wait().await.ok()
    }

    /// Ends it, once its lines are dropped and its stdin is closed: SIGTERM, then SIGKILL.
    pub async fn shut_down(self) -> AgentExit {
        let exit = self.process.shut_down().await;
        AgentExit { exit, stderr: self.stderr.finish().await, stray_line: self.stray_line.get().cloned() }
    }

    /// Kills it after it had its time to exit by itself.
    pub async fn kill(self) -> AgentExit {
        let exit = self.process.kill().await;
        AgentExit { exit, stderr: self.stderr.finish().await, stray_line: self.stray_line.get().cloned() }
    }
}

fn pipe_transport(
    stdin: ChildStdin,
    stdout: ChildStdout,
    stray_line: Arc<OnceLock<String>>,
) -> LineTransport {
    let stdout_end = CancellationToken::new();
    let (stdout_ended, end_guard) = (stdout_end.clone(), stdout_end.drop_guard());
    let outgoing =
        sink::unfold((stdin, stdout_ended), |(mut stdin, stdout_ended), mut line: String| async move {
            line.push('\n');
            match stdin.write_all(line.as_bytes()).await {
                Ok(()) => Ok((stdin, stdout_ended)),
                Err(error) => {
                    // A program that no longer reads is about to exit, and its exit status says more.
                    drop(tokio::time::timeout(EXIT_TIMEOUT, stdout_ended.cancelled()).await);
                    Err(error)
                }
            }
        });
    // At the end this state is dropped, and the guard with it.
    let state = (BufReader::new(stdout), StrayOutput::default(), end_guard);
    let incoming = stream::unfold(state, move |(mut stdout, mut stray_output, end_guard)| {
        let stray_line = stray_line.clone();
        async move {
            Some((
                read_message(&mut stdout, &stray_line, &mut stray_output).await?,
                (stdout, stray_output, end_guard),
            ))
        }
    });
    LineTransport { outgoing: Box::pin(outgoing), incoming: incoming.boxed() }
}

/// Reads the next line that may be a message; `None` after the end.
async fn read_message(
    stdout: &mut (impl AsyncBufRead + Unpin),
    stray_line: &OnceLock<String>,
    stray_output: &mut StrayOutput,
) -> Option<io::Result<String>> {
    loop {
        if let Some(error) = stray_output.give_up_error() {
            return Some(Err(error));
        }
        let mut line = Vec::new();
        let mut bytes_max = if stray_output.has_answered { LINE_BYTES_MAX } else { STRAY_BYTES_MAX };
        if let Err(error) = stdout.take(bytes_max).read_until(b'\n', &mut line).await {
            return Some(Err(error));
        }
        if line.first() == Some(&b'{') && line.len() as u64 == bytes_max && line.last() != Some(&b'\n') {
            // A message may be that long.
            if let Err(error) = stdout.take(LINE_BYTES_MAX - bytes_max).read_until(b'\n', &mut line).await {
                return Some(Err(error));
            }
            bytes_max = LINE_BYTES_MAX;
        }
        if line.is_empty() {
            return None;
        }
        let is_complete = line.last() == Some(&b'\n') || (line.len() as u64) < bytes_max;
        let text = String::from_utf8_lossy(&line);
        let text = text.trim();
        let may_be_message = is_complete && text.starts_with('{');
        let excerpt: String = text.chars().filter(|c| !c.is_control()).take(STRAY_CHARS_MAX).collect();
        if may_be_message && stray_output.is_message(text) {
            // Output before the first answer may have any purpose.
            if !stray_output.has_answered {
                stray_output.has_messages = true;
                stray_output.add_line(excerpt);
            }
            return Some(Ok(text.to_owned()));
        }
        if !may_be_message {
            stray_output.n_bytes += line.len() as u64;
            // A shell that greets without a line break, as over SSH, spoils the line of the first answer.
            if is_complete && let Some(answer) = stray_output.find_answer(text) {
                tracing::info!("an agent printed text before its first message: {excerpt}");
                return Some(Ok(answer.to_owned()));
            }
        }
        if !text.is_empty() {
            tracing::info!("an agent printed a line that is not a message: {excerpt}");
            // The first one says as much as all of them.
            drop(stray_line.set(excerpt.clone()));
            stray_output.add_line(excerpt);
        }
        if may_be_message {
            return Some(Ok(text.to_owned()));
        }
    }
}

/// The output of an agent that is not an answer, until its first answer.
#[derive(Debug, Default)]
struct StrayOutput {
    has_answered: bool,
    /// Some of it has the form of a message, like notifications of another protocol.
    has_messages: bool,
    n_lines: usize,
    n_bytes: u64,
    first_lines: Vec<String>,
}

/// The parts of a message that matter here.
#[derive(Deserialize)]
struct MessageEnvelope {
    jsonrpc: Option<IgnoredAny>,
    method: Option<IgnoredAny>,
    result: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

impl StrayOutput {
    /// Whether an object has the form of a message. Not checked after the first answer: many programs log objects.
    fn is_message(&mut self, text: &str) -> bool {
        if self.has_answered {
            return true;
        }
        // A line that is not JSON is answered as such.
        let Ok(message) = serde_json::from_str::<MessageEnvelope>(text) else { return true };
        let is_response = message.result.is_some() || (message.error.is_some() && message.jsonrpc.is_some());
        self.has_answered = is_response;
        is_response || message.jsonrpc.is_some() || message.method.is_some()
    }

    /// Finds the first answer behind text on the same line.
    fn find_answer<'a>(&mut self, line: &'a str) -> Option<&'a str> {
        if self.has_answered {
            return None;
        }
        let starts = line.match_indices("{\"").take(ANSWER_STARTS_MAX);
        let answer = starts.map(|(start, _)| &line[start..]).find(|text| {
            // The answer itself begins at the first brace from which all is JSON.
            serde_json::from_str::<MessageEnvelope>(text).is_ok()
        })?;
        (self.is_message(answer) && self.has_answered).then_some(answer)
    }

    fn add_line(&mut self, line: String) {
        self.n_lines += 1;
        if self.first_lines.len() < STRAY_LINES_SHOWN {
            self.first_lines.push(line);
        }
    }

    /// The error if the output can no longer become an agent's.
    fn give_up_error(&self) -> Option<io::Error> {
        let is_exhausted = self.n_lines >= STRAY_LINES_MAX || self.n_bytes >= STRAY_BYTES_MAX;
        if self.has_answered || !is_exhausted {
            return None;
        }
        let excerpt = self.first_lines.join("; ");
        let reason = match self.n_lines {
            1 => {
                format!("it printed {} bytes that are not a message of the protocol: {excerpt}", self.n_bytes)
            }
            n if self.has_messages => {
                format!("it printed {n} lines, none of which answers `initialize`; the first: {excerpt}")
            }
            n => format!(
                "it printed {n} lines, none of which is a message of the protocol; the first: {excerpt}"
            ),
        };
        Some(io::Error::new(io::ErrorKind::InvalidData, reason))
    }
}

#[cfg(test)]
mod tests;
