//! The confinement of a command while it runs: it depends on the approval, not on the command.

mod support;

pub use self::support::{PartialSandbox, SandboxPolicy, SandboxSupport};
use crate::{Mode, shell};

/// The access of a command to the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confinement {
    /// No restriction beyond the user's own rights.
    Unconfined,
    /// Writing inside the roots, temporary directories and tool caches only.
    Project,
    /// The same, without files that other programs run automatically.
    Guarded,
    /// The same as [`Self::Guarded`], without network.
    Offline,
    /// No writing.
    ReadOnly,
}

/// Whether a confined command may use the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NetworkAccess {
    /// The network is available.
    #[default]
    Allowed,
    /// The network is blocked.
    Denied,
}

/// The selection of commands that run in the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SandboxMode {
    /// None, except those of plan mode.
    Off,
    /// Commands that the user did not approve.
    #[default]
    Unapproved,
    /// All commands.
    Always,
}

/// The source of a call's approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalSource {
    /// The user, for this call or permanently.
    User,
    /// The user, by a permanent grant for commands that run the project's own code: the user saw neither that code
    /// nor the whole command.
    ProjectCodeGrant,
    /// The mode or a rule.
    Policy,
    /// No approval needed: the command only reads.
    ReadOnlyCommand,
    /// The mode: the command only edits project files, whose names were checked.
    EditCommand,
    /// The mode: the command is a known build, test or linter of the project.
    BuildCommand,
}

impl SandboxMode {
    /// All values, in display order.
    pub const ALL: [Self; 3] = [Self::Off, Self::Unapproved, Self::Always];

    /// Returns the configuration word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Unapproved => "unapproved",
            Self::Always => "always",
        }
    }

    /// Parses a configuration word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|sandbox| sandbox.as_str() == text)
    }

    /// Describes for a model what commands may do, as one line.
    pub fn describe_limits(self, network: NetworkAccess) -> String {
        let commands = match self {
            Self::Off => return "none; commands may do what the user may".to_owned(),
            Self::Unapproved => "commands that the user did not approve",
            Self::Always => "commands",
        };
        let network = match network {
            NetworkAccess::Allowed => "",
            NetworkAccess::Denied => " and have no network",
        };
        format!(
            "{commands} write only in the working directories, temporary directories and caches of tools{network}"
        )
    }

    /// Returns the confinement of a command.
    pub fn confinement_for(self, mode: Mode, approval: ApprovalSource) -> Confinement {
        match (mode, self, approval) {
            (Mode::Plan, ..) | (_, Self::Always | Self::Unapproved, ApprovalSource::ReadOnlyCommand) => {
                Confinement::ReadOnly
            }
            (
                _,
                Self::Always | Self::Unapproved,
                ApprovalSource::EditCommand | ApprovalSource::BuildCommand,
            ) => Confinement::Offline,
            (_, Self::Always | Self::Unapproved, ApprovalSource::ProjectCodeGrant) => Confinement::Guarded,
            (_, Self::Always, _) | (_, Self::Unapproved, ApprovalSource::Policy) => Confinement::Project,
            (_, Self::Off, _) | (_, Self::Unapproved, ApprovalSource::User) => Confinement::Unconfined,
        }
    }
}

/// Error messages of programs without access.
const DENIAL_SIGNS: [&str; 14] = [
    "permission denied",
    "operation not permitted",
    "read-only file system",
    "device or resource busy",
    "eacces",
    "eperm",
    "erofs",
    "ebusy",
    // Some programs give no reason: a missing cache cannot be created.
    "could not create local repository",
    "could not create parent dir",
    "could not create directory",
    "unable to create directory",
    "failed to create directory",
    "failed to create parent dir",
];

