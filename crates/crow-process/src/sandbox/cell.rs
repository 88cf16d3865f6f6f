//! All that holds one command: built before it is started, closed around it by itself.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crow_core::Confinement;
use landlock::RulesetCreated;
use seccompiler::BpfProgram;

use super::{
    calls::{self, SyscallRules},
    capabilities, files,
    repositories::RepositorySurvey,
    sockets::{HiddenPaths, UserFolders},
    view::MountView,
};
use crate::warden::orders::LaunchSpec;

/// Ways to programs outside that would do for a command what it may not.
const VARIABLES_HIDDEN: [&str; 42] = [
    "ALACRITTY_SOCKET",
    "AT_SPI_BUS_ADDRESS",
    "BUILDKIT_HOST",
    "CONTAINERD_ADDRESS",
    "CONTAINER_HOST",
    "DBUS_SESSION_BUS_ADDRESS",
    "DBUS_STARTER_ADDRESS",
    "DBUS_SYSTEM_BUS_ADDRESS",
    "DISPLAY",
    "DOCKER_HOST",
    "EMACS_SERVER_FILE",
    "EMACS_SOCKET_NAME",
    "GNOME_KEYRING_CONTROL",
    "GPG_AGENT_INFO",
    "HYPRLAND_INSTANCE_SIGNATURE",
    "I3SOCK",
    "INCUS_SOCKET",
    "KITTY_LISTEN_ON",
    "LIBVIRT_DEFAULT_URI",
    "LXD_SOCKET",
    "NIRI_SOCKET",
    "NOTIFY_SOCKET",
    "NVIM",
    "NVIM_LISTEN_ADDRESS",
    "PIPEWIRE_REMOTE",
    "PULSE_SERVER",
    "SESSION_MANAGER",
    "SSH_AGENT_PID",
    "SSH_AUTH_SOCK",
    "STY",
    "SWAYSOCK",
    "TMUX",
    "TMUX_PANE",
    "VSCODE_GIT_IPC_HANDLE",
    "VSCODE_IPC_HOOK",
    "VSCODE_IPC_HOOK_CLI",
    "WAYLAND_DISPLAY",
    "WAYLAND_SOCKET",
    "WEZTERM_UNIX_SOCKET",
    "WSL_INTEROP",
    "XDG_RUNTIME_DIR",
    "ZELLIJ_SESSION_NAME",
];

/// Said of a command that failed where it could use none.
const SOCKETS_CLOSED: &str = "the command could use no Unix sockets: a program listens on one whose path cannot be told \
                              (/proc/net/unix)";

/// What holds one command.
pub(crate) struct CommandSandbox {
    walls: Option<SandboxLayers>,
}

struct SandboxLayers {
    view: Option<MountView>,
    files: RulesetCreated,
    calls: Vec<BpfProgram>,
    /// A socket of another program may be in sight, so there are none for the command.
    is_socket_in_sight: bool,
}

impl CommandSandbox {
    /// Builds what these orders want around a command that may not write to what was found in repositories. The other
    /// side is a sentence: a command that cannot be held as ordered does not run.
    pub(crate) fn build(orders: &LaunchSpec, repositories: &RepositorySurvey) -> Result<Self, String> {
        let writable = match orders.confinement {
            Confinement::Free => return Ok(Self { walls: None }),
            Confinement::Project | Confinement::Guarded | Confinement::Offline => {
                Some(outermost_paths(&[orders.roots.as_slice(), &orders.writable, &orders.caches].concat()))
            }
            Confinement::ReadOnly => None,
        };
        let version = files::landlock_version()?;
        let sealed = repositories.sealed_paths();
        let view = match orders.has_namespace {
            true => {
                let person = UserFolders {
                    home: orders.home.as_deref().map(Path::new),
                    runtime: orders.runtime.as_deref().map(Path::new),
                    roots: &orders.roots,
                };
                let hidden = HiddenPaths::find_existing(person, orders.network);
                Some(
                    MountView::plan_mounts(writable.as_deref().unwrap_or_default(), &sealed, hidden)
                        .map_err(sandbox_setup_error)?,
                )
            }
            false => None,
        };
        let places = writable.map(|writable| match view {
            Some(_) => writable.iter().map(PathBuf::from).collect(),
            None => {
                // Nothing new can be made above what is left out.
                let left_out: Vec<PathBuf> =
                    sealed.iter().chain(repositories.missing_paths()).cloned().collect();
                files::exclude_protected(&writable, &left_out)
            }
        });
        let files =
            files::build_landlock_rules(places.as_deref(), orders.network).map_err(sandbox_setup_error)?;
        let is_socket_in_sight = view.as_ref().is_some_and(MountView::has_visible_sockets);
        let rules = SyscallRules {
            network: orders.network,
            unix_sockets_closed: is_socket_in_sight || view.is_none() || version < files::VERSION_WHOLE,
            attributes_bounded: view.is_none(),
        };
        let calls = calls::build_seccomp_filters(rules).map_err(sandbox_setup_error)?;
        let calls = calls.ok_or("on this processor a command cannot be kept from sockets and mounts")?;
        // What a caller left open by mistake would be a way out.
        set_close_on_exec().map_err(sandbox_setup_error)?;
        Ok(Self { walls: Some(SandboxLayers { view, files, calls, is_socket_in_sight }) })
    }

