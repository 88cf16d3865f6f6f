//! Moves what a held command made in a repository to where Git does not see it, unless it is what every fresh
//! repository has. Works on opened folders, so that nobody can put a link in the way.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read as _},
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use crow_core::is_inert_git_config;
use nix::{
    errno::Errno,
    fcntl::{OFlag, OpenHow, RenameFlags, ResolveFlag, openat2, renameat2},
    sys::stat::{Mode, SFlag, fchmod, fstat},
};

/// What is added to a name.
const SUFFIX: &str = "set-aside";

/// Attempts at a name that is free.
const NAMES_MAX: usize = 1000;

/// A longer configuration is none of a fresh repository.
const CONFIG_BYTES_MAX: u64 = 64 * 1024;

/// Entries of a folder of hooks that are looked at; Git brings about fifteen.
const HOOKS_MAX: usize = 100;

/// Who would run a program through what is set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AutorunOwner {
    Git,
    /// An editor, a shell or another program of the person's.
    Another,
}

impl AutorunOwner {
    fn as_str(self) -> &'static str {
        match self {
            Self::Git => "Git",
            Self::Another => "an editor, a shell or an agent",
        }
    }
}

/// Sets aside a file, a link or a whole folder; returns what to say.
pub(super) fn set_file_aside(path: &Path, runner: AutorunOwner) -> String {
    let moved = match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => open_folder(folder).and_then(|folder| rename_aside(&folder, name)),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    };
    describe_rename(path, moved, runner)
}

/// Sets aside one part of a repository; `None` when it can do no harm.
pub(super) fn set_part_aside(repository: &Path, part: &str) -> Option<String> {
    let path = repository.join(part);
    let moved = match open_folder(repository) {
        Ok(folder) if is_harmless(&folder, part) => return None,
        Ok(folder) => rename_aside(&folder, part.as_ref()),
        Err(error) => Err(error),
    };
    Some(describe_rename(&path, moved, AutorunOwner::Git))
}

/// Whether a part of a repository can do no harm.
pub(super) fn is_harmless_part(repository: &Path, part: &str) -> bool {
    open_folder(repository).is_ok_and(|folder| is_harmless(&folder, part))
}

/// Says it in words that a failed command's reader connects with the sandbox.
fn describe_rename(path: &Path, moved: io::Result<String>, runner: AutorunOwner) -> String {
    let (path, runner) = (path.display(), runner.as_str());
    match moved {
        Ok(name) => format!(
            "renamed {path} to {name}, because a command that nobody approved made it and {runner} could run a program \
             through it: operation not permitted in the sandbox"
        ),
        Err(error) => {
            format!("could not set aside {path} ({error}), which {runner} may run a program through")
        }
    }
}

/// Opens a folder that its owner may change, without following any link.
fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let folder = open_no_symlinks(nix::fcntl::AT_FDCWD, path, flags)?;
    let mode = Mode::from_bits_truncate(fstat(&folder)?.st_mode);
    if !mode.contains(Mode::S_IRWXU) {
        // Where we may not, the renaming says so.
        let rights = Mode::S_IRWXU | Mode::S_IRWXG | Mode::S_IRWXO;
        let _ = fchmod(&folder, (mode & rights) | Mode::S_IRWXU);
    }
    Ok(folder)
}

/// Opens a folder as a place only, without following any link: it can be listed by its descriptor.
pub(super) fn open_path_fd(path: &Path) -> io::Result<OwnedFd> {
    open_no_symlinks(nix::fcntl::AT_FDCWD, path, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC)
}

/// Opens a folder to list it, without following any link.
pub(super) fn open_for_listing(path: &Path) -> io::Result<OwnedFd> {
    open_no_symlinks(nix::fcntl::AT_FDCWD, path, OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC)
}

/// Opens without following any link.
pub(super) fn open_no_symlinks(folder: impl AsFd, path: &Path, flags: OFlag) -> io::Result<OwnedFd> {
    let flags = if flags.contains(OFlag::O_PATH) { flags } else { flags | OFlag::O_NONBLOCK };
    let how = OpenHow::new().flags(flags).resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    Ok(openat2(folder, path, how)?)
}

/// Gives an entry of a folder a name that Git does not know; returns the name.
fn rename_aside(folder: &OwnedFd, name: &OsStr) -> io::Result<String> {
    let plain = name.to_string_lossy();
    for n in 1..=NAMES_MAX {
        let free = if n == 1 { format!("{plain}.{SUFFIX}") } else { format!("{plain}.{SUFFIX}-{n}") };
        match renameat2(folder, name, folder, free.as_str(), RenameFlags::RENAME_NOREPLACE) {
            Ok(()) => return Ok(free),
            Err(Errno::EEXIST | Errno::ENOTEMPTY) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Whether a part is what every fresh repository has: a plain configuration, sample hooks, an empty folder.
fn is_harmless(repository: &OwnedFd, part: &str) -> bool {
    let Ok(opened) = open_no_symlinks(repository, Path::new(part), OFlag::O_RDONLY | OFlag::O_CLOEXEC) else {
        return false;
    };
    let Ok(kind) = fstat(&opened).map(|found| SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT)
    else {
        return false;
    };
    match part {
        "config" | "config.worktree" if kind == SFlag::S_IFREG => {
            let mut text = String::new();
            let read = File::from(opened).take(CONFIG_BYTES_MAX + 1).read_to_string(&mut text);
            read.is_ok_and(|n_bytes| n_bytes as u64 <= CONFIG_BYTES_MAX) && is_inert_git_config(&text)
        }
        "hooks" | "modules" | "worktrees" if kind == SFlag::S_IFDIR => {
            let allowed = if part == "hooks" { ".sample" } else { "/" };
            let entries = fs::read_dir(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&opened)));
            let names = entries.map(|entries| {
                entries
                    .take(HOOKS_MAX + 1)
                    .map(|entry| entry.map(|entry| entry.file_name()))
                    .collect::<Result<Vec<_>, _>>()
            });
            let is_allowed =
                |name: &std::ffi::OsString| name.as_encoded_bytes().ends_with(allowed.as_bytes());
            names.is_ok_and(|names| {
                names.is_ok_and(|names| names.len() <= HOOKS_MAX && names.iter().all(is_allowed))
            })
        }
        _ => false,
    }
}
