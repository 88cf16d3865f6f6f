//! Reads the system clock; nothing else in this crate does.

use std::time::Duration;

use crow_store::Timestamp;

/// Returns the current time.
pub(crate) fn now() -> Timestamp {
    Timestamp(jiff::Timestamp::now().as_millisecond())
}

/// Returns the time before now by a duration.
pub(crate) fn time_before_now(duration: Duration) -> Timestamp {
    Timestamp(now().0.saturating_sub(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
}

/// Returns today's date in the user's time zone.
pub(crate) fn today() -> String {
    jiff::Zoned::now().date().to_string()
}

/// Returns the current time in the user's time zone.
pub(crate) fn local_now() -> jiff::Zoned {
    jiff::Zoned::now()
}

/// Formats a time as RFC 3339.
pub(crate) fn format_rfc3339(time: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(time.0).map_or_else(|_| String::new(), |time| time.to_string())
}
