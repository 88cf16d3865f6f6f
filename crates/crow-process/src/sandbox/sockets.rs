//! The sockets of other programs that obey requests with rights that a sandboxed command lacks: where they are, so
//! that a view can hide them.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    io::{self, Read as _},
    os::unix::{
        ffi::OsStrExt as _,
        fs::{FileTypeExt as _, MetadataExt as _},
    },
    path::{Path, PathBuf},
};

use crow_core::{NetworkAccess, read_socket_table};
use nix::unistd::{AccessFlags, access, geteuid};

/// Directories that hold such sockets and nothing that a build needs; `$UID` is the user.
const DIRECTORIES: [&str; 12] = [
    "/run/user/$UID",
    "/run/WSL",
    "/mnt/wslg/runtime-dir",
    "/mnt/wslg/.X11-unix",
    "/run/dbus",
    "/run/docker",
    "/run/podman",
    "/run/containerd",
    "/run/libvirt",
    "/run/screen",
    "/run/tmux",
    "/run/pcscd",
];

/// The same in the home directory.
const HOME_DIRECTORIES: [&str; 9] = [
    ".docker/run",
    ".docker/desktop",
    ".orbstack/run",
    ".rd",
    ".ssh/agent",
    ".1password",
    ".emacs.d/server",
    ".config/emacs/server",
    ".local/share/containers/podman/machine",
];

/// Single sockets, for which no program may listen in this network namespace.
const SOCKETS: [&str; 10] = [
    "/run/docker.sock",
    "/run/crio/crio.sock",
    "/run/buildkit/buildkitd.sock",
    "/run/k3s/containerd/containerd.sock",
    "/run/snapd.socket",
    "/run/snapd-snap.socket",
    "/run/systemd/private",
    "/var/lib/lxd/unix.socket",
    "/var/lib/incus/unix.socket",
    "/var/snap/lxd/common/lxd/unix.socket",
];

/// The same in the home directory.
const HOME_SOCKETS: [&str; 10] = [
    ".gnupg/S.gpg-agent",
    ".gnupg/S.gpg-agent.ssh",
    ".gnupg/S.gpg-agent.extra",
    ".gnupg/S.gpg-agent.browser",
    ".gnupg/S.keyboxd",
    ".gnupg/S.dirmngr",
    ".gnupg/S.scdaemon",
    ".docker.sock",
    ".bitwarden-ssh-agent.sock",
    ".colima/default/docker.sock",
];

/// Sockets for name lookups.
const RESOLVERS: [&str; 4] = ["/run/systemd/resolve", "/run/nscd", "/run/avahi-daemon", "/var/lib/sss/pipes"];

/// Sockets for lookups of users and groups.
const USER_LOOKUPS: &str = "/run/systemd/userdb";

/// Prefixes of such directories and sockets in a temporary directory.
const TEMPORARY_PREFIXES: [&str; 26] = [
    ".ICE-unix",
    ".X11-unix",
    ".XIM-unix",
    ".wezterm",
    "agent.",
    "auth-agent",
    "cursor-",
    "dbus-",
    "emacs",
    "fsmonitor",
    "gpg-",
    "keyring-",
    "kitty",
    "mykitty",
    "nvim",
    "podman-run-",
    "pulse-",
    "runtime-",
    "screens",
    "ssh-",
    "storage-run-",
    "tmux-",
    "vscode-",
    "wezterm",
    "zed-",
    "zellij-",
];

const TEMPORARY_DIRS: [&str; 2] = ["/tmp", "/var/tmp"];

/// More than a busy desktop has.
const SOCKETS_MAX: usize = 512;

/// Entries examined of a temporary directory, or of one that cannot be hidden as a whole.
const ENTRIES_MAX: usize = 20_000;

/// The user's directories that may contain sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UserFolders<'a> {
    pub(super) home: Option<&'a Path>,
    /// `XDG_RUNTIME_DIR`.
    pub(super) runtime_dir: Option<&'a Path>,
    /// The session's own directories, where a project may have sockets for itself.
    pub(super) roots: &'a [String],
}

/// The sockets that a command cannot see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct HiddenPaths {
    /// Empty for the command.
    pub(super) directories: BTreeSet<PathBuf>,
    pub(super) sockets: BTreeSet<PathBuf>,
    /// A program may listen at a path that is not among them: only blocking Unix sockets keeps the command away from
    /// it.
    pub(super) is_partial: bool,
}

