//! The exposure of a file that should be private.

/// The users besides the owner who can read a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileExposure {
    /// None, or it does not exist.
    Private,
    /// The group or others.
    GroupOrOthers,
    /// The group or others, through a link: Crow does not change the target.
    GroupOrOthersByLink,
    /// Another user, who owns it.
    ForeignOwner,
    /// Everyone, in a directory that is meant for that.
    Shared,
}
