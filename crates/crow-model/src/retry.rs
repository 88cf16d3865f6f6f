//! When to try again, and how long to wait before. A pure function of what went wrong.

#[cfg(test)]
mod tests;

use std::time::Duration;

use crow_core::{Failure, FailureKind};

/// The first wait; a busy provider is often free again within a second.
const WAIT_FIRST: Duration = Duration::from_millis(500);

/// The longest wait of our own choice; a person still believes that something happens.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// The longest wait that a provider may ask for; for more than this nobody stays.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(120);

/// One failed try.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FailedAttempt {
    /// What to say when it was the last.
    pub(crate) failure: Failure,
    /// What another try may hope for.
    pub(crate) cause: FailureCause,
}

impl FailedAttempt {
    /// Whether the provider has too much to do, or trouble of its own, which another may not have.
    pub(crate) fn is_overload(&self) -> bool {
        match self.cause {
            FailureCause::Status { code: 429 | 500..=599, .. } => true,
            // Some say it in the stream, with a code of their own.
            FailureCause::Status { .. } => {
                matches!(self.failure.kind, FailureKind::ProviderRate | FailureKind::ProviderOverloaded)
            }
            FailureCause::Unreachable
            | FailureCause::Silent
            | FailureCause::BrokeOff
            | FailureCause::Final => false,
        }
    }
}

/// What went wrong, as far as trying again depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FailureCause {
    /// Nobody took the connection.
    Unreachable,
    /// Nothing came in time.
    Silent,
    /// The answer broke off.
    BrokeOff,
    /// The provider answered with a status that is not success.
    Status {
        /// The code.
        code: u16,
        /// How long the provider wants to be left alone.
        retry_after: Option<Duration>,
    },
    /// The same request will fail in the same way.
    Final,
}

/// Decides whether to try again after the `n_failed`th failure, and after which wait. `jitter` is from 0 to 1.
pub(crate) fn next_retry_delay(
    n_failed: u32,
    retries_max: u32,
    tried: &FailedAttempt,
    jitter: f64,
) -> Option<Duration> {
    if n_failed == 0 || n_failed > retries_max {
        return None;
    }
    let doubled = WAIT_FIRST.saturating_mul(1 << (n_failed - 1).min(16)).min(WAIT_MAX);
    // Half of the wait is certain, half is chance, so that a crowd does not come back at once.
    let own = doubled.mul_f64(0.5 + 0.5 * jitter.clamp(0.0, 1.0));
    match tried.cause {
        FailureCause::Final => None,
        FailureCause::Unreachable | FailureCause::Silent | FailureCause::BrokeOff => Some(own),
        FailureCause::Status { code: 408 | 409 | 425 | 429 | 500..=599, retry_after, .. } => {
            Some(retry_after.map_or(own, |asked| asked.min(RETRY_AFTER_MAX)))
        }
        FailureCause::Status { .. } => None,
    }
}

/// Says what happened and that it goes on.
pub(crate) fn retry_notice(tried: &FailedAttempt, wait: Duration, n_failed: u32, retries_max: u32) -> String {
    let what = match tried.cause {
        FailureCause::Unreachable => "the provider cannot be reached".to_owned(),
        FailureCause::Silent => "the provider is silent".to_owned(),
        FailureCause::BrokeOff => "the answer broke off".to_owned(),
        FailureCause::Status { code: code @ 429, .. } => format!("the provider is busy ({code})"),
        FailureCause::Status { code, .. } => format!("the provider is in trouble ({code})"),
        FailureCause::Final => "the request failed".to_owned(),
    };
    let when = if wait.is_zero() { "now".to_owned() } else { format!("in {} s", wait.as_secs_f64().ceil()) };
    format!("{what}; trying again {when} ({n_failed} of {retries_max})")
}

/// Reads how long the provider wants to be left alone; `date` is its own clock.
pub(crate) fn parse_retry_after(
    after_ms: Option<&str>,
    after: Option<&str>,
    date: Option<&str>,
) -> Option<Duration> {
    let number =
        |text: &str| text.trim().parse::<f64>().ok().filter(|number| *number >= 0.0 && number.is_finite());
    let seconds = |number: f64| Duration::try_from_secs_f64(number).ok();
    if let Some(ms) = after_ms.and_then(number) {
        return seconds(ms / 1000.0);
    }
    let after = after?;
    match number(after) {
        Some(number) => seconds(number),
        None => {
            let wait_s = parse_http_date(after)? - parse_http_date(date?)?;
            Some(Duration::from_secs(u64::try_from(wait_s).unwrap_or(0)))
        }
    }
}

/// Reads `Sun, 06 Nov 1994 08:49:37 GMT` as seconds since 1970.
fn parse_http_date(text: &str) -> Option<i64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let mut words = text.split_whitespace().skip(1);
    let number = |text: &str| text.parse::<u32>().ok().map(i64::from);
    let day = number(words.next()?)?;
    let month = words.next().filter(|month| month.len() == 3)?;
    let month = i64::try_from(MONTHS.find(month)? / 3).ok()? + 1;
    let year: i64 = words.next()?.parse().ok().filter(|year| (1970..10_000).contains(year))?;
    let mut time = words.next()?.splitn(3, ':').map(number);
    let (hour, minute, second) = (time.next()??, time.next()??, time.next()??);
    // Days since 1970 with the year counted from March, so that the leap day is its last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 719_469;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second)
}
