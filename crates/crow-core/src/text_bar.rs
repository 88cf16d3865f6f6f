//! Bars of text.

/// Columns of the longest bar; a longer one says nothing more.
const BAR_MAX: usize = 40;

/// Columns below which bars are left out.
const BAR_MIN: usize = 6;

/// An eighth of a column to a full one.
const BLOCKS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// Renders a share of `largest` within `width` columns. An amount that is not zero is visible.
pub fn render_bar(amount: u64, largest: u64, width: usize) -> String {
    let width = width.min(BAR_MAX);
    if width < BAR_MIN || amount == 0 {
        return String::new();
    }
    let eighths = scale_amount(amount, largest, width as u64 * 8).max(1) as usize;
    let full = std::iter::repeat_n('█', eighths / 8);
    full.chain((eighths % 8).checked_sub(1).map(|index| BLOCKS[index])).collect()
}

/// Returns `amount` of `largest` on a scale to `max`, rounded down.
pub fn scale_amount(amount: u64, largest: u64, max: u64) -> u64 {
    let scaled = u128::from(amount) * u128::from(max) / u128::from(largest.max(1));
    u64::try_from(scaled).unwrap_or(max)
}

#[cfg(test)]
mod tests {
    use super::render_bar;

    #[test]
    fn bars_are_in_proportion() {
        #[track_caller]
        fn check(amount: u64, width: usize, expect: &str) {
            assert_eq!(render_bar(amount, 100, width), expect);
        }
        check(100, 8, "████████");
        check(50, 8, "████");
        check(52, 8, "████▏");
        check(1, 8, "▏");
        check(0, 8, "");
        check(100, 5, "");
        assert_eq!(render_bar(u64::MAX, u64::MAX, 200).chars().count(), 40);
    }
}
