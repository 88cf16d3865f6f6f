//! An agent that is a program of ours: started, spoken to on its pipes, and never left behind. What it says that is
//! no message is kept from the protocol.

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

/// How long the end of a program may come after its input is closed.
const END_WAIT_MAX: Duration = Duration::from_secs(1);

/// Of what a program says that is no message, a line is enough to tell what went wrong.
const STRAY_CHARS_MAX: usize = 200;

/// A banner and a few warnings are shorter; what prints more before its first answer is another program.
const BABBLE_LINES_MAX: usize = 20;
const BABBLE_BYTES_MAX: u64 = 1024 * 1024;

/// Lines of it that an error shows.
const BABBLE_SHOWN: usize = 3;

/// Starts agents, and ends them all with this process.
#[derive(Debug, Clone, Default)]
pub struct AgentLauncher {
    groups: ProcessGroups,
    warden: Option<SandboxWrapper>,
}

/// An agent's program. Dropping it kills its whole group at once.
#[derive(Debug)]
pub struct AgentProgram {
    companion: PipedProcess,
    stderr: StderrReader,
    stray: Arc<OnceLock<String>>,
}

/// How an agent's program ended, and what it said about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentExit {
    /// How it ended; `None` when it has not gone.
    pub ended: Option<ExitReason>,
    /// The end of what it complained of.
    pub stderr: String,
    /// The first thing it said that is no message of the protocol.
    pub stray: Option<String>,
}

impl AgentLauncher {
    /// Starts none yet. With a warden nothing that an agent started is left when it or this process is gone.
    pub fn new(warden: Option<SandboxWrapper>) -> Self {
        Self { groups: ProcessGroups::new(), warden }
    }

    /// Starts an agent. `name` is what the log calls it.
    pub async fn start(
        &self,
        name: &str,
        mut command: CommandSpec,
    ) -> Result<(LineTransport, AgentProgram), SpawnError> {
        if let Some(warden) = &self.warden {
            (command.program, command.args) =
                warden.wrap_command(&CommandConfinement::FREE, &command.program, &command.args);
        }
        let (companion, ProcessPipes { stdin, stdout, stderr }) =
            spawn_piped_process(&self.groups, command).await?;
        let stderr = StderrReader::start(stderr, name.to_owned());
        let stray = Arc::default();
        let lines = pipe_transport(stdin, stdout, Arc::clone(&stray));
        Ok((lines, AgentProgram { companion, stderr, stray }))
    }

    /// Ends every agent that was started, at once and for good.
    pub fn kill_all(&self) {
        self.groups.kill_all();
    }
}

impl AgentProgram {
    /// Waits until it ends by itself.
    pub async fn wait_for_exit(&mut self) -> Option<ExitReason> {
        self.companion.wait().await.ok()
    }

    /// Ends it, once its lines are dropped and so its stdin is closed: its group is asked, then killed.
    pub async fn shut_down(self) -> AgentExit {
        let ended = self.companion.shut_down().await;
        AgentExit { ended, stderr: self.stderr.finish().await, stray: self.stray.get().cloned() }
    }

    /// Kills it: it had its time to end by itself.
    pub async fn kill(self) -> AgentExit {
        let ended = self.companion.kill().await;
        AgentExit { ended, stderr: self.stderr.finish().await, stray: self.stray.get().cloned() }
    }
}

fn pipe_transport(stdin: ChildStdin, stdout: ChildStdout, stray: Arc<OnceLock<String>>) -> LineTransport {
    let over = CancellationToken::new();
    let (ended, end) = (over.clone(), over.drop_guard());
    let outgoing = sink::unfold((stdin, ended), |(mut stdin, ended), mut line: String| async move {
        line.push('\n');
        match stdin.write_all(line.as_bytes()).await {
            Ok(()) => Ok((stdin, ended)),
            Err(error) => {
                // Who no longer reads is about to end, and its end tells more.
                drop(tokio::time::timeout(END_WAIT_MAX, ended.cancelled()).await);
                Err(error)
            }
        }
    });
    // At the end its state is dropped, and with it the guard.
    let reading = (BufReader::new(stdout), StrayOutput::default(), end);
    let incoming = stream::unfold(reading, move |(mut stdout, mut babble, end)| {
        let stray = stray.clone();
        async move { Some((read_message(&mut stdout, &stray, &mut babble).await?, (stdout, babble, end))) }
    });
    LineTransport { outgoing: Box::pin(outgoing), incoming: incoming.boxed() }
}

