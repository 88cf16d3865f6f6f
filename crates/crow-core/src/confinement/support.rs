//! The sandbox support of the system, and its consequences for unapproved commands.

use super::{ApprovalSource, Confinement, SandboxMode};
use crate::Mode;

/// The sandbox support of this machine, as detected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SandboxSupport {
    /// All features of the manual.
    Full,
    /// Writing is confined, some other access is not.
    Partial(PartialSandbox),
    /// No sandbox.
    Unavailable {
        /// The missing feature, as a clause.
        reason: String,
    },
}

/// The missing features of a partial sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartialSandbox {
    /// The reason why commands have no mount namespace of their own, and how to change that; `None` if they do.
    pub namespace_problem: Option<String>,
    /// Whether the kernel is too old to confine signals.
    pub signals_unconfined: bool,
}

/// The configured sandbox mode with the support of the system.
#[derive(Debug, Clone, Copy)]
pub struct SandboxPolicy<'a> {
    /// The selection of commands to confine.
    pub sandbox_mode: SandboxMode,
    /// The support of this machine.
    pub support: &'a SandboxSupport,
}

/// The setting that only the user can change.
const OPT_OUT_HINT: &str =
    "`permissions.sandbox: off` runs such commands without a sandbox and without this question";

impl SandboxSupport {
    /// Returns the limitation as a message to the user; `None` for full support.
    pub fn description(&self) -> Option<String> {
        match self {
            Self::Full => None,
            Self::Partial(partial) => Some(partial.description()),
            Self::Unavailable { reason } => {
                Some(format!("there is no sandbox: {reason}; unapproved commands ask first. {OPT_OUT_HINT}"))
            }
        }
    }
}

impl PartialSandbox {
    fn description(&self) -> String {
        let mut gaps = Vec::new();
        if self.namespace_problem.is_some() {
            gaps.push("change the modes and times of files outside the project");
        }
        if self.signals_unconfined {
            gaps.push("end your other programs");
        }
        let mut text = format!(
            "the sandbox is incomplete: unapproved commands can {}; commands that name such files or programs ask \
             first. Unapproved commands cannot use Unix sockets",
            gaps.join(" and ")
        );
        match &self.namespace_problem {
            Some(fix) => {
                text += ", and cannot create files directly in a directory with a repository. Cause: ";
                text += fix;
            }
            None => text += ". Linux 6.12 or newer confines signals",
        }
        text
    }
}

