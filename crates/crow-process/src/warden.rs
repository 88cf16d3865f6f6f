//! The warden: a small program between us and each command. It holds the command as it was told to, and when the
//! command ends, or whoever wanted it does, nothing of it is left, whatever it did to get away.
//!
//! It is our own executable started with [`WORD`], so that an editor can start it as well. Must never know what a
//! command is for or who approved it.

pub(crate) mod orders;

#[cfg_attr(target_os = "linux", path = "warden/duty.rs")]
#[cfg_attr(not(target_os = "linux"), path = "warden/elsewhere.rs")]
mod duty;
#[cfg(target_os = "linux")]
mod ending;
#[cfg(target_os = "linux")]
mod keeper;
#[cfg(target_os = "linux")]
mod tree;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use crow_core::{Confinement, NetworkAccess, SandboxSupport};
use tokio::sync::OnceCell;

use self::orders::{LaunchSpec, LaunchSpecError};
use crate::sandbox::probe;

/// The first argument that makes our executable a warden.
pub const WORD: &str = "sandbox-exec";

/// The second argument that has a warden try out the sandbox and say what works.
pub(crate) const PROBE: &str = "--probe";

/// Wraps commands so that they start under a warden.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxWrapper {
    exe: PathBuf,
    rules: SandboxDefaults,
    /// Tried out once; clones share it.
    support: Arc<OnceCell<SandboxSupport>>,
}

/// What holds for every command that is held at all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SandboxDefaults {
    /// Whether they may use the network.
    pub network: NetworkAccess,
    /// Where they may write beside their roots: temporary folders.
    pub writable: Vec<PathBuf>,
    /// Caches of tools, where they may write too.
    pub caches: Vec<PathBuf>,
    /// What they may not change even there.
    pub protected: Vec<PathBuf>,
    /// The person's home folder, where some programs have their sockets.
    pub home: Option<PathBuf>,
    /// The folder for sockets of the person's programs.
    pub runtime: Option<PathBuf>,
}

/// How one command is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandConfinement {
    /// What it may do.
    pub confinement: Confinement,
    /// The roots that it may write in.
    pub writable: Vec<PathBuf>,
    /// Where another program starts the warden, with an environment of its own: the variables that the command does not get,
    /// beside all whose names are a secret's.
    pub hidden: Option<Vec<String>>,
    /// Repositories that these belong to and that are elsewhere.
    pub repositories: Vec<PathBuf>,
}

impl CommandConfinement {
    /// Lets a command do whatever the person may; nothing of it is left behind all the same.
    pub const FREE: Self =
        Self { confinement: Confinement::Free, writable: Vec::new(), hidden: None, repositories: Vec::new() };
}

impl SandboxWrapper {
    /// Makes one of the path of our own executable.
    pub fn new(exe: PathBuf, rules: SandboxDefaults) -> Self {
        Self { exe, rules, support: Arc::default() }
    }

    /// Finds out how well commands can be held here, by trying it the first time.
    pub async fn sandbox_support(&self) -> &SandboxSupport {
        self.support.get_or_init(|| probe::probe_sandbox(self.executable())).await
    }

    /// Whether commands are to get a mount name space of their own. As long as nobody looked they have to.
    fn has_namespace(&self) -> bool {
        match self.support.get() {
            Some(SandboxSupport::Partial(partial)) => partial.no_namespace.is_none(),
            Some(SandboxSupport::Full | SandboxSupport::None { .. }) | None => true,
        }
    }

    /// Tells what to start instead of a program.
    pub fn wrap_command(
        &self,
        confine: &CommandConfinement,
        program: &str,
        args: &[String],
    ) -> (String, Vec<String>) {
        if cfg!(not(target_os = "linux")) {
            return (program.to_owned(), args.to_owned());
        }
        let mut orders = LaunchSpec {
            confinement: confine.confinement,
            network: confine.confinement.network_access(self.rules.network),
            hidden: confine.hidden.clone(),
            master: i32::try_from(std::process::id()).ok(),
            program: program.to_owned(),
            args: args.to_owned(),
            ..LaunchSpec::default()
        };
        let is_guarded = matches!(confine.confinement, Confinement::Guarded | Confinement::Offline);
        if is_guarded || confine.confinement == Confinement::Project {
            orders.guards_autorun = is_guarded;
            orders.roots = to_absolute_strings(&confine.writable);
            orders.writable = to_absolute_strings(&self.rules.writable);
            orders.caches = to_absolute_strings(&self.rules.caches);
            orders.protected = to_absolute_strings(&self.rules.protected);
            orders.repositories = to_absolute_strings(&confine.repositories);
        }
        if confine.confinement != Confinement::Free {
            orders.home = to_absolute_strings(&self.rules.home).pop();
            orders.runtime = to_absolute_strings(&self.rules.runtime).pop();
            orders.has_namespace = self.has_namespace();
        }
        (self.executable(), orders.into_args())
    }

    /// What to start to find out whether commands can be held elsewhere; [`Self::cannot_hold`] reads what it says.
    pub fn probe(&self) -> (String, Vec<String>) {
        (self.executable(), vec![WORD.to_owned(), PROBE.to_owned()])
    }

    /// Reads what a [`Self::probe`] said: why no command can be held there, `None` when one can.
    pub fn cannot_hold(said: &str) -> Option<&str> {
        probe::cannot_hold(said)
    }

    /// An update may have replaced or removed the file that we run from, the system still has it.
    fn executable(&self) -> String {
        match self.exe.to_str() {
            Some(exe) if self.exe.exists() => exe.to_owned(),
            Some(_) | None => format!("/proc/{}/exe", std::process::id()),
        }
    }
}

/// A path that cannot be spelled is not writable, which errs on the safe side.
fn to_absolute_strings<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Vec<String> {
    let spelled = paths.into_iter().filter_map(|path| path.to_str());
    spelled.filter(|path| Path::new(path).is_absolute()).map(str::to_owned).collect()
}

/// Is the warden: what our executable does when its first argument is [`WORD`], with the arguments behind that.
pub fn run_sandbox_exec(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let words: Result<Vec<String>, OsString> = words.into_iter().map(OsString::into_string).collect();
    if words.as_deref().is_ok_and(|words| words == [PROBE]) {
        return print_probe_report();
    }
    let orders = match words {
        Ok(words) => LaunchSpec::parse(words),
        Err(word) => Err(LaunchSpecError::NotText(word.to_string_lossy().into_owned())),
    };
    match orders {
        Ok(orders) => duty::run_frontend(&orders),
        Err(bad) => {
            print_error(&format!("{bad}\n{}", orders::USAGE));
            ExitCode::from(CODE_USAGE)
        }
    }
}

#[expect(clippy::print_stdout, reason = "it is the answer of a program that does nothing else")]
fn print_probe_report() -> ExitCode {
    println!("{}", probe::probe_report());
    ExitCode::SUCCESS
}

const CODE_USAGE: u8 = 2;

/// What a shell answers when a program is there and cannot be started.
const CODE_CANNOT: u8 = 126;

/// What a shell answers when there is no such program.
const CODE_NO_PROGRAM: u8 = 127;

#[expect(clippy::print_stderr, reason = "whoever started the warden reads that")]
fn print_error(why: &str) {
    eprintln!("crow-cli {WORD}: {why}");
}

#[cfg(test)]
mod tests;
