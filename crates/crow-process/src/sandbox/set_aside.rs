//! Renames what a confined command created in a repository so that Git ignores it, unless every fresh repository has
//! it. Works on open directories, so that no link can be inserted.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read as _},
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use crow_core::is_inert_git_config;
use nix::{
    fcntl::{OFlag, OpenHow, ResolveFlag, openat2},
    sys::stat::{Mode, SFlag, fchmod, fstat},
};
use rustix::{
    fs::{RenameFlags, renameat_with},
    io::Errno,
};

/// The suffix of the new name.
const SUFFIX: &str = "set-aside";

/// Attempts to find a free name.
const NAMES_MAX: usize = 1000;

/// The configuration of a fresh repository is shorter.
const CONFIG_BYTES_MAX: u64 = 64 * 1024;

/// Entries of a hooks directory that are examined; Git installs about fifteen.
const HOOKS_MAX: usize = 100;

/// The program that would execute what is set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AutorunOwner {
    Git,
    /// An editor, a shell or another program of the user's.
    OtherProgram,
}

impl AutorunOwner {
    fn as_str(self) -> &'static str {
        match self {
            Self::Git => "Git",
            Self::OtherProgram => "an editor, a shell or an agent",
        }
    }
}

/// Sets aside a file, a link or a whole directory; returns the message.
pub(super) fn set_file_aside(path: &Path, owner: AutorunOwner) -> String {
    let renamed = match (path.parent(), path.file_name()) {
        (Some(directory), Some(name)) => {
            open_folder(directory).and_then(|folder| rename_aside(&folder, name))
        }
        _ => Err(io::ErrorKind::InvalidInput.into()),
    };
    describe_rename(path, renamed, owner)
}

/// Sets aside one part of a repository; `None` if it is harmless.
pub(super) fn set_part_aside(repository: &Path, part: &str) -> Option<String> {
    let path = repository.join(part);
    let renamed = match open_folder(repository) {
        Ok(directory) if is_harmless(&directory, part) => return None,
        Ok(directory) => rename_aside(&directory, part.as_ref()),
        Err(error) => Err(error),
    };
    Some(describe_rename(&path, renamed, AutorunOwner::Git))
}

/// Whether a part of a repository is harmless.
pub(super) fn is_harmless_part(repository: &Path, part: &str) -> bool {
    open_folder(repository).is_ok_and(|directory| is_harmless(&directory, part))
}

/// Formats the message in words that connect a failed command with the sandbox.
fn describe_rename(path: &Path, renamed: io::Result<String>, owner: AutorunOwner) -> String {
    let (path, owner) = (path.display(), owner.as_str());
    match renamed {
        Ok(name) => format!(
            "renamed {path} to {name}, because an unapproved command created it and {owner} could execute a program \
             through it: operation not permitted in the sandbox"
        ),
        Err(error) => {
            format!("could not set aside {path} ({error}), which {owner} may run a program through")
        }
    }
}

/// Opens a directory that its owner may change, without following links.
fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let directory = open_no_symlinks(nix::fcntl::AT_FDCWD, path, flags)?;
    let mode = Mode::from_bits_truncate(fstat(&directory)?.st_mode);
    if !mode.contains(Mode::S_IRWXU) {
        // If that is not permitted, the rename reports it.
        let mode_bits = Mode::S_IRWXU | Mode::S_IRWXG | Mode::S_IRWXO;
        let _ = fchmod(&directory, (mode & mode_bits) | Mode::S_IRWXU);
    }
    Ok(directory)
}

/// Opens a directory with `O_PATH`, without following links: it can be listed by its descriptor.
pub(super) fn open_path_fd(path: &Path) -> io::Result<OwnedFd> {
    open_no_symlinks(nix::fcntl::AT_FDCWD, path, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC)
}

/// Opens a directory to list it, without following links.
pub(super) fn open_for_listing(path: &Path) -> io::Result<OwnedFd> {
    open_no_symlinks(nix::fcntl::AT_FDCWD, path, OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC)
}

/// Opens a path without following links.
pub(super) fn open_no_symlinks(directory: impl AsFd, path: &Path, flags: OFlag) -> io::Result<OwnedFd> {
    let flags = if flags.contains(OFlag::O_PATH) { flags } else { flags | OFlag::O_NONBLOCK };
    let options = OpenHow::new().flags(flags).resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    Ok(openat2(directory, path, options)?)
}

/// Gives an entry of a directory a name that Git does not know; returns the name.
fn rename_aside(directory: &OwnedFd, name: &OsStr) -> io::Result<String> {
    let name_text = name.to_string_lossy();
    for n in 1..=NAMES_MAX {
        let free_name =
            if n == 1 { format!("{name_text}.{SUFFIX}") } else { format!("{name_text}.{SUFFIX}-{n}") };
        // The system call itself: the C library has a function for it only since glibc 2.28.
        match renameat_with(directory, name, directory, free_name.as_str(), RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(free_name),
            Err(Errno::EXIST | Errno::NOTEMPTY) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Whether a part is as in a fresh repository: a plain configuration, sample hooks, an empty directory.
fn is_harmless(repository: &OwnedFd, part: &str) -> bool {
    let Ok(file) = open_no_symlinks(repository, Path::new(part), OFlag::O_RDONLY | OFlag::O_CLOEXEC) else {
        return false;
    };
    let Ok(kind) = fstat(&file).map(|stat| SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT) else {
        return false;
    };
    match part {
        "config" | "config.worktree" if kind == SFlag::S_IFREG => {
            let mut text = String::new();
            let read = File::from(file).take(CONFIG_BYTES_MAX + 1).read_to_string(&mut text);
            read.is_ok_and(|n_bytes| n_bytes as u64 <= CONFIG_BYTES_MAX) && is_inert_git_config(&text)
        }
        "hooks" | "modules" | "worktrees" if kind == SFlag::S_IFDIR => {
            let suffix = if part == "hooks" { ".sample" } else { "/" };
            let entries = fs::read_dir(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file)));
            let names = entries.map(|entries| {
                entries
                    .take(HOOKS_MAX + 1)
                    .map(|entry| entry.map(|entry| entry.file_name()))
                    .collect::<Result<Vec<_>, _>>()
            });
            let is_allowed = |name: &std::ffi::OsString| name.as_encoded_bytes().ends_with(suffix.as_bytes());
            names.is_ok_and(|names| {
                names.is_ok_and(|names| names.len() <= HOOKS_MAX && names.iter().all(is_allowed))
            })
        }
        _ => false,
    }
}
