//! A program that has the terminal of this process. It is a job of its own, as in a shell: Ctrl-C and Ctrl-Z are for
//! the program only, and all that it started can be ended.

use std::{
    fs::File, io, os::unix::process::ExitStatusExt as _, path::Path, process::ExitStatus, time::Duration,
};

use nix::{
    sys::signal::{SigSet, Signal},
    unistd::{self, Pid},
};
use rustix::process::{WaitId, WaitIdOptions, waitid};
use tokio::{
    process::{Child, Command},
    signal::unix::{SignalKind, signal},
    time::{sleep, timeout},
};

use super::{
    process_group::ProcessGroup,
    tty::{TerminalMode, open_terminal, suspend_process},
};

/// Time of an editor to save what it can, and to leave the screen as it was.
const END_WAIT_MAX: Duration = Duration::from_secs(2);

/// The end of processes that are no children of this one is not reported.
const END_POLL: Duration = Duration::from_millis(20);

/// Returns the command that runs a line of the system's shell with a path at its end.
#[expect(clippy::disallowed_methods, reason = "it shares the terminal of this process")]
pub(crate) fn shell_command(command_line: &str, argument: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{command_line} \"$1\""), "sh"]).arg(argument);
    command
}

/// A program in the foreground. Dropping it ends it and takes the terminal back.
pub(crate) struct ForegroundProgram {
    child: Child,
    group: ProcessGroup,
    /// `None` if this process has no terminal.
    terminal: Option<LentTerminal>,
    has_ended: bool,
}

impl ForegroundProgram {
    /// Starts a command and lends it the terminal.
    pub(crate) fn start(mut command: Command) -> io::Result<Self> {
        let terminal = LentTerminal::of_process();
        let device = terminal.as_ref().map(|terminal| terminal.device.try_clone()).transpose()?;
        let become_job = move || {
            unistd::setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
            if let Some(device) = &device {
                set_foreground(device, unistd::getpid())?;
            }
            Ok(())
        };
        #[expect(unsafe_code, reason = "the only way to act between fork and exec")]
        // SAFETY: the closure only makes system calls that are safe after fork; it neither allocates nor locks.
        unsafe {
            command.pre_exec(become_job);
        }
        // A child that does not start may have the terminal already, which is taken back on drop.
        let child = command.spawn()?;
        Ok(Self { group: ProcessGroup::of_leader(&child)?, child, terminal, has_ended: false })
    }

    /// Waits for the end. If the program is stopped, this process stops too, until the shell continues both.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let mut changes = signal(SignalKind::child())?;
        loop {
            self.pass_stop_on()?;
            tokio::select! {
                biased;
                status = self.child.wait() => {
                    let status = status?;
                    // Without its leader, a job in the foreground would keep the terminal.
                    self.has_ended = status.signal().is_none();
                    return Ok(status);
                }
                _ = changes.recv() => {}
            }
        }
    }

    /// Asks the program to end, and ends it if it does not.
    pub(crate) async fn end(&mut self) -> io::Result<()> {
        self.group.terminate();
        let ended = async {
            self.child.wait().await?;
            while self.group.is_alive() {
                sleep(END_POLL).await;
            }
            io::Result::Ok(())
        };
        if let Ok(ended) = timeout(END_WAIT_MAX, ended).await {
            ended?;
        }
        self.group.kill();
        self.child.wait().await.map(drop)
    }

    fn pass_stop_on(&self) -> io::Result<()> {
        let Some(leader) = rustix::process::Pid::from_raw(self.group.id().cast_signed()) else {
            return Ok(());
        };
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        // An error is the end of the program, which is waited for elsewhere.
        if let Ok(Some(_)) = waitid(WaitId::Pid(leader), options) {
            if let Some(terminal) = &self.terminal {
                terminal.take_back()?;
            }
            suspend_process()?;
            if let Some(terminal) = &self.terminal {
                // A shell can continue this process in the background, where it has no terminal to lend.
                while !terminal.is_own()? {
                    suspend_process()?;
                }
                terminal.lend_to(&self.group)?;
            }
            self.group.resume();
        }
        Ok(())
    }
}

impl Drop for ForegroundProgram {
    fn drop(&mut self) {
        if !self.has_ended {
            self.group.kill();
        }
    }
}

/// The terminal of this process while another program has it. Dropping it takes the terminal back.
struct LentTerminal {
    device: File,
    /// The mode before, in case the program is ended.
    mode: TerminalMode,
    /// The process group of this process.
    owner: Pid,
}

impl LentTerminal {
    /// Returns the terminal, unless there is none or another job has it.
    fn of_process() -> Option<Self> {
        let device = open_terminal().ok()?;
        let owner = unistd::getpgrp();
        let mode = TerminalMode::of_terminal(&device).ok()?;
        (unistd::tcgetpgrp(&device).ok()? == owner).then_some(Self { device, mode, owner })
    }

    /// Whether the terminal is this process's, and not that of another job.
    fn is_own(&self) -> io::Result<bool> {
        Ok(unistd::tcgetpgrp(&self.device)? == self.owner)
    }

    fn lend_to(&self, group: &ProcessGroup) -> io::Result<()> {
        set_foreground(&self.device, Pid::from_raw(group.id().cast_signed()))
    }

    fn take_back(&self) -> io::Result<()> {
        set_foreground(&self.device, self.owner)
    }
}

impl Drop for LentTerminal {
    fn drop(&mut self) {
        // A terminal that is gone needs no restoring.
        drop(self.take_back().and_then(|()| self.mode.apply_to(&self.device)));
    }
}

/// Gives a terminal to a process group of this session, also from the background.
fn set_foreground(terminal: &File, group: Pid) -> io::Result<()> {
    let mut background_write = SigSet::empty();
    background_write.add(Signal::SIGTTOU);
    let before = background_write.thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_BLOCK)?;
    let set = unistd::tcsetpgrp(terminal, group);
    before.thread_set_mask()?;
    Ok(set?)
}

/// Runs a command in place of this process; returns only if that fails.
#[cfg(not(target_os = "linux"))]
pub(crate) fn run_in_place(command: &mut std::process::Command) -> std::io::Result<std::process::ExitCode> {
    use std::os::unix::process::CommandExt as _;
    Err(command.exec())
}