/// Error messages of programs without network.
const NETWORK_SIGNS: [&str; 16] = [
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

/// The ones that apply to a read-only program, whose reading is not restricted.
const READ_ONLY_SIGNS: [&str; 2] = ["read-only file system", "erofs"];

impl Confinement {
    /// Returns the network access of a command; a read-only command needs none.
    pub fn network_access(self, configured: NetworkAccess) -> NetworkAccess {
        match self {
            Self::Unconfined | Self::Project | Self::Guarded => configured,
            Self::Offline | Self::ReadOnly => NetworkAccess::Denied,
        }
    }

    /// Whether the output of a failed command indicates the confinement as the cause.
    pub fn is_suspected(self, network: NetworkAccess, output: &str) -> bool {
        let output = output.to_lowercase();
        let has_sign = |signs: &[&str]| signs.iter().any(|sign| output.contains(sign));
        let is_network_failure =
            self.network_access(network) == NetworkAccess::Denied && has_sign(&NETWORK_SIGNS);
        match self {
            Self::Unconfined => false,
            Self::Project | Self::Guarded | Self::Offline => has_sign(&DENIAL_SIGNS) || is_network_failure,
            Self::ReadOnly => has_sign(&READ_ONLY_SIGNS) || is_network_failure,
        }
    }

    /// The same for a command line that succeeded. The last command of a line can hide the failure of another one, as
    /// in `cargo build | tail`; since a command may also just print such text, fewer signs count.
    pub fn is_suspected_in_part(self, network: NetworkAccess, line: &str, output: &str) -> bool {
        let may_hide = || shell::parse_line(line).map_or(true, |commands| commands.len() > 1);
        let output = output.to_lowercase();
        let has_sign = |signs: &[&str]| signs.iter().any(|sign| output.contains(sign));
        let is_network_failure =
            || self.network_access(network) == NetworkAccess::Denied && has_sign(&NETWORK_SIGNS);
        match self {
            Self::Unconfined | Self::ReadOnly => false,
            Self::Project | Self::Guarded | Self::Offline => {
                (has_sign(&READ_ONLY_SIGNS) || is_network_failure()) && may_hide()
            }
        }
    }

    /// Describes the confinement of a command; `None` without one.
    pub fn restriction_note(self, network: NetworkAccess) -> Option<String> {
        let limits = match self {
            Self::Unconfined => return None,
            Self::Project => "could write only to the project, temporary directories and tool caches",
            Self::Guarded | Self::Offline => {
                "could write only to the project, temporary directories and tool caches, but not to files that other \
                 programs run automatically"
            }
            Self::ReadOnly => "could not write",
        };
        let network = match self.network_access(network) {
            NetworkAccess::Allowed => "",
            NetworkAccess::Denied => ", and had no network access",
        };
        Some(format!("(the command ran in a sandbox: it {limits}{network})"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn approval_determines_confinement_except_in_plan_mode() {
        use {ApprovalSource::*, Confinement::*};
        let row = |mode, approval| SandboxMode::ALL.map(|sandbox| sandbox.confinement_for(mode, approval));
        for mode in [Mode::Ask, Mode::AcceptEdits, Mode::Auto] {
            assert_eq!(row(mode, User), [Unconfined, Unconfined, Project], "{mode:?}");
            assert_eq!(row(mode, Policy), [Unconfined, Project, Project], "{mode:?}");
            assert_eq!(row(mode, ProjectCodeGrant), [Unconfined, Guarded, Guarded], "{mode:?}");
            assert_eq!(row(mode, ReadOnlyCommand), [Unconfined, ReadOnly, ReadOnly], "{mode:?}");
            assert_eq!(row(mode, EditCommand), [Unconfined, Offline, Offline], "{mode:?}");
            assert_eq!(row(mode, BuildCommand), [Unconfined, Offline, Offline], "{mode:?}");
        }
        assert_eq!(row(Mode::Plan, User), [ReadOnly; 3]);
        assert_eq!(row(Mode::Plan, Policy), [ReadOnly; 3]);
    }

    #[test]
    fn confinement_is_suspected_by_output_of_failed_command() {
        use Confinement::*;
        use NetworkAccess::*;
        #[rustfmt::skip]
        let table = [
            (Project, Allowed, "touch: cannot touch '/etc/x': Permission denied", true),
            (Project, Allowed, "Error: EACCES: permission denied, open '/x'", true),
            (ReadOnly, Allowed, "fatal: Unable to create '.git/index.lock': Read-only file system", true),
            (Project, Allowed, "PermissionError: [Errno 1] Operation not permitted", true),
            (Project, Denied, "curl: (6) Could not resolve host: example.org", true),
            (Project, Denied, "npm error code EAI_AGAIN", true),
            (Project, Allowed, "curl: (6) Could not resolve host: example.org", false),
            (Offline, Allowed, "curl: (6) Could not resolve host: example.org", true),
            (Offline, Allowed, "go: dial tcp: lookup proxy.golang.org: no such host", true),
            (Offline, Allowed, "failed to lookup address information: Try again", true),
            (Offline, Allowed, "java.net.UnknownHostException: repo.example.org", true),
            (Offline, Allowed, "[ERROR] Could not create local repository at /home/me/.m2/repository", true),
            (Offline, Allowed, "Could not create parent directory for lock file /home/me/.gradle/x.lck", true),
            (Offline, Allowed, "error[E0308]: mismatched types", false),
            (Project, Denied, "error[E0308]: mismatched types", false),
            (Unconfined, Denied, "touch: cannot touch '/etc/x': Permission denied", false),
        ];
        for (confinement, network, said, is_suspected) in table {
            assert_eq!(confinement.is_suspected(network, said), is_suspected, "{confinement:?} {said}");
            assert_eq!(confinement.restriction_note(network).is_none(), confinement == Unconfined);
        }
    }

    #[test]
    fn confinement_is_suspected_if_pipeline_hides_failure() {
        use Confinement::*;
        use NetworkAccess::*;
        #[rustfmt::skip]
        let table = [
            (Offline, Allowed, "cargo build 2>&1 | tail", "Could not resolve host: index.crates.io", true),
            (Offline, Allowed, "cargo build; echo done", "could not open 'x': Read-only file system", true),
            (Offline, Allowed, "cargo build", "warning: could not resolve host: x", false),
            (Offline, Allowed, "cargo test | tail", "test permission denied is told ... ok", false),
            (Project, Allowed, "cargo build | tail", "Could not resolve host: index.crates.io", false),
            (Project, Denied, "cargo build | tail", "Could not resolve host: index.crates.io", true),
            (ReadOnly, Allowed, "grep -r EROFS . | head", "a.c: EROFS", false),
            (Unconfined, Allowed, "cargo build | tail", "Read-only file system", false),
        ];
        for (confinement, network, line, said, is_suspected) in table {
            let found = confinement.is_suspected_in_part(network, line, said);
            assert_eq!(found, is_suspected, "{confinement:?} {line} {said}");
        }
    }
}
