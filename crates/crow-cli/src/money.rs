//! Formats amounts of money.

/// The smallest amount that is printed, in billionths of a dollar.
const STEP: u64 = 100_000;

const DOLLAR: u64 = 1_000_000_000;

/// Formats billionths of a US dollar. A small amount is never printed as zero.
pub(crate) fn format_dollars(billionths: u64) -> String {
    match billionths {
        0 => "$0".to_owned(),
        1..STEP => "<$0.0001".to_owned(),
        STEP..DOLLAR => {
            let steps = round_to_step(billionths, STEP);
            format!("${}.{:04}", steps / 10_000, steps % 10_000)
        }
        DOLLAR.. => {
            let cents = round_to_step(billionths, DOLLAR / 100);
            format!("${}.{:02}", cents / 100, cents % 100)
        }
    }
}

/// Converts billionths of a US dollar to dollars, for JSON.
pub(crate) fn to_dollars(billionths: u64) -> f64 {
    billionths as f64 / DOLLAR as f64
}

fn round_to_step(amount: u64, step: u64) -> u64 {
    amount / step + u64::from(amount % step >= step / 2)
}

#[cfg(test)]
mod tests {
    use super::format_dollars;

    #[track_caller]
    fn check(billionths: u64, expected: &str) {
        assert_eq!(format_dollars(billionths), expected);
    }

    #[test]
    fn amounts_are_rounded_for_display() {
        check(0, "$0");
        check(1, "<$0.0001");
        check(99_999, "<$0.0001");
        check(100_000, "$0.0001");
        check(12_349_999, "$0.0123");
        check(12_350_000, "$0.0124");
        check(999_960_000, "$1.0000");
        check(1_000_000_000, "$1.00");
        check(12_345_000_000, "$12.35");
        check(u64::MAX, "$18446744073.71");
    }
}
