//! A command that runs until it is released, and whose processes can be waited for.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;

/// A leaked process stays forever; a loaded machine may need long to end one.
const EXIT_TIMEOUT: Duration = Duration::from_secs(50);

/// The pipes of a command in one directory.
#[derive(Debug)]
pub struct TrackedCommand {
    release_pipe: File,
    alive_pipe: pipe::Receiver,
}

impl TrackedCommand {
    /// Starts a child process, prints `started` and waits; both hold a pipe open while they run.
    pub const COMMAND: &str = "exec 9>held; tail -f /dev/null & echo started; read go <gate; { kill $!; wait $!; } 2>/dev/null; echo over";

    /// Prepares a directory for one run of the command.
    pub fn new(directory: &Path) -> Self {
        for name in ["gate", "held"] {
            mkfifo(&directory.join(name), Mode::S_IRWXU).expect("a pipe can be made");
        }
        // Opening for reading and writing does not wait for the other end.
        let release_pipe = OpenOptions::new().read(true).write(true).open(directory.join("gate"));
        let alive_pipe = pipe::OpenOptions::new().open_receiver(directory.join("held"));
        Self {
            release_pipe: release_pipe.expect("the pipe opens"),
            alive_pipe: alive_pipe.expect("the pipe opens"),
        }
    }

    /// Lets the command exit.
    pub fn release(&mut self) {
        self.release_pipe.write_all(b"go\n").expect("the pipe takes a word");
    }

    /// Whether a process holds the pipe open.
    pub fn is_running(&self) -> bool {
        nix::unistd::read(&self.alive_pipe, &mut [0]) != Ok(0)
    }

    /// Waits until no process holds the pipe open; panics with `moment` after a timeout.
    pub async fn wait_until_gone(&mut self, moment: &str) {
        // The kernel reports the last writer's exit only if there was a writer.
        if !self.is_running() {
            return;
        }
        let mut buffer = Vec::new();
        let closed = tokio::time::timeout(EXIT_TIMEOUT, self.alive_pipe.read_to_end(&mut buffer)).await;
        closed.unwrap_or_else(|_| panic!("{moment}: a process is left")).expect("the pipe can be read");
    }
}
