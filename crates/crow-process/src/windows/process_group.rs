//! A program with everything it started, as a job object. Windows has no signals: an end is a kill, and only a program
//! on a terminal can be interrupted.

use std::{
    fs::File,
    io::{self, Write as _},
    os::windows::io::BorrowedHandle,
    sync::Arc,
};

use super::job_object::{JobObject, resume_process};

/// The byte that Ctrl-C sends to a terminal.
const INTERRUPT: &[u8] = b"\x03";

/// The processes of a program; clones share them.
#[derive(Debug, Clone)]
pub(crate) struct ProcessGroup {
    job: Arc<JobObject>,
    pid: u32,
    /// The input of its terminal.
    terminal: Option<Arc<File>>,
}

impl ProcessGroup {
    /// Takes a process that was created suspended, and lets it run: nothing that it starts is outside.
    pub(super) fn contain(
        process: BorrowedHandle<'_>,
        pid: u32,
        terminal: Option<Arc<File>>,
    ) -> io::Result<Self> {
        let group = Self { job: Arc::new(JobObject::new()?), pid, terminal };
        group.job.add_process(process)?;
        resume_process(pid)?;
        Ok(group)
    }

    /// Returns the number that identifies it while it lives.
    pub(crate) fn id(&self) -> u32 {
        self.pid
    }

    /// Ends it at once: there is no request to end.
    pub(crate) fn terminate(&self) {
        self.kill();
    }

    /// Does nothing: the terminal is closed when its program has ended.
    pub(crate) fn hang_up(&self) {}

    /// Interrupts a program on a terminal; ends any other.
    pub(crate) fn interrupt(&self) {
        match &self.terminal {
            Some(terminal) => {
                if let Err(error) = (&**terminal).write_all(INTERRUPT) {
                    tracing::debug!(%error, "could not interrupt a program on a terminal");
                }
            }
            None => self.kill(),
        }
    }

    /// Ends every process.
    pub(crate) fn kill(&self) {
        if let Err(error) = self.job.terminate() {
            tracing::warn!(%error, pid = self.pid, "could not end the processes of a program");
        }
    }
}
