//! Finds a sequence in another in linear time: files repeat themselves, and some consist of repetitions.

/// Finds the starts of `needle` in `haystack`, including overlapping ones, at most `n_max`.
///
/// Uses the algorithm of Knuth, Morris and Pratt.
pub(super) fn find_positions(haystack: &[u32], needle: &[u32], n_max: usize) -> Vec<usize> {
    let borders = border_lengths(needle);
    let mut positions = Vec::new();
    let mut n_matched = 0;
    for (at, item) in haystack.iter().enumerate() {
        while n_matched > 0 && needle.get(n_matched) != Some(item) {
            n_matched = borders[n_matched - 1];
        }
        if needle.get(n_matched) == Some(item) {
            n_matched += 1;
        }
        if n_matched == needle.len() && n_matched > 0 {
            positions.push(at + 1 - n_matched);
            if positions.len() == n_max {
                break;
            }
        }
    }
    positions
}

/// Returns, for each prefix of `needle`, the length of its longest proper prefix that is also a suffix.
fn border_lengths(needle: &[u32]) -> Vec<usize> {
    let mut borders: Vec<usize> = Vec::with_capacity(needle.len());
    for (at, item) in needle.iter().enumerate() {
        let mut n_matched = borders.last().copied().unwrap_or(0);
        while n_matched > 0 && needle[n_matched] != *item {
            n_matched = borders[n_matched - 1];
        }
        let is_longer = at > 0 && needle[n_matched] == *item;
        borders.push(n_matched + usize::from(is_longer));
    }
    borders
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::find_positions;

    proptest! {
        #[test]
        fn positions_equal_plain_search(
            all in prop::collection::vec(0_u32..3, 0..60), wanted in prop::collection::vec(0_u32..3, 1..6),
        ) {
            let windows = all.windows(wanted.len()).enumerate();
            let plain: Vec<usize> = windows.filter(|(_, window)| *window == wanted).map(|(at, _)| at).collect();
            prop_assert_eq!(find_positions(&all, &wanted, usize::MAX), plain);
        }
    }
}
