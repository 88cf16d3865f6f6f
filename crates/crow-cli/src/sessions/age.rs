//! Parses the age of sessions.

use std::str::FromStr;

use crow_store::Timestamp;

/// A number of hours, days or weeks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SessionAge {
    hours: u32,
}

impl SessionAge {
    /// Returns the time before which a session is older.
    pub(super) fn cutoff_time(self, now: Timestamp) -> Timestamp {
        Timestamp(now.0.saturating_sub(i64::from(self.hours) * 3_600_000))
    }
}

impl FromStr for SessionAge {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected a number of hours, days or weeks, such as 6h, 30d or 12w";
        let (number, hours) = match text.char_indices().next_back() {
            Some((end, 'h')) => (&text[..end], 1),
            Some((end, 'd')) => (&text[..end], 24),
            Some((end, 'w')) => (&text[..end], 7 * 24),
            Some(_) | None => return Err(EXPECTED),
        };
        let number: u32 = number.parse().map_err(|_| EXPECTED)?;
        let hours = number.checked_mul(hours).ok_or("the age is too large")?;
        Ok(Self { hours })
    }
}

#[cfg(test)]
mod tests {
    use super::SessionAge;

    #[track_caller]
    fn check(text: &str, hours: Result<u32, &str>) {
        assert_eq!(text.parse::<SessionAge>().map(|age| age.hours).map_err(|why| &why[..8]), hours, "{text}");
    }

    #[test]
    fn ages_are_hours_days_and_weeks() {
        check("6h", Ok(6));
        check("30d", Ok(720));
        check("2w", Ok(336));
        check("0d", Ok(0));
        for wrong in ["", "d", "30", "-1d", "1.5d", "30 days", "1ü"] {
            check(wrong, Err("expected"));
        }
        check("4000000000w", Err("the age "));
    }
}