    /// Variables that the command does not get.
    pub(crate) fn hidden_variables(&self) -> &'static [&'static str] {
        if self.walls.is_some() { &VARIABLES_HIDDEN } else { &[] }
    }

    /// Says what else the command cannot do, for one that fails.
    pub(crate) fn extra_restriction(&self) -> Option<&'static str> {
        self.walls.as_ref().filter(|walls| walls.is_socket_in_sight).map(|_| SOCKETS_CLOSED)
    }

    /// Shuts this process in, and whatever comes of it.
    pub(crate) fn restrict_self(self) -> io::Result<()> {
        let Some(SandboxLayers { view, files, calls, .. }) = self.walls else { return Ok(()) };
        // The other walls let nobody do this.
        if let Some(view) = &view {
            view.enter_namespace().map_err(|error| step_error("a mount name space", &error))?;
        }
        capabilities::drop_capabilities(view.is_some())
            .map_err(|error| step_error("giving up the rights of root", &error))?;
        files.restrict_self().map_err(|error| step_error("Landlock", &error))?;
        for filter in &calls {
            seccompiler::apply_filter(filter).map_err(|error| step_error("seccomp", &error))?;
        }
        Ok(())
    }
}

/// Leaves out the places that lie inside another one, which is writable with all that is in it. A command could put a
/// link in their place, and the next one would be let write where that leads.
fn outermost_paths(places: &[String]) -> Vec<String> {
    let holds = |outer: &&String, inner: &str| *outer != inner && Path::new(inner).starts_with(outer);
    let by_name = places.iter().filter(|place| !places.iter().any(|outer| holds(&outer, place)));
    let by_name: Vec<&String> = by_name.collect();
    let resolved: Vec<Option<PathBuf>> = by_name.iter().map(|place| fs::canonicalize(place).ok()).collect();
    let is_inside = |(at, place): &(usize, &&String)| {
        let above =
            Path::new(place.as_str()).ancestors().skip(1).filter_map(|above| fs::canonicalize(above).ok());
        let others = || {
            resolved.iter().enumerate().filter(|(other, _)| other != at).filter_map(|(_, path)| path.as_ref())
        };
        above.into_iter().any(|above| others().any(|other| above.starts_with(other)))
    };
    by_name.iter().enumerate().filter(|place| !is_inside(place)).map(|(_, place)| (*place).clone()).collect()
}

fn sandbox_setup_error(error: impl std::fmt::Display) -> String {
    format!("could not prepare the sandbox: {error}")
}

fn step_error(step: &str, error: &dyn std::fmt::Display) -> io::Error {
    io::Error::other(format!("{step} failed: {error}"))
}

/// Has everything but the three standard streams closed when the command begins.
fn set_close_on_exec() -> io::Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever a command puts in the place of an inner folder, the next command is not let write there.
    #[test]
    fn a_place_inside_another_is_none_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        for folder in ["root/target", "home", "beside"] {
            fs::create_dir_all(dir.join(folder)).unwrap();
        }
        std::os::unix::fs::symlink("root", dir.join("link")).unwrap();
        let shown = |names: &[&str]| {
            let places: Vec<String> = names.iter().map(|name| dir.join(name).display().to_string()).collect();
            let outermost = outermost_paths(&places);
            outermost.iter().map(|place| place.rsplit('/').next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let places = ["root", "root/target", "link/target", "beside"];
        assert_eq!(shown(&places), ["root", "beside"]);
        fs::remove_dir(dir.join("root/target")).unwrap();
        std::os::unix::fs::symlink("../home", dir.join("root/target")).unwrap();
        assert_eq!(shown(&places), ["root", "beside"]);
    }
}
