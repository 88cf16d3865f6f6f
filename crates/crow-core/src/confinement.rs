//! How a command is held while it runs: who approved it decides, not what it is.

mod support;

pub use self::support::{PartialSandbox, SandboxPolicy, SandboxSupport};
use crate::{Mode, shell};

/// What a command may do to the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confinement {
    /// Whatever the person may do.
    Free,
    /// Write inside the roots, temporary folders and the caches of tools, nowhere else.
    Project,
    /// The same, but for files there that other programs run by themselves.
    Guarded,
    /// The same as [`Self::Guarded`], and no network.
    Offline,
    /// Write nowhere.
    ReadOnly,
}

/// Whether a command that is held may use the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NetworkAccess {
    /// It may.
    #[default]
    Open,
    /// It may not.
    Closed,
}

/// Which commands run in the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SandboxMode {
    /// None, but for those of plan mode.
    Off,
    /// Those that nobody approved.
    #[default]
    Unapproved,
    /// All of them.
    Always,
}

/// Who said that a call may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalSource {
    /// A person, for this call or with an "always".
    Person,
    /// A person, with an "always" for what runs the project's own code: they saw neither that nor the whole command.
    Lasting,
    /// The mode or a rule.
    Law,
    /// Nobody had to: it only reads.
    Reading,
    /// The mode: it only edits files of the project, by names that were judged.
    Editing,
    /// The mode: it is a known build, test or linter of the project.
    Building,
}

impl SandboxMode {
    /// Every choice, in the order shown.
    pub const ALL: [Self; 3] = [Self::Off, Self::Unapproved, Self::Always];

    /// Spells the choice.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Unapproved => "unapproved",
            Self::Always => "always",
        }
    }

    /// Reads a choice.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|sandbox| sandbox.as_str() == text)
    }

    /// Tells how a command is held.
    pub fn confinement_for(self, mode: Mode, approval: ApprovalSource) -> Confinement {
        match (mode, self, approval) {
            (Mode::Plan, ..) | (_, Self::Always | Self::Unapproved, ApprovalSource::Reading) => {
                Confinement::ReadOnly
            }
            (_, Self::Always | Self::Unapproved, ApprovalSource::Editing | ApprovalSource::Building) => {
                Confinement::Offline
            }
            (_, Self::Always | Self::Unapproved, ApprovalSource::Lasting) => Confinement::Guarded,
            (_, Self::Always, _) | (_, Self::Unapproved, ApprovalSource::Law) => Confinement::Project,
            (_, Self::Off, _) | (_, Self::Unapproved, ApprovalSource::Person) => Confinement::Free,
        }
    }
}

/// What programs say when they may not do something.
const SIGNS: [&str; 14] = [
    "permission denied",
    "operation not permitted",
    "read-only file system",
    "device or resource busy",
    "eacces",
    "eperm",
    "erofs",
    "ebusy",
    // Some do not say why they could not: a cache that is not there yet cannot be made.
    "could not create local repository",
    "could not create parent dir",
    "could not create directory",
    "unable to create directory",
    "failed to create directory",
    "failed to create parent dir",
];

/// What programs say when they reach nobody.
const SIGNS_OF_SILENCE: [&str; 16] = [
    "could not resolve",
    "couldn't resolve",
    "name or service not known",
    "temporary failure in name resolution",
    "network is unreachable",
    "network unreachable",
    "dns error",
    "enotfound",
    "eai_again",
    "failed to lookup address",
    "no such host",
    "nodename nor servname",
    "unknownhostexception",
    "network is down",
    "no route to host",
    "failed to establish a new connection",
];

/// What programs say of them that may be meant by a program that only reads: what it may read is not restricted.
const SIGNS_OF_READERS: [&str; 2] = ["read-only file system", "erofs"];

impl Confinement {
    /// Returns whether a command may use the network where others may: one that only reads needs none.
    pub fn network_access(self, configured: NetworkAccess) -> NetworkAccess {
        match self {
            Self::Free | Self::Project | Self::Guarded => configured,
            Self::Offline | Self::ReadOnly => NetworkAccess::Closed,
        }
    }

    /// Tells whether what a failed command said sounds as if this had been why.
    pub fn is_suspected(self, network: NetworkAccess, said: &str) -> bool {
        let said = said.to_lowercase();
        let is_said = |signs: &[&str]| signs.iter().any(|sign| said.contains(sign));
        let is_cut_off = self.network_access(network) == NetworkAccess::Closed && is_said(&SIGNS_OF_SILENCE);
        match self {
            Self::Free => false,
            Self::Project | Self::Guarded | Self::Offline => is_said(&SIGNS) || is_cut_off,
            Self::ReadOnly => is_said(&SIGNS_OF_READERS) || is_cut_off,
        }
    }

