//! The keeper: owns the command and all that comes of it. Ends with the command, or with the front.

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
    CODE_CANNOT, CODE_NO_PROGRAM,
    ending::{self, SignalQueue},
    orders::LaunchSpec,
    print_error, tree,
};
use crate::{
    environment::hide_secrets,
    sandbox::{CommandSandbox, RepositorySurvey},
};

/// Whose terminal is taken away may still write down where it was.
const HANG_UP_GRACE: Duration = Duration::from_secs(1);

/// Keeps the command of these orders for as long as somebody holds the other end of `front`.
pub(super) fn supervise_command(orders: &LaunchSpec, front: OwnedFd) -> ! {
    let code = match CommandSupervisor::start(orders, front) {
        Ok(keeper) => match keeper.wait_for_command() {
            Ok(status) => {
                keeper.set_aside_new_files();
                keeper.explain_failure(status);
                ending::exit_with_status(status)
            }
            Err(error) => {
                print_error(&format!("could not watch the command: {error}"));
                CODE_CANNOT
            }
        },
        Err(LaunchError { why, code }) => {
            print_error(&why);
            code
        }
    };
    std::process::exit(i32::from(code))
}

struct CommandSupervisor {
    signals: SignalQueue,
    front: OwnedFd,
    command: Pid,
    /// The repositories that were there when the command began.
    repositories: RepositorySurvey,
    /// What the command could not do beside what the manual says.
    closed_besides: Option<&'static str>,
}

/// Why a command never ran, and the exit code that says so.
struct LaunchError {
    why: String,
    code: u8,
}

impl From<io::Error> for LaunchError {
    fn from(error: io::Error) -> Self {
        Self { why: format!("could not prepare the command: {error}"), code: CODE_CANNOT }
    }
}

impl From<Errno> for LaunchError {
    fn from(error: Errno) -> Self {
        io::Error::from(error).into()
    }
}

impl CommandSupervisor {
    fn start(orders: &LaunchSpec, front: OwnedFd) -> Result<Self, LaunchError> {
        // The front may have done this for us.
        let _ = setpgid(Pid::from_raw(0), Pid::from_raw(0));
        prctl::set_child_subreaper(true)?;
        let signals = SignalQueue::open()?;
        let repositories = match orders.confinement {
            Confinement::Project | Confinement::Guarded | Confinement::Offline => {
                RepositorySurvey::scan_repositories(orders)
            }
            Confinement::Free | Confinement::ReadOnly => Ok(RepositorySurvey::default()),
        };
        let repositories = repositories.map_err(|why| LaunchError { why, code: CODE_CANNOT })?;
        let cell = CommandSandbox::build(orders, &repositories)
            .map_err(|why| LaunchError { why, code: CODE_CANNOT })?;
        let closed_besides = cell.extra_restriction();
        let command = spawn_command(orders, cell)?;
        Ok(Self { signals, front, command, repositories, closed_besides })
    }

    /// Watches until the command has ended and nothing of it is left.
    fn wait_for_command(&self) -> io::Result<WaitStatus> {
        let mut deadline = None;
        loop {
            let left = deadline.map(|deadline: Instant| deadline.saturating_duration_since(Instant::now()));
            let tick = left.map(|left| PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO));
            let mut wanted = [
                PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.front.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut wanted, tick.unwrap_or(PollTimeout::NONE)) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
            let is_alone = wanted[1].any() == Some(true);
            if is_alone || deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                tree::kill_descendants(&self.signals)?;
                return Ok(WaitStatus::Signaled(self.command, Signal::SIGKILL, false));
            }
            while let Some(signal) = self.signals.next_signal()? {
                if signal == Signal::SIGCHLD {
                    if let Some(status) = self.reap_children()? {
                        tree::terminate_descendants(&self.signals)?;
                        return Ok(status);
                    }
                    continue;
                }
                if signal == Signal::SIGHUP {
                    deadline = deadline.or(Some(Instant::now() + HANG_UP_GRACE));
                }
                // It may have gone at this moment.
                let _ = killpg(self.command, signal);
            }
        }
    }

    /// Sets aside what nothing can keep a command from making.
    fn set_aside_new_files(&self) {
        self.repositories.set_aside_new().iter().for_each(|sentence| print_error(sentence));
    }

    /// Says what may have made the command fail.
    fn explain_failure(&self, status: WaitStatus) {
        if !matches!(status, WaitStatus::Exited(_, 0)) {
            self.closed_besides.iter().for_each(|sentence| print_error(sentence));
        }
    }

    /// Buries the dead; gives how the command ended when it is among them.
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

