//! The frontend of the supervisor: the process that its caller sees, signals and waits for.
//!
//! Behind it is the supervisor proper, a second process that owns the command. When the frontend ends for any reason,
//! the supervisor notices through the pipe between them and ends everything else, so that `kill -9` of the frontend,
//! or of our caller, leaves nothing. Should the supervisor be killed, the frontend inherits its processes and does
//! the same.

use std::{
    convert::Infallible,
    fs::File,
    io,
    os::{
        fd::{AsFd as _, FromRawFd as _, OwnedFd},
        unix::fs::MetadataExt as _,
    },
    process::ExitCode,
};

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        prctl,
        signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, kill, sigaction},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::{ForkResult, Pid, fork, getppid, pipe2, setpgid},
};

use super::{
    command_pipes, command_supervisor, descendants,
    exit::{self, SignalQueue},
    failure::{EXIT_CANNOT_RUN, print_error},
};
use crate::launch_spec::LaunchSpec;

/// The polling interval where the system cannot report the end of a parent.
const POLL_INTERVAL_MS: u16 = 500;

/// Runs until the command has ended, then ends with the same status.
pub(super) fn run_frontend(spec: &LaunchSpec) -> ExitCode {
    let Err(error) = fork_supervisor(spec);
    print_error(&format!("could not supervise the command: {error}"));
    ExitCode::from(EXIT_CANNOT_RUN)
}

fn fork_supervisor(spec: &LaunchSpec) -> io::Result<Infallible> {
    let frontend = SupervisorFrontend::new(spec.owner_pid)?;
    let (reader, writer) = pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    #[expect(unsafe_code, reason = "the keeper is the same program, no other one")]
    // SAFETY: a supervisor has one thread, so the copy has every lock free and may do anything.
    match unsafe { fork() }? {
        ForkResult::Child => {
            drop((frontend, writer));
            command_supervisor::supervise_command(spec, reader)
        }
        ForkResult::Parent { child } => {
            drop(reader);
            command_pipes::detach_from_pipes();
            // Both processes do this; a signal for our group must not reach the supervisor.
            let _ = setpgid(child, child);
            // While it is open, the supervisor knows that the frontend is alive.
            let result = frontend.forward_signals(child);
            drop(writer);
            result
        }
    }
}

struct SupervisorFrontend {
    signals: SignalQueue,
    parent: Pid,
    /// The processes whose end ends this one.
    owners: Vec<OwnedFd>,
    has_parent_pidfd: bool,
}

impl SupervisorFrontend {
    fn new(owner_pid: Option<i32>) -> io::Result<Self> {
        let parent = getppid();
        // A process that ignores SIGCHLD never learns how its children end.
        let action = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
        #[expect(unsafe_code, reason = "the only way to set it")]
        // SAFETY: the default action is no code of ours.
        unsafe {
            sigaction(Signal::SIGCHLD, &action)?;
        }
        prctl::set_child_subreaper(true)?;
        let signals = SignalQueue::open()?;
        let parent_pidfd = open_pidfd(parent);
        let has_parent_pidfd = parent_pidfd.is_some();
        let owner_pidfd =
            owner_pid.filter(|&pid| is_same_executable(pid)).and_then(|pid| open_pidfd(Pid::from_raw(pid)));
        Ok(Self {
            signals,
            parent,
            owners: parent_pidfd.into_iter().chain(owner_pidfd).collect(),
            has_parent_pidfd,
        })
    }

    /// Forwards signals until the supervisor has ended; ends at once when one of the masters does.
    fn forward_signals(&self, supervisor: Pid) -> io::Result<Infallible> {
        let poll_timeout =
            if self.has_parent_pidfd { PollTimeout::NONE } else { PollTimeout::from(POLL_INTERVAL_MS) };
        loop {
            let mut poll_fds = vec![PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
            poll_fds.extend(self.owners.iter().map(|owner| PollFd::new(owner.as_fd(), PollFlags::POLLIN)));
            match poll(&mut poll_fds, poll_timeout) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
            // A parent that was gone before it could be watched has been replaced by another.
            let has_owner_ended = poll_fds[1..].iter().any(|owner| owner.any() == Some(true));
            if has_owner_ended || getppid() != self.parent {
                std::process::exit(i32::from(EXIT_CANNOT_RUN));
            }
            while let Some(signal) = self.signals.next_signal()? {
                if signal == Signal::SIGCHLD {
                    self.exit_if_supervisor_ended(supervisor)?;
                } else {
                    // It may be about to report its end.
                    let _ = kill(supervisor, signal);
                }
            }
        }
    }

    /// Ends as the supervisor did, once it has.
    fn exit_if_supervisor_ended(&self, supervisor: Pid) -> io::Result<()> {
        let status = match waitpid(supervisor, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return Ok(()),
            Ok(status) => status,
            Err(error) => return Err(error.into()),
        };
        // It leaves no processes unless it was killed itself.
        descendants::kill_descendants(&self.signals)?;
        exit::exit_with_status(status)
    }
}

/// Opens a descriptor that becomes readable at the end of a process; `None` where the system has no pidfds.
fn open_pidfd(pid: Pid) -> Option<OwnedFd> {
    #[expect(unsafe_code, reason = "no crate of ours knows this call")]
    // SAFETY: the call takes two numbers and returns a new descriptor with no other owner, or an error.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0);
        let fd = i32::try_from(fd).ok().filter(|&fd| fd >= 0)?;
        Some(OwnedFd::from_raw_fd(fd))
    }
}

/// Whether a pid is a process of our executable here: an editor may run in another pid namespace than the caller of
/// the command, where the number means another process.
fn is_same_executable(pid: i32) -> bool {
    let metadata = |path: String| File::open(path).and_then(|file| file.metadata()).ok();
    match (metadata(format!("/proc/{pid}/exe")), metadata("/proc/self/exe".into())) {
        (Some(other), Some(own)) => (other.dev(), other.ino()) == (own.dev(), own.ino()),
        (_, _) => false,
    }
}
