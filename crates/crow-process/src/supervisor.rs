//! The supervisor: a small program between Crow and each command. It confines the command as instructed, and when the
//! command or its caller ends, it ends every process of the command, whatever those did to escape.
//!
//! It is our own executable, started with [`SUBCOMMAND`], so that an editor can start it as well. Must not know what a
//! command is for or who approved it.

#[cfg(target_os = "linux")]
mod command_pipes;
#[cfg(target_os = "linux")]
mod command_supervisor;
#[cfg(target_os = "linux")]
mod descendants;
#[cfg(target_os = "linux")]
mod exit;
mod failure;
#[cfg_attr(target_os = "linux", path = "supervisor/frontend.rs")]
#[cfg_attr(target_os = "macos", path = "supervisor/seatbelt_frontend.rs")]
#[cfg_attr(not(any(target_os = "linux", target_os = "macos")), path = "supervisor/unsupported.rs")]
mod frontend;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use crow_core::{Confinement, NetworkAccess, SandboxSupport};
use tokio::sync::OnceCell;

use self::failure::{EXIT_USAGE, print_error};
use crate::{
    launch_spec::{LaunchSpec, LaunchSpecError, PROBE_FLAG, SUBCOMMAND, USAGE},
    sandbox::probe,
};

/// Wraps commands so that they start under a supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxWrapper {
    exe: PathBuf,
    defaults: SandboxDefaults,
    /// Probed once; clones share it.
    support: Arc<OnceCell<SandboxSupport>>,
}

/// The rules for every confined command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SandboxDefaults {
    pub network: NetworkAccess,
    /// Temporary directories that are writable in addition to the roots.
    pub writable: Vec<PathBuf>,
    /// Tool caches that are writable as well.
    pub caches: Vec<PathBuf>,
    /// Paths that stay read-only inside writable places.
    pub protected: Vec<PathBuf>,
    /// The user's home directory, where some programs have their sockets.
    pub home: Option<PathBuf>,
    /// The directory for the user's sockets (`XDG_RUNTIME_DIR`).
    pub runtime_dir: Option<PathBuf>,
}

/// The confinement of one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandConfinement {
    pub level: Confinement,
    /// The roots that are writable.
    pub writable: Vec<PathBuf>,
    /// For a supervisor that another program starts with an environment of its own: variables that the command does
    /// not get, in addition to all whose names are secret.
    pub hidden_variables: Option<Vec<String>>,
    /// Repositories outside the roots that the roots belong to.
    pub repositories: Vec<PathBuf>,
    /// Repositories stay as they are as a whole, since the command does not run Git.
    pub keeps_repositories: bool,
    /// When its owner ends, the command gets SIGTERM and a moment before SIGKILL: it may be the client of a program on
    /// another machine, which nothing else ends.
    pub has_grace: bool,
}

impl CommandConfinement {
    /// Permits whatever the user may do; the command's processes still end with it.
    pub const UNCONFINED: Self = Self {
        level: Confinement::Unconfined,
        writable: Vec::new(),
        hidden_variables: None,
        repositories: Vec::new(),
        keeps_repositories: false,
        has_grace: false,
    };

    /// The same for an agent, which a program such as `srun` may reach: that has to tell the other machine of its end.
    pub const AGENT: Self = Self {
        level: Confinement::Unconfined,
        writable: Vec::new(),
        hidden_variables: None,
        repositories: Vec::new(),
        keeps_repositories: false,
        has_grace: true,
    };
}

impl SandboxWrapper {
    /// Creates one from the path of our own executable.
    pub fn new(exe: PathBuf, defaults: SandboxDefaults) -> Self {
        Self { exe, defaults, support: Arc::default() }
    }

    /// Whether commands can be confined on this kind of system at all.
    pub const fn is_supported() -> bool {
        cfg!(any(target_os = "linux", target_os = "macos"))
    }

    /// Returns how well commands can be confined here, by probing the first time.
    pub async fn sandbox_support(&self) -> &SandboxSupport {
        self.support.get_or_init(|| probe::probe_sandbox(self.executable())).await
    }

