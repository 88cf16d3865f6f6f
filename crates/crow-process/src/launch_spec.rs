//! The arguments of a supervisor: written by one process, parsed by another.

use crow_core::{Confinement, NetworkAccess};

/// The first argument that makes our executable a supervisor.
pub const SUBCOMMAND: &str = "sandbox-exec";

/// The second argument that makes a supervisor probe the sandbox and print the result.
pub(crate) const PROBE_FLAG: &str = "--probe";

/// Everything a supervisor must know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LaunchSpec {
    pub(crate) confinement: Confinement,
    /// The session's directories, whose contents are examined.
    pub(crate) roots: Vec<String>,
    /// Temporary directories, writable as well. Their contents are examined too.
    pub(crate) writable: Vec<String>,
    /// Tool caches, writable as well. Only their upper directories are examined.
    pub(crate) caches: Vec<String>,
    pub(crate) protected: Vec<String>,
    /// In the roots, files that other programs execute stay as they are.
    pub(crate) guards_autorun: bool,
    /// Repositories outside the roots that the roots belong to.
    pub(crate) repositories: Vec<String>,
    /// All of a repository is read-only, and not only the parts that make Git run programs.
    pub(crate) keeps_repositories: bool,
    /// The home directory, and the directory for the user's sockets.
    pub(crate) home: Option<String>,
    pub(crate) runtime_dir: Option<String>,
    pub(crate) network: NetworkAccess,
    /// Variables that the command does not get; if set, none whose name is secret either.
    pub(crate) hidden_variables: Option<Vec<String>>,
    /// The command gets a mount namespace of its own or does not run.
    pub(crate) has_namespace: bool,
    /// The process that requested the command; when it ends, the command does.
    pub(crate) owner_pid: Option<i32>,
    /// It then gets SIGTERM before SIGKILL.
    pub(crate) has_grace: bool,
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
}

/// The reason why a command line was not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LaunchSpecError {
    #[error("there is no option {0}")]
    UnknownOption(String),
    #[error("{0} needs a value")]
    MissingValue(&'static str),
    #[error("{0} is not a process ID")]
    InvalidPid(String),
    #[error("--free, --read-only and --write or --write-beside exclude each other")]
    ConflictingOptions,
    #[error("{0} is not text")]
    NotUtf8(String),
    #[error("there is no command after `--`")]
    MissingCommand,
}

pub(crate) const USAGE: &str = "usage: crow-cli sandbox-exec [--read-only | --write DIR... [--write-beside DIR...] [--cache DIR...] | \
     --free] [--protect PATH...] [--guard-autorun] [--repository DIR...] [--keep-repositories] [--home DIR] [--runtime DIR] [--no-network] [--no-namespace] \
     [--hide-secrets] [--hide NAME...] [--for PID] [--grace] -- COMMAND [ARGUMENT...]\n       crow-cli sandbox-exec --probe";

impl Default for LaunchSpec {
    fn default() -> Self {
        Self {
            confinement: Confinement::ReadOnly,
            roots: Vec::new(),
            writable: Vec::new(),
            caches: Vec::new(),
            protected: Vec::new(),
            guards_autorun: false,
            repositories: Vec::new(),
            keeps_repositories: false,
            home: None,
            runtime_dir: None,
            network: NetworkAccess::Allowed,
            hidden_variables: None,
            has_namespace: true,
            owner_pid: None,
            has_grace: false,
            program: String::new(),
            args: Vec::new(),
        }
    }
}

