//! All that holds one command: built before it is started, closed around it by itself.

use std::{io, path::PathBuf};

use crow_core::{Confinement, Network};
use landlock::RulesetCreated;
use seccompiler::BpfProgram;

use super::{calls, files, view::View};
use crate::warden::orders::Orders;

/// Ways to programs outside that would do for a command what it may not, and that can be had by name only. What is
/// not named is not refused: the kernel cannot tell one socket from another yet.
const VARIABLES_HIDDEN: [&str; 10] = [
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "DOCKER_HOST",
    "GPG_AGENT_INFO",
    "SSH_AGENT_PID",
    "SSH_AUTH_SOCK",
    "STY",
    "TMUX",
    "VSCODE_IPC_HOOK_CLI",
    "WAYLAND_DISPLAY",
];

/// What holds one command.
pub(crate) struct Cell {
    walls: Option<Walls>,
}

/// What a command sees of the file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// A view of its own, in which what is protected cannot be changed.
    Own,
    /// The same as everybody.
    Common,
}

struct Walls {
    view: Option<View>,
    files: Option<RulesetCreated>,
    calls: Vec<BpfProgram>,
}

impl Cell {
    /// Builds what these orders want; the other side is a sentence.
    pub(crate) fn build(orders: &Orders, look: Look) -> Result<Self, String> {
        let writable = match orders.confinement {
            Confinement::Free => return Ok(Self { walls: None }),
            Confinement::Project => Some(orders.writable.as_slice()),
            Confinement::ReadOnly => None,
        };
        let view = match look {
            Look::Own => View::find(writable.unwrap_or_default(), &orders.protected),
            Look::Common => None,
        };
        let places = writable.map(|writable| match view {
            Some(_) => writable.iter().map(PathBuf::from).collect(),
            None => files::around(writable, &orders.protected),
        });
        let files = files::rules(places.as_deref(), orders.network).map_err(broken)?;
        let calls = match calls::filters(orders.network).map_err(broken)? {
            Some(calls) => calls,
            None if orders.network == Network::Closed => {
                return Err("on this processor a command cannot be kept from the network".into());
            }
            None => Vec::new(),
        };
        // What a caller left open by mistake would be a way out.
        close_on_exec().map_err(broken)?;
        Ok(Self { walls: Some(Walls { view, files, calls }) })
    }

    /// Variables that the command does not get.
    pub(crate) fn variables_hidden(&self) -> &'static [&'static str] {
        if self.walls.is_some() { &VARIABLES_HIDDEN } else { &[] }
    }

    /// Tells what the command would see of the file system.
    pub(crate) fn look(&self) -> Look {
        match &self.walls {
            Some(Walls { view: Some(_), .. }) => Look::Own,
            Some(Walls { view: None, .. }) | None => Look::Common,
        }
    }

    /// Shuts this process in, and whatever comes of it.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        let Some(walls) = &mut self.walls else { return Ok(()) };
        // The other walls let nobody do this.
        if let Some(view) = &walls.view {
            view.enter()?;
        }
        if let Some(files) = walls.files.take() {
            files.restrict_self().map_err(io::Error::other)?;
        }
        for filter in &walls.calls {
            seccompiler::apply_filter(filter).map_err(io::Error::other)?;
        }
        Ok(())
    }
}

fn broken(error: impl std::fmt::Display) -> String {
    format!("could not prepare the sandbox: {error}")
}

/// Has everything but the three standard streams closed when the command begins.
fn close_on_exec() -> io::Result<()> {
    #[expect(unsafe_code, reason = "no crate of ours knows this call")]
    // SAFETY: it takes three numbers and closes nothing now.
    let done = unsafe {
        libc::syscall(libc::SYS_close_range, FIRST_OTHER, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC)
    };
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        _ if done == 0 => Ok(()),
        // A kernel older than this has no rules for files either.
        Some(libc::ENOSYS | libc::EINVAL) => Ok(()),
        _ => Err(error),
    }
}

/// The first descriptor behind stdin, stdout and stderr.
const FIRST_OTHER: libc::c_uint = 3;