/// Starts the command, held by its cell.
fn spawn_command(orders: &LaunchSpec, cell: CommandSandbox) -> Result<Pid, LaunchError> {
    let keeper = getpid();
    #[expect(clippy::disallowed_methods, reason = "it is a place where commands start")]
    let mut command = Command::new(&orders.program);
    command.args(&orders.args);
    for name in cell.hidden_variables() {
        command.env_remove(name);
    }
    if let Some(hidden) = &orders.hidden {
        hide_secrets(hidden, &mut command);
    }
    let mut cell = Some(cell);
    let (told, tell) = pipe2(OFlag::O_CLOEXEC)?;
    let after_fork = move || {
        SigSet::empty().thread_set_mask()?;
        take_terminal()?;
        if let Some(cell) = cell.take() {
            cell.restrict_self().inspect_err(|error| {
                // Only a number comes back by itself.
                let _ = nix::unistd::write(&tell, error.to_string().as_bytes());
            })?;
        }
        // Last, because a change of rights takes it back.
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        if getppid() == keeper { Ok(()) } else { Err(Errno::ESRCH.into()) }
    };
    #[expect(unsafe_code, reason = "the only way to act between fork and exec")]
    // SAFETY: the keeper has one thread, so its copy has every lock free and may do anything.
    unsafe {
        command.pre_exec(after_fork);
    }
    let spawned = command.spawn();
    // With it goes our own end of the pipe.
    drop(command);
    let child = spawned.map_err(|error| {
        let is_missing = error.kind() == io::ErrorKind::NotFound;
        let why = match is_missing {
            true => format!("there is no program {}", orders.program),
            false => match read_failure_reason(told) {
                Some(why) => format!("could not hold {}, so it did not run: {why}", orders.program),
                None => format!("could not start {}: {error}", orders.program),
            },
        };
        LaunchError { why, code: if is_missing { CODE_NO_PROGRAM } else { CODE_CANNOT } }
    })?;
    let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
    Ok(Pid::from_raw(pid))
}

/// Reads why a command could not be shut in, when that was why it did not start. Its writers are gone by then.
fn read_failure_reason(told: OwnedFd) -> Option<String> {
    let mut why = String::new();
    let read = File::from(told).take(CAUSE_BYTES_MAX).read_to_string(&mut why);
    (read.is_ok() && !why.is_empty()).then_some(why)
}

/// A sentence.
const CAUSE_BYTES_MAX: u64 = 4096;

/// Gives the command what an interactive one needs: a group in the foreground where our caller has given us a
/// terminal, the terminal itself where nobody has taken it yet, and a session without one otherwise.
fn take_terminal() -> io::Result<()> {
    let stdin = io::stdin();
    let own = Pid::from_raw(0);
    let has_terminal = isatty(&stdin).unwrap_or(false);
    if has_terminal && tcgetsid(&stdin).is_ok_and(|session| getsid(None) == Ok(session)) {
        setpgid(own, own)?;
        // In the background this would stop us.
        let mask = SigSet::from(Signal::SIGTTOU).thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_BLOCK)?;
        let taken = tcsetpgrp(&stdin, getpid());
        mask.thread_set_mask()?;
        return taken.map_err(io::Error::from);
    }
    setsid()?;
    if has_terminal {
        #[expect(unsafe_code, reason = "no crate of ours knows this call")]
        // SAFETY: it takes two numbers. That somebody else has the terminal is no reason not to run.
        unsafe {
            libc::ioctl(libc::STDIN_FILENO, libc::TIOCSCTTY, 0);
        }
    }
    Ok(())
}