impl LaunchSpec {
    /// Returns the arguments after the executable.
    pub(crate) fn into_args(self) -> Vec<String> {
        let mut args = vec![SUBCOMMAND.to_owned()];
        match self.confinement {
            Confinement::Unconfined => args.push("--free".into()),
            Confinement::ReadOnly => args.push("--read-only".into()),
            // No network access is an argument of its own.
            Confinement::Project | Confinement::Guarded | Confinement::Offline => {
                args.extend(self.roots.into_iter().flat_map(|path| ["--write".into(), path]));
                args.extend(self.writable.into_iter().flat_map(|path| ["--write-beside".into(), path]));
                args.extend(self.caches.into_iter().flat_map(|path| ["--cache".into(), path]));
            }
        }
        args.extend(self.protected.into_iter().flat_map(|path| ["--protect".into(), path]));
        if self.guards_autorun {
            args.push("--guard-autorun".into());
        }
        args.extend(self.repositories.into_iter().flat_map(|path| ["--repository".into(), path]));
        if self.keeps_repositories {
            args.push("--keep-repositories".into());
        }
        args.extend(self.home.into_iter().flat_map(|path| ["--home".into(), path]));
        args.extend(self.runtime_dir.into_iter().flat_map(|path| ["--runtime".into(), path]));
        if !self.has_namespace {
            args.push("--no-namespace".into());
        }
        if self.network == NetworkAccess::Denied {
            args.push("--no-network".into());
        }
        if let Some(hidden_variables) = self.hidden_variables {
            args.push("--hide-secrets".into());
            args.extend(hidden_variables.into_iter().flat_map(|name| ["--hide".into(), name]));
        }
        if let Some(owner_pid) = self.owner_pid {
            args.extend(["--for".into(), owner_pid.to_string()]);
        }
        if self.has_grace {
            args.push("--grace".into());
        }
        args.extend(["--".into(), self.program]);
        args.extend(self.args);
        args
    }

    /// Parses the arguments after [`SUBCOMMAND`]. Without any writable place a command may write nowhere.
    pub(crate) fn parse(args: impl IntoIterator<Item = String>) -> Result<Self, LaunchSpecError> {
        let mut args = args.into_iter();
        let mut spec = Self::default();
        let (mut is_free, mut is_read_only) = (false, false);
        loop {
            let arg = args.next().ok_or(LaunchSpecError::MissingCommand)?;
            let mut value = |option| args.next().ok_or(LaunchSpecError::MissingValue(option));
            match arg.as_str() {
                "--free" => is_free = true,
                "--read-only" => is_read_only = true,
                "--write" => spec.roots.push(value("--write")?),
                "--write-beside" => spec.writable.push(value("--write-beside")?),
                "--cache" => spec.caches.push(value("--cache")?),
                "--repository" => spec.repositories.push(value("--repository")?),
                "--home" => spec.home = Some(value("--home")?),
                "--runtime" => spec.runtime_dir = Some(value("--runtime")?),
                "--no-namespace" => spec.has_namespace = false,
                "--protect" => spec.protected.push(value("--protect")?),
                "--guard-autorun" => spec.guards_autorun = true,
                "--keep-repositories" => spec.keeps_repositories = true,
                "--no-network" => spec.network = NetworkAccess::Denied,
                "--hide-secrets" => drop(spec.hidden_variables.get_or_insert_default()),
                "--hide" => spec.hidden_variables.get_or_insert_default().push(value("--hide")?),
                "--for" => {
                    let text = value("--for")?;
                    let pid = text.parse().ok().filter(|&pid: &i32| pid > 0);
                    spec.owner_pid = Some(pid.ok_or(LaunchSpecError::InvalidPid(text))?);
                }
                "--grace" => spec.has_grace = true,
                "--" => break,
                _ => return Err(LaunchSpecError::UnknownOption(arg)),
            }
        }
        let has_no_writable_path =
            [&spec.roots, &spec.writable, &spec.caches].iter().all(|places| places.is_empty());
        spec.confinement = match (is_free, is_read_only, has_no_writable_path) {
            (true, false, true) => Confinement::Unconfined,
            (false, false, false) => Confinement::Project,
            (false, _, true) => Confinement::ReadOnly,
            (true, ..) | (_, true, false) => return Err(LaunchSpecError::ConflictingOptions),
        };
        spec.program = args.next().ok_or(LaunchSpecError::MissingCommand)?;
        spec.args = args.collect();
        Ok(spec)
    }
}
