//! The keeper: owns the command and all that comes of it. Ends with the command, or with the front.

use std::{
    fs, io,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use crow_core::Confinement;
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        prctl,
        signal::{SigSet, Signal, killpg},
        termios::tcgetsid,
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::{Pid, getpid, getppid, getsid, isatty, setpgid, setsid, tcsetpgrp},
};

use super::{
    CODE_CANNOT, CODE_NO_PROGRAM,
    ending::{self, Signals},
    orders::Orders,
    say, tree,
};
use crate::{
    environment::hide_secrets,
    sandbox::{Cell, Look},
};

/// Whose terminal is taken away may still write down where it was.
const HANG_UP_GRACE: Duration = Duration::from_secs(1);

/// Keeps the command of these orders for as long as somebody holds the other end of `front`.
pub(super) fn keep(orders: &Orders, front: OwnedFd) -> ! {
    let code = match Keeper::start(orders, front) {
        Ok(keeper) => match keeper.watch() {
            Ok(status) => {
                keeper.clean();
                ending::end_as(status)
            }
            Err(error) => {
                say(&format!("could not watch the command: {error}"));
                CODE_CANNOT
            }
        },
        Err(NotStarted { why, code }) => {
            say(&why);
            code
        }
    };
    std::process::exit(i32::from(code))
}

struct Keeper {
    signals: Signals,
    front: OwnedFd,
    command: Pid,
    /// Files that were not there when the command began, and must not be there when it has ended.
    unwanted: Vec<PathBuf>,
}

/// Why a command never ran, and the exit code that says so.
struct NotStarted {
    why: String,
    code: u8,
}

impl From<io::Error> for NotStarted {
    fn from(error: io::Error) -> Self {
        Self { why: format!("could not prepare the command: {error}"), code: CODE_CANNOT }
    }
}

impl From<Errno> for NotStarted {
    fn from(error: Errno) -> Self {
        io::Error::from(error).into()
    }
}

impl Keeper {
    fn start(orders: &Orders, front: OwnedFd) -> Result<Self, NotStarted> {
        // The front may have done this for us.
        let _ = setpgid(Pid::from_raw(0), Pid::from_raw(0));
        prctl::set_child_subreaper(true)?;
        let signals = Signals::take()?;
        let build = |look| Cell::build(orders, look).map_err(|why| NotStarted { why, code: CODE_CANNOT });
        let cell = build(Look::Own)?;
        let look = cell.look();
        let unwanted = unwanted(orders);
        let command = match start(orders, cell) {
            // Not every system gives a program a view of its own.
            Err(NotStarted { code: CODE_CANNOT, .. }) if look == Look::Own => {
                start(orders, build(Look::Common)?)?
            }
            started => started?,
        };
        Ok(Self { signals, front, command, unwanted })
    }

    /// Watches until the command has ended and nothing of it is left.
    fn watch(&self) -> io::Result<WaitStatus> {
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
                tree::end_now(&self.signals)?;
                return Ok(WaitStatus::Signaled(self.command, Signal::SIGKILL, false));
            }
            while let Some(signal) = self.signals.next()? {
                if signal == Signal::SIGCHLD {
                    if let Some(status) = self.reap()? {
                        tree::end_gently(&self.signals)?;
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

    /// Removes what nothing can keep a command from making.
    fn clean(&self) {
        for path in &self.unwanted {
            if path.symlink_metadata().is_ok() {
                match fs::remove_file(path) {
                    Ok(()) => say(&format!("removed {}: a held command made it", path.display())),
                    Err(error) => say(&format!("could not remove {}: {error}", path.display())),
                }
            }
        }
    }

    /// Buries the dead; gives how the command ended when it is among them.
    fn reap(&self) -> io::Result<Option<WaitStatus>> {
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

/// Where a repository could be told to take its configuration from somewhere else. What is not there cannot be sealed.
fn unwanted(orders: &Orders) -> Vec<PathBuf> {
    if orders.confinement != Confinement::Project {
        return Vec::new();
    }
    let repositories = orders.writable.iter().map(|root| Path::new(root).join(".git"));
    let repositories = repositories.filter(|git| git.symlink_metadata().is_ok_and(|found| found.is_dir()));
    let files = repositories.map(|git| git.join("commondir"));
    files.filter(|file| file.symlink_metadata().is_err()).collect()
}

/// Starts the command, held by its cell.
fn start(orders: &Orders, mut cell: Cell) -> Result<Pid, NotStarted> {
    let keeper = getpid();
    #[expect(clippy::disallowed_methods, reason = "it is a place where commands start")]
    let mut command = Command::new(&orders.program);
    command.args(&orders.args);
    for name in cell.variables_hidden() {
        command.env_remove(name);
    }
    if let Some(hidden) = &orders.hidden {
        hide_secrets(hidden, &mut command);
    }
    let after_fork = move || {
        SigSet::empty().thread_set_mask()?;
        take_terminal()?;
        cell.close()?;
        // Last, because a change of rights takes it back.
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        if getppid() == keeper { Ok(()) } else { Err(Errno::ESRCH.into()) }
    };
    #[expect(unsafe_code, reason = "the only way to act between fork and exec")]
    // SAFETY: the keeper has one thread, so its copy has every lock free and may do anything.
    unsafe {
        command.pre_exec(after_fork);
    }
    let child = command.spawn().map_err(|error| {
        let is_missing = error.kind() == io::ErrorKind::NotFound;
        let why = match is_missing {
            true => format!("there is no program {}", orders.program),
            false => format!("could not start {}: {error}", orders.program),
        };
        NotStarted { why, code: if is_missing { CODE_NO_PROGRAM } else { CODE_CANNOT } }
    })?;
    let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
    Ok(Pid::from_raw(pid))
}

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
