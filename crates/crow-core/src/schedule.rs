//! Which calls of one reply may run side by side.

use std::path::Path;

use crate::{Facets, Touch};

/// Names the earlier calls that call `index` has to wait for, because they touch what it touches.
pub fn waits_for(calls: &[Facets], index: usize) -> Vec<usize> {
    let Some(later) = calls.get(index) else { return Vec::new() };
    (0..index).filter(|&earlier| conflict(&calls[earlier].touch, &later.touch)).collect()
}

fn conflict(earlier: &Touch, later: &Touch) -> bool {
    match (earlier, later) {
        (Touch::Nothing, _) | (_, Touch::Nothing) => false,
        // What a server touches is not ours to know, and it takes calls side by side.
        (Touch::Calls { .. }, _) | (_, Touch::Calls { .. }) => false,
        // Nor is what a server of this project would answer while something is changed here.
        (Touch::Fetches { .. } | Touch::Searches, _) | (_, Touch::Fetches { .. } | Touch::Searches) => false,
        (Touch::Reads(_), Touch::Reads(_)) => false,
        (Touch::Reads(a) | Touch::Writes(a), Touch::Reads(b) | Touch::Writes(b)) => {
            a.iter().any(|path| b.iter().any(|other| overlap(path, other)))
        }
        // A command may read whatever is written beside it; two commands are the model's own business.
        (Touch::Writes(_), Touch::Runs(_)) | (Touch::Runs(_), Touch::Writes(_)) => true,
        (Touch::Runs(_), Touch::Runs(_)) => false,
        (Touch::Runs(_), Touch::Reads(_)) | (Touch::Reads(_), Touch::Runs(_)) => false,
    }
}

/// A folder that is searched overlaps with what is written inside it.
fn overlap(one: &str, other: &str) -> bool {
    Path::new(one).starts_with(other) || Path::new(other).starts_with(one)
}

#[cfg(test)]
mod tests;