    /// Whether commands get a mount namespace of their own. They must, until a probe has run.
    fn has_namespace(&self) -> bool {
        match self.support.get() {
            Some(SandboxSupport::Partial(partial)) => partial.namespace_problem.is_none(),
            Some(SandboxSupport::Full | SandboxSupport::Unavailable { .. }) | None => true,
        }
    }

    /// Returns the command line to start in place of a program.
    pub fn wrap_command(
        &self,
        confinement: &CommandConfinement,
        program: &str,
        args: &[String],
    ) -> (String, Vec<String>) {
        let confines = confinement.level != Confinement::Unconfined || confinement.hidden_variables.is_some();
        // On Linux the supervisor also ends the processes of a command that is not confined.
        if !(cfg!(target_os = "linux") || Self::is_supported() && confines) {
            return (program.to_owned(), args.to_owned());
        }
        let mut spec = LaunchSpec {
            confinement: confinement.level,
            network: confinement.level.network_access(self.defaults.network),
            hidden_variables: confinement.hidden_variables.clone(),
            owner_pid: i32::try_from(std::process::id()).ok(),
            has_grace: confinement.has_grace,
            program: program.to_owned(),
            args: args.to_owned(),
            ..LaunchSpec::default()
        };
        let is_guarded = matches!(confinement.level, Confinement::Guarded | Confinement::Offline);
        if is_guarded || confinement.level == Confinement::Project {
            spec.guards_autorun = is_guarded;
            spec.roots = to_absolute_strings(&confinement.writable);
            spec.writable = to_absolute_strings(&self.defaults.writable);
            spec.caches = to_absolute_strings(&self.defaults.caches);
            spec.protected = to_absolute_strings(&self.defaults.protected);
            spec.repositories = to_absolute_strings(&confinement.repositories);
            spec.keeps_repositories = confinement.keeps_repositories;
        }
        if confinement.level != Confinement::Unconfined {
            spec.home = to_absolute_strings(&self.defaults.home).pop();
            spec.runtime_dir = to_absolute_strings(&self.defaults.runtime_dir).pop();
            spec.has_namespace = self.has_namespace();
        }
        (self.executable(), spec.into_args())
    }

    /// Returns the command line that probes whether commands can be confined elsewhere; [`Self::cannot_hold`] reads
    /// its output.
    pub fn probe(&self) -> (String, Vec<String>) {
        (self.executable(), vec![SUBCOMMAND.to_owned(), PROBE_FLAG.to_owned()])
    }

    /// Parses the output of [`Self::probe`]: the reason why commands cannot be confined there, or `None` if they can.
    pub fn cannot_hold(report: &str) -> Option<&str> {
        probe::cannot_hold(report)
    }

    /// An update may have replaced or removed the file that we run from; the system still has it.
    fn executable(&self) -> String {
        match self.exe.to_str() {
            Some(exe) if cfg!(not(target_os = "linux")) || self.exe.exists() => exe.to_owned(),
            Some(_) | None => format!("/proc/{}/exe", std::process::id()),
        }
    }
}

/// A path that is not UTF-8 is not writable, which errs on the safe side.
fn to_absolute_strings<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Vec<String> {
    let utf8_paths = paths.into_iter().filter_map(|path| path.to_str());
    utf8_paths.filter(|path| Path::new(path).is_absolute()).map(str::to_owned).collect()
}

/// Runs the supervisor: what our executable does when its first argument is [`SUBCOMMAND`], with the arguments after that.
pub fn run_sandbox_exec(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Result<Vec<String>, OsString> = args.into_iter().map(OsString::into_string).collect();
    if args.as_deref().is_ok_and(|args| args == [PROBE_FLAG]) {
        return print_probe_report();
    }
    let spec = match args {
        Ok(args) => LaunchSpec::parse(args),
        Err(arg) => Err(LaunchSpecError::NotUtf8(arg.to_string_lossy().into_owned())),
    };
    match spec {
        Ok(spec) => frontend::run_frontend(&spec),
        Err(error) => {
            print_error(&format!("{error}\n{}", USAGE));
            ExitCode::from(EXIT_USAGE)
        }
    }
}

#[expect(clippy::print_stdout, reason = "it is the answer of a program that does nothing else")]
fn print_probe_report() -> ExitCode {
    println!("{}", probe::probe_report());
    ExitCode::SUCCESS
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
