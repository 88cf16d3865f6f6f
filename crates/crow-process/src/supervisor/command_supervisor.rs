//! The supervisor process: owns the command and all its descendants. Ends with the command, or with the frontend.

use std::{
    fs::File,
    io::{self, Read as _},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::process::CommandExt as _,
    },
    process::Command,
    time::{Duration, Instant},
};

use crow_core::Confinement;
use nix::{
    errno::Errno,
    fcntl::OFlag,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        prctl,
        signal::{SigSet, Signal, killpg},
        termios::tcgetsid,
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::{Pid, getpid, getppid, getsid, isatty, pipe2, setpgid, setsid, tcsetpgrp},
};

use super::{
    command_pipes, descendants,
    exit::{self, SignalQueue},
    failure::{EXIT_CANNOT_RUN, EXIT_NOT_FOUND, print_error},
};
use crate::{
    environment::hide_secrets,
    launch_spec::LaunchSpec,
    sandbox::{CommandSandbox, RepositorySurvey},
    system::signals::restore_default_actions,
};

/// A program whose terminal hangs up may still save its state.
const HANG_UP_GRACE: Duration = Duration::from_secs(1);

/// Supervises the command as long as the other end of `frontend` is open.
pub(super) fn supervise_command(spec: &LaunchSpec, frontend: OwnedFd) -> ! {
    let exit_code = match CommandSupervisor::start(spec, frontend) {
        Ok(supervisor) => match supervisor.wait_for_command() {
            Ok(status) => {
                supervisor.set_aside_new_files();
                supervisor.explain_failure(status);
                exit::exit_with_status(status)
            }
            Err(error) => {
                print_error(&format!("could not supervise the command: {error}"));
                EXIT_CANNOT_RUN
            }
        },
        Err(LaunchError { reason, exit_code }) => {
            print_error(&reason);
            exit_code
        }
    };
    std::process::exit(i32::from(exit_code))
}

struct CommandSupervisor {
    signals: SignalQueue,
    frontend: OwnedFd,
    command: Pid,
    /// Whether the command gets SIGTERM before SIGKILL when the frontend ends.
    has_grace: bool,
    /// The repositories that existed when the command started.
    repositories: RepositorySurvey,
    /// A restriction of the command in addition to those in the manual.
    extra_restriction: Option<&'static str>,
}

/// The reason why a command never ran, and its exit code.
struct LaunchError {
    reason: String,
    exit_code: u8,
}

impl From<io::Error> for LaunchError {
    fn from(error: io::Error) -> Self {
        Self { reason: format!("could not prepare the command: {error}"), exit_code: EXIT_CANNOT_RUN }
    }
}

impl From<Errno> for LaunchError {
    fn from(error: Errno) -> Self {
        io::Error::from(error).into()
    }
}

impl CommandSupervisor {
    fn start(spec: &LaunchSpec, frontend: OwnedFd) -> Result<Self, LaunchError> {
        // The frontend may have done this already.
        let _ = setpgid(Pid::from_raw(0), Pid::from_raw(0));
        prctl::set_child_subreaper(true)?;
        let signals = SignalQueue::open()?;
        let repositories = match spec.confinement {
            Confinement::Project | Confinement::Guarded | Confinement::Offline => {
                RepositorySurvey::scan_repositories(spec)
            }
            Confinement::Unconfined | Confinement::ReadOnly => Ok(RepositorySurvey::default()),
        };
        let repositories =
            repositories.map_err(|reason| LaunchError { reason, exit_code: EXIT_CANNOT_RUN })?;
        let sandbox = CommandSandbox::build(spec, &repositories)
            .map_err(|reason| LaunchError { reason, exit_code: EXIT_CANNOT_RUN })?;
        let extra_restriction = sandbox.extra_restriction();
        let command = spawn_command(spec, sandbox)?;
        command_pipes::detach_from_pipes();
        let has_grace = spec.has_grace;
        Ok(Self { signals, frontend, command, has_grace, repositories, extra_restriction })
    }

