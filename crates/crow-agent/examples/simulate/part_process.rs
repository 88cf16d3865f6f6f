//! A process of this program that runs a part of the seeds.
#![expect(clippy::disallowed_methods, reason = "it starts itself, and nothing of Crow")]

use std::io;
use std::process::{Child, Command, Stdio};

/// The argument before the first seed and the end of the seeds.
pub(crate) const PART: &str = "--part";

pub(crate) struct PartProcess(Child);

impl PartProcess {
    pub(crate) fn start(first: u64, end: u64) -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(PART).args([first, end].map(|number| number.to_string()));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map(Self)
    }

    /// Waits for its end, and returns what it wrote to stdout.
    pub(crate) fn wait_for_output(self) -> io::Result<Vec<u8>> {
        let output = self.0.wait_with_output()?;
        if !output.status.success() {
            return Err(io::Error::other(format!("a part of the seeds ended with {}", output.status)));
        }
        Ok(output.stdout)
    }
}
