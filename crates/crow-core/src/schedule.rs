//! Which calls of one reply may run side by side.

use std::path::Path;

use crate::{ToolAccess, ToolCallInfo};

/// Names the earlier calls that call `index` has to wait for, because they touch what it touches.
pub fn conflicting_earlier_calls(calls: &[ToolCallInfo], index: usize) -> Vec<usize> {
    let Some(later) = calls.get(index) else { return Vec::new() };
    (0..index).filter(|&earlier| accesses_conflict(&calls[earlier].touch, &later.touch)).collect()
}

fn accesses_conflict(earlier: &ToolAccess, later: &ToolAccess) -> bool {
    match (earlier, later) {
        (ToolAccess::Nothing, _) | (_, ToolAccess::Nothing) => false,
        // What a server touches is not ours to know, and it takes calls side by side.
        (ToolAccess::Calls { .. }, _) | (_, ToolAccess::Calls { .. }) => false,
        // Nor is what a server of this project would answer while something is changed here.
        (ToolAccess::Fetches { .. } | ToolAccess::Searches, _)
        | (_, ToolAccess::Fetches { .. } | ToolAccess::Searches) => false,
        (ToolAccess::Reads(_), ToolAccess::Reads(_)) => false,
        (ToolAccess::Reads(a) | ToolAccess::Writes(a), ToolAccess::Reads(b) | ToolAccess::Writes(b)) => {
            a.iter().any(|path| b.iter().any(|other| paths_overlap(path, other)))
        }
        // A command may read whatever is written beside it; two commands are the model's own business.
        (ToolAccess::Writes(_), ToolAccess::Runs(_)) | (ToolAccess::Runs(_), ToolAccess::Writes(_)) => true,
        (ToolAccess::Runs(_), ToolAccess::Runs(_)) => false,
        (ToolAccess::Runs(_), ToolAccess::Reads(_)) | (ToolAccess::Reads(_), ToolAccess::Runs(_)) => false,
    }
}

/// A folder that is searched overlaps with what is written inside it.
fn paths_overlap(one: &str, other: &str) -> bool {
    Path::new(one).starts_with(other) || Path::new(other).starts_with(one)
}

#[cfg(test)]
mod tests;
