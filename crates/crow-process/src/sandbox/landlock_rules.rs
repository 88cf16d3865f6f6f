//! The places where a command may write: rules for Landlock, the kernel's access control for unprivileged processes.
//! Reading is not restricted here.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crow_core::NetworkAccess;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, PathBeneath, PathFd, Ruleset, RulesetAttr as _,
    RulesetCreated, RulesetCreatedAttr as _, RulesetError, Scope,
};

/// The newest Landlock version known here; older kernels apply what they know.
const VERSION: ABI = ABI::V9;

/// From this version on, everything that the manual promises is enforced.
pub(super) const VERSION_FULL: i64 = 6;

/// From this version on, truncation without opening a file is restricted.
pub(super) const VERSION_TRUNCATION: i64 = 3;

/// Devices that store nothing.
const DEVICES: [&str; 7] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/pts"];

/// Paths that a program needs besides its files: creating terminals, and sharing memory with its children.
const SHARED_PATHS: [&str; 2] = ["/dev/ptmx", "/dev/shm"];

/// Returns the Landlock version of the kernel, or the reason why there is none.
pub(super) fn landlock_version() -> Result<i64, String> {
    #[expect(unsafe_code, reason = "no crate of ours asks this question")]
    // SAFETY: with this flag the call takes no memory and only returns a number.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u8>(),
            0usize,
            CREATE_RULESET_VERSION,
        )
    };
    if version > 0 {
        return Ok(version);
    }
    let error = io::Error::last_os_error();
    Err(match error.raw_os_error() {
        Some(libc::ENOSYS) => "the kernel has no Landlock (Linux 5.13 and later can have it)".into(),
        Some(libc::EOPNOTSUPP) => "Landlock was not enabled at boot".into(),
        _ => format!("the system refuses Landlock ({error})"),
    })
}

/// `LANDLOCK_CREATE_RULESET_VERSION`.
const CREATE_RULESET_VERSION: libc::c_uint = 1;

/// Builds the rules for a command that may write in these places, or nowhere.
pub(super) fn build_landlock_rules(
    writable: Option<&[PathBuf]>,
    network: NetworkAccess,
) -> Result<RulesetCreated, RulesetError> {
    let handled_access = AccessFs::from_write(VERSION);
    let mut rules = Ruleset::default().handle_access(handled_access)?.scope(Scope::from_all(VERSION))?;
    if network == NetworkAccess::Denied {
        rules = rules.handle_access(AccessNet::from_all(VERSION))?;
    }
    let mut rules = rules.create()?;
    for device in DEVICES {
        rules = allow_path(rules, Path::new(device), handled_access & device_access())?;
    }
    // A device in a directory of the command would give access to the disk below all files, and a socket of another
    // program a way out.
    let excluded_access =
        AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev | AccessFs::ResolveUnix;
    for path in writable.unwrap_or_default() {
        rules = allow_path(rules, path, handled_access & !excluded_access)?;
    }
    if writable.is_some() {
        for path in SHARED_PATHS {
            let access =
                if Path::new(path).is_dir() { handled_access & !excluded_access } else { device_access() };
            rules = allow_path(rules, Path::new(path), access)?;
        }
    }
    Ok(rules)
}

/// Excludes what is protected. Rules only add rights: in a directory that contains something protected, only what
/// exists now is writable, and nothing new can be created.
pub(super) fn exclude_protected(writable: &[String], protected: &[PathBuf]) -> Vec<PathBuf> {
    let is_protected = |path: &Path| protected.iter().any(|protected| path.starts_with(protected));
    let mut pending: Vec<PathBuf> = writable.iter().map(PathBuf::from).collect();
    let mut unprotected = Vec::new();
    while let Some(path) = pending.pop() {
        if unprotected.len() >= PATHS_MAX {
            break;
        }
        if is_protected(&path) {
            continue;
        }
        if !protected.iter().any(|protected| protected.starts_with(&path)) {
            unprotected.push(path);
            continue;
        }
        let entries = fs::read_dir(&path).into_iter().flatten().flatten();
        // A link would lead back in.
        let entries = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
        pending.extend(entries.map(|entry| entry.path()));
    }
    unprotected
}

/// Each is a rule of its own; places beyond are not writable, which errs on the safe side.
const PATHS_MAX: usize = 20_000;

fn device_access() -> BitFlags<AccessFs> {
    AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev
}

/// A missing path cannot be written to anyway.
fn allow_path(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let Ok(fd) = PathFd::new(path) else { return Ok(rules) };
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(VERSION) };
    rules.add_rule(PathBeneath::new(fd, access))
}
