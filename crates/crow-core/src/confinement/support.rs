//! How far the system can hold a command, and what follows from that for a command that nobody approved.

use super::{ApprovalSource, Confinement, SandboxMode};
use crate::Mode;

/// How well commands can be held on this machine, as tried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SandboxSupport {
    /// In every way that the manual promises.
    Full,
    /// Writing is held, some other things are not.
    Partial(PartialSandbox),
    /// Not at all.
    None {
        /// What is missing, as a clause.
        reason: String,
    },
}

/// What is missing in a sandbox that is only partly there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartialSandbox {
    /// Why commands get no mount name space of their own, and how to change that; `None` when they do.
    pub no_namespace: Option<String>,
    /// The kernel is too old to keep signals inside.
    pub signals_open: bool,
}

/// The configured choice and what the system makes of it.
#[derive(Debug, Clone, Copy)]
pub struct SandboxPolicy<'a> {
    /// Which commands are to be held.
    pub choice: SandboxMode,
    /// How well that works here.
    pub support: &'a SandboxSupport,
}

/// The way out that only a person can take.
const WAY_OUT: &str =
    "`permissions.sandbox: off` runs such commands without a sandbox and without this question";

impl SandboxSupport {
    /// Returns what a person has to know about it; `None` when the sandbox is whole.
    pub fn description(&self) -> Option<String> {
        match self {
            Self::Full => None,
            Self::Partial(partial) => Some(partial.description()),
            Self::None { reason } => {
                Some(format!("there is no sandbox here: {reason}. Unapproved commands ask first; {WAY_OUT}"))
            }
        }
    }
}

impl PartialSandbox {
    fn description(&self) -> String {
        let mut open = Vec::new();
        if self.no_namespace.is_some() {
            open.push("change the modes and times of files outside the project");
        }
        if self.signals_open {
            open.push("end your other programs");
        }
        let mut text = format!(
            "the sandbox is incomplete: unapproved commands can {}. Commands that name such files or programs ask \
             first. They can use no Unix sockets",
            open.join(" and ")
        );
        match &self.no_namespace {
            Some(fix) => {
                text +=
                    ", and directly in a folder with a repository they can make no new files. The cause: ";
                text += fix;
            }
            None => text += ". Linux 6.12 or newer keeps signals inside",
        }
        text
    }
}

