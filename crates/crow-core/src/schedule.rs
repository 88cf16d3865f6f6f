//! Scheduling of the calls of one reply: which may run in parallel.

use std::path::Path;

use crate::{ToolAccess, ToolCallInfo};

/// Returns the earlier calls that call `index` must wait for, because their accesses conflict.
pub fn conflicting_earlier_calls(calls: &[ToolCallInfo], index: usize) -> Vec<usize> {
    let Some(later) = calls.get(index) else { return Vec::new() };
    (0..index).filter(|&earlier| accesses_conflict(&calls[earlier].access, &later.access)).collect()
}

fn accesses_conflict(earlier: &ToolAccess, later: &ToolAccess) -> bool {
    match (earlier, later) {
        (ToolAccess::Nothing, _) | (_, ToolAccess::Nothing) => false,
        // The accesses of a server are unknown, and it accepts parallel calls.
        (ToolAccess::Calls { .. }, _) | (_, ToolAccess::Calls { .. }) => false,
        // The same applies to a web server of this project.
        (ToolAccess::Fetches { .. } | ToolAccess::Searches, _)
        | (_, ToolAccess::Fetches { .. } | ToolAccess::Searches) => false,
        (ToolAccess::Reads(_), ToolAccess::Reads(_)) => false,
        (ToolAccess::Reads(a) | ToolAccess::Writes(a), ToolAccess::Reads(b) | ToolAccess::Writes(b)) => {
            a.iter().any(|path| b.iter().any(|other| paths_overlap(path, other)))
        }
        // A command may read any file written in parallel; the order of two commands is up to the model.
        (ToolAccess::Writes(_), ToolAccess::Runs(_)) | (ToolAccess::Runs(_), ToolAccess::Writes(_)) => true,
        (ToolAccess::Runs(_), ToolAccess::Runs(_)) => false,
        (ToolAccess::Runs(_), ToolAccess::Reads(_)) | (ToolAccess::Reads(_), ToolAccess::Runs(_)) => false,
    }
}

/// Whether one path contains the other.
fn paths_overlap(one: &str, other: &str) -> bool {
    Path::new(one).starts_with(other) || Path::new(other).starts_with(one)
}

#[cfg(test)]
mod tests;
