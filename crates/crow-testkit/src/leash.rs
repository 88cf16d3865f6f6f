//! A command on a leash: it runs until it is let go, and a test knows when nothing of it is left.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;

/// What is promised is a second; a loaded machine may take longer, what is left over stays for ever.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// The pipes that hold a command of one folder.
#[derive(Debug)]
pub struct Leash {
    gate: File,
    held: pipe::Receiver,
}

impl Leash {
    /// Starts a child of its own, says `started` and waits; both hold a pipe while they live.
    pub const COMMAND: &str = "exec 9>held; tail -f /dev/null & echo started; read go <gate; { kill $!; wait $!; } 2>/dev/null; echo over";

    /// Prepares a folder for one run of the command in it.
    pub fn new(folder: &Path) -> Self {
        for name in ["gate", "held"] {
            mkfifo(&folder.join(name), Mode::S_IRWXU).expect("a pipe can be made");
        }
        // Whoever may read and write does not wait for the other end.
        let gate = OpenOptions::new().read(true).write(true).open(folder.join("gate"));
        let held = pipe::OpenOptions::new().open_receiver(folder.join("held"));
        Self { gate: gate.expect("the pipe opens"), held: held.expect("the pipe opens") }
    }

    /// Lets the command end by itself.
    pub fn let_go(&mut self) {
        self.gate.write_all(b"go\n").expect("the pipe takes a word");
    }

    /// Whether a process holds the pipe.
    pub fn is_held(&self) -> bool {
        nix::unistd::read(&self.held, &mut [0]) != Ok(0)
    }

    /// Waits until no process holds the pipe; says when that was asked if one stays.
    pub async fn gone(&mut self, when: &str) {
        // The kernel tells of the last holder's end, and nothing where there never was a holder.
        if !self.is_held() {
            return;
        }
        let mut nothing = Vec::new();
        let gone = tokio::time::timeout(GONE_WITHIN, self.held.read_to_end(&mut nothing)).await;
        gone.unwrap_or_else(|_| panic!("{when}: a process is left")).expect("the pipe can be read");
    }
}
