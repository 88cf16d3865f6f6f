//! Where a command may write: rules for Landlock, the kernel's own access control for programs that give up rights.
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

/// The newest version of the kernel's rules whose meaning is known here; older kernels apply what they know.
const VERSION: ABI = ABI::V9;

/// From this version on everything that the manual promises is held.
pub(super) const VERSION_WHOLE: i64 = 6;

/// From this version on files can be kept from being cut short without being opened.
pub(super) const VERSION_TRUNCATION: i64 = 3;

/// Devices that keep nothing.
const SINKS: [&str; 7] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/pts"];

/// What a program that may write needs beside its files: making terminals, sharing memory with its children.
const SHARED: [&str; 2] = ["/dev/ptmx", "/dev/shm"];

/// Tells which version of the rules the kernel knows; the other side says why none.
pub(super) fn landlock_version() -> Result<i64, String> {
    #[expect(unsafe_code, reason = "no crate of ours asks this question")]
    // SAFETY: with this flag the call takes no memory and only answers a number.
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
        Some(libc::EOPNOTSUPP) => "Landlock was not switched on when the system started".into(),
        _ => format!("the system refuses Landlock ({error})"),
    })
}

/// `LANDLOCK_CREATE_RULESET_VERSION`.
const CREATE_RULESET_VERSION: libc::c_uint = 1;

/// Makes the rules for a command that may write in these places, or nowhere.
pub(super) fn build_landlock_rules(
    writable: Option<&[PathBuf]>,
    network: NetworkAccess,
) -> Result<RulesetCreated, RulesetError> {
    let handled = AccessFs::from_write(VERSION);
    let mut rules = Ruleset::default().handle_access(handled)?.scope(Scope::from_all(VERSION))?;
    if network == NetworkAccess::Closed {
        rules = rules.handle_access(AccessNet::from_all(VERSION))?;
    }
    let mut rules = rules.create()?;
    for sink in SINKS {
        rules = allow_path(rules, Path::new(sink), handled & device_access())?;
    }
    // A device in a folder of the command's own would be a way to the disk below all files, and a socket of
    // somebody else's a way to a program outside.
    let kept = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev | AccessFs::ResolveUnix;
    for path in writable.unwrap_or_default() {
        rules = allow_path(rules, path, handled & !kept)?;
    }
    if writable.is_some() {
        for path in SHARED {
            let access = if Path::new(path).is_dir() { handled & !kept } else { device_access() };
            rules = allow_path(rules, Path::new(path), access)?;
        }
    }
    Ok(rules)
}

/// Leaves out what is protected, for the rules can only add up: of a folder with something protected below it only
/// what is there now can be written, and nothing new can be made in it.
pub(super) fn exclude_protected(writable: &[String], protected: &[PathBuf]) -> Vec<PathBuf> {
    let is_protected = |path: &Path| protected.iter().any(|protected| path.starts_with(protected));
    let mut open: Vec<PathBuf> = writable.iter().map(PathBuf::from).collect();
    let mut around = Vec::new();
    while let Some(path) = open.pop() {
        if around.len() >= PLACES_MAX {
            break;
        }
        if is_protected(&path) {
            continue;
        }
        if !protected.iter().any(|protected| protected.starts_with(&path)) {
            around.push(path);
            continue;
        }
        let entries = fs::read_dir(&path).into_iter().flatten().flatten();
        // A link would lead back in.
        let entries = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
        open.extend(entries.map(|entry| entry.path()));
    }
    around
}

/// Each is a rule of its own; what is beyond is not writable, which errs on the safe side.
const PLACES_MAX: usize = 20_000;

fn device_access() -> BitFlags<AccessFs> {
    AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev
}

/// What is not there cannot be written to anyway.
fn allow_path(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let Ok(place) = PathFd::new(path) else { return Ok(rules) };
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(VERSION) };
    rules.add_rule(PathBeneath::new(place, access))
}
