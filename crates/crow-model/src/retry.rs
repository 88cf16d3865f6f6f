//! Decides whether to retry, and the delay: a pure function of the error and the jitter.

#[cfg(test)]
mod tests;

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

use crow_core::{Failure, FailureKind};

/// The first delay; a busy provider is often available again within a second.
const FIRST_DELAY: Duration = Duration::from_millis(500);

/// The longest delay of our own; longer ones look like a hang.
const DELAY_MAX: Duration = Duration::from_secs(30);

/// The longest delay that a provider may ask for; users do not wait longer, and it rejects an earlier attempt.
pub(crate) const RETRY_AFTER_MAX: Duration = Duration::from_secs(120);

/// Returns a random number from 0 to 1; the hasher's keys are good enough.
pub(crate) fn random_jitter() -> f64 {
    let random_bits = RandomState::new().build_hasher().finish();
    f64::from((random_bits >> 32) as u32) / f64::from(u32::MAX)
}

/// One failed attempt.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FailedAttempt {
    /// The failure to report if it was the last.
    pub(crate) failure: Failure,
    /// The cause, which decides about a retry.
    pub(crate) cause: FailureCause,
}

impl FailedAttempt {
    /// Returns why another model may answer, unless the request or the network is the reason.
    pub(crate) fn outage(&self) -> Option<ProviderOutage> {
        match self.cause {
            FailureCause::Status { code: 429 | 500..=599, .. } => Some(ProviderOutage::Overloaded),
            // Some report it in the stream, with a code of their own.
            FailureCause::Status { .. } => {
                matches!(self.failure.kind, FailureKind::ProviderRate | FailureKind::ProviderOverloaded)
                    .then_some(ProviderOutage::Overloaded)
            }
            // A limit that waiting does not lift.
            FailureCause::Permanent => {
                (self.failure.kind == FailureKind::ProviderRate).then_some(ProviderOutage::OutOfCredit)
            }
            FailureCause::Unreachable | FailureCause::TimedOut | FailureCause::Disconnected => None,
        }
    }
}

/// The reason why a provider cannot answer now, although the request is correct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderOutage {
    /// It is busy or failing.
    Overloaded,
    /// The account has no credit left.
    OutOfCredit,
}

/// The cause of a failure, as far as retries depend on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FailureCause {
    /// No connection.
    Unreachable,
    /// A timeout.
    TimedOut,
    /// The response broke off.
    Disconnected,
    /// The provider answered with an error status.
    Status {
        code: u16,
        /// The wait that the provider asked for.
        retry_after: Option<Duration>,
    },
    /// The same request will fail in the same way.
    Permanent,
}

/// Decides whether to retry after the `n_failed`th failure, and after which delay. `jitter` is from 0 to 1.
pub(crate) fn next_retry_delay(
    n_failed: u32,
    retries_max: u32,
    failed: &FailedAttempt,
    jitter: f64,
) -> Option<Duration> {
    if n_failed == 0 || n_failed > retries_max {
        return None;
    }
    let backoff = FIRST_DELAY.saturating_mul(1 << (n_failed - 1).min(16)).min(DELAY_MAX);
    // Half of the delay is fixed, half is random, so that clients do not return all at once.
    let jittered = backoff.mul_f64(0.5 + 0.5 * jitter.clamp(0.0, 1.0));
    match failed.cause {
        FailureCause::Permanent => None,
        FailureCause::Unreachable | FailureCause::TimedOut | FailureCause::Disconnected => Some(jittered),
        FailureCause::Status { code: 408 | 409 | 425 | 429 | 500..=599, retry_after, .. } => {
            Some(retry_after.unwrap_or(jittered)).filter(|delay| *delay <= RETRY_AFTER_MAX)
        }
        FailureCause::Status { .. } => None,
    }
}

/// The notice of a retry.
pub(crate) fn retry_notice(
    failed: &FailedAttempt,
    delay: Duration,
    n_failed: u32,
    retries_max: u32,
) -> String {
    let cause = match failed.cause {
        FailureCause::Unreachable => "the provider cannot be reached".to_owned(),
        FailureCause::TimedOut => "the provider does not answer".to_owned(),
        FailureCause::Disconnected => "the response broke off".to_owned(),
        FailureCause::Status { code: code @ 429, .. } => format!("the provider is busy ({code})"),
        FailureCause::Status { code, .. } => format!("the provider is failing ({code})"),
        FailureCause::Permanent => "the request failed".to_owned(),
    };
    let when =
        if delay.is_zero() { "now".to_owned() } else { format!("in {} s", delay.as_secs_f64().ceil()) };
    format!("{cause}; trying again {when} ({n_failed} of {retries_max})")
}

/// Parses the wait that the provider asked for; `date` is its own clock.
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

/// Parses `Sun, 06 Nov 1994 08:49:37 GMT` as seconds since 1970.
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