    /// Waits until the command has ended and none of its processes is left.
    fn wait_for_command(&self) -> io::Result<WaitStatus> {
        let mut deadline = None;
        loop {
            let remaining =
                deadline.map(|deadline: Instant| deadline.saturating_duration_since(Instant::now()));
            let poll_timeout =
                remaining.map(|remaining| PollTimeout::try_from(remaining).unwrap_or(PollTimeout::ZERO));
            let mut poll_fds = [
                PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.frontend.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut poll_fds, poll_timeout.unwrap_or(PollTimeout::NONE)) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
            let is_frontend_gone = poll_fds[1].any() == Some(true);
            if is_frontend_gone && self.has_grace {
                descendants::terminate_descendants(&self.signals)?;
                return Ok(WaitStatus::Signaled(self.command, Signal::SIGTERM, false));
            }
            if is_frontend_gone || deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                descendants::kill_descendants(&self.signals)?;
                return Ok(WaitStatus::Signaled(self.command, Signal::SIGKILL, false));
            }
            while let Some(signal) = self.signals.next_signal()? {
                if signal == Signal::SIGCHLD {
                    if let Some(status) = self.reap_children()? {
                        descendants::terminate_descendants(&self.signals)?;
                        return Ok(status);
                    }
                    continue;
                }
                if signal == Signal::SIGHUP {
                    deadline = deadline.or(Some(Instant::now() + HANG_UP_GRACE));
                }
                // It may have ended at this moment.
                let _ = killpg(self.command, signal);
            }
        }
    }

    /// Sets aside what a command cannot be prevented from creating.
    fn set_aside_new_files(&self) {
        self.repositories.set_aside_new().iter().for_each(|message| print_error(message));
    }

    /// Explains what may have made the command fail.
    fn explain_failure(&self, status: WaitStatus) {
        if !matches!(status, WaitStatus::Exited(_, 0)) {
            self.extra_restriction.iter().for_each(|message| print_error(message));
        }
    }

    /// Reaps children; returns the status of the command if it is among them.
    fn reap_children(&self) -> io::Result<Option<WaitStatus>> {
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) => return Ok(None),
                Ok(status) if status.pid() == Some(self.command) => return Ok(Some(status)),
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Starts the command in its sandbox.
fn spawn_command(spec: &LaunchSpec, sandbox: CommandSandbox) -> Result<Pid, LaunchError> {
    let supervisor_pid = getpid();
    #[expect(clippy::disallowed_methods, reason = "it is a place where commands start")]
    let mut command = Command::new(&spec.program);
    command.args(&spec.args);
    for name in sandbox.hidden_variables() {
        command.env_remove(name);
    }
    if let Some(hidden) = &spec.hidden_variables {
        hide_secrets(hidden, &mut command);
    }
    let mut sandbox = Some(sandbox);
    let (failure_reader, failure_writer) = pipe2(OFlag::O_CLOEXEC)?;
    let after_fork = move || {
        restore_default_actions()?;
        SigSet::empty().thread_set_mask()?;
        take_terminal()?;
        if let Some(sandbox) = sandbox.take() {
            sandbox.restrict_self().inspect_err(|error| {
                // Only a number is returned automatically.
                let _ = nix::unistd::write(&failure_writer, error.to_string().as_bytes());
            })?;
        }
        // Last, because a change of credentials clears it.
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        if getppid() == supervisor_pid { Ok(()) } else { Err(Errno::ESRCH.into()) }
    };
    #[expect(unsafe_code, reason = "the only way to act between fork and exec")]
    // SAFETY: the supervisor has one thread, so its copy has every lock free and may do anything.
    unsafe {
        command.pre_exec(after_fork);
    }
    let result = command.spawn();
    // This closes our own end of the pipe.
    drop(command);
    let child = result.map_err(|error| {
        let is_missing = error.kind() == io::ErrorKind::NotFound;
        let reason = match is_missing {
            true => format!("there is no program {}", spec.program),
            false => match read_failure_reason(failure_reader) {
                Some(reason) => format!("could not confine {}, so it did not run: {reason}", spec.program),
                None => format!("could not start {}: {error}", spec.program),
            },
        };
        LaunchError { reason, exit_code: if is_missing { EXIT_NOT_FOUND } else { EXIT_CANNOT_RUN } }
    })?;
    let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
    Ok(Pid::from_raw(pid))
}

/// Reads why a command could not be confined, if that is why it did not start. The writers are gone by then.
fn read_failure_reason(failure_reader: OwnedFd) -> Option<String> {
    let mut reason = String::new();
    let read = File::from(failure_reader).take(REASON_BYTES_MAX).read_to_string(&mut reason);
    (read.is_ok() && !reason.is_empty()).then_some(reason)
}

/// One sentence.
const REASON_BYTES_MAX: u64 = 4096;

/// Gives the command what an interactive one needs: a foreground process group where our caller passed a terminal,
/// the terminal itself if it is free, and otherwise a session without one.
fn take_terminal() -> io::Result<()> {
    let stdin = io::stdin();
    let self_pid = Pid::from_raw(0);
    let has_terminal = isatty(&stdin).unwrap_or(false);
    if has_terminal && tcgetsid(&stdin).is_ok_and(|session| getsid(None) == Ok(session)) {
        setpgid(self_pid, self_pid)?;
        // In the background this would stop us.
        let mask = SigSet::from(Signal::SIGTTOU).thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_BLOCK)?;
        let result = tcsetpgrp(&stdin, getpid());
        mask.thread_set_mask()?;
        return result.map_err(io::Error::from);
    }
    setsid()?;
    if has_terminal {
        #[expect(unsafe_code, reason = "no crate of ours knows this call")]
        // SAFETY: it takes two numbers. A terminal that another session owns is no reason not to run.
        unsafe {
            libc::ioctl(libc::STDIN_FILENO, libc::TIOCSCTTY, 0);
        }
    }
    Ok(())
}
