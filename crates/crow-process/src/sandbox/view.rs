//! The file system as one command sees it: read-only, with the places where it may write on top, what is protected in
//! those read-only again, and sockets of other programs out of reach. Needs a mount name space of its own, which not
//! every system gives.

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
    /// Where the command may write; none is inside another unless a hidden folder is between them.
    writable: Vec<PathBuf>,
    hidden: HiddenPaths,
    /// Folders above what is sealed, which must not be moved away with it; the upper ones first.
    pinned: Vec<PathBuf>,
    /// Read-only, with all that is in them.
    sealed: Vec<PathBuf>,
    cwd: PathBuf,
}

impl MountView {
    /// Finds what has to be changed for a command that may write in these places, but not to what is sealed.
    pub(super) fn plan_mounts(
        writable: &[String],
        sealed: &BTreeSet<PathBuf>,
        mut hidden: HiddenPaths,
    ) -> io::Result<Self> {
        let mut places = BTreeSet::new();
        if !writable.is_empty() {
            // What is not there cannot be written to.
            let given = writable.iter().map(String::as_str).chain([SHARED_MEMORY]);
            places.extend(given.filter_map(|path| fs::canonicalize(path).ok()));
        }
        hidden.uncover_writable(&places);
        let is_hidden_between = |outer: &Path, inner: &Path| {
            hidden.folders.iter().any(|folder| folder.starts_with(outer) && inner.starts_with(folder))
        };
        let is_inner = |path: &PathBuf| {
            let mut above = path.ancestors().skip(1);
            above.any(|outer| places.contains(outer) && !is_hidden_between(outer, path))
        };
        let writable: Vec<PathBuf> = places.iter().filter(|path| !is_inner(path)).cloned().collect();
        let is_held_above =
            |path: &Path| path.ancestors().skip(1).any(|above| sealed.contains(above) && !above.is_symlink());
        let held = sealed.iter().filter(|path| places.iter().any(|place| path.starts_with(place)));
        let sealed: Vec<PathBuf> = held.filter(|path| !is_held_above(path)).cloned().collect();
        let mut pinned = movable_ancestors(&sealed, &writable);
        pinned.sort();
        pinned.dedup();
        Ok(Self { writable, hidden, pinned, sealed, cwd: getcwd()? })
    }

    /// Whether a socket of another program may be in sight.
    pub(super) fn has_visible_sockets(&self) -> bool {
        self.hidden.is_partial
    }

    /// Changes the view of this process for good.
    pub(super) fn enter_namespace(&self) -> io::Result<()> {
        let (uid, gid) = (geteuid(), getegid());
        if uid.is_root() {
            // In a user name space of its own, root could not use the files of other users any more.
            unshare(CloneFlags::CLONE_NEWNS)?;
        } else {
            unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)?;
            map_own_ids(uid, gid)?;
        }
        // Nothing of this may be seen outside.
        mount(NOTHING, "/", NOTHING, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NOTHING)?;
        let places: Vec<(OwnedFd, &Path)> = self
            .writable
            .iter()
            .map(|path| Ok((copy_mounts(path)?, path.as_path())))
            .collect::<io::Result<_>>()?;
        make_read_only(Path::new("/"))?;
        let (inner, outer): (Vec<_>, Vec<_>) = places
            .into_iter()
            .partition(|(_, path)| self.hidden.folders.iter().any(|folder| path.starts_with(folder)));
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
        // The folder that we stand in is another one now, below all this.
        Ok(chdir(&self.cwd)?)
    }

    fn hide_paths(&self) -> io::Result<()> {
        for path in &self.hidden.folders {
            let (flags, options) = (MsFlags::MS_NOSUID | MsFlags::MS_NODEV, "size=1m,mode=0700");
            mount(Some("tmpfs"), path, Some("tmpfs"), flags, Some(options))?;
        }
        for path in &self.hidden.sockets {
            match bind_mount(Path::new("/dev/null"), path) {
                // Its program has ended meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                bound => bound?,
            }
        }
        Ok(())
    }
}

const NOTHING: Option<&str> = None;

/// The folders between what is sealed and where the command may write: moved away, they would take it with them.
fn movable_ancestors(sealed: &[PathBuf], writable: &[PathBuf]) -> Vec<PathBuf> {
    let is_movable = |path: &&Path| {
        path.parent().is_some_and(|parent| writable.iter().any(|root| parent.starts_with(root)))
    };
    let above = sealed.iter().flat_map(|path| path.ancestors().skip(1));
    above.filter(is_movable).map(Path::to_owned).collect()
}

/// Keeps being the same user and group in the new name space.
fn map_own_ids(uid: Uid, gid: Gid) -> io::Result<()> {
    let write =
        |path: &str, text: String| fs::File::options().write(true).open(path)?.write_all(text.as_bytes());
    write("/proc/self/setgroups", "deny".into())?;
    write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

fn bind_mount(from: &Path, to: &Path) -> io::Result<()> {
    Ok(mount(Some(from), to, NOTHING, MsFlags::MS_BIND | MsFlags::MS_REC, NOTHING)?)
}

/// Mounts something over itself, a link too, so that it cannot be moved or replaced. Tells whether it is there: what is
/// gone meanwhile is looked for when the command has ended.
fn pin_path(path: &Path) -> io::Result<bool> {
    match copy_mounts(path).and_then(|mounts| attach_mounts(&mounts, path)) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Copies a place with all that is mounted in it, each with the rights it has now.
fn copy_mounts(path: &Path) -> io::Result<OwnedFd> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let recursive = libc::AT_RECURSIVE.unsigned_abs();
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | recursive | NOT_THROUGH_LINKS;
    #[expect(unsafe_code, reason = "no crate of ours knows this call")]
    // SAFETY: the path lives until the call is over; what it gives is a new descriptor that nobody else owns, or an
    // error.
    unsafe {
        let fd = libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags);
        match i32::try_from(fd) {
            Ok(fd) if fd >= 0 => Ok(OwnedFd::from_raw_fd(fd)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

const NOT_THROUGH_LINKS: libc::c_uint = libc::AT_SYMLINK_NOFOLLOW.unsigned_abs();

fn attach_mounts(mounts: &OwnedFd, path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    #[expect(unsafe_code, reason = "no crate of ours knows this call")]
    // SAFETY: both paths live until the call is over, and the descriptor is open.
    let done = unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            mounts.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::MOVE_MOUNT_F_EMPTY_PATH,
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
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
            libc::AT_RECURSIVE | libc::AT_SYMLINK_NOFOLLOW,
            &raw const wanted,
            size_of_val(&wanted),
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
