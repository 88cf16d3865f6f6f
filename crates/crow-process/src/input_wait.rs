//! The result of a wait for input.

/// The result of a wait for input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputWait {
    /// Input, or its end, can be read.
    Ready,
    /// The time has passed, or a signal arrived.
    Quiet,
    /// The stopper was dropped.
    Stopped,
}
