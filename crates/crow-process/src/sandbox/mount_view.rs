//! The file system as one command sees it: read-only, with the writable places on top, protected paths in those
//! read-only again, and sockets of other programs hidden. Needs a mount namespace, which not every system permits.

use std::{
    collections::BTreeSet,
    ffi::CString,
    fs,
    io::{self, Write as _},
    os::{
        fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::{Path, PathBuf},
};

use nix::{
    mount::{MsFlags, mount},
    sched::{CloneFlags, unshare},
    unistd::{Gid, Uid, chdir, getcwd, getegid, geteuid},
};

use super::sockets::HiddenPaths;

/// Shared memory: programs use it with their own children.
const SHARED_MEMORY: &str = "/dev/shm";

/// A changed view of the file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MountView {
    /// The writable places; none is inside another unless a hidden directory is between them.
    writable: Vec<PathBuf>,
    hidden: HiddenPaths,
    /// Directories above protected paths, which must not be moved away with them; the upper ones first.
    pinned: Vec<PathBuf>,
    /// Read-only, with everything inside.
    sealed: Vec<PathBuf>,
    cwd: PathBuf,
}

impl MountView {
    /// Determines the mounts for a command that may write in these places, but not to protected paths.
    pub(super) fn plan_mounts(
        writable: &[String],
        sealed: &BTreeSet<PathBuf>,
        mut hidden: HiddenPaths,
    ) -> io::Result<Self> {
        let mut writable_dirs = BTreeSet::new();
        if !writable.is_empty() {
            // A missing path cannot be written to.
            let requested = writable.iter().map(String::as_str).chain([SHARED_MEMORY]);
            writable_dirs.extend(requested.filter_map(|path| fs::canonicalize(path).ok()));
        }
        hidden.uncover_writable(&writable_dirs);
        let is_hidden_between = |outer: &Path, inner: &Path| {
            hidden
                .directories
                .iter()
                .any(|directory| directory.starts_with(outer) && inner.starts_with(directory))
        };
        let is_inner = |path: &PathBuf| {
            let mut ancestors = path.ancestors().skip(1);
            ancestors.any(|outer| writable_dirs.contains(outer) && !is_hidden_between(outer, path))
        };
        let writable: Vec<PathBuf> = writable_dirs.iter().filter(|path| !is_inner(path)).cloned().collect();
        let is_sealed_above = |path: &Path| {
            path.ancestors().skip(1).any(|ancestor| sealed.contains(ancestor) && !ancestor.is_symlink())
        };
        let below_writable =
            sealed.iter().filter(|path| writable_dirs.iter().any(|place| path.starts_with(place)));
        let sealed: Vec<PathBuf> = below_writable.filter(|path| !is_sealed_above(path)).cloned().collect();
        let mut pinned = movable_ancestors(&sealed, &writable);
        pinned.sort();
        pinned.dedup();
        Ok(Self { writable, hidden, pinned, sealed, cwd: getcwd()? })
    }

    /// Whether a socket of another program may be visible.
    pub(super) fn has_visible_sockets(&self) -> bool {
        self.hidden.is_partial
    }

