//! Times as the model and the user read and write them.

use crow_store::Timestamp;

/// Formats a time to the minute, in UTC.
pub(crate) fn format_minute(time: Timestamp) -> String {
    let time = jiff::Timestamp::from_millisecond(time.0).unwrap_or_default();
    time.strftime("%Y-%m-%d %H:%M").to_string()
}

/// Parses a time; without a time zone it is UTC.
pub(crate) fn parse_time(text: &str) -> Option<Timestamp> {
    let with_zone = text.parse::<jiff::Timestamp>().ok();
    let without_zone = || text.parse::<jiff::civil::DateTime>().ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok();
    let time = with_zone.or_else(|| without_zone().map(|time| time.timestamp()))?;
    Some(Timestamp(time.as_millisecond()))
}