impl HiddenPaths {
    /// Finds what exists now.
    pub(super) fn find_existing(user_dirs: UserFolders<'_>, network: NetworkAccess) -> Self {
        let uid = geteuid().to_string();
        let mut hidden = Self::default();
        let well_known =
            DIRECTORIES.iter().chain(&SOCKETS).map(|path| PathBuf::from(path.replace("$UID", &uid)));
        well_known.for_each(|path| hidden.add_path(&path));
        if let Some(home) = user_dirs.home {
            HOME_DIRECTORIES.iter().chain(&HOME_SOCKETS).for_each(|path| hidden.add_path(&home.join(path)));
        }
        user_dirs.runtime_dir.iter().for_each(|path| hidden.add_path(path));
        if network == NetworkAccess::Denied {
            RESOLVERS.iter().for_each(|path| hidden.add_path(Path::new(path)));
        }
        for temporary in TEMPORARY_DIRS {
            let entries = fs::read_dir(temporary).into_iter().flatten().flatten().take(ENTRIES_MAX);
            for entry in entries {
                let name = entry.file_name();
                if TEMPORARY_PREFIXES
                    .iter()
                    .any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes()))
                {
                    hidden.add_path(&entry.path());
                }
            }
        }
        hidden.add_listening_sockets(user_dirs.roots, network);
        hidden
    }

    /// Adds a path if it is an existing directory or socket.
    fn add_path(&mut self, path: &Path) {
        let Ok(path) = fs::canonicalize(path) else { return };
        let Ok(metadata) = path.symlink_metadata() else { return };
        // A mistake in a variable must not hide the machine.
        if metadata.is_dir() && path.ancestors().nth(2).is_some() {
            self.directories.insert(path);
        } else if metadata.file_type().is_socket() {
            self.sockets.insert(path);
        }
    }

    /// Adds every path that a program of this machine listens on and this user may connect to.
    fn add_listening_sockets(&mut self, roots: &[String], network: NetworkAccess) {
        let Some(table) = load_socket_table() else {
            self.is_partial = true;
            return;
        };
        let table = read_socket_table(&table);
        self.is_partial |= !table.is_complete;
        let stays_visible = |path: &Path| {
            let is_lookup = network == NetworkAccess::Allowed
                && RESOLVERS.iter().any(|directory| path.starts_with(directory));
            is_lookup || path.starts_with(USER_LOOKUPS) || roots.iter().any(|root| path.starts_with(root))
        };
        for path in table.paths {
            let path = match locate_socket(Path::new(OsStr::from_bytes(path))) {
                FoundSocket::Connectable(path) => path,
                FoundSocket::Inaccessible => continue,
                FoundSocket::Unknown => {
                    self.is_partial = true;
                    continue;
                }
            };
            let is_known = self.directories.iter().any(|directory| path.starts_with(directory));
            if !is_known && !stays_visible(&path) {
                self.add_socket(path);
            }
        }
    }

    fn add_socket(&mut self, path: PathBuf) {
        if self.sockets.len() < SOCKETS_MAX || self.sockets.contains(&path) {
            self.sockets.insert(path);
        } else {
            self.is_partial = true;
        }
    }

    /// Keeps directories visible that the command may write in; sockets in them are hidden one by one.
    pub(super) fn uncover_writable(&mut self, writable: &BTreeSet<PathBuf>) {
        let uncovered: Vec<PathBuf> =
            self.directories.iter().filter(|path| writable.contains(*path)).cloned().collect();
        for directory in uncovered {
            self.directories.remove(&directory);
            self.add_sockets_below(directory);
        }
        // The contents of an empty directory are hidden already.
        let directories: Vec<PathBuf> = self.directories.iter().cloned().collect();
        let is_below = |path: &PathBuf| {
            directories.iter().any(|directory| path != directory && path.starts_with(directory))
        };
        self.directories.retain(|path| !is_below(path));
        self.sockets.retain(|path| !is_below(path));
    }

    fn add_sockets_below(&mut self, directory: PathBuf) {
        let (mut pending, mut n_entries_left) = (vec![directory], ENTRIES_MAX);
        while let Some(directory) = pending.pop() {
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten().take(n_entries_left) {
                n_entries_left -= 1;
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => pending.push(entry.path()),
                    Ok(kind) if kind.is_socket() => self.add_socket(entry.path()),
                    Ok(_) | Err(_) => {}
                }
            }
            self.is_partial |= n_entries_left == 0;
        }
    }
}

/// Tens of thousands of sockets.
const TABLE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Reads the kernel's table. A longer one is truncated, which its parser notices.
fn load_socket_table() -> Option<Vec<u8>> {
    let mut table = Vec::new();
    let file = fs::File::open("/proc/net/unix").ok()?;
    file.take(TABLE_BYTES_MAX).read_to_end(&mut table).ok()?;
    Some(table)
}

/// The state of a socket's path.
enum FoundSocket {
    Connectable(PathBuf),
    /// It exists, but not for this user.
    Inaccessible,
    /// It was moved, has a second name, or is gone: the table does not say which.
    Unknown,
}

fn locate_socket(path: &Path) -> FoundSocket {
    let metadata = match path.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return FoundSocket::Inaccessible,
        Err(_) => return FoundSocket::Unknown,
    };
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return FoundSocket::Unknown;
    };
    match fs::canonicalize(directory) {
        Ok(directory) if metadata.file_type().is_socket() && metadata.nlink() == 1 => {
            let may_connect = access(path, AccessFlags::W_OK).is_ok();
            if may_connect {
                FoundSocket::Connectable(directory.join(name))
            } else {
                FoundSocket::Inaccessible
            }
        }
        Ok(_) | Err(_) => FoundSocket::Unknown,
    }
}