    /// Changes the view of this process permanently.
    pub(super) fn enter_namespace(&self) -> io::Result<()> {
        let (uid, gid) = (geteuid(), getegid());
        if uid.is_root() {
            // In its own user namespace, root could no longer use the files of other users.
            unshare(CloneFlags::CLONE_NEWNS)?;
        } else {
            unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)?;
            map_own_ids(uid, gid)?;
        }
        // Nothing of this may be visible outside.
        mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NONE)?;
        let mounts_by_path: Vec<(OwnedFd, &Path)> = self
            .writable
            .iter()
            .map(|path| Ok((copy_mounts(path)?, path.as_path())))
            .collect::<io::Result<_>>()?;
        make_read_only(Path::new("/"))?;
        let (inner, outer): (Vec<_>, Vec<_>) = mounts_by_path.into_iter().partition(|(_, path)| {
            self.hidden.directories.iter().any(|directory| path.starts_with(directory))
        });
        for (mounts, path) in &outer {
            attach_mounts(mounts, path)?;
        }
        self.hide_paths()?;
        for (mounts, path) in &inner {
            fs::create_dir_all(path)?;
            attach_mounts(mounts, path)?;
        }
        for path in &self.pinned {
            let _ = pin_path(path)?;
        }
        for path in &self.sealed {
            if pin_path(path)? {
                make_read_only(path)?;
            }
        }
        // The current directory is now hidden below the new mounts.
        Ok(chdir(&self.cwd)?)
    }

    fn hide_paths(&self) -> io::Result<()> {
        for path in &self.hidden.directories {
            let (flags, options) = (MsFlags::MS_NOSUID | MsFlags::MS_NODEV, "size=1m,mode=0700");
            mount(Some("tmpfs"), path, Some("tmpfs"), flags, Some(options))?;
        }
        for path in &self.hidden.sockets {
            match bind_mount(Path::new("/dev/null"), path) {
                // Its program has ended meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                result => result?,
            }
        }
        Ok(())
    }
}

const NONE: Option<&str> = None;

/// The directories between protected paths and writable places: moved away, they would take the protected paths with
/// them.
fn movable_ancestors(sealed: &[PathBuf], writable: &[PathBuf]) -> Vec<PathBuf> {
    let is_movable = |path: &&Path| {
        path.parent().is_some_and(|parent| writable.iter().any(|root| parent.starts_with(root)))
    };
    let ancestors = sealed.iter().flat_map(|path| path.ancestors().skip(1));
    ancestors.filter(is_movable).map(Path::to_owned).collect()
}

/// Maps the same user and group into the new namespace.
fn map_own_ids(uid: Uid, gid: Gid) -> io::Result<()> {
    let write =
        |path: &str, text: String| fs::File::options().write(true).open(path)?.write_all(text.as_bytes());
    write("/proc/self/setgroups", "deny".into())?;
    write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

fn bind_mount(from: &Path, to: &Path) -> io::Result<()> {
    Ok(mount(Some(from), to, NONE, MsFlags::MS_BIND | MsFlags::MS_REC, NONE)?)
}

/// Mounts a path over itself, also a link, so that it cannot be moved or replaced. Returns whether it exists: a path
/// that vanished meanwhile is checked when the command has ended.
fn pin_path(path: &Path) -> io::Result<bool> {
    match copy_mounts(path).and_then(|mounts| attach_mounts(&mounts, path)) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Copies a place with everything mounted in it, each mount with its present attributes.
fn copy_mounts(path: &Path) -> io::Result<OwnedFd> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let recursive = libc::AT_RECURSIVE.unsigned_abs();
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | recursive | NO_FOLLOW;
    #[expect(unsafe_code, reason = "no crate of ours knows this call")]
    // SAFETY: the path lives until the call returns; the result is a new descriptor with no other owner, or an error.
    unsafe {
        let fd = libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags);
        match i32::try_from(fd) {
            Ok(fd) if fd >= 0 => Ok(OwnedFd::from_raw_fd(fd)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

const NO_FOLLOW: libc::c_uint = libc::AT_SYMLINK_NOFOLLOW.unsigned_abs();

fn attach_mounts(mounts: &OwnedFd, path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    #[expect(unsafe_code, reason = "no crate of ours knows this call")]
    // SAFETY: both paths live until the call returns, and the descriptor is open.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            mounts.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::MOVE_MOUNT_F_EMPTY_PATH,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn make_read_only(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let attributes =
        libc::mount_attr { attr_set: libc::MOUNT_ATTR_RDONLY, attr_clr: 0, propagation: 0, userns_fd: 0 };
    #[expect(unsafe_code, reason = "no crate of ours knows this call")]
    // SAFETY: both pointers are to values that live until the call returns, and the size is that of the second.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::AT_RECURSIVE | libc::AT_SYMLINK_NOFOLLOW,
            &raw const attributes,
            size_of_val(&attributes),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