/// Reads the next line that may be a message; nothing more comes after the end.
async fn read_message(
    stdout: &mut (impl AsyncBufRead + Unpin),
    stray: &OnceLock<String>,
    babble: &mut StrayOutput,
) -> Option<io::Result<String>> {
    loop {
        if let Some(error) = babble.give_up_error() {
            return Some(Err(error));
        }
        let mut line = Vec::new();
        let mut bytes_max = if babble.has_answered { LINE_BYTES_MAX } else { BABBLE_BYTES_MAX };
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
        let is_whole = line.last() == Some(&b'\n') || (line.len() as u64) < bytes_max;
        let text = String::from_utf8_lossy(&line);
        let text = text.trim();
        let may_be_message = is_whole && text.starts_with('{');
        let start: String = text.chars().filter(|c| !c.is_control()).take(STRAY_CHARS_MAX).collect();
        if may_be_message && babble.is_message(text) {
            // What comes before the first answer may be meant for anybody.
            if !babble.has_answered {
                babble.has_messages = true;
                babble.add_line(start);
            }
            return Some(Ok(text.to_owned()));
        }
        if !may_be_message {
            babble.n_bytes += line.len() as u64;
        }
        if !text.is_empty() {
            tracing::info!("an agent said what is no message: {start}");
            // The first one tells as much as all of them.
            drop(stray.set(start.clone()));
            babble.add_line(start);
        }
        if may_be_message {
            return Some(Ok(text.to_owned()));
        }
    }
}

/// What an agent printed that is no answer, until it has answered for the first time.
#[derive(Debug, Default)]
struct StrayOutput {
    has_answered: bool,
    /// Some of it has the shape of a message, as notifications of another protocol have.
    has_messages: bool,
    n_lines: usize,
    n_bytes: u64,
    first: Vec<String>,
}

/// What is looked at of a message.
#[derive(Deserialize)]
struct MessageEnvelope {
    jsonrpc: Option<IgnoredAny>,
    method: Option<IgnoredAny>,
    result: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

impl StrayOutput {
    /// Whether an object has the shape of a message, which is not looked at once there was an answer: many programs
    /// log objects.
    fn is_message(&mut self, text: &str) -> bool {
        if self.has_answered {
            return true;
        }
        // What is no JSON is answered as such.
        let Ok(message) = serde_json::from_str::<MessageEnvelope>(text) else { return true };
        let is_answer = message.result.is_some() || (message.error.is_some() && message.jsonrpc.is_some());
        self.has_answered = is_answer;
        is_answer || message.jsonrpc.is_some() || message.method.is_some()
    }

    fn add_line(&mut self, line: String) {
        self.n_lines += 1;
        if self.first.len() < BABBLE_SHOWN {
            self.first.push(line);
        }
    }

    /// Why nothing more is read of it, when it has had its chance.
    fn give_up_error(&self) -> Option<io::Error> {
        let is_over = self.n_lines >= BABBLE_LINES_MAX || self.n_bytes >= BABBLE_BYTES_MAX;
        if self.has_answered || !is_over {
            return None;
        }
        let said = self.first.join("; ");
        let why = match self.n_lines {
            1 => format!("it printed {} bytes that are no message of the protocol: {said}", self.n_bytes),
            n if self.has_messages => {
                format!("it printed {n} lines, and none answers `initialize`; the first: {said}")
            }
            n => format!("it printed {n} lines, and none is a message of the protocol; the first: {said}"),
        };
        Some(io::Error::new(io::ErrorKind::InvalidData, why))
    }
}

#[cfg(test)]
mod tests;
