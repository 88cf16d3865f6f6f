//! What the system itself refuses a command: writing elsewhere, the network, ways out. Knows no command and nobody
//! who approves one; it is told where a command may write.

#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod cell;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod view;

#[cfg(target_os = "linux")]
pub(crate) use self::cell::{Cell, Look};

/// How well commands can be held here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Support {
    /// As the manual says.
    Full,
    /// Not in every way.
    Partial {
        /// What is not held, as a sentence.
        why: String,
    },
    /// Not at all.
    None {
        /// What is missing, as a sentence.
        why: String,
    },
}

/// Finds out how well commands can be held here.
#[cfg(target_os = "linux")]
pub fn sandbox_support() -> Support {
    match (files::version(), calls::is_known_machine()) {
        (Err(why), _) => Support::None { why },
        (Ok(version), _) if version < files::VERSION_WHOLE => Support::Partial {
            why: "the kernel is too old to keep commands from sending signals to other programs (Linux 6.12 can)"
                .into(),
        },
        (Ok(_), false) => Support::Partial {
            why: "on this processor only writing is held, not the network and not other ways out".into(),
        },
        (Ok(_), true) => Support::Full,
    }
}

/// Finds out how well commands can be held here.
#[cfg(not(target_os = "linux"))]
pub fn sandbox_support() -> Support {
    Support::None { why: "there is no sandbox for this system yet".into() }
}
