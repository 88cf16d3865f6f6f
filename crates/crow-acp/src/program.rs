//! An agent that is a program of ours: started, spoken to on its pipes, and never left behind. What it says that is
//! no message is kept from the protocol.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crow_process::{
    Command, Companion, Confine, Ended, Groups, Pipes, SpawnError, Stderr, Warden, accompany,
};
use futures_util::{StreamExt, sink, stream};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio_util::sync::CancellationToken;

use crate::transport::{LINE_BYTES_MAX, Lines};

/// How long the end of a program may come after its input is closed.
const END_WAIT_MAX: Duration = Duration::from_secs(1);

/// Of what a program says that is no message, a line is enough to tell what went wrong.
const STRAY_CHARS_MAX: usize = 200;

/// Starts agents, and ends them all with this process.
#[derive(Debug, Clone, Default)]
pub struct Launcher {
    groups: Groups,
    warden: Option<Warden>,
}

/// An agent's program. Dropping it kills its whole group at once.
#[derive(Debug)]
pub struct AgentProgram {
    companion: Companion,
    stderr: Stderr,
    stray: Arc<OnceLock<String>>,
}

/// How an agent's program ended, and what it said about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentEnd {
    /// How it ended; `None` when it has not gone.
    pub ended: Option<Ended>,
    /// The end of what it complained of.
    pub stderr: String,
    /// The first thing it said that is no message of the protocol.
    pub stray: Option<String>,
}

impl Launcher {
    /// Starts none yet. With a warden nothing that an agent started is left when it or this process is gone.
    pub fn new(warden: Option<Warden>) -> Self {
        Self { groups: Groups::new(), warden }
    }

    /// Starts an agent. `name` is what the log calls it.
    pub async fn start(&self, name: &str, mut command: Command) -> Result<(Lines, AgentProgram), SpawnError> {
        if let Some(warden) = &self.warden {
            (command.program, command.args) = warden.around(&Confine::FREE, &command.program, &command.args);
        }
        let (companion, Pipes { stdin, stdout, stderr }) = accompany(&self.groups, command).await?;
        let stderr = Stderr::read(stderr, name.to_owned());
        let stray = Arc::default();
        let lines = lines(stdin, stdout, Arc::clone(&stray));
        Ok((lines, AgentProgram { companion, stderr, stray }))
    }

    /// Ends every agent that was started, at once and for good.
    pub fn stop(&self) {
        self.groups.kill_all();
    }
}

impl AgentProgram {
    /// Waits until it ends by itself.
    pub async fn ended(&mut self) -> Option<Ended> {
        self.companion.ended().await.ok()
    }

    /// Ends it, once its lines are dropped and so its stdin is closed: its group is asked, then killed.
    pub async fn end(self) -> AgentEnd {
        let ended = self.companion.end().await;
        AgentEnd { ended, stderr: self.stderr.end().await, stray: self.stray.get().cloned() }
    }

    /// Kills it: it had its time to end by itself.
    pub async fn kill(self) -> AgentEnd {
        let ended = self.companion.kill().await;
        AgentEnd { ended, stderr: self.stderr.end().await, stray: self.stray.get().cloned() }
    }
}

fn lines(stdin: ChildStdin, stdout: ChildStdout, stray: Arc<OnceLock<String>>) -> Lines {
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
    let incoming = stream::unfold((BufReader::new(stdout), end), move |(mut stdout, end)| {
        let stray = stray.clone();
        async move { Some((message(&mut stdout, &stray).await?, (stdout, end))) }
    });
    Lines { outgoing: Box::pin(outgoing), incoming: incoming.boxed() }
}

/// Reads the next line that may be a message; nothing more comes after the end.
async fn message(
    stdout: &mut BufReader<ChildStdout>,
    stray: &OnceLock<String>,
) -> Option<std::io::Result<String>> {
    loop {
        let mut line = Vec::new();
        match stdout.take(LINE_BYTES_MAX).read_until(b'\n', &mut line).await {
            Ok(0) => return None,
            Ok(_) => {}
            Err(error) => return Some(Err(error)),
        }
        let is_whole = line.last() == Some(&b'\n') || (line.len() as u64) < LINE_BYTES_MAX;
        let text = String::from_utf8_lossy(&line);
        let text = text.trim();
        if is_whole && text.starts_with('{') {
            return Some(Ok(text.to_owned()));
        }
        if !text.is_empty() && stray.get().is_none() {
            let start: String = text.chars().filter(|c| !c.is_control()).take(STRAY_CHARS_MAX).collect();
            tracing::info!("an agent said what is no message: {start}");
            // Whoever was first tells as much.
            let _ = stray.set(start);
        }
    }
}
