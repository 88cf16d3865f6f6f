//! Finds a sequence in another in time that grows with their lengths and not with their product: files
//! repeat themselves, and some do little else.

/// Finds where `wanted` begins in `all`, overlapping places too, `n_max` of them at most.
///
/// The way of Knuth, Morris and Pratt: what has matched so far says where to go on, and nothing is looked at twice.
pub(super) fn find_positions(all: &[u32], wanted: &[u32], n_max: usize) -> Vec<usize> {
    let borders = border_lengths(wanted);
    let mut found = Vec::new();
    let mut n_matched = 0;
    for (at, item) in all.iter().enumerate() {
        while n_matched > 0 && wanted.get(n_matched) != Some(item) {
            n_matched = borders[n_matched - 1];
        }
        if wanted.get(n_matched) == Some(item) {
            n_matched += 1;
        }
        if n_matched == wanted.len() && n_matched > 0 {
            found.push(at + 1 - n_matched);
            if found.len() == n_max {
                break;
            }
        }
    }
    found
}

/// For each beginning of `wanted`: how long a part of it both begins and ends it, short of all of it.
fn border_lengths(wanted: &[u32]) -> Vec<usize> {
    let mut borders: Vec<usize> = Vec::with_capacity(wanted.len());
    for (at, item) in wanted.iter().enumerate() {
        let mut n_matched = borders.last().copied().unwrap_or(0);
        while n_matched > 0 && wanted[n_matched] != *item {
            n_matched = borders[n_matched - 1];
        }
        let goes_on = at > 0 && wanted[n_matched] == *item;
        borders.push(n_matched + usize::from(goes_on));
    }
    borders
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::find_positions;

    proptest! {
        #[test]
        fn as_a_plain_search(
            all in prop::collection::vec(0_u32..3, 0..60), wanted in prop::collection::vec(0_u32..3, 1..6),
        ) {
            let windows = all.windows(wanted.len()).enumerate();
            let plain: Vec<usize> = windows.filter(|(_, window)| *window == wanted).map(|(at, _)| at).collect();
            prop_assert_eq!(find_positions(&all, &wanted, usize::MAX), plain);
        }
    }
}
