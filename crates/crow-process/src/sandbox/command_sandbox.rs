//! The whole sandbox of one command: built before the command starts, applied by the command's process itself.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crow_core::Confinement;
use landlock::RulesetCreated;
use seccompiler::BpfProgram;

use super::{
    capabilities, landlock_rules,
    mount_view::MountView,
    repositories::RepositorySurvey,
    sockets::{HiddenPaths, UserFolders},
    syscalls::{self, SyscallRules},
};
use crate::launch_spec::LaunchSpec;

/// Variables that lead to programs outside which would do what the command may not.
const HIDDEN_VARIABLES: [&str; 42] = [
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

/// Appended to the output of a failed command that had no Unix sockets.
const SOCKETS_CLOSED: &str = "Unix sockets were blocked for the command: a program listens on one whose path cannot be determined \
                              (/proc/net/unix)";

/// The sandbox of one command.
pub(crate) struct CommandSandbox {
    layers: Option<SandboxLayers>,
}

struct SandboxLayers {
    view: Option<MountView>,
    files: RulesetCreated,
    calls: Vec<BpfProgram>,
    /// A socket of another program may be visible, so Unix sockets are blocked for the command.
    is_socket_visible: bool,
}

impl CommandSandbox {
    /// Builds the sandbox that a launch spec asks for, with the repositories found protected. The error is a
    /// sentence: a command that cannot be confined as specified does not run.
    pub(crate) fn build(spec: &LaunchSpec, repositories: &RepositorySurvey) -> Result<Self, String> {
        let writable = match spec.confinement {
            Confinement::Unconfined => return Ok(Self { layers: None }),
            Confinement::Project | Confinement::Guarded | Confinement::Offline => {
                Some(outermost_paths(&[spec.roots.as_slice(), &spec.writable, &spec.caches].concat()))
            }
            Confinement::ReadOnly => None,
        };
        let version = landlock_rules::landlock_version()?;
        let sealed = repositories.sealed_paths();
        let view = match spec.has_namespace {
            true => {
                let user_dirs = UserFolders {
                    home: spec.home.as_deref().map(Path::new),
                    runtime_dir: spec.runtime_dir.as_deref().map(Path::new),
                    roots: &spec.roots,
                };
                let hidden = HiddenPaths::find_existing(user_dirs, spec.network);
                Some(
                    MountView::plan_mounts(writable.as_deref().unwrap_or_default(), &sealed, hidden)
                        .map_err(sandbox_setup_error)?,
                )
            }
            false => None,
        };
        let writable_paths = writable.map(|writable| match view {
            Some(_) => writable.iter().map(PathBuf::from).collect(),
            None => {
                // Nothing new can be created next to what is excluded.
                let excluded: Vec<PathBuf> =
                    sealed.iter().chain(repositories.missing_paths()).cloned().collect();
                landlock_rules::exclude_protected(&writable, &excluded)
            }
        });
        let files = landlock_rules::build_landlock_rules(writable_paths.as_deref(), spec.network)
            .map_err(sandbox_setup_error)?;
        let is_socket_visible = view.as_ref().is_some_and(MountView::has_visible_sockets);
        let rules = SyscallRules {
            network: spec.network,
            blocks_unix_sockets: is_socket_visible
                || view.is_none()
                || version < landlock_rules::VERSION_FULL,
            restricts_attributes: view.is_none(),
        };
        let calls = syscalls::build_seccomp_filters(rules).map_err(sandbox_setup_error)?;
        let calls = calls.ok_or("the sandbox cannot block sockets and mounts on this processor")?;
        // A descriptor that a caller left open by mistake would be an escape.
        set_close_on_exec().map_err(sandbox_setup_error)?;
        Ok(Self { layers: Some(SandboxLayers { view, files, calls, is_socket_visible }) })
    }

    /// Variables that the command does not get.
    pub(crate) fn hidden_variables(&self) -> &'static [&'static str] {
        if self.layers.is_some() { &HIDDEN_VARIABLES } else { &[] }
    }

    /// A further restriction to mention when the command fails.
    pub(crate) fn extra_restriction(&self) -> Option<&'static str> {
        self.layers.as_ref().filter(|layers| layers.is_socket_visible).map(|_| SOCKETS_CLOSED)
    }

    /// Confines this process and all its descendants.
    pub(crate) fn restrict_self(self) -> io::Result<()> {
        let Some(SandboxLayers { view, files, calls, .. }) = self.layers else { return Ok(()) };
        // The other restrictions forbid this, so it comes first.
        if let Some(view) = &view {
            view.enter_namespace().map_err(|error| step_error("the mount namespace", &error))?;
        }
        capabilities::drop_capabilities(view.is_some())
            .map_err(|error| step_error("dropping capabilities", &error))?;
        files.restrict_self().map_err(|error| step_error("Landlock", &error))?;
        for filter in &calls {
            seccompiler::apply_filter(filter).map_err(|error| step_error("seccomp", &error))?;
        }
        Ok(())
    }
}