impl SandboxPolicy<'_> {
    /// Returns how a command that may run is held. A person's yes is needed where nothing can hold it.
    pub fn confinement_for(&self, mode: Mode, approval: ApprovalSource) -> Confinement {
        match (self.support, approval, mode) {
            (
                SandboxSupport::None { .. },
                ApprovalSource::Person,
                Mode::Ask | Mode::AcceptEdits | Mode::Auto,
            ) => Confinement::Free,
            // Reading does no harm that a sandbox would have to prevent, and neither do edits of files that were judged by
            // their names. Where only a part of it is there, it would keep them from making new files.
            (SandboxSupport::None { .. }, ApprovalSource::Reading | ApprovalSource::Editing, _) => {
                Confinement::Free
            }
            (SandboxSupport::Partial(_), ApprovalSource::Editing, _) => Confinement::Free,
            (SandboxSupport::Full | SandboxSupport::Partial(_) | SandboxSupport::None { .. }, ..) => {
                self.choice.confinement_for(mode, approval)
            }
        }
    }

    /// The same for a build that only the mode allows, which runs the project's own code: without a sandbox it asks, also
    /// where the person wants none.
    pub fn reason_to_ask_for_build(
        &self,
        mode: Mode,
        uses_gap: impl FnOnce(&PartialSandbox) -> Option<String>,
    ) -> Option<String> {
        if self.choice.confinement_for(mode, ApprovalSource::Building) == Confinement::Free {
            return Some("it runs the project's code, and `permissions.sandbox` is off".to_owned());
        }
        self.reason_to_ask(mode, uses_gap)
    }

    /// Returns why a command that nobody approved must be asked about although the mode or a rule allows it.
    /// `uses_gap` says how the command could use what the sandbox leaves open.
    pub fn reason_to_ask(
        &self,
        mode: Mode,
        uses_gap: impl FnOnce(&PartialSandbox) -> Option<String>,
    ) -> Option<String> {
        if self.choice.confinement_for(mode, ApprovalSource::Law) == Confinement::Free {
            return None;
        }
        match self.support {
            SandboxSupport::Full => None,
            SandboxSupport::Partial(partial) => uses_gap(partial)
                .map(|gap| format!("{gap}, which the sandbox cannot prevent here; {WAY_OUT}")),
            SandboxSupport::None { reason } => {
                Some(format!("nothing can hold it in a sandbox ({reason}); {WAY_OUT}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partial_support(has_namespace: bool, signals_open: bool) -> SandboxSupport {
        let no_namespace = (!has_namespace).then(|| "x is off; turn x on".to_owned());
        SandboxSupport::Partial(PartialSandbox { no_namespace, signals_open })
    }

    #[test]
    fn what_cannot_be_held_asks_unless_the_person_turned_the_sandbox_off() {
        let none = SandboxSupport::None { reason: "no Landlock".into() };
        let asks = |choice, support: &SandboxSupport, uses: bool| {
            let rules = SandboxPolicy { choice, support };
            let uses_gap = |_: &PartialSandbox| uses.then(|| "it does x".to_owned());
            [Mode::Ask, Mode::AcceptEdits, Mode::Auto]
                .map(|mode| rules.reason_to_ask(mode, uses_gap).is_some())
        };
        for choice in [SandboxMode::Unapproved, SandboxMode::Always] {
            assert_eq!(asks(choice, &SandboxSupport::Full, true), [false; 3]);
            assert_eq!(asks(choice, &partial_support(false, true), true), [true; 3]);
            assert_eq!(asks(choice, &partial_support(false, true), false), [false; 3]);
            assert_eq!(asks(choice, &none, false), [true; 3]);
        }
        assert_eq!(asks(SandboxMode::Off, &none, true), [false; 3]);
        // A build runs the project's code because of the mode alone.
        let asks_of_build = |choice, support: &SandboxSupport| {
            let rules = SandboxPolicy { choice, support };
            rules.reason_to_ask_for_build(Mode::AcceptEdits, |_| None).is_some()
        };
        assert!(!asks_of_build(SandboxMode::Unapproved, &SandboxSupport::Full));
        assert!(!asks_of_build(SandboxMode::Always, &partial_support(false, true)));
        assert!(asks_of_build(SandboxMode::Unapproved, &none));
        assert!(asks_of_build(SandboxMode::Off, &SandboxSupport::Full));
    }

    #[test]
    fn without_a_sandbox_only_a_person_frees_a_command() {
        let none = SandboxSupport::None { reason: "no Landlock".into() };
        for choice in [SandboxMode::Unapproved, SandboxMode::Always] {
            let rules = SandboxPolicy { choice, support: &none };
            assert_eq!(rules.confinement_for(Mode::Auto, ApprovalSource::Person), Confinement::Free);
            assert_eq!(rules.confinement_for(Mode::Auto, ApprovalSource::Law), Confinement::Project);
            assert_eq!(rules.confinement_for(Mode::Plan, ApprovalSource::Person), Confinement::ReadOnly);
            assert_eq!(rules.confinement_for(Mode::Plan, ApprovalSource::Reading), Confinement::Free);
        }
        let bare = SandboxPolicy { choice: SandboxMode::Unapproved, support: &none };
        assert_eq!(bare.confinement_for(Mode::AcceptEdits, ApprovalSource::Editing), Confinement::Free);
        let held = SandboxPolicy { choice: SandboxMode::Always, support: &partial_support(true, true) };
        assert_eq!(held.confinement_for(Mode::Auto, ApprovalSource::Person), Confinement::Project);
    }

    #[test]
    fn what_is_open_is_described_with_its_cure() {
        assert_eq!(SandboxSupport::Full.description(), None);
        let described = |support: SandboxSupport| support.description().unwrap_or_default();
        let no_namespace = described(partial_support(false, false));
        assert!(
            no_namespace.contains("modes and times") && no_namespace.ends_with("turn x on"),
            "{no_namespace}"
        );
        assert!(!no_namespace.contains("end your other programs"), "{no_namespace}");
        assert!(described(partial_support(true, true)).contains("Linux 6.12"));
        let none = described(SandboxSupport::None { reason: "no Landlock".into() });
        assert!(none.contains("no Landlock") && none.contains("permissions.sandbox: off"), "{none}");
    }
}
