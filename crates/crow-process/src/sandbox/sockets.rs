//! Sockets of other programs that do what they are asked, with rights that a command in the sandbox has not: where
//! they are, so that a view can hide them.

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

/// Folders that hold such sockets and nothing that a build needs; `$UID` is the person.
const FOLDERS: [&str; 12] = [
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

/// The same in the home folder.
const HOME_FOLDERS: [&str; 9] = [
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

/// Single sockets, for which no program may listen in this network name space.
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

/// The same in the home folder.
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

/// What look-ups of names go through.
const RESOLVERS: [&str; 4] = ["/run/systemd/resolve", "/run/nscd", "/run/avahi-daemon", "/var/lib/sss/pipes"];

/// Look-ups of users and groups.
const USER_LOOKUPS: &str = "/run/systemd/userdb";

/// How the names of such folders and sockets begin in a temporary folder.
const TEMPORARY: [&str; 26] = [
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

const TEMPORARY_FOLDERS: [&str; 2] = ["/tmp", "/var/tmp"];

/// More than a busy desktop has.
const SOCKETS_MAX: usize = 512;

/// How much of a temporary folder, or of one that cannot be hidden whole, is looked at.
const ENTRIES_MAX: usize = 20_000;

/// Where the person keeps such things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UserFolders<'a> {
    pub(super) home: Option<&'a Path>,
    /// `XDG_RUNTIME_DIR`.
    pub(super) runtime: Option<&'a Path>,
    /// The session's own folders, where a project may have sockets for itself.
    pub(super) roots: &'a [String],
}

/// What a command does not get to see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct HiddenPaths {
    /// Empty for the command.
    pub(super) folders: BTreeSet<PathBuf>,
    pub(super) sockets: BTreeSet<PathBuf>,
    /// Some program may listen at a place that is not among them: nothing but a command without Unix sockets keeps away
    /// from that.
    pub(super) is_partial: bool,
}

impl HiddenPaths {
    /// Finds what is there now.
    pub(super) fn find_existing(person: UserFolders<'_>, network: NetworkAccess) -> Self {
        let uid = geteuid().to_string();
        let mut hidden = Self::default();
        let fixed = FOLDERS.iter().chain(&SOCKETS).map(|path| PathBuf::from(path.replace("$UID", &uid)));
        fixed.for_each(|path| hidden.add_path(&path));
        if let Some(home) = person.home {
            HOME_FOLDERS.iter().chain(&HOME_SOCKETS).for_each(|path| hidden.add_path(&home.join(path)));
        }
        person.runtime.iter().for_each(|path| hidden.add_path(path));
        if network == NetworkAccess::Closed {
            RESOLVERS.iter().for_each(|path| hidden.add_path(Path::new(path)));
        }
        for temporary in TEMPORARY_FOLDERS {
            let entries = fs::read_dir(temporary).into_iter().flatten().flatten().take(ENTRIES_MAX);
            for entry in entries {
                let name = entry.file_name();
                if TEMPORARY.iter().any(|start| name.as_encoded_bytes().starts_with(start.as_bytes())) {
                    hidden.add_path(&entry.path());
                }
            }
        }
        hidden.add_listening_sockets(person.roots, network);
        hidden
    }

    /// Adds what is there and is a folder or a socket.
    fn add_path(&mut self, path: &Path) {
        let Ok(path) = fs::canonicalize(path) else { return };
        let Ok(found) = path.symlink_metadata() else { return };
        // A mistake in a variable must not hide the machine.
        if found.is_dir() && path.ancestors().nth(2).is_some() {
            self.folders.insert(path);
        } else if found.file_type().is_socket() {
            self.sockets.insert(path);
        }
    }

    /// Adds whatever some program of this machine listens on and this user may connect to.
    fn add_listening_sockets(&mut self, roots: &[String], network: NetworkAccess) {
        let Some(table) = load_socket_table() else {
            self.is_partial = true;
            return;
        };
        let table = read_socket_table(&table);
        self.is_partial |= !table.is_whole;
        let is_kept = |path: &Path| {
            let is_lookup =
                network == NetworkAccess::Open && RESOLVERS.iter().any(|folder| path.starts_with(folder));
            is_lookup || path.starts_with(USER_LOOKUPS) || roots.iter().any(|root| path.starts_with(root))
        };
        for path in table.paths {
            let path = match locate_socket(Path::new(OsStr::from_bytes(path))) {
                FoundSocket::Here(path) => path,
                FoundSocket::Closed => continue,
                FoundSocket::Elsewhere => {
                    self.is_partial = true;
                    continue;
                }
            };
            let is_known = self.folders.iter().any(|folder| path.starts_with(folder));
            if !is_known && !is_kept(&path) {
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

    /// Leaves folders visible that the command may write in; sockets in them are hidden one by one.
    pub(super) fn uncover_writable(&mut self, writable: &BTreeSet<PathBuf>) {
        let uncovered: Vec<PathBuf> =
            self.folders.iter().filter(|path| writable.contains(*path)).cloned().collect();
        for folder in uncovered {
            self.folders.remove(&folder);
            self.add_sockets_below(folder);
        }
        // What is in an empty folder is gone already.
        let folders: Vec<PathBuf> = self.folders.iter().cloned().collect();
        let is_below =
            |path: &PathBuf| folders.iter().any(|folder| path != folder && path.starts_with(folder));
        self.folders.retain(|path| !is_below(path));
        self.sockets.retain(|path| !is_below(path));
    }

    fn add_sockets_below(&mut self, folder: PathBuf) {
        let (mut open, mut n_left) = (vec![folder], ENTRIES_MAX);
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten().take(n_left) {
                n_left -= 1;
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => open.push(entry.path()),
                    Ok(kind) if kind.is_socket() => self.add_socket(entry.path()),
                    Ok(_) | Err(_) => {}
                }
            }
            self.is_partial |= n_left == 0;
        }
    }
}

/// Tens of thousands of sockets.
const TABLE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Reads the kernel's table. The end of a longer one is missing, which its reader sees.
fn load_socket_table() -> Option<Vec<u8>> {
    let mut table = Vec::new();
    let file = fs::File::open("/proc/net/unix").ok()?;
    file.take(TABLE_BYTES_MAX).read_to_end(&mut table).ok()?;
    Some(table)
}

/// Where a socket is that was given a path once.
enum FoundSocket {
    Here(PathBuf),
    /// There, but not for this user.
    Closed,
    /// It was moved, has a second name, or is gone: nothing tells which.
    Elsewhere,
}

fn locate_socket(path: &Path) -> FoundSocket {
    let found = match path.symlink_metadata() {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return FoundSocket::Closed,
        Err(_) => return FoundSocket::Elsewhere,
    };
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return FoundSocket::Elsewhere };
    match fs::canonicalize(folder) {
        Ok(folder) if found.file_type().is_socket() && found.nlink() == 1 => {
            let may_connect = access(path, AccessFlags::W_OK).is_ok();
            if may_connect { FoundSocket::Here(folder.join(name)) } else { FoundSocket::Closed }
        }
        Ok(_) | Err(_) => FoundSocket::Elsewhere,
    }
}