/// Drops places that are inside another one, which is writable as a whole. A command could replace them by a link,
/// and the next command could write to its target.
fn outermost_paths(directories: &[String]) -> Vec<String> {
    let holds = |outer: &&String, inner: &str| *outer != inner && Path::new(inner).starts_with(outer);
    let by_name =
        directories.iter().filter(|directory| !directories.iter().any(|outer| holds(&outer, directory)));
    let by_name: Vec<&String> = by_name.collect();
    let resolved: Vec<Option<PathBuf>> =
        by_name.iter().map(|directory| fs::canonicalize(directory).ok()).collect();
    let is_inside = |(at, place): &(usize, &&String)| {
        let ancestors = Path::new(place.as_str())
            .ancestors()
            .skip(1)
            .filter_map(|ancestor| fs::canonicalize(ancestor).ok());
        let others = || {
            resolved.iter().enumerate().filter(|(other, _)| other != at).filter_map(|(_, path)| path.as_ref())
        };
        ancestors.into_iter().any(|ancestor| others().any(|other| ancestor.starts_with(other)))
    };
    by_name
        .iter()
        .enumerate()
        .filter(|directory| !is_inside(directory))
        .map(|(_, place)| (*place).clone())
        .collect()
}

fn sandbox_setup_error(error: impl std::fmt::Display) -> String {
    format!("could not prepare the sandbox: {error}")
}

fn step_error(step: &str, error: &dyn std::fmt::Display) -> io::Error {
    io::Error::other(format!("{step} failed: {error}"))
}

/// Makes exec close everything except the three standard streams.
fn set_close_on_exec() -> io::Result<()> {
    #[expect(unsafe_code, reason = "no crate of ours knows this call")]
    // SAFETY: it takes three numbers and closes nothing now.
    let result = unsafe {
        libc::syscall(libc::SYS_close_range, FIRST_INHERITED_FD, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC)
    };
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        _ if result == 0 => Ok(()),
        // A kernel older than this has no Landlock either.
        Some(libc::ENOSYS | libc::EINVAL) => Ok(()),
        _ => Err(error),
    }
}

/// The first descriptor after stdin, stdout and stderr.
const FIRST_INHERITED_FD: libc::c_uint = 3;

#[cfg(test)]
mod tests {
    use super::*;

    /// The next command cannot write there, whatever replaces an inner directory.
    #[test]
    fn nested_places_are_merged() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        for directory in ["root/target", "home", "beside"] {
            fs::create_dir_all(dir.join(directory)).unwrap();
        }
        std::os::unix::fs::symlink("root", dir.join("link")).unwrap();
        let shown = |names: &[&str]| {
            let places: Vec<String> = names.iter().map(|name| dir.join(name).display().to_string()).collect();
            let outermost = outermost_paths(&places);
            outermost
                .iter()
                .map(|directory| directory.rsplit('/').next().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        let places = ["root", "root/target", "link/target", "beside"];
        assert_eq!(shown(&places), ["root", "beside"]);
        fs::remove_dir(dir.join("root/target")).unwrap();
        std::os::unix::fs::symlink("../home", dir.join("root/target")).unwrap();
        assert_eq!(shown(&places), ["root", "beside"]);
    }
}
