//! The file system as one command sees it: what it may not change, even where it may write, is read-only there, and
//! well-known ways to programs outside lead nowhere. Needs a mount name space of its own, which not every system gives;
//! where there is none a command does without.

use std::{
    ffi::CString,
    fs,
    io::{self, Write as _},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use nix::{
    mount::{MsFlags, mount},
    sched::{CloneFlags, unshare},
    unistd::{Gid, Uid, chdir, getcwd, getegid, geteuid},
};

/// What of a repository names programs that Git runs later, outside. A missing folder of hooks is made first, as Git
/// itself would have: nothing can be held that is not there.
const OF_GIT: [&str; 5] = ["commondir", "config", "config.worktree", "hooks", "modules"];

/// Sockets whose owners do what they are asked, with rights that the command has not; `$UID` is the person.
const SOCKETS: [&str; 8] = [
    "/run/docker.sock",
    "/run/podman/podman.sock",
    "/run/containerd/containerd.sock",
    "/run/dbus/system_bus_socket",
    "/run/user/$UID/bus",
    "/run/user/$UID/docker.sock",
    "/run/user/$UID/podman/podman.sock",
    "/run/user/$UID/systemd/private",
];

/// Folders of such sockets, which are empty for the command.
const SOCKET_FOLDERS: [&str; 2] = ["/tmp/tmux-$UID", "/tmp/.X11-unix"];

/// A changed view of the file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct View {
    /// Read-only, with all that is in them.
    sealed: Vec<PathBuf>,
    /// Folders above those, which must not be moved away with them; the upper ones first.
    pinned: Vec<PathBuf>,
    sockets: Vec<PathBuf>,
    socket_folders: Vec<PathBuf>,
    cwd: PathBuf,
}

impl View {
    /// Finds what has to be changed; `None` when that is nothing.
    pub(super) fn find(writable: &[String], protected: &[String]) -> Option<Self> {
        let writable: Vec<&Path> = writable.iter().map(Path::new).collect();
        let mut sealed: Vec<PathBuf> = writable.iter().flat_map(|root| of_git(&root.join(".git"))).collect();
        sealed.extend(protected.iter().map(PathBuf::from).filter(|path| path.exists()));
        sealed.retain(|path| writable.iter().any(|root| path.starts_with(root)));
        let uid = geteuid().to_string();
        let there = |paths: &[&str]| {
            let paths = paths.iter().map(|path| PathBuf::from(path.replace("$UID", &uid)));
            paths.filter(|path| path.exists()).collect::<Vec<_>>()
        };
        let (sockets, socket_folders) = (there(&SOCKETS), there(&SOCKET_FOLDERS));
        if sealed.is_empty() && sockets.is_empty() && socket_folders.is_empty() {
            return None;
        }
        let mut pinned = above(&sealed, &writable);
        pinned.sort();
        pinned.dedup();
        Some(Self { sealed, pinned, sockets, socket_folders, cwd: getcwd().ok()? })
    }

    /// Changes the view of this process for good.
    pub(super) fn enter(&self) -> io::Result<()> {
        let (uid, gid) = (geteuid(), getegid());
        if uid.is_root() {
            // In a user name space of its own, root could not use the files of other users any more.
            unshare(CloneFlags::CLONE_NEWNS)?;
        } else {
            unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)?;
            stay(uid, gid)?;
        }
        // Nothing of this may be seen outside.
        mount(NOTHING, "/", NOTHING, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NOTHING)?;
        for path in &self.socket_folders {
            let options = "size=1m,mode=0700";
            mount(Some("tmpfs"), path, Some("tmpfs"), MsFlags::MS_NOSUID | MsFlags::MS_NODEV, Some(options))?;
        }
        for path in &self.pinned {
            bind(path, path)?;
        }
        for path in &self.sealed {
            bind(path, path)?;
            make_read_only(path)?;
        }
        for path in &self.sockets {
            bind(Path::new("/dev/null"), path)?;
        }
        // The folder that we stand in is another one now, below all this.
        Ok(chdir(&self.cwd)?)
    }
}

const NOTHING: Option<&str> = None;

/// What is to be sealed of a repository.
fn of_git(git: &Path) -> Vec<PathBuf> {
    let Ok(found) = fs::symlink_metadata(git) else { return Vec::new() };
    if !found.is_dir() {
        // It names the real one.
        return vec![git.to_owned()];
    }
    if git.join("HEAD").exists() {
        // Fails when it is there, which is as good, or when nobody may make it, which is better.
        let _ = fs::create_dir(git.join("hooks"));
    }
    let parts: Vec<PathBuf> = OF_GIT.iter().map(|part| git.join(part)).collect();
    let is_link = |path: &PathBuf| path.symlink_metadata().is_ok_and(|found| found.is_symlink());
    if parts.iter().any(is_link) {
        // A link can be replaced whatever it leads to.
        return vec![git.to_owned()];
    }
    parts.into_iter().filter(|part| part.exists()).collect()
}

/// The folders between what is sealed and where the command may write: moved away, they would take it with them.
fn above(sealed: &[PathBuf], writable: &[&Path]) -> Vec<PathBuf> {
    let is_movable = |path: &&Path| {
        path.parent().is_some_and(|parent| writable.iter().any(|root| parent.starts_with(root)))
    };
    let above = sealed.iter().flat_map(|path| path.ancestors().skip(1));
    above.filter(is_movable).map(Path::to_owned).collect()
}

/// Keeps being the same user and group in the new name space.
fn stay(uid: Uid, gid: Gid) -> io::Result<()> {
    let write =
        |path: &str, text: String| fs::File::options().write(true).open(path)?.write_all(text.as_bytes());
    write("/proc/self/setgroups", "deny".into())?;
    write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

fn bind(from: &Path, to: &Path) -> io::Result<()> {
    Ok(mount(Some(from), to, NOTHING, MsFlags::MS_BIND | MsFlags::MS_REC, NOTHING)?)
}

fn make_read_only(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let wanted =
        libc::mount_attr { attr_set: libc::MOUNT_ATTR_RDONLY, attr_clr: 0, propagation: 0, userns_fd: 0 };
    #[expect(unsafe_code, reason = "no crate of ours knows this call")]
    // SAFETY: both pointers are to values that live until the call is over, and the size is that of the second.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::AT_RECURSIVE,
            &raw const wanted,
            size_of_val(&wanted),
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
