//! What a warden is told, as the words of its command line: written by one process, read by another.

use crow_core::{Confinement, NetworkAccess};

/// Everything a warden is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LaunchSpec {
    pub(crate) confinement: Confinement,
    /// The session's folders: what is in them is looked at.
    pub(crate) roots: Vec<String>,
    /// Where may be written beside: temporary folders. What is in them is looked at as well.
    pub(crate) writable: Vec<String>,
    /// Caches of tools, where may be written too. Only their upper folders are looked at.
    pub(crate) caches: Vec<String>,
    pub(crate) protected: Vec<String>,
    /// In the roots, what other programs run by themselves stays as it is.
    pub(crate) guards_autorun: bool,
    /// Repositories that the roots belong to and that are elsewhere.
    pub(crate) repositories: Vec<String>,
    /// The home folder, and the folder for sockets of the person's programs.
    pub(crate) home: Option<String>,
    pub(crate) runtime: Option<String>,
    pub(crate) network: NetworkAccess,
    /// Variables that the command does not get; where there is a list, none whose name is a secret's either.
    pub(crate) hidden: Option<Vec<String>>,
    /// The command gets a mount name space of its own or does not run.
    pub(crate) has_namespace: bool,
    /// The process that wants the command; when it ends the command does.
    pub(crate) master: Option<i32>,
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
}

/// Why a command line was not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LaunchSpecError {
    #[error("there is no option {0}")]
    NoOption(String),
    #[error("{0} needs a value")]
    NoValue(&'static str),
    #[error("{0} is not the number of a process")]
    NoProcess(String),
    #[error("--free, --read-only and --write or --write-beside exclude each other")]
    Contradiction,
    #[error("{0} is not text")]
    NotText(String),
    #[error("there is no command behind `--`")]
    NoCommand,
}

pub(crate) const USAGE: &str = "usage: crow-cli sandbox-exec [--read-only | --write DIR... [--write-beside DIR...] [--cache DIR...] | \
     --free] [--protect PATH...] [--guard-autorun] [--repository DIR...] [--home DIR] [--runtime DIR] [--no-network] [--no-namespace] \
     [--hide-secrets] [--hide NAME...] [--for PID] -- COMMAND [ARGUMENT...]\n       crow-cli sandbox-exec --probe";

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
            home: None,
            runtime: None,
            network: NetworkAccess::Open,
            hidden: None,
            has_namespace: true,
            master: None,
            program: String::new(),
            args: Vec::new(),
        }
    }
}

impl LaunchSpec {
    /// Spells the whole command line behind the executable.
    pub(crate) fn into_args(self) -> Vec<String> {
        let mut words = vec![super::WORD.to_owned()];
        match self.confinement {
            Confinement::Free => words.push("--free".into()),
            Confinement::ReadOnly => words.push("--read-only".into()),
            // Without a network is an order of its own.
            Confinement::Project | Confinement::Guarded | Confinement::Offline => {
                words.extend(self.roots.into_iter().flat_map(|path| ["--write".into(), path]));
                words.extend(self.writable.into_iter().flat_map(|path| ["--write-beside".into(), path]));
                words.extend(self.caches.into_iter().flat_map(|path| ["--cache".into(), path]));
            }
        }
        words.extend(self.protected.into_iter().flat_map(|path| ["--protect".into(), path]));
        if self.guards_autorun {
            words.push("--guard-autorun".into());
        }
        words.extend(self.repositories.into_iter().flat_map(|path| ["--repository".into(), path]));
        words.extend(self.home.into_iter().flat_map(|path| ["--home".into(), path]));
        words.extend(self.runtime.into_iter().flat_map(|path| ["--runtime".into(), path]));
        if !self.has_namespace {
            words.push("--no-namespace".into());
        }
        if self.network == NetworkAccess::Closed {
            words.push("--no-network".into());
        }
        if let Some(hidden) = self.hidden {
            words.push("--hide-secrets".into());
            words.extend(hidden.into_iter().flat_map(|name| ["--hide".into(), name]));
        }
        if let Some(master) = self.master {
            words.extend(["--for".into(), master.to_string()]);
        }
        words.extend(["--".into(), self.program]);
        words.extend(self.args);
        words
    }

    /// Reads the words behind [`super::WORD`]. Without a word on it a command may write nowhere.
    pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, LaunchSpecError> {
        let mut words = words.into_iter();
        let mut orders = Self::default();
        let (mut is_free, mut is_read_only) = (false, false);
        loop {
            let word = words.next().ok_or(LaunchSpecError::NoCommand)?;
            let mut value = |option| words.next().ok_or(LaunchSpecError::NoValue(option));
            match word.as_str() {
                "--free" => is_free = true,
                "--read-only" => is_read_only = true,
                "--write" => orders.roots.push(value("--write")?),
                "--write-beside" => orders.writable.push(value("--write-beside")?),
                "--cache" => orders.caches.push(value("--cache")?),
                "--repository" => orders.repositories.push(value("--repository")?),
                "--home" => orders.home = Some(value("--home")?),
                "--runtime" => orders.runtime = Some(value("--runtime")?),
                "--no-namespace" => orders.has_namespace = false,
                "--protect" => orders.protected.push(value("--protect")?),
                "--guard-autorun" => orders.guards_autorun = true,
                "--no-network" => orders.network = NetworkAccess::Closed,
                "--hide-secrets" => drop(orders.hidden.get_or_insert_default()),
                "--hide" => orders.hidden.get_or_insert_default().push(value("--hide")?),
                "--for" => {
                    let text = value("--for")?;
                    let pid = text.parse().ok().filter(|&pid: &i32| pid > 0);
                    orders.master = Some(pid.ok_or(LaunchSpecError::NoProcess(text))?);
                }
                "--" => break,
                _ => return Err(LaunchSpecError::NoOption(word)),
            }
        }
        let is_write_free =
            [&orders.roots, &orders.writable, &orders.caches].iter().all(|places| places.is_empty());
        orders.confinement = match (is_free, is_read_only, is_write_free) {
            (true, false, true) => Confinement::Free,
            (false, false, false) => Confinement::Project,
            (false, _, true) => Confinement::ReadOnly,
            (true, ..) | (_, true, false) => return Err(LaunchSpecError::Contradiction),
        };
        orders.program = words.next().ok_or(LaunchSpecError::NoCommand)?;
        orders.args = words.collect();
        Ok(orders)
    }
}
