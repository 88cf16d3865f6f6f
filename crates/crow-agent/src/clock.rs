//! The one place that reads the clock.

use crow_store::Timestamp;

/// Reads the time.
pub(crate) fn now() -> Timestamp {
    Timestamp(jiff::Timestamp::now().as_millisecond())
}

/// Shows today's date as the person's calendar has it.
pub(crate) fn today() -> String {
    jiff::Zoned::now().date().to_string()
}

/// Spells a time as RFC 3339.
pub(crate) fn spelled(time: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(time.0).map_or_else(|_| String::new(), |time| time.to_string())
}
