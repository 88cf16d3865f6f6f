//! How a command is held while it runs: who approved it decides, not what it is.

use crate::Mode;

/// What a command may do to the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confinement {
    /// Whatever the person may do.
    Free,
    /// Write inside the roots, temporary folders and the caches of tools, nowhere else.
    Project,
    /// Write nowhere.
    ReadOnly,
}

/// Which commands run in the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sandbox {
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
pub enum Approval {
    /// A person, for this call or with an "always".
    Person,
    /// The mode, a rule, or that it only reads.
    Law,
}

impl Sandbox {
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
    pub fn confinement(self, mode: Mode, approval: Approval) -> Confinement {
        match (mode, self, approval) {
            (Mode::Plan, ..) => Confinement::ReadOnly,
            (_, Self::Always, _) | (_, Self::Unapproved, Approval::Law) => Confinement::Project,
            (_, Self::Off, _) | (_, Self::Unapproved, Approval::Person) => Confinement::Free,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_approved_decides_except_in_plan_mode() {
        use {Approval::*, Confinement::*};
        let row = |mode, approval| Sandbox::ALL.map(|sandbox| sandbox.confinement(mode, approval));
        for mode in [Mode::Ask, Mode::AcceptEdits, Mode::Auto] {
            assert_eq!(row(mode, Person), [Free, Free, Project], "{mode:?}");
            assert_eq!(row(mode, Law), [Free, Project, Project], "{mode:?}");
        }
        assert_eq!(row(Mode::Plan, Person), [ReadOnly; 3]);
        assert_eq!(row(Mode::Plan, Law), [ReadOnly; 3]);
    }
}