    /// The same for a command line that ended well. The last of several commands in it may hide that another one failed,
    /// as in `cargo build | tail`; what only passes words on must not be taken for it, so fewer signs count.
    pub fn is_suspected_in_part(self, network: NetworkAccess, line: &str, said: &str) -> bool {
        let may_hide = || shell::parse_line(line).map_or(true, |commands| commands.len() > 1);
        let said = said.to_lowercase();
        let is_said = |signs: &[&str]| signs.iter().any(|sign| said.contains(sign));
        let is_cut_off =
            || self.network_access(network) == NetworkAccess::Closed && is_said(&SIGNS_OF_SILENCE);
        match self {
            Self::Free | Self::ReadOnly => false,
            Self::Project | Self::Guarded | Self::Offline => {
                (is_said(&SIGNS_OF_READERS) || is_cut_off()) && may_hide()
            }
        }
    }

    /// Says how a command was held; nothing of one that was not.
    pub fn restriction_note(self, network: NetworkAccess) -> Option<String> {
        let bounds = match self {
            Self::Free => return None,
            Self::Project => "could write only in the project, temporary folders and the caches of tools",
            Self::Guarded | Self::Offline => {
                "could write only in the project, temporary folders and the caches of tools, and change no file that other \
                 programs run by themselves"
            }
            Self::ReadOnly => "could write nowhere",
        };
        let network = match self.network_access(network) {
            NetworkAccess::Open => "",
            NetworkAccess::Closed => ", and could not use the network",
        };
        Some(format!("(the command ran in a sandbox: it {bounds}{network})"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_approved_decides_except_in_plan_mode() {
        use {ApprovalSource::*, Confinement::*};
        let row = |mode, approval| SandboxMode::ALL.map(|sandbox| sandbox.confinement_for(mode, approval));
        for mode in [Mode::Ask, Mode::AcceptEdits, Mode::Auto] {
            assert_eq!(row(mode, Person), [Free, Free, Project], "{mode:?}");
            assert_eq!(row(mode, Law), [Free, Project, Project], "{mode:?}");
            assert_eq!(row(mode, Lasting), [Free, Guarded, Guarded], "{mode:?}");
            assert_eq!(row(mode, Reading), [Free, ReadOnly, ReadOnly], "{mode:?}");
            assert_eq!(row(mode, Editing), [Free, Offline, Offline], "{mode:?}");
            assert_eq!(row(mode, Building), [Free, Offline, Offline], "{mode:?}");
        }
        assert_eq!(row(Mode::Plan, Person), [ReadOnly; 3]);
        assert_eq!(row(Mode::Plan, Law), [ReadOnly; 3]);
    }

    #[test]
    fn what_a_held_command_says_is_understood() {
        use Confinement::*;
        use NetworkAccess::*;
        #[rustfmt::skip]
        let table = [
            (Project, Open, "touch: cannot touch '/etc/x': Permission denied", true),
            (Project, Open, "Error: EACCES: permission denied, open '/x'", true),
            (ReadOnly, Open, "fatal: Unable to create '.git/index.lock': Read-only file system", true),
            (Project, Open, "PermissionError: [Errno 1] Operation not permitted", true),
            (Project, Closed, "curl: (6) Could not resolve host: example.org", true),
            (Project, Closed, "npm error code EAI_AGAIN", true),
            (Project, Open, "curl: (6) Could not resolve host: example.org", false),
            (Offline, Open, "curl: (6) Could not resolve host: example.org", true),
            (Offline, Open, "go: dial tcp: lookup proxy.golang.org: no such host", true),
            (Offline, Open, "failed to lookup address information: Try again", true),
            (Offline, Open, "java.net.UnknownHostException: repo.example.org", true),
            (Offline, Open, "[ERROR] Could not create local repository at /home/me/.m2/repository", true),
            (Offline, Open, "Could not create parent directory for lock file /home/me/.gradle/x.lck", true),
            (Offline, Open, "error[E0308]: mismatched types", false),
            (Project, Closed, "error[E0308]: mismatched types", false),
            (Free, Closed, "touch: cannot touch '/etc/x': Permission denied", false),
        ];
        for (confinement, network, said, is_suspected) in table {
            assert_eq!(confinement.is_suspected(network, said), is_suspected, "{confinement:?} {said}");
            assert_eq!(confinement.restriction_note(network).is_none(), confinement == Free);
        }
    }

    #[test]
    fn the_end_of_a_pipeline_does_not_hide_what_failed_in_it() {
        use Confinement::*;
        use NetworkAccess::*;
        #[rustfmt::skip]
        let table = [
            (Offline, Open, "cargo build 2>&1 | tail", "Could not resolve host: index.crates.io", true),
            (Offline, Open, "cargo build; echo done", "could not open 'x': Read-only file system", true),
            (Offline, Open, "cargo build", "warning: could not resolve host: x", false),
            (Offline, Open, "cargo test | tail", "test permission denied is told ... ok", false),
            (Project, Open, "cargo build | tail", "Could not resolve host: index.crates.io", false),
            (Project, Closed, "cargo build | tail", "Could not resolve host: index.crates.io", true),
            (ReadOnly, Open, "grep -r EROFS . | head", "a.c: EROFS", false),
            (Free, Open, "cargo build | tail", "Read-only file system", false),
        ];
        for (confinement, network, line, said, is_suspected) in table {
            let found = confinement.is_suspected_in_part(network, line, said);
            assert_eq!(found, is_suspected, "{confinement:?} {line} {said}");
        }
    }
}