impl SandboxPolicy<'_> {
    /// Returns the confinement of an allowed command. Without sandbox support, the user's approval is required.
    pub fn confinement_for(&self, mode: Mode, approval: ApprovalSource) -> Confinement {
        match (self.support, approval, mode) {
            (
                SandboxSupport::Unavailable { .. },
                ApprovalSource::User,
                Mode::Ask | Mode::AcceptEdits | Mode::Auto,
            ) => Confinement::Unconfined,
            // Reading needs no sandbox, and neither do edits of files whose names were checked. A partial sandbox
            // would prevent edits from creating files.
            (
                SandboxSupport::Unavailable { .. },
                ApprovalSource::ReadOnlyCommand | ApprovalSource::EditCommand,
                _,
            ) => Confinement::Unconfined,
            (SandboxSupport::Partial(_), ApprovalSource::EditCommand, _) => Confinement::Unconfined,
            (SandboxSupport::Full | SandboxSupport::Partial(_) | SandboxSupport::Unavailable { .. }, ..) => {
                self.sandbox_mode.confinement_for(mode, approval)
            }
        }
    }

    /// The same for a build that only the mode allows, which runs the project's own code: without a sandbox it asks,
    /// even if the user turned the sandbox off.
    pub fn reason_to_ask_for_build(
        &self,
        mode: Mode,
        uses_gap: impl FnOnce(&PartialSandbox) -> Option<String>,
    ) -> Option<String> {
        if self.sandbox_mode.confinement_for(mode, ApprovalSource::BuildCommand) == Confinement::Unconfined {
            return Some("it runs the project's code, and `permissions.sandbox` is off".to_owned());
        }
        self.reason_to_ask(mode, uses_gap)
    }

    /// Returns the reason to ask about an unapproved command that the mode or a rule allows. `uses_gap` describes how
    /// the command could use a gap in the sandbox.
    pub fn reason_to_ask(
        &self,
        mode: Mode,
        uses_gap: impl FnOnce(&PartialSandbox) -> Option<String>,
    ) -> Option<String> {
        if self.sandbox_mode.confinement_for(mode, ApprovalSource::Policy) == Confinement::Unconfined {
            return None;
        }
        match self.support {
            SandboxSupport::Full => None,
            SandboxSupport::Partial(partial) => uses_gap(partial)
                .map(|gap| format!("{gap}, which the sandbox cannot prevent here; {OPT_OUT_HINT}")),
            SandboxSupport::Unavailable { reason } => {
                Some(format!("it cannot be confined in a sandbox ({reason}); {OPT_OUT_HINT}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partial_support(has_namespace: bool, signals_unconfined: bool) -> SandboxSupport {
        let namespace_problem = (!has_namespace).then(|| "x is off; turn x on".to_owned());
        SandboxSupport::Partial(PartialSandbox { namespace_problem, signals_unconfined })
    }

    #[test]
    fn unconfinable_command_asks_unless_sandbox_is_off() {
        let none = SandboxSupport::Unavailable { reason: "no Landlock".into() };
        let asks = |sandbox_mode, support: &SandboxSupport, uses: bool| {
            let rules = SandboxPolicy { sandbox_mode, support };
            let uses_gap = |_: &PartialSandbox| uses.then(|| "it does x".to_owned());
            [Mode::Ask, Mode::AcceptEdits, Mode::Auto]
                .map(|mode| rules.reason_to_ask(mode, uses_gap).is_some())
        };
        for sandbox_mode in [SandboxMode::Unapproved, SandboxMode::Always] {
            assert_eq!(asks(sandbox_mode, &SandboxSupport::Full, true), [false; 3]);
            assert_eq!(asks(sandbox_mode, &partial_support(false, true), true), [true; 3]);
            assert_eq!(asks(sandbox_mode, &partial_support(false, true), false), [false; 3]);
            assert_eq!(asks(sandbox_mode, &none, false), [true; 3]);
        }
        assert_eq!(asks(SandboxMode::Off, &none, true), [false; 3]);
        // A build runs the project's code by the mode alone.
        let asks_of_build = |sandbox_mode, support: &SandboxSupport| {
            let rules = SandboxPolicy { sandbox_mode, support };
            rules.reason_to_ask_for_build(Mode::AcceptEdits, |_| None).is_some()
        };
        assert!(!asks_of_build(SandboxMode::Unapproved, &SandboxSupport::Full));
        assert!(!asks_of_build(SandboxMode::Always, &partial_support(false, true)));
        assert!(asks_of_build(SandboxMode::Unapproved, &none));
        assert!(asks_of_build(SandboxMode::Off, &SandboxSupport::Full));
    }

    #[test]
    fn missing_sandbox_requires_approval_by_user() {
        let none = SandboxSupport::Unavailable { reason: "no Landlock".into() };
        for sandbox_mode in [SandboxMode::Unapproved, SandboxMode::Always] {
            let rules = SandboxPolicy { sandbox_mode, support: &none };
            assert_eq!(rules.confinement_for(Mode::Auto, ApprovalSource::User), Confinement::Unconfined);
            assert_eq!(rules.confinement_for(Mode::Auto, ApprovalSource::Policy), Confinement::Project);
            assert_eq!(rules.confinement_for(Mode::Plan, ApprovalSource::User), Confinement::ReadOnly);
            assert_eq!(
                rules.confinement_for(Mode::Plan, ApprovalSource::ReadOnlyCommand),
                Confinement::Unconfined
            );
        }
        let bare = SandboxPolicy { sandbox_mode: SandboxMode::Unapproved, support: &none };
        assert_eq!(
            bare.confinement_for(Mode::AcceptEdits, ApprovalSource::EditCommand),
            Confinement::Unconfined
        );
        let held = SandboxPolicy { sandbox_mode: SandboxMode::Always, support: &partial_support(true, true) };
        assert_eq!(held.confinement_for(Mode::Auto, ApprovalSource::User), Confinement::Project);
    }

    #[test]
    fn gaps_are_described_with_their_fix() {
        assert_eq!(SandboxSupport::Full.description(), None);
        let described = |support: SandboxSupport| support.description().unwrap_or_default();
        let namespace_problem = described(partial_support(false, false));
        assert!(
            namespace_problem.contains("modes and times") && namespace_problem.ends_with("turn x on"),
            "{namespace_problem}"
        );
        assert!(!namespace_problem.contains("end your other programs"), "{namespace_problem}");
        assert!(described(partial_support(true, true)).contains("Linux 6.12"));
        let none = described(SandboxSupport::Unavailable { reason: "no Landlock".into() });
        assert!(none.contains("no Landlock") && none.contains("permissions.sandbox: off"), "{none}");
    }
}
