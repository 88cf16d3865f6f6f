//! The front of the warden: the process that its caller sees, signals and waits for.
//!
//! Behind it stands the keeper, a second process out of everybody's sight that owns the command. Whatever ends the
//! front, the keeper notices by the pipe between them and ends all the rest, so that `kill -9` of the front, or of
//! our caller, leaves nothing; and should the keeper be ended, the front inherits its processes and does the same.

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
    CODE_CANNOT,
    ending::{self, SignalQueue},
    keeper,
    orders::LaunchSpec,
    print_error, tree,
};

/// Where the system cannot tell us of a parent's end we look this often.
const LOOK_EVERY_MS: u16 = 500;

/// Serves until the command is over; then ends as it did.
pub(super) fn run_frontend(orders: &LaunchSpec) -> ExitCode {
    let Err(error) = fork_supervisor(orders);
    print_error(&format!("could not watch the command: {error}"));
    ExitCode::from(CODE_CANNOT)
}

fn fork_supervisor(orders: &LaunchSpec) -> io::Result<Infallible> {
    let front = SupervisorFrontend::new(orders.master)?;
    let (read, write) = pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    #[expect(unsafe_code, reason = "the keeper is the same program, no other one")]
    // SAFETY: a warden has one thread, so the copy has every lock free and may do anything.
    match unsafe { fork() }? {
        ForkResult::Child => {
            drop((front, write));
            keeper::supervise_command(orders, read)
        }
        ForkResult::Parent { child } => {
            drop(read);
            // Whoever is first; a signal for our group must not reach the keeper.
            let _ = setpgid(child, child);
            // While it is open the keeper knows that we are here.
            let over = front.forward_signals(child);
            drop(write);
            over
        }
    }
}

struct SupervisorFrontend {
    signals: SignalQueue,
    parent: Pid,
    /// Those whose end ends us.
    masters: Vec<OwnedFd>,
    is_told: bool,
}

impl SupervisorFrontend {
    fn new(master: Option<i32>) -> io::Result<Self> {
        let parent = getppid();
        // Who ignores its children never hears how they end.
        let action = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
        #[expect(unsafe_code, reason = "the only way to set it")]
        // SAFETY: the default action is no code of ours.
        unsafe {
            sigaction(Signal::SIGCHLD, &action)?;
        }
        prctl::set_child_subreaper(true)?;
        let signals = SignalQueue::open()?;
        let parent_end = open_pidfd(parent);
        let is_told = parent_end.is_some();
        let master =
            master.filter(|&pid| is_same_executable(pid)).and_then(|pid| open_pidfd(Pid::from_raw(pid)));
        Ok(Self { signals, parent, masters: parent_end.into_iter().chain(master).collect(), is_told })
    }

    /// Passes signals on until the keeper has ended; ends at once when one of the masters does.
    fn forward_signals(&self, keeper: Pid) -> io::Result<Infallible> {
        let tick = if self.is_told { PollTimeout::NONE } else { PollTimeout::from(LOOK_EVERY_MS) };
        loop {
            let mut wanted = vec![PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
            wanted.extend(self.masters.iter().map(|master| PollFd::new(master.as_fd(), PollFlags::POLLIN)));
            match poll(&mut wanted, tick) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
            // A parent that was gone before it could be watched has another in its place.
            let is_over = wanted[1..].iter().any(|master| master.any() == Some(true));
            if is_over || getppid() != self.parent {
                std::process::exit(i32::from(CODE_CANNOT));
            }
            while let Some(signal) = self.signals.next_signal()? {
                if signal == Signal::SIGCHLD {
                    self.exit_if_supervisor_ended(keeper)?;
                } else {
                    // It may be about to tell us of its end.
                    let _ = kill(keeper, signal);
                }
            }
        }
    }

    /// Ends as the keeper did, when it did.
    fn exit_if_supervisor_ended(&self, keeper: Pid) -> io::Result<()> {
        let status = match waitpid(keeper, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return Ok(()),
            Ok(status) => status,
            Err(error) => return Err(error.into()),
        };
        // It leaves nobody behind unless it was killed itself.
        tree::kill_descendants(&self.signals)?;
        ending::exit_with_status(status)
    }
}

/// Opens what becomes readable at the end of a process; `None` where the system has no such thing.
fn open_pidfd(pid: Pid) -> Option<OwnedFd> {
    #[expect(unsafe_code, reason = "no crate of ours knows this call")]
    // SAFETY: the call takes two numbers and gives a new descriptor that nobody else owns, or an error.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0);
        let fd = i32::try_from(fd).ok().filter(|&fd| fd >= 0)?;
        Some(OwnedFd::from_raw_fd(fd))
    }
}

/// Tells whether a number means a process of our executable here: an editor may live in another name space than
/// whoever wanted the command, where the number means somebody else.
fn is_same_executable(pid: i32) -> bool {
    let file = |path: String| File::open(path).and_then(|file| file.metadata()).ok();
    match (file(format!("/proc/{pid}/exe")), file("/proc/self/exe".into())) {
        (Some(other), Some(own)) => (other.dev(), other.ino()) == (own.dev(), own.ino()),
        (_, _) => false,
    }
}
