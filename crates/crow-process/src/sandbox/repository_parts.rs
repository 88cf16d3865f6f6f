//! The parts of a Git repository that a command must not change.

/// The parts of a repository that configure programs for Git to execute, or another place to look for such parts.
pub(super) const PROGRAM_PARTS: [&str; 6] =
    ["commondir", "config", "config.worktree", "hooks", "modules", "worktrees"];
