//! The one place that reads the clock.

use std::time::Duration;

use crow_store::Timestamp;

/// Reads the time.
pub(crate) fn now() -> Timestamp {
    Timestamp(jiff::Timestamp::now().as_millisecond())
}

/// Tells when it was this much earlier.
pub(crate) fn time_before_now(duration: Duration) -> Timestamp {
    Timestamp(now().0.saturating_sub(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
}

/// Shows today's date as the person's calendar has it.
pub(crate) fn today() -> String {
    jiff::Zoned::now().date().to_string()
}

/// Reads the time as the person's clock has it.
pub(crate) fn local_now() -> jiff::Zoned {
    jiff::Zoned::now()
}

/// Spells a time as RFC 3339.
pub(crate) fn format_rfc3339(time: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(time.0).map_or_else(|_| String::new(), |time| time.to_string())
}

/// Shows a time to the minute, in UTC.
pub(crate) fn format_minute(time: Timestamp) -> String {
    let time = jiff::Timestamp::from_millisecond(time.0).unwrap_or_default();
    time.strftime("%Y-%m-%d %H:%M").to_string()
}

/// Reads a time; one without a zone is UTC.
pub(crate) fn parse_time(text: &str) -> Option<Timestamp> {
    let with_zone = text.parse::<jiff::Timestamp>().ok();
    let without_zone = || text.parse::<jiff::civil::DateTime>().ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok();
    let time = with_zone.or_else(|| without_zone().map(|time| time.timestamp()))?;
    Some(Timestamp(time.as_millisecond()))
}
